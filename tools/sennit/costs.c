/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/costs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/run/measure.h"
#include "tools/sennit/bind.h"
#include "tools/sennit/stop.h"
#include "tools/sennit/train.h"

enum { WARM_UP = 6, ROUNDS_MOST = 3, STEPS_MOST = 100000 };

/* ---- steps --------------------------------------------------------------------------------- */

/* Steps of the task's model on batches that are read between them, never beside them. */
typedef struct bench {
  task *t;
  ui_state *ui;
  sn_loader *loader;
  bind_set bind;
  sn_trainer *trainer;
  double *losses;
  int64_t epoch;
  const sn_feed *feeds; /* of the batch in hand */
} bench;

static void bench_close(bench *b) {
  bind_free(&b->bind);
  sn_trainer_free(b->trainer);
  sn_loader_free(b->loader);
  sn__free(b->losses);
}

static sn_status bench_open(bench *b) {
  task *t = b->t;
  sn_loader_options options = {.struct_size = sizeof options,
                               .batch = t->config->train.batch,
                               .shuffle = t->config->train.shuffle,
                               .seed = (uint64_t)t->config->train.seed,
                               .threads = -1};
  SN_TRY(sn_loader_create(t->data, t->preparation, t->split->train, t->split->n_train, &options,
                          &b->loader));
  SN_TRY(sn_trainer_create(t->graph, &t->options, &b->trainer));
  const sn_graph *graph = sn_trainer_model(b->trainer);
  b->losses = sn__calloc(sn_graph_loss_count(graph) + 1, sizeof *b->losses);
  if (b->losses == NULL) return sn_status_out_of_memory();
  SN_TRY(bind_create(graph, t->preparation, t->data, true, &b->bind));
  SN_TRY(sn_trainer_reserve(b->trainer, t->extents, t->n_extents));
  return sn_loader_start(b->loader, 0, 0);
}

/* The next batch that has its full rows: a short one at an epoch's end is no measure. */
static sn_status next_batch(bench *b) {
  for (;;) {
    if (stop_signal() != 0) return sn_status_make(SN_CODE_INTERRUPTED, "profile: interrupted");
    const sn_batch *batch = NULL;
    SN_TRY(sn_loader_next(b->loader, &batch));
    if (batch == NULL) {
      SN_TRY(sn_loader_start(b->loader, ++b->epoch, 0));
      SN_TRY(task_extents(b->t, b->t->data, b->loader, b->epoch, b->t->split->n_train));
      SN_TRY(sn_trainer_reserve(b->trainer, b->t->extents, b->t->n_extents));
      continue;
    }
    if (batch->rows < b->t->config->train.batch && b->t->batches > 1) continue;
    return bind_feeds(&b->bind, batch, &b->feeds);
  }
}

