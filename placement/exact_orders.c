/* SPDX-License-Identifier: Apache-2.0 */
/* The orders of one placement: a step on a clock that parts wherever a device has a choice. */
#include "placement/exact_orders.h"

#include <string.h>

#include "core/alloc.h"

enum {
  JOBS_MOST = 512,
  WORDS_MOST = JOBS_MOST / 64,
  RUNNING_MOST = 12, /* states with more going on are not remembered */
  SEEN_MOST = 1 << 13
};

typedef enum job_state { WAITS, READY, RUNS, DONE } job_state;

/* The step so far. */
typedef struct moment {
  int64_t now;
  uint32_t n_running, n_sequence;
  bool begun;         /* what is there from the start is out */
  int queue;          /* the first device that has not been looked at in this moment */
  uint16_t *waits;    /* [n] */
  uint8_t *state;     /* [n] */
  uint32_t *running;  /* [n_running] */
  int64_t *ends;      /* [n] of what runs */
  uint32_t *sequence; /* [n_sequence] tasks in the order in which they started */
  uint32_t *can;      /* [n] what may start where ways part here */
} moment;

/* What was started, and how long what runs still takes: all that the rest depends on. */
typedef struct seen {
  uint64_t generation; /* 0: empty */
  uint64_t started[WORDS_MOST];
  uint32_t running[RUNNING_MOST];
  int64_t left[RUNNING_MOST];
  int64_t now;
} seen;

struct sn__orders {
  sn__search *s;
  sn__bounder *b;
  sn__jobs *x;
  const int *devices;
  int64_t *budget;
  bool spent, disagreed;
  uint64_t generation;
  seen *seen;           /* [SEEN_MOST] */
  int64_t *priorities;  /* [n_tasks] */
  int64_t *rank;        /* [most] longest path from a job's start on: the copies' rule */
  int64_t *head;        /* [most] of this moment */
  uint32_t *first_next; /* [most + 1] jobs that wait for a job in the simulator */
  uint32_t *next;
  uint32_t *first_must; /* [most + 1] jobs that a bound wants before a job on its queue */
  uint32_t *must;
  moment *stack; /* [n_tasks + 2] */
  uint32_t n_stack;
};

/* ---- making and freeing --------------------------------------------------------------------- */

static sn_status make_moment(moment *m, uint32_t n, uint32_t n_tasks) {
  m->waits = sn__calloc((size_t)n + 1, sizeof *m->waits);
  m->state = sn__calloc((size_t)n + 1, sizeof *m->state);
  m->running = sn__calloc((size_t)n + 1, sizeof *m->running);
  m->ends = sn__calloc((size_t)n + 1, sizeof *m->ends);
  m->sequence = sn__calloc((size_t)n_tasks + 1, sizeof *m->sequence);
  m->can = sn__calloc((size_t)n + 1, sizeof *m->can);
  bool ok = m->waits && m->state && m->running && m->ends && m->sequence && m->can;
  return ok ? SN_OK : sn_status_out_of_memory();
}

static void free_moment(moment *m) {
  sn__free(m->waits);
  sn__free(m->state);
  sn__free(m->running);
  sn__free(m->ends);
  sn__free(m->sequence);
  sn__free(m->can);
}

sn_status sn__orders_create(sn__search *s, sn__bounder *b, sn__orders **out_orders) {
  sn__orders *o = sn__calloc(1, sizeof *o);
  if (o == NULL) return sn_status_out_of_memory();
  *o = (sn__orders){.s = s, .b = b, .x = b->jobs};
  size_t most = (size_t)o->x->most + 1;
  o->priorities = sn__calloc((size_t)s->flow->n_tasks + 1, sizeof *o->priorities);
  o->rank = sn__calloc(most, sizeof *o->rank);
  o->head = sn__calloc(most, sizeof *o->head);
  o->first_next = sn__calloc(most + 1, sizeof *o->first_next);
  o->next = sn__calloc(o->x->most_edges, sizeof *o->next);
  o->first_must = sn__calloc(most + 1, sizeof *o->first_must);
  o->must = sn__calloc(o->x->most_edges, sizeof *o->must);
  bool ok =
      o->priorities && o->rank && o->head && o->first_next && o->next && o->first_must && o->must;
  if (!ok) {
    sn__orders_free(o);
    return sn_status_out_of_memory();
  }
  *out_orders = o;
  return SN_OK;
}

void sn__orders_free(sn__orders *o) {
  if (o == NULL) return;
  for (uint32_t i = 0; i < o->n_stack; i++)
    free_moment(&o->stack[i]);
  void *const arrays[] = {o->priorities, o->rank, o->head, o->first_next, o->next,
                          o->first_must, o->must, o->seen, o->stack};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
  sn__free(o);
}

