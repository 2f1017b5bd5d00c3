/* SPDX-License-Identifier: Apache-2.0 */
/* Branch and bound to a proved optimum: where classes go, then in which order tasks run.
 *
 * Places are enumerated class by class, alike devices only in order of first use. Of a full
 * placement every way in which its queues can be worked off without idling is looked at (those are
 * what priorities can ask for: whoever runs first of what is ready has the higher one), unless a
 * bound says that none of them is better than what is known. Copies follow the simulator's rule and
 * are no choice. */
#include <string.h>

#include "core/alloc.h"
#include "placement/makespan_impl.h"

enum { JOBS_MOST = 64, DEVICES_MOST = 8 };

/* A task or a copy of one placement. */
typedef struct job {
  int64_t ns, tail; /* tail: from its start to the end of the step, with copies */
  uint64_t after;   /* jobs that wait for it */
  uint32_t waits;   /* how many it waits for */
  int queue;        /* device; n_devices + device for copies that queue; -1: over by itself */
  uint32_t task;    /* or SN__FLOW_NONE: a copy */
  uint32_t value;   /* of a copy */
} job;

/* The step so far. Small, so that it is copied where ways part. */
typedef struct moment {
  int64_t now;
  int64_t ends[JOBS_MOST]; /* of jobs that run */
  uint64_t running, ready, started;
  uint8_t waits[JOBS_MOST];
  uint64_t busy; /* queues */
} moment;

typedef struct exact {
  sn__search *s;
  const sn__flow *f;
  int64_t budget; /* steps of the enumeration that may still be taken */
  bool spent;
  int *devices;            /* [n_classes] */
  int64_t *priorities;     /* [n_tasks] of the best order of this placement */
  uint32_t *order;         /* [n_classes] heaviest first */
  int alike[DEVICES_MOST]; /* the first device that is like this one */
  uint64_t held[DEVICES_MOST];
  int64_t load[DEVICES_MOST];
  job jobs[JOBS_MOST];
  uint32_t n_jobs;
  uint64_t on_queue[2 * DEVICES_MOST];
  uint32_t *copy_job; /* [n_values * n_devices] + 1 */
  uint64_t all;
  uint32_t sequence[JOBS_MOST]; /* tasks in the order in which they started */
  bool disagreed; /* with the simulator, of which this is a second account: nothing is proved */
} exact;

/* ---- the jobs of a placement ------------------------------------------------------------------
 */

static void join(exact *x, uint32_t before, uint32_t after) {
  uint64_t bit = (uint64_t)1 << after;
  if ((x->jobs[before].after & bit) != 0) return;
  x->jobs[before].after |= bit;
  x->jobs[after].waits++;
}

/* The copy of a value to a device; JOBS_MOST when there is no room for one more. */
static uint32_t copy_to(exact *x, uint32_t value, int to) {
  const sn__flow *f = x->f;
  uint32_t *slot = &x->copy_job[(size_t)value * (size_t)f->n_devices + (size_t)to];
  if (*slot != 0) return *slot - 1;
  if (x->n_jobs == JOBS_MOST) return JOBS_MOST;
  uint32_t j = x->n_jobs++, maker = f->value_task[value];
  x->jobs[j] = (job){.ns = sn__flow_copy_ns(f, value, x->devices[f->value_class[value]], to),
                     .queue = f->copies_queue ? f->n_devices + to : -1,
                     .task = SN__FLOW_NONE,
                     .value = value};
  *slot = j + 1;
  if (maker != SN__FLOW_NONE) join(x, maker, j);
  return j;
}

static int64_t tail_of(exact *x, uint32_t j) {
  job *at = &x->jobs[j];
  if (at->tail >= 0) return at->tail;
  int64_t most = 0;
  for (uint64_t left = at->after; left != 0; left &= left - 1) {
    int64_t tail = tail_of(x, (uint32_t)__builtin_ctzll(left));
    if (tail > most) most = tail;
  }
  return at->tail = most + at->ns;
}

