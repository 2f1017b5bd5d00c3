/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated annealing over places and priorities, in integers.
 *
 * How much worse a plan may be is drawn before it is simulated, so that the simulation can stop as
 * soon as it is seen to be worse than that. Half of the moves look at the critical path of the plan
 * as it is: what waited for its device, and what waited for a copy. */
#include <string.h>

#include "core/alloc.h"
#include "placement/makespan_impl.h"

enum {
  TABLE = 1024,     /* entries of the table of losses */
  CLUSTER_MOST = 16 /* classes that move together */
};

typedef struct change {
  uint32_t what; /* class or task */
  int64_t was;
} change;

/* One link of the critical path: `after` started when `before` had ended, or what it made was
 * there. */
typedef struct link {
  uint32_t before, after;
  bool queue; /* `after` waited for the device, not for what `before` made */
} link;

typedef struct annealing {
  sn__search *s;
  const sn__flow *f;
  int *devices;
  int64_t *priorities;
  int64_t cost;
  sn__trace now, trial;
  link *path;
  uint32_t n_path;
  bool stale; /* path is of an earlier plan */
  sn__flow_history *history;
  int64_t *class_ns; /* [n_classes * n_devices] */
  int64_t *load;     /* [n_devices] */
  change places[CLUSTER_MOST], order[2];
  uint32_t n_places, n_order;
  int32_t loss[TABLE]; /* -ln((i + 1/2) / TABLE) in 1/65536 */
} annealing;

/* log2 of x > 0 in 1/65536, by squaring. */
static int32_t log2_q16(uint32_t x) {
  int32_t whole = 31 - __builtin_clz(x);
  uint64_t m = (uint64_t)x << (31 - whole); /* [2^31, 2^32) */
  int32_t result = whole << 16;
  for (int bit = 15; bit >= 0; bit--) {
    m = (m * m) >> 31;
    if (m >= (uint64_t)1 << 32) {
      m >>= 1;
      result |= 1 << bit;
    }
  }
  return result;
}

static void fill_losses(annealing *a) {
  for (uint32_t i = 0; i < TABLE; i++) {
    int64_t log2 = log2_q16(2 * TABLE) - log2_q16(2 * i + 1);
    a->loss[i] = (int32_t)((log2 * 45426) >> 16); /* ln 2 */
  }
}

static int64_t drawn_loss(annealing *a, int64_t temperature) {
  int64_t x = a->loss[sn__draw(a->s, TABLE)];
  if (temperature >= (int64_t)1 << 40) return (temperature >> 16) * x;
  return (temperature * x) >> 16;
}

/* ---- the critical path ---------------------------------------------------------------------- */

/* What held a task up: the input that was there last, or its device. SN__FLOW_NONE: nothing. */
static uint32_t held_by(annealing *a, uint32_t t, bool *out_queue) {
  const sn__flow *f = a->f;
  int d = a->devices[f->task_class[t]];
  int64_t latest = 0;
  uint32_t by = SN__FLOW_NONE;
  for (uint32_t i = f->first_input[t]; i < f->first_input[t + 1]; i++) {
    uint32_t v = f->inputs[i], maker = f->value_task[v];
    if (maker == SN__FLOW_NONE) continue;
    int64_t there = a->now.end[maker] + sn__flow_copy_ns(f, v, a->devices[f->value_class[v]], d);
    if (there < latest || (there == latest && by != SN__FLOW_NONE)) continue;
    latest = there;
    by = maker;
  }
  *out_queue = false;
  if (f->task_view[t]) return by;
  uint32_t previous = a->now.previous[t];
  if (previous == SN__FLOW_NONE || a->now.end[previous] < a->now.start[t]) return by;
  /* The device was busy until then; the input may have come at that very moment. */
  if (by != SN__FLOW_NONE && latest >= a->now.start[t] && sn__draw(a->s, 2) == 0) return by;
  *out_queue = true;
  return previous;
}

static void find_path(annealing *a) {
  const sn__flow *f = a->f;
  uint32_t t = 0;
  for (uint32_t i = 1; i < f->n_tasks; i++)
    if (a->now.end[i] > a->now.end[t]) t = i;
  a->n_path = 0;
  while (a->n_path < f->n_tasks) {
    bool queue = false;
    uint32_t before = held_by(a, t, &queue);
    if (before == SN__FLOW_NONE) break;
    a->path[a->n_path++] = (link){before, t, queue};
    t = before;
  }
  a->stale = false;
}

/* ---- moves ---------------------------------------------------------------------------------- */

static void shift_class(annealing *a, uint32_t c, int d) {
  const int64_t *ns = &a->class_ns[(size_t)c * (size_t)a->f->n_devices];
  a->load[a->devices[c]] -= ns[a->devices[c]];
  a->load[d] += ns[d];
  a->devices[c] = d;
}

