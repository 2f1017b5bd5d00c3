/* SPDX-License-Identifier: Apache-2.0 */
/* From ragged rows to one vector a row. */
#include "layers/layers.h"

sn_value sn_sequence_last(sn_graph *g, sn_sequence x) {
  return sn_segment_reduce(g, x.values, x.offsets, SN_SEGMENT_LAST);
}

sn_value sn_sequence_first(sn_graph *g, sn_sequence x) {
  return sn_segment_reduce(g, x.values, x.offsets, SN_SEGMENT_FIRST);
}

sn_value sn_sequence_mean(sn_graph *g, sn_sequence x) {
  return sn_segment_reduce(g, x.values, x.offsets, SN_SEGMENT_MEAN);
}

sn_value sn_sequence_max(sn_graph *g, sn_sequence x) {
  return sn_segment_reduce(g, x.values, x.offsets, SN_SEGMENT_MAX);
}

sn_value sn_sequence_sum(sn_graph *g, sn_sequence x) {
  return sn_segment_reduce(g, x.values, x.offsets, SN_SEGMENT_SUM);
}

sn_value sn_sequence_final(sn_graph *g, sn_sequence x, int64_t units) {
  sn_value forward = sn_slice(g, x.values, 1, 0, units);
  sn_value backward = sn_slice(g, x.values, 1, units, 2 * units);
  sn_value last = sn_segment_reduce(g, forward, x.offsets, SN_SEGMENT_LAST);
  sn_value first = sn_segment_reduce(g, backward, x.offsets, SN_SEGMENT_FIRST);
  return sn_concat(g, SN_VALUES(last, first), .axis = 1);
}

sn_value sn_set_sum(sn_graph *g, sn_set x) {
  return sn_segment_reduce(g, x.values, x.offsets, SN_SEGMENT_SUM);
}

sn_value sn_set_mean(sn_graph *g, sn_set x) {
  return sn_segment_reduce(g, x.values, x.offsets, SN_SEGMENT_MEAN);
}

sn_value sn_set_max(sn_graph *g, sn_set x) {
  return sn_segment_reduce(g, x.values, x.offsets, SN_SEGMENT_MAX);
}

static sn_value attention(sn_graph *g, sn_value x, sn_value offsets,
                          const sn_attention_options *options) {
  sn_attention_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "attention", &known)) return (sn_value){g, 0};
  sn_shape shape = sn_value_shape(x);
  if (!sn_value_ok(x)) return (sn_value){g, 0};
  int64_t units = o->units > 0 ? o->units : shape.dims[shape.rank - 1];
  sn_module_begin(g, o->name != NULL ? o->name : "attention");
  sn_value hidden = sn_dense(g, x, .units = units, .activation = SN_TANH, .name = "hidden");
  sn_value score = sn_dense(g, hidden, .units = 1, .no_bias = true, .name = "score");
  sn_value weight = sn_segment_softmax(g, score, offsets);
  sn_value y = sn_segment_reduce(g, sn_mul(g, x, weight), offsets, SN_SEGMENT_SUM);
  sn_module_end(g);
  return y;
}

sn_value sn_sequence_attention_opt(sn_graph *g, sn_sequence x, const sn_attention_options *o) {
  return attention(g, x.values, x.offsets, o);
}

sn_value sn_set_attention_opt(sn_graph *g, sn_set x, const sn_attention_options *o) {
  return attention(g, x.values, x.offsets, o);
}
