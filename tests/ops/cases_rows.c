/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases of the ops that cut, move, reduce and normalise rows, and of recurrent ones. */
#include "tests/ops/op_test.h"

#define B SN_DIM_BATCH

/* Empty rows, one element, ties, the longest not first. */
static const int64_t lengths[] = {3, 0, 5, 1, 5, 2, 0};
enum { ROWS = sizeof lengths / sizeof *lengths };
static const int64_t no_lengths[] = {0, 0, 0};

/* ---- shapes --------------------------------------------------------------------------------- */

static void concat_axes(op_test *t) {
  sn_value a = op_param(t, SN_SHAPE(B, 2, 3), -1, 1), b = op_param(t, SN_SHAPE(B, 4, 3), -1, 1);
  sn_value c = op_param(t, SN_SHAPE(3, 4), -1, 1), d = op_param(t, SN_SHAPE(2, 4), -1, 1);
  op_out(t, sn_concat(t->graph, SN_VALUES(a, b, a), .axis = 1));
  op_out(t, sn_concat(t->graph, SN_VALUES(c, d), .axis = 0));
  op_out(t, sn_concat(t->graph, SN_VALUES(d), .axis = -1));
}

static void split_some_unused(op_test *t) {
  const int64_t sizes[] = {2, 0, 3, 1}, many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2};
  sn_value x = op_param(t, SN_SHAPE(B, 6, 2), -1, 1), y = op_param(t, SN_SHAPE(B, 11), -1, 1);
  sn_value parts[10];
  sn_split(t->graph, x, 1, sizes, 4, parts);
  op_out(t, parts[0]);
  op_out(t, parts[2]); /* no gradient reaches the last part */
  sn_split(t->graph, y, -1, many, 10, parts);
  for (int i = 0; i < 10; i += 3)
    op_out(t, parts[i]);
}

static void slices(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 5, 3), -1, 1);
  op_out(t, sn_slice(t->graph, x, 1, 1, 4));
  op_out(t, sn_slice(t->graph, x, -1, 0, 2));
  op_out(t, sn_slice(t->graph, x, 2, 0, 3));
}

static void reshapes(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 4, 6), -1, 1), y = op_param(t, SN_SHAPE(4, 3), -1, 1);
  op_out(t, sn_reshape(t->graph, x, SN_SHAPE(SN_DIM_KEEP(0), 24)));
  op_out(t, sn_reshape(t->graph, x, SN_SHAPE(3, SN_DIM_KEEP(0), 8)));
  op_out(t, sn_reshape(t->graph, y, SN_SHAPE(2, 6, 1)));
}

static void transposes(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 3, 4), -1, 1), y = op_param(t, SN_SHAPE(17, 18), -1, 1);
  op_out(t, sn_transpose(t->graph, x, (const int[]){2, 0, 1}, 3));
  op_out(t, sn_transpose(t->graph, x, (const int[]){1, 0, -1}, 3));
  op_out(t, sn_transpose(t->graph, y, (const int[]){1, 0}, 2));
}

static void gathers(op_test *t) {
  const double rows[] = {2, 0, 2, 5, 2}, grid[] = {0, 1, 1, 4};
  sn_value table = op_param(t, SN_SHAPE(6, 3), -1, 1);
  sn_value i = op_data(t, SN_I32, SN_SHAPE(B), rows, 5);
  sn_value j = op_data(t, SN_I64, SN_SHAPE(2, 2), grid, 4);
  op_out(t, sn_gather_rows(t->graph, table, i));
  op_out(t, sn_gather_rows(t->graph, table, j));
  op_out(t, sn_scatter_add_rows(t->graph, op_param(t, SN_SHAPE(B, 3), -1, 1), i, table));
}

/* ---- ragged rows ---------------------------------------------------------------------------- */

static void reduce_all(op_test *t, sn_sequence s) {
  for (int how = SN_SEGMENT_SUM; how <= SN_SEGMENT_LAST; how++)
    op_out(t, sn_segment_reduce(t->graph, s.values, s.offsets, (sn_segment_reduction)how));
}

