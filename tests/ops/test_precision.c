/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose products are asked for in bf16: near what f32 gives, not the same; gradients inherit.
 */
#include <math.h>
#include "core/autodiff.h"
#include "core/precision.h"
#include "core/run/values.h"
#include "ops/gemm/gemm.h"
#include "tests/check_sn.h"
#include "tests/ops/op_test.h"

enum { UNITS = 3 };

static void matmul_forms(op_test *t) {
  sn_graph *g = t->graph;
  const int64_t b = SN_DIM_BATCH;
  t->extents[SN_SYMBOL_BATCH] = 40;
  sn_value x = op_param(t, (sn_shape){2, {b, 64}}, -1, 1);
  sn_value w = op_param(t, (sn_shape){2, {48, 64}}, -1, 1);
  sn_value bias = op_param(t, (sn_shape){1, {48}}, -1, 1);
  op_out(t, sn_matmul(g, x, w, .transpose_b = true, .bias = bias, .activation = SN_TANH));
  sn_value batched = op_param(t, (sn_shape){3, {b, 33, 35}}, -1, 1);
  sn_value shared = op_param(t, (sn_shape){2, {35, 34}}, -1, 1);
  op_out(t, sn_matmul(g, batched, shared));
  op_out(t, sn_matmul(g, batched, batched, .transpose_b = true));
}

static void recurrent(op_test *t, int64_t gates,
                      sn_value (*make)(sn_graph *g, sn_value x, sn_value steps,
                                       const sn_recurrent_weights *w, int d)) {
  enum { F = 40, H = 36 };
  static const int64_t lengths[] = {3, 0, 9, 1, 4, 7, 2, 9, 1, 5, 6, 3};
  sn_recurrent_weights w[2];
  for (int d = 0; d < 2; d++)
    w[d] = (sn_recurrent_weights){op_param(t, (sn_shape){2, {gates * H, F}}, -0.2, 0.2),
                                  op_param(t, (sn_shape){2, {gates * H, H}}, -0.2, 0.2),
                                  op_param(t, (sn_shape){1, {gates * H}}, -0.2, 0.2),
                                  op_param(t, (sn_shape){1, {gates * H}}, -0.2, 0.2)};
  sn_sequence s = op_sequence(t, F, lengths, sizeof lengths / sizeof *lengths, -1, 1);
  sn_value map, steps;
  sn_time_order(t->graph, s.offsets, &map, &steps, NULL);
  op_out(t, make(t->graph, sn_reorder(t->graph, s.values, map, false), steps, w, 2));
}

static void lstm(op_test *t) {
  recurrent(t, 4, sn_lstm_op);
}
static void gru(op_test *t) {
  recurrent(t, 3, sn_gru_op);
}

static void conv2d(op_test *t) {
  sn_value x = op_param(t, (sn_shape){4, {SN_DIM_BATCH, 9, 8, 6}}, -1, 1);
  sn_value w = op_param(t, (sn_shape){4, {3, 3, 6, 16}}, -1, 1);
  op_out(t, sn_conv2d_op(t->graph, x, w, .padding = {1, 1}, .activation = SN_RELU));
  op_out(t, sn_conv2d_op(t->graph, x, w, .stride = {2, 2}));
  sn_value deep = op_param(t, (sn_shape){4, {SN_DIM_BATCH, 3, 3, 40}}, -1, 1);
  sn_value dot = op_param(t, (sn_shape){4, {1, 1, 40, 33}}, -1, 1);
  op_out(t, sn_conv2d_op(t->graph, deep, dot));
}

static const struct {
  const char *name;
  void (*build)(op_test *t);
  int products; /* nodes of the training graph that make products */
} cases[] = {
    {"matmul", matmul_forms, 9}, {"lstm", lstm, 5}, {"gru", gru, 5}, {"conv2d", conv2d, 9}};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct outcome {
  op_test t;
  sn_graph *train;
  op_values v;
} outcome;

