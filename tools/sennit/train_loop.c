/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs and steps, and what happens at their ends. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "tools/sennit/stop.h"
#include "tools/sennit/train.h"

double train_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- measuring ------------------------------------------------------------------------------ */

bool train_validates(const train_run *run) {
  return run->task.valid != NULL || run->task.split->n_valid > 0;
}

static sn_status measure(train_run *run, evaluate_options *options, evaluation *out) {
  average *averaged = NULL;
  sn_store *store = sn_trainer_store(run->trainer);
  options->trainer = run->trainer;
  options->preparation = run->task.preparation;
  options->batch = run->task.config->train.batch;
  options->ui = &run->ui;
  if (!run->final_weights) SN_TRY(average_begin(store, &averaged));
  sn_status status = evaluate_run(options, out);
  return sn_status_join(status, average_end(averaged, store));
}

sn_status train_validate(train_run *run, evaluation *out) {
  evaluate_options options = {.dataset = run->task.valid, .title = "validate"};
  if (options.dataset == NULL) {
    options.dataset = run->task.data;
    options.rows = run->task.split->valid;
    options.n_rows = run->task.split->n_valid;
  } else {
    options.n_rows = sn_dataset_rows(options.dataset);
  }
  return measure(run, &options, out);
}

sn_status train_test(train_run *run, evaluation *out) {
  const sn_dataset *test = run->task.test;
  evaluate_options options = {.dataset = test, .n_rows = sn_dataset_rows(test), .title = "test"};
  return measure(run, &options, out);
}

sn_status train_measure(train_run *run, int64_t most, evaluation *out) {
  const sn_row_split *split = run->task.split;
  int64_t n = split->n_train < most ? split->n_train : most;
  int64_t *rows = sn__alloc((size_t)n * sizeof *rows);
  if (rows == NULL) return sn_status_out_of_memory();
  /* In two parts, so that rows times rows does not overflow. */
  int64_t whole = split->n_train / n, rest = split->n_train % n;
  for (int64_t i = 0; i < n; i++)
    rows[i] = split->train[i * whole + i * rest / n];
  evaluate_options options = {
      .dataset = run->task.data, .rows = rows, .n_rows = n, .title = "measure"};
  sn_status status = measure(run, &options, out);
  sn__free(rows);
  return status;
}

/* ---- one step ------------------------------------------------------------------------------- */

static sn_status note_time(train_run *run, double seconds) {
  enum { MOST = 1 << 22 };
  run->seconds += seconds;
  if (run->n_steps >= MOST) return SN_OK;
  if (!sn__grow((void **)&run->step_seconds, &run->cap_steps, run->n_steps + 1,
                sizeof *run->step_seconds))
    return sn_status_out_of_memory();
  run->step_seconds[run->n_steps++] = seconds;
  return SN_OK;
}

/* Names the step's place and rows, and what is left of the run. */
static sn_status step_failed(const train_run *run, const sn_batch *batch, sn_status status) {
  if (sn_status_code(status) != SN_CODE_NUMERIC) return status;
  char rows[120];
  size_t used = 0;
  rows[0] = '\0';
  for (int64_t r = 0; r < batch->rows && used < 80; r++)
    used += (size_t)snprintf(rows + used, sizeof rows - used, "%s%lld", r > 0 ? ", " : "",
                             (long long)batch->row_numbers[r]);
  bool all = used < 80;
  sn_code code = sn_status_code(status);
  sn_status out = sn_status_make(
      code,
      "epoch %lld, batch %lld (rows %s%s): %s; %s%s; try a lower train.learning_rate or "
      "train.clip_norm=1",
      (long long)run->state.epoch + 1, (long long)batch->index + 1, rows, all ? "" : ", ..",
      sn_status_message(status),
      run->saved_step >= 0 || task_has(run->args, "--resume") ? "the last good checkpoint is "
                                                              : "no checkpoint was written yet",
      run->saved_step >= 0 || task_has(run->args, "--resume") ? run->dir.last : "");
  sn_status_free(status);
  return out;
}

