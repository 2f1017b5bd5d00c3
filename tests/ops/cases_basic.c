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
  op_out(t, sn_softsign(g, x));
  op_out(t, sn_affine(g, x, 2.5, -1));
  op_out(t, sn_clamp(g, x, -1, 1.5));
}

/* ---- choosing, types, copies ---------------------------------------------------------------- */

static void choose(op_test *t) {
  sn_graph *g = t->graph;
  sn_value a = op_param(t, SN_SHAPE(B, 3), -1, 1), b = op_param(t, SN_SHAPE(3), -1, 1);
  sn_value zero = sn_constant_scalar(g, t->dtype, 0);
  for (int how = SN_EQ; how <= SN_GE; how++) {
    op_out(t, sn_where(g, sn_compare(g, a, zero, (sn_comparison)how), a, b));
    op_out(t, sn_where(g, sn_compare(g, b, zero, (sn_comparison)how), b, a));
  }
  static const double flags[] = {1, 0, 1, 0, 0};
  sn_value rows = op_data(t, SN_U8, SN_SHAPE(B, 1), flags, 5);
  op_out(t, sn_where(g, rows, a, op_param(t, SN_SCALAR_SHAPE, -1, 1)));
}

static void change_type(op_test *t) {
  sn_graph *g = t->graph;
  sn_value a = op_param(t, SN_SHAPE(B, 3), -1, 1);
  op_out(t, sn_cast(g, a, SN_F64));
  static const sn_dtype types[] = {SN_F32, SN_I32, SN_I64, SN_U8, SN_BOOL, SN_BF16};
  sn_value x = sn_affine(g, a, 100, 0);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
      op_out_plain(t, sn_cast(g, sn_cast(g, x, types[i]), types[k]));
}

static void copies(op_test *t) {
  op_out(t, sn__copy(t->graph, op_param(t, SN_SHAPE(B, 3), -1, 1)));
}

/* ---- reductions ----------------------------------------------------------------------------- */

static void reductions(op_test *t) {
  sn_graph *g = t->graph;
  sn_value x = op_param(t, SN_SHAPE(B, 3, 4), -1, 1);
  for (int axis = -1; axis < 3; axis++) {
    bool keep = axis % 2 != 0;
    op_out(t, sn_reduce_sum(g, x, .axis = axis, .keep_dim = keep));
    op_out(t, sn_reduce_mean(g, x, .axis = axis, .keep_dim = keep));
    op_out(t, sn_reduce_max(g, x, .axis = axis, .keep_dim = keep));
  }
  op_out(t, sn_reduce_sum(g, x, .all = true));
  op_out(t, sn_reduce_mean(g, x, .all = true, .keep_dim = true));
  op_out(t, sn_reduce_max(g, x, .all = true));
}

static void normal_forms(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 2, 19), -3, 3), one = op_param(t, SN_SHAPE(B, 1), -1, 1);
  op_out(t, sn_softmax(t->graph, x));
  op_out(t, sn_log_softmax(t->graph, x));
  op_out(t, sn_softmax(t->graph, one));
}

/* Long enough that sums are cut into parts and shared out. No gradient: that would take long. */
static void long_sums(op_test *t) {
  t->extents[SN_SYMBOL_BATCH] = t->empty ? 0 : 1000;
  sn_graph *g = t->graph;
  sn_value x = op_noise(t, SN_SHAPE(B, 70), -3, 3);
  x = sn_add(g, x, op_noise(t, SN_SHAPE(70), -1, 1));
  sn_value y = sn_exp(g, sn_affine(g, x, 1, 0.3));
  op_out_plain(t, sn_reduce_sum(g, y, .axis = 0));
  op_out_plain(t, sn_reduce_mean(g, y, .all = true));
  op_out_plain(t, sn_softmax(g, y));
  op_out_plain(t, sn_tanh(g, y));
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

static void over_features(op_test *t) {
  sn_graph *g = t->graph;
  sn_value x = op_param(t, SN_SHAPE(B, 3), -2, 2), v = op_param(t, SN_SHAPE(B), -2, 2);
  sn_value z = op_param(t, SN_SHAPE(B, 3), -2, 2);
  static const double targets[] = {0, 1, 0.25, 1, 1, 0, 0.5, 0.5, 1, 0, 0, 1, 1, 1, 0};
  sn_value y = op_data(t, t->dtype, SN_SHAPE(B, 3), targets, 15);
  sn_value w = op_data(t, SN_F32, SN_SHAPE(B), weights, 5);
  sn_sigmoid_cross_entropy(g, x, y, .weights = w);
  sn_sigmoid_cross_entropy(g, v, op_data(t, t->dtype, SN_SHAPE(B), targets, 5));
  sn_squared_loss(g, x, z, .weights = w);
  sn_squared_loss(g, x, y);
  sn_absolute_loss(g, x, z, .weights = w);
  sn_huber_loss(g, x, z, .delta = 0.7, .weights = w);
  sn_huber_loss(g, v, op_data(t, t->dtype, SN_SHAPE(B), targets, 5));
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
    {"neg exp log sqrt tanh sigmoid relu leaky_relu gelu gelu_tanh silu softplus softsign affine "
     "clamp",
     "all", unary_all, 0},
    {"softmax_cross_entropy", "weights, a row that is not read", cross_entropy, 0},
    {"sigmoid_cross_entropy squared_loss absolute_loss huber_loss", "weights, one feature or more",
     over_features, 0},
    {"where", "comparisons", choose, 0},
    {"cast", "every type to every type", change_type, 0},
    {"copy", "one", copies, 0},
    {"reduce_sum reduce_mean reduce_max", "every axis", reductions, 0},
    {"softmax log_softmax", "last dimension", normal_forms, 0},
    {"reduce_sum reduce_mean softmax", "long sums", long_sums, 0},
    {NULL, NULL, NULL, 0},
};
