/* SPDX-License-Identifier: Apache-2.0 */
#include "core/init.h"

#include <math.h>
#include <stdio.h>

#include "tests/check_sn.h"
#include "tests/fail_alloc.h"

/* No op is needed, and core wants a table. */
const sn_op_def *const sn__op_table[] = {NULL};
const int sn__op_count = 0;

enum { ROWS = 300, COLUMNS = 200, COUNT = ROWS * COLUMNS };
static float drawn[COUNT];
static double wide[COUNT];

static void fill(sn_init init, sn_shape shape, uint64_t seed, const char *name) {
  ck_sn_ok(sn__init_fill(&init, &shape, SN_F32, seed, name, drawn));
}

typedef struct moments {
  double mean, deviation, most;
} moments;

static moments measure(void) {
  double sum = 0, squares = 0, most = 0;
  for (int i = 0; i < COUNT; i++) {
    sum += drawn[i];
    squares += (double)drawn[i] * drawn[i];
    most = fmax(most, fabs((double)drawn[i]));
  }
  return (moments){sum / COUNT, sqrt(squares / COUNT), most};
}

/* Deviations within 1 %: sixty thousand draws have a standard error of 0.3 %. */
START_TEST(distributions) {
  static const struct {
    sn_init init;
    double deviation, bound;
  } cases[] = {{{.kind = SN_INIT_UNIFORM, .value = 0.3}, 0.3 / 1.7320508, 0.3},
               {{.kind = SN_INIT_NORMAL, .value = 2}, 2, 20},
               {{.kind = SN_INIT_GLOROT_UNIFORM}, 0.063245553, 0.10954451}, /* fans 200 and 300 */
               {{.kind = SN_INIT_GLOROT_NORMAL, .gain = 3}, 0.18973666, 2},
               {{.kind = SN_INIT_HE_UNIFORM}, 0.1, 0.17320508}, /* sqrt(2 / 200) */
               {{.kind = SN_INIT_HE_NORMAL}, 0.1, 1},
               {{.kind = SN_INIT_HE_NORMAL, .fan_in = 50}, 0.2, 2},
               {{.kind = SN_INIT_HE_NORMAL, .gain = 1}, 0.070710678, 1}};
  fill(cases[_i].init, SN_SHAPE(ROWS, COLUMNS), 5, "a/kernel");
  moments m = measure();
  ck_assert_double_le(fabs(m.deviation / cases[_i].deviation - 1), 0.01);
  ck_assert_double_le(fabs(m.mean), 0.02 * cases[_i].deviation);
  ck_assert_double_le(m.most, cases[_i].bound);
  ck_assert_double_ge(m.most, 0.99 * fmin(cases[_i].bound, 3 * cases[_i].deviation));
}
END_TEST

START_TEST(fans_of_more_dimensions) {
  /* [out, in, field]: fan_in 4 * 50, fan_out 300 * 50 */
  sn_init init = {.kind = SN_INIT_GLOROT_NORMAL};
  fill(init, SN_SHAPE(ROWS, 4, 50), 5, "k");
  ck_assert_double_le(fabs(measure().deviation / sqrt(2.0 / (200 + 15000)) - 1), 0.01);
}
END_TEST

START_TEST(pytorchs_by_name) {
  ck_assert_double_eq(sn_init_pytorch_linear(64).value, 0.125);
  ck_assert_int_eq(sn_init_pytorch_linear(64).kind, SN_INIT_UNIFORM);
  ck_assert_double_eq(sn_init_pytorch_recurrent(16).value, 0.25);
  ck_assert_int_eq(sn_init_pytorch_embedding().kind, SN_INIT_NORMAL);
}
END_TEST

/* Rows or columns, the shorter side, are orthonormal times gain. */
START_TEST(orthogonal) {
  static const int64_t shapes[][2] = {{40, 40}, {20, 60}, {60, 20}, {1, 7}, {7, 1}};
  int64_t rows = shapes[_i][0], columns = shapes[_i][1];
  sn_init init = {.kind = SN_INIT_ORTHOGONAL, .gain = 1.5};
  sn_shape shape = SN_SHAPE(rows, columns);
  ck_sn_ok(sn__init_fill(&init, &shape, SN_F64, 3, "recurrent_kernel", wide));
  int64_t n = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
  for (int64_t a = 0; a < n; a++)
    for (int64_t b = 0; b < n; b++) {
      double sum = 0;
      for (int64_t i = 0; i < length; i++)
        sum += rows < columns ? wide[a * columns + i] * wide[b * columns + i]
                              : wide[i * columns + a] * wide[i * columns + b];
      ck_assert_double_le(fabs(sum - (a == b ? 2.25 : 0)), 1e-12);
    }
}
END_TEST

