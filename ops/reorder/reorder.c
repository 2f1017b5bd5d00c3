/* SPDX-License-Identifier: Apache-2.0 */
/* Moves packed rows between the row-major and the time-major layout. */
#include "ops/reorder/reorder.h"

static const sn__attr_def reorder_attrs[] = {SN__INT_ATTR(sn__reorder_attrs, inverse)};

static sn_status reorder_infer(sn__infer *c) {
  SN_TRY(sn__want_rank(c, 0, 1, SN_MAX_RANK, "x"));
  SN_TRY(sn__want_index(c, 1, SN__OFFSETS, "the map"));
  if (c->in[0].shape.dims[0] != c->in[1].shape.dims[0]) {
    char x[160], map[160];
    return sn__infer_fail(c, "x is %s but the map orders %s elements: they are of two structures",
                          sn__input_words(c, 0, x, sizeof x),
                          sn__input_words(c, 1, map, sizeof map));
  }
  c->out[0] = c->in[0];
  return SN_OK;
}

static sn_status reorder_grad(const sn__grad *c) {
  const sn__reorder_attrs *a = c->attrs;
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  c->din[0] = sn_reorder(c->graph, c->dout[0], c->in[1], a->inverse == 0);
  return SN_OK;
}

const sn_op_def sn__op_reorder = {.name = "reorder",
                                  .version = 1,
                                  .min_inputs = 2,
                                  .max_inputs = 2,
                                  .n_outputs = 1,
                                  SN__ATTRS(sn__reorder_attrs, reorder_attrs),
                                  .infer = reorder_infer,
                                  .grad = reorder_grad,
                                  .saved_inputs = 1u << 1,
                                  .cpu = sn__reorder_cpu,
                                  .doc = "packed rows from row-major to time-major, or back"};

sn_value sn_reorder(sn_graph *g, sn_value x, sn_value map, bool inverse) {
  sn__reorder_attrs a = {inverse};
  return sn__node_add(g, &sn__op_reorder, &a, (sn_value[]){x, map}, 2, NULL, NULL);
}
