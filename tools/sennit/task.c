/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/task.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/costs.h"
#include "tools/sennit/precision.h"

/* ---- options ------------------------------------------------------------------------------- */

static bool in_table(const arg_set *args, const char *name) {
  for (size_t i = 0; i < args->command->row_count; i++)
    if (strcmp(args->command->rows[i].name, name) == 0) return true;
  return false;
}

bool task_has(const arg_set *args, const char *name) {
  return in_table(args, name) && args_given(args, name);
}

const char *task_text(const arg_set *args, const char *name) {
  return task_has(args, name) ? args_text(args, name) : NULL;
}

static size_t texts(const arg_set *args, const char *name, const char *const **out_texts) {
  *out_texts = NULL;
  return task_has(args, name) ? args_texts(args, name, out_texts) : 0;
}

sn_status task_runs_on(const sn_topology *topology) {
  for (int d = 0; d < topology->n_devices; d++)
    if (topology->devices[d].kind == SN_DEVICE_NULL)
      return sn_status_make(SN_CODE_CONFIG,
                            "%s is a device for plans and computes nothing; use cpu:0, or see "
                            "sennit devices for what is here",
                            topology->devices[d].name);
  return SN_OK;
}

sn_status task_topology(const arg_set *args, sn_topology **out_topology) {
  const char *list = task_text(args, "--devices"), *profile = task_text(args, "--profile");
  int threads = task_has(args, "--threads") ? (int)args_int(args, "--threads", 0) : 0;
  SN_TRY(sn_topology_parse(list != NULL ? list : "cpu:0", threads, out_topology));
  bool measures = profile != NULL && profile[strspn(profile, "0123456789")] == '\0';
  if (strcmp(args->command->name, "plan") == 0 && !measures) return SN_OK;
  return task_runs_on(*out_topology);
}

/* Options stand above the file and --set. */
static void options_to_config(const arg_set *args, sn_model_train *train) {
  if (task_has(args, "--epochs")) train->epochs = args_int(args, "--epochs", 0);
  if (task_has(args, "--batch")) train->batch = args_int(args, "--batch", 0);
  if (task_has(args, "--micro-batches"))
    train->micro_batches = args_int(args, "--micro-batches", 0);
  if (task_has(args, "--seed")) train->seed = args_int(args, "--seed", 0);
  if (task_has(args, "--no-shuffle")) train->shuffle = false;
  if (task_has(args, "--valid-fraction"))
    train->valid_fraction = args_number(args, "--valid-fraction", 0);
  if (!task_has(args, "--precision")) return;
  train->precision = (sn_config_precision)args_choice(args, "--precision", 0);
}

/* "a,b+c" as the list of train.recompute, which it stands above. */
static sn_status recompute_to_config(task *t) {
  const char *given = task_text(t->args, "--recompute");
  if (given == NULL) return SN_OK;
  if (strpbrk(given, "\"\\\n") != NULL)
    return sn_status_make(SN_CODE_CONFIG, "--recompute: no module has such a name");
  size_t most = 4 * strlen(given) + 64, used = 0;
  char *text = sn__calloc(most, 1);
  if (text == NULL) return sn_status_out_of_memory();
  used += (size_t)snprintf(text, most, "train.recompute=[\"");
  for (const char *at = given; *at != '\0'; at++)
    used += (size_t)snprintf(text + used, most - used, *at == ',' ? "\", \"" : "%c", *at);
  snprintf(text + used, most - used, "\"]");
  sn_status status = sn_status_context(sn_model_config_set(t->config, text), "--recompute");
  sn__free(text);
  return status;
}

static sn_status read_config(task *t) {
  const char *file = task_text(t->args, "--config");
  SN_TRY(file != NULL ? sn_model_config_load(file, &t->config)
                      : sn_model_config_create(&t->config));
  const char *const *sets;
  size_t n = texts(t->args, "--set", &sets);
  for (size_t i = 0; i < n; i++)
    SN_TRY(sn_model_config_set(t->config, sets[i]));
  SN_TRY(recompute_to_config(t)); /* before the others: what is set by words puts defaults back */
  options_to_config(t->args, &t->config->train);
  bool in_c = task_has(t->args, "--model");
  SN_TRY(sn_model_config_check(t->config, in_c ? SN_CONFIG_MODEL_IN_C : 0));
  if (task_has(t->args, "--pipeline") && t->config->train.micro_batches < 2)
    return sn_status_make(SN_CODE_CONFIG,
                          "--pipeline has nothing to put in line: a batch is one part; add "
                          "--micro-batches 4, or more");
  return precision_check(t->config->train.precision);
}

static sn_status read_pins(task *t) {
  SN_TRY(pins_from_config(&t->pins, t->config));
  const char *file = task_text(t->args, "--placement");
  if (file != NULL) SN_TRY(pins_from_file(&t->pins, file));
  return pins_check(&t->pins, t->topology);
}

