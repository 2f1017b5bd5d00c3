/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table by number. */
#include "ops/gather_rows/gather_rows.h"

static sn_status gather_rows_infer(sn__infer *c) {
  SN_TRY(sn__want_rank(c, 0, 1, SN_MAX_RANK, "the table"));
  SN_TRY(sn__want_index(c, 1, SN__INDICES, "indices"));
  const sn_shape *table = &c->in[0].shape, *indices = &c->in[1].shape;
  if (indices->rank + table->rank - 1 > SN_MAX_RANK)
    return sn__infer_fail(c, "the result would have %d dimensions; at most %d are possible",
                          indices->rank + table->rank - 1, SN_MAX_RANK);
  sn_shape out = *indices;
  for (int32_t i = 1; i < table->rank; i++)
    out.dims[out.rank++] = table->dims[i];
  c->out[0] = (sn__type){c->in[0].dtype, out};
  return SN_OK;
}

static sn_status gather_rows_grad(const sn__grad *c) {
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  c->din[0] = sn_scatter_add_rows(c->graph, c->dout[0], c->in[1], c->in[0]);
  return SN_OK;
}

const sn_op_def sn__op_gather_rows = {.name = "gather_rows",
                                      .version = 1,
                                      .min_inputs = 2,
                                      .max_inputs = 2,
                                      .n_outputs = 1,
                                      .infer = gather_rows_infer,
                                      .grad = gather_rows_grad,
                                      .saved_inputs = 1u << 0 | 1u << 1, /* the table: its shape */
                                      .cpu = sn__gather_rows_cpu,
                                      .doc = "rows of a table by number"};

sn_value sn_gather_rows(sn_graph *g, sn_value table, sn_value indices) {
  return sn__node_add(g, &sn__op_gather_rows, NULL, (sn_value[]){table, indices}, 2, NULL, NULL);
}
