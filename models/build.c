/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a model file: one encoder an input, a trunk over all of them, a head an output. */
#include "models/build.h"

#include <stdio.h>
#include <string.h>
#include "layers/layers.h"

static sn_activation activation_of(sn_config_activation a) {
  switch (a) {
  case SN_CONFIG_ACTIVATION_NONE: return SN_LINEAR;
  case SN_CONFIG_ACTIVATION_RELU: return SN_RELU;
  case SN_CONFIG_ACTIVATION_LEAKY_RELU: return SN_LEAKY_RELU;
  case SN_CONFIG_ACTIVATION_GELU: return SN_GELU;
  case SN_CONFIG_ACTIVATION_GELU_TANH: return SN_GELU_TANH;
  case SN_CONFIG_ACTIVATION_SILU: return SN_SILU;
  case SN_CONFIG_ACTIVATION_TANH: return SN_TANH;
  case SN_CONFIG_ACTIVATION_SIGMOID: return SN_SIGMOID;
  case SN_CONFIG_ACTIVATION_SOFTPLUS: return SN_SOFTPLUS;
  }
  return SN_LINEAR;
}

/* What one stack of dense layers is made of. `offsets` is valid for rows of a ragged input. */
typedef struct stack {
  sn_config_ints units;
  sn_activation activation;
  sn_config_norm norm;
  bool sync;
  double dropout;
  sn_value offsets;
  const char *name;
} stack;

static sn_value normalised(sn_graph *g, sn_value x, sn_config_norm norm, bool sync) {
  if (norm == SN_CONFIG_NORM_LAYER) return sn_layer_norm(g, x);
  if (norm == SN_CONFIG_NORM_BATCH) return sn_batch_norm(g, x, .sync = sync);
  return x;
}

/* Dense, norm, activation, dropout for each entry; the activation is fused where no norm stands
 * between. */
static sn_value dense_stack(sn_graph *g, sn_value x, const stack *s) {
  for (size_t i = 0; i < s->units.count; i++) {
    bool fused = s->norm == SN_CONFIG_NORM_NONE;
    x = sn_dense(g, x, .units = s->units.items[i], .activation = fused ? s->activation : SN_LINEAR,
                 .name = s->name);
    if (!fused) x = sn_activate(g, normalised(g, x, s->norm, s->sync), s->activation);
    if (s->dropout > 0) x = sn_dropout_op(g, x, s->offsets, s->dropout);
  }
  return x;
}

static int64_t embedding_width(const sn_model_input *in, int64_t count) {
  if (in->embedding > 0) return in->embedding;
  int64_t half = (count + 1) / 2; /* the usual rule of thumb */
  return half > 50 ? 50 : half < 1 ? 1 : half;
}

static sn_value pooled(sn_graph *g, sn_value x, sn_value offsets, const sn_model_input *in) {
  sn_sequence s = {x, offsets};
  bool recurrent = in->encoder == SN_CONFIG_ENCODER_LSTM || in->encoder == SN_CONFIG_ENCODER_GRU;
  switch (in->pool) {
  case SN_CONFIG_POOL_MEAN: return sn_sequence_mean(g, s);
  case SN_CONFIG_POOL_MAX: return sn_sequence_max(g, s);
  case SN_CONFIG_POOL_SUM: return sn_sequence_sum(g, s);
  case SN_CONFIG_POOL_ATTENTION: return sn_sequence_attention(g, s);
  case SN_CONFIG_POOL_FLATTEN: break; /* of images */
  case SN_CONFIG_POOL_LAST:
    return recurrent && in->bidirectional ? sn_sequence_final(g, s, in->units)
                                          : sn_sequence_last(g, s);
  }
  return x;
}

static sn_sequence encode_sequence(sn_graph *g, sn_sequence x, const sn_model_input *in) {
  if (in->encoder == SN_CONFIG_ENCODER_LSTM)
    return sn_lstm(g, x, .units = in->units, .layers = in->layers,
                   .bidirectional = in->bidirectional, .dropout = in->dropout);
  if (in->encoder == SN_CONFIG_ENCODER_GRU)
    return sn_gru(g, x, .units = in->units, .layers = in->layers,
                  .bidirectional = in->bidirectional, .dropout = in->dropout);
  return x;
}

static int64_t each(const sn_config_ints *list, size_t i) {
  return list->items[list->count == 1 ? 0 : i];
}

/* Convolutions or blocks one after another, each with norm, activation and max pooling; dropout
 * behind them all. */
