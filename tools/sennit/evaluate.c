/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/stop.h"

/* One pass under way. */
typedef struct pass {
  const evaluate_options *o;
  bind_set bind;
  sn_loader *loader;
  size_t n_losses;
  double *losses, *weights; /* of a batch */
  double *sums, *totals;    /* of all */
  metrics **measures;       /* [outputs], some NULL */
  float **predictions;      /* [outputs] */
  size_t *capacities;
  sn_fetch *fetches;
  int64_t rows;
} pass;

static void pass_free(pass *p) {
  for (size_t i = 0; i < p->bind.n_outputs; i++) {
    if (p->measures != NULL) metrics_free(p->measures[i]);
    if (p->predictions != NULL) sn__free(p->predictions[i]);
  }
  sn__free(p->losses);
  sn__free(p->weights);
  sn__free(p->sums);
  sn__free(p->totals);
  sn__free(p->measures);
  sn__free(p->predictions);
  sn__free(p->capacities);
  sn__free(p->fetches);
  sn_loader_free(p->loader);
  bind_free(&p->bind);
}

static sn_status make_measures(pass *p) {
  for (size_t i = 0; i < p->bind.n_outputs; i++) {
    const bind_output *out = &p->bind.outputs[i];
    if (p->o->no_labels || out->field < 0) continue;
    size_t label = (size_t)out->preparation;
    bool values = out->kind == METRIC_VALUES && out->preparation >= 0;
    const double *mean = values ? sn_preparation_mean(p->o->preparation, label) : NULL;
    const double *deviation = values ? sn_preparation_deviation(p->o->preparation, label) : NULL;
    SN_TRY(metrics_create(out->kind, out->width, mean, deviation, &p->measures[i]));
  }
  return SN_OK;
}

static sn_status pass_create(pass *p) {
  const evaluate_options *o = p->o;
  const sn_graph *graph = sn_trainer_model(o->trainer);
  SN_TRY(bind_create(graph, o->preparation, o->dataset, !o->no_labels, &p->bind));
  size_t n = p->bind.n_outputs + 1;
  p->n_losses = sn_graph_loss_count(graph);
  p->losses = sn__calloc(p->n_losses + 1, sizeof *p->losses);
  p->weights = sn__calloc(p->n_losses + 1, sizeof *p->weights);
  p->sums = sn__calloc(p->n_losses + 1, sizeof *p->sums);
  p->totals = sn__calloc(p->n_losses + 1, sizeof *p->totals);
  p->measures = sn__calloc(n, sizeof *p->measures);
  p->predictions = sn__calloc(n, sizeof *p->predictions);
  p->capacities = sn__calloc(n, sizeof *p->capacities);
  p->fetches = sn__calloc(n, sizeof *p->fetches);
  if (p->losses == NULL || p->weights == NULL || p->sums == NULL || p->totals == NULL ||
      p->measures == NULL || p->predictions == NULL || p->capacities == NULL || p->fetches == NULL)
    return sn_status_out_of_memory();
  SN_TRY(make_measures(p));
  sn_loader_options options = {.struct_size = sizeof options, .batch = o->batch};
  return sn_loader_create(o->dataset, o->preparation, o->rows, o->n_rows, &options, &p->loader);
}

static sn_status make_room(pass *p, const sn_batch *batch) {
  for (size_t i = 0; i < p->bind.n_outputs; i++) {
    const bind_output *out = &p->bind.outputs[i];
    if (sn_value_dtype(out->value) != SN_F32)
      return sn_status_make(SN_CODE_UNSUPPORTED, "output '%s' is %s; make it f32", out->name,
                            sn_dtype_name(sn_value_dtype(out->value)));
    size_t count = (size_t)(bind_rows(out, batch) * out->width);
    if (!sn__grow((void **)&p->predictions[i], &p->capacities[i], count + 1, sizeof(float)))
      return sn_status_out_of_memory();
    p->fetches[i] = (sn_fetch){
        .value = out->value, .data = p->predictions[i], .bytes = p->capacities[i] * sizeof(float)};
  }
  return SN_OK;
}

static sn_status measure(pass *p, const sn_batch *batch) {
  for (size_t i = 0; i < p->bind.n_outputs; i++) {
    if (p->measures[i] == NULL) continue;
    const bind_output *out = &p->bind.outputs[i];
    const sn_batch_field *f = &batch->fields[out->field];
    sn_dtype dtype = sn_dataset_field(p->o->dataset, (size_t)out->field)->dtype;
    SN_TRY(sn_status_context(metrics_add(p->measures[i], bind_rows(out, batch), p->predictions[i],
                                         f->data, dtype, f->weights),
                             "output '%s'", out->name));
  }
  return SN_OK;
}

static sn_status one_batch(pass *p, const sn_batch *batch) {
  const sn_feed *feeds;
  bool losses = !p->o->no_labels;
  SN_TRY(bind_feeds(&p->bind, batch, &feeds));
  SN_TRY(make_room(p, batch));
  SN_TRY(sn_trainer_evaluate(p->o->trainer, feeds, p->bind.n_inputs, p->fetches, p->bind.n_outputs,
                             losses ? p->losses : NULL, losses ? p->weights : NULL));
  for (size_t l = 0; losses && l < p->n_losses; l++) {
    p->sums[l] += p->losses[l] * p->weights[l];
    p->totals[l] += p->weights[l];
  }
  if (losses) SN_TRY(measure(p, batch));
  p->rows += batch->rows;
  if (p->o->take == NULL) return SN_OK;
  return p->o->take(p->o->user, &p->bind, batch, (const float *const *)p->predictions);
}

