/* SPDX-License-Identifier: Apache-2.0 */
/* Sum, mean, max, first or last element of every ragged row. */
#include "ops/segment_reduce/segment_reduce.h"

static const sn__attr_def segment_attrs[] = {SN__INT_ATTR(sn__segment_attrs, how),
                                             SN__INT_ATTR(sn__segment_attrs, elements)};

static sn_status segment_reduce_infer(sn__infer *c) {
  const sn__segment_attrs *a = c->attrs;
  SN_TRY(sn__want_real(c, 0, "x"));
  SN_TRY(sn__want_rank(c, 0, 1, SN_MAX_RANK, "x"));
  SN_TRY(sn__want_index(c, 1, SN__OFFSETS, "offsets"));
  if (a->how < SN_SEGMENT_SUM || a->how > SN_SEGMENT_LAST)
    return sn__infer_fail(c, "there is no reduction number %lld", (long long)a->how);
  const int64_t rows = sn__rows_of_offsets(c->in[1].shape.dims[0]);
  c->out[0] = (sn__type){c->in[0].dtype, sn__with_dim0(&c->in[0].shape, rows)};
  return SN_OK;
}

static sn_status segment_reduce_grad_infer(sn__infer *c) {
  const sn__segment_attrs *a = c->attrs;
  c->out[0] = (sn__type){c->in[0].dtype, sn__with_dim0(&c->in[0].shape, a->elements)};
  return SN_OK;
}

static sn_status segment_reduce_grad(const sn__grad *c) {
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  sn__segment_attrs a = *(const sn__segment_attrs *)c->attrs;
  a.elements = sn_value_shape(c->in[0]).dims[0];
  const sn_value in[] = {c->dout[0], c->in[1], c->in[0], c->out[0]};
  c->din[0] = sn__node_add(c->graph, &sn__op_segment_reduce_grad, &a, in,
                           a.how == SN_SEGMENT_MAX ? 4 : 2, NULL, NULL);
  return SN_OK;
}

const sn_op_def sn__op_segment_reduce = {
    .name = "segment_reduce",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .n_outputs = 1,
    SN__ATTRS(sn__segment_attrs, segment_attrs),
    .infer = segment_reduce_infer,
    .grad = segment_reduce_grad,
    .saved_inputs = 1u << 0 | 1u << 1, /* x and the output with max alone */
    .saved_outputs = 1u << 0,
    .cpu = sn__segment_reduce_cpu,
    .doc = "sum, mean, max, first or last element of every ragged row; zeros for an empty one"};

const sn_op_def sn__op_segment_reduce_grad = {
    .name = "segment_reduce_grad",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 4,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__segment_attrs, segment_attrs),
    .infer = segment_reduce_grad_infer,
    .cpu = sn__segment_reduce_grad_cpu,
    .doc = "gradient of segment_reduce: dy, offsets (and x, y for max) to dx"};

sn_value sn_segment_reduce(sn_graph *g, sn_value x, sn_value offsets, sn_segment_reduction how) {
  sn__segment_attrs a = {.how = how};
  return sn__node_add(g, &sn__op_segment_reduce, &a, (sn_value[]){x, offsets}, 2, NULL, NULL);
}
