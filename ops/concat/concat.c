/* SPDX-License-Identifier: Apache-2.0 */
/* Joins values along one axis. */
#include "ops/concat/concat.h"

static const sn__attr_def concat_attrs[] = {SN__INT_ATTR(sn__concat_attrs, axis)};

static sn_status concat_infer(sn__infer *c) {
  const sn__concat_attrs *a = c->attrs;
  const sn_shape *first = &c->in[0].shape;
  const int32_t axis = sn__axis_of(a->axis, first->rank);
  char text[160], other[160];
  sn__input_words(c, 0, text, sizeof text);
  if (axis < 0) return sn__infer_fail(c, "there is no axis %lld in %s", (long long)a->axis, text);
  int64_t total = 0;
  for (int i = 0; i < c->n_in; i++) {
    const sn_shape *s = &c->in[i].shape;
    if (c->in[i].dtype != c->in[0].dtype)
      return sn__infer_fail(c, "value %d is %s but the first is %s", i,
                            sn_dtype_name(c->in[i].dtype), sn_dtype_name(c->in[0].dtype));
    bool same = s->rank == first->rank;
    for (int32_t d = 0; same && d < s->rank; d++)
      same = d == axis || s->dims[d] == first->dims[d];
    if (!same)
      return sn__infer_fail(c, "value %d is %s; all but axis %d must be as in the first, %s", i,
                            sn__input_words(c, i, other, sizeof other), axis, text);
    if (c->n_in > 1 && sn_dim_is_symbolic(s->dims[axis]))
      return sn__infer_fail(c, "axis %d of value %d, %s, has no fixed size to add up", axis, i,
                            sn__input_words(c, i, other, sizeof other));
    total += s->dims[axis];
  }
  c->out[0] = c->in[0];
  if (c->n_in > 1) c->out[0].shape.dims[axis] = total;
  return SN_OK;
}

static sn_status concat_grad(const sn__grad *c) {
  const sn__concat_attrs *a = c->attrs;
  if (!sn_value_ok(c->dout[0])) return SN_OK;
  if (c->n_in == 1) {
    c->din[0] = c->dout[0];
    return SN_OK;
  }
  int64_t begin = 0;
  for (int i = 0; i < c->n_in; i++) {
    const int64_t size = sn_value_shape(c->in[i]).dims[a->axis];
    if (c->need[i]) c->din[i] = sn_slice(c->graph, c->dout[0], (int)a->axis, begin, begin + size);
    begin += size;
  }
  return SN_OK;
}

const sn_op_def sn__op_concat = {.name = "concat",
                                 .version = 1,
                                 .min_inputs = 1,
                                 .max_inputs = -1,
                                 .n_outputs = 1,
                                 SN__ATTRS(sn__concat_attrs, concat_attrs),
                                 .infer = concat_infer,
                                 .grad = concat_grad,
                                 .cpu = sn__concat_cpu,
                                 .doc = "joins values along one axis"};

sn_value sn_concat_opt(sn_graph *g, sn_values values, const sn_concat_options *options) {
  sn_concat_options o;
  if (!sn_graph_options(g, options, sizeof o, "concat", &o)) return (sn_value){g, 0};
  sn__concat_attrs a = {.axis = o.axis};
  if (values.count > 0 && a.axis < 0) a.axis += sn_value_shape(values.items[0]).rank;
  return sn__node_add(g, &sn__op_concat, &a, values.items, values.count, NULL, NULL);
}
