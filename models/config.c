/* SPDX-License-Identifier: Apache-2.0 */
#include "models/config.h"

#include <ctype.h>
#include <string.h>

#include "models/config_internal.h"

/* Strings and lists of a config come from one arena; only the arrays that grow are blocks. */
void *sn__config_alloc(sn_model_config *config, size_t count, size_t size) {
  size_t bytes;
  if (!sn__size_mul(count, size, &bytes)) return NULL;
  return sn__arena_alloc(config->memory, bytes > 0 ? bytes : 1);
}

char *sn__config_strdup(sn_model_config *config, const char *text) {
  return sn__arena_strdup(config->memory, text);
}

bool sn__config_name_ok(const char *name) {
  size_t length = strlen(name);
  if (length == 0 || length > SN__CONFIG_NAME_MAX) return false;
  if (!isalpha((unsigned char)name[0]) && name[0] != '_') return false;
  for (size_t i = 1; i < length; i++) {
    if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-') return false;
  }
  return true;
}

sn_status sn_model_config_create(sn_model_config **out_config) {
  sn_model_config *config = sn__calloc(1, sizeof *config);
  if (config == NULL) return sn_status_out_of_memory();
  sn_status status = sn_status_out_of_memory();
  config->memory = sn__calloc(1, sizeof(sn__arena));
  if (config->memory == NULL) goto fail;
  config->file = sn__config_strdup(config, "model file");
  if (config->file == NULL) goto fail;
  config->train.optimizer = SN_CONFIG_OPTIMIZER_ADAM; /* the default picks the defaults of others */
  SN_TRY_GOTO(status, sn__part_defaults(config, &sn__part_trunk, &config->trunk), fail);
  SN_TRY_GOTO(status, sn__part_defaults(config, &sn__part_train, &config->train), fail);
  *out_config = config;
  return SN_OK;
fail:
  sn_model_config_free(config);
  return status;
}

void sn_model_config_free(sn_model_config *config) {
  if (config == NULL) return;
  if (config->memory != NULL) sn__arena_free(config->memory);
  sn__free(config->memory);
  sn__free(config->inputs);
  sn__free(config->outputs);
  sn__free(config->pins);
  for (size_t i = 0; i < SN_CONFIG_SPLIT_COUNT; i++) {
    sn__free(config->data[i].sources);
  }
  sn__free(config);
}

/* Room for one more in an array whose count is all we keep: it grows by powers of two. */
static bool grow_by_one(void **items, size_t count, size_t size) {
  if (count != 0 && (count & (count - 1)) != 0) return true;
  size_t bytes;
  if (!sn__size_mul(count == 0 ? 1 : 2 * count, size, &bytes)) return false;
  void *grown = sn__realloc(*items, bytes);
  if (grown == NULL) return false;
  *items = grown;
  return true;
}

static sn_status check_new_name(const char *title, const char *name, size_t count) {
  if (!sn__config_name_ok(name))
    return sn_status_make(SN_CODE_CONFIG,
                          "%s name '%.64s' is not usable; use letters, digits, '_' and '-', at "
                          "most %d, not a digit first",
                          title, name, SN__CONFIG_NAME_MAX);
  if (count >= SN__CONFIG_MODULES_MAX)
    return sn_status_make(SN_CODE_CONFIG, "more than %d %ss; join some of them",
                          SN__CONFIG_MODULES_MAX, title);
  return SN_OK;
}

sn_status sn_model_config_add_input(sn_model_config *config, const char *name, sn_config_kind kind,
                                    sn_model_input **out_input) {
  SN_TRY(check_new_name("input", name, config->input_count));
  for (size_t i = 0; i < config->input_count; i++) {
    if (strcmp(config->inputs[i].name, name) == 0)
      return sn_status_make(SN_CODE_CONFIG, "input '%s' is there twice; rename one", name);
  }
  if (!grow_by_one((void **)&config->inputs, config->input_count, sizeof *config->inputs))
    return sn_status_out_of_memory();
  sn_model_input *input = &config->inputs[config->input_count];
  *input = (sn_model_input){.kind = kind, .name = sn__config_strdup(config, name)};
  if (input->name == NULL) return sn_status_out_of_memory();
  SN_TRY(sn__part_defaults(config, &sn__part_input, input));
  config->input_count++;
  *out_input = input;
  return SN_OK;
}

sn_status sn_model_config_add_output(sn_model_config *config, const char *name, sn_config_task task,
                                     sn_model_output **out_output) {
  SN_TRY(check_new_name("output", name, config->output_count));
  for (size_t i = 0; i < config->output_count; i++) {
    if (strcmp(config->outputs[i].name, name) == 0)
      return sn_status_make(SN_CODE_CONFIG, "output '%s' is there twice; rename one", name);
  }
  if (!grow_by_one((void **)&config->outputs, config->output_count, sizeof *config->outputs))
    return sn_status_out_of_memory();
  sn_model_output *output = &config->outputs[config->output_count];
  *output = (sn_model_output){.task = task, .name = sn__config_strdup(config, name)};
  if (output->name == NULL) return sn_status_out_of_memory();
  SN_TRY(sn__part_defaults(config, &sn__part_output, output));
  config->output_count++;
  *out_output = output;
  return SN_OK;
}

sn_status sn__config_add_pin(sn_model_config *config, const char *module, sn_model_pin **out_pin) {
  for (size_t i = 0; i < config->pin_count; i++) {
    if (strcmp(config->pins[i].module, module) == 0) {
      *out_pin = &config->pins[i];
      return SN_OK;
    }
  }
  if (!grow_by_one((void **)&config->pins, config->pin_count, sizeof *config->pins))
    return sn_status_out_of_memory();
  sn_model_pin *pin = &config->pins[config->pin_count];
  *pin = (sn_model_pin){.module = sn__config_strdup(config, module)};
  if (pin->module == NULL) return sn_status_out_of_memory();
  config->pin_count++;
  *out_pin = pin;
  return SN_OK;
}

sn_status sn__config_add_source(sn_model_config *config, sn_model_split *split, const char *name,
                                sn_model_source **out_source) {
  for (size_t i = 0; i < split->count; i++) {
    if (strcmp(split->sources[i].name, name) == 0) {
      *out_source = &split->sources[i];
      return SN_OK;
    }
  }
  if (!grow_by_one((void **)&split->sources, split->count, sizeof *split->sources))
    return sn_status_out_of_memory();
  sn_model_source *source = &split->sources[split->count];
  *source = (sn_model_source){.name = sn__config_strdup(config, name)};
  if (source->name == NULL) return sn_status_out_of_memory();
  split->count++;
  *out_source = source;
  return SN_OK;
}

const char *sn_model_config_source(const sn_model_config *config, sn_config_split split,
                                   const char *name, const char **out_lengths) {
  const char *path = NULL, *lengths = NULL;
  for (size_t i = 0; i < config->input_count; i++) {
    if (strcmp(config->inputs[i].name, name) != 0) continue;
    path = config->inputs[i].path;
    lengths = config->inputs[i].lengths;
  }
  for (size_t i = 0; i < config->output_count; i++) {
    if (strcmp(config->outputs[i].name, name) == 0) path = config->outputs[i].path;
  }
  for (size_t i = 0; i < config->data[split].count; i++) {
    const sn_model_source *source = &config->data[split].sources[i];
    if (strcmp(source->name, name) != 0 || source->path == NULL) continue;
    path = source->path;
    lengths = source->lengths;
  }
  if (out_lengths != NULL) *out_lengths = lengths;
  return path;
}
