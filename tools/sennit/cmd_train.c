/* SPDX-License-Identifier: Apache-2.0 */
/* sennit train: from data and a model to checkpoints. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/alloc.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/stop.h"
#include "tools/sennit/costs.h"
#include "tools/sennit/pipeline_show.h"
#include "tools/sennit/train.h"

enum { MEASURED_ROWS = 4096 /* of the training rows, for the final report */ };

/* ---- putting together ------------------------------------------------------------------------ */

static sn_status start_new(train_run *run) {
  run->state.seed = run->task.config->train.seed;
  run->state.horizon = run->task.config->train.epochs;
  run->state.batches = run->task.batches;
  SN_TRY(train_note_data(run));
  const char *init = args_text(run->args, "--init");
  if (init == NULL) return SN_OK;
  return task_init_weights(init, sn_trainer_store(run->trainer), &run->ui);
}

static int64_t parameters(const sn_store *store, size_t *out_variables) {
  int64_t n = 0;
  *out_variables = 0;
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *v = sn_store_at(store, i);
    if (v->owner != NULL || v->frozen) continue;
    n += (int64_t)(v->bytes / sn_dtype_size(v->dtype));
    ++*out_variables;
  }
  return n;
}

static void show_start(train_run *run) {
  const task *t = &run->task;
  size_t variables;
  int64_t n = parameters(sn_trainer_store(run->trainer), &variables);
  int64_t valid = t->valid != NULL ? sn_dataset_rows(t->valid) : t->split->n_valid;
  ui_line(&run->ui,
          "%lld rows train and %lld validate; %lld batches of %lld an epoch; %lld parameters in "
          "%zu variables",
          (long long)t->split->n_train, (long long)valid, (long long)t->batches,
          (long long)t->config->train.batch, (long long)n, variables);
  ui_line(&run->ui, "%s", "");
  task_show_placement(&run->ui, sn_trainer_placement(run->trainer));
  ui_line(&run->ui, "%s", sn_placement_sentence(sn_trainer_placement(run->trainer)));
  ui_line(&run->ui, "%s", "");
}

/* A metric of the validation needs one; without, the training loss has to do. */
static sn_status choose_monitor(train_run *run) {
  const char *monitor = run->task.config->train.monitor;
  bool on_valid = strncmp(monitor, "valid.", strlen("valid.")) == 0;
  if (on_valid && !train_validates(run)) {
    if (strcmp(monitor, "valid.loss") != 0)
      return sn_status_make(SN_CODE_CONFIG,
                            "monitor %s needs rows to validate on; give --valid or "
                            "--valid-fraction 0.2",
                            monitor);
    ui_line(&run->ui, "%s", "no rows validate: the training loss picks the best checkpoint");
    monitor = "train.loss";
  }
  run->monitor = sn__strdup(monitor);
  return run->monitor != NULL ? SN_OK : sn_status_out_of_memory();
}

/* Outputs of a model in C are known only now. */
static sn_status check_monitor(const train_run *run) {
  const char *what = strchr(run->monitor, '.') + 1;
  if (strcmp(what, "loss") == 0) return SN_OK;
  for (size_t i = 0; i < run->bind.n_outputs; i++) {
    const bind_output *out = &run->bind.outputs[i];
    size_t length = strlen(out->name);
    if (strncmp(what, out->name, length) != 0 || what[length] != '.') continue;
    const char *const *names = metric_names(out->kind);
    for (size_t k = 0; names[k] != NULL; k++)
      if (strcmp(names[k], what + length + 1) == 0) return SN_OK;
    if (strcmp("loss", what + length + 1) == 0) return SN_OK;
  }
  return sn_status_make(SN_CODE_CONFIG,
                        "monitor %s is no measure of the model; use valid.loss or "
                        "valid.OUTPUT.METRIC",
                        run->monitor);
}

static sn_status make_texts(train_run *run) {
  SN_TRY(sn_graph_to_json(run->task.graph, &run->texts.graph));
  SN_TRY(sn_model_config_write(run->task.config, SN_CONFIG_ALL, &run->texts.config));
  return sn_preparation_to_json(run->task.preparation, &run->texts.preparation);
}

