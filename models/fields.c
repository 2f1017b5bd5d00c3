/* SPDX-License-Identifier: Apache-2.0 */
/* The fields that a model file reads, split by split. */
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "models/build.h"

/* The list and its label names are one block. */
typedef struct field_block {
  size_t count;
  char (*names)[300];
  sn_field fields[];
} field_block;

static sn_field input_field(const sn_model_config *config, sn_config_split split,
                            const sn_model_input *in) {
  static const sn_field_kind kinds[] = {
      [SN_CONFIG_KIND_DENSE] = SN_FIELD_DENSE,   [SN_CONFIG_KIND_SEQUENCE] = SN_FIELD_SEQUENCE,
      [SN_CONFIG_KIND_SET] = SN_FIELD_SET,       [SN_CONFIG_KIND_CATEGORY] = SN_FIELD_CATEGORY,
      [SN_CONFIG_KIND_STREAM] = SN_FIELD_STREAM, [SN_CONFIG_KIND_IMAGE] = SN_FIELD_IMAGE,
  };
  sn_field f = {
      .name = in->name, .kind = kinds[in->kind], .role = SN_FIELD_INPUT, .window = in->window};
  f.path = sn_model_config_source(config, split, in->name, &f.lengths);
  f.ids = in->kind == SN_CONFIG_KIND_STREAM || in->kind == SN_CONFIG_KIND_CATEGORY ||
          ((in->kind == SN_CONFIG_KIND_SEQUENCE || in->kind == SN_CONFIG_KIND_SET) &&
           in->embedding > 0);
  f.dtype = f.ids ? SN_I32 : SN_F32;
  f.normalize = !f.ids && in->normalize == SN_CONFIG_NORMALIZE_STANDARD;
  return f;
}

static sn_field output_field(const sn_model_config *config, sn_config_split split,
                             const sn_model_output *out, const char *name) {
  sn_field f = {.name = name, .kind = SN_FIELD_DENSE, .missing = out->missing, .dtype = SN_F32};
  f.path = sn_model_config_source(config, split, out->name, NULL);
  f.role = out->task == SN_CONFIG_TASK_CLASSIFICATION ? SN_FIELD_CLASS
           : out->task == SN_CONFIG_TASK_REGRESSION   ? SN_FIELD_TARGET
                                                      : SN_FIELD_MULTILABEL;
  if (out->path == NULL) {
    const sn_model_input *stream = &config->inputs[0];
    f.kind = SN_FIELD_STREAM;
    f.role = SN_FIELD_NEXT;
    f.window = stream->window;
    f.path = sn_model_config_source(config, split, stream->name, NULL);
  }
  if (f.role == SN_FIELD_CLASS || f.role == SN_FIELD_NEXT) f.dtype = SN_I32;
  f.normalize = f.role == SN_FIELD_TARGET && out->normalize == SN_CONFIG_NORMALIZE_STANDARD;
  f.classes = (const char *const *)out->labels.items;
  f.n_classes = out->labels.count;
  f.balanced = out->class_weights.mode == SN_CONFIG_CLASS_WEIGHTS_BALANCED;
  f.class_weights = out->class_weights.items;
  f.class_weight_names = (const char *const *)out->class_weights.names;
  f.n_class_weights = out->class_weights.count;
  return f;
}

sn_status sn_model_fields(const sn_model_config *config, sn_config_split split,
                          sn_field **out_fields, size_t *out_count) {
  size_t n = config->input_count + config->output_count;
  field_block *block = sn__calloc(1, sizeof *block + n * sizeof block->fields[0]);
  if (block == NULL) return sn_status_out_of_memory();
  block->count = n;
  block->names = sn__calloc(config->output_count + 1, sizeof *block->names);
  if (block->names == NULL) {
    sn__free(block);
    return sn_status_out_of_memory();
  }
  for (size_t i = 0; i < config->input_count; i++)
    block->fields[i] = input_field(config, split, &config->inputs[i]);
  for (size_t i = 0; i < config->output_count; i++) {
    snprintf(block->names[i], sizeof block->names[i], "%s.label", config->outputs[i].name);
    block->fields[config->input_count + i] =
        output_field(config, split, &config->outputs[i], block->names[i]);
  }
  *out_fields = block->fields;
  *out_count = n;
  return SN_OK;
}

void sn_model_fields_free(sn_field *fields) {
  if (fields == NULL) return;
  field_block *block = (field_block *)(void *)((char *)fields - offsetof(field_block, fields));
  sn__free(block->names);
  sn__free(block);
}
