/* SPDX-License-Identifier: Apache-2.0 */
/* Zeroes at random and scales the rest up, in training only. Its gradient is itself, run on dy with
 * the forward node's key: the same draws, nothing saved. (Srivastava et al. 2014) */
#include "ops/dropout/dropout.h"

static const sn__attr_def dropout_attrs[] = {SN__FLOAT_ATTR(sn__dropout_attrs, rate)};

static sn_status dropout_infer(sn__infer *c) {
  const sn__dropout_attrs *a = c->attrs;
  SN_TRY(sn__want_real(c, 0, "x"));
  SN_TRY(sn__want_rank(c, 0, 1, SN_MAX_RANK, "x"));
  if (c->n_in > 1 && c->in[1].dtype != SN_DTYPE_NONE)
    SN_TRY(sn__want_index(c, 1, SN__OFFSETS, "offsets"));
  if (!(a->rate >= 0 && a->rate < 1))
    return sn__infer_fail(c, "rate %g must be at least 0 and below 1", a->rate);
  c->out[0] = c->in[0];
  return SN_OK;
}

static void dropout_cost(const sn__exec *e, sn__cost *out) {
  out->flops = 20.0 * (double)sn__shape_size(&e->in[0].shape);
  out->bytes = sn__tensor_bytes(e);
}

static sn_status dropout_grad(const sn__grad *c) {
  const sn_value none = {c->graph, 0};
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  const sn_value in[] = {c->dout[0], c->n_in > 1 ? c->in[1] : none};
  c->din[0] = sn__node_add(c->graph, &sn__op_dropout, c->attrs, in, 2, NULL, NULL);
  return SN_OK;
}

const sn_op_def sn__op_dropout = {.name = "dropout",
                                  .version = 1,
                                  .min_inputs = 1,
                                  .max_inputs = 2,
                                  .n_outputs = 1,
                                  .flags = SN_OP_RANDOM,
                                  SN__ATTRS(sn__dropout_attrs, dropout_attrs),
                                  .infer = dropout_infer,
                                  .grad = dropout_grad,
                                  .saved_inputs = 1u << 1,
                                  .inplace = {1},
                                  .cost = dropout_cost,
                                  .cpu = sn__dropout_cpu,
                                  .doc = "zeroes at random and scales the rest, in training only"};

sn_value sn_dropout_op(sn_graph *g, sn_value x, sn_value offsets, double rate) {
  sn__dropout_attrs a = {rate};
  return sn__node_add(g, &sn__op_dropout, &a, (sn_value[]){x, offsets}, 2, NULL, NULL);
}