static void put_class(annealing *a, uint32_t c, int d) {
  if (a->n_places == CLUSTER_MOST || a->devices[c] == d || !sn__allowed(a->f, c, d)) return;
  a->places[a->n_places++] = (change){c, a->devices[c]};
  shift_class(a, c, d);
}

static void put_priority(annealing *a, uint32_t t, int64_t priority) {
  if (a->n_order == 2 || a->priorities[t] == priority) return;
  a->order[a->n_order++] = (change){t, a->priorities[t]};
  a->priorities[t] = priority;
}

static void undo(annealing *a) {
  while (a->n_places > 0) {
    change *c = &a->places[--a->n_places];
    shift_class(a, c->what, (int)c->was);
  }
  while (a->n_order > 0) {
    change *c = &a->order[--a->n_order];
    a->priorities[c->what] = c->was;
  }
}

static int other_device(annealing *a, int d) {
  int e = (int)sn__draw(a->s, (uint32_t)a->f->n_devices - 1);
  return e >= d ? e + 1 : e;
}

/* A device for a class: six in ten that of a neighbour, else any other. */
static int new_device(annealing *a, uint32_t c) {
  uint32_t first = a->s->first_neighbour[c], n = a->s->first_neighbour[c + 1] - first;
  if (n > 0 && sn__draw(a->s, 10) < 6) {
    int d = a->devices[a->s->neighbours[first + sn__draw(a->s, n)]];
    if (d != a->devices[c]) return d;
  }
  return other_device(a, a->devices[c]);
}

/* A class and some of what it exchanges values with, from one device to another. */
static void move_cluster(annealing *a, uint32_t c, int d) {
  uint32_t many = 2 + sn__draw(a->s, CLUSTER_MOST - 1), at = 0;
  int from = a->devices[c];
  put_class(a, c, d);
  for (uint32_t tries = 0; tries < 4 * many && a->n_places > 0 && a->n_places < many; tries++) {
    at = sn__draw(a->s, a->n_places);
    uint32_t x = a->places[at].what, first = a->s->first_neighbour[x];
    uint32_t n = a->s->first_neighbour[x + 1] - first;
    if (n == 0) return;
    uint32_t y = a->s->neighbours[first + sn__draw(a->s, n)];
    if (a->devices[y] == from) put_class(a, y, d);
  }
}

static void swap_classes(annealing *a, uint32_t c) {
  const sn__flow *f = a->f;
  for (int tries = 0; tries < 8; tries++) {
    uint32_t e = sn__draw(a->s, f->n_classes);
    int dc = a->devices[c], de = a->devices[e];
    if (dc == de || !sn__allowed(f, c, de) || !sn__allowed(f, e, dc)) continue;
    put_class(a, c, de);
    put_class(a, e, dc);
    return;
  }
}

/* A task just before or behind another on its device. */
static void reorder(annealing *a, uint32_t t) {
  const sn__flow *f = a->f;
  for (int tries = 0; tries < 8; tries++) {
    uint32_t u = sn__draw(a->s, f->n_tasks);
    if (u == t || a->devices[f->task_class[u]] != a->devices[f->task_class[t]]) continue;
    put_priority(a, t, a->priorities[u] + (sn__draw(a->s, 2) == 0 ? 1 : -1));
    return;
  }
}

static void guided_move(annealing *a) {
  const sn__flow *f = a->f;
  if (a->stale) find_path(a);
  if (a->n_path == 0) return;
  const link *l = &a->path[sn__draw(a->s, a->n_path)];
  uint32_t cb = f->task_class[l->before], ca = f->task_class[l->after];
  uint32_t way = sn__draw(a->s, 8);
  if (l->queue) {
    if (way < 4)
      put_priority(a, l->after, a->priorities[l->before] + 1);
    else if (way < 6)
      put_class(a, ca, new_device(a, ca));
    else
      put_class(a, cb, new_device(a, cb));
    return;
  }
  int db = a->devices[cb], da = a->devices[ca];
  uint32_t ahead = f->task_view[l->before] ? SN__FLOW_NONE : a->now.previous[l->before];
  if (way < 2 && ahead != SN__FLOW_NONE)
    put_priority(a, l->before, a->priorities[ahead] + 1);
  else if (db == da)
    put_class(a, way < 5 ? ca : cb, new_device(a, way < 5 ? ca : cb));
  else if (way < 4)
    put_class(a, ca, db);
  else if (way < 6)
    put_class(a, cb, da);
  else if (way < 7)
    move_cluster(a, ca, db);
  else
    move_cluster(a, cb, da);
}

static void any_move(annealing *a) {
  const sn__flow *f = a->f;
  uint32_t c = sn__draw(a->s, f->n_classes), way = sn__draw(a->s, 20);
  if (way < 8)
    put_class(a, c, new_device(a, c));
  else if (way < 10)
    move_cluster(a, c, new_device(a, c));
  else if (way < 12)
    swap_classes(a, c);
  else
    reorder(a, sn__draw(a->s, f->n_tasks));
}

