/* SPDX-License-Identifier: Apache-2.0 */
/* Sigmoid cross-entropy, squared, absolute and Huber loss. */
#include "ops/cross_entropy/cross_entropy.h"
#include "ops/pointwise_loss/pointwise_loss.h"

static sn_status check(const sn__infer *c) {
  SN_TRY(sn__need_float(c, 0, "the prediction"));
  SN_TRY(sn__need_same_dtype(c, 0, "the prediction", 1, "the target"));
  SN_TRY(sn__need_same_shape(c, 0, "the prediction", 1, "the target"));
  if (c->in[0].shape.rank < 1)
    return sn__infer_fail(c, "the prediction is a scalar; a loss is over rows");
  return sn__need_loss_weights(c, 2, c->in[0].shape.dims[0]);
}

static sn_status infer(sn__infer *c) {
  SN_TRY(check(c));
  c->out[0] = (sn__type){c->in[0].dtype, SN_SCALAR_SHAPE};
  return SN_OK;
}

static sn_status grad(const sn__grad *c, sn__pointwise kind) {
  if (!sn_value_ok(c->dout[0]) || (!c->need[0] && !c->need[1])) return SN_OK;
  if (kind == SN__POINTWISE_sigmoid_cross_entropy && c->need[1])
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "sigmoid_cross_entropy: the labels must not depend on variables");
  sn__pointwise_grad_attrs a = {kind, ((const sn__pointwise_attrs *)c->attrs)->delta};
  sn_value weights = c->n_in > 2 ? c->in[2] : sn__value_at(c->graph, 0);
  sn_value in[] = {c->in[0], c->in[1], weights, c->dout[0]};
  sn_value dx = sn__node_add(c->graph, &sn__op_pointwise_loss_grad, &a, in, 4, NULL, NULL);
  if (c->need[0]) c->din[0] = dx;
  if (c->need[1]) c->din[1] = sn_neg(c->graph, dx); /* these losses depend on x - z alone */
  return SN_OK;
}

static void cost(const sn__exec *e, sn__cost *out) {
  out->flops = 10.0 * (double)sn__count(&e->in[0]);
  out->bytes = sn__cost_bytes(e);
}

static const sn__attr_def attrs[] = {SN__FLOAT_ATTR(sn__pointwise_attrs, delta)};

#define SN_X(NAME, words)                                                                          \
  static sn_status NAME##_grad(const sn__grad *c) {                                                \
    return grad(c, SN__POINTWISE_##NAME);                                                          \
  }                                                                                                \
  const sn_op_def sn__op_##NAME = {                                                                \
      .name = #NAME,                                                                               \
      .version = 1,                                                                                \
      .min_inputs = 2,                                                                             \
      .max_inputs = 3,                                                                             \
      .n_outputs = 1,                                                                              \
      SN__ATTRS(sn__pointwise_attrs, attrs),                                                       \
      .infer = infer,                                                                              \
      .grad = NAME##_grad,                                                                         \
      .saved_inputs = 7,                                                                           \
      .cost = cost,                                                                                \
      .workspace = sn__pointwise_loss_workspace,                                                   \
      .cpu = sn__pointwise_loss_cpu,                                                               \
      .doc = "sum over rows of weight * the mean over features of " words,                         \
  };                                                                                               \
  sn_loss sn_##NAME##_opt(sn_graph *g, sn_value prediction, sn_value target,                       \
                          const sn_loss_options *options) {                                        \
    sn_loss_options o;                                                                             \
    if (!sn_graph_options(g, options, sizeof o, #NAME, &o))                                        \
      return (sn_loss){sn__value_at(g, 0), 0};                                                     \
    sn__pointwise_attrs a = {o.delta == 0 ? 1.0 : o.delta};                                        \
    sn_value in[] = {prediction, target, o.weights};                                               \
    if (!(a.delta > 0)) {                                                                          \
      sn_graph_fail(                                                                               \
          g, sn_status_make(SN_CODE_INVALID, #NAME ": delta %g must be positive", a.delta));       \
      return (sn_loss){sn__value_at(g, 0), 0};                                                     \
    }                                                                                              \
    sn_value sum =                                                                                 \
        sn__node_add(g, &sn__op_##NAME, &a, in, sn_value_ok(o.weights) ? 3 : 2, NULL, NULL);       \
    return sn__loss_finish(g, &o, #NAME, sum, target);                                             \
  }
SN__POINTWISE_LOSSES(SN_X)
#undef SN_X

#define SN_X(NAME, words) &sn__op_##NAME,
const sn_op_def *const sn__pointwise_defs[] = {SN__POINTWISE_LOSSES(SN_X)};
#undef SN_X

static sn_status grad_infer(sn__infer *c) {
  SN_TRY(check(c));
  SN_TRY(sn__need_same_dtype(c, 0, "the prediction", 3, "the gradient"));
  return sn__infer_like_first(c);
}

static const sn__attr_def grad_attrs[] = {SN__INT_ATTR(sn__pointwise_grad_attrs, kind),
                                          SN__FLOAT_ATTR(sn__pointwise_grad_attrs, delta)};

const sn_op_def sn__op_pointwise_loss_grad = {
    .name = "pointwise_loss_grad",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 4,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__pointwise_grad_attrs, grad_attrs),
    .infer = grad_infer,
    .inplace = {1},
    .cost = cost,
    .cpu = sn__pointwise_loss_grad_cpu,
    .doc = "gradient of a loss over features with respect to the prediction",
};