static void segments(op_test *t) {
  reduce_all(t, op_sequence(t, 19, lengths, ROWS, -1, 1));
}

static void segments_of_nothing(op_test *t) {
  reduce_all(t, op_sequence(t, 2, no_lengths, 3, -1, 1));
}

static void segment_softmaxes(op_test *t) {
  sn_sequence one = op_sequence(t, 1, lengths, ROWS, -2, 2);
  sn_sequence many = op_sequence(t, 18, lengths, ROWS, -2, 2);
  op_out(t, sn_segment_softmax(t->graph, one.values, one.offsets));
  op_out(t, sn_segment_softmax(t->graph, many.values, many.offsets));
}

static void segment_expands(op_test *t) {
  sn_sequence s = op_sequence(t, 2, lengths, ROWS, -1, 1);
  sn_value x = op_param(t, SN_SHAPE(B, 3), -1, 1);
  op_out(t, sn_segment_expand(t->graph, x, s.offsets));
}

static void reorders(op_test *t) {
  sn_sequence s = op_sequence(t, 3, lengths, ROWS, -1, 1);
  sn_value map, steps, order, again;
  sn_time_order(t->graph, s.offsets, &map, &steps, &order);
  sn_time_order(t->graph, s.offsets, &again, NULL, NULL);
  if (again.index != map.index)
    sn_graph_fail(t->graph, sn_status_make(SN_CODE_INTERNAL, "made twice"));
  op_out(t, sn_reorder(t->graph, s.values, map, false));
  op_out(t, sn_reorder(t->graph, s.values, map, true));
  op_out_plain(t, steps);
  op_out_plain(t, order);
}

/* ---- norms, dropout ------------------------------------------------------------------------- */

static void layer_norms(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 19), -1, 1), y = op_param(t, SN_SHAPE(B, 2, 5), -1, 1);
  sn_value scale = op_param(t, SN_SHAPE(19), 0.5, 2), shift = op_param(t, SN_SHAPE(19), -1, 1);
  sn_value none = sn__value_at(t->graph, 0);
  op_out(t, sn_layer_norm_op(t->graph, x, scale, shift, 1e-5));
  op_out(t, sn_layer_norm_op(t->graph, y, none, none, 1e-3));
}

static sn_value frozen(op_test *t, const char *name, int64_t n) {
  return sn_variable(t->graph, name, t->dtype, SN_SHAPE(n), .frozen = true);
}

static void batch_norms(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 19), -1, 1), y = op_param(t, SN_SHAPE(B, 2, 5), -1, 1);
  sn_value scale = op_param(t, SN_SHAPE(19), 0.5, 2), shift = op_param(t, SN_SHAPE(19), -1, 1);
  sn_value none = sn__value_at(t->graph, 0);
  op_out(t, sn_batch_norm_op(t->graph, x, scale, shift, frozen(t, "m1", 19), frozen(t, "v1", 19),
                             0.1, 1e-5));
  op_out(t, sn_batch_norm_op(t->graph, y, none, none, frozen(t, "m2", 5), frozen(t, "v2", 5), 0.1,
                             1e-3));
}

static void synced_batch_norms(op_test *t) {
  sn_value x = op_param(t, SN_SHAPE(B, 19), -1, 1), y = op_param(t, SN_SHAPE(B, 2, 5), -1, 1);
  sn_value scale = op_param(t, SN_SHAPE(19), 0.5, 2), shift = op_param(t, SN_SHAPE(19), -1, 1);
  sn_value none = sn__value_at(t->graph, 0);
  op_out(t, sn_batch_norm_sync_op(t->graph, x, scale, shift, frozen(t, "m1", 19),
                                  frozen(t, "v1", 19), 0.1, 1e-5));
  op_out(t, sn_batch_norm_sync_op(t->graph, y, none, none, frozen(t, "m2", 5), frozen(t, "v2", 5),
                                  0.1, 1e-3));
}

