/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a placement. */
#include "placement/exact_jobs.h"

#include <string.h>

#include "core/alloc.h"
#include "placement/flow_simulate.h"

/* ---- making and freeing --------------------------------------------------------------------- */

/* Added edges: a pair that two queues decide, at most this many. */
enum { ROOM_FOR_ADDED = 16 };

sn_status sn__jobs_create(const sn__flow *f, sn__jobs **out_jobs) {
  sn__jobs *x = sn__calloc(1, sizeof *x);
  if (x == NULL) return sn_status_out_of_memory();
  x->flow = f;
  x->n_queues = f->n_devices * (f->copies_queue ? 2 : 1);
  size_t most = (size_t)f->n_tasks + f->n_reads + f->n_orders + 1;
  size_t edges = 2 * ((size_t)f->n_reads + f->n_orders) + ROOM_FOR_ADDED * most;
  if (edges > UINT32_MAX / 2) {
    sn__free(x);
    return sn_status_out_of_memory();
  }
  x->most = (uint32_t)most;
  x->most_edges = (uint32_t)edges;
  x->jobs = sn__calloc(most, sizeof *x->jobs);
  x->edges = sn__calloc(edges, sizeof *x->edges);
  x->first_after = sn__calloc(most + 1, sizeof *x->first_after);
  x->after = sn__calloc(edges, sizeof *x->after);
  x->first_before = sn__calloc(most + 1, sizeof *x->first_before);
  x->before = sn__calloc(edges, sizeof *x->before);
  x->order = sn__calloc(most, sizeof *x->order);
  x->first_on = sn__calloc((size_t)x->n_queues + 1, sizeof *x->first_on);
  x->on = sn__calloc(most, sizeof *x->on);
  x->scratch = sn__calloc(most + 1, sizeof *x->scratch);
  x->copy_job = sn__calloc((size_t)f->n_values * (size_t)f->n_devices + 1, sizeof *x->copy_job);
  x->least_ns = sn__calloc((size_t)f->n_tasks + 1, sizeof *x->least_ns);
  if (!x->jobs || !x->edges || !x->first_after || !x->after || !x->first_before || !x->before ||
      !x->order || !x->first_on || !x->on || !x->scratch || !x->copy_job || !x->least_ns) {
    sn__jobs_free(x);
    return sn_status_out_of_memory();
  }
  sn__flow_least_ns(f, x->least_ns);
  *out_jobs = x;
  return SN_OK;
}

void sn__jobs_free(sn__jobs *x) {
  if (x == NULL) return;
  void *const arrays[] = {x->jobs,         x->edges,   x->first_after, x->after,
                          x->first_before, x->before,  x->order,       x->first_on,
                          x->on,           x->scratch, x->copy_job,    x->least_ns};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
  sn__free(x);
}

/* ---- the jobs of a placement ---------------------------------------------------------------- */

bool sn__jobs_join(sn__jobs *x, uint32_t before, uint32_t after) {
  if (x->n_edges == x->most_edges) return false;
  x->edges[x->n_edges++] = (sn__job_edge){before, after};
  return true;
}

/* The copy of a value to a device. */
static uint32_t copy_to(sn__jobs *x, const int *devices, uint32_t value, int to) {
  const sn__flow *f = x->flow;
  uint32_t *slot = &x->copy_job[(size_t)value * (size_t)f->n_devices + (size_t)to];
  if (*slot != 0) return *slot - 1;
  uint32_t j = x->n++, maker = f->value_task[value];
  x->jobs[j] = (sn__job){.ns = sn__flow_copy_ns(f, value, devices[f->value_class[value]], to),
                         .queue = f->copies_queue ? f->n_devices + to : -1,
                         .task = SN__FLOW_NONE,
                         .value = value};
  *slot = j + 1;
  if (maker != SN__FLOW_NONE) (void)sn__jobs_join(x, maker, j);
  return j;
}

static void forget_copies(sn__jobs *x) {
  const sn__flow *f = x->flow;
  memset(x->copy_job, 0, (size_t)f->n_values * (size_t)f->n_devices * sizeof *x->copy_job);
}

/* Whether it is settled what an order waits for. */
static bool is_settled(const sn__flow *f, const sn__flow_order *order, const int *devices) {
  if (order->reads == 0) return true;
  if (devices[f->task_class[order->before]] < 0) return false;
  for (uint32_t v = order->reads - 1; v != SN__FLOW_NONE; v = f->value_base[v])
    if (devices[f->value_class[v]] < 0) return false;
  return true;
}

