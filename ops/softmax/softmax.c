/* SPDX-License-Identifier: Apache-2.0 */
/* softmax and log_softmax over the last dimension. */
#include "ops/softmax/softmax.h"

static sn_status infer(sn__infer *c) {
  SN_TRY(sn__need_float(c, 0, "x"));
  if (c->in[0].shape.rank < 1)
    return sn__infer_fail(c, "x is a scalar; it needs a last dimension to normalise over");
  return sn__infer_like_first(c);
}

static sn_status grad_infer(sn__infer *c) {
  SN_TRY(sn__need_same_shape(c, 0, "the output", 1, "the gradient"));
  SN_TRY(sn__need_same_dtype(c, 0, "the output", 1, "the gradient"));
  return infer(c);
}

static void cost(const sn__exec *e, sn__cost *out) {
  sn__cost_elements(e, 25, out);
}

static void grad_cost(const sn__exec *e, sn__cost *out) {
  sn__cost_elements(e, 5, out);
}

#define ROW(NAME, words)                                                                           \
  static sn_status NAME##_backward(const sn__grad *c) {                                            \
    if (c->need[0])                                                                                \
      c->din[0] = sn__node_add(c->graph, &sn__op_##NAME##_grad, NULL,                              \
                               (sn_value[]){c->out[0], c->dout[0]}, 2, NULL, NULL);                \
    return SN_OK;                                                                                  \
  }                                                                                                \
  const sn_op_def sn__op_##NAME = {                                                                \
      .name = #NAME,                                                                               \
      .version = 1,                                                                                \
      .min_inputs = 1,                                                                             \
      .max_inputs = 1,                                                                             \
      .n_outputs = 1,                                                                              \
      .infer = infer,                                                                              \
      .grad = NAME##_backward,                                                                     \
      .saved_outputs = 1,                                                                          \
      .inplace = {1},                                                                              \
      .cost = cost,                                                                                \
      .cpu = sn__##NAME##_cpu,                                                                     \
      .doc = words,                                                                                \
  };                                                                                               \
  const sn_op_def sn__op_##NAME##_grad = {                                                         \
      .name = #NAME "_grad",                                                                       \
      .version = 1,                                                                                \
      .min_inputs = 2,                                                                             \
      .max_inputs = 2,                                                                             \
      .n_outputs = 1,                                                                              \
      .flags = SN_OP_GRAD,                                                                         \
      .infer = grad_infer,                                                                         \
      .inplace = {2},                                                                              \
      .cost = grad_cost,                                                                           \
      .cpu = sn__##NAME##_grad_cpu,                                                                \
      .doc = "gradient of " #NAME " from its output",                                              \
  };                                                                                               \
  sn_value sn_##NAME(sn_graph *g, sn_value x) {                                                    \
    return sn__node_add(g, &sn__op_##NAME, NULL, &x, 1, NULL, NULL);                               \
  }
ROW(softmax, "e^x over its sum, along the last dimension")
ROW(log_softmax, "x minus the log of the sum of e^x, along the last dimension")
