/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM and GRU layers: rows are put in time-major order once, all layers run there, and the result
 * goes back to row order. */
#include <stdio.h>
#include <string.h>
#include "layers/layers.h"

typedef sn_value (*recurrent_op)(sn_graph *, sn_value, sn_value, const sn_recurrent_weights *, int);

static sn_value weight(sn_graph *g, const char *kind, int64_t layer, int direction, sn_dtype dtype,
                       sn_shape shape, sn_init init, bool bias) {
  char name[64];
  snprintf(name, sizeof name, "%s_l%lld%s", kind, (long long)layer,
           direction == 1 ? "_reverse" : "");
  return sn_variable(g, name, dtype, shape, .init = init, .no_decay = bias);
}

static void layer_weights(sn_graph *g, const sn_recurrent_options *o, int64_t gates,
                          int64_t features, int64_t layer, sn_dtype dtype,
                          sn_recurrent_weights out[2]) {
  sn_init init = o->init != NULL ? *o->init : sn_init_pytorch_recurrent(o->units);
  int64_t rows = gates * o->units;
  for (int d = 0; d < (o->bidirectional ? 2 : 1); d++) {
    out[d] = (sn_recurrent_weights){
        .input_kernel =
            weight(g, "weight_ih", layer, d, dtype, SN_SHAPE(rows, features), init, false),
        .recurrent_kernel =
            weight(g, "weight_hh", layer, d, dtype, SN_SHAPE(rows, o->units), init, false)};
    if (o->no_bias) continue;
    out[d].input_bias = weight(g, "bias_ih", layer, d, dtype, SN_SHAPE(rows), init, true);
    out[d].recurrent_bias = weight(g, "bias_hh", layer, d, dtype, SN_SHAPE(rows), init, true);
  }
}

/* Dropout draws by row and position, so it runs in row order. */
static sn_value drop_between(sn_graph *g, sn_value x, sn_value map, sn_value offsets, double rate) {
  sn_value rows = sn_reorder(g, x, map, true);
  return sn_reorder(g, sn_dropout_op(g, rows, offsets, rate), map, false);
}

static sn_sequence recurrent(sn_graph *g, sn_sequence x, const sn_recurrent_options *options,
                             const char *kind, int64_t gates, recurrent_op op) {
  sn_sequence none = {{g, 0}, {g, 0}};
  sn_recurrent_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, kind, &known)) return none;
  const char *name = o->name != NULL ? o->name : kind;
  sn_shape shape = sn_value_shape(x.values);
  if (!sn_value_ok(x.values)) return none;
  /* Four gates of so many units still count in 64 bits; the kernels' sizes are checked as shapes.
   */
  if (shape.rank != 2 || o->units < 1 || o->units > INT32_MAX || o->layers < 0) {
    char text[160];
    sn_graph_fail(g, sn_status_make(SN_CODE_INVALID,
                                    "%s: takes a sequence of [elements, features] and from 1 to "
                                    "%lld units; '%s' is %s, units %lld, layers %lld",
                                    name, (long long)INT32_MAX, sn_value_name(x.values),
                                    sn_shape_text(g, &shape, text, sizeof text),
                                    (long long)o->units, (long long)o->layers));
    return none;
  }
  sn_module_begin(g, name);
  sn_value map, steps, order;
  sn_time_order(g, x.offsets, &map, &steps, &order);
  sn_value h = sn_reorder(g, x.values, map, false);
  int directions = o->bidirectional ? 2 : 1;
  int64_t features = shape.dims[1];
  for (int64_t layer = 0; layer < (o->layers == 0 ? 1 : o->layers); layer++) {
    sn_recurrent_weights weights[2];
    memset(weights, 0, sizeof weights);
    if (layer > 0 && o->dropout > 0) h = drop_between(g, h, map, x.offsets, o->dropout);
    layer_weights(g, o, gates, features, layer, sn_value_dtype(x.values), weights);
    h = op(g, h, steps, weights, directions);
    features = o->units * directions;
  }
  sn_value y = sn_reorder(g, h, map, true);
  sn_module_end(g);
  return (sn_sequence){y, x.offsets};
}

sn_sequence sn_lstm_opt(sn_graph *g, sn_sequence x, const sn_recurrent_options *o) {
  return recurrent(g, x, o, "lstm", 4, sn_lstm_op);
}

sn_sequence sn_gru_opt(sn_graph *g, sn_sequence x, const sn_recurrent_options *o) {
  return recurrent(g, x, o, "gru", 3, sn_gru_op);
}