bool sn__orders_disagree(const sn__orders *o) {
  return o->disagreed;
}

/* Moments are made when a search first gets that deep. */
static moment *moment_at(sn__orders *o, uint32_t depth) {
  uint32_t levels = o->s->flow->n_tasks + 2;
  if (o->stack == NULL && (o->stack = sn__calloc(levels, sizeof *o->stack)) == NULL) return NULL;
  if (depth < o->n_stack) return &o->stack[depth];
  uint32_t n = o->x->most < JOBS_MOST ? o->x->most : JOBS_MOST;
  if (make_moment(&o->stack[depth], n, o->s->flow->n_tasks) != SN_OK) {
    free_moment(&o->stack[depth]);
    o->stack[depth] = (moment){0};
    return NULL;
  }
  o->n_stack = depth + 1;
  return &o->stack[depth];
}

static void copy_moment(const sn__orders *o, moment *to, const moment *from) {
  size_t n = o->x->n;
  to->now = from->now;
  to->n_running = from->n_running;
  to->n_sequence = from->n_sequence;
  to->begun = from->begun;
  to->queue = from->queue;
  memcpy(to->waits, from->waits, n * sizeof *to->waits);
  memcpy(to->state, from->state, n * sizeof *to->state);
  memcpy(to->running, from->running, from->n_running * sizeof *to->running);
  memcpy(to->ends, from->ends, n * sizeof *to->ends);
  memcpy(to->sequence, from->sequence, from->n_sequence * sizeof *to->sequence);
}

/* ---- the clock ------------------------------------------------------------------------------ */

static void end_job(const sn__orders *o, moment *m, uint32_t j);

static void run_job(const sn__orders *o, moment *m, uint32_t j) {
  m->state[j] = RUNS;
  m->ends[j] = m->now + o->x->jobs[j].ns;
  m->running[m->n_running++] = j;
}

static void settle(const sn__orders *o, moment *m, uint32_t j) {
  if (--m->waits[j] > 0) return;
  if (o->x->jobs[j].queue >= 0)
    m->state[j] = READY;
  else if (o->x->jobs[j].task != SN__FLOW_NONE || (m->begun && o->x->jobs[j].ns == 0))
    end_job(o, m, j); /* a view; a copy that takes no time, but not before the first start */
  else
    run_job(o, m, j);
}

static void end_job(const sn__orders *o, moment *m, uint32_t j) {
  m->state[j] = DONE;
  for (uint32_t e = o->first_next[j]; e < o->first_next[j + 1]; e++)
    settle(o, m, o->next[e]);
}

static bool is_busy(const sn__orders *o, const moment *m, int queue) {
  for (uint32_t i = 0; i < m->n_running; i++)
    if (o->x->jobs[m->running[i]].queue == queue) return true;
  return false;
}

/* Copies start by themselves: the longest path first, equals by what they copy. */
static void start_copies(const sn__orders *o, moment *m) {
  const sn__jobs *x = o->x;
  for (int q = o->s->flow->n_devices; q < x->n_queues; q++) {
    if (is_busy(o, m, q)) continue;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = x->first_on[q]; i < x->first_on[q + 1]; i++) {
      uint32_t j = x->on[i];
      if (m->state[j] != READY) continue;
      if (best == UINT32_MAX || o->rank[j] > o->rank[best] ||
          (o->rank[j] == o->rank[best] && x->jobs[j].value < x->jobs[best].value))
        best = j;
    }
    if (best != UINT32_MAX) run_job(o, m, best);
  }
}

/* To the next end. False when nothing runs any more. */
static bool move_on(const sn__orders *o, moment *m) {
  if (m->n_running == 0) return false;
  int64_t next = INT64_MAX;
  for (uint32_t i = 0; i < m->n_running; i++)
    if (m->ends[m->running[i]] < next) next = m->ends[m->running[i]];
  m->now = next;
  m->queue = 0;
  uint32_t kept = 0, over = 0;
  for (uint32_t i = 0; i < m->n_running; i++) {
    uint32_t j = m->running[i];
    if (m->ends[j] == next)
      m->can[over++] = j;
    else
      m->running[kept++] = j;
  }
  m->n_running = kept;
  for (uint32_t i = 0; i < over; i++)
    end_job(o, m, m->can[i]);
  return true;
}

/* ---- bounds --------------------------------------------------------------------------------- */

/* No end of this step is below: heads as they are now, tails as they always are, each queue by
 * itself. */
