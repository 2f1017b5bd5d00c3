/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation and dropout layers. */
#include "layers/layers.h"

static sn_value vector(sn_graph *g, const char *name, sn_value x, double start, bool frozen) {
  sn_shape shape = sn_value_shape(x);
  int64_t features = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0;
  if (!sn_value_ok(x)) return (sn_value){g, 0};
  return sn_variable(g, name, sn_value_dtype(x), SN_SHAPE(features),
                     .init = {.kind = SN_INIT_CONSTANT, .value = start}, .frozen = frozen,
                     .no_decay = true);
}

sn_value sn_layer_norm_opt(sn_graph *g, sn_value x, const sn_norm_options *options) {
  sn_norm_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "layer_norm", &known)) return (sn_value){g, 0};
  sn_module_begin(g, o->name != NULL ? o->name : "layer_norm");
  sn_value scale = o->no_scale ? (sn_value){g, 0} : vector(g, "weight", x, 1, false);
  sn_value shift = o->no_shift ? (sn_value){g, 0} : vector(g, "bias", x, 0, false);
  sn_value y = sn_layer_norm_op(g, x, scale, shift, o->epsilon > 0 ? o->epsilon : 1e-5);
  sn_module_end(g);
  return y;
}

sn_value sn_batch_norm_opt(sn_graph *g, sn_value x, const sn_norm_options *options) {
  sn_norm_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "batch_norm", &known)) return (sn_value){g, 0};
  sn_module_begin(g, o->name != NULL ? o->name : "batch_norm");
  sn_value scale = o->no_scale ? (sn_value){g, 0} : vector(g, "weight", x, 1, false);
  sn_value shift = o->no_shift ? (sn_value){g, 0} : vector(g, "bias", x, 0, false);
  sn_value mean = vector(g, "running_mean", x, 0, true);
  sn_value variance = vector(g, "running_var", x, 1, true);
  sn_value y = (o->sync ? sn_batch_norm_sync_op : sn_batch_norm_op)(
      g, x, scale, shift, mean, variance, o->momentum > 0 ? o->momentum : 0.1,
      o->epsilon > 0 ? o->epsilon : 1e-5);
  sn_module_end(g);
  return y;
}

sn_value sn_dropout(sn_graph *g, sn_value x, double rate) {
  return sn_dropout_op(g, x, (sn_value){g, 0}, rate);
}

sn_sequence sn_sequence_dropout(sn_graph *g, sn_sequence x, double rate) {
  return (sn_sequence){sn_dropout_op(g, x.values, x.offsets, rate), x.offsets};
}

sn_set sn_set_dropout(sn_graph *g, sn_set x, double rate) {
  return (sn_set){sn_dropout_op(g, x.values, x.offsets, rate), x.offsets};
}
