/* SPDX-License-Identifier: Apache-2.0 */
/* Branch and bound to a proved optimum: where classes go, then in which order tasks run.
 *
 * Places are enumerated class by class, alike devices only in order of first use, and a branch is
 * left when no schedule at all of what it leaves open is below the best plan so far. Placements
 * that are left at the end go through the stronger bound, then those that are still left, the most
 * promising first, through every order in which priorities can have their queues worked off. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "placement/exact_orders.h"
#include "placement/exact_pairs.h"

enum {
  CLASSES_MOST = 96,
  LEFT_MOST = 1 << 16, /* placements that are kept for a second look */
  /* What is looked at, in jobs, as a rule of thumb: time goes with it. */
  QUICK_JOBS = 8,
  SHORT_LOOK = 32, /* the part of the budget that first looks at a placement's orders get */
  INTRUDERS_MOST = 8,
  STEPS_PER_JOB = 1 /* tasks simulated in the time in which a job is looked at */
};

typedef struct left {
  int64_t bound;
  uint32_t number;
} left;

typedef struct exact {
  sn__search *s;
  const sn__flow *f;
  int64_t budget;  /* jobs that may still be looked at */
  int64_t open;    /* the least bound of what was not looked at to its end */
  int *devices;    /* [n_classes] -1: not placed */
  uint32_t *order; /* [n_classes] heaviest first */
  int *alike;      /* [n_devices] the first device that is like this one */
  uint64_t *held;  /* [n_devices] */
  sn__jobs *jobs;
  sn__bounder *bounder;
  sn__orders *orders;
  int64_t *priorities; /* [n_tasks] */
  sn__trace trace;
  bool
      by_orders; /* some placement was settled by its orders: schedules that wait were not looked at
                  */
  left *left;    /* [n_left] */
  size_t n_left, cap_left;
  int *places; /* [n_left * n_classes] */
  size_t cap_places;
  bool no_memory;
} exact;

/* ---- the placements ----------------------------------------------------------------------------
 */

static bool alike(const sn__flow *f, int a, int b) {
  if (f->device_bytes[a] != f->device_bytes[b]) return false;
  size_t nd = (size_t)f->n_devices;
  for (uint32_t t = 0; t < f->n_tasks; t++)
    if (f->task_ns[t * nd + (size_t)a] != f->task_ns[t * nd + (size_t)b]) return false;
  for (uint32_t c = 0; c < f->n_classes; c++)
    if (f->class_pin[c] == a || f->class_pin[c] == b) return false;
  for (size_t e = 0; e < nd; e++) {
    if (e == (size_t)a || e == (size_t)b) continue;
    if (f->link_of[(size_t)a * nd + e] != f->link_of[(size_t)b * nd + e] ||
        f->link_of[e * nd + (size_t)a] != f->link_of[e * nd + (size_t)b])
      return false;
  }
  return f->link_of[(size_t)a * nd + (size_t)b] == f->link_of[(size_t)b * nd + (size_t)a];
}

/* Whether a device like `d` with a smaller number is still unused: then that one stands for both.
 */
static bool stands_for_other(const exact *x, uint32_t placed, int d) {
  for (int e = 0; e < d; e++) {
    if (x->alike[e] != x->alike[d]) continue;
    bool used = false;
    for (uint32_t i = 0; !used && i < placed; i++)
      used = x->devices[x->order[i]] == e;
    if (!used) return false;
  }
  return true;
}

static void stay_open(exact *x, int64_t bound) {
  if (bound < x->open) x->open = bound;
}

/* A placement that is to be looked at again. */
static void keep_left(exact *x, int64_t bound) {
  size_t n = x->f->n_classes;
  if (x->n_left == LEFT_MOST) {
    stay_open(x, bound);
    return;
  }
  if (!sn__grow((void **)&x->left, &x->cap_left, x->n_left + 1, sizeof *x->left) ||
      !sn__grow((void **)&x->places, &x->cap_places, (x->n_left + 1) * n, sizeof *x->places)) {
    x->no_memory = true;
    return;
  }
  x->left[x->n_left] = (left){bound, (uint32_t)x->n_left};
  memcpy(x->places + x->n_left * n, x->devices, n * sizeof *x->places);
  x->n_left++;
}

/* What spread asks for of a plan beside its step. */
static bool spreads(const exact *x) {
  int used = 0;
  for (int d = 0; d < x->f->n_devices; d++) {
    bool here = false;
    for (uint32_t c = 0; !here && c < x->f->n_classes; c++)
      here = x->devices[c] == d;
    used += here;
  }
  return used >= x->s->most_used;
}