/* False when there are too many. */
static bool make_jobs(exact *x) {
  const sn__flow *f = x->f;
  memset(x->copy_job, 0, (size_t)f->n_values * (size_t)f->n_devices * sizeof *x->copy_job);
  x->n_jobs = f->n_tasks;
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    int d = x->devices[f->task_class[t]];
    x->jobs[t] = (job){.ns = f->task_ns[(size_t)t * (size_t)f->n_devices + (size_t)d],
                       .queue = f->task_view[t] ? -1 : d,
                       .task = t};
  }
  for (uint32_t i = 0; i < f->n_reads; i++) {
    uint32_t v = f->reads[i].value, t = f->reads[i].task, maker = f->value_task[v];
    int to = x->devices[f->task_class[t]];
    if (x->devices[f->value_class[v]] != to) {
      uint32_t j = copy_to(x, v, to);
      if (j == JOBS_MOST) return false;
      join(x, j, t);
    } else if (maker != SN__FLOW_NONE) {
      join(x, maker, t);
    }
  }
  for (uint32_t o = 0; o < f->n_orders; o++) {
    uint32_t v = 0, j = f->orders[o].before;
    int to = 0;
    if (sn__flow_order_copy(f, &f->orders[o], x->devices, &v, &to)) j = copy_to(x, v, to);
    if (j == JOBS_MOST) return false;
    join(x, j, f->orders[o].after);
  }
  memset(x->on_queue, 0, sizeof x->on_queue);
  for (uint32_t j = 0; j < x->n_jobs; j++) {
    x->jobs[j].tail = -1;
    if (x->jobs[j].queue >= 0) x->on_queue[x->jobs[j].queue] |= (uint64_t)1 << j;
  }
  for (uint32_t j = 0; j < x->n_jobs; j++)
    tail_of(x, j);
  x->all = x->n_jobs == 64 ? UINT64_MAX : ((uint64_t)1 << x->n_jobs) - 1;
  return true;
}

/* ---- the orders of a placement ----------------------------------------------------------------
 */

static void end_job(exact *x, moment *m, uint32_t j);

static void settle(exact *x, moment *m, uint32_t j) {
  if (--m->waits[j] > 0) return;
  if (x->jobs[j].queue >= 0) {
    m->ready |= (uint64_t)1 << j;
    return;
  }
  m->started |= (uint64_t)1 << j;
  if (x->jobs[j].task != SN__FLOW_NONE) { /* a view */
    end_job(x, m, j);
    return;
  }
  m->running |= (uint64_t)1 << j;
  m->ends[j] = m->now + x->jobs[j].ns;
}

static void end_job(exact *x, moment *m, uint32_t j) {
  m->running &= ~((uint64_t)1 << j);
  for (uint64_t left = x->jobs[j].after; left != 0; left &= left - 1)
    settle(x, m, (uint32_t)__builtin_ctzll(left));
}

static void start(exact *x, moment *m, uint32_t j) {
  uint64_t bit = (uint64_t)1 << j;
  m->ready &= ~bit;
  m->started |= bit;
  m->running |= bit;
  m->busy |= (uint64_t)1 << x->jobs[j].queue;
  m->ends[j] = m->now + x->jobs[j].ns;
}

/* No end of this step is below: what runs and what is left on each queue, with the shortest tail
 * that can follow the queue's last. */
static int64_t bound_of(const exact *x, const moment *m) {
  int64_t bound = m->now;
  int64_t free_at[2 * DEVICES_MOST];
  int queues = x->f->n_devices * (x->f->copies_queue ? 2 : 1);
  for (int q = 0; q < queues; q++)
    free_at[q] = m->now;
  for (uint64_t left = m->running; left != 0; left &= left - 1) {
    uint32_t j = (uint32_t)__builtin_ctzll(left);
    int64_t end = m->ends[j] + x->jobs[j].tail - x->jobs[j].ns;
    if (end > bound) bound = end;
    if (x->jobs[j].queue >= 0) free_at[x->jobs[j].queue] = m->ends[j];
  }
  for (int q = 0; q < queues; q++) {
    int64_t work = 0, least = INT64_MAX;
    for (uint64_t left = x->on_queue[q] & ~m->started; left != 0; left &= left - 1) {
      const job *j = &x->jobs[__builtin_ctzll(left)];
      work += j->ns;
      if (j->tail - j->ns < least) least = j->tail - j->ns;
      if (m->now + j->tail > bound) bound = m->now + j->tail;
    }
    if (work > 0 && free_at[q] + work + least > bound) bound = free_at[q] + work + least;
  }
  return bound;
}

static void keep_order(exact *x, uint32_t n, int64_t step) {
  for (uint32_t i = 0; i < n; i++)
    x->priorities[x->sequence[i]] = (int64_t)(n - i);
  /* The simulator has the last word, on memory too. */
  int64_t cost = sn__judge(x->s, x->devices, x->priorities, 0, NULL);
  if (cost != step) x->disagreed = true;
  sn__consider(x->s, x->devices, x->priorities, cost);
}

/* Copies start by themselves: the longest path first, equals by what they copy. */
static void start_copies(exact *x, moment *m) {
  const sn__flow *f = x->f;
  for (int q = f->n_devices; f->copies_queue && q < 2 * f->n_devices; q++) {
    if ((m->busy >> q & 1) != 0) continue;
    uint32_t best = JOBS_MOST;
    for (uint64_t left = x->on_queue[q] & m->ready; left != 0; left &= left - 1) {
      uint32_t j = (uint32_t)__builtin_ctzll(left);
      if (best == JOBS_MOST || x->jobs[j].tail > x->jobs[best].tail ||
          (x->jobs[j].tail == x->jobs[best].tail && x->jobs[j].value < x->jobs[best].value))
        best = j;
    }
    if (best < JOBS_MOST) start(x, m, best);
  }
}

