/* SPDX-License-Identifier: Apache-2.0 */
/* How recorded times become costs.
 *
 * A node is given the time from when its queue could begin it (the end of the node before, or of
 * what it waited for) to its end: what its queue does for it beside the kernel is in it. Waking a
 * queue that slept until a copy had come is the copy's: wherever it goes, somebody waits for it.
 * What happens before the first node and behind the last is the step's own.
 *
 * Nodes with the same op, shapes and work count as one sample a step, their mean, so that the sum
 * over them is right though each of them differs. Over steps a cost is the mean of the samples
 * without the tenth at each end: a step is a sum of what its nodes take, and medians of parts that
 * now and then take longer add up to less than that. Where work changes from step to step (ragged
 * batches), steps of about the same work make a point. */
#include "core/run/measure.h"

#include <stdlib.h>
#include <string.h>

#include "core/run/run_impl.h"

enum { POINT_SAMPLES = 8 /* of different works that make a point, at least */ };

typedef struct sample {
  double work, ns;
  uint32_t step, nodes;
} sample;

typedef struct series {
  char *op, *shapes, *device;
  sample *samples;
  size_t count, capacity;
} series;

struct sn_measurement {
  series *series;
  size_t count, capacity;
  uint32_t step;
};

sn_status sn_measurement_create(sn_measurement **out_measurement) {
  sn_measurement *m = sn__calloc(1, sizeof *m);
  if (m == NULL) return sn_status_out_of_memory();
  *out_measurement = m;
  return SN_OK;
}

static void free_series(series *s) {
  sn__free(s->op);
  sn__free(s->shapes);
  sn__free(s->device);
  sn__free(s->samples);
}

void sn_measurement_free(sn_measurement *m) {
  if (m == NULL) return;
  for (size_t i = 0; i < m->count; i++)
    free_series(&m->series[i]);
  sn__free(m->series);
  sn__free(m);
}

/* ---- taking in ----------------------------------------------------------------------------- */

static sn_status find_series(sn_measurement *m, const char *op, const char *shapes,
                             const char *device, series **out_series) {
  for (size_t i = 0; i < m->count; i++) {
    series *s = &m->series[i];
    if (strcmp(s->op, op) != 0 || strcmp(s->device, device) != 0 || strcmp(s->shapes, shapes) != 0)
      continue;
    *out_series = s;
    return SN_OK;
  }
  if (!sn__grow((void **)&m->series, &m->capacity, m->count + 1, sizeof *m->series))
    return sn_status_out_of_memory();
  series made = {.op = sn__strdup(op), .shapes = sn__strdup(shapes), .device = sn__strdup(device)};
  if (made.op == NULL || made.shapes == NULL || made.device == NULL) {
    free_series(&made);
    return sn_status_out_of_memory();
  }
  m->series[m->count] = made;
  *out_series = &m->series[m->count++];
  return SN_OK;
}

/* One node's time; with others of this step and work it is one sample. */
static sn_status add_sample(sn_measurement *m, const char *op, const char *shapes,
                            const char *device, double work, double ns) {
  series *s = NULL;
  SN_TRY(find_series(m, op, shapes, device, &s));
  for (size_t i = s->count; i-- > 0 && s->samples[i].step == m->step;) {
    if (s->samples[i].work != work) continue;
    s->samples[i].ns += ns;
    s->samples[i].nodes++;
    return SN_OK;
  }
  if (!sn__grow((void **)&s->samples, &s->capacity, s->count + 1, sizeof *s->samples))
    return sn_status_out_of_memory();
  s->samples[s->count++] = (sample){work, ns, m->step, 1};
  return SN_OK;
}

typedef struct recorded {
  const sn_plan *plan;
  const sn_step_record *record;
  int64_t *ready;  /* [n_tasks] from when its queue could begin it */
  uint32_t *bound; /* [n_tasks] task + 1 of another queue whose end that was; 0: its own queue's */
  double *woken;   /* [n_tasks] of a copy: how long who waited for it took to begin */
} recorded;

static void find_ready(const recorded *r) {
  const sn__schedule *s = r->plan->schedule;
  for (uint32_t t = 0; t < s->n_tasks; t++) {
    const sn__task *task = &s->tasks[t];
    r->ready[t] = r->record->nodes[t].start_ns;
    r->bound[t] = 0;
    bool any = task->position > 0;
    if (any)
      r->ready[t] =
          r->record->nodes[s->queue_tasks[s->queue_first[task->queue] + task->position - 1]]
              .finish_ns;
    for (uint32_t w = task->first_wait; w < task->first_wait + task->n_waits; w++) {
      uint32_t on = s->queue_tasks[s->queue_first[s->waits[w].queue] + s->waits[w].position];
      int64_t end = r->record->nodes[on].finish_ns;
      if (any && end <= r->ready[t]) continue;
      any = true;
      r->ready[t] = end;
      r->bound[t] = on + 1;
    }
  }
}

static bool is_copy(const recorded *r, uint32_t task) {
  return (r->plan->graph->nodes[r->plan->schedule->tasks[task].node].op->flags & SN_OP_COPY) != 0;
}

/* The first who waited for a copy says how long waking takes. */
static void find_woken(const recorded *r) {
  for (uint32_t t = 0; t < r->plan->schedule->n_tasks; t++) {
    if (r->bound[t] == 0 || !is_copy(r, r->bound[t] - 1) || is_copy(r, t)) continue;
    double woken = (double)(r->record->nodes[t].start_ns - r->ready[t]);
    double *at = &r->woken[r->bound[t] - 1];
    if (*at == 0 || woken < *at) *at = woken;
    r->ready[t] = r->record->nodes[t].start_ns;
  }
}

