/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases of products, elementwise ops, reductions and losses. */
#include "ops/common.h"
#include "tests/ops/op_test.h"

#define B SN_DIM_BATCH

/* ---- matmul --------------------------------------------------------------------------------- */

static void matmul_plain(op_test *t) {
  sn_value a = op_param(t, SN_SHAPE(B, 4), -1, 1), b = op_param(t, SN_SHAPE(4, 3), -1, 1);
  op_out(t, sn_matmul(t->graph, a, b));
}

static void matmul_dense(op_test *t) {
  sn_value a = op_param(t, SN_SHAPE(B, 4), -1, 1), b = op_param(t, SN_SHAPE(20, 4), -1, 1);
  sn_value c = op_param(t, SN_SHAPE(20), -1, 1);
  for (int i = 0; i < SN_ACTIVATION_COUNT; i++)
    op_out(t, sn_matmul(t->graph, a, b, .transpose_b = true, .bias = c,
                        .activation = (sn_activation)i));
}

static void matmul_transposed(op_test *t) {
  sn_value a = op_param(t, SN_SHAPE(4, B), -1, 1), b = op_param(t, SN_SHAPE(4, 3), -1, 1);
  sn_value c = op_param(t, SN_SHAPE(3, 4), -1, 1);
  op_out(t, sn_matmul(t->graph, a, b, .transpose_a = true));
  op_out(t, sn_matmul(t->graph, a, c, .transpose_a = true, .transpose_b = true));
}

static void matmul_batched(op_test *t) {
  sn_value a = op_param(t, SN_SHAPE(B, 2, 3), -1, 1), b = op_param(t, SN_SHAPE(B, 3, 4), -1, 1);
  sn_value at = op_param(t, SN_SHAPE(B, 3, 2), -1, 1), bt = op_param(t, SN_SHAPE(B, 4, 3), -1, 1);
  op_out(t, sn_matmul(t->graph, a, b));
  op_out(t, sn_matmul(t->graph, at, bt, .transpose_a = true, .transpose_b = true));
}

static void matmul_shared(op_test *t) {
  sn_value a = op_param(t, SN_SHAPE(B, 2, 3), -1, 1), w = op_param(t, SN_SHAPE(3, 4), -1, 1);
  sn_value wt = op_param(t, SN_SHAPE(4, 3), -1, 1), c = op_param(t, SN_SHAPE(4), -1, 1);
  op_out(t, sn_matmul(t->graph, a, w, .bias = c));
  op_out(t, sn_matmul(t->graph, a, wt, .transpose_b = true, .activation = SN_TANH));
  sn_value at = op_param(t, SN_SHAPE(B, 3, 2), -1, 1), b = op_param(t, SN_SHAPE(B, 4, 5), -1, 1);
  op_out(t, sn_matmul(t->graph, at, w, .transpose_a = true));
  op_out(t, sn_matmul(t->graph, w, b));
}

/* ---- two inputs ----------------------------------------------------------------------------- */

static void binary_same(op_test *t) {
  sn_value a = op_param(t, SN_SHAPE(B, 3), -1, 1), b = op_param(t, SN_SHAPE(B, 3), 0.5, 2);
  op_out(t, sn_add(t->graph, a, b));
  op_out(t, sn_sub(t->graph, a, b));
  op_out(t, sn_mul(t->graph, a, b));
  op_out(t, sn_div(t->graph, a, b));
  op_out(t, sn_mul(t->graph, a, a));
}

static void binary_stretched(op_test *t) {
  sn_value a = op_param(t, SN_SHAPE(B, 1, 3), -1, 1), b = op_param(t, SN_SHAPE(4, 1), 0.5, 2);
  sn_value r = op_param(t, SN_SHAPE(3), 0.5, 2), s = op_param(t, SN_SCALAR_SHAPE, 0.5, 2);
  op_out(t, sn_add(t->graph, a, b));
  op_out(t, sn_sub(t->graph, r, a));
  op_out(t, sn_mul(t->graph, b, a));
  op_out(t, sn_div(t->graph, a, b));
  op_out(t, sn_div(t->graph, s, r));
  op_out(t, sn_mul(t->graph, a, s));
}