/* ---- annealing ------------------------------------------------------------------------------- */

/* What a device has to do takes longer than that: nothing has to be simulated. */
static bool overloads(const annealing *a, int64_t bar) {
  for (uint32_t i = 0; i < a->n_places && sn__plain_cost(bar); i++)
    if (a->load[a->devices[a->places[i].what]] > bar) return true;
  return false;
}

static int64_t judge(annealing *a, int64_t bar) {
  uint32_t classes[CLUSTER_MOST], tasks[2];
  for (uint32_t i = 0; i < a->n_places; i++)
    classes[i] = a->places[i].what;
  for (uint32_t i = 0; i < a->n_order; i++)
    tasks[i] = a->order[i].what;
  const sn__flow_changes changes = {classes, a->n_places, tasks, a->n_order};
  return sn__judge_change(a->s, a->history, a->devices, a->priorities, &changes, bar, &a->trial);
}

static void attempt(annealing *a, int64_t temperature) {
  if (sn__draw(a->s, 2) == 0)
    guided_move(a);
  else
    any_move(a);
  if (a->n_places == 0 && a->n_order == 0) return;
  int64_t bar = a->cost + (sn__plain_cost(a->cost) ? drawn_loss(a, temperature) : 0);
  int64_t cost = overloads(a, bar) ? INT64_MAX : judge(a, bar);
  if (cost > bar) {
    undo(a);
    return;
  }
  sn__flow_history_keep(a->history);
  sn__consider(a->s, a->devices, a->priorities, cost);
  sn__trace swap = a->now;
  a->now = a->trial;
  a->trial = swap;
  a->cost = cost;
  a->stale = true;
  a->n_places = a->n_order = 0;
}

static void anneal(annealing *a, int64_t evals, int hot, int cold) {
  sn__search *s = a->s;
  int64_t end = s->evals + evals < s->budget ? s->evals + evals : s->budget, begin = s->evals;
  a->cost = sn__judge_change(s, a->history, a->devices, a->priorities, NULL, 0, &a->now);
  sn__flow_history_keep(a->history);
  sn__consider(s, a->devices, a->priorities, a->cost);
  a->stale = true;
  int64_t step = s->last_step;
  /* Moves that change nothing, or are seen to be bad without simulating, are not counted; there
   * cannot be many in a row, but all classes may be pinned. */
  for (int64_t idle = 0; s->evals < end && idle < 1000;) {
    int64_t before = s->evals;
    int64_t left = (end - s->evals) * 1024 / (end - begin + 1);
    int64_t heat = (left * left >> 10) * (left * left >> 10) >> 10; /* fourth power, of 1024 */
    int64_t thousandths = cold * 1024 + (hot - cold) * heat;
    attempt(a,
            step < (int64_t)1 << 40 ? step * thousandths / 1024000 : step / 1024000 * thousandths);
    idle = s->evals == before ? idle + 1 : 0;
  }
}

static bool weigh_classes(annealing *a) {
  const sn__flow *f = a->f;
  size_t nd = (size_t)f->n_devices;
  a->class_ns = sn__calloc((size_t)f->n_classes * nd + 1, sizeof *a->class_ns);
  a->load = sn__calloc(nd, sizeof *a->load);
  if (a->class_ns == NULL || a->load == NULL) return false;
  for (uint32_t c = 0; c < f->n_classes; c++) {
    for (size_t d = 0; d < nd; d++)
      a->class_ns[c * nd + d] = sn__flow_class_ns(f, c, (int)d);
    a->load[a->devices[c]] += a->class_ns[c * nd + (size_t)a->devices[c]];
  }
  return true;
}

sn_status sn__anneal(sn__search *s, int *devices, int64_t *priorities, int64_t evals, int hot,
                     int cold) {
  annealing a = {.s = s, .f = s->flow, .devices = devices, .priorities = priorities};
  sn_status status = SN_OK;
  bool ok = sn__trace_create(s->flow->n_tasks, &a.now);
  ok = sn__trace_create(s->flow->n_tasks, &a.trial) && ok;
  a.path = sn__calloc((size_t)s->flow->n_tasks + 1, sizeof *a.path);
  ok = weigh_classes(&a) && ok && a.path != NULL;
  status = ok ? sn__flow_history_create(s->simulator, &a.history) : sn_status_out_of_memory();
  if (status == SN_OK && s->flow->n_devices > 1 && s->flow->n_tasks > 0) {
    fill_losses(&a);
    anneal(&a, evals, hot, cold);
  }
  sn__trace_free(&a.now);
  sn__trace_free(&a.trial);
  sn__flow_history_free(a.history);
  sn__free(a.class_ns);
  sn__free(a.load);
  sn__free(a.path);
  return status;
}