static int64_t bound_of(sn__orders *o, const moment *m) {
  const sn__jobs *x = o->x;
  int64_t bound = m->now;
  for (uint32_t i = 0; i < m->n_running; i++) {
    uint32_t j = m->running[i];
    if (m->ends[j] + x->jobs[j].tail > bound) bound = m->ends[j] + x->jobs[j].tail;
  }
  if (bound >= o->s->cost) return bound;
  for (uint32_t i = 0; i < x->n; i++) {
    uint32_t j = x->order[i];
    if (m->state[j] >= RUNS) continue;
    int64_t head = x->jobs[j].head > m->now ? x->jobs[j].head : m->now;
    for (uint32_t e = x->first_before[j]; e < x->first_before[j + 1]; e++) {
      uint32_t p = x->before[e];
      if (m->state[p] == DONE) continue;
      int64_t end = m->state[p] == RUNS ? m->ends[p] : o->head[p] + x->jobs[p].ns;
      if (end > head) head = end;
    }
    o->head[j] = head;
    if (head + x->jobs[j].ns + x->jobs[j].tail > bound)
      bound = head + x->jobs[j].ns + x->jobs[j].tail;
  }
  for (int q = 0; bound < o->s->cost && q < x->n_queues; q++) {
    int64_t free_at = m->now;
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_running; i++)
      if (x->jobs[m->running[i]].queue == q) free_at = m->ends[m->running[i]];
    for (uint32_t i = x->first_on[q]; i < x->first_on[q + 1]; i++) {
      uint32_t j = x->on[i];
      if (m->state[j] >= RUNS) continue;
      int64_t head = o->head[j] > free_at ? o->head[j] : free_at;
      o->b->pieces[n++] = (sn__piece){head, x->jobs[j].ns, x->jobs[j].tail};
    }
    int64_t end = sn__one_queue(o->b->pieces, n, o->b->heap);
    if (end > bound) bound = end;
  }
  return bound;
}

/* Whether this state was there before, no later; then nothing comes of it. Else it is kept. */
static bool was_there(sn__orders *o, const moment *m) {
  seen key = {.generation = o->generation, .now = m->now};
  if (o->s->over_time || m->n_running > RUNNING_MOST) return false;
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (uint32_t j = 0; j < o->x->n; j++)
    if (m->state[j] >= RUNS) key.started[j / 64] |= (uint64_t)1 << (j % 64);
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->n_running; i++) { /* by job */
    uint32_t k = n++, j = m->running[i];
    for (; k > 0 && key.running[k - 1] > j + 1; k--)
      key.running[k] = key.running[k - 1];
    key.running[k] = j + 1;
  }
  for (uint32_t i = 0; i < n; i++)
    key.left[i] = m->ends[key.running[i] - 1] - m->now;
  for (size_t w = 0; w < WORDS_MOST; w++)
    hash = (hash ^ key.started[w]) * 0xBF58476D1CE4E5B9u, hash ^= hash >> 29;
  for (uint32_t i = 0; i < n; i++)
    hash = (hash ^ (uint64_t)key.left[i]) * 0x94D049BB133111EBu, hash ^= hash >> 31;
  seen *slot = &o->seen[hash % SEEN_MOST];
  bool same = slot->generation == key.generation &&
              memcmp(slot->started, key.started, sizeof key.started) == 0 &&
              memcmp(slot->running, key.running, sizeof key.running) == 0 &&
              memcmp(slot->left, key.left, sizeof key.left) == 0;
  if (same && slot->now <= key.now) return true;
  *slot = key;
  return false;
}

/* ---- the search ----------------------------------------------------------------------------- */

static void keep_order(sn__orders *o, const moment *m) {
  for (uint32_t i = 0; i < m->n_sequence; i++)
    o->priorities[m->sequence[i]] = (int64_t)(m->n_sequence - i);
  /* The simulator has the last word, on memory too. */
  int64_t cost = sn__judge(o->s, o->devices, o->priorities, 0, NULL);
  if (o->s->last_step != m->now) o->disagreed = true;
  sn__consider(o->s, o->devices, o->priorities, cost);
}

/* Whether a bound wants something before j that has not started. */
static bool is_too_early(const sn__orders *o, const moment *m, uint32_t j) {
  for (uint32_t e = o->first_must[j]; e < o->first_must[j + 1]; e++)
    if (m->state[o->must[e]] < RUNS) return true;
  return false;
}

static void start_task(const sn__orders *o, moment *m, uint32_t j) {
  run_job(o, m, j);
  m->sequence[m->n_sequence++] = j;
  m->queue = o->x->jobs[j].queue + 1;
}

static void search(sn__orders *o, uint32_t depth);

/* Every choice that the next free device has. 0: none has one, or what it has is started; else all
 * that comes of it was searched. */
