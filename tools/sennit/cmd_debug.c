/* SPDX-License-Identifier: Apache-2.0 */
/* sennit debug: one training step of chosen rows, written whole. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/bind.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/h5_out.h"
#include "tools/sennit/one_step.h"
#include "tools/sennit/task.h"

/* "/activations/strokes/lstm/..." */
static sn_status put(h5_out *file, const char *group, const char *name, const char *part,
                     sn_dtype dtype, sn_shape shape, const void *data) {
  char *path = sn__format("/%s/%s%s", group, name, part);
  if (path == NULL) return sn_status_out_of_memory();
  sn_status status = h5_out_tensor(file, path, dtype, shape, data);
  sn__free(path);
  return status;
}

static sn_status put_inputs(h5_out *file, const one_step *step) {
  SN_TRY(h5_out_group(file, "/inputs"));
  for (size_t i = 0; i < step->n_feeds; i++) {
    const sn_feed *f = &step->feeds[i];
    const char *name = sn_value_name(f->value);
    sn_shape shape = one_step_shape(step, f->value);
    bool ragged = f->offsets != NULL;
    SN_TRY(put(file, "inputs", name, ragged ? "/values" : "", sn_value_dtype(f->value), shape,
               f->data));
    if (ragged)
      SN_TRY(put(file, "inputs", name, "/offsets", SN_I64, (sn_shape){1, {step->rows + 1}},
                 f->offsets));
  }
  return SN_OK;
}

static sn_status put_variables(h5_out *file, const char *group, const sn_store *store) {
  SN_TRY(h5_out_group(file, group));
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *v = sn_store_at(store, i);
    if (v->owner != NULL) continue;
    void *data = sn__alloc(v->bytes + 1);
    if (data == NULL) return sn_status_out_of_memory();
    sn_status status = sn_store_read(store, v->name, data, v->bytes);
    if (status == SN_OK) status = put(file, group, v->name, "", v->dtype, v->shape, data);
    sn__free(data);
    SN_TRY(status);
  }
  return SN_OK;
}

static sn_status put_fetches(h5_out *file, const one_step *step, const char *group, size_t first,
                             size_t count) {
  SN_TRY(h5_out_group(file, group));
  for (size_t i = first; i < first + count; i++)
    SN_TRY(put(file, group, step->names[i], "", sn_value_dtype(step->values[i]),
               one_step_shape(step, step->values[i]), step->fetches[i].data));
  return SN_OK;
}

static sn_status put_losses(h5_out *file, const one_step *step) {
  SN_TRY(h5_out_group(file, "/loss"));
  for (size_t l = 0; l < sn_graph_loss_count(step->model); l++) {
    sn_loss_info loss = sn_graph_loss(step->model, l);
    double mean = one_step_loss(step, l);
    SN_TRY(put(file, "loss", loss.name, "", SN_F64, (sn_shape){0, {0}}, &mean));
  }
  return SN_OK;
}

static sn_status write_step(const char *path, one_step *step) {
  h5_out *file = NULL;
  SN_TRY(h5_out_create(path, &file));
  sn_status status = put_inputs(file, step);
  if (status == SN_OK) status = put_variables(file, "variables", step->store);
  if (status == SN_OK) status = one_step_run(step);
  if (status == SN_OK) status = put_fetches(file, step, "activations", 0, step->n_activations);
  if (status == SN_OK) status = put_losses(file, step);
  if (status == SN_OK)
    status = put_fetches(file, step, "gradients", step->n_activations, step->n_gradients);
  if (status == SN_OK) status = put_variables(file, "updated", step->store);
  if (status == SN_OK) status = h5_out_finish(file);
  h5_out_free(file);
  return status;
}

static void say_done(ui_state *ui, const char *path, const one_step *step) {
  ui_line(ui, "%s: one step of %lld rows: %zu activations, %zu gradients", path,
          (long long)step->rows, step->n_activations, step->n_gradients);
  for (size_t l = 0; l < sn_graph_loss_count(step->model); l++)
    ui_line(ui, "loss %s %.9g", sn_graph_loss(step->model, l).name, one_step_loss(step, l));
}

static sn_status run(const arg_set *args, ui_state *ui, const task *t, const sn_batch *batch) {
  one_step step = {.model = t->graph};
  bind_set bind = {.graph = NULL};
  sn_status status = bind_create(t->graph, t->preparation, t->data, true, &bind);
  if (status == SN_OK) status = one_step_open(t, &bind, batch, &step);
  const char *init = args_text(args, "--init"), *out = args_text(args, "--out");
  if (status == SN_OK && init != NULL) status = task_init_weights(init, step.store, ui);
  if (status == SN_OK) status = write_step(out, &step);
  if (status == SN_OK) say_done(ui, out, &step);
  one_step_close(&step);
  bind_free(&bind);
  return status;
}

/* A loader of just these rows, in order. */
static sn_status open_rows(const arg_set *args, const task *t, sn_loader **out_loader) {
  int64_t from = 0, to = 0, rows = sn_dataset_rows(t->data);
  args_range(args, "--rows", &from, &to);
  if (to > rows)
    return sn_status_make(SN_CODE_CONFIG,
                          "--rows %lld:%lld: the data has %lld rows; give A:B with B at most %lld",
                          (long long)from, (long long)to, (long long)rows, (long long)rows);
  int64_t *numbers = sn__alloc((size_t)(to - from) * sizeof *numbers);
  if (numbers == NULL) return sn_status_out_of_memory();
  for (int64_t i = from; i < to; i++)
    numbers[i - from] = i;
  sn_loader_options options = {.struct_size = sizeof options, .batch = to - from};
  sn_status status =
      sn_loader_create(t->data, t->preparation, numbers, to - from, &options, out_loader);
  if (status == SN_OK) status = sn_loader_start(*out_loader, 0, 0);
  sn__free(numbers);
  return status;
}

static sn_status make(const arg_set *args, ui_state *ui, task *t) {
  SN_TRY(task_begin(args, t));
  SN_TRY(task_open(t));
  SN_TRY(task_prepare(t, NULL));
  SN_TRY(task_check(t, ui));
  SN_TRY(task_build(t));
  sn_loader *loader = NULL;
  const sn_batch *batch = NULL;
  sn_status status = open_rows(args, t, &loader);
  if (status == SN_OK) status = sn_loader_next(loader, &batch);
  if (status == SN_OK) status = run(args, ui, t, batch);
  sn_loader_free(loader);
  return status;
}

sn_status cmd_debug(const arg_set *args) {
  ui_state ui;
  ui_init(&ui, false);
  task t;
  sn_status status = make(args, &ui, &t);
  task_free(&t);
  return status;
}
