/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of train, plan and debug ask for, put together: model file or library, data,
 * split, preparation, graph, devices and the trainer's options.
 *
 *     task t;
 *     sn_status status = task_begin(args, &t);            config, devices, pins: opens no data
 *     if (status == SN_OK) status = task_open(&t);        datasets and split
 *     if (status == SN_OK) status = task_prepare(&t, NULL);   fits the preparation
 *     if (status == SN_OK) status = task_check(&t, &ui);  every value, before step 1
 *     if (status == SN_OK) status = task_build(&t);       graph, loader, trainer options
 *     ...
 *     task_free(&t);
 *
 * An option that the command's table does not have counts as not given. */
#ifndef SN_TOOLS_SENNIT_TASK_H
#define SN_TOOLS_SENNIT_TASK_H

#include "io/dataset.h"
#include "models/build.h"
#include "placement/trainer.h"
#include "tools/sennit/args.h"
#include "tools/sennit/json.h"
#include "tools/sennit/model_lib.h"
#include "tools/sennit/pins.h"
#include "tools/sennit/ui.h"

typedef struct task {
  const arg_set *args;
  sn_model_config *config; /* checked; options and --set are in it */
  model_lib *library;      /* NULL unless --model */
  sn_topology *topology;
  pin_list pins; /* the config's, then --placement's */
  sn_recompute recompute;
  const char **recomputed; /* [n_recomputed] entries, borrowed from the config */
  size_t n_recomputed;
  sn_dataset *data;
  sn_dataset *valid; /* NULL: the split's valid rows of `data` validate, if there are any */
  sn_dataset *test;  /* NULL: none */
  sn_row_split *split;
  sn_preparation *preparation;
  sn_graph *graph;
  sn_loader *loader; /* of the training rows */
  int64_t batches;   /* an epoch */
  sn_extent *extents;
  size_t n_extents; /* the largest batch of the first epoch, by symbol */
  char (*symbols)[320];
  char only_device[SN_DEVICE_NAME_SIZE], only_cause[160]; /* what costs_take() may settle */
  sn_trainer_options options;                             /* borrows from the task */
} task;

/* The options that everybody shares, checked; CONFIG mistakes end here, before data is opened. On
 * failure too, task_free() is called for. */
sn_status task_begin(const arg_set *args, task *out);
sn_status task_open(task *t);
/* Fits on the training rows, or takes `given` (a checkpoint's), which the task then owns. */
sn_status task_prepare(task *t, sn_preparation *given);
/* sn_dataset_check of everything; warnings go to standard error. */
sn_status task_check(task *t, ui_state *ui);
sn_status task_build(task *t);
void task_free(task *t);

/* Extents of the largest batches of `loader` in `epoch`: "batch", and for each ragged field
 * "<name>.elements" and "<name>.longest", larger of these and what the task has. For
 * sn_trainer_reserve(). */
sn_status task_extents(task *t, const sn_dataset *dataset, const sn_loader *loader, int64_t epoch,
                       int64_t rows);

/* Text of an option, NULL when it is not given or not in the command's table. */
const char *task_text(const arg_set *args, const char *name);
bool task_has(const arg_set *args, const char *name);

/* Devices and thread count as every command takes them. */
sn_status task_topology(const arg_set *args, sn_topology **out_topology);
/* CONFIG: one of them is only described (null:0) and would leave every number as it was. */
sn_status task_runs_on(const sn_topology *topology);

/* The optimizer of a config, for epochs of so many batches. */
sn_optimizer_options task_optimizer(const sn_model_train *train, int64_t batches);

/* Lines of sn_dataset_check(); `user` is the ui_state. */
void task_warn(void *user, const char *line);

/* Weights by name from a safetensors file (dots for slashes) into the store; prints how many
 * matched. DATA: another shape, or nothing matched. */
sn_status task_init_weights(const char *path, sn_store *store, ui_state *ui);

/* What is recomputed, as JSON: `recompute` {cause, bytes, ms, modules[] {modules, bytes, ms}}, and
 * as lines; nothing where nothing is. (recompute_show.c) */
void recompute_json(json_report *r, cJSON *into, const sn_placement *placement);
void recompute_show(ui_state *ui, const sn_placement *placement);

/* Where modules are: module, device, cause. */
void task_show_placement(ui_state *ui, const sn_placement *placement);

#endif