static double loss_of(const pass *p, size_t l) {
  return p->totals[l] > 0 ? p->sums[l] / p->totals[l] : NAN;
}

static sn_status results(const pass *p, evaluation *out) {
  *out = (evaluation){.rows = p->rows, .n_outputs = p->bind.n_outputs};
  out->outputs = sn__calloc(out->n_outputs + 1, sizeof *out->outputs);
  if (out->outputs == NULL) return sn_status_out_of_memory();
  const sn_graph *graph = sn_trainer_model(p->o->trainer);
  bool any = false;
  for (size_t l = 0; l < p->n_losses; l++) {
    if (!(p->totals[l] > 0)) continue;
    out->loss += sn_graph_loss(graph, l).scale * loss_of(p, l);
    any = true;
  }
  if (!any) out->loss = NAN;
  for (size_t i = 0; i < out->n_outputs; i++) {
    const bind_output *b = &p->bind.outputs[i];
    evaluated_output *e = &out->outputs[i];
    e->name = b->name;
    e->loss = b->loss >= 0 ? loss_of(p, (size_t)b->loss) : NAN;
    if (p->measures[i] != NULL) e->n_values = metrics_values(p->measures[i], e->values);
  }
  return SN_OK;
}

static sn_status go_through(pass *p) {
  const evaluate_options *o = p->o;
  int64_t batches = sn_loader_batches(p->loader);
  SN_TRY(sn_loader_start(p->loader, 0, 0));
  if (o->ui != NULL) ui_progress_begin(o->ui, o->title, batches, "batches");
  sn_status status = SN_OK;
  for (int64_t done = 0; status == SN_OK; done++) {
    const sn_batch *batch;
    status = sn_loader_next(p->loader, &batch);
    if (status != SN_OK || batch == NULL) break;
    if (stop_signal() != 0)
      status = sn_status_make(SN_CODE_INTERRUPTED, "asked to end by a signal");
    else
      status = one_batch(p, batch);
    if (o->ui != NULL) ui_progress(o->ui, done + 1, NULL);
  }
  if (o->ui != NULL) ui_progress_end(o->ui);
  return status;
}

sn_status evaluate_run(const evaluate_options *options, evaluation *out) {
  pass p = {.o = options};
  sn_status status = pass_create(&p);
  if (status == SN_OK) status = go_through(&p);
  if (status == SN_OK) status = results(&p, out);
  pass_free(&p);
  return status;
}

void evaluation_free(evaluation *e) {
  sn__free(e->outputs);
  *e = (evaluation){.outputs = NULL};
}

/* ---- looking ------------------------------------------------------------------------------- */

bool evaluation_find(const evaluation *e, const char *name, double *out_value) {
  *out_value = e->loss;
  if (strcmp(name, "loss") == 0) return true;
  for (size_t i = 0; i < e->n_outputs; i++) {
    const evaluated_output *o = &e->outputs[i];
    size_t length = strlen(o->name);
    if (strncmp(name, o->name, length) != 0 || name[length] != '.') continue;
    const char *what = name + length + 1;
    *out_value = o->loss;
    if (strcmp(what, "loss") == 0) return true;
    for (size_t k = 0; k < o->n_values; k++) {
      *out_value = o->values[k].value;
      if (strcmp(what, o->values[k].name) == 0) return true;
    }
  }
  return false;
}

void evaluation_json(json_report *report, cJSON *into, const evaluation *e) {
  json_number(report, into, "loss", e->loss);
  for (size_t i = 0; i < e->n_outputs; i++) {
    const evaluated_output *o = &e->outputs[i];
    cJSON *output = json_object(report, into, o->name);
    for (size_t k = 0; k < o->n_values; k++)
      json_number(report, output, o->values[k].name, o->values[k].value);
    json_number(report, output, "loss", o->loss);
  }
}

const char *evaluation_words(const evaluation *e, size_t measures, char *buffer, size_t size) {
  size_t used = 0;
  buffer[0] = '\0';
  for (size_t i = 0; i < e->n_outputs; i++) {
    const evaluated_output *o = &e->outputs[i];
    for (size_t k = 0; k < o->n_values && k < measures && used < size; k++) {
      int n =
          snprintf(buffer + used, size - used, "%s%s%s%s %.4f", used > 0 ? ", " : "",
                   k == 0 ? o->name : "", k == 0 ? " " : "", o->values[k].name, o->values[k].value);
      used += n > 0 ? (size_t)n : 0;
    }
  }
  return buffer;
}

void evaluation_show(ui_state *ui, const char *title, const evaluation *e) {
  for (size_t i = 0; i < e->n_outputs; i++) {
    evaluation one = {.n_outputs = 1, .outputs = &e->outputs[i]};
    char words[400];
    ui_line(ui, "%-10s %s, loss %.4f", title, evaluation_words(&one, METRICS_MOST, words, 400),
            e->outputs[i].loss);
  }
}