static sn_status make_trainer(train_run *run) {
  SN_TRY(sn_trainer_create(run->task.graph, &run->task.options, &run->trainer));
  const sn_graph *graph = sn_trainer_model(run->trainer);
  run->losses = sn__calloc(sn_graph_loss_count(graph) + 1, sizeof *run->losses);
  if (run->losses == NULL) return sn_status_out_of_memory();
  SN_TRY(bind_create(graph, run->task.preparation, run->task.data, true, &run->bind));
  SN_TRY(make_texts(run));
  const char *save = args_text(run->args, "--save-placement");
  return save != NULL ? pins_save(save, sn_trainer_placement(run->trainer)) : SN_OK;
}

static sn_status prepare(train_run *run, sn_checkpoint *last) {
  sn_preparation *preparation = NULL;
  if (last != NULL) SN_TRY(resume_read(run, last, &preparation));
  sn_status status = task_open(&run->task);
  if (status != SN_OK) {
    sn_preparation_free(preparation);
    return status;
  }
  SN_TRY(task_prepare(&run->task, preparation));
  SN_TRY(choose_monitor(run));
  SN_TRY(task_check(&run->task, &run->ui));
  SN_TRY(task_build(&run->task));
  costs_figures costs;
  SN_TRY(costs_take(&run->task, &run->ui, &costs));
  SN_TRY(make_trainer(run));
  SN_TRY(check_monitor(run));
  if (last == NULL) SN_TRY(run_state_create(sn_graph_loss_count(run->task.graph), &run->state));
  show_start(run);
  return last != NULL ? resume_take(run, last) : start_new(run);
}

/* ---- the report ------------------------------------------------------------------------------ */

typedef struct final_report {
  evaluation train, valid, test; /* no outputs: not measured */
  char sha256[65];
  const char *checkpoint;
} final_report;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_ms(train_run *run) {
  size_t n = run->n_steps;
  if (n == 0) return NAN;
  qsort(run->step_seconds, n, sizeof *run->step_seconds, by_value);
  double low = run->step_seconds[(n - 1) / 2], high = run->step_seconds[n / 2];
  return 1e3 * (low + high) / 2;
}

static double peak_rss_mib(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024 : NAN;
}

/* The checkpoint's weights take the last ones' place, which are saved by now. */
static sn_status measure_checkpoint(train_run *run, final_report *out) {
  sn_checkpoint *checkpoint = NULL;
  SN_TRY(sn_checkpoint_open(out->checkpoint, &checkpoint));
  sn_status status = save_read_weights(checkpoint, out->checkpoint, sn_trainer_store(run->trainer));
  sn_checkpoint_free(checkpoint);
  SN_TRY(status);
  run->final_weights = true;
  SN_TRY(train_measure(run, MEASURED_ROWS, &out->train));
  if (run->best.n_outputs > 0) {
    out->valid = run->best;
    run->best = (evaluation){.outputs = NULL};
  } else if (train_validates(run)) {
    SN_TRY(train_validate(run, &out->valid));
  }
  return run->task.test != NULL ? train_test(run, &out->test) : SN_OK;
}

static sn_status finish(train_run *run, final_report *out) {
  SN_TRY(sn_store_sha256(sn_trainer_store(run->trainer), out->sha256));
  out->checkpoint = run->state.best_epoch > 0 ? run->dir.best : run->dir.last;
  if (run->stopped) return SN_OK;
  sn_status status = measure_checkpoint(run, out);
  if (sn_status_code(status) != SN_CODE_INTERRUPTED || stop_signal() == 0) return status;
  sn_status_free(status); /* everything is saved: the report is shorter */
  stop_obeyed();
  return SN_OK;
}

static void show_finish(train_run *run, const final_report *report) {
  char step[UI_WORDS], rate[UI_WORDS];
  ui_line(&run->ui, "%s", "");
  evaluation_show(&run->ui, "training", &report->train);
  evaluation_show(&run->ui, "validation", &report->valid);
  evaluation_show(&run->ui, "test", &report->test);
  if (run->n_steps > 0)
    ui_line(&run->ui, "%zu steps, %s each (median), %s", run->n_steps,
            ui_seconds(1e-3 * median_ms(run), step),
            ui_rate((double)run->rows / run->seconds, "samples/s", rate));
  pipeline_show(&run->ui, run->trainer);
  if (run->state.best_epoch > 0)
    ui_line(&run->ui, "checkpoint: %s (epoch %lld, %s %.4f)", report->checkpoint,
            (long long)run->state.best_epoch, run->monitor, run->state.best);
  else
    ui_line(&run->ui, "checkpoint: %s", report->checkpoint);
  ui_line(&run->ui, "next: sennit eval --checkpoint %s --data FILE", report->checkpoint);
}

