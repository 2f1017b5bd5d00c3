/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/loaded.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/precision.h"
#include "tools/sennit/task.h"

/* The model file it was trained with: for the batch (rows predict alike in any) and for where data
 * lies. One that only a newer version reads does no harm here. */
static void read_config(loaded *l) {
  const sn_named_text *text = sn_checkpoint_text(l->checkpoint, "config");
  l->batch = 64;
  if (text == NULL) return;
  sn_status_free(sn_model_config_read(text->text, text->length, l->path, &l->config));
  if (l->config != NULL) l->batch = l->config->train.batch;
}

/* Where the model file says that test data lies, when it does: files that hold all splits. */
static void move_to_test(const sn_model_config *config, sn_field *f) {
  char name[80];
  size_t length = strlen(f->name), end = strlen(".label");
  if (length >= sizeof name) return;
  snprintf(name, sizeof name, "%s", f->name);
  if (length > end && strcmp(name + length - end, ".label") == 0) name[length - end] = '\0';
  for (size_t i = 0; i < config->data[SN_CONFIG_SPLIT_TEST].count; i++) {
    const sn_model_source *source = &config->data[SN_CONFIG_SPLIT_TEST].sources[i];
    if (strcmp(source->name, name) != 0) continue;
    f->path = source->path;
    if (source->lengths != NULL) f->lengths = source->lengths;
  }
  if (f->role == SN_FIELD_NEXT && config->data[SN_CONFIG_SPLIT_TEST].count > 0)
    f->path = config->data[SN_CONFIG_SPLIT_TEST].sources[0].path; /* the stream's */
}

static sn_status open_data(const arg_set *args, bool labels, ui_state *ui, loaded *l) {
  const char *const *files;
  size_t n_files = args_texts(args, "--data", &files);
  size_t all = sn_preparation_field_count(l->preparation), n = 0;
  sn_field *fields = sn__calloc(2 * all + 1, sizeof *fields);
  if (fields == NULL) return sn_status_out_of_memory();
  sn_field *test = fields + all;
  for (size_t i = 0; i < all; i++) {
    const sn_field *f = sn_preparation_field(l->preparation, i);
    if (!labels && f->role != SN_FIELD_INPUT) continue;
    fields[n] = test[n] = *f;
    if (l->config != NULL) move_to_test(l->config, &test[n]);
    n++;
  }
  bool split = l->config != NULL && l->config->data[SN_CONFIG_SPLIT_TEST].count > 0;
  sn_status status = SN_OK;
  if (split) {
    status = sn_dataset_open(files, n_files, test, n, &l->data);
    if (status == SN_OK)
      ui_line(ui, "%s", "reading the datasets that the model file has under data.test");
  }
  if (!split || sn_status_code(status) == SN_CODE_NOT_FOUND) {
    sn_status_free(status);
    status = sn_dataset_open(files, n_files, fields, n, &l->data);
  }
  sn__free(fields);
  return status;
}

/* Largest batches are not looked up: room grows as they come. */
static sn_status make_trainer(loaded *l) {
  sn_extent batch = {"batch", l->batch};
  sn_trainer_options options = {
      .struct_size = sizeof options,
      .topology = l->topology,
      .optimizer = {.struct_size = sizeof options.optimizer, .kind = SN_SGD},
      .placement = {.struct_size = sizeof options.placement,
                    .pins = l->pins.items,
                    .n_pins = l->pins.count},
      .extents = &batch,
      .n_extents = 1,
  };
  SN_TRY(sn_trainer_create(l->graph, &options, &l->trainer));
  return save_read_weights(l->checkpoint, l->path, sn_trainer_store(l->trainer));
}

sn_status loaded_open(const arg_set *args, bool labels, ui_state *ui, loaded *out) {
  *out = (loaded){.path = NULL};
  const int precision = args_choice(args, "--precision", -1);
  if (precision >= 0) SN_TRY(precision_check((sn_config_precision)precision));
  SN_TRY(task_topology(args, &out->topology));
  const char *placement = args_text(args, "--placement");
  if (placement != NULL) SN_TRY(pins_from_file(&out->pins, placement));
  SN_TRY(pins_check(&out->pins, out->topology));
  SN_TRY(save_open(args_text(args, "--checkpoint"), &out->path, &out->checkpoint));
  SN_TRY(save_read_model(out->checkpoint, out->path, &out->graph, &out->preparation));
  if (precision >= 0) precision_set(out->graph, (sn_config_precision)precision);
  precision_note(out->graph, out->topology);
  read_config(out);
  SN_TRY(open_data(args, labels, ui, out));
  SN_TRY(sn_dataset_check(out->data, out->preparation, task_warn, ui));
  return make_trainer(out);
}

void loaded_free(loaded *l) {
  sn_trainer_free(l->trainer);
  sn_dataset_free(l->data);
  sn_preparation_free(l->preparation);
  sn_graph_free(l->graph);
  sn_checkpoint_free(l->checkpoint);
  sn_model_config_free(l->config);
  pins_free(&l->pins);
  sn_topology_free(l->topology);
  sn__free(l->path);
  *l = (loaded){.path = NULL};
}

evaluate_options loaded_pass(loaded *l, ui_state *ui, const char *title) {
  return (evaluate_options){.trainer = l->trainer,
                            .preparation = l->preparation,
                            .dataset = l->data,
                            .n_rows = sn_dataset_rows(l->data),
                            .batch = l->batch,
                            .ui = ui,
                            .title = title};
}
