/* SPDX-License-Identifier: Apache-2.0 */
/* List schedules of a placement problem: HEFT (Topcuoglu et al. 2002), PEFT (Arabnejad and Barbosa
 * 2014) and earliest task first (Hwang et al. 1989) with memory, as Baechi's m-ETF. The first task
 * of a class decides for the class. */
#include <string.h>

#include "core/alloc.h"
#include "placement/makespan_impl.h"

typedef struct list {
  sn__search *s;
  const sn__flow *f;
  size_t nd;
  sn__list_rule rule;
  const int64_t *order;
  int64_t *rank;  /* [n_tasks] */
  int64_t *oct;   /* [n_tasks * n_devices] PEFT's table of optimistic remainders */
  uint32_t *heap; /* [n_tasks] available tasks, the most urgent on top */
  uint32_t n_heap;
  uint32_t *waits; /* [n_tasks] */
  int64_t *end;    /* [n_tasks] */
  int64_t *avail;  /* [n_devices] */
  uint64_t *held;  /* [n_devices] class_bytes placed there */
  int *devices;    /* [n_classes] -1: not yet */
  int64_t *start;
} list;

static int64_t ns_of(const list *l, uint32_t t, int d) {
  return l->f->task_ns[(size_t)t * l->nd + (size_t)d];
}

/* A task's time as an average over the devices that can run it. */
static int64_t mean_ns(const list *l, uint32_t t) {
  int64_t sum = 0, n = 0;
  for (int d = 0; d < l->f->n_devices; d++) {
    if (ns_of(l, t, d) == SN__FLOW_NEVER) continue;
    sum += ns_of(l, t, d) / (int64_t)l->nd;
    n++;
  }
  return n == 0 ? 0 : sum * (int64_t)l->nd / n;
}

/* A copy as an average over pairs, the same device twice being one of them. */
static int64_t mean_copy(const list *l, uint32_t v) {
  const sn__flow *f = l->f;
  int64_t sum = 0;
  for (int k = 0; k < f->n_links; k++)
    sum += f->copy_ns[(size_t)v * (size_t)f->n_links + (size_t)k] / f->n_links;
  return sum / (int64_t)l->nd * ((int64_t)l->nd - 1);
}

/* Rank upwards: mean time and the longest of what comes after. */
static void rank_up(list *l) {
  const sn__flow *f = l->f;
  for (uint32_t i = f->n_tasks; i-- > 0;) {
    uint32_t t = f->topological[i];
    int64_t after = 0;
    for (uint32_t o = f->first_output[t]; o < f->first_output[t + 1]; o++) {
      uint32_t v = f->outputs[o];
      int64_t copy = mean_copy(l, v);
      for (uint32_t r = f->first_reader[v]; r < f->first_reader[v + 1]; r++) {
        uint32_t x = f->reads[r].task;
        int64_t rank = l->rank[x] + (f->task_class[x] == f->task_class[t] ? 0 : copy);
        if (rank > after) after = rank;
      }
    }
    for (uint32_t o = f->first_order[t]; o < f->first_order[t + 1]; o++)
      if (l->rank[f->orders[o].after] > after) after = l->rank[f->orders[o].after];
    l->rank[t] = after + mean_ns(l, t);
  }
}

/* PEFT: the best that what comes after can do when t is on d; tasks go by its mean. */
static void fill_oct(list *l) {
  const sn__flow *f = l->f;
  for (uint32_t i = f->n_tasks; i-- > 0;) {
    uint32_t t = f->topological[i];
    int64_t sum = 0;
    for (int d = 0; d < f->n_devices; d++) {
      int64_t most = 0;
      for (uint32_t o = f->first_output[t]; o < f->first_output[t + 1]; o++) {
        uint32_t v = f->outputs[o];
        int64_t copy = mean_copy(l, v);
        for (uint32_t r = f->first_reader[v]; r < f->first_reader[v + 1]; r++) {
          uint32_t x = f->reads[r].task;
          int64_t least = INT64_MAX;
          for (int e = 0; e < f->n_devices; e++) {
            if (ns_of(l, x, e) == SN__FLOW_NEVER) continue;
            int64_t ns = l->oct[(size_t)x * l->nd + (size_t)e] + ns_of(l, x, e) +
                         (e == d || f->task_class[x] == f->task_class[t] ? 0 : copy);
            if (ns < least) least = ns;
          }
          if (least != INT64_MAX && least > most) most = least;
        }
      }
      l->oct[(size_t)t * l->nd + (size_t)d] = most;
      sum += most / (int64_t)l->nd;
    }
    l->rank[t] = sum;
  }
}

