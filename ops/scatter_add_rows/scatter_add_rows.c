/* SPDX-License-Identifier: Apache-2.0 */
/* Rows added into zeros at given places: the transpose of gather_rows. */
#include "ops/scatter_add_rows/scatter_add_rows.h"

static sn_status scatter_add_rows_infer(sn__infer *c) {
  SN_TRY(sn__want_real(c, 0, "x"));
  SN_TRY(sn__want_index(c, 1, SN__INDICES, "indices"));
  SN_TRY(sn__want_rank(c, 2, 1, SN_MAX_RANK, "like"));
  const sn_shape *x = &c->in[0].shape, *indices = &c->in[1].shape, *like = &c->in[2].shape;
  bool ok = x->rank == indices->rank + like->rank - 1;
  for (int32_t i = 0; ok && i < indices->rank; i++)
    ok = x->dims[i] == indices->dims[i];
  for (int32_t i = 1; ok && i < like->rank; i++)
    ok = x->dims[indices->rank + i - 1] == like->dims[i];
  char text[3][160];
  if (!ok)
    return sn__infer_fail(c,
                          "x is %s, but indices %s into rows of %s need the indices' dimensions "
                          "followed by a row's",
                          sn__input_words(c, 0, text[0], sizeof text[0]),
                          sn__input_words(c, 1, text[1], sizeof text[1]),
                          sn__input_words(c, 2, text[2], sizeof text[2]));
  c->out[0] = (sn__type){c->in[0].dtype, *like};
  return SN_OK;
}

static sn_status scatter_add_rows_grad(const sn__grad *c) {
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  c->din[0] = sn_gather_rows(c->graph, c->dout[0], c->in[1]);
  return SN_OK;
}

const sn_op_def sn__op_scatter_add_rows = {
    .name = "scatter_add_rows",
    .version = 1,
    .min_inputs = 3,
    .max_inputs = 3,
    .n_outputs = 1,
    .infer = scatter_add_rows_infer,
    .grad = scatter_add_rows_grad,
    .saved_inputs = 1u << 1,
    .workspace = sn__scatter_add_rows_workspace,
    .cpu = sn__scatter_add_rows_cpu,
    .doc = "rows of x added into zeros of another's shape, at given rows, in rising order of x"};

sn_value sn_scatter_add_rows(sn_graph *g, sn_value x, sn_value indices, sn_value like) {
  return sn__node_add(g, &sn__op_scatter_add_rows, NULL, (sn_value[]){x, indices, like}, 3, NULL,
                      NULL);
}
