/* SPDX-License-Identifier: Apache-2.0 */
/* f32 kernels and their gradients against PyTorch's numbers; special values; shape errors; labels.
 */
#include <math.h>
#include "core/autodiff.h"
#include "ops/common.h"
#include "ops/batch_norm/batch_norm.h"
#include "tests/check_sn.h"
#include "tests/ops/op_test.h"
#include "tests/ops/golden.inc"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void near(const char *what, const op_test *t, const sn_graph *g, const op_values *v,
                 sn_value value, const double *want, size_t n, double tolerance) {
  (void)t;
  ck_assert_msg(sn_value_ok(value), "%s: no value", what);
  for (size_t i = 0; i < n; i++) {
    double got = op_number(g, v, value, (int64_t)i);
    /* Relative, but for results near 0 of arguments that are not: one part in 1e7 of 1. */
    ck_assert_msg(fabs(got - want[i]) <= tolerance * fmax(fabs(want[i]), 0.1),
                  "%s[%zu] is %.9g, not %.9g", what, i, got, want[i]);
  }
}

typedef sn_value (*unary_builder)(sn_graph *g, sn_value x);
static sn_value leaky(sn_graph *g, sn_value x) {
  return sn_leaky_relu(g, x, 0.2);
}
static sn_value gelu(sn_graph *g, sn_value x) {
  return sn_gelu(g, x, false);
}
static sn_value gelu_tanh(sn_graph *g, sn_value x) {
  return sn_gelu(g, x, true);
}

static const struct {
  const char *name;
  unary_builder fn;
  const double *y, *d;
} unaries[] = {
    {"exp", sn_exp, y_exp, d_exp},
    {"tanh", sn_tanh, y_tanh, d_tanh},
    {"sigmoid", sn_sigmoid, y_sigmoid, d_sigmoid},
    {"relu", sn_relu, y_relu, d_relu},
    {"leaky_relu", leaky, y_leaky_relu, d_leaky_relu},
    {"gelu", gelu, y_gelu, d_gelu},
    {"gelu_tanh", gelu_tanh, y_gelu_tanh, d_gelu_tanh},
    {"silu", sn_silu, y_silu, d_silu},
    {"softplus", sn_softplus, y_softplus, d_softplus},
    {"softsign", sn_softsign, y_softsign, d_softsign},
};

/* Runs sum(y * r) and its gradient with respect to x. */
static void differentiate(op_test *t, sn_value y, sn_value r, sn_graph **train, op_values *v) {
  sn_value sum =
      sn_value_ok(r) ? op_weighted_sum(t, y, r) : sn__sum_to_shape(t->graph, y, SN_SCALAR_SHAPE);
  op_differentiate(t, sum, train, v);
}