void sn__jobs_make(sn__jobs *x, const int *devices) {
  const sn__flow *f = x->flow;
  forget_copies(x);
  x->n = f->n_tasks;
  x->n_edges = 0;
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    int d = devices[f->task_class[t]];
    int64_t ns = d < 0 ? x->least_ns[t] : f->task_ns[(size_t)t * (size_t)f->n_devices + (size_t)d];
    x->jobs[t] =
        (sn__job){.ns = f->task_view[t] ? 0 : ns, .queue = f->task_view[t] ? -1 : d, .task = t};
  }
  for (uint32_t i = 0; i < f->n_reads; i++) {
    uint32_t v = f->reads[i].value, t = f->reads[i].task, maker = f->value_task[v];
    int to = devices[f->task_class[t]], from = devices[f->value_class[v]];
    if (to >= 0 && from >= 0 && from != to)
      (void)sn__jobs_join(x, copy_to(x, devices, v, to), t);
    else if (maker != SN__FLOW_NONE)
      (void)sn__jobs_join(x, maker, t);
  }
  for (uint32_t o = 0; o < f->n_orders; o++) {
    uint32_t v = 0, j = f->orders[o].before;
    int to = 0;
    if (!is_settled(f, &f->orders[o], devices)) continue;
    if (sn__flow_order_copy(f, &f->orders[o], devices, &v, &to)) j = copy_to(x, devices, v, to);
    (void)sn__jobs_join(x, j, f->orders[o].after);
  }
  x->n_real = x->n_edges;
}

/* ---- who waits for whom --------------------------------------------------------------------- */

/* first[k + 1] counts; afterwards first[k] is where k's begin. */
static void add_up(uint32_t *first, uint32_t n) {
  for (uint32_t k = 0; k < n; k++)
    first[k + 1] += first[k];
}

static void set_back(uint32_t *first, uint32_t n) {
  for (uint32_t k = n; k > 0; k--)
    first[k] = first[k - 1];
  first[0] = 0;
}

static void link_queues(sn__jobs *x) {
  memset(x->first_on, 0, ((size_t)x->n_queues + 1) * sizeof *x->first_on);
  for (uint32_t j = 0; j < x->n; j++)
    if (x->jobs[j].queue >= 0) x->first_on[x->jobs[j].queue + 1]++;
  add_up(x->first_on, (uint32_t)x->n_queues);
  for (uint32_t i = 0; i < x->n; i++) { /* in topological order: heads are nearly sorted */
    uint32_t j = x->order[i];
    if (x->jobs[j].queue >= 0) x->on[x->first_on[x->jobs[j].queue]++] = j;
  }
  set_back(x->first_on, (uint32_t)x->n_queues);
}

bool sn__jobs_link(sn__jobs *x) {
  size_t size = ((size_t)x->n + 1) * sizeof *x->first_after;
  memset(x->first_after, 0, size);
  memset(x->first_before, 0, size);
  for (uint32_t e = 0; e < x->n_edges; e++) {
    x->first_after[x->edges[e].before + 1]++;
    x->first_before[x->edges[e].after + 1]++;
  }
  add_up(x->first_after, x->n);
  add_up(x->first_before, x->n);
  for (uint32_t e = 0; e < x->n_edges; e++) {
    x->after[x->first_after[x->edges[e].before]++] = x->edges[e].after;
    x->before[x->first_before[x->edges[e].after]++] = x->edges[e].before;
  }
  set_back(x->first_after, x->n);
  set_back(x->first_before, x->n);
  uint32_t n = 0;
  for (uint32_t j = 0; j < x->n; j++) {
    x->scratch[j] = x->first_before[j + 1] - x->first_before[j];
    if (x->scratch[j] == 0) x->order[n++] = j;
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = x->order[i];
    for (uint32_t e = x->first_after[j]; e < x->first_after[j + 1]; e++)
      if (--x->scratch[x->after[e]] == 0) x->order[n++] = x->after[e];
  }
  if (n < x->n) return false;
  link_queues(x);
  return true;
}

int64_t sn__jobs_paths(sn__jobs *x) {
  int64_t longest = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    sn__job *j = &x->jobs[x->order[i]];
    uint32_t at = x->order[i];
    for (uint32_t e = x->first_before[at]; e < x->first_before[at + 1]; e++) {
      const sn__job *b = &x->jobs[x->before[e]];
      if (b->head + b->ns > j->head) j->head = b->head + b->ns;
    }
  }
  for (uint32_t i = x->n; i-- > 0;) {
    sn__job *j = &x->jobs[x->order[i]];
    uint32_t at = x->order[i];
    for (uint32_t e = x->first_after[at]; e < x->first_after[at + 1]; e++) {
      const sn__job *a = &x->jobs[x->after[e]];
      if (a->ns + a->tail > j->tail) j->tail = a->ns + a->tail;
    }
    if (j->head + j->ns + j->tail > longest) longest = j->head + j->ns + j->tail;
  }
  return longest;
}