static sn_status one_step(train_run *run, const sn_batch *batch) {
  const sn_feed *feeds;
  run_state *state = &run->state;
  double began = train_now();
  SN_TRY(bind_feeds(&run->bind, batch, &feeds));
  sn_status status = sn_trainer_step(run->trainer, feeds, run->bind.n_inputs, run->losses);
  if (status != SN_OK) return step_failed(run, batch, status);
  SN_TRY(note_time(run, train_now() - began));
  trace_step(&run->trace);
  run->loss = 0;
  for (size_t l = 0; l < state->n_losses; l++) {
    double weight = sn_trainer_loss_weight(run->trainer, l);
    state->sums[l] += run->losses[l] * weight;
    state->totals[l] += weight;
    run->loss += sn_graph_loss(run->bind.graph, l).scale * run->losses[l];
  }
  state->loss = run->loss;
  state->step++;
  state->batch++;
  run->rows += batch->rows;
  return SN_OK;
}

/* ---- saving --------------------------------------------------------------------------------- */

static sn_status save_to(train_run *run, const char *path, const char *measured) {
  return save_write(path, sn_trainer_store(run->trainer), &run->texts, &run->state, measured);
}

static sn_status save_last(train_run *run) {
  if (run->saved_step == run->state.step) return SN_OK;
  SN_TRY(save_to(run, run->dir.last, NULL));
  run->saved_step = run->state.step;
  return SN_OK;
}

static sn_status save_epoch(train_run *run, const char *measured) {
  SN_TRY(save_to(run, run->dir.last, measured));
  run->saved_step = run->state.step;
  char *path = run_dir_epoch(&run->dir, run->state.epoch);
  sn_status status = path == NULL ? sn_status_out_of_memory() : save_to(run, path, measured);
  sn__free(path);
  SN_TRY(status);
  return run_dir_prune(&run->dir, run->task.config->train.keep);
}

static int64_t save_steps(const train_run *run) {
  const sn_config_span *span = &run->task.config->train.save_every;
  double steps = span->epochs ? span->count * (double)run->task.batches : span->count;
  return steps < 1 ? 1 : (int64_t)(steps + 0.5);
}

/* ---- the end of an epoch --------------------------------------------------------------------- */

/* The epoch's own losses, as the steps found them. */
static sn_status epoch_losses(const train_run *run, evaluation *out) {
  const run_state *s = &run->state;
  *out = (evaluation){.n_outputs = run->bind.n_outputs};
  out->outputs = sn__calloc(out->n_outputs + 1, sizeof *out->outputs);
  if (out->outputs == NULL) return sn_status_out_of_memory();
  for (size_t l = 0; l < s->n_losses; l++)
    if (s->totals[l] > 0)
      out->loss += sn_graph_loss(run->bind.graph, l).scale * s->sums[l] / s->totals[l];
  for (size_t i = 0; i < out->n_outputs; i++) {
    const bind_output *b = &run->bind.outputs[i];
    bool known = b->loss >= 0 && s->totals[b->loss] > 0;
    out->outputs[i].name = b->name;
    out->outputs[i].loss = known ? s->sums[b->loss] / s->totals[b->loss] : NAN;
  }
  return SN_OK;
}

/* Whether the monitor says that this epoch is the best so far. */
static bool is_better(const train_run *run, double value) {
  if (!isfinite(value)) return false;
  if (run->state.best_epoch == 0 || !isfinite(run->state.best)) return true;
  const char *measure = strrchr(run->monitor, '.') + 1;
  return metric_smaller_is_better(measure) ? value < run->state.best : value > run->state.best;
}