static sn_value encode_image(sn_graph *g, sn_value x, const sn_model_input *in) {
  const sn_activation activation = activation_of(in->activation);
  const bool fused = in->norm == SN_CONFIG_NORM_NONE;
  if (in->stem > 0)
    x = sn_conv2d(g, x, .filters = in->stem, .kernel = {3}, .same = true, .activation = activation,
                  .name = "stem");
  for (size_t i = 0; i < in->filters.count; i++) {
    const int64_t filters = in->filters.items[i], pool = each(&in->max_pool, i);
    if (in->encoder == SN_CONFIG_ENCODER_INCEPTION) {
      const int64_t path = filters / 4;
      x = sn_inception(g, x, .point = path, .three = path, .five = path, .pool = path,
                       .reduce_three = in->reduce, .reduce_five = in->reduce,
                       .activation = activation);
      x = normalised(g, x, in->norm, in->sync);
    } else {
      x = sn_conv2d(g, x, .filters = filters, .kernel = {each(&in->kernel, i)},
                    .stride = {each(&in->stride, i)}, .same = true,
                    .activation = fused ? activation : SN_LINEAR);
      if (!fused) x = sn_activate(g, normalised(g, x, in->norm, in->sync), activation);
    }
    if (pool > 1) x = sn_max_pool2d(g, x, .kernel = {pool, pool});
  }
  x = in->pool == SN_CONFIG_POOL_FLATTEN ? sn_flatten(g, x)
      : in->pool == SN_CONFIG_POOL_MAX   ? sn_global_max_pool(g, x)
                                         : sn_global_average_pool(g, x);
  return in->dropout > 0 ? sn_dropout(g, x, in->dropout) : x;
}

/* One input's branch: [batch, F], or [elements, F] with *out_stream set for a stream. */
static sn_value branch(sn_graph *g, const sn_model_input *in, const sn_field_facts *facts,
                       sn_sequence *out_stream) {
  stack hidden = {.units = in->hidden,
                  .activation = activation_of(in->activation),
                  .norm = in->norm,
                  .sync = in->sync,
                  .dropout = in->dropout,
                  .name = "dense"};
  int64_t features = facts->features > 0 ? facts->features : 1;
  bool ids = in->kind == SN_CONFIG_KIND_STREAM || in->embedding > 0;
  if (in->kind == SN_CONFIG_KIND_DENSE) {
    sn_value x = sn_input(g, in->name, SN_F32, features);
    sn_module_begin(g, in->name);
    x = dense_stack(g, x, &hidden);
    sn_module_end(g);
    return x;
  }
  if (in->kind == SN_CONFIG_KIND_IMAGE) {
    sn_value x = sn_input(g, in->name, SN_F32, features);
    sn_module_begin(g, in->name);
    x = sn_reshape(g, x, SN_SHAPE(SN_DIM_KEEP(0), facts->height, facts->width, facts->channels));
    x = dense_stack(g, encode_image(g, x, in), &hidden);
    sn_module_end(g);
    return x;
  }
  if (in->kind == SN_CONFIG_KIND_CATEGORY) {
    sn_value x = sn_input(g, in->name, SN_I32, 0);
    sn_module_begin(g, in->name);
    x = sn_embedding(g, x, .count = facts->classes, .units = embedding_width(in, facts->classes));
    x = dense_stack(g, x, &hidden);
    sn_module_end(g);
    return x;
  }
  bool set = in->kind == SN_CONFIG_KIND_SET;
  sn_dtype dtype = ids ? SN_I32 : SN_F32;
  sn_sequence x;
  if (set) {
    sn_set s = sn_set_input(g, in->name, dtype, ids ? 0 : features);
    x = (sn_sequence){s.values, s.offsets};
  } else {
    x = sn_sequence_input(g, in->name, dtype, ids ? 0 : features);
  }
  sn_module_begin(g, in->name);
  if (ids)
    x = sn_sequence_embedding(g, x, .count = facts->classes,
                              .units = embedding_width(in, facts->classes));
  sn_value y;
  if (set) {
    stack phi = hidden, rho = hidden;
    phi.units = in->phi;
    phi.dropout = 0;
    phi.offsets = x.offsets;
    phi.name = "phi";
    rho.units = in->rho;
    rho.name = "rho";
    y = dense_stack(g, x.values, &phi);
    y = dense_stack(g, pooled(g, y, x.offsets, in), &rho);
  } else {
    sn_sequence h = encode_sequence(g, x, in);
    if (in->kind == SN_CONFIG_KIND_STREAM) {
      *out_stream = x;
      hidden.offsets = x.offsets;
      y = h.values;
    } else {
      y = pooled(g, h.values, h.offsets, in);
    }
  }
  y = dense_stack(g, y, &hidden);
  sn_module_end(g);
  return y;
}