/* `queue`: the first that has not been looked at in this moment. */
static void search(exact *x, const moment *at, int queue, uint32_t n) {
  const sn__flow *f = x->f;
  moment m = *at;
  for (;;) {
    if (x->budget-- <= 0) x->spent = true;
    if (x->spent || bound_of(x, &m) >= x->s->cost) return;
    for (; queue < f->n_devices; queue++) {
      uint64_t can = x->on_queue[queue] & m.ready;
      if (can == 0 || (m.busy >> queue & 1) != 0) continue;
      /* The last of the choices goes on here, the others are searched one after the other. */
      for (; (can & (can - 1)) != 0; can &= can - 1) {
        moment other = m;
        x->sequence[n] = (uint32_t)__builtin_ctzll(can);
        start(x, &other, x->sequence[n]);
        search(x, &other, queue + 1, n + 1);
      }
      x->sequence[n] = (uint32_t)__builtin_ctzll(can);
      start(x, &m, x->sequence[n++]);
    }
    start_copies(x, &m);
    if (m.running == 0) break;
    int64_t next = INT64_MAX;
    for (uint64_t left = m.running; left != 0; left &= left - 1)
      if (m.ends[__builtin_ctzll(left)] < next) next = m.ends[__builtin_ctzll(left)];
    m.now = next;
    for (uint64_t left = m.running; left != 0; left &= left - 1) {
      uint32_t j = (uint32_t)__builtin_ctzll(left);
      if (m.ends[j] != next) continue;
      if (x->jobs[j].queue >= 0) m.busy &= ~((uint64_t)1 << x->jobs[j].queue);
      end_job(x, &m, j);
    }
    queue = 0;
  }
  if (m.now < x->s->cost) keep_order(x, n, m.now);
}

static void order_tasks(exact *x) {
  moment m = {0};
  if (!make_jobs(x)) {
    x->spent = true;
    return;
  }
  for (uint32_t j = 0; j < x->n_jobs; j++)
    m.waits[j] = (uint8_t)x->jobs[j].waits;
  for (uint32_t j = 0; j < x->n_jobs; j++) {
    if (x->jobs[j].waits > 0) continue;
    m.waits[j] = 1;
    settle(x, &m, j);
  }
  search(x, &m, 0, 0);
}

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

static void place(exact *x, uint32_t placed) {
  const sn__flow *f = x->f;
  if (x->budget-- <= 0) x->spent = true;
  if (x->spent) return;
  if (placed == f->n_classes) {
    order_tasks(x);
    return;
  }
  uint32_t c = x->order[placed];
  for (int d = 0; d < f->n_devices && !x->spent; d++) {
    if (!sn__allowed(f, c, d) || !stands_for_other(x, placed, d)) continue;
    int64_t ns = sn__flow_class_ns(f, c, d);
    if (x->load[d] + ns >= x->s->cost) continue;
    if (f->device_bytes[d] > 0 && x->held[d] + f->class_bytes[c] > f->device_bytes[d]) continue;
    x->load[d] += ns;
    x->held[d] += f->class_bytes[c];
    x->devices[c] = d;
    place(x, placed + 1);
    x->load[d] -= ns;
    x->held[d] -= f->class_bytes[c];
  }
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
    int64_t ns = sn__flow_class_ns(f, c, 0);
    for (; i > 0 && sn__flow_class_ns(f, x->order[i - 1], 0) < ns; i--)
      x->order[i] = x->order[i - 1];
    x->order[i] = c;
  }
  place(x, 0);
}

sn_status sn__exact(sn__search *s, int64_t budget, bool *out_proved) {
  const sn__flow *f = s->flow;
  *out_proved = false;
  /* With values that count against limits a better order might exist among those that fit. */
  if (f->n_tasks > JOBS_MOST || f->n_devices > DEVICES_MOST || s->over_time || s->options->spread)
    return SN_OK;
  exact *x = sn__calloc(1, sizeof *x);
  if (x == NULL) return sn_status_out_of_memory();
  *x = (exact){.s = s, .f = f, .budget = budget};
  x->devices = sn__calloc((size_t)f->n_classes + 1, sizeof *x->devices);
  x->order = sn__calloc((size_t)f->n_classes + 1, sizeof *x->order);
  x->priorities = sn__calloc((size_t)f->n_tasks + 1, sizeof *x->priorities);
  x->copy_job = sn__calloc((size_t)f->n_values * (size_t)f->n_devices + 1, sizeof *x->copy_job);
  bool ok = x->devices && x->order && x->priorities && x->copy_job;
  if (ok) {
    run(x);
    *out_proved = !x->spent && !x->disagreed;
  }
  sn__free(x->devices);
  sn__free(x->order);
  sn__free(x->priorities);
  sn__free(x->copy_job);
  sn__free(x);
  return ok ? SN_OK : sn_status_out_of_memory();
}