/* What is recomputed, as the placement takes it: one word, or a list of modules. */
static sn_status read_recompute(task *t) {
  const sn_config_texts *list = &t->config->train.recompute;
  t->recomputed = sn__calloc(list->count + 1, sizeof *t->recomputed);
  if (t->recomputed == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < list->count; i++) {
    if (strcmp(list->items[i], "auto") == 0) continue;
    bool none = strcmp(list->items[i], "none") == 0;
    t->recompute = none ? SN_RECOMPUTE_NONE : SN_RECOMPUTE_LISTED;
    if (!none) t->recomputed[t->n_recomputed++] = list->items[i];
  }
  return SN_OK;
}

sn_status task_begin(const arg_set *args, task *out) {
  *out = (task){.args = args};
  SN_TRY(read_config(out));
  SN_TRY(costs_check(args));
  SN_TRY(task_topology(args, &out->topology));
  SN_TRY(read_pins(out));
  SN_TRY(read_recompute(out));
  const char *library = task_text(args, "--model");
  return library != NULL ? model_lib_open(library, &out->library) : SN_OK;
}

/* ---- data ---------------------------------------------------------------------------------- */

static sn_status open_dataset(const task *t, sn_config_split split, const char *const *files,
                              size_t n_files, sn_dataset **out_dataset) {
  if (t->library != NULL) {
    graph_fields fields;
    SN_TRY(graph_fields_make(t->graph, t->config, split, &fields));
    sn_status status = sn_dataset_open(files, n_files, fields.items, fields.count, out_dataset);
    graph_fields_free(&fields);
    return status;
  }
  sn_field *fields;
  size_t n_fields;
  SN_TRY(sn_model_fields(t->config, split, &fields, &n_fields));
  sn_status status = sn_dataset_open(files, n_files, fields, n_fields, out_dataset);
  sn_model_fields_free(fields);
  return status;
}

/* Files of their own, or datasets of the training files that the config names for this split. */
static sn_status open_other(const task *t, const char *option, sn_config_split split,
                            sn_dataset **out_dataset) {
  const char *const *files;
  size_t n = texts(t->args, option, &files);
  if (n == 0 && t->config->data[split].count > 0 && in_table(t->args, option))
    n = texts(t->args, "--data", &files);
  return n > 0 ? open_dataset(t, split, files, n, out_dataset) : SN_OK;
}

sn_status task_open(task *t) {
  const char *const *files;
  size_t n = texts(t->args, "--data", &files);
  if (n == 0) return sn_status_make(SN_CODE_CONFIG, "--data is missing; give --data FILE");
  if (t->library != NULL) {
    SN_TRY(sn_graph_create(&t->graph));
    SN_TRY(model_lib_build(t->library, files[0], t->graph));
  }
  SN_TRY(open_dataset(t, SN_CONFIG_SPLIT_TRAIN, files, n, &t->data));
  SN_TRY(open_other(t, "--valid", SN_CONFIG_SPLIT_VALID, &t->valid));
  SN_TRY(open_other(t, "--test", SN_CONFIG_SPLIT_TEST, &t->test));
  const sn_model_train *train = &t->config->train;
  double fraction =
      t->valid != NULL || !in_table(t->args, "--valid-fraction") ? 0 : train->valid_fraction;
  SN_TRY(sn_row_split_create(t->data, fraction, (uint64_t)train->seed, train->stratify, &t->split));
  if (t->split->n_train == 0)
    return sn_status_make(SN_CODE_DATA,
                          "%s%s: no rows to train on; give more data or a smaller "
                          "--valid-fraction",
                          files[0], n > 1 ? " and others" : "");
  return SN_OK;
}

sn_status task_prepare(task *t, sn_preparation *given) {
  if (given != NULL) {
    t->preparation = given;
    return SN_OK;
  }
  return sn_preparation_fit(t->data, t->split->train, t->split->n_train, &t->preparation);
}

void task_warn(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "warning: %s\n", line);
}

sn_status task_check(task *t, ui_state *ui) {
  SN_TRY(sn_dataset_check(t->data, t->preparation, task_warn, ui));
  if (t->valid != NULL) SN_TRY(sn_dataset_check(t->valid, t->preparation, task_warn, ui));
  if (t->test != NULL) SN_TRY(sn_dataset_check(t->test, t->preparation, task_warn, ui));
  return SN_OK;
}

/* ---- what trains --------------------------------------------------------------------------- */

static void raise_extent(task *t, const char *symbol, int64_t count) {
  size_t i = 0;
  while (i < t->n_extents && strcmp(t->symbols[i], symbol) != 0)
    i++;
  if (i == t->n_extents) {
    snprintf(t->symbols[i], sizeof t->symbols[i], "%s", symbol);
    t->extents[i] = (sn_extent){t->symbols[i], 0};
    t->n_extents++;
  }
  if (count > t->extents[i].count) t->extents[i].count = count;
}

