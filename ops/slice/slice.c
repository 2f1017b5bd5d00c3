/* SPDX-License-Identifier: Apache-2.0 */
/* A range of one axis; the gradient puts the range back among zeros. */
#include "ops/slice/slice.h"

static const sn__attr_def slice_attrs[] = {
    SN__INT_ATTR(sn__slice_attrs, axis), SN__INT_ATTR(sn__slice_attrs, begin),
    SN__INT_ATTR(sn__slice_attrs, end), SN__INT_ATTR(sn__slice_attrs, size)};

static sn_status slice_infer(sn__infer *c) {
  const sn__slice_attrs *a = c->attrs;
  const sn_shape *x = &c->in[0].shape;
  char text[160];
  sn__input_words(c, 0, text, sizeof text);
  if (a->axis < 0 || a->axis >= x->rank)
    return sn__infer_fail(c, "there is no axis %lld in %s", (long long)a->axis, text);
  const int64_t size = x->dims[a->axis];
  if (sn_dim_is_symbolic(size))
    return sn__infer_fail(c, "axis %lld of %s has no fixed size; only a fixed axis can be cut",
                          (long long)a->axis, text);
  if (a->begin < 0 || a->end < a->begin || a->end > size)
    return sn__infer_fail(c, "%lld:%lld is not a range within axis %lld of %s", (long long)a->begin,
                          (long long)a->end, (long long)a->axis, text);
  c->out[0] = c->in[0];
  c->out[0].shape.dims[a->axis] = a->end - a->begin;
  return SN_OK;
}

static sn_status slice_grad_infer(sn__infer *c) {
  const sn__slice_attrs *a = c->attrs;
  c->out[0] = c->in[0];
  c->out[0].shape.dims[a->axis] = a->size;
  return SN_OK;
}

static sn_status slice_grad(const sn__grad *c) {
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  sn__slice_attrs a = *(const sn__slice_attrs *)c->attrs;
  a.size = sn_value_shape(c->in[0]).dims[a.axis];
  c->din[0] = sn__node_add(c->graph, &sn__op_slice_grad, &a, c->dout, 1, NULL, NULL);
  return SN_OK;
}

const sn_op_def sn__op_slice = {.name = "slice",
                                .version = 1,
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .n_outputs = 1,
                                SN__ATTRS(sn__slice_attrs, slice_attrs),
                                .infer = slice_infer,
                                .grad = slice_grad,
                                .cpu = sn__slice_cpu,
                                .doc = "a range of one axis"};

const sn_op_def sn__op_slice_grad = {.name = "slice_grad",
                                     .version = 1,
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .n_outputs = 1,
                                     .flags = SN_OP_GRAD,
                                     SN__ATTRS(sn__slice_attrs, slice_attrs),
                                     .infer = slice_grad_infer,
                                     .cpu = sn__slice_grad_cpu,
                                     .doc = "the gradient of a range, zeros around it"};

sn_value sn_slice(sn_graph *g, sn_value x, int axis, int64_t begin, int64_t end) {
  sn__slice_attrs a = {.axis = axis, .begin = begin, .end = end};
  if (axis < 0) a.axis += sn_value_shape(x).rank;
  return sn__node_add(g, &sn__op_slice, &a, &x, 1, NULL, NULL);
}
