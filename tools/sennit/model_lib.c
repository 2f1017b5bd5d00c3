/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/model_lib.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/lib_facts.h"

struct model_lib {
  void *handle;
  const sn_model_v1 *model;
  char *path;
};

/* dlopen() looks in the library path unless there is a slash; a name alone means a file here. */
static char *file_path(const char *path) {
  return strchr(path, '/') != NULL ? sn__strdup(path) : sn__format("./%s", path);
}

/* dlerror() may hold several lines or repeat the path; the first line will do. */
static sn_status load_error(const char *path) {
  const char *words = dlerror();
  if (words == NULL) words = "cannot be loaded";
  size_t length = strlen(path);
  if (strncmp(words, path, length) == 0 && words[length] == ':') words += length + 1;
  while (*words == ' ')
    words++;
  return sn_status_make(SN_CODE_CONFIG, "model library %s: %.*s; build it with cc -shared -fPIC",
                        path, (int)strcspn(words, "\n"), words);
}

static sn_status check_model(const char *path, const sn_model_v1 *model) {
  if (model == NULL)
    return sn_status_make(SN_CODE_CONFIG,
                          "model library %s has no symbol '%s'; define it as models/model.h shows",
                          path, SN_MODEL_SYMBOL);
  if (model->struct_size < sizeof *model)
    return sn_status_make(SN_CODE_CONFIG,
                          "model library %s: its description is %zu bytes, not %zu; build it "
                          "against this version's headers",
                          path, model->struct_size, sizeof *model);
  if (model->abi != SN_MODEL_ABI)
    return sn_status_make(
        SN_CODE_CONFIG,
        "model library %s was built for ABI %d and this sennit has %d; build it again", path,
        model->abi, SN_MODEL_ABI);
  if (model->build == NULL)
    return sn_status_make(SN_CODE_CONFIG, "model library %s has no build function; give one", path);
  return SN_OK;
}

sn_status model_lib_open(const char *path, model_lib **out_library) {
  model_lib *library = sn__calloc(1, sizeof *library);
  if (library == NULL) return sn_status_out_of_memory();
  library->path = file_path(path);
  if (library->path == NULL) {
    model_lib_free(library);
    return sn_status_out_of_memory();
  }
  library->handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
  sn_status status = library->handle == NULL ? load_error(library->path) : SN_OK;
  if (status == SN_OK) {
    library->model = dlsym(library->handle, SN_MODEL_SYMBOL);
    status = check_model(library->path, library->model);
  }
  if (status != SN_OK) {
    model_lib_free(library);
    return status;
  }
  *out_library = library;
  return SN_OK;
}

/* Never unloaded: statuses and graphs may point into it. */
void model_lib_free(model_lib *library) {
  if (library == NULL) return;
  sn__free(library->path);
  sn__free(library);
}

sn_status model_lib_build(const model_lib *library, const char *file, sn_graph *graph) {
  lib_facts facts;
  SN_TRY(lib_facts_read(file, &facts));
  sn_status status = library->model->build(graph, &facts.facts);
  lib_facts_free(&facts);
  /* What the graph kept comes first: a model may well answer with less. */
  sn_status kept = sn_graph_status(graph);
  if (kept != SN_OK) {
    sn_status_free(status);
    status = kept;
  }
  if (status == SN_OK && sn_graph_loss_count(graph) == 0)
    status = sn_status_make(SN_CODE_CONFIG, "it has no loss; add one, such as "
                                            "sn_softmax_cross_entropy(g, logits, labels)");
  if (status == SN_OK && sn_graph_output_count(graph) == 0)
    status = sn_status_make(SN_CODE_CONFIG, "it has no output; name one with sn_output()");
  return sn_status_context(status, "model '%s' of %s",
                           library->model->name != NULL ? library->model->name : "", library->path);
}

/* ---- fields -------------------------------------------------------------------------------- */

static const sn_model_input *config_input(const sn_model_config *config, const char *name) {
  for (size_t i = 0; i < config->input_count; i++)
    if (strcmp(config->inputs[i].name, name) == 0) return &config->inputs[i];
  return NULL;
}

static const sn_model_output *config_output(const sn_model_config *config, const char *name) {
  for (size_t i = 0; i < config->output_count; i++)
    if (strcmp(config->outputs[i].name, name) == 0) return &config->outputs[i];
  return NULL;
}

static bool same(sn_value a, sn_value b) {
  return a.index != 0 && a.index == b.index;
}

/* The loss that takes this input as labels; its weights tell `out_weights`. */
static bool loss_of(const sn_graph *graph, sn_value input, sn_loss_info *out_loss,
                    bool *out_weights) {
  for (size_t i = 0; i < sn_graph_loss_count(graph); i++) {
    *out_loss = sn_graph_loss(graph, i);
    *out_weights = same(out_loss->weights, input);
    if (*out_weights || same(out_loss->label, input)) return true;
  }
  *out_weights = false;
  return false;
}

static bool is_offsets(const sn_shape *shape) {
  return shape->rank == 1 && sn_dim_is_symbolic(shape->dims[0]) &&
         sn_dim_addend(shape->dims[0]) != 0;
}

static bool is_ragged(const sn_shape *shape) {
  return shape->rank > 0 && sn_dim_is_symbolic(shape->dims[0]) &&
         sn_dim_symbol(shape->dims[0]) != SN_SYMBOL_BATCH && sn_dim_addend(shape->dims[0]) == 0;
}