static int64_t quick_bound(exact *x) {
  sn__jobs_make(x->jobs, x->devices);
  x->budget -= QUICK_JOBS * (int64_t)x->jobs->n;
  return sn__jobs_link(x->jobs) ? sn__bound_quick(x->bounder) : INT64_MAX;
}

/* bound: of what is placed so far. */
static void place(exact *x, uint32_t placed, int64_t bound) {
  const sn__flow *f = x->f;
  if (x->no_memory) return;
  if (x->budget <= 0) {
    stay_open(x, bound);
    return;
  }
  if (placed == f->n_classes) {
    if (!x->s->options->spread || spreads(x)) keep_left(x, bound);
    return;
  }
  uint32_t c = x->order[placed];
  for (int d = 0; d < f->n_devices; d++) {
    if (!sn__allowed(f, c, d) || !stands_for_other(x, placed, d)) continue;
    if (f->device_bytes[d] > 0 && x->held[d] + f->class_bytes[c] > f->device_bytes[d]) continue;
    x->held[d] += f->class_bytes[c];
    x->devices[c] = d;
    int64_t below = quick_bound(x);
    if (below < x->s->cost) place(x, placed + 1, below > bound ? below : bound);
    x->held[d] -= f->class_bytes[c];
    x->devices[c] = -1;
  }
}

/* ---- what is left ---------------------------------------------------------------------------- */

