/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of every row over the last dimension. Outputs: y, and each row's mean and
 * 1 / sqrt(variance + epsilon) [.., 2] for the backward pass. */
#include "ops/layer_norm/layer_norm.h"

static const sn__attr_def norm_attrs[] = {SN__FLOAT_ATTR(sn__layer_norm_attrs, epsilon)};

static sn_status layer_norm_infer(sn__infer *c) {
  const sn__layer_norm_attrs *a = c->attrs;
  SN_TRY(sn__want_real(c, 0, "x"));
  SN_TRY(sn__want_rank(c, 0, 1, SN_MAX_RANK, "x"));
  const int32_t last = c->in[0].shape.rank - 1;
  const int64_t features = c->in[0].shape.dims[last];
  if (sn_dim_is_symbolic(features))
    return sn__infer_fail(c, "the last dimension of x must have a fixed size");
  for (int i = 1; i < c->n_in; i++)
    if (c->in[i].dtype != SN_DTYPE_NONE)
      SN_TRY(sn__want_vector(c, i, features, i == 1 ? "scale" : "shift"));
  if (!(a->epsilon >= 0)) return sn__infer_fail(c, "epsilon %g must not be negative", a->epsilon);
  c->out[0] = c->out[1] = c->in[0];
  c->out[1].shape.dims[last] = 2;
  return SN_OK;
}

/* dy, x, stats, scale (optional) -> dx, dscale, dshift */
static sn_status layer_norm_grad_infer(sn__infer *c) {
  c->out[0] = c->in[1];
  c->out[1] = (sn__type){c->in[1].dtype, {1, {c->in[1].shape.dims[c->in[1].shape.rank - 1]}}};
  c->out[2] = c->out[1];
  return SN_OK;
}

static void layer_norm_cost(const sn__exec *e, sn__cost *out) {
  out->flops = 10.0 * (double)sn__shape_size(&e->in[0].shape);
  out->bytes = sn__tensor_bytes(e);
}

static sn_status layer_norm_grad(const sn__grad *c) {
  if (!sn_value_ok(c->dout[0])) return SN_OK;
  const sn_value none = {c->graph, 0};
  const sn_value in[] = {c->dout[0], c->in[0], c->out[1], c->n_in > 1 ? c->in[1] : none};
  sn_value out[SN_MAX_OUTPUTS];
  sn__node_add(c->graph, &sn__op_layer_norm_grad, c->attrs, in, 4, NULL, out);
  for (int i = 0; i < c->n_in; i++)
    if (c->need[i]) c->din[i] = out[i];
  return SN_OK;
}

const sn_op_def sn__op_layer_norm = {.name = "layer_norm",
                                     .version = 1,
                                     .min_inputs = 1,
                                     .max_inputs = 3,
                                     .n_outputs = 2,
                                     SN__ATTRS(sn__layer_norm_attrs, norm_attrs),
                                     .infer = layer_norm_infer,
                                     .grad = layer_norm_grad,
                                     .saved_inputs = 1u << 0 | 1u << 1,
                                     .saved_outputs = 1u << 1,
                                     .cost = layer_norm_cost,
                                     .cpu = sn__layer_norm_cpu,
                                     .doc = "normalises each row over its last dimension"};

const sn_op_def sn__op_layer_norm_grad = {.name = "layer_norm_grad",
                                          .version = 1,
                                          .min_inputs = 3,
                                          .max_inputs = 4,
                                          .n_outputs = 3,
                                          .flags = SN_OP_GRAD,
                                          SN__ATTRS(sn__layer_norm_attrs, norm_attrs),
                                          .infer = layer_norm_grad_infer,
                                          .cost = layer_norm_cost,
                                          .cpu = sn__layer_norm_grad_cpu,
                                          .doc = "gradients of layer_norm"};

sn_value sn_layer_norm_op(sn_graph *g, sn_value x, sn_value scale, sn_value shift, double epsilon) {
  sn__layer_norm_attrs a = {epsilon};
  return sn__node_add(g, &sn__op_layer_norm, &a, (sn_value[]){x, scale, shift}, 3, NULL, NULL);
}