START_TEST(unary) {
  op_test t;
  op_test_init(&t, SN_F32, false);
  sn_value x = op_param_of(&t, SN_SHAPE(COUNT(unary_x)), unary_x, COUNT(unary_x));
  sn_value y = unaries[_i].fn(t.graph, x);
  sn_graph *train;
  op_values v;
  differentiate(&t, y, sn__value_at(t.graph, 0), &train, &v);
  near(unaries[_i].name, &t, train, &v, y, unaries[_i].y, COUNT(unary_x), 1e-6);
  /* q (1 - q) loses a digit where q is near 1. */
  near("its slope", &t, train, &v, op_gradient(train, x), unaries[_i].d, COUNT(unary_x), 2e-6);
  op_values_free(&v);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

START_TEST(logarithm) {
  op_test t;
  op_test_init(&t, SN_F32, false);
  sn_value x = op_data(&t, SN_F32, SN_SHAPE(COUNT(log_x)), log_x, COUNT(log_x));
  sn_value y = sn_log(t.graph, x);
  op_values v;
  ck_sn_ok(op_run(&t, t.graph, NULL, 0, &v));
  near("log", &t, t.graph, &v, y, y_log, COUNT(log_x), 2e-7);
  op_values_free(&v);
  op_test_free(&t);
}
END_TEST

START_TEST(normal_forms) {
  op_test t;
  op_test_init(&t, SN_F32, false);
  sn_value x = op_param_of(&t, SN_SHAPE(4, 21), rows_x, COUNT(rows_x));
  sn_value r = op_data(&t, SN_F32, SN_SHAPE(4, 21), rows_r, COUNT(rows_r));
  sn_value y = _i == 0 ? sn_softmax(t.graph, x) : sn_log_softmax(t.graph, x);
  sn_graph *train;
  op_values v;
  differentiate(&t, y, r, &train, &v);
  near("output", &t, train, &v, y, _i == 0 ? y_softmax : y_log_softmax, COUNT(rows_x), 1e-6);
  near("gradient", &t, train, &v, op_gradient(train, x), _i == 0 ? d_softmax : d_log_softmax,
       COUNT(rows_x), 2e-6);
  op_values_free(&v);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

typedef sn_loss (*loss_builder)(sn_graph *g, sn_value x, sn_value y, const sn_loss_options *o);
static const struct {
  const char *name;
  loss_builder fn;
  const double *y, *d;
} losses[] = {
    {"softmax_cross_entropy", sn_softmax_cross_entropy_opt, y_softmax_cross_entropy,
     d_softmax_cross_entropy},
    {"sigmoid_cross_entropy", sn_sigmoid_cross_entropy_opt, y_sigmoid_cross_entropy,
     d_sigmoid_cross_entropy},
    {"squared_loss", sn_squared_loss_opt, y_squared_loss, d_squared_loss},
    {"absolute_loss", sn_absolute_loss_opt, y_absolute_loss, d_absolute_loss},
    {"huber_loss", sn_huber_loss_opt, y_huber_loss, d_huber_loss},
};

START_TEST(loss) {
  op_test t;
  op_test_init(&t, SN_F32, false);
  t.extents[SN_SYMBOL_BATCH] = 4;
  sn_value x = op_param_of(&t, SN_SHAPE(SN_DIM_BATCH, 21), rows_x, COUNT(rows_x));
  sn_value y = _i == 0 ? op_data(&t, SN_I32, SN_SHAPE(SN_DIM_BATCH), rows_labels, 4)
                       : op_data(&t, SN_F32, SN_SHAPE(SN_DIM_BATCH, 21), rows_target, 84);
  sn_loss l = losses[_i].fn(t.graph, x, y, NULL);
  ck_sn_ok(sn_graph_status(t.graph));
  sn_graph *train;
  op_values v;
  ck_sn_ok(sn__differentiate(t.graph, &train));
  ck_sn_ok(op_run(&t, train, NULL, 0, &v));
  near(losses[_i].name, &t, train, &v, l.sum, losses[_i].y, 1, 1e-6);
  near("its gradient", &t, train, &v, op_gradient(train, x), losses[_i].d, COUNT(rows_x), 1e-6);
  op_values_free(&v);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

static const double special_x[] = {NAN, INFINITY, -INFINITY, 89, -110, 0, -0.0, -1};
static const struct {
  const char *name;
  unary_builder fn;
  double y[COUNT(special_x)];
} specials[] = {
    {"exp", sn_exp, {NAN, INFINITY, 0, INFINITY, 0, 1, 1, 0.36787945}},
    {"log", sn_log, {NAN, INFINITY, NAN, 4.4886365, NAN, -INFINITY, -INFINITY, NAN}},
    {"tanh", sn_tanh, {NAN, 1, -1, 1, -1, 0, 0, -0.76159416}},
    {"sigmoid", sn_sigmoid, {NAN, 1, 0, 1, 0, 0.5, 0.5, 0.26894143}},
    {"relu", sn_relu, {NAN, INFINITY, 0, 89, 0, 0, 0, 0}},
    {"softplus", sn_softplus, {NAN, INFINITY, 0, 89, 0, 0.69314718, 0.69314718, 0.31326169}},
    {"softsign", sn_softsign, {NAN, NAN, NAN, 0.98888889, -0.99099099, 0, 0, -0.5}},
};

/* NaN stays NaN; infinities and what overflows or vanishes come out as they should. */
START_TEST(special) {
  op_test t;
  op_test_init(&t, SN_F32, false);
  sn_value y = specials[_i].fn(
      t.graph, op_data(&t, SN_F32, SN_SHAPE(COUNT(special_x)), special_x, COUNT(special_x)));
  op_values v;
  ck_sn_ok(op_run(&t, t.graph, NULL, 0, &v));
  for (int i = 0; i < (int)COUNT(special_x); i++) {
    double got = op_number(t.graph, &v, y, i), want = specials[_i].y[i];
    bool same = isnan(want) ? isnan(got) : isinf(want) ? got == want : fabs(got - want) < 1e-6;
    ck_assert_msg(same, "%s(%g) is %g, not %g", specials[_i].name, special_x[i], got, want);
  }
  op_values_free(&v);
  op_test_free(&t);
}
END_TEST

/* What a row gives does not depend on what other rows there are. */
START_TEST(row_alone) {
  double numbers[40 * 33];
  for (int i = 0; i < 40 * 33; i++)
    numbers[i] = sin(i * 0.7) * 4;
  float kept[2][33];
  for (int alone = 0; alone < 2; alone++) {
    op_test t;
    op_test_init(&t, SN_F32, false);
    int rows = alone ? 1 : 40;
    sn_value x =
        op_data(&t, SN_F32, SN_SHAPE(rows, 33), numbers + (alone ? 37 * 33 : 0), (size_t)rows * 33);
    sn_value y = sn_softmax(t.graph, sn_tanh(t.graph, x));
    op_values v;
    ck_sn_ok(op_run(&t, t.graph, NULL, 0, &v));
    memcpy(kept[alone], (const float *)v.data[y.index] + (alone ? 0 : 37 * 33), sizeof kept[0]);
    op_values_free(&v);
    op_test_free(&t);
  }
  ck_assert_mem_eq(kept[0], kept[1], sizeof kept[0]);
}
END_TEST

/* A label out of range is named, unless its row weighs nothing. */
START_TEST(bad_label) {
  static const double labels[] = {0, 7, 1, -1, 2}, weights[] = {1, 0, 1, 1, 1};
  op_test t;
  op_test_init(&t, SN_F32, false);
  sn_value x = op_noise(&t, SN_SHAPE(SN_DIM_BATCH, 3), -1, 1);
  sn_value y = op_data(&t, SN_I64, SN_SHAPE(SN_DIM_BATCH), labels, 5);
  sn_value w = op_data(&t, SN_F32, SN_SHAPE(SN_DIM_BATCH), weights, 5);
  sn_softmax_cross_entropy(t.graph, x, y, .weights = w);
  op_values v;
  ck_sn_fails(op_run(&t, t.graph, NULL, 0, &v), SN_CODE_DATA, "row 3 has label -1");
  op_values_free(&v);
  op_test_free(&t);
}
END_TEST

/* Each builds a mistake; `words` must be in the message. */
static void bad_matmul(op_test *t) {
  sn_matmul(t->graph, op_noise(t, SN_SHAPE(5, 64), 0, 1), op_noise(t, SN_SHAPE(32, 3), 0, 1));
}
static void bad_matmul_batch(op_test *t) {
  sn_matmul(t->graph, op_noise(t, SN_SHAPE(5, 2, 4), 0, 1), op_noise(t, SN_SHAPE(6, 4, 3), 0, 1));
}
static void bad_bias(op_test *t) {
  sn_matmul(t->graph, op_noise(t, SN_SHAPE(5, 4), 0, 1), op_noise(t, SN_SHAPE(4, 3), 0, 1),
            .bias = op_noise(t, SN_SHAPE(4), 0, 1));
}
static void bad_add(op_test *t) {
  sn_add(t->graph, op_noise(t, SN_SHAPE(SN_DIM_BATCH, 4), 0, 1), op_noise(t, SN_SHAPE(3), 0, 1));
}
static void bad_dtype(op_test *t) {
  sn_mul(t->graph, op_noise(t, SN_SHAPE(4), 0, 1), op_data(t, SN_F64, SN_SHAPE(4), NULL, 0));
}
static void bad_unary(op_test *t) {
  sn_exp(t->graph, op_data(t, SN_I32, SN_SHAPE(4), NULL, 0));
}
static void bad_slope(op_test *t) {
  sn_leaky_relu(t->graph, op_noise(t, SN_SHAPE(4), 0, 1), -1);
}
static void bad_clamp(op_test *t) {
  sn_clamp(t->graph, op_noise(t, SN_SHAPE(4), 0, 1), 2, 1);
}
static void bad_add_n(op_test *t) {
  sn_add_n(t->graph, SN_VALUES(op_noise(t, SN_SHAPE(4), 0, 1), op_noise(t, SN_SHAPE(5), 0, 1)));
}
static void bad_sum_to(op_test *t) {
  sn_sum_to(t->graph, op_noise(t, SN_SHAPE(4, 1), 0, 1), op_noise(t, SN_SHAPE(4, 2), 0, 1));
}
static void bad_axis(op_test *t) {
  sn_reduce_sum(t->graph, op_noise(t, SN_SHAPE(4, 2), 0, 1), .axis = 2);
}
static void bad_softmax(op_test *t) {
  sn_softmax(t->graph, op_noise(t, SN_SCALAR_SHAPE, 0, 1));
}
static void bad_condition(op_test *t) {
  sn_value x = op_noise(t, SN_SHAPE(4), 0, 1);
  sn_where(t->graph, x, x, x);
}
static void bad_compare(op_test *t) {
  sn_value x = op_noise(t, SN_SHAPE(4), 0, 1);
  sn_compare(t->graph, x, x, (sn_comparison)9);
}
static void bad_cast(op_test *t) {
  sn_cast(t->graph, op_noise(t, SN_SHAPE(4), 0, 1), (sn_dtype)99);
}
static void bad_label_type(op_test *t) {
  sn_softmax_cross_entropy(t->graph, op_noise(t, SN_SHAPE(SN_DIM_BATCH, 4), 0, 1),
                           op_noise(t, SN_SHAPE(SN_DIM_BATCH), 0, 1));
}
static void bad_label_rows(op_test *t) {
  sn_softmax_cross_entropy(t->graph, op_noise(t, SN_SHAPE(SN_DIM_BATCH, 4), 0, 1),
                           op_data(t, SN_I64, SN_SHAPE(6), NULL, 0));
}
static void bad_target(op_test *t) {
  sn_squared_loss(t->graph, op_noise(t, SN_SHAPE(SN_DIM_BATCH, 4), 0, 1),
                  op_noise(t, SN_SHAPE(SN_DIM_BATCH, 3), 0, 1));
}
static void bad_weights(op_test *t) {
  sn_value x = op_noise(t, SN_SHAPE(SN_DIM_BATCH, 4), 0, 1);
  sn_huber_loss(t->graph, x, x, .weights = x);
}
/* Two features have five numbers; four would be read past their end. */
static void bad_moments(op_test *t) {
  const sn__batch_total_attrs a = {.moments = 1};
  const sn_value part = op_data(t, SN_F64, SN_SHAPE(4), NULL, 0);
  sn__node_add(t->graph, &sn__op_batch_total, &a, (sn_value[]){part, part}, 2, NULL, NULL);
}

static const op_mistake mistakes[] = {
    {bad_matmul, "a has 64 columns and b has 32 rows; they must be equal"},
    {bad_matmul_batch, "a has leading dimensions [5] and b has [6]"},
    {bad_bias, "the bias has shape [4]; it must be [3]"},
    {bad_add, "shapes [batch, 4] and [3] do not go together"},
    {bad_dtype, "a is f32 and b is f64; they must be the same"},
    {bad_unary, "the input is i32; it must be f32"},
    {bad_slope, "slope -1 must not be negative"},
    {bad_clamp, "low 2 must not be above high 1"},
    {bad_add_n, "term 0 has shape [4] and term 1 has [5]"},
    {bad_sum_to, "cannot be summed to [4, 2]"},
    {bad_axis, "axis 2 is not one of x's 2 dimensions"},
    {bad_softmax, "x is a scalar"},
    {bad_condition, "the condition is f32; it must be bool or u8"},
    {bad_compare, "no comparison number 9"},
    {bad_cast, "no element type number 99"},
    {bad_label_type, "the labels are f32; class numbers are i32 or i64"},
    {bad_label_rows, "the logits have shape [batch, 4] and the labels [6]"},
    {bad_target, "the prediction has shape [batch, 4] and the target has [batch, 3]"},
    {bad_moments, "inputs must be moments"},
    {bad_weights, "there must be one for each row: [batch]"},
};

START_TEST(shape_error) {
  op_check_mistake(&mistakes[_i]);
}
END_TEST

START_TEST(activation_names) {
  for (int i = 0; i < SN_ACTIVATION_COUNT; i++) {
    sn_activation back = SN_ACTIVATION_COUNT;
    ck_assert(sn_activation_from_name(sn_activation_name((sn_activation)i), &back));
    ck_assert_int_eq(back, i);
  }
  sn_activation none = SN_TANH;
  ck_assert(!sn_activation_from_name("rulu", &none));
  ck_assert_int_eq(none, SN_TANH);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("golden");
  TCase *t = tcase_create("values");
  tcase_add_loop_test(t, unary, 0, (int)COUNT(unaries));
  tcase_add_test(t, logarithm);
  tcase_add_loop_test(t, normal_forms, 0, 2);
  tcase_add_loop_test(t, loss, 0, (int)COUNT(losses));
  tcase_add_loop_test(t, special, 0, (int)COUNT(specials));
  tcase_add_test(t, row_alone);
  tcase_add_test(t, bad_label);
  tcase_add_loop_test(t, shape_error, 0, (int)COUNT(mistakes));
  tcase_add_test(t, activation_names);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
