/* SPDX-License-Identifier: Apache-2.0 */
/* add, sub, mul, div with broadcasting. */
#include "ops/binary/binary.h"

static sn_status infer(sn__infer *c) {
  SN_TRY(sn__need_float(c, 0, "a"));
  SN_TRY(sn__need_same_dtype(c, 0, "a", 1, "b"));
  c->out[0].dtype = c->in[0].dtype;
  return sn__infer_broadcast(c, &c->in[0].shape, &c->in[1].shape, &c->out[0].shape);
}

/* The gradient of a stretched input is summed back to its shape. */
static void give(const sn__grad *c, int i, sn_value gradient) {
  c->din[i] = sn__sum_to_shape(c->graph, gradient, sn_value_shape(c->in[i]));
}

static sn_status add_grad(const sn__grad *c) {
  if (c->need[0]) give(c, 0, c->dout[0]);
  if (c->need[1]) give(c, 1, c->dout[0]);
  return SN_OK;
}

static sn_status sub_grad(const sn__grad *c) {
  if (c->need[0]) give(c, 0, c->dout[0]);
  if (c->need[1]) give(c, 1, sn_neg(c->graph, c->dout[0]));
  return SN_OK;
}

static sn_status mul_grad(const sn__grad *c) {
  if (c->need[0]) give(c, 0, sn_mul(c->graph, c->dout[0], c->in[1]));
  if (c->need[1]) give(c, 1, sn_mul(c->graph, c->dout[0], c->in[0]));
  return SN_OK;
}

/* d(a / b) = da / b - (a / b) db / b */
static sn_status div_grad(const sn__grad *c) {
  sn_graph *g = c->graph;
  sn_value q = sn_div(g, c->dout[0], c->in[1]);
  if (c->need[0]) give(c, 0, q);
  if (c->need[1]) give(c, 1, sn_neg(g, sn_mul(g, q, c->out[0])));
  return SN_OK;
}

static void cost(const sn__exec *e, sn__cost *out) {
  sn__cost_elements(e, 1, out);
}

/* Only input 0 may be overwritten, and only where it has the output's size; sizes are compared by
 * the planner. */
#define ROW(NAME, in_mask, out_mask, words)                                                        \
  const sn_op_def sn__op_##NAME = {                                                                \
      .name = #NAME,                                                                               \
      .version = 1,                                                                                \
      .min_inputs = 2,                                                                             \
      .max_inputs = 2,                                                                             \
      .n_outputs = 1,                                                                              \
      .infer = infer,                                                                              \
      .grad = NAME##_grad,                                                                         \
      .saved_inputs = in_mask,                                                                     \
      .saved_outputs = out_mask,                                                                   \
      .inplace = {1},                                                                              \
      .cost = cost,                                                                                \
      .cpu = sn__##NAME##_cpu,                                                                     \
      .doc = words,                                                                                \
  };                                                                                               \
  sn_value sn_##NAME(sn_graph *g, sn_value a, sn_value b) {                                        \
    return sn__node_add(g, &sn__op_##NAME, NULL, (sn_value[]){a, b}, 2, NULL, NULL);               \
  }
ROW(add, 0, 0, "a + b, broadcast")
ROW(sub, 0, 0, "a - b, broadcast")
ROW(mul, 3, 0, "a * b, broadcast")
ROW(div, 2, 1, "a / b, broadcast")