/* What the graph alone says of an input. */
static void field_of_value(const sn_graph *graph, sn_value value, sn_field *f) {
  sn_shape shape = sn_value_shape(value);
  sn_loss_info loss;
  bool weights;
  bool number = sn_dtype_is_float(sn_value_dtype(value));
  bool label = loss_of(graph, value, &loss, &weights) && !weights;
  f->name = sn_value_name(value);
  f->dtype = sn_value_dtype(value);
  if (is_ragged(&shape)) {
    f->kind = SN_FIELD_SEQUENCE;
    f->ids = !number;
    f->normalize = number && !label;
  } else if (label) {
    f->role = !number                                               ? SN_FIELD_CLASS
              : strncmp(loss.op, "sigmoid", strlen("sigmoid")) == 0 ? SN_FIELD_MULTILABEL
                                                                    : SN_FIELD_TARGET;
    f->normalize = f->role == SN_FIELD_TARGET;
  } else {
    f->kind = number ? SN_FIELD_DENSE : SN_FIELD_CATEGORY;
    f->ids = !number;
    f->normalize = number && !weights;
  }
}

/* What the config adds. */
static void field_of_config(const sn_model_config *config, sn_config_split split, sn_field *f) {
  const sn_model_input *in = config_input(config, f->name);
  const sn_model_output *out = config_output(config, f->name);
  if (in != NULL) {
    const char *path = sn_model_config_source(config, split, f->name, &f->lengths);
    if (path != NULL) f->path = path;
    if (in->kind == SN_CONFIG_KIND_SET) f->kind = SN_FIELD_SET;
    if (in->normalize == SN_CONFIG_NORMALIZE_NONE && in->kind != SN_CONFIG_KIND_CATEGORY)
      f->normalize = false;
  }
  if (out == NULL) return;
  const char *path = sn_model_config_source(config, split, f->name, NULL);
  if (path != NULL) f->path = path;
  if (f->role == SN_FIELD_TARGET) f->normalize = out->normalize == SN_CONFIG_NORMALIZE_STANDARD;
  f->missing = out->missing;
  f->classes = (const char *const *)out->labels.items;
  f->n_classes = out->labels.count;
  f->balanced = out->class_weights.mode == SN_CONFIG_CLASS_WEIGHTS_BALANCED;
  f->class_weights = out->class_weights.items;
  f->class_weight_names = (const char *const *)out->class_weights.names;
  f->n_class_weights = out->class_weights.count;
}

/* Inputs "<label>.weights" of a loss are filled by the loader, from missing labels and class
 * weights; they are no dataset. */
static bool loader_fills(const sn_graph *graph, sn_value value) {
  sn_loss_info loss;
  bool weights;
  if (!loss_of(graph, value, &loss, &weights) || !weights) return false;
  const char *name = sn_value_name(value);
  size_t length = strlen(name), end = strlen(".weights");
  return length > end && strcmp(name + length - end, ".weights") == 0;
}

sn_status graph_fields_make(const sn_graph *graph, const sn_model_config *config,
                            sn_config_split split, graph_fields *out) {
  size_t n = sn_graph_input_count(graph);
  *out = (graph_fields){.items = sn__calloc(n + 1, sizeof *out->items),
                        .paths = sn__calloc(n + 1, sizeof *out->paths)};
  if (out->items == NULL || out->paths == NULL) {
    graph_fields_free(out);
    return sn_status_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) {
    sn_value value = sn_graph_input(graph, i);
    sn_shape shape = sn_value_shape(value);
    if (shape.rank == 0 || is_offsets(&shape) || loader_fills(graph, value)) continue;
    sn_field *f = &out->items[out->count];
    field_of_value(graph, value, f);
    out->paths[out->count] = sn__format("/%s", f->name);
    if (out->paths[out->count] == NULL) {
      graph_fields_free(out);
      return sn_status_out_of_memory();
    }
    f->path = out->paths[out->count++];
    field_of_config(config, split, f);
  }
  return SN_OK;
}

void graph_fields_free(graph_fields *fields) {
  for (size_t i = 0; fields->paths != NULL && i < fields->count; i++)
    sn__free(fields->paths[i]);
  sn__free(fields->paths);
  sn__free(fields->items);
  *fields = (graph_fields){NULL, 0, NULL};
}

static int64_t features_of(const sn_shape *shape) {
  int64_t features = 1;
  for (int32_t d = 1; d < shape->rank; d++)
    features *= shape->dims[d];
  return features;
}

sn_status graph_fields_check(const sn_graph *graph, const sn_preparation *preparation) {
  for (size_t i = 0; i < sn_preparation_field_count(preparation); i++) {
    const sn_field *f = sn_preparation_field(preparation, i);
    const sn_field_facts *facts = sn_preparation_facts(preparation, i);
    sn_value value = sn_graph_find_input(graph, f->name);
    if (!sn_value_ok(value)) continue;
    sn_shape shape = sn_value_shape(value);
    int64_t takes = features_of(&shape), has = facts->features > 0 ? facts->features : 1;
    if (takes != has)
      return sn_status_make(SN_CODE_DATA,
                            "input '%s' of the model takes %lld features and %s has %lld; change "
                            "one of them",
                            f->name, (long long)takes, f->path, (long long)has);
    for (size_t l = 0; f->role == SN_FIELD_CLASS && l < sn_graph_loss_count(graph); l++) {
      sn_loss_info loss = sn_graph_loss(graph, l);
      sn_shape logits = sn_value_shape(loss.prediction);
      if (loss.label.index == value.index && logits.rank == 2 && logits.dims[1] < facts->classes)
        return sn_status_make(SN_CODE_DATA,
                              "'%s' has %lld classes and the model tells only %lld apart; give "
                              "it more units",
                              f->path, (long long)facts->classes, (long long)logits.dims[1]);
    }
  }
  return SN_OK;
}