/* The label's name, "<output>.label", and the weights', "<output>.weights". */
static void name_text(char *buffer, size_t size, const char *output, const char *suffix) {
  snprintf(buffer, size, "%s.%s", output, suffix);
}

static void head(sn_graph *g, const sn_model_output *out, const sn_field *field,
                 const sn_field_facts *facts, sn_value x, sn_sequence stream) {
  char label_name[300], weights_name[300];
  name_text(label_name, sizeof label_name, out->name, "label");
  name_text(weights_name, sizeof weights_name, out->name, "weights");
  bool next = field->role == SN_FIELD_NEXT, classes = next || field->role == SN_FIELD_CLASS;
  int64_t width = classes ? facts->classes : facts->features > 0 ? facts->features : 1;
  sn_value label = next      ? sn_sequence_input_like(g, label_name, SN_I32, 0, stream)
                   : classes ? sn_input(g, label_name, SN_I32, 0)
                             : sn_input(g, label_name, SN_F32, width);
  sn_value weights = {g, 0};
  if (out->missing != NULL || out->class_weights.mode != SN_CONFIG_CLASS_WEIGHTS_NONE)
    weights = next ? sn_sequence_input_like(g, weights_name, SN_F32, 0, stream)
                   : sn_input(g, weights_name, SN_F32, 0);
  sn_module_begin(g, out->name);
  stack hidden = {.units = out->hidden,
                  .activation = activation_of(out->activation),
                  .norm = SN_CONFIG_NORM_NONE,
                  .dropout = out->dropout,
                  .name = "dense"};
  if (next) hidden.offsets = stream.offsets;
  x = dense_stack(g, x, &hidden);
  sn_value z = sn_dense(g, x, .units = width, .name = "out");
  sn_output(g, out->name, z);
  sn_loss_options o = {.struct_size = sizeof o,
                       .weights = weights,
                       .scale = out->weight,
                       .delta = out->huber_delta,
                       .name = out->name};
  switch (out->loss) {
  case SN_CONFIG_LOSS_CROSS_ENTROPY: sn_softmax_cross_entropy_opt(g, z, label, &o); break;
  case SN_CONFIG_LOSS_BINARY_CROSS_ENTROPY: sn_sigmoid_cross_entropy_opt(g, z, label, &o); break;
  case SN_CONFIG_LOSS_MSE: sn_squared_loss_opt(g, z, label, &o); break;
  case SN_CONFIG_LOSS_MAE: sn_absolute_loss_opt(g, z, label, &o); break;
  case SN_CONFIG_LOSS_HUBER: sn_huber_loss_opt(g, z, label, &o); break;
  }
  sn_module_end(g);
}

sn_status sn_model_build(const sn_model_config *config, const sn_preparation *preparation,
                         sn_graph *g) {
  sn_value branches[64];
  sn_sequence stream = {{g, 0}, {g, 0}};
  if (config->input_count == 0 || config->input_count > sizeof branches / sizeof *branches)
    return sn_status_make(SN_CODE_CONFIG, "%s: %zu inputs; it must be 1 to %zu", config->file,
                          config->input_count, sizeof branches / sizeof *branches);
  for (size_t i = 0; i < config->input_count; i++)
    branches[i] = branch(g, &config->inputs[i], sn_preparation_facts(preparation, i), &stream);
  if (sn_value_ok(stream.values) && config->input_count > 1)
    return sn_status_make(
        SN_CODE_CONFIG, "%s: a stream is a model's only input; '%s' stands beside it", config->file,
        config->inputs[config->inputs[0].kind == SN_CONFIG_KIND_STREAM ? 1 : 0].name);
  sn_module_begin(g, "trunk");
  sn_value x = branches[0];
  if (config->input_count > 1)
    x = sn_concat(g, ((sn_values){branches, config->input_count}), .axis = 1);
  stack trunk = {.units = config->trunk.hidden,
                 .activation = activation_of(config->trunk.activation),
                 .norm = config->trunk.norm,
                 .sync = config->trunk.sync,
                 .dropout = config->trunk.dropout,
                 .offsets = stream.offsets,
                 .name = "dense"};
  x = dense_stack(g, x, &trunk);
  sn_module_end(g);
  for (size_t i = 0; i < config->output_count; i++) {
    size_t f = config->input_count + i;
    head(g, &config->outputs[i], sn_preparation_field(preparation, f),
         sn_preparation_facts(preparation, f), x, stream);
  }
  return sn_graph_status(g);
}