static void dropouts(op_test *t) {
  sn_sequence s = op_sequence(t, 5, lengths, ROWS, 0.5, 1);
  sn_value x = op_param(t, SN_SHAPE(B, 37), 0.5, 1), none = sn__value_at(t->graph, 0);
  op_out(t, sn_dropout_op(t->graph, x, none, 0.4));
  op_out(t, sn_dropout_op(t->graph, s.values, s.offsets, 0.4));
  op_out(t, sn_dropout_op(t->graph, x, none, 0));
}

/* ---- recurrent ------------------------------------------------------------------------------ */

typedef sn_value (*recurrent_fn)(sn_graph *g, sn_value x, sn_value steps,
                                 const sn_recurrent_weights *weights, int directions);

static void recurrent(op_test *t, recurrent_fn fn, int64_t count, int directions, int64_t units,
                      bool biases, const int64_t *of, size_t rows) {
  sn_graph *g = t->graph;
  sn_sequence s = op_sequence(t, 3, of, rows, -1, 1);
  sn_value map, steps;
  sn_time_order(g, s.offsets, &map, &steps, NULL);
  sn_recurrent_weights w[2];
  for (int d = 0; d < directions; d++) {
    w[d].input_kernel = op_param(t, SN_SHAPE(count * units, 3), -1, 1);
    w[d].recurrent_kernel = op_param(t, SN_SHAPE(count * units, units), -1, 1);
    w[d].input_bias = w[d].recurrent_bias = sn__value_at(g, 0);
    if (biases) {
      w[d].input_bias = op_param(t, SN_SHAPE(count * units), -1, 1);
      w[d].recurrent_bias = op_param(t, SN_SHAPE(count * units), -1, 1);
    }
  }
  sn_value y = fn(g, sn_reorder(g, s.values, map, false), steps, w, directions);
  op_out(t, sn_reorder(g, y, map, true));
}

static void lstm_two(op_test *t) {
  recurrent(t, sn_lstm_op, 4, 2, 4, true, lengths, ROWS);
}
static void lstm_one(op_test *t) {
  recurrent(t, sn_lstm_op, 4, 1, 5, false, lengths, ROWS);
}
static void lstm_nothing(op_test *t) {
  recurrent(t, sn_lstm_op, 4, 2, 2, true, no_lengths, 3);
}
static void gru_two(op_test *t) {
  recurrent(t, sn_gru_op, 3, 2, 4, true, lengths, ROWS);
}
static void gru_one(op_test *t) {
  recurrent(t, sn_gru_op, 3, 1, 5, false, lengths, ROWS);
}
static void gru_nothing(op_test *t) {
  recurrent(t, sn_gru_op, 3, 2, 2, true, no_lengths, 3);
}

const op_case op_cases_rows[] = {
    {"concat", "any axis, an input twice, and alone", concat_axes, 0},
    {"split", "parts without a gradient, more parts than outputs", split_some_unused, 0},
    {"slice", "any axis", slices, 0},
    {"reshape", "symbols kept", reshapes, 0},
    {"transpose", "any order", transposes, 0},
    {"gather_rows scatter_add_rows", "indices that repeat", gathers, 0},
    {"segment_reduce", "every reduction", segments, 0},
    {"segment_reduce", "a batch of empty rows", segments_of_nothing, 0},
    {"segment_softmax", "one feature and many", segment_softmaxes, 0},
    {"segment_expand", "ragged", segment_expands, 0},
    {"reorder time_order", "there and back", reorders, 0},
    {"layer_norm", "with and without scale", layer_norms, 0},
    {"batch_norm", "with and without scale", batch_norms, 0},
    {"batch_moments batch_total batch_norm", "of the whole batch", synced_batch_norms, 0},
    {"dropout", "dense and ragged", dropouts, 0},
    {"lstm", "two directions", lstm_two, 0},
    {"lstm", "one direction, no biases", lstm_one, 0},
    {"lstm", "a batch of empty rows", lstm_nothing, 0},
    {"gru", "two directions", gru_two, 0},
    {"gru", "one direction, no biases", gru_one, 0},
    {"gru", "a batch of empty rows", gru_nothing, 0},
    {NULL, NULL, NULL, 0},
};
