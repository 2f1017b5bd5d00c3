/* SPDX-License-Identifier: Apache-2.0 */
/* Image layers: variables, shapes, modules, and mistakes in words. */
#include "core/graph_impl.h"
#include "layers/layers.h"
#include "tests/check_sn.h"

static sn_graph *g;

static void begin(void) {
  ck_sn_ok(sn_graph_create(&g));
}
static void end(void) {
  sn_graph_free(g);
}

static sn_value image(int64_t h, int64_t w, int64_t c) {
  sn_value x = sn_input(g, "x", SN_F32, h * w * c);
  return sn_reshape(g, x, SN_SHAPE(SN_DIM_KEEP(0), h, w, c));
}

static void has_shape(sn_value v, int64_t h, int64_t w, int64_t c) {
  ck_sn_ok(sn_graph_status(g));
  const sn_shape want = SN_SHAPE(SN_DIM_BATCH, h, w, c), got = sn_value_shape(v);
  char text[160];
  ck_assert_msg(sn_shape_equal(&want, &got), "%s", sn_shape_text(g, &got, text, sizeof text));
}

static bool has_module(const char *path) {
  for (size_t i = 1; i < g->n_modules; i++)
    if (strcmp(g->modules[i].path, path) == 0) return true;
  return false;
}

/* The variable's shape, or rank -1. */
static sn_shape variable(const char *path) {
  for (size_t i = 1; i < g->n_values; i++)
    if (g->values[i].kind == SN_VALUE_VARIABLE && strcmp(g->values[i].name, path) == 0)
      return g->values[i].shape;
  return (sn_shape){-1, {0}};
}

START_TEST(convolutions) {
  sn_value x = image(9, 7, 3);
  has_shape(sn_conv2d(g, x, .filters = 8, .kernel = {3}), 7, 5, 8);
  has_shape(sn_conv2d(g, x, .filters = 8, .kernel = {3}, .same = true, .stride = {2}), 5, 4, 8);
  has_shape(sn_conv2d(g, x, .filters = 4, .kernel = {5, 1}, .padding = {1, 0}, .name = "tall"), 7,
            7, 4);
  const sn_shape w = SN_SHAPE(5, 1, 3, 4), got = variable("tall/weight");
  ck_assert(sn_shape_equal(&w, &got));
  ck_assert_int_eq(variable("tall/bias").dims[0], 4);
  ck_assert(has_module("conv2d") && has_module("conv2d_1"));
}
END_TEST

START_TEST(without_bias) {
  sn_conv2d(g, image(3, 3, 2), .filters = 5, .kernel = {1}, .no_bias = true, .name = "c");
  ck_sn_ok(sn_graph_status(g));
  ck_assert_int_eq(variable("c/weight").rank, 4);
  ck_assert_int_eq(variable("c/bias").rank, -1);
}
END_TEST

/* Each path is a module, so that it can have a device. */
START_TEST(four_paths) {
  sn_value x = image(6, 6, 10);
  has_shape(sn_inception(g, x, .point = 1, .three = 2, .five = 3, .pool = 4), 6, 6, 10);
  has_shape(sn_inception(g, x, .point = 8, .three = 8, .five = 8, .pool = 8, .reduce_three = 4,
                         .reduce_five = 2, .name = "b"),
            6, 6, 32);
  ck_assert(has_module("inception/1x1") && has_module("inception/3x3"));
  ck_assert(has_module("inception/5x5") && has_module("inception/pool"));
  ck_assert(!has_module("inception/3x3/reduce") && has_module("b/3x3/reduce"));
  ck_assert_int_eq(variable("b/5x5/conv2d/weight").dims[2], 2);
}
END_TEST

START_TEST(to_one_vector) {
  sn_value x = image(6, 5, 4);
  sn_value mean = sn_global_average_pool(g, x), most = sn_global_max_pool(g, x);
  ck_assert_int_eq(sn_value_shape(sn_flatten(g, x)).dims[1], 120);
  ck_sn_ok(sn_graph_status(g));
  ck_assert(sn_value_shape(mean).rank == 2 && sn_value_shape(mean).dims[1] == 4);
  ck_assert(sn_value_shape(most).rank == 2 && sn_value_shape(most).dims[1] == 4);
}
END_TEST

static void no_filters(sn_value x) {
  sn_conv2d(g, x, .kernel = {3});
}
static void no_kernel(sn_value x) {
  sn_conv2d(g, x, .filters = 3);
}
static void even_same(sn_value x) {
  sn_conv2d(g, x, .filters = 3, .kernel = {2}, .same = true, .name = "odd");
}
static void both_paddings(sn_value x) {
  sn_conv2d(g, x, .filters = 3, .kernel = {3}, .same = true, .padding = {1, 1});
}
static void flat(sn_value x) {
  sn_conv2d(g, sn_flatten(g, x), .filters = 3, .kernel = {3});
}
static void no_pool_path(sn_value x) {
  sn_inception(g, x, .point = 1, .three = 1, .five = 1);
}
static void flat_mean(sn_value x) {
  sn_global_average_pool(g, sn_flatten(g, x));
}
static const struct {
  void (*build)(sn_value x);
  const char *words;
} mistakes[] = {
    {no_filters, "conv2d: filters is 0; it must be at least 1"},
    {no_kernel, "conv2d: the kernel is 0 x 0; both must be at least 1"},
    {even_same, "odd: same is for odd kernels"},
    {both_paddings, "instead of padding"},
    {flat, "it needs [batch, height, width, channels]"},
    {no_pool_path, "inception: path pool has 0 channels out"},
    {flat_mean, "global_average_pool: "},
};

START_TEST(mistake) {
  mistakes[_i].build(image(4, 4, 2));
  ck_sn_fails(sn_graph_status(g), SN_CODE_INVALID, mistakes[_i].words);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("image_layers");
  TCase *t = tcase_create("layers");
  tcase_add_checked_fixture(t, begin, end);
  tcase_add_test(t, convolutions);
  tcase_add_test(t, without_bias);
  tcase_add_test(t, four_paths);
  tcase_add_test(t, to_one_vector);
  tcase_add_loop_test(t, mistake, 0, (int)(sizeof mistakes / sizeof *mistakes));
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
