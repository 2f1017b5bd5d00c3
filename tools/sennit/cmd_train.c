/* SPDX-License-Identifier: Apache-2.0 */
/* sennit train: from data and a model to checkpoints. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/alloc.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/stop.h"
#include "tools/sennit/train.h"

enum { MEASURED_ROWS = 16384 /* of the training rows, for the final report */ };

/* ---- going on from a checkpoint -------------------------------------------------------------- */

static sn_status other_seed(const train_run *run) {
  return sn_status_make(SN_CODE_CONFIG,
                        "seed %lld is not the run's, which is %lld; a run keeps its seed",
                        (long long)run->task.config->train.seed, (long long)run->state.seed);
}

/* State and preparation of the run; the data is not open yet. */
static sn_status read_last(train_run *run, sn_checkpoint *last, sn_preparation **out_preparation) {
  SN_TRY(sn_status_context(save_read_state(last, &run->state), "%s", run->dir.last));
  const sn_model_train *train = &run->task.config->train;
  if (train->seed != run->state.seed) return other_seed(run);
  if (train->epochs != run->state.horizon)
    ui_line(&run->ui,
            "the horizon changes from %lld to %lld epochs, and the schedule with it: not the run "
            "that %lld epochs would have been from the start",
            (long long)run->state.horizon, (long long)train->epochs, (long long)train->epochs);
  run->state.horizon = train->epochs;
  const sn_named_text *text = sn_checkpoint_text(last, "preparation");
  if (text == NULL)
    return sn_status_make(SN_CODE_CORRUPT, "%s holds no preparation; it is not from sennit train",
                          run->dir.last);
  return sn_status_context(sn_preparation_from_json(text->text, text->length, out_preparation),
                           "%s", run->dir.last);
}

/* Weights, slots and step; the model must be the run's. */
static sn_status take_last(train_run *run, sn_checkpoint *last) {
  const sn_named_text *graph = sn_checkpoint_text(last, "graph");
  sn_store *store = sn_trainer_store(run->trainer);
  SN_TRY(save_read_store(last, run->dir.last, store));
  if (graph == NULL || graph->length != strlen(run->texts.graph) ||
      memcmp(graph->text, run->texts.graph, graph->length) != 0)
    return sn_status_make(SN_CODE_CONFIG,
                          "the model is not the one of %s; give the model file it was made with, "
                          "or another --out",
                          run->dir.last);
  if (run->state.n_losses != sn_graph_loss_count(run->task.graph))
    return sn_status_make(SN_CODE_CORRUPT, "%s: its state is of another model", run->dir.last);
  if (run->state.batches != run->task.batches) {
    ui_line(&run->ui, "an epoch has %lld batches and had %lld: going on at the start of epoch %lld",
            (long long)run->task.batches, (long long)run->state.batches,
            (long long)run->state.epoch + 1);
    run->state.batches = run->task.batches;
    run->state.batch = 0;
    for (size_t l = 0; l < run->state.n_losses; l++)
      run->state.sums[l] = run->state.totals[l] = 0;
  }
  sn_store_set_step(store, run->state.step);
  run->loss = run->state.loss;
  run->saved_step = run->state.batch < run->task.batches ? run->state.step : -1;
  ui_line(&run->ui, "resuming after step %lld, epoch %lld, batch %lld", (long long)run->state.step,
          (long long)run->state.epoch, (long long)run->state.batch);
  return run_dir_rewind(&run->dir, run->state.epoch);
}

static sn_status start_new(train_run *run) {
  run->state.seed = run->task.config->train.seed;
  run->state.horizon = run->task.config->train.epochs;
  run->state.batches = run->task.batches;
  const char *init = args_text(run->args, "--init");
  if (init == NULL) return SN_OK;
  return task_init_weights(init, sn_trainer_store(run->trainer), &run->ui);
}

/* ---- putting together ------------------------------------------------------------------------ */

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
  if (last != NULL) SN_TRY(read_last(run, last, &preparation));
  sn_status status = task_open(&run->task);
  if (status != SN_OK) {
    sn_preparation_free(preparation);
    return status;
  }
  SN_TRY(task_prepare(&run->task, preparation));
  SN_TRY(choose_monitor(run));
  SN_TRY(task_check(&run->task, &run->ui));
  SN_TRY(task_build(&run->task));
  SN_TRY(make_trainer(run));
  SN_TRY(check_monitor(run));
  if (last == NULL) SN_TRY(run_state_create(sn_graph_loss_count(run->task.graph), &run->state));
  show_start(run);
  return last != NULL ? take_last(run, last) : start_new(run);
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

static sn_status measure_test(train_run *run, evaluation *out) {
  evaluate_options options = {.trainer = run->trainer,
                              .preparation = run->task.preparation,
                              .dataset = run->task.test,
                              .n_rows = sn_dataset_rows(run->task.test),
                              .batch = run->task.config->train.batch,
                              .ui = &run->ui,
                              .title = "test"};
  return evaluate_run(&options, out);
}

/* The best checkpoint's weights take the last ones' place, which are saved by now. */
static sn_status measure_best(train_run *run, final_report *out) {
  sn_checkpoint *best = NULL;
  SN_TRY(sn_checkpoint_open(run->dir.best, &best));
  sn_status status = save_read_weights(best, run->dir.best, sn_trainer_store(run->trainer));
  sn_checkpoint_free(best);
  SN_TRY(status);
  if (run->task.test != NULL) SN_TRY(measure_test(run, &out->test));
  if (train_validates(run) && run->best.n_outputs == 0) {
    /* Averaged weights stand in the variables already, and the slots hold later ones. */
    const task *t = &run->task;
    bool own = t->valid != NULL;
    evaluate_options options = {.trainer = run->trainer,
                                .preparation = t->preparation,
                                .dataset = own ? t->valid : t->data,
                                .rows = own ? NULL : t->split->valid,
                                .n_rows = own ? sn_dataset_rows(t->valid) : t->split->n_valid,
                                .batch = t->config->train.batch,
                                .ui = &run->ui,
                                .title = "validate"};
    return evaluate_run(&options, &out->valid);
  }
  out->valid = run->best;
  run->best = (evaluation){.outputs = NULL};
  return SN_OK;
}

static sn_status finish(train_run *run, final_report *out) {
  SN_TRY(sn_store_sha256(sn_trainer_store(run->trainer), out->sha256));
  bool best = run->state.best_epoch > 0;
  out->checkpoint = best ? run->dir.best : run->dir.last;
  if (run->stopped) return SN_OK;
  sn_status status = train_measure(run, MEASURED_ROWS, &out->train);
  if (status == SN_OK && best) status = measure_best(run, out);
  if (status == SN_OK && !best && run->task.test != NULL) status = measure_test(run, &out->test);
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
  json_text(&r, r.root, "checkpoint", report->checkpoint);
  json_number(&r, r.root, "peak_rss_mib", peak_rss_mib());
  cJSON *devices = json_list(&r, r.root, "devices");
  const sn_topology *topology = sn_trainer_topology(run->trainer);
  for (int d = 0; d < topology->n_devices; d++)
    json_text(&r, devices, NULL, topology->devices[d].name);
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
  SN_TRY(train_loop(run));
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