static void run_case(int i, sn_dtype dtype, sn_precision precision, sn__team *team, outcome *out) {
  op_test_init(&out->t, dtype, false);
  cases[i].build(&out->t);
  sn__graph_add_loss(out->t.graph, NULL, out->t.loss_sum, sn__value_at(out->t.graph, 0),
                     SN_SYMBOL_BATCH, 1);
  sn_graph_set_precision(out->t.graph, precision);
  ck_sn_ok(sn_graph_status(out->t.graph));
  ck_sn_ok(sn__differentiate(out->t.graph, &out->train));
  ck_sn_ok(op_run(&out->t, out->train, team, 0, &out->v));
}

static void end_case(outcome *o) {
  op_values_free(&o->v);
  sn_graph_free(o->train);
  op_test_free(&o->t);
}

static int marked(const sn_graph *g) {
  int count = 0;
  for (size_t i = 1; i < g->n_nodes; i++) {
    const int64_t *p = sn__node_precision(&g->nodes[i]);
    count += p != NULL && *p == SN_PRECISION_BF16;
  }
  return count;
}

/* Operands are off by 2^-8 at most, each its own way, so that sums of many such terms are off by
 * less than 1 % of their size where nothing cancels, which random ones do a little. */
START_TEST(near_f32_but_rounded) {
  if (!sn__gemm_set_bf16((sn__gemm_bf16)(_i / CASES))) return;
  const int i = _i % CASES;
  outcome f, h;
  run_case(i, SN_F32, SN_PRECISION_F32, NULL, &f);
  run_case(i, SN_F32, SN_PRECISION_BF16, NULL, &h);
  ck_assert_int_eq(sn_graph_precision(f.t.graph), SN_PRECISION_F32);
  ck_assert_int_eq(sn_graph_precision(h.t.graph), SN_PRECISION_BF16);
  ck_assert_int_eq(marked(f.train), 0);
  ck_assert_int_eq(marked(h.train), cases[i].products);
  for (int p = 0; p < f.t.n_params; p++) {
    const sn_value v = sn__gradient_of(f.train, sn__value_at(f.train, f.t.params[p].value));
    const sn_shape shape = sn__shape_resolve(&f.train->values[v.index].shape, f.t.extents);
    double off = 0, size = 0;
    for (int64_t e = 0; e < sn__shape_size(&shape); e++) {
      const double x = op_number(f.train, &f.v, v, e), y = op_number(h.train, &h.v, v, e);
      off += (x - y) * (x - y);
      size += x * x;
    }
    const double relative = sqrt(off / size);
    ck_assert_msg(relative > 1e-5 && relative < 2e-2, "%s, %s: parameter %d is off by %.3g",
                  cases[i].name, sn__gemm_bf16_name(sn__gemm_get_bf16()), p, relative);
  }
  end_case(&f);
  end_case(&h);
}
END_TEST

/* Threads change nothing; f64 is not rounded. */
START_TEST(threads_change_nothing) {
  outcome a, b;
  sn__team *team;
  ck_sn_ok(sn__team_create(3, &team));
  run_case(_i, SN_F32, SN_PRECISION_BF16, NULL, &a);
  run_case(_i, SN_F32, SN_PRECISION_BF16, team, &b);
  for (size_t v = 1; v < a.train->n_values; v++) {
    const sn__node *n = sn__producer(a.train, (uint32_t)v);
    /* the second outputs of these are scratch */
    if (a.v.data[v] == NULL || strstr(n->op->name, "_grad") != NULL) continue;
    ck_assert_msg(memcmp(a.v.data[v], b.v.data[v], a.v.bytes[v]) == 0, "%s: %s depends on threads",
                  cases[_i].name, a.train->values[v].name);
  }
  end_case(&a);
  end_case(&b);
  run_case(_i, SN_F64, SN_PRECISION_BF16, NULL, &a);
  ck_assert_int_eq(marked(a.train), 0);
  end_case(&a);
  sn__team_free(team);
}
END_TEST

/* What is too shallow to be rounded counts as f32. */
static void shallow_conv2d(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(SN_DIM_BATCH, 6, 6, 3), 0, 1);
  sn_value k = op_param(t, SN_SHAPE(3, 3, 3, 8), 0, 1);
  op_out(t, sn_conv2d_op(t->graph, x, k, .stride = {2, 2}, .padding = {1, 1}));
}