START_TEST(keyed_by_seed_name_and_position) {
  static float again[COUNT];
  sn_init init = {.kind = SN_INIT_NORMAL, .value = 1};
  fill(init, SN_SHAPE(ROWS, COLUMNS), 5, "a/kernel");
  memcpy(again, drawn, sizeof drawn);
  fill(init, SN_SHAPE(ROWS, COLUMNS), 5, "a/kernel");
  ck_assert_mem_eq(again, drawn, sizeof drawn);
  fill(init, SN_SHAPE(COUNT / 2 + 1), 5, "a/kernel"); /* a prefix of the same stream */
  ck_assert_mem_eq(again, drawn, (COUNT / 2 + 1) * sizeof *drawn);
  fill(init, SN_SHAPE(ROWS, COLUMNS), 6, "a/kernel");
  ck_assert_mem_ne(again, drawn, 16 * sizeof *drawn);
  fill(init, SN_SHAPE(ROWS, COLUMNS), 5, "b/kernel");
  ck_assert_mem_ne(again, drawn, 16 * sizeof *drawn);
}
END_TEST

START_TEST(types) {
  sn_init one = {.kind = SN_INIT_CONSTANT, .value = 1.5}, zero = {.kind = SN_INIT_ZEROS};
  sn_shape shape = SN_SHAPE(3), scalar = SN_SCALAR_SHAPE;
  double f64[3];
  uint16_t bf16[3];
  int64_t i64[3];
  ck_sn_ok(sn__init_fill(&one, &shape, SN_F64, 0, "v", f64));
  ck_assert_double_eq(f64[2], 1.5);
  ck_sn_ok(sn__init_fill(&one, &shape, SN_BF16, 0, "v", bf16));
  ck_assert_uint_eq(bf16[2], 0x3fc0);
  one.value = 1 + 0x1p-8; /* halfway: to even */
  ck_sn_ok(sn__init_fill(&one, &shape, SN_BF16, 0, "v", bf16));
  ck_assert_uint_eq(bf16[0], 0x3f80);
  one.value = 7;
  ck_sn_ok(sn__init_fill(&one, &shape, SN_I64, 0, "v", i64));
  ck_assert_int_eq(i64[2], 7);
  ck_sn_ok(sn__init_fill(&zero, &scalar, SN_F64, 0, "v", f64));
  ck_assert_double_eq(f64[0], 0);
  ck_assert_double_eq(f64[1], 1.5); /* and no further */
}
END_TEST

START_TEST(refusals) {
  sn_shape vector = SN_SHAPE(4);
  sn_init bad = {.kind = SN_INIT_NORMAL, .value = (double)NAN};
  ck_sn_fails(sn__init_fill(&bad, &vector, SN_F32, 0, "v", drawn), SN_CODE_INVALID, "'v'");
  bad = (sn_init){.kind = SN_INIT_NORMAL, .value = 1};
  ck_sn_fails(sn__init_fill(&bad, &vector, SN_I32, 0, "v", drawn), SN_CODE_INVALID, "type i32");
  bad = (sn_init){.kind = SN_INIT_ORTHOGONAL};
  ck_sn_fails(sn__init_fill(&bad, &vector, SN_F32, 0, "v", drawn), SN_CODE_INVALID,
              "two dimensions");
  bad = (sn_init){.kind = SN_INIT_CONSTANT, .value = 300};
  ck_sn_fails(sn__init_fill(&bad, &vector, SN_U8, 0, "v", drawn), SN_CODE_INVALID, "does not fit");
}
END_TEST

START_TEST(slots_that_copy_their_owner) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value w = sn_variable(g, "w", SN_F32, SN_SHAPE(8), .init = {SN_INIT_NORMAL, .value = 1});
  sn_value slot = sn__slot_variable(g, w, "ema", SN_F32, SN_SHAPE(8), (sn_init){0});
  float a[8], b[8];
  ck_sn_ok(sn__init_variable(g, 0, 9, a));
  ck_sn_ok(sn__init_variable(g, 1, 9, b));
  ck_assert_float_eq(b[3], 0);
  g->variables[g->values[slot.index].extra].copy_owner = true;
  ck_sn_ok(sn__init_variable(g, 1, 9, b));
  ck_assert_mem_eq(a, b, sizeof a);
  sn_graph_free(g);
}
END_TEST

static sn_status fill_orthogonal(void *arg) {
  (void)arg;
  sn_init init = {.kind = SN_INIT_ORTHOGONAL};
  sn_shape shape = SN_SHAPE(4, 4);
  return sn__init_fill(&init, &shape, SN_F32, 0, "v", drawn);
}

START_TEST(out_of_memory) {
  ck_assert_int_eq(sn_fail_alloc_every_call(fill_orthogonal, NULL), 1);
}
END_TEST

static Suite *init_suite(void) {
  Suite *s = suite_create("init");
  TCase *c = tcase_create("init");
  tcase_add_loop_test(c, distributions, 0, 8);
  tcase_add_test(c, fans_of_more_dimensions);
  tcase_add_test(c, pytorchs_by_name);
  tcase_add_loop_test(c, orthogonal, 0, 5);
  tcase_add_test(c, keyed_by_seed_name_and_position);
  tcase_add_test(c, types);
  tcase_add_test(c, refusals);
  tcase_add_test(c, slots_that_copy_their_owner);
  tcase_add_test(c, out_of_memory);
  suite_add_tcase(s, c);
  return s;
}

SN_TEST_MAIN(init_suite)