static sn_status log_epoch(train_run *run, const evaluation *train, double monitor, bool best,
                           double seconds) {
  json_report r;
  SN_TRY(json_create(&r));
  const sn_optimizer_options *o = &run->task.options.optimizer;
  json_int(&r, r.root, "epoch", run->state.epoch);
  json_int(&r, r.root, "step", run->state.step);
  json_number(&r, r.root, "learning_rate",
              sn_schedule_rate(&o->schedule, o->learning_rate, run->state.step - 1));
  json_number(&r, r.root, "seconds", seconds);
  evaluation_json(&r, json_object(&r, r.root, "train"), train);
  if (run->valid.n_outputs > 0) evaluation_json(&r, json_object(&r, r.root, "valid"), &run->valid);
  json_number(&r, r.root, "monitor", monitor);
  json_bool(&r, r.root, "best", best);
  char *text = r.failed ? NULL : cJSON_PrintUnformatted(r.root);
  sn_status status = text == NULL ? sn_status_out_of_memory() : run_dir_log(&run->dir, text);
  cJSON_free(text);
  json_free(&r);
  return status;
}

static sn_status metrics_text(const evaluation *e, char **out_text) {
  *out_text = NULL;
  if (e->n_outputs == 0) return SN_OK;
  json_report r;
  SN_TRY(json_create(&r));
  evaluation_json(&r, r.root, e);
  *out_text = r.failed ? NULL : cJSON_PrintUnformatted(r.root);
  json_free(&r);
  return *out_text != NULL ? SN_OK : sn_status_out_of_memory();
}

static sn_status keep_best(train_run *run, double value, const char *measured) {
  run->state.best = value;
  run->state.best_epoch = run->state.epoch;
  run->state.since_best = 0;
  SN_TRY(save_to(run, run->dir.best, measured));
  evaluation_free(&run->best);
  run->best = run->valid;
  if (run->valid.n_outputs == 0) return SN_OK;
  size_t bytes = run->valid.n_outputs * sizeof *run->valid.outputs;
  run->best.outputs = sn__alloc(bytes);
  if (run->best.outputs == NULL) return sn_status_out_of_memory();
  memcpy(run->best.outputs, run->valid.outputs, bytes);
  return SN_OK;
}

static void show_epoch(train_run *run, const evaluation *train, bool best, double seconds) {
  char words[300], valid[360] = "", time[UI_WORDS];
  if (run->valid.n_outputs > 0)
    snprintf(valid, sizeof valid, "  valid: loss %.4f, %s", run->valid.loss,
             evaluation_words(&run->valid, 1, words, sizeof words));
  ui_line(&run->ui, "epoch %*lld/%lld  loss %.4f%s  %s%s", run->state.horizon > 99 ? 4 : 2,
          (long long)run->state.epoch, (long long)run->state.horizon, train->loss, valid,
          ui_seconds(seconds, time), best ? "  best" : "");
}

static sn_status end_epoch(train_run *run, const evaluation *train, double seconds) {
  run_state *state = &run->state;
  double value = NAN;
  bool on_train = strncmp(run->monitor, "train.", strlen("train.")) == 0;
  evaluation_find(on_train ? train : &run->valid, strchr(run->monitor, '.') + 1, &value);
  state->epoch++;
  state->batch = 0;
  for (size_t l = 0; l < state->n_losses; l++)
    state->sums[l] = state->totals[l] = 0;
  bool best = is_better(run, value);
  if (!best) state->since_best++;
  char *measured = NULL;
  SN_TRY(metrics_text(&run->valid, &measured));
  sn_status status = log_epoch(run, train, value, best, seconds);
  if (status == SN_OK && best) status = keep_best(run, value, measured);
  int64_t every = save_steps(run);
  bool due = every <= run->task.batches || state->step % every < run->task.batches ||
             state->epoch >= state->horizon;
  if (status == SN_OK && due) status = save_epoch(run, measured);
  cJSON_free(measured);
  if (status == SN_OK) show_epoch(run, train, best, seconds);
  return status;
}