static sn_status add_task(sn_measurement *m, const recorded *r, uint32_t t) {
  const sn_graph *g = r->plan->graph;
  const sn_topology *topology = r->plan->topology;
  uint32_t node = r->plan->schedule->tasks[t].node;
  const sn__node *n = &g->nodes[node];
  char shapes[SN_PROFILE_TEXT_SIZE], device[SN_PROFILE_TEXT_SIZE];
  double ns = (double)(r->record->nodes[t].finish_ns - r->ready[t]);
  if (is_copy(r, t)) {
    size_t bytes = 0;
    if (!sn__value_bytes(g, n->in[0], r->record->extents, &bytes)) return SN_OK;
    sn__profile_link(topology, sn__producer(g, n->in[0])->device, n->device, device);
    return add_sample(m, SN__PROFILE_COPY, SN__PROFILE_COPY, device, (double)bytes,
                      ns + r->woken[t]);
  }
  sn__cost work;
  SN_TRY(sn__node_work(g, r->record->extents, node, &work));
  const sn_device_desc *desc = &topology->devices[n->device];
  sn__profile_shapes(g, node, shapes);
  sn__profile_device(desc, device);
  return add_sample(m, n->op->name, shapes, device, sn__profile_work(&work, desc), ns);
}

static sn_status add_host(sn_measurement *m, const recorded *r) {
  int64_t first = INT64_MAX, last = 0;
  for (uint32_t t = 0; t < r->plan->schedule->n_tasks; t++) {
    if (r->record->nodes[t].start_ns < first) first = r->record->nodes[t].start_ns;
    if (r->record->nodes[t].finish_ns > last) last = r->record->nodes[t].finish_ns;
  }
  if (last == 0) return SN_OK;
  double ns = (double)(first - r->record->began_ns) + (double)(r->record->ended_ns - last);
  return add_sample(m, SN__PROFILE_STEP, SN__PROFILE_STEP, SN__PROFILE_STEP, 0, ns);
}

sn_status sn_measurement_add(sn_measurement *m, const sn_plan *plan, const sn_step_record *record) {
  uint32_t n = plan->schedule->n_tasks;
  sn__arena scratch = {NULL};
  recorded r = {.plan = plan, .record = record};
  r.ready = sn__arena_alloc(&scratch, ((size_t)n + 1) * sizeof *r.ready);
  r.bound = sn__arena_alloc(&scratch, ((size_t)n + 1) * sizeof *r.bound);
  r.woken = sn__arena_alloc(&scratch, ((size_t)n + 1) * sizeof *r.woken);
  sn_status status =
      r.ready == NULL || r.bound == NULL || r.woken == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) {
    find_ready(&r);
    find_woken(&r);
  }
  for (uint32_t t = 0; status == SN_OK && t < n; t++)
    status = add_task(m, &r, t);
  if (status == SN_OK) status = add_host(m, &r);
  sn__arena_free(&scratch);
  m->step++;
  return status;
}

/* ---- giving out ---------------------------------------------------------------------------- */

static int by_work(const void *a, const void *b) {
  const sample *x = a, *y = b;
  return (x->work > y->work) - (x->work < y->work);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The mean without the tenth at each end. */
static double middle_mean(double *x, size_t n) {
  size_t cut = n < 3 ? 0 : n / 10 > 0 ? n / 10 : 1;
  double sum = 0;
  qsort(x, n, sizeof *x, by_value);
  for (size_t i = cut; i < n - cut; i++)
    sum += x[i];
  return sum / (double)(n - 2 * cut);
}

/* Samples [from, to) as a point; `scratch` has room for them. */
static sn_profile_point make_point(const sample *samples, size_t from, size_t to, double *scratch) {
  sn_profile_point p = {.samples = (int64_t)(to - from)};
  for (size_t i = from; i < to; i++)
    scratch[i - from] = samples[i].work;
  p.work = middle_mean(scratch, to - from);
  for (size_t i = from; i < to; i++)
    scratch[i - from] = samples[i].ns / samples[i].nodes;
  p.ns = middle_mean(scratch, to - from);
  return p;
}

/* Where the point that begins at `from` ends: behind all of the same work, and with enough samples
 * unless it has them of one work alone. */
static size_t point_end(const sample *samples, size_t n, size_t from, size_t least) {
  size_t to = from;
  do {
    double work = samples[to].work;
    while (to < n && samples[to].work == work)
      to++;
  } while (to < n && to - from < least);
  return to;
}

static sn_status write_series(const series *s, sn_profile *profile) {
  sn_profile_point points[SN_PROFILE_POINTS_MOST];
  sample *samples = sn__alloc(s->count * sizeof *samples);
  double *scratch = sn__alloc(s->count * sizeof *scratch);
  sn_status status = samples == NULL || scratch == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) {
    memcpy(samples, s->samples, s->count * sizeof *samples);
    qsort(samples, s->count, sizeof *samples, by_work);
    size_t n = 0, most = SN_PROFILE_POINTS_MOST,
           least = s->count / most + 1 > POINT_SAMPLES ? s->count / most + 1 : POINT_SAMPLES;
    for (size_t from = 0; from < s->count && n < most;) {
      size_t to = point_end(samples, s->count, from, least);
      points[n] = make_point(samples, from, to, scratch);
      if (n == 0 || points[n].work > points[n - 1].work) n++;
      from = to;
    }
    sn_profile_row row = {
        .op = s->op, .shapes = s->shapes, .device = s->device, .n_points = n, .points = points};
    status = sn_profile_put(profile, &row);
  }
  sn__free(samples);
  sn__free(scratch);
  return status;
}

sn_status sn_measurement_write(const sn_measurement *m, sn_profile *profile) {
  for (size_t i = 0; i < m->count; i++)
    SN_TRY(write_series(&m->series[i], profile));
  return SN_OK;
}