static int compare_left(const void *a, const void *b) {
  const left *x = a, *y = b;
  if (x->bound != y->bound) return x->bound < y->bound ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static int64_t deep_bound(exact *x, const left *l) {
  sn__jobs_make(x->jobs, x->places + (size_t)l->number * x->f->n_classes);
  x->budget -= sn__bound_deep_jobs(x->jobs);
  if (!sn__jobs_link(x->jobs)) return INT64_MAX;
  int64_t bound = sn__bound_deep(x->bounder, x->s->cost);
  return bound > l->bound ? bound : l->bound;
}

/* A schedule that may wait where the executor does not: its order without the waiting. What then
 * runs where the schedule waited, and is in the way there, is tried at the front. */
static void try_found(exact *x, const int *devices) {
  const sn__flow *f = x->f;
  for (uint32_t t = 0; t < f->n_tasks; t++)
    x->priorities[t] = -x->jobs->jobs[t].head;
  for (int i = 0; i < INTRUDERS_MOST; i++) {
    int64_t cost = sn__judge(x->s, devices, x->priorities, 0, &x->trace);
    if (sn__consider(x->s, devices, x->priorities, cost)) return;
    uint32_t first = SN__FLOW_NONE;
    for (uint32_t t = 0; t < f->n_tasks; t++)
      if (!f->task_view[t] && x->priorities[t] <= 0 && x->trace.start[t] < x->jobs->jobs[t].head &&
          (first == SN__FLOW_NONE || x->trace.start[t] < x->trace.start[first]))
        first = t;
    if (first == SN__FLOW_NONE) return;
    x->priorities[first] = INTRUDERS_MOST - i;
  }
}

/* Orders, for a part of the budget. True: no order of this placement is below the best plan. */
static bool search_orders(exact *x, const left *l, int64_t part) {
  int64_t rest = x->budget - part;
  if (part <= 0) return false;
  if (deep_bound(x, l) >= x->s->cost) return true;
  const int *devices = x->places + (size_t)l->number * x->f->n_classes;
  bool done = sn__orders_search(x->orders, devices, &part);
  x->budget = rest + part;
  return done;
}

/* Pairs, for a part of the budget. True: no schedule of this placement is below the best plan.
 * below: raised by what is shown. */
static bool search_pairs(exact *x, const left *l, int64_t part, bool no_waiting, int64_t *below) {
  int64_t rest = x->budget - part, cutoff;
  do {
    cutoff = x->s->cost;
    if (part <= 0 || deep_bound(x, l) >= cutoff) break;
    x->bounder->no_waiting = no_waiting;
    sn__pairs_answer answer = sn__pairs_search(x->bounder, *below, cutoff, &part, below);
    x->bounder->no_waiting = false;
    switch (answer) {
    case SN__PAIRS_FOUND: try_found(x, x->places + (size_t)l->number * x->f->n_classes); break;
    case SN__PAIRS_NOTHING:
    case SN__PAIRS_SPENT: break;
    }
  } while (x->s->cost < cutoff);
  bool none = *below >= x->s->cost || (part > 0 && deep_bound(x, l) >= x->s->cost);
  x->budget = rest + part;
  return none;
}

/* One placement to its end, if the budget lasts. A short look at orders finds good plans; pairs say
 * something of every schedule; where one exists that only waiting on purpose makes, pairs look at
 * schedules without waiting, and last all orders that priorities can ask for. */
static void settle(exact *x, const left *l) {
  int64_t below = l->bound;
  if (l->bound >= x->s->cost) return;
  bool none = search_orders(x, l, x->budget / SHORT_LOOK);
  if (search_pairs(x, l, x->budget / 4, false, &below)) return;
  int64_t any = below;
  none = none || search_pairs(x, l, x->budget / 2, true, &below) || search_orders(x, l, x->budget);
  if (none || below > any) x->by_orders = true;
  if (!none) stay_open(x, below);
}

static void look_again(exact *x) {
  if (x->n_left > 1) qsort(x->left, x->n_left, sizeof *x->left, compare_left);
  for (size_t i = 0; i < x->n_left && x->budget > 0; i++)
    x->left[i].bound = deep_bound(x, &x->left[i]);
  if (x->n_left > 1) qsort(x->left, x->n_left, sizeof *x->left, compare_left);
  for (size_t i = 0; i < x->n_left && x->left[i].bound < x->s->cost; i++)
    settle(x, &x->left[i]);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int64_t weight(const exact *x, uint32_t c) {
  int64_t sum = 0;
  for (uint32_t i = x->f->first_member[c]; i < x->f->first_member[c + 1]; i++)
    sum += x->jobs->least_ns[x->f->members[i]];
  return sum;
}

static void run(exact *x) {
  const sn__flow *f = x->f;
  for (int d = 0; d < f->n_devices; d++) {
    x->alike[d] = d;
    for (int e = 0; e < d && x->alike[d] == d; e++)
      if (alike(f, e, d)) x->alike[d] = x->alike[e];
  }
  for (uint32_t c = 0; c < f->n_classes; c++) {
    uint32_t i = c;
    x->devices[c] = -1;
    for (; i > 0 && weight(x, x->order[i - 1]) < weight(x, c); i--)
      x->order[i] = x->order[i - 1];
    x->order[i] = c;
  }
  place(x, 0, quick_bound(x));
  look_again(x);
}

static sn_status make(exact *x) {
  const sn__flow *f = x->f;
  x->devices = sn__calloc((size_t)f->n_classes + 1, sizeof *x->devices);
  x->order = sn__calloc((size_t)f->n_classes + 1, sizeof *x->order);
  x->alike = sn__calloc((size_t)f->n_devices, sizeof *x->alike);
  x->held = sn__calloc((size_t)f->n_devices, sizeof *x->held);
  x->priorities = sn__calloc((size_t)f->n_tasks + 1, sizeof *x->priorities);
  if (x->priorities == NULL || x->devices == NULL || x->order == NULL || x->alike == NULL ||
      x->held == NULL)
    return sn_status_out_of_memory();
  if (!sn__trace_create(f->n_tasks, &x->trace)) return sn_status_out_of_memory();
  SN_TRY(sn__jobs_create(f, &x->jobs));
  SN_TRY(sn__bounder_create(x->jobs, &x->bounder));
  return sn__orders_create(x->s, x->bounder, &x->orders);
}

sn_status sn__exact(sn__search *s, int64_t budget, sn__proof *out) {
  const sn__flow *f = s->flow;
  *out = (sn__proof){0};
  if (f->n_classes > CLASSES_MOST) return SN_OK;
  int64_t jobs = (int64_t)f->n_tasks / STEPS_PER_JOB + 1;
  exact x = {.s = s,
             .f = f,
             .budget = budget < INT64_MAX / jobs ? budget * jobs : INT64_MAX,
             .open = INT64_MAX};
  sn_status status = make(&x);
  if (status == SN_OK) {
    run(&x);
    if (x.no_memory) status = sn_status_out_of_memory();
  }
  if (status == SN_OK && !sn__orders_disagree(x.orders)) {
    out->proved = x.open >= s->cost;
    out->any_schedule = !x.by_orders;
    out->bound = x.open < s->cost ? x.open : s->cost;
  }
  sn__orders_free(x.orders);
  sn__bounder_free(x.bounder);
  sn__jobs_free(x.jobs);
  sn__trace_free(&x.trace);
  void *const arrays[] = {x.devices, x.order, x.alike, x.held, x.priorities, x.left, x.places};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
  return status;
}
