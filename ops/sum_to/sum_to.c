/* SPDX-License-Identifier: Apache-2.0 */
/* sum_to: the transpose of broadcasting. broadcast_to: broadcasting to a given shape. Both carry
 * the shape as an attribute, so that the value whose shape it is need not be kept alive. */
#include "ops/sum_to/sum_to.h"

/* ---- sum_to --------------------------------------------------------------------------------- */

static const sn__attr_def shape_attrs[] = {SN__INTS_ATTR(sn__shape_attrs, shape)};

static sn_status sum_to_infer(sn__infer *c) {
  SN_TRY(sn__need_float(c, 0, "x"));
  sn_shape to = sn__shape_of_ints(&((const sn__shape_attrs *)c->attrs)->shape), both;
  SN_TRY(sn__infer_broadcast(c, &c->in[0].shape, &to, &both));
  if (!sn_shape_equal(&both, &c->in[0].shape)) {
    char a[160], b[160];
    return sn__infer_fail(c, "x of shape %s cannot be summed to %s: that would stretch it",
                          sn__shape_words(c, &c->in[0].shape, a, sizeof a),
                          sn__shape_words(c, &to, b, sizeof b));
  }
  c->out[0] = (sn__type){c->in[0].dtype, to};
  return SN_OK;
}

static sn_status sum_to_grad(const sn__grad *c) {
  if (c->need[0]) c->din[0] = sn__broadcast_to(c->graph, c->dout[0], sn_value_shape(c->in[0]));
  return SN_OK;
}

static void sum_to_cost(const sn__exec *e, sn__cost *out) {
  out->flops = (double)sn__count(&e->in[0]);
  out->bytes = sn__cost_bytes(e);
}

const sn_op_def sn__op_sum_to = {
    .name = "sum_to",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 1,
    SN__ATTRS(sn__shape_attrs, shape_attrs),
    .infer = sum_to_infer,
    .grad = sum_to_grad,
    .cost = sum_to_cost,
    .workspace = sn__sum_to_workspace,
    .cpu = sn__sum_to_cpu,
    .doc = "sums x down to a shape that broadcasts to its own",
};

sn_value sn__sum_to_shape(sn_graph *g, sn_value x, sn_shape shape) {
  sn_shape own = sn_value_shape(x);
  if (!sn_value_ok(x) || sn_shape_equal(&own, &shape)) return x;
  sn__shape_attrs a = {sn__ints_of(&shape)};
  return sn__node_add(g, &sn__op_sum_to, &a, &x, 1, NULL, NULL);
}

sn_value sn_sum_to(sn_graph *g, sn_value x, sn_value like) {
  return sn_value_ok(like) ? sn__sum_to_shape(g, x, sn_value_shape(like)) : like;
}

/* ---- broadcast_to --------------------------------------------------------------------------- */

static sn_status broadcast_infer(sn__infer *c) {
  SN_TRY(sn__need_float(c, 0, "x"));
  sn_shape to = sn__shape_of_ints(&((const sn__shape_attrs *)c->attrs)->shape), both;
  SN_TRY(sn__infer_broadcast(c, &c->in[0].shape, &to, &both));
  if (!sn_shape_equal(&both, &to)) {
    char a[160], b[160];
    return sn__infer_fail(c, "x of shape %s does not stretch to %s",
                          sn__shape_words(c, &c->in[0].shape, a, sizeof a),
                          sn__shape_words(c, &to, b, sizeof b));
  }
  c->out[0] = (sn__type){c->in[0].dtype, to};
  return SN_OK;
}

static sn_status broadcast_grad(const sn__grad *c) {
  if (c->need[0]) c->din[0] = sn__sum_to_shape(c->graph, c->dout[0], sn_value_shape(c->in[0]));
  return SN_OK;
}

const sn_op_def sn__op_broadcast_to = {
    .name = "broadcast_to",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 1,
    SN__ATTRS(sn__shape_attrs, shape_attrs),
    .infer = broadcast_infer,
    .grad = broadcast_grad,
    .cpu = sn__broadcast_to_cpu,
    .doc = "x stretched to a shape by broadcasting",
};

sn_value sn__broadcast_to(sn_graph *g, sn_value x, sn_shape shape) {
  sn_shape own = sn_value_shape(x);
  if (!sn_value_ok(x) || sn_shape_equal(&own, &shape)) return x;
  sn__shape_attrs a = {sn__ints_of(&shape)};
  return sn__node_add(g, &sn__op_broadcast_to, &a, &x, 1, NULL, NULL);
}