static void add_many(op_test *t) {
  sn_value a = op_param(t, SN_SHAPE(B, 3), -1, 1), b = op_param(t, SN_SHAPE(B, 3), -1, 1);
  sn_value c = op_param(t, SN_SHAPE(B, 3), -1, 1);
  op_out(t, sn_add_n(t->graph, SN_VALUES(a, b, c, a)));
  op_out(t, sn_add_n(t->graph, SN_VALUES(b)));
}

static void stretch_and_sum(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(3, B, 2, 4), -1, 1), s = op_param(t, SN_SHAPE(B, 1, 4), -1, 1);
  op_out(t, sn_sum_to(t->graph, x, s));
  op_out(t, sn_sum_to(t->graph, x, op_param(t, SN_SHAPE(2, 1), -1, 1)));
  op_out(t, sn_sum_to(t->graph, x, op_param(t, SN_SCALAR_SHAPE, -1, 1)));
  op_out(t, sn__broadcast_to(t->graph, s, SN_SHAPE(3, B, 2, 4)));
}

/* ---- one input ------------------------------------------------------------------------------ */

static void unary_all(op_test *t) {
  sn_graph *g = t->graph;
  sn_value x = op_param(t, SN_SHAPE(B, 7), -3, 3), p = op_param(t, SN_SHAPE(B, 7), 0.3, 3);
  op_out(t, sn_neg(g, x));
  op_out(t, sn_exp(g, x));
  op_out(t, sn_log(g, p));
  op_out(t, sn_sqrt(g, p));
  op_out(t, sn_tanh(g, x));
  op_out(t, sn_sigmoid(g, x));
  op_out(t, sn_relu(g, x));
  op_out(t, sn_leaky_relu(g, x, 0.2));
  op_out(t, sn_gelu(g, x, false));
  op_out(t, sn_gelu(g, x, true));
  op_out(t, sn_silu(g, x));
  op_out(t, sn_softplus(g, x));
  op_out(t, sn_affine(g, x, 2.5, -1));
  op_out(t, sn_clamp(g, x, -1, 1.5));
}

/* ---- losses --------------------------------------------------------------------------------- */

/* The third row's label names no class: its weight is 0, so it is not read. */
static const double labels[] = {2, 0, 99, 3, 1}, weights[] = {1, 0.5, 0, 2, 1};

static void cross_entropy(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 4), -2, 2), z = op_param(t, SN_SHAPE(B, 4), -2, 2);
  sn_value y = op_data(t, SN_I64, SN_SHAPE(B), labels, 5);
  sn_value w = op_data(t, SN_F32, SN_SHAPE(B), weights, 5);
  static const double plain[] = {2, 0, 1, 3, 1};
  sn_value u = op_data(t, SN_I32, SN_SHAPE(B), plain, 5);
  sn_softmax_cross_entropy(t->graph, x, y, .weights = w);
  sn_softmax_cross_entropy(t->graph, z, u);
}

const op_case op_cases_basic[] = {
    {"matmul", "plain", matmul_plain, 0},
    {"matmul", "bias and every activation", matmul_dense, 0},
    {"matmul", "transposed", matmul_transposed, 0},
    {"matmul", "batched", matmul_batched, 0},
    {"matmul", "one side shared by the batch", matmul_shared, 0},
    {"add sub mul div", "equal shapes", binary_same, 0},
    {"add sub mul div", "stretched", binary_stretched, 0},
    {"add_n", "an input twice, and alone", add_many, 0},
    {"sum_to broadcast_to", "any dimensions", stretch_and_sum, 0},
    {"neg exp log sqrt tanh sigmoid relu leaky_relu gelu gelu_tanh silu softplus affine clamp",
     "all", unary_all, 0},
    {"softmax_cross_entropy", "weights, a row that is not read", cross_entropy, 0},
    {NULL, NULL, NULL, 0},
};