sn_status task_extents(task *t, const sn_dataset *dataset, const sn_loader *loader, int64_t epoch,
                       int64_t rows) {
  size_t n = sn_preparation_field_count(t->preparation);
  if (t->extents == NULL) {
    t->extents = sn__calloc(2 * n + 1, sizeof *t->extents);
    t->symbols = sn__calloc(2 * n + 1, sizeof *t->symbols);
    if (t->extents == NULL || t->symbols == NULL) return sn_status_out_of_memory();
  }
  int64_t batch = t->config->train.batch;
  raise_extent(t, "batch", rows < batch ? rows : batch);
  for (size_t i = 0; i < sn_dataset_field_count(dataset); i++) {
    const sn_field *f = sn_dataset_field(dataset, i);
    if (sn_dataset_lengths(dataset, i) == NULL || f->role == SN_FIELD_NEXT) continue;
    int64_t elements, longest;
    SN_TRY(sn_loader_largest(loader, epoch, i, &elements, &longest));
    char symbol[sizeof t->symbols[0]];
    snprintf(symbol, sizeof symbol, "%.256s.elements", f->name);
    raise_extent(t, symbol, elements);
    snprintf(symbol, sizeof symbol, "%.256s.longest", f->name);
    raise_extent(t, symbol, longest);
  }
  return SN_OK;
}

static sn_status make_graph(task *t) {
  if (t->library != NULL) return graph_fields_check(t->graph, t->preparation);
  SN_TRY(sn_graph_create(&t->graph));
  return sn_model_build(t->config, t->preparation, t->graph);
}

static sn_status make_loader(task *t) {
  const sn_model_train *train = &t->config->train;
  sn_loader_options options = {.struct_size = sizeof options,
                               .batch = train->batch,
                               .shuffle = train->shuffle,
                               .seed = (uint64_t)train->seed};
  SN_TRY(sn_loader_create(t->data, t->preparation, t->split->train, t->split->n_train, &options,
                          &t->loader));
  t->batches = sn_loader_batches(t->loader);
  return task_extents(t, t->data, t->loader, 0, t->split->n_train);
}

static sn_pipeline pipeline_of(const task *t) {
  static const char *const words[] = {"gpipe", "1f1b", "zb"};
  const char *given = task_text(t->args, "--pipeline");
  for (int i = 0; given != NULL && i < 3; i++)
    if (strcmp(given, words[i]) == 0) return (sn_pipeline)(SN_PIPELINE_GPIPE + i);
  return SN_PIPELINE_NONE;
}

/* A model written in C may have chosen for itself; an option stands above it. */
static void set_precision(task *t) {
  const sn_config_precision precision = t->config->train.precision;
  if (precision != SN_CONFIG_PRECISION_F32 || task_has(t->args, "--precision"))
    precision_set(t->graph, precision);
  precision_note(t->graph, t->topology);
}

sn_status task_build(task *t) {
  SN_TRY(make_graph(t));
  set_precision(t);
  SN_TRY(make_loader(t));
  const sn_model_train *train = &t->config->train;
  bool spread =
      task_has(t->args, "--objective") && strcmp(args_text(t->args, "--objective"), "spread") == 0;
  t->options = (sn_trainer_options){
      .struct_size = sizeof t->options,
      .topology = t->topology,
      .optimizer = task_optimizer(train, t->batches),
      .micro_batches = train->micro_batches,
      .pipeline = pipeline_of(t),
      .seed = (uint64_t)train->seed,
      .placement = {.struct_size = sizeof t->options.placement,
                    .objective = spread ? SN_OBJECTIVE_SPREAD : SN_OBJECTIVE_TIME,
                    .pins = t->pins.items,
                    .n_pins = t->pins.count,
                    .recompute = t->recompute,
                    .recomputed = t->recomputed,
                    .n_recomputed = t->n_recomputed},
      .extents = t->extents,
      .n_extents = t->n_extents,
  };
  return SN_OK;
}

void task_free(task *t) {
  sn_loader_free(t->loader);
  sn_graph_free(t->graph);
  sn_preparation_free(t->preparation);
  sn_row_split_free(t->split);
  sn_dataset_free(t->test);
  sn_dataset_free(t->valid);
  sn_dataset_free(t->data);
  pins_free(&t->pins);
  sn_topology_free(t->topology);
  model_lib_free(t->library);
  sn_model_config_free(t->config);
  sn__free(t->recomputed);
  sn__free(t->extents);
  sn__free(t->symbols);
  *t = (task){.args = NULL};
}

/* ---- lines --------------------------------------------------------------------------------- */

void task_show_placement(ui_state *ui, const sn_placement *placement) {
  const sn_topology *topology = sn_placement_topology(placement);
  int width = (int)strlen("module");
  for (size_t i = 0; i < sn_placement_module_count(placement); i++) {
    int length = (int)strlen(sn_placement_module_at(placement, i)->path);
    if (length > width) width = length < 40 ? length : 40;
  }
  ui_line(ui, "%-*s  %-8s  %s", width, "module", "device", "cause");
  for (size_t i = 0; i < sn_placement_module_count(placement); i++) {
    const sn_placement_module *m = sn_placement_module_at(placement, i);
    if (*m->path != '\0')
      ui_line(ui, "%-*s  %-8s  %s", width, m->path, topology->devices[m->device].name, m->cause);
  }
  recompute_show(ui, placement);
}