static void shallow_lstm(op_test *t) {
  enum { F = 8, H = 36 };
  static const int64_t lengths[] = {3, 1, 9, 2};
  sn_recurrent_weights w = {op_param(t, (sn_shape){2, {4 * H, F}}, -0.2, 0.2),
                            op_param(t, (sn_shape){2, {4 * H, H}}, -0.2, 0.2),
                            op_param(t, (sn_shape){1, {4 * H}}, -0.2, 0.2),
                            op_param(t, (sn_shape){1, {4 * H}}, -0.2, 0.2)};
  sn_sequence s = op_sequence(t, F, lengths, sizeof lengths / sizeof *lengths, -1, 1);
  sn_value map, steps;
  sn_time_order(t->graph, s.offsets, &map, &steps, NULL);
  op_out(t, sn_lstm_op(t->graph, sn_reorder(t->graph, s.values, map, false), steps, &w, 1));
}

START_TEST(costs_know_what_is_rounded) {
  static const struct {
    void (*build)(op_test *t);
    const char *op;
    double bf16_flops;
  } rows[] = {
      {shallow_conv2d, "conv2d", 0},                                            /* 27 deep */
      {shallow_conv2d, "conv2d_input_grad", 2.0 * 5 * 3 * 3 * (3 * 3 * 3 * 8)}, /* 2 * 2 * 8 */
      {shallow_conv2d, "conv2d_weight_grad", 2.0 * 5 * 3 * 3 * (3 * 3 * 3 * 8)},
      {shallow_lstm, "lstm", 2.0 * 15 * (4 * 36 * 36)}, /* not the input's product, 8 deep */
      {shallow_lstm, "lstm_grad", 2.0 * 15 * (4 * 36 * 36)},
      {shallow_lstm, "recurrent_input_grad", 2.0 * 15 * (4 * 36 * 8)},
      {shallow_lstm, "recurrent_weight_grad", 0}, /* 15 elements */
  };
  op_test t;
  op_test_init(&t, SN_F32, false);
  rows[_i].build(&t);
  sn__graph_add_loss(t.graph, NULL, t.loss_sum, sn__value_at(t.graph, 0), SN_SYMBOL_BATCH, 1);
  sn_graph_set_precision(t.graph, SN_PRECISION_BF16);
  sn_graph *train;
  ck_sn_ok(sn__differentiate(t.graph, &train));
  int seen = 0;
  for (uint32_t i = 1; i < train->n_nodes; i++) {
    if (train->nodes[i].op == NULL || strcmp(train->nodes[i].op->name, rows[_i].op) != 0) continue;
    sn__cost cost;
    ck_sn_ok(sn__node_work(train, t.extents, i, &cost));
    ck_assert_msg(cost.bf16_flops == rows[_i].bf16_flops && cost.flops >= cost.bf16_flops,
                  "%s: %g bf16 flops of %g, not %g", rows[_i].op, cost.bf16_flops, cost.flops,
                  rows[_i].bf16_flops);
    seen++;
  }
  ck_assert_int_eq(seen, 1);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

START_TEST(mistakes_are_told) {
  sn_graph *g;
  ck_sn_ok(sn_graph_create(&g));
  sn_graph_set_precision(g, (sn_precision)7);
  ck_sn_fails(sn_graph_status(g), SN_CODE_INVALID, "there is no precision 7");
  sn_graph_free(g);
}
END_TEST

static Suite *precision_suite(void) {
  Suite *suite = suite_create("precision");
  TCase *tc = tcase_create("ops");
  tcase_set_timeout(tc, 120);
  tcase_add_loop_test(tc, near_f32_but_rounded, 0, UNITS * CASES);
  tcase_add_loop_test(tc, threads_change_nothing, 0, CASES);
  tcase_add_loop_test(tc, costs_know_what_is_rounded, 0, 7);
  tcase_add_test(tc, mistakes_are_told);
  suite_add_tcase(suite, tc);
  return suite;
}

SN_TEST_MAIN(precision_suite)