/* Measures first: a signal during it leaves the epoch to be ended by a resume. */
static sn_status finish_epoch(train_run *run, double seconds) {
  evaluation train = {.outputs = NULL}, valid = {.outputs = NULL};
  double ignored;
  const char *what = strchr(run->monitor, '.') + 1;
  SN_TRY(epoch_losses(run, &train));
  sn_status status = SN_OK;
  if (strncmp(run->monitor, "train.", strlen("train.")) == 0 &&
      !evaluation_find(&train, what, &ignored)) {
    evaluation_free(&train);
    status = train_measure(run, INT64_MAX, &train);
  }
  if (status == SN_OK && train_validates(run)) status = train_validate(run, &valid);
  if (status == SN_OK) {
    evaluation_free(&run->valid);
    run->valid = valid;
    status = end_epoch(run, &train, seconds);
  }
  evaluation_free(&train);
  return status;
}

/* ---- the loop ------------------------------------------------------------------------------- */

static int64_t limit(const train_run *run, const char *option) {
  return args_given(run->args, option) ? args_int(run->args, option, 0) : INT64_MAX;
}

static sn_status steps_of_epoch(train_run *run) {
  run_state *state = &run->state;
  int64_t steps_most = limit(run, "--steps"), every = save_steps(run);
  sn_loader *loader = run->task.loader;
  SN_TRY(task_extents(&run->task, run->task.data, loader, state->epoch, run->task.split->n_train));
  SN_TRY(sn_trainer_reserve(run->trainer, run->task.extents, run->task.n_extents));
  SN_TRY(sn_loader_start(loader, state->epoch, state->batch));
  char title[48], note[48];
  snprintf(title, sizeof title, "epoch %lld/%lld", (long long)state->epoch + 1,
           (long long)state->horizon);
  ui_progress_begin(&run->ui, title, run->task.batches, "batches");
  sn_status status = SN_OK;
  while (state->batch < run->task.batches && state->step < steps_most && stop_signal() == 0) {
    const sn_batch *batch;
    SN_TRY_GOTO(status, sn_loader_next(loader, &batch), out);
    if (batch == NULL) break;
    SN_TRY_GOTO(status, one_step(run, batch), out);
    snprintf(note, sizeof note, "loss %.4g", run->loss);
    ui_progress(&run->ui, state->batch, note);
    if (state->step % every == 0 && state->batch < run->task.batches)
      SN_TRY_GOTO(status, save_last(run), out);
  }
out:
  ui_progress_end(&run->ui);
  return status;
}

static bool lost_patience(train_run *run) {
  int64_t patience = run->task.config->train.patience;
  if (patience == 0 || run->state.since_best < patience) return false;
  ui_line(&run->ui, "no better %s for %lld epochs: ending early (train.patience)", run->monitor,
          (long long)run->state.since_best);
  return true;
}

/* A signal: the step in hand is done; everything a resume needs goes to last.h5. */
static sn_status obey(train_run *run) {
  SN_TRY(save_last(run));
  run->stopped = true;
  stop_obeyed();
  ui_line(&run->ui, "ended by a signal after step %lld; --resume goes on from %s",
          (long long)run->state.step, run->dir.last);
  return SN_OK;
}

sn_status train_loop(train_run *run) {
  run_state *state = &run->state;
  int64_t epochs = limit(run, "--stop-after"), steps = limit(run, "--steps");
  if (epochs > state->horizon) epochs = state->horizon;
  int64_t rest = (epochs - state->epoch) * run->task.batches - state->batch;
  SN_TRY(trace_open(task_text(run->args, "--trace"), run->trainer,
                    rest < steps - state->step ? rest : steps - state->step, &run->trace));
  while (state->epoch < epochs && (state->step < steps || state->batch >= run->task.batches)) {
    if (state->batch == 0 && lost_patience(run)) break;
    double began = train_now();
    if (state->batch < run->task.batches) SN_TRY(steps_of_epoch(run));
    if (state->batch < run->task.batches) break; /* ended within the epoch */
    sn_status status = finish_epoch(run, train_now() - began);
    if (sn_status_code(status) == SN_CODE_INTERRUPTED && stop_signal() != 0) {
      sn_status_free(status);
      break;
    }
    SN_TRY(status);
    if (stop_signal() != 0) break;
  }
  if (stop_signal() != 0) return obey(run);
  return save_last(run);
}
