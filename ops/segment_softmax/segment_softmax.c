/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax over the elements of every ragged row, feature by feature. */
#include "ops/segment_softmax/segment_softmax.h"

static sn_status segment_softmax_infer(sn__infer *c) {
  SN_TRY(sn__want_real(c, 0, "x"));
  SN_TRY(sn__want_rank(c, 0, 1, SN_MAX_RANK, "x"));
  SN_TRY(sn__want_index(c, 1, SN__OFFSETS, "offsets"));
  c->out[0] = c->in[0];
  return SN_OK;
}

/* dy, offsets, y -> dx */
static sn_status segment_softmax_grad_infer(sn__infer *c) {
  c->out[0] = c->in[0];
  return SN_OK;
}

static void segment_softmax_cost(const sn__exec *e, sn__cost *out) {
  out->flops = 20.0 * (double)sn__shape_size(&e->in[0].shape);
  out->bytes = sn__tensor_bytes(e);
}

static sn_status segment_softmax_grad(const sn__grad *c) {
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  const sn_value in[] = {c->dout[0], c->in[1], c->out[0]};
  c->din[0] = sn__node_add(c->graph, &sn__op_segment_softmax_grad, NULL, in, 3, NULL, NULL);
  return SN_OK;
}

const sn_op_def sn__op_segment_softmax = {.name = "segment_softmax",
                                          .version = 1,
                                          .min_inputs = 2,
                                          .max_inputs = 2,
                                          .n_outputs = 1,
                                          .infer = segment_softmax_infer,
                                          .grad = segment_softmax_grad,
                                          .saved_inputs = 1u << 1,
                                          .saved_outputs = 1u << 0,
                                          .inplace = {1},
                                          .cost = segment_softmax_cost,
                                          .cpu = sn__segment_softmax_cpu,
                                          .doc = "softmax over the elements of each ragged row"};

const sn_op_def sn__op_segment_softmax_grad = {.name = "segment_softmax_grad",
                                               .version = 1,
                                               .min_inputs = 3,
                                               .max_inputs = 3,
                                               .n_outputs = 1,
                                               .flags = SN_OP_GRAD,
                                               .infer = segment_softmax_grad_infer,
                                               .inplace = {1},
                                               .cost = segment_softmax_cost,
                                               .cpu = sn__segment_softmax_grad_cpu,
                                               .doc = "gradient of segment_softmax"};

sn_value sn_segment_softmax(sn_graph *g, sn_value x, sn_value offsets) {
  return sn__node_add(g, &sn__op_segment_softmax, NULL, (sn_value[]){x, offsets}, 2, NULL, NULL);
}