static int part(sn__orders *o, moment *m, uint32_t depth) {
  const sn__jobs *x = o->x;
  while (m->queue < o->s->flow->n_devices && is_busy(o, m, m->queue))
    m->queue++;
  if (m->queue == o->s->flow->n_devices) return 0;
  uint32_t *can = m->can, n = 0;
  for (uint32_t i = x->first_on[m->queue]; i < x->first_on[m->queue + 1]; i++)
    if (m->state[x->on[i]] == READY) {
      uint32_t k = n++, j = x->on[i];
      for (; k > 0 && o->rank[can[k - 1]] < o->rank[j]; k--)
        can[k] = can[k - 1];
      can[k] = j;
    }
  if (n == 0) {
    m->queue++;
    return 0;
  }
  if (n == 1) {
    if (is_too_early(o, m, can[0])) return 1;
    start_task(o, m, can[0]);
    return 0;
  }
  if (bound_of(o, m) >= o->s->cost || was_there(o, m)) return 1;
  for (uint32_t k = 0; k < n && !o->spent; k++) {
    if (is_too_early(o, m, can[k])) continue;
    moment *other = moment_at(o, depth + 1);
    if (other == NULL) {
      o->spent = true;
      return 1;
    }
    copy_moment(o, other, m);
    start_task(o, other, can[k]);
    search(o, depth + 1);
  }
  return 1;
}

static void search(sn__orders *o, uint32_t depth) {
  moment *m = &o->stack[depth];
  *o->budget -= 2 * (int64_t)o->x->n;
  if (*o->budget <= 0) o->spent = true;
  for (;;) {
    while (m->queue < o->s->flow->n_devices) {
      if (o->spent || part(o, m, depth) != 0) return;
    }
    start_copies(o, m);
    if (!move_on(o, m)) break;
    if (m->now >= o->s->cost) return;
  }
  if (m->now < o->s->cost) keep_order(o, m);
}

/* ---- of one placement ----------------------------------------------------------------------- */

/* Edges of the problem by their begin, those that a bound added by their end. */
static void link_edges(sn__orders *o) {
  const sn__jobs *x = o->x;
  memset(o->first_next, 0, ((size_t)x->n + 2) * sizeof *o->first_next);
  memset(o->first_must, 0, ((size_t)x->n + 2) * sizeof *o->first_must);
  for (uint32_t e = 0; e < x->n_edges; e++)
    ++*(e < x->n_real ? &o->first_next[x->edges[e].before + 2]
                      : &o->first_must[x->edges[e].after + 2]);
  for (uint32_t j = 0; j < x->n; j++) {
    o->first_next[j + 2] += o->first_next[j + 1];
    o->first_must[j + 2] += o->first_must[j + 1];
  }
  for (uint32_t e = 0; e < x->n_edges; e++) {
    if (e < x->n_real)
      o->next[o->first_next[x->edges[e].before + 1]++] = x->edges[e].after;
    else
      o->must[o->first_must[x->edges[e].after + 1]++] = x->edges[e].before;
  }
  for (uint32_t i = x->n; i-- > 0;) {
    uint32_t j = x->order[i];
    int64_t most = 0;
    for (uint32_t e = o->first_next[j]; e < o->first_next[j + 1]; e++)
      if (o->rank[o->next[e]] > most) most = o->rank[o->next[e]];
    o->rank[j] = most + x->jobs[j].ns;
  }
}

bool sn__orders_search(sn__orders *o, const int *devices, int64_t *budget) {
  const sn__jobs *x = o->x;
  moment *m = moment_at(o, 0);
  if (o->seen == NULL) o->seen = sn__calloc(SEEN_MOST, sizeof *o->seen);
  if (x->n > JOBS_MOST || m == NULL || o->seen == NULL) return false;
  o->devices = devices;
  o->budget = budget;
  o->spent = false;
  o->generation++;
  link_edges(o);
  m->now = 0;
  m->n_running = m->n_sequence = 0;
  m->queue = 0;
  memset(m->waits, 0, x->n * sizeof *m->waits);
  memset(m->state, WAITS, x->n * sizeof *m->state);
  for (uint32_t e = 0; e < x->n_real; e++)
    m->waits[x->edges[e].after]++;
  m->begun = false;
  for (uint32_t j = 0; j < x->n; j++)
    m->ends[j] = m->waits[j] == 0 ? -1 : 0;
  for (uint32_t j = 0; j < x->n; j++) {
    if (m->ends[j] >= 0) continue;
    m->ends[j] = 0;
    m->waits[j] = 1;
    settle(o, m, j);
  }
  m->begun = true;
  search(o, 0);
  return !o->spent;
}
