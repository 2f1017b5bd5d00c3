/* SPDX-License-Identifier: Apache-2.0 */
/* Gives every element its row's values: the transpose of a segment sum. */
#include "ops/segment_expand/segment_expand.h"

static const sn__attr_def expand_attrs[] = {SN__INT_ATTR(sn__segment_expand_attrs, elements)};

static sn_status segment_expand_infer(sn__infer *c) {
  const sn__segment_expand_attrs *a = c->attrs;
  SN_TRY(sn__want_real(c, 0, "x"));
  SN_TRY(sn__want_rank(c, 0, 1, SN_MAX_RANK, "x"));
  SN_TRY(sn__want_index(c, 1, SN__OFFSETS, "offsets"));
  if (c->in[0].shape.dims[0] != sn__rows_of_offsets(c->in[1].shape.dims[0])) {
    char x[160], offsets[160];
    return sn__infer_fail(c, "x is %s, but offsets %s are of another number of rows",
                          sn__input_words(c, 0, x, sizeof x),
                          sn__input_words(c, 1, offsets, sizeof offsets));
  }
  c->out[0] = (sn__type){c->in[0].dtype, sn__with_dim0(&c->in[0].shape, a->elements)};
  return SN_OK;
}

static sn_status segment_expand_grad(const sn__grad *c) {
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  c->din[0] = sn_segment_reduce(c->graph, c->dout[0], c->in[1], SN_SEGMENT_SUM);
  return SN_OK;
}

const sn_op_def sn__op_segment_expand = {.name = "segment_expand",
                                         .version = 1,
                                         .min_inputs = 2,
                                         .max_inputs = 2,
                                         .n_outputs = 1,
                                         SN__ATTRS(sn__segment_expand_attrs, expand_attrs),
                                         .infer = segment_expand_infer,
                                         .grad = segment_expand_grad,
                                         .saved_inputs = 1u << 1,
                                         .cpu = sn__segment_expand_cpu,
                                         .doc = "every element gets its ragged row's values"};

sn_value sn_segment_expand(sn_graph *g, sn_value x, sn_value offsets) {
  if (g->status != SN_OK) return sn__value_at(g, 0);
  const int32_t ragged = sn__offsets_ragged(g, offsets);
  if (ragged < 0)
    return sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID,
                          "segment_expand: '%s' are not the offsets of a sequence or set input",
                          sn_value_name(offsets)));
  sn__segment_expand_attrs a = {SN_DIM_SYMBOL(g->raggeds[ragged].elements_symbol)};
  return sn__node_add(g, &sn__op_segment_expand, &a, (sn_value[]){x, offsets}, 2, NULL, NULL);
}
