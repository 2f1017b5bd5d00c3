/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts one axis into parts; the gradient joins theirs, zeros where a part has none. */
#include "ops/split/split.h"

#define SIZE_ATTR(i)                                                                               \
  {                                                                                                \
    .name = "size" #i, .kind = SN_ATTR_INT,                                                        \
    .offset = offsetof(sn__split_attrs, size) + (i) * sizeof(int64_t)                              \
  }
static const sn__attr_def split_attrs[] = {SN__INT_ATTR(sn__split_attrs, axis),
                                           SN__INT_ATTR(sn__split_attrs, parts),
                                           SIZE_ATTR(0),
                                           SIZE_ATTR(1),
                                           SIZE_ATTR(2),
                                           SIZE_ATTR(3),
                                           SIZE_ATTR(4),
                                           SIZE_ATTR(5),
                                           SIZE_ATTR(6),
                                           SIZE_ATTR(7)};
_Static_assert(SN_MAX_OUTPUTS == 8, "one attribute row a part");

static sn_status split_infer(sn__infer *c) {
  const sn__split_attrs *a = c->attrs;
  const sn_shape *x = &c->in[0].shape;
  char text[160];
  sn__input_words(c, 0, text, sizeof text);
  if (a->axis < 0 || a->axis >= x->rank)
    return sn__infer_fail(c, "there is no axis %lld in %s", (long long)a->axis, text);
  if (a->parts < 1 || a->parts > SN_MAX_OUTPUTS)
    return sn__infer_fail(c, "%lld parts; one cut makes 1 to %d", (long long)a->parts,
                          SN_MAX_OUTPUTS);
  const int64_t whole = x->dims[a->axis];
  if (sn_dim_is_symbolic(whole))
    return sn__infer_fail(c, "axis %lld of %s has no fixed size; only a fixed axis can be cut",
                          (long long)a->axis, text);
  int64_t sum = 0;
  for (int64_t i = 0; i < a->parts; i++) {
    if (a->size[i] < 0 || a->size[i] > whole)
      return sn__infer_fail(c, "part %lld of size %lld does not fit axis %lld of %s", (long long)i,
                            (long long)a->size[i], (long long)a->axis, text);
    sum += a->size[i];
    c->out[i] = c->in[0];
    c->out[i].shape.dims[a->axis] = a->size[i];
  }
  if (sum != whole)
    return sn__infer_fail(c, "the parts add up to %lld but axis %lld of %s has %lld",
                          (long long)sum, (long long)a->axis, text, (long long)whole);
  c->n_out = (int)a->parts;
  return SN_OK;
}

static sn_status split_grad_infer(sn__infer *c) {
  const sn__split_attrs *a = c->attrs;
  int some = 0;
  while (some < c->n_in - 1 && c->in[some].dtype == SN_DTYPE_NONE)
    some++;
  c->out[0] = c->in[some];
  c->out[0].shape.dims[a->axis] = 0;
  for (int64_t i = 0; i < a->parts; i++)
    c->out[0].shape.dims[a->axis] += a->size[i];
  return SN_OK;
}

static sn_status split_grad(const sn__grad *c) {
  const sn__split_attrs *a = c->attrs;
  bool any = false;
  for (int64_t i = 0; i < a->parts; i++)
    any = any || sn_value_ok(c->dout[i]);
  if (!any || !c->need[0]) return SN_OK;
  c->din[0] = sn__node_add(c->graph, &sn__op_split_grad, a, c->dout, (size_t)a->parts, NULL, NULL);
  return SN_OK;
}

const sn_op_def sn__op_split = {.name = "split",
                                .version = 1,
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .n_outputs = SN_MAX_OUTPUTS,
                                SN__ATTRS(sn__split_attrs, split_attrs),
                                .infer = split_infer,
                                .grad = split_grad,
                                .cpu = sn__split_cpu,
                                .doc = "cuts one axis into parts"};

const sn_op_def sn__op_split_grad = {.name = "split_grad",
                                     .version = 1,
                                     .min_inputs = 0,
                                     .max_inputs = SN_MAX_OUTPUTS,
                                     .n_outputs = 1,
                                     .flags = SN_OP_GRAD,
                                     SN__ATTRS(sn__split_attrs, split_attrs),
                                     .infer = split_grad_infer,
                                     .cpu = sn__split_grad_cpu,
                                     .doc =
                                         "joins the parts' gradients, zeros where there is none"};

/* More parts than a node has outputs: a cut into groups of parts, then each group. */
void sn_split(sn_graph *g, sn_value x, int axis, const int64_t *sizes, size_t n, sn_value *out) {
  sn__split_attrs a = {.axis = axis < 0 ? axis + sn_value_shape(x).rank : axis};
  for (size_t i = 0; i < n; i++)
    out[i] = sn__value_at(g, 0);
  size_t group = 1;
  while (group * SN_MAX_OUTPUTS < n)
    group *= SN_MAX_OUTPUTS;
  for (size_t i = 0; i < n; i++) {
    if (i % group == 0) a.parts++;
    a.size[a.parts - 1] += sizes[i];
  }
  sn_value made[SN_MAX_OUTPUTS];
  if (!sn_value_ok(sn__node_add(g, &sn__op_split, &a, &x, 1, NULL, made))) return;
  for (size_t i = 0; i < n; i += group) {
    const size_t here = n - i < group ? n - i : group;
    if (here == 1)
      out[i] = made[i / group];
    else
      sn_split(g, made[i / group], (int)a.axis, sizes + i, here, out + i);
  }
}