static sn_status print_json(train_run *run, const final_report *report) {
  json_report r;
  size_t variables;
  SN_TRY(json_create(&r));
  json_int(&r, r.root, "steps", run->state.step);
  json_int(&r, r.root, "epochs", run->state.epoch);
  json_number(&r, r.root, "loss", run->loss);
  if (report->train.n_outputs > 0)
    evaluation_json(&r, json_object(&r, r.root, "train"), &report->train);
  if (report->valid.n_outputs > 0)
    evaluation_json(&r, json_object(&r, r.root, "valid"), &report->valid);
  if (report->test.n_outputs > 0)
    evaluation_json(&r, json_object(&r, r.root, "test"), &report->test);
  json_int(&r, r.root, "best_epoch", run->state.best_epoch);
  json_number(&r, r.root, "samples_per_s",
              run->seconds > 0 ? (double)run->rows / run->seconds : NAN);
  json_number(&r, r.root, "step_ms", median_ms(run));
  json_int(&r, r.root, "params", parameters(sn_trainer_store(run->trainer), &variables));
  json_text(&r, r.root, "params_sha256", report->sha256);
  pipeline_json(&r, r.root, run->trainer);
  recompute_json(&r, r.root, sn_trainer_placement(run->trainer));
  json_text(&r, r.root, "checkpoint", report->checkpoint);
  json_number(&r, r.root, "peak_rss_mib", peak_rss_mib());
  cJSON *devices = json_list(&r, r.root, "devices");
  const sn_topology *topology = sn_trainer_topology(run->trainer);
  for (int d = 0; d < topology->n_devices; d++)
    json_text(&r, devices, NULL, topology->devices[d].name);
  cJSON *memory = json_list(&r, r.root, "device_memory");
  for (int d = 0; d < topology->n_devices; d++) {
    sn_session_memory m = sn_trainer_memory_on(run->trainer, (size_t)d);
    cJSON *o = json_object(&r, memory, NULL);
    json_text(&r, o, "name", topology->devices[d].name);
    json_int(&r, o, "planned_bytes",
             (int64_t)(m.planned_variable_bytes + m.planned_compute_bytes + m.planned_copy_bytes));
    json_int(&r, o, "peak_bytes", (int64_t)m.peak_bytes);
    json_int(&r, o, "limit_bytes", (int64_t)m.limit_bytes);
  }
  sn_status status = json_print(&r, stdout);
  json_free(&r);
  return status;
}

static sn_status train(train_run *run) {
  sn_checkpoint *last = NULL;
  bool resume = args_given(run->args, "--resume");
  if (resume && args_given(run->args, "--init"))
    return sn_status_make(SN_CODE_CONFIG, "--resume and --init are both given; keep one");
  SN_TRY(task_begin(run->args, &run->task));
  SN_TRY(run_dir_open(args_text(run->args, "--out"), resume, &run->dir));
  if (resume) SN_TRY(sn_checkpoint_open(run->dir.last, &last));
  sn_status status = prepare(run, last);
  sn_checkpoint_free(last);
  SN_TRY(status);
  status = train_loop(run);
  SN_TRY(sn_status_join(status, trace_close(&run->trace)));
  final_report report = {.checkpoint = NULL};
  status = finish(run, &report);
  if (status == SN_OK && !run->stopped) show_finish(run, &report);
  if (status == SN_OK && args_given(run->args, "--json")) status = print_json(run, &report);
  evaluation_free(&report.train);
  evaluation_free(&report.valid);
  evaluation_free(&report.test);
  return status;
}

sn_status cmd_train(const arg_set *args) {
  train_run run = {.args = args, .loss = NAN, .saved_step = -1};
  ui_init(&run.ui, args_given(args, "--json"));
  sn_status status = train(&run);
  bind_free(&run.bind);
  sn_trainer_free(run.trainer);
  save_texts_free(&run.texts);
  run_state_free(&run.state);
  evaluation_free(&run.valid);
  evaluation_free(&run.best);
  run_dir_close(&run.dir);
  task_free(&run.task);
  sn__free(run.monitor);
  sn__free(run.losses);
  sn__free(run.step_seconds);
  return status;
}