/* ---- the tasks that may go next -------------------------------------------------------------- */

static bool sooner(const list *l, uint32_t a, uint32_t b) {
  return l->order[a] != l->order[b] ? l->order[a] > l->order[b] : a < b;
}

static void heap_push(list *l, uint32_t t) {
  uint32_t i = l->n_heap++;
  for (; i > 0 && sooner(l, t, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
    l->heap[i] = l->heap[(i - 1) / 2];
  l->heap[i] = t;
}

static uint32_t heap_pop(list *l) {
  uint32_t top = l->heap[0], last = l->heap[--l->n_heap], i = 0;
  for (;;) {
    uint32_t c = 2 * i + 1;
    if (c >= l->n_heap) break;
    if (c + 1 < l->n_heap && sooner(l, l->heap[c + 1], l->heap[c])) c++;
    if (!sooner(l, l->heap[c], last)) break;
    l->heap[i] = l->heap[c];
    i = c;
  }
  l->heap[i] = last;
  return top;
}

static void settle(list *l, uint32_t t) {
  if (--l->waits[t] == 0) heap_push(l, t);
}

/* ---- placing -------------------------------------------------------------------------------- */

static bool room(const list *l, uint32_t class_, int d) {
  uint64_t limit = l->f->device_bytes[d];
  return limit == 0 || l->held[d] + l->f->class_bytes[class_] <= limit;
}

/* When a task could start on d, everything that it reads being placed. */
static int64_t start_on(const list *l, uint32_t t, int d) {
  const sn__flow *f = l->f;
  int64_t at = f->task_view[t] ? 0 : l->avail[d];
  for (uint32_t i = f->first_input[t]; i < f->first_input[t + 1]; i++) {
    uint32_t v = f->inputs[i], maker = f->value_task[v];
    int home = l->devices[f->value_class[v]];
    int64_t there = (maker == SN__FLOW_NONE ? 0 : l->end[maker]) +
                    (home < 0 ? 0 : sn__flow_copy_ns(f, v, home, d));
    if (there > at) at = there;
  }
  return at;
}

/* The device for a task: its class's, or the one with the least (end, or start for ETF). A class
 * for which no device has room goes where most is left. */
static int choose(const list *l, uint32_t t, int64_t *out_key, int64_t *out_start) {
  const sn__flow *f = l->f;
  uint32_t c = f->task_class[t];
  int best = -1;
  *out_key = INT64_MAX;
  for (int pass = 0; best < 0 && pass < 2; pass++)
    for (int d = 0; d < f->n_devices; d++) {
      if (l->devices[c] >= 0 ? d != l->devices[c] : !sn__allowed(f, c, d)) continue;
      if (pass == 0 && l->devices[c] < 0 && !room(l, c, d)) continue;
      int64_t start = start_on(l, t, d), key = start;
      if (l->rule != SN__LIST_ETF) key += ns_of(l, t, d);
      if (l->rule == SN__LIST_PEFT) key += l->oct[(size_t)t * l->nd + (size_t)d];
      if (pass > 0 && f->device_bytes[d] > 0) /* over its limit already: by how much */
        key = (int64_t)((l->held[d] + f->class_bytes[c] - f->device_bytes[d]) / 2);
      if (key >= *out_key) continue;
      *out_key = key;
      *out_start = start;
      best = d;
    }
  return best;
}

static void place(list *l, uint32_t t, int d, int64_t start) {
  const sn__flow *f = l->f;
  uint32_t c = f->task_class[t];
  if (l->devices[c] < 0) l->held[d] += f->class_bytes[c];
  l->devices[c] = d;
  l->start[t] = start;
  l->end[t] = start + ns_of(l, t, d);
  if (!f->task_view[t]) l->avail[d] = l->end[t];
  for (uint32_t o = f->first_output[t]; o < f->first_output[t + 1]; o++)
    for (uint32_t r = f->first_reader[f->outputs[o]]; r < f->first_reader[f->outputs[o] + 1]; r++)
      settle(l, f->reads[r].task);
  for (uint32_t o = f->first_order[t]; o < f->first_order[t + 1]; o++)
    settle(l, f->orders[o].after);
}

/* Of the most urgent tasks that may go, the one that can start first. */
enum { ETF_LOOK = 64 };

static void next_by_start(list *l) {
  uint32_t look[ETF_LOOK], n = 0, chosen = 0;
  int device = 0;
  int64_t least = INT64_MAX, start = 0;
  for (; n < ETF_LOOK && l->n_heap > 0; n++) {
    int64_t key = 0, at = 0;
    look[n] = heap_pop(l);
    int d = choose(l, look[n], &key, &at);
    if (key >= least) continue;
    least = key;
    start = at;
    device = d;
    chosen = n;
  }
  for (uint32_t i = 0; i < n; i++)
    if (i != chosen) heap_push(l, look[i]);
  place(l, look[chosen], device, start);
}

static void run(list *l) {
  const sn__flow *f = l->f;
  for (uint32_t c = 0; c < f->n_classes; c++) {
    l->devices[c] = f->class_pin[c];
    if (f->class_pin[c] >= 0) l->held[f->class_pin[c]] += f->class_bytes[c];
  }
  for (uint32_t i = 0; i < f->n_reads; i++)
    if (f->value_task[f->reads[i].value] != SN__FLOW_NONE) l->waits[f->reads[i].task]++;
  for (uint32_t i = 0; i < f->n_orders; i++)
    l->waits[f->orders[i].after]++;
  for (uint32_t t = 0; t < f->n_tasks; t++)
    if (l->waits[t] == 0) heap_push(l, t);
  while (l->n_heap > 0) {
    if (l->rule == SN__LIST_ETF) {
      next_by_start(l);
      continue;
    }
    int64_t key = 0, start = 0;
    uint32_t t = heap_pop(l);
    int d = choose(l, t, &key, &start);
    place(l, t, d, start);
  }
  /* Classes without tasks go wherever there is room. */
  for (uint32_t c = 0; c < f->n_classes; c++)
    for (int d = 0; l->devices[c] < 0 && d < f->n_devices; d++)
      if (room(l, c, d) || d + 1 == f->n_devices) {
        l->devices[c] = d;
        l->held[d] += f->class_bytes[c];
      }
}

void sn__list_ranks(sn__search *s, int64_t *out_ranks) {
  list l = {.s = s, .f = s->flow, .nd = (size_t)s->flow->n_devices, .rank = out_ranks};
  rank_up(&l);
}

sn_status sn__list_schedule(sn__search *s, sn__list_rule rule, const int64_t *order,
                            int *out_devices, int64_t *out_start) {
  const sn__flow *f = s->flow;
  size_t nt = (size_t)f->n_tasks + 1, nd = (size_t)f->n_devices;
  list l = {.s = s, .f = f, .nd = nd, .rule = rule, .devices = out_devices, .start = out_start};
  l.rank = sn__calloc(nt, sizeof *l.rank);
  l.oct = rule == SN__LIST_PEFT ? sn__calloc(nt * nd, sizeof *l.oct) : NULL;
  l.heap = sn__calloc(nt, sizeof *l.heap);
  l.waits = sn__calloc(nt, sizeof *l.waits);
  l.end = sn__calloc(nt, sizeof *l.end);
  l.avail = sn__calloc(nd, sizeof *l.avail);
  l.held = sn__calloc(nd, sizeof *l.held);
  sn_status status = SN_OK;
  if (l.rank == NULL || (rule == SN__LIST_PEFT && l.oct == NULL) || l.heap == NULL ||
      l.waits == NULL || l.end == NULL || l.avail == NULL || l.held == NULL) {
    status = sn_status_out_of_memory();
  } else {
    if (rule == SN__LIST_PEFT)
      fill_oct(&l);
    else if (order == NULL)
      rank_up(&l);
    l.order = order != NULL ? order : l.rank;
    run(&l);
  }
  sn__free(l.rank);
  sn__free(l.oct);
  sn__free(l.heap);
  sn__free(l.waits);
  sn__free(l.end);
  sn__free(l.avail);
  sn__free(l.held);
  return status;
}
