/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM and GRU against PyTorch, and a row's bits in any company. */
#include <math.h>
#include "core/autodiff.h"
#include "ops/gemm/gemm.h"
#include "tests/check_sn.h"
#include "tests/ops/golden_rnn.inc"
#include "tests/ops/op_test.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

typedef struct expected {
  const char *name;
  sn_value (*make)(sn_graph *g, sn_value x, sn_value steps, const sn_recurrent_weights *w, int d);
  int64_t gates;
  const float *y, *dx;
  const float *w[2][4], *dw[2][4];
} expected;

#define GOLDEN(kind, make, gates)                                                                  \
  {                                                                                                \
#kind, make, gates, kind##_y, kind##_dx,                                                       \
        {{kind##_w00, kind##_w01, kind##_w02, kind##_w03 },                                        \
          {kind##_w10, kind##_w11, kind##_w12, kind##_w13 } },                                     \
          {{kind##_dw00, kind##_dw01, kind##_dw02, kind##_dw03 },                                  \
            {kind##_dw10, kind##_dw11, kind##_dw12, kind##_dw13 } },                               \
  }
static const expected golden[] = {GOLDEN(lstm, sn_lstm_op, 4), GOLDEN(gru, sn_gru_op, 3)};

enum { LEAST_ISA = SN__GEMM_ISA_BASE, MOST_ISA = SN__GEMM_ISA_AVX512 };

/* ||a - b|| <= tolerance ||b|| */
static void near(const expected *e, const char *what, const op_values *v, sn_value a,
                 const float *b, size_t n) {
  const float *x = v->data[a.index];
  ck_assert_msg(x != NULL && v->bytes[a.index] == n * sizeof *b, "%s %s: size", e->name, what);
  double off = 0, size = 0;
  for (size_t i = 0; i < n; i++) {
    off += pow((double)x[i] - (double)b[i], 2);
    size += pow((double)b[i], 2);
  }
  ck_assert_msg(sqrt(off) <= 2e-6 * sqrt(size), "%s %s: off by %.3g of %.3g", e->name, what,
                sqrt(off), sqrt(size));
}

static sn_value fed_param(op_test *t, sn_shape shape, const float *numbers, size_t n) {
  sn_value v = op_param(t, shape, -1, 1);
  if (numbers != NULL)
    op_feed(t, sn__value_at(t->graph, t->params[t->n_params - 1].input), numbers,
            n * sizeof *numbers);
  return v;
}

static size_t weight_size(const expected *e, int i, int64_t features, int64_t units) {
  return (size_t)(e->gates * units * (i == 0 ? features : i == 1 ? units : 1));
}

/* Parameters 0..7 are the weights, 8 is x. y is row-major. */
static sn_value build(op_test *t, const expected *e, bool given, int64_t features, int64_t units,
                      const int64_t *lengths, size_t rows, const float *x, size_t n) {
  sn_recurrent_weights w[2];
  const int64_t high = e->gates * units;
  for (int d = 0; d < 2; d++) {
    sn_value in[4];
    for (int i = 0; i < 4; i++) {
      sn_shape shape = {i < 2 ? 2 : 1, {high, i == 0 ? features : units}};
      in[i] = fed_param(t, shape, given ? e->w[d][i] : NULL, weight_size(e, i, features, units));
    }
    w[d] = (sn_recurrent_weights){in[0], in[1], in[2], in[3]};
  }
  sn_sequence s = op_sequence(t, features, lengths, rows, -1, 1);
  op_feed(t, sn__value_at(t->graph, t->params[8].input), x, n * sizeof *x);
  sn_value map, steps;
  sn_time_order(t->graph, s.offsets, &map, &steps, NULL);
  sn_value sorted = sn_reorder(t->graph, s.values, map, false);
  return sn_reorder(t->graph, e->make(t->graph, sorted, steps, w, 2), map, true);
}

START_TEST(as_pytorch_does) {
  const expected *e = &golden[_i % (int)LENGTH(golden)];
  if (!sn__gemm_set_isa((sn__gemm_isa)(_i / (int)LENGTH(golden)))) return;
  op_test t;
  op_test_init(&t, SN_F32, false);
  const size_t n = LENGTH(golden_x), outputs = LENGTH(golden_dy);
  sn_value y = build(&t, e, true, GOLDEN_FEATURES, GOLDEN_UNITS, golden_lengths,
                     LENGTH(golden_lengths), golden_x, n);
  double dy[LENGTH(golden_dy)];
  for (size_t i = 0; i < outputs; i++)
    dy[i] = (double)golden_dy[i];
  sn_value r = op_data(&t, SN_F32, sn_value_shape(y), dy, outputs);
  sn_value loss = sn_reduce_sum(t.graph, sn_mul(t.graph, y, r), .all = true);
  sn__graph_add_loss(t.graph, NULL, loss, sn__value_at(t.graph, 0), SN_SYMBOL_BATCH, 1);
  sn_graph *train;
  ck_sn_ok(sn__differentiate(t.graph, &train));
  op_values v;
  ck_sn_ok(op_run(&t, train, NULL, 0, &v));
  near(e, "y", &v, y, e->y, outputs);
  near(e, "dx", &v, sn__gradient_of(train, sn__value_at(train, t.params[8].value)), e->dx, n);
  for (int p = 0; p < 8; p++)
    near(e, "weight gradient", &v, sn__gradient_of(train, sn__value_at(train, t.params[p].value)),
         e->dw[p / 4][p % 4], weight_size(e, p % 4, GOLDEN_FEATURES, GOLDEN_UNITS));
  op_values_free(&v);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

enum { FEATURES = 5, UNITS = 37 };

/* y of these rows, to be freed. */
static float *outputs_of(const expected *e, const int64_t *lengths, size_t rows, const float *x,
                         size_t elements) {
  op_test t;
  op_test_init(&t, SN_F32, false);
  sn_value y = build(&t, e, false, FEATURES, UNITS, lengths, rows, x, elements * FEATURES);
  ck_sn_ok(sn_graph_status(t.graph));
  op_values v;
  ck_sn_ok(op_run(&t, t.graph, NULL, 0, &v));
  ck_assert_uint_eq(v.bytes[y.index], elements * 2 * UNITS * sizeof(float));
  float *out = malloc(v.bytes[y.index] + 1);
  if (v.bytes[y.index] > 0) memcpy(out, v.data[y.index], v.bytes[y.index]);
  op_values_free(&v);
  op_test_free(&t);
  return out;
}

/* Alone, among long ones, and in a batch in reverse order: the same bits. */
START_TEST(a_row_in_any_company) {
  const expected *e = &golden[_i];
  enum { ROWS = 12 };
  static const int64_t lengths[ROWS] = {3, 0, 40, 1, 6, 2, 40, 17, 1, 0, 33, 6};
  int64_t reversed[ROWS];
  size_t total = 0, begin = 0;
  for (size_t r = 0; r < ROWS; r++) {
    reversed[r] = lengths[ROWS - 1 - r];
    total += (size_t)lengths[r];
  }
  float *x = malloc(total * FEATURES * sizeof *x), *back = malloc(total * FEATURES * sizeof *x);
  for (size_t i = 0; i < total * FEATURES; i++)
    x[i] = sinf((float)i * 1.7f);
  size_t at = total;
  for (size_t r = 0; r < ROWS; r++) {
    const size_t n = (size_t)lengths[r] * FEATURES;
    at -= (size_t)lengths[r];
    memcpy(back + at * FEATURES, x + begin * FEATURES, n * sizeof *x);
    begin += (size_t)lengths[r];
  }
  float *all = outputs_of(e, lengths, ROWS, x, total);
  float *turned = outputs_of(e, reversed, ROWS, back, total);
  begin = 0;
  for (size_t r = 0; r < ROWS; r++) {
    const size_t n = (size_t)lengths[r], bytes = n * 2 * UNITS * sizeof *x;
    float *alone = outputs_of(e, lengths + r, 1, x + begin * FEATURES, n);
    ck_assert_msg(memcmp(alone, all + begin * 2 * UNITS, bytes) == 0, "%s: row %zu alone", e->name,
                  r);
    ck_assert_msg(memcmp(alone, turned + (total - begin - n) * 2 * UNITS, bytes) == 0,
                  "%s: row %zu in a batch in another order", e->name, r);
    free(alone);
    begin += n;
  }
  free(all);
  free(turned);
  free(x);
  free(back);
}
END_TEST

START_TEST(avx2_and_avx512_agree) {
  const expected *e = &golden[_i];
  static const int64_t lengths[] = {9, 4};
  float x[13 * FEATURES];
  for (size_t i = 0; i < LENGTH(x); i++)
    x[i] = sinf((float)i) * 30;
  if (!sn__gemm_set_isa(SN__GEMM_ISA_AVX512)) return;
  float *wide = outputs_of(e, lengths, 2, x, 13);
  ck_assert(sn__gemm_set_isa(SN__GEMM_ISA_AVX2));
  float *narrow = outputs_of(e, lengths, 2, x, 13);
  ck_assert_int_eq(memcmp(wide, narrow, 13 * 2 * UNITS * sizeof *x), 0);
  free(wide);
  free(narrow);
}
END_TEST

START_TEST(shape_mistakes_in_words) {
  op_test t;
  op_test_init(&t, SN_F32, false);
  const int64_t lengths[] = {2, 1};
  sn_sequence s = op_sequence(&t, 3, lengths, 2, -1, 1);
  sn_value map, steps;
  sn_time_order(t.graph, s.offsets, &map, &steps, NULL);
  sn_recurrent_weights w = {op_param(&t, SN_SHAPE(16, 5), -1, 1),
                            op_param(&t, SN_SHAPE(16, 4), -1, 1), sn__value_at(t.graph, 0),
                            sn__value_at(t.graph, 0)};
  ck_assert(!sn_value_ok(sn_lstm_op(t.graph, s.values, steps, &w, 1)));
  ck_sn_fails(sn_graph_status(t.graph), SN_CODE_INVALID,
              "the input kernel must be [16, 3], not [16, 5]");
  op_test_free(&t);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("recurrent");
  TCase *t = tcase_create("recurrent");
  const int n = (int)LENGTH(golden);
  tcase_add_loop_test(t, as_pytorch_does, 0, n * (MOST_ISA - LEAST_ISA + 1));
  tcase_add_loop_test(t, a_row_in_any_company, 0, n);
  tcase_add_loop_test(t, avx2_and_avx512_agree, 0, n);
  tcase_add_test(t, shape_mistakes_in_words);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
