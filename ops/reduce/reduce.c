/* SPDX-License-Identifier: Apache-2.0 */
/* Sum, mean and maximum over one dimension or over all. */
#include "ops/reduce/reduce.h"

static sn_status infer(sn__infer *c) {
  const sn__reduce_attrs *t = c->attrs;
  const sn_shape *x = &c->in[0].shape;
  SN_TRY(sn__need_float(c, 0, "x"));
  sn_shape out = {0, {0}};
  int32_t axis = t->all ? 0 : sn__axis_of(t->axis, x->rank);
  if (axis < 0)
    return sn__infer_fail(c,
                          "axis %lld is not one of x's %d dimensions (negative counts from the "
                          "end)",
                          (long long)t->axis, x->rank);
  for (int32_t i = 0; i < x->rank; i++) {
    bool reduced = t->all || i == axis;
    if (!reduced || t->keep_dim) out.dims[out.rank++] = reduced ? 1 : x->dims[i];
  }
  c->out[0] = (sn__type){c->in[0].dtype, out};
  if (c->n_out > 1) c->out[1] = (sn__type){SN_I32, out};
  return SN_OK;
}

static void reduce_cost(const sn__exec *e, sn__cost *out) {
  out->flops = (double)sn__count(&e->in[0]);
  out->bytes = sn__cost_bytes(e);
}

static const sn__attr_def attrs[] = {SN__INT_ATTR(sn__reduce_attrs, axis),
                                     SN__INT_ATTR(sn__reduce_attrs, all),
                                     SN__INT_ATTR(sn__reduce_attrs, keep_dim)};

static sn_status grad(const sn__grad *c, sn__reduce_kind kind) {
  if (!c->need[0] || !sn_value_ok(c->dout[0])) return SN_OK;
  const sn__reduce_attrs *t = c->attrs;
  sn_shape shape = sn_value_shape(c->in[0]);
  sn__reduce_grad_attrs a = {
      .shape = sn__ints_of(&shape), .axis = t->axis, .all = t->all, .kind = kind};
  sn_value in[] = {c->dout[0], kind == SN__REDUCE_MAX ? c->out[1] : c->dout[0]};
  c->din[0] = sn__node_add(c->graph, &sn__op_reduce_grad, &a, in, kind == SN__REDUCE_MAX ? 2 : 1,
                           NULL, NULL);
  return SN_OK;
}

#define ROW(NAME, KIND, outputs, saved, space, words)                                              \
  static sn_status NAME##_grad(const sn__grad *c) {                                                \
    return grad(c, KIND);                                                                          \
  }                                                                                                \
  const sn_op_def sn__op_##NAME = {                                                                \
      .name = #NAME,                                                                               \
      .version = 1,                                                                                \
      .min_inputs = 1,                                                                             \
      .max_inputs = 1,                                                                             \
      .n_outputs = outputs,                                                                        \
      SN__ATTRS(sn__reduce_attrs, attrs),                                                          \
      .infer = infer,                                                                              \
      .grad = NAME##_grad,                                                                         \
      .saved_outputs = saved,                                                                      \
      .cost = reduce_cost,                                                                         \
      .workspace = space,                                                                          \
      .cpu = sn__##NAME##_cpu,                                                                     \
      .doc = words,                                                                                \
  };                                                                                               \
  sn_value sn_##NAME##_opt(sn_graph *g, sn_value x, const sn_reduce_options *options) {            \
    sn_reduce_options o;                                                                           \
    if (!sn_graph_options(g, options, sizeof o, #NAME, &o)) return (sn_value){g, 0};               \
    sn__reduce_attrs a = {o.all ? 0 : o.axis, o.all, o.keep_dim};                                  \
    return sn__node_add(g, &sn__op_##NAME, &a, &x, 1, NULL, NULL);                                 \
  }
ROW(reduce_sum, SN__REDUCE_SUM, 1, 0, sn__reduce_workspace, "sum over a dimension or over all")
ROW(reduce_mean, SN__REDUCE_MEAN, 1, 0, sn__reduce_workspace, "mean; of nothing: 0")
ROW(reduce_max, SN__REDUCE_MAX, 2, 2, NULL,
    "maximum and where it is (the first of equals); of nothing: 0 at -1")

/* ---- gradient ------------------------------------------------------------------------------- */

static sn_status grad_infer(sn__infer *c) {
  c->out[0] = (sn__type){c->in[0].dtype,
                         sn__shape_of_ints(&((const sn__reduce_grad_attrs *)c->attrs)->shape)};
  return SN_OK;
}

static void grad_cost(const sn__exec *e, sn__cost *out) {
  sn__cost_elements(e, 1, out);
}

static const sn__attr_def grad_attrs[] = {
    SN__INTS_ATTR(sn__reduce_grad_attrs, shape), SN__INT_ATTR(sn__reduce_grad_attrs, axis),
    SN__INT_ATTR(sn__reduce_grad_attrs, all), SN__INT_ATTR(sn__reduce_grad_attrs, kind)};

const sn_op_def sn__op_reduce_grad = {
    .name = "reduce_grad",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 2,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__reduce_grad_attrs, grad_attrs),
    .infer = grad_infer,
    .cost = grad_cost,
    .cpu = sn__reduce_grad_cpu,
    .doc = "the gradient of a reduction, given to what was reduced",
};
