/* SPDX-License-Identifier: Apache-2.0 */
/* where: condition ? a : b, the three broadcast together. */
#include "ops/where/where.h"

static sn_status infer(sn__infer *c) {
  sn_dtype t = c->in[0].dtype;
  if (t != SN_BOOL && t != SN_U8)
    return sn__infer_fail(c, "the condition is %s; it must be bool or u8", sn_dtype_name(t));
  SN_TRY(sn__need_same_dtype(c, 1, "a", 2, "b"));
  sn_shape both;
  SN_TRY(sn__infer_broadcast(c, &c->in[1].shape, &c->in[2].shape, &both));
  c->out[0].dtype = c->in[1].dtype;
  return sn__infer_broadcast(c, &c->in[0].shape, &both, &c->out[0].shape);
}

static sn_status grad(const sn__grad *c) {
  sn_graph *g = c->graph;
  sn_dtype t = sn_value_dtype(c->dout[0]);
  if (!c->need[1] && !c->need[2]) return SN_OK;
  sn_value zero = sn_constant_scalar(g, t, 0);
  if (c->need[1])
    c->din[1] =
        sn__sum_to_shape(g, sn_where(g, c->in[0], c->dout[0], zero), sn_value_shape(c->in[1]));
  if (c->need[2])
    c->din[2] =
        sn__sum_to_shape(g, sn_where(g, c->in[0], zero, c->dout[0]), sn_value_shape(c->in[2]));
  return SN_OK;
}

static void cost(const sn__exec *e, sn__cost *out) {
  sn__cost_elements(e, 1, out);
}

const sn_op_def sn__op_where = {
    .name = "where",
    .version = 1,
    .min_inputs = 3,
    .max_inputs = 3,
    .n_outputs = 1,
    .infer = infer,
    .grad = grad,
    .saved_inputs = 1,
    .inplace = {2},
    .cost = cost,
    .cpu = sn__where_cpu,
    .doc = "condition ? a : b, broadcast together",
};

sn_value sn_where(sn_graph *g, sn_value condition, sn_value a, sn_value b) {
  return sn__node_add(g, &sn__op_where, NULL, (sn_value[]){condition, a, b}, 3, NULL, NULL);
}