static sn_status step(bench *b, double *out_ms) {
  double began = train_now();
  SN_TRY(sn_trainer_step(b->trainer, b->feeds, b->bind.n_inputs, b->losses));
  *out_ms = 1e3 * (train_now() - began);
  return SN_OK;
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* Steps timed from outside, and the batches they were. */
typedef struct timing {
  int64_t steps;
  double *ms;       /* [steps] */
  int64_t *extents; /* [steps * n_symbols] */
  size_t n_symbols;
} timing;

static void timing_free(timing *t) {
  sn__free(t->ms);
  sn__free(t->extents);
  *t = (timing){.steps = 0};
}

static sn_status timing_make(const bench *b, int64_t steps, timing *out) {
  size_t n = sn_plan_symbol_count(sn_trainer_plan(b->trainer));
  *out = (timing){.steps = steps, .n_symbols = n};
  out->ms = sn__calloc((size_t)steps, sizeof *out->ms);
  out->extents = sn__calloc((size_t)steps * n, sizeof *out->extents);
  return out->ms == NULL || out->extents == NULL ? sn_status_out_of_memory() : SN_OK;
}

static sn_status add_record(void *user, const sn_plan *plan, const sn_step_record *record) {
  return sn_measurement_add(user, plan, record);
}

static sn_status note_extents(void *user, const sn_plan *plan, const sn_step_record *record) {
  memcpy(user, record->extents, sn_plan_symbol_count(plan) * sizeof *record->extents);
  return SN_OK;
}

/* Watched steps and steps timed from outside by turns, so that what else the machine does falls on
 * both alike. A timed batch runs once more, for its extents. */
static sn_status two_steps(bench *b, sn_measurement *m, double *out_ms, int64_t *out_extents) {
  double ignored = 0;
  SN_TRY(next_batch(b));
  if (m != NULL) sn_trainer_watch(b->trainer, add_record, m);
  SN_TRY(step(b, &ignored));
  sn_trainer_watch(b->trainer, NULL, NULL);
  SN_TRY(next_batch(b));
  SN_TRY(step(b, out_ms));
  sn_trainer_watch(b->trainer, note_extents, out_extents);
  return step(b, &ignored);
}

/* Costs of the placement that the task's topology leads to now. */
static sn_status measure(bench *b, int64_t steps, sn_measurement *m, int round, timing *out) {
  SN_TRY(bench_open(b));
  SN_TRY(timing_make(b, steps, out));
  char title[48];
  snprintf(title, sizeof title, "profile, round %d", round);
  ui_progress_begin(b->ui, title, steps, "steps");
  sn_status status = SN_OK;
  for (int64_t i = -WARM_UP / 2; i < steps && status == SN_OK; i++) {
    int64_t at = i < 0 ? 0 : i;
    status =
        two_steps(b, i < 0 ? NULL : m, &out->ms[at], out->extents + (size_t)at * out->n_symbols);
    ui_progress(b->ui, at, NULL);
  }
  ui_progress_end(b->ui);
  return status;
}

static bool same_placement(const sn_placement *a, const sn_placement *b) {
  size_t n = sn_placement_module_count(a);
  bool same = n == sn_placement_module_count(b);
  for (size_t i = 0; same && i < n; i++)
    same = sn_placement_module_at(a, i)->device == sn_placement_module_at(b, i)->device;
  return same;
}

/* ---- predicted beside measured --------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *x, int64_t n) {
  qsort(x, (size_t)n, sizeof *x, by_value);
  return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

static sn_status compare(const sn_plan *plan, const timing *t, costs_figures *out) {
  double *predicted = sn__calloc((size_t)t->steps * 2, sizeof *predicted);
  if (predicted == NULL) return sn_status_out_of_memory();
  double *ratio = predicted + t->steps;
  sn_status status = SN_OK;
  for (int64_t i = 0; i < t->steps && status == SN_OK; i++) {
    int64_t ns = 0;
    status = sn_plan_predict(plan, t->extents + (size_t)i * t->n_symbols, NULL, &ns);
    predicted[i] = 1e-6 * (double)ns;
    ratio[i] = t->ms[i] > 0 ? predicted[i] / t->ms[i] : 1;
  }
  if (status == SN_OK) {
    out->steps = t->steps;
    out->measured_ms = median(t->ms, t->steps);
    out->predicted_ms = median(predicted, t->steps);
    out->ratio = median(ratio, t->steps);
    double low = ratio[t->steps / 10], high = ratio[t->steps - 1 - t->steps / 10];
    out->worst = fabs(low - 1) > fabs(high - 1) ? low : high;
  }
  sn__free(predicted);
  return status;
}

/* One placement; *out_same says whether the new costs lead to it again. */
static sn_status measure_round(task *t, ui_state *ui, sn_measurement *m, int64_t steps,
                               sn_profile *profile, costs_figures *out, bool *out_same) {
  bench b = {.t = t, .ui = ui};
  timing timed = {.steps = 0};
  sn_trainer *next = NULL;
  sn_status status = measure(&b, steps, m, ++out->rounds, &timed);
  if (status == SN_OK) status = sn_measurement_write(m, profile);
  sn_topology_set_profile(t->topology, profile);
  if (status == SN_OK) status = sn_trainer_create(t->graph, &t->options, &next);
  if (status == SN_OK) {
    *out_same = same_placement(sn_trainer_placement(b.trainer), sn_trainer_placement(next));
    /* The plan that ran; its topology shares the profile, so it has the new costs. */
    status = compare(sn_trainer_plan(b.trainer), &timed, out);
    const sn_placement_figures *f = sn_placement_figures_of(sn_trainer_placement(next));
    bool several = f->devices_used > 1;
    snprintf(out->alone_device, sizeof out->alone_device, "%s",
             several && f->one_device >= 0 ? t->topology->devices[f->one_device].name : "");
  }
  sn_trainer_free(next);
  timing_free(&timed);
  bench_close(&b);
  return status;
}

/* The plan is judged by costs measured side by side, one device by those it has alone: whichever is
 * faster is taken. The search cannot find that out, a node has one cost in it. */
static void take_faster(task *t, sn_profile *alone, costs_figures *f) {
  if (t->options.placement.objective != SN_OBJECTIVE_TIME) return;
  if (f->alone_measured_ms >= f->measured_ms) return;
  f->alone_taken = true;
  snprintf(t->only_device, sizeof t->only_device, "%s", f->alone_device);
  snprintf(t->only_cause, sizeof t->only_cause,
           "measured: %.3f ms on %s alone, %.3f ms side by side, where devices slow one another",
           f->alone_measured_ms, f->alone_device, f->measured_ms);
  t->options.placement.only_device = t->only_device;
  t->options.placement.only_cause = t->only_cause;
  sn_topology_set_profile(t->topology, alone);
}

/* The device that is best alone, with the others idle. */
static sn_status measure_alone(task *t, ui_state *ui, int64_t steps, const char *device,
                               costs_figures *out) {
  task alone = *t;
  sn_profile *profile = NULL;
  sn_measurement *m = NULL;
  costs_figures figures = {.steps = 0};
  bool same = false;
  int d = sn_topology_find(t->topology, device);
  alone.options.placement.n_pins = 0;
  sn_status status = sn_topology_create(&t->topology->devices[d], 1, &alone.topology);
  alone.options.topology = alone.topology;
  if (status == SN_OK) status = sn_profile_create(&profile);
  if (status == SN_OK) status = sn_measurement_create(&m);
  if (status == SN_OK) sn_topology_set_profile(alone.topology, profile);
  if (status == SN_OK) status = measure_round(&alone, ui, m, steps, profile, &figures, &same);
  if (status == SN_OK) {
    out->alone_measured_ms = figures.measured_ms;
    out->alone_predicted_ms = figures.predicted_ms;
    snprintf(out->alone_device, sizeof out->alone_device, "%s", device);
    take_faster(t, profile, out);
  }
  sn_measurement_free(m);
  sn_profile_free(profile);
  sn_topology_free(alone.topology);
  return status;
}

/* Until the costs lead to the placement that they were measured in. */
static sn_status measure_rounds(task *t, ui_state *ui, int64_t steps, sn_profile *profile,
                                costs_figures *out) {
  sn_measurement *m = NULL;
  SN_TRY(sn_measurement_create(&m));
  sn_topology_set_profile(t->topology, profile); /* empty: all costs are the described ones */
  sn_status status = SN_OK;
  bool same = false;
  while (status == SN_OK && !same && out->rounds < ROUNDS_MOST)
    status = measure_round(t, ui, m, steps, profile, out, &same);
  sn_measurement_free(m);
  if (status == SN_OK && *out->alone_device != '\0' && t->pins.count == 0) {
    char device[SN_DEVICE_NAME_SIZE];
    memcpy(device, out->alone_device, sizeof device);
    status = measure_alone(t, ui, steps, device, out);
  }
  return status;
}

static bool is_number(const char *text) {
  return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

sn_status costs_check(const arg_set *args) {
  const char *what = task_text(args, "--profile");
  if (what == NULL && task_has(args, "--save-profile"))
    return sn_status_make(SN_CODE_CONFIG,
                          "--save-profile without --profile: give --profile N to measure N steps");
  if (what == NULL || !is_number(what)) return SN_OK;
  int64_t steps = strtoll(what, NULL, 10);
  if (strlen(what) <= 6 && steps >= 3 && steps <= STEPS_MOST) return SN_OK;
  return sn_status_make(SN_CODE_CONFIG, "--profile %.40s: measure 3 to %d steps", what, STEPS_MOST);
}

sn_status costs_take(task *t, ui_state *ui, costs_figures *out) {
  *out = (costs_figures){.steps = 0};
  const char *what = task_text(t->args, "--profile");
  const char *save = task_text(t->args, "--save-profile");
  if (what == NULL) return SN_OK;
  sn_profile *profile = NULL;
  sn_status status = SN_OK;
  if (is_number(what)) {
    status = sn_profile_create(&profile);
    if (status == SN_OK) status = measure_rounds(t, ui, strtoll(what, NULL, 10), profile, out);
  } else {
    status = costs_read(what, &profile);
    if (status == SN_OK) sn_topology_set_profile(t->topology, profile);
  }
  if (status == SN_OK && save != NULL) status = costs_write(save, profile);
  sn_profile_free(profile);
  return status;
}

/* ---- telling ------------------------------------------------------------------------------- */

void costs_show(ui_state *ui, const sn_plan *plan, const costs_figures *f) {
  size_t n[SN_COST_SOURCE_COUNT];
  sn_status status = sn_plan_cost_sources(plan, n);
  if (status != SN_OK) {
    sn_status_free(status);
    return;
  }
  if (n[SN_COST_ANALYTIC] == sn_plan_node_count(plan)) {
    ui_line(ui, "costs: described rates, nothing measured (--profile 20 measures 20 steps)");
    return;
  }
  ui_line(ui,
          "costs of %zu nodes: %zu measured, %zu scaled from other shapes, %zu calibrated, %zu "
          "from described rates",
          sn_plan_node_count(plan), n[SN_COST_MEASURED], n[SN_COST_SCALED], n[SN_COST_CALIBRATED],
          n[SN_COST_ANALYTIC]);
  if (f->steps > 0)
    ui_line(ui,
            "profile: %lld steps in each of %d placement(s); another %lld took %.3f ms (median), "
            "predicted %.3f ms (%+.1f %%)",
            (long long)f->steps, f->rounds, (long long)f->steps, f->measured_ms, f->predicted_ms,
            100 * (f->ratio - 1));
  if (f->alone_measured_ms > 0)
    ui_line(ui,
            "%s alone, the others idle: %.3f ms (median), predicted %.3f ms: the devices make "
            "it %.2f times as fast%s",
            f->alone_device, f->alone_measured_ms, f->alone_predicted_ms,
            f->alone_measured_ms / f->measured_ms,
            f->alone_taken ? ", so this one device is taken" : "");
}

sn_status costs_json(json_report *r, cJSON *into, const sn_plan *plan, const costs_figures *f) {
  size_t n[SN_COST_SOURCE_COUNT];
  SN_TRY(sn_plan_cost_sources(plan, n));
  cJSON *o = json_object(r, into, "costs");
  json_int(r, o, "measured", (int64_t)n[SN_COST_MEASURED]);
  json_int(r, o, "scaled", (int64_t)n[SN_COST_SCALED]);
  json_int(r, o, "calibrated", (int64_t)n[SN_COST_CALIBRATED]);
  json_int(r, o, "analytic", (int64_t)n[SN_COST_ANALYTIC]);
  json_number(r, o, "host_ms", 1e-6 * (double)sn_plan_host_ns(plan));
  if (f->steps == 0) return SN_OK;
  json_int(r, o, "steps", f->steps);
  json_int(r, o, "rounds", f->rounds);
  json_number(r, o, "measured_step_ms", f->measured_ms);
  json_number(r, o, "predicted_step_ms", f->predicted_ms);
  json_number(r, o, "ratio", f->ratio);
  json_number(r, o, "worst_ratio", f->worst);
  if (f->alone_measured_ms > 0) {
    json_text(r, o, "alone_device", f->alone_device);
    json_number(r, o, "alone_measured_step_ms", f->alone_measured_ms);
    json_number(r, o, "alone_predicted_step_ms", f->alone_predicted_ms);
    json_bool(r, o, "alone_taken", f->alone_taken);
  }
  return SN_OK;
}
