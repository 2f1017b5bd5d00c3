/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions in another order. */
#include "ops/transpose/transpose.h"

static const sn__attr_def transpose_attrs[] = {SN__INTS_ATTR(sn__transpose_attrs, axes)};

static sn_status transpose_infer(sn__infer *c) {
  const sn__transpose_attrs *a = c->attrs;
  const sn_shape *x = &c->in[0].shape;
  char text[160];
  sn__input_words(c, 0, text, sizeof text);
  if (a->axes.count != x->rank)
    return sn__infer_fail(c, "%lld axes were given for the %d dimensions of %s",
                          (long long)a->axes.count, x->rank, text);
  unsigned seen = 0;
  c->out[0] = c->in[0];
  for (int32_t i = 0; i < x->rank; i++) {
    const int64_t axis = a->axes.v[i];
    if (axis < 0 || axis >= x->rank)
      return sn__infer_fail(c, "there is no axis %lld in %s", (long long)axis, text);
    if (seen & 1u << axis)
      return sn__infer_fail(c, "axis %lld is named twice; each of the %d must come once",
                            (long long)axis, x->rank);
    seen |= 1u << axis;
    c->out[0].shape.dims[i] = x->dims[axis];
  }
  return SN_OK;
}

static sn_status transpose_grad(const sn__grad *c) {
  const sn__transpose_attrs *a = c->attrs;
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  sn__transpose_attrs back = {.axes = {.count = a->axes.count}};
  for (int64_t i = 0; i < a->axes.count; i++)
    back.axes.v[a->axes.v[i]] = i;
  c->din[0] = sn__node_add(c->graph, &sn__op_transpose, &back, c->dout, 1, NULL, NULL);
  return SN_OK;
}

const sn_op_def sn__op_transpose = {.name = "transpose",
                                    .version = 1,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .n_outputs = 1,
                                    SN__ATTRS(sn__transpose_attrs, transpose_attrs),
                                    .infer = transpose_infer,
                                    .grad = transpose_grad,
                                    .cpu = sn__transpose_cpu,
                                    .doc = "dimensions in another order"};

sn_value sn_transpose(sn_graph *g, sn_value x, const int *axes, size_t n) {
  sn__transpose_attrs a = {.axes = {.count = (int64_t)n}};
  for (size_t i = 0; i < n && i < SN_MAX_RANK; i++)
    a.axes.v[i] = axes[i] < 0 ? axes[i] + (int64_t)n : axes[i];
  return sn__node_add(g, &sn__op_transpose, &a, &x, 1, NULL, NULL);
}
