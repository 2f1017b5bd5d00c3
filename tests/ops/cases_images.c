/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases of the ops on channels-last images. */
#include "tests/ops/op_test.h"

#define B SN_DIM_BATCH

static void conv_plain(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 4, 5, 2), -1, 1);
  sn_value w = op_param(t, SN_SHAPE(3, 2, 2, 3), -1, 1), b = op_param(t, SN_SHAPE(3), -1, 1);
  op_out(t, sn_conv2d_op(t->graph, x, w, .bias = b));
  op_out(t, sn_conv2d_op(t->graph, x, w, .padding = {1, 2}));
}

/* Steps that leave pixels out, that skip past the kernel, and that differ down and across. */
static void conv_strides(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 6, 5, 2), -1, 1);
  sn_value w = op_param(t, SN_SHAPE(3, 3, 2, 2), -1, 1),
           dot = op_param(t, SN_SHAPE(1, 1, 2, 3), -1, 1);
  op_out(t, sn_conv2d_op(t->graph, x, w, .stride = {2, 2}, .padding = {1, 1}));
  op_out(t, sn_conv2d_op(t->graph, x, w, .stride = {1, 3}, .padding = {0, 2}));
  op_out(t, sn_conv2d_op(t->graph, x, dot, .stride = {2, 2}));
  op_out(t, sn_conv2d_op(t->graph, x, dot, .stride = {9, 4}, .padding = {3, 0}));
}

static void conv_points(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 3, 2, 4), -1, 1);
  sn_value w = op_param(t, SN_SHAPE(1, 1, 4, 3), -1, 1), b = op_param(t, SN_SHAPE(3), -1, 1);
  op_out(t, sn_conv2d_op(t->graph, x, w, .bias = b));
  op_out(t, sn_conv2d_op(t->graph, x, w, .padding = {1, 0}));
}

static void conv_activations(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 3, 3, 2), -1, 1);
  sn_value w = op_param(t, SN_SHAPE(2, 2, 2, 3), -1, 1), b = op_param(t, SN_SHAPE(3), -1, 1);
  for (int a = SN_LINEAR; a < SN_ACTIVATION_COUNT; a++)
    op_out(t, sn_conv2d_op(t->graph, x, w, .bias = b, .padding = {1, 1},
                           .activation = (sn_activation)a));
}

static void max_pools(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 5, 6, 3), -1, 1);
  op_out(t, sn_max_pool2d(t->graph, x, .kernel = {2, 2}));
  op_out(t, sn_max_pool2d(t->graph, x, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}));
  op_out(t, sn_max_pool2d(t->graph, x, .kernel = {3, 2}, .stride = {2, 3}, .padding = {0, 1}));
  op_out(t, sn_max_pool2d(t->graph, x, .kernel = {1, 1}, .stride = {4, 2}));
}

static void avg_pools(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 5, 6, 3), -1, 1);
  op_out(t, sn_avg_pool2d(t->graph, x, .kernel = {2, 2}));
  for (int i = 0; i < 2; i++)
    op_out(t, sn_avg_pool2d(t->graph, x, .kernel = {3, 3}, .stride = {1, 2}, .padding = {1, 1},
                            .count_include_pad = i == 1));
}

/* More channels than are done at a time. */
static void pools_wide(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(2, 2, 2, 70), -1, 1);
  op_out(t, sn_max_pool2d(t->graph, x, .kernel = {2, 1}, .stride = {1, 1}));
  op_out(t, sn_avg_pool2d(t->graph, x, .kernel = {2, 1}, .stride = {1, 1}));
}

/* A block of four paths. */
static void inception(op_test *t) {
  sn_graph *g = t->graph;
  sn_value x = op_param(t, SN_SHAPE(B, 4, 4, 2), -1, 1);
  sn_value p1 = sn_conv2d_op(g, x, op_param(t, SN_SHAPE(1, 1, 2, 2), -1, 1), .activation = SN_TANH);
  sn_value p3 = sn_conv2d_op(g, p1, op_param(t, SN_SHAPE(3, 3, 2, 3), -1, 1), .padding = {1, 1});
  sn_value p5 = sn_conv2d_op(g, p1, op_param(t, SN_SHAPE(5, 5, 2, 1), -1, 1), .padding = {2, 2});
  sn_value pool = sn_max_pool2d(g, x, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1});
  op_out(t, sn_concat(g, SN_VALUES(p1, p3, p5, pool), .axis = 3));
}

const op_case op_cases_images[] = {
    {"conv2d", "bias, padding", conv_plain, 0},
    {"conv2d", "strides", conv_strides, 0},
    {"conv2d", "1 x 1", conv_points, 0},
    {"conv2d", "activations", conv_activations, 0},
    {"max_pool2d", "windows", max_pools, 0},
    {"avg_pool2d", "windows", avg_pools, 0},
    {"max_pool2d avg_pool2d", "many channels", pools_wide, 0},
    {"conv2d max_pool2d concat", "four paths", inception, 0},
    {NULL, NULL, NULL, 0},
};
