/* SPDX-License-Identifier: Apache-2.0 */
/* A list schedule that keeps the best of many partial ones: a beam search.
 *
 * Each partial schedule goes on by itself for some tasks, the task that can start first on any
 * device next; of several, the one with the longest tail and luck (each schedule has its own). Then
 * they are compared by the idle time and the work that they have still to do, the worse half goes,
 * and the better is doubled with new luck. Looking again only after some tasks is what makes it
 * good: compared task by task, schedules that put off what is hard to place would win. Copies take
 * their time beside each other here; the simulator judges what comes out.
 *
 * A schedule is a row of cells (a task's end, what it waits for) of which only a window is copied:
 * behind it all readers are ready, before it nothing has happened yet. */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "placement/makespan_impl.h"

enum {
  READY_MOST = 512, /* tasks that may go at once; graphs that are wider are not for this */
  WIDTH_MOST = 512,
  LUCK = 5,             /* mean tasks */
  STEPS_MOST = 1000000, /* of the history */
  UNITS_OF_STEP = 5     /* what a simulated step is for a task or read, counted as `spent` is */
};

typedef struct cell {
  int64_t end;
  uint32_t waits;
} cell;

typedef struct partial {
  cell *cells;                     /* [n_tasks] by place in the topological order */
  uint32_t low, high;              /* the window */
  uint32_t low_output, low_reader; /* of the task at `low`: up to these all readers are ready */
  uint16_t *device;                /* [n_classes] NOWHERE: not yet */
  int64_t *avail;                  /* [n_devices] */
  uint64_t *held;                  /* [n_devices] */
  uint32_t n_ready;
  uint32_t *ready;  /* [READY_MOST] tasks */
  int64_t *urgency; /* [READY_MOST] rank and luck */
  int64_t *there;   /* [READY_MOST * n_devices] when all that a task reads would be there */
  int64_t last;     /* the start of what was placed last */
  int64_t work;     /* least time of what is not placed */
  int64_t path;     /* a bound that paths have shown */
  uint32_t node;    /* in the history */
  uint64_t luck;
} partial;

/* How a partial schedule came about. */
typedef struct step {
  uint32_t before, task;
  int64_t start;
  uint16_t device;
} step;

/* A way to go on. */
typedef struct choice {
  int64_t start;
  uint32_t ready; /* its place in the list */
  uint16_t device;
} choice;

typedef struct beam {
  sn__search *s;
  const sn__flow *f;
  const int64_t *rank; /* [n_tasks] the larger the sooner */
  const int64_t *tails;
  int64_t luck; /* ranks differ by less from schedule to schedule */
  uint32_t width, nd;
  uint32_t *place;       /* [n_tasks] in the topological order */
  uint32_t *waits;       /* [n_tasks] by place: before anything is done */
  int64_t *least;        /* [n_tasks] shortest time on any device */
  bool *allowed;         /* [n_classes * n_devices] */
  partial *states;       /* [width] */
  uint32_t *now, *spare; /* numbers of states: the level's, those not in use */
  int64_t *scores;       /* [width] */
  uint32_t n_now, n_spare;
  step *steps; /* the history */
  uint32_t n_steps;
  int64_t spent; /* cells copied and continuations looked at */
  bool wide;     /* too much was ready at once */
} beam;

#define NOWHERE UINT16_MAX

/* ---- making --------------------------------------------------------------------------------- */

static bool state_create(const beam *b, partial *p) {
  const sn__flow *f = b->f;
  p->cells = sn__calloc((size_t)f->n_tasks + 1, sizeof *p->cells);
  p->device = sn__calloc((size_t)f->n_classes + 1, sizeof *p->device);
  p->avail = sn__calloc(b->nd, sizeof *p->avail);
  p->held = sn__calloc(b->nd, sizeof *p->held);
  p->ready = sn__calloc(READY_MOST, sizeof *p->ready);
  p->urgency = sn__calloc(READY_MOST, sizeof *p->urgency);
  p->there = sn__calloc((size_t)READY_MOST * b->nd, sizeof *p->there);
  return p->cells && p->device && p->avail && p->held && p->ready && p->urgency && p->there;
}

static void state_free(partial *p) {
  sn__free(p->cells);
  sn__free(p->device);
  sn__free(p->avail);
  sn__free(p->held);
  sn__free(p->ready);
  sn__free(p->urgency);
  sn__free(p->there);
}

static void beam_free(beam *b) {
  for (uint32_t i = 0; b->states != NULL && i < b->width; i++)
    state_free(&b->states[i]);
  sn__free(b->states);
  sn__free(b->place);
  sn__free(b->waits);
  sn__free(b->least);
  sn__free(b->allowed);
  sn__free(b->now);
  sn__free(b->scores);
  sn__free(b->spare);
  sn__free(b->steps);
}

static bool beam_create(beam *b) {
  const sn__flow *f = b->f;
  size_t nt = (size_t)f->n_tasks + 1, w = b->width;
  b->place = sn__calloc(nt, sizeof *b->place);
  b->waits = sn__calloc(nt, sizeof *b->waits);
  b->least = sn__calloc(nt, sizeof *b->least);
  b->allowed = sn__calloc((size_t)f->n_classes * b->nd + 1, sizeof *b->allowed);
  b->states = sn__calloc(w, sizeof *b->states);
  b->now = sn__calloc(w, sizeof *b->now);
  b->scores = sn__calloc(w, sizeof *b->scores);
  b->spare = sn__calloc(w, sizeof *b->spare);
  b->steps = sn__calloc(nt * w, sizeof *b->steps);
  bool ok = b->place && b->waits && b->least && b->allowed && b->states && b->now && b->scores &&
            b->spare && b->steps;
  for (uint32_t i = 0; ok && i < b->width; i++)
    ok = state_create(b, &b->states[i]);
  return ok;
}

/* ---- one partial schedule ------------------------------------------------------------------- */

static int64_t ns_on(const beam *b, uint32_t task, uint32_t d) {
  return b->f->task_ns[(size_t)task * b->nd + d];
}

static cell *cell_of(const beam *b, const partial *p, uint32_t task) {
  return &p->cells[b->place[task]];
}

static uint64_t mixed(uint64_t x) {
  x *= 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* All that the task reads is placed: when it would be there, by device. */
static void make_ready(beam *b, partial *p, uint32_t task) {
  const sn__flow *f = b->f;
  if (p->n_ready == READY_MOST) {
    b->wide = true;
    return;
  }
  int64_t *there = &p->there[(size_t)p->n_ready * b->nd];
  p->urgency[p->n_ready] =
      b->rank[task] + (int64_t)(mixed(p->luck + task) % (uint64_t)(b->luck + 1));
  p->ready[p->n_ready++] = task;
  for (uint32_t d = 0; d < b->nd; d++)
    there[d] = 0;
  for (uint32_t i = f->first_input[task]; i < f->first_input[task + 1]; i++) {
    uint32_t v = f->inputs[i], maker = f->value_task[v];
    uint16_t home = p->device[f->value_class[v]];
    int64_t end = maker == SN__FLOW_NONE ? 0 : cell_of(b, p, maker)->end;
    for (uint32_t d = 0; d < b->nd; d++) {
      int64_t at = end + (home == NOWHERE ? 0 : sn__flow_copy_ns(f, v, home, (int)d));
      if (at > there[d]) there[d] = at;
    }
  }
  b->spent += (f->first_input[task + 1] - f->first_input[task]) * b->nd / 4;
}

/* `at`: when what it waited for is over, where no value comes of it. */
static void settle(beam *b, partial *p, uint32_t task, int64_t at) {
  uint32_t place = b->place[task];
  for (; p->high <= place; p->high++)
    p->cells[p->high] = (cell){0, b->waits[p->high]};
  if (at > p->cells[place].end) p->cells[place].end = at;
  if (--p->cells[place].waits > 0) return;
  int64_t not_before = p->cells[place].end;
  make_ready(b, p, task);
  for (uint32_t d = 0; !b->wide && d < b->nd; d++) {
    int64_t *there = &p->there[(size_t)(p->n_ready - 1) * b->nd + d];
    if (*there < not_before) *there = not_before;
  }
}

/* Whether the first task of the window can be left behind: placed, and all readers of what it
 * makes are ready. Those found ready are not looked at again: a value may have very many. */
static bool is_over(const beam *b, partial *p) {
  const sn__flow *f = b->f;
  uint32_t t = f->topological[p->low];
  if (p->cells[p->low].waits > 0 || p->device[f->task_class[t]] == NOWHERE) return false;
  for (uint32_t o = f->first_output[t] + p->low_output; o < f->first_output[t + 1]; o++) {
    uint32_t first = f->first_reader[f->outputs[o]], end = f->first_reader[f->outputs[o] + 1];
    for (uint32_t r = first + p->low_reader; r < end; r++) {
      uint32_t x = b->place[f->reads[r].task];
      if (x >= p->high || p->cells[x].waits > 0) return false;
      p->low_reader++;
    }
    p->low_output++;
    p->low_reader = 0;
  }
  return true;
}

static void place_ready(beam *b, partial *p, const choice *c) {
  const sn__flow *f = b->f;
  uint32_t t = p->ready[c->ready], class_ = f->task_class[t];
  uint16_t d = c->device;
  int64_t end = c->start + ns_on(b, t, d);
  if (p->device[class_] == NOWHERE) p->held[d] += f->class_bytes[class_];
  p->device[class_] = d;
  if (!f->task_view[t]) p->avail[d] = end;
  cell_of(b, p, t)->end = end;
  if (c->start > p->last) p->last = c->start;
  p->work -= b->least[t];
  if (c->start + b->tails[t] > p->path) p->path = c->start + b->tails[t];
  p->n_ready--;
  p->ready[c->ready] = p->ready[p->n_ready];
  p->urgency[c->ready] = p->urgency[p->n_ready];
  memmove(&p->there[(size_t)c->ready * b->nd], &p->there[(size_t)p->n_ready * b->nd],
          b->nd * sizeof *p->there);
  for (uint32_t o = f->first_output[t]; o < f->first_output[t + 1]; o++)
    for (uint32_t r = f->first_reader[f->outputs[o]]; r < f->first_reader[f->outputs[o] + 1]; r++)
      settle(b, p, f->reads[r].task, 0);
  for (uint32_t o = f->first_order[t]; o < f->first_order[t + 1]; o++)
    settle(b, p, f->orders[o].after, end);
  while (p->low < p->high && is_over(b, p)) {
    p->low++;
    p->low_output = p->low_reader = 0;
  }
}

static void state_copy(beam *b, partial *to, const partial *from) {
  const sn__flow *f = b->f;
  partial kept = *to;
  *to = *from;
  to->cells = kept.cells;
  to->device = kept.device;
  to->avail = kept.avail;
  to->held = kept.held;
  to->ready = kept.ready;
  to->urgency = kept.urgency;
  to->there = kept.there;
  memcpy(to->cells + from->low, from->cells + from->low,
         (from->high - from->low) * sizeof *to->cells);
  memcpy(to->device, from->device, (size_t)f->n_classes * sizeof *to->device);
  memcpy(to->avail, from->avail, b->nd * sizeof *to->avail);
  memcpy(to->held, from->held, b->nd * sizeof *to->held);
  memcpy(to->ready, from->ready, from->n_ready * sizeof *to->ready);
  memcpy(to->urgency, from->urgency, from->n_ready * sizeof *to->urgency);
  memcpy(to->there, from->there, (size_t)from->n_ready * b->nd * sizeof *to->there);
  b->spent += (from->high - from->low) / 2 + f->n_classes / 16 + from->n_ready * b->nd / 4;
}

/* ---- going on ------------------------------------------------------------------------------- */

static bool may_go(const beam *b, const partial *p, uint32_t task, uint32_t d) {
  const sn__flow *f = b->f;
  uint32_t class_ = f->task_class[task];
  if (p->device[class_] != NOWHERE) return p->device[class_] == d;
  uint64_t limit = f->device_bytes[d];
  return b->allowed[(size_t)class_ * b->nd + d] &&
         (limit == 0 || p->held[d] + f->class_bytes[class_] <= limit);
}

/* What can start first, the most urgent of several. False: nothing can go anywhere. */
static bool choose(beam *b, const partial *p, choice *out) {
  int64_t least = INT64_MAX, urgency = INT64_MIN, from[256];
  for (uint32_t d = 0; d < b->nd; d++)
    from[d] = p->avail[d] > p->last ? p->avail[d] : p->last;
  for (uint32_t i = 0; i < p->n_ready; i++) {
    const int64_t *there = &p->there[(size_t)i * b->nd];
    uint32_t t = p->ready[i];
    bool view = b->f->task_view[t];
    for (uint32_t d = 0; d < b->nd; d++) {
      int64_t start = there[d] > from[d] || view ? there[d] : from[d];
      if (start > least || (start == least && p->urgency[i] <= urgency)) continue;
      if (!may_go(b, p, t, d)) continue;
      least = start;
      urgency = p->urgency[i];
      *out = (choice){start, i, (uint16_t)d};
    }
  }
  b->spent += p->n_ready * b->nd / 8 + 4;
  return least < INT64_MAX;
}

/* Those that can, by a task; the others go. */
static void step_on(beam *b) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->n_now; i++) {
    partial *p = &b->states[b->now[i]];
    choice c = {0};
    if (!choose(b, p, &c)) {
      b->spare[b->n_spare++] = b->now[i];
      continue;
    }
    b->steps[b->n_steps] = (step){p->node, p->ready[c.ready], c.start, c.device};
    p->node = b->n_steps++;
    place_ready(b, p, &c);
    b->now[n++] = b->now[i];
  }
  b->n_now = n;
}

/* ---- comparing ------------------------------------------------------------------------------ */

/* The step that it leads to at least: a device that is idle now begins nothing before something
 * that is ready is there, or something ends. */
static int64_t score(beam *b, const partial *p) {
  int64_t sum = 0, next = INT64_MAX;
  assert(b->nd > 1);
  for (uint32_t d = 0; d < b->nd; d++)
    if (p->avail[d] > p->last && p->avail[d] < next) next = p->avail[d];
  for (uint32_t d = 0; d < b->nd; d++) {
    int64_t until = p->avail[d];
    if (until <= p->last) {
      int64_t at = next;
      for (uint32_t i = 0; i < p->n_ready && at > p->last; i++) {
        int64_t there = p->there[(size_t)i * b->nd + d];
        if (there < at && may_go(b, p, p->ready[i], d)) at = there;
      }
      until = at < p->last || at == INT64_MAX ? p->last : at;
    }
    sum += until / b->nd;
  }
  b->spent += p->n_ready * b->nd / 4;
  sum += p->work / b->nd;
  return sum > p->path ? sum : p->path;
}

/* Half of `width`, the better ones, and each of them once more with other luck. */
static void select_better(beam *b, uint32_t width) {
  uint32_t keep = (width + 1) / 2;
  for (uint32_t i = 0; i < b->n_now; i++) {
    uint32_t state = b->now[i], k = i;
    int64_t x = score(b, &b->states[state]);
    for (; k > 0 && b->scores[k - 1] > x; k--) {
      b->scores[k] = b->scores[k - 1];
      b->now[k] = b->now[k - 1];
    }
    b->scores[k] = x;
    b->now[k] = state;
  }
  while (b->n_now > keep)
    b->spare[b->n_spare++] = b->now[--b->n_now];
  for (uint32_t i = 0, n = b->n_now; i < n && b->n_now < width; i++) {
    uint32_t to = b->spare[--b->n_spare];
    state_copy(b, &b->states[to], &b->states[b->now[i]]);
    b->states[to].luck = mixed(b->states[to].luck + b->n_steps + i);
    b->now[b->n_now++] = to;
  }
}

/* ---- the search ----------------------------------------------------------------------------- */

static void begin(beam *b) {
  const sn__flow *f = b->f;
  partial *p = &b->states[0];
  for (uint32_t i = 0; i < f->n_tasks; i++)
    b->place[f->topological[i]] = i;
  for (uint32_t i = 0; i < f->n_reads; i++)
    if (f->value_task[f->reads[i].value] != SN__FLOW_NONE) b->waits[b->place[f->reads[i].task]]++;
  for (uint32_t i = 0; i < f->n_orders; i++)
    b->waits[b->place[f->orders[i].after]]++;
  for (uint32_t c = 0; c < f->n_classes; c++) {
    p->device[c] = f->class_pin[c] < 0 ? NOWHERE : (uint16_t)f->class_pin[c];
    if (f->class_pin[c] >= 0) p->held[f->class_pin[c]] += f->class_bytes[c];
    for (uint32_t d = 0; d < b->nd; d++)
      b->allowed[(size_t)c * b->nd + d] = sn__allowed(f, c, (int)d);
  }
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    b->least[t] = INT64_MAX;
    for (uint32_t d = 0; d < b->nd; d++)
      if (ns_on(b, t, d) < b->least[t]) b->least[t] = ns_on(b, t, d);
    p->work += b->least[t];
  }
  b->luck = p->work / ((int64_t)f->n_tasks + 1) * LUCK;
  p->node = SN__FLOW_NONE;
  for (uint32_t i = 0; i < f->n_tasks; i++) {
    p->cells[i] = (cell){0, b->waits[i]};
    if (b->waits[i] == 0 && !b->wide) make_ready(b, p, f->topological[i]);
    if (b->waits[i] == 0) p->high = i + 1;
  }
  b->now[b->n_now++] = 0;
  for (uint32_t i = 1; i < b->width; i++) {
    state_copy(b, &b->states[i], p);
    b->states[i].luck = mixed(b->s->options->seed + i);
    b->now[b->n_now++] = i;
  }
}

/* Narrower where what is done took more than its share. False: a dead end. */
static bool run(beam *b, int64_t allowed) {
  const sn__flow *f = b->f;
  uint32_t width = b->width, alone = 2 * b->nd + 4;
  begin(b);
  for (uint32_t n = 0; n < f->n_tasks && !b->wide; n++) {
    if (n % alone == 0 && n > 0) {
      int64_t share = allowed / ((int64_t)f->n_tasks + 1) * n;
      if (b->spent > share && width > 1) width = (width + 1) / 2;
      if (b->spent < share - share / 8 && width < b->width) width++;
      select_better(b, width);
    }
    step_on(b);
    if (b->n_now == 0) return false;
  }
  return !b->wide;
}

static void hand_over(const beam *b, int *devices, int64_t *start) {
  const sn__flow *f = b->f;
  const partial *best = &b->states[b->now[0]];
  int64_t least = INT64_MAX;
  for (uint32_t i = 0; i < b->n_now; i++) {
    const partial *p = &b->states[b->now[i]];
    int64_t end = 0;
    for (uint32_t d = 0; d < b->nd; d++)
      if (p->avail[d] > end) end = p->avail[d];
    if (end < least) best = p;
    if (end < least) least = end;
  }
  for (uint32_t i = best->node; i != SN__FLOW_NONE; i = b->steps[i].before)
    start[b->steps[i].task] = b->steps[i].start;
  /* Classes without tasks go wherever there is room. */
  for (uint32_t c = 0; c < f->n_classes; c++) {
    for (uint32_t d = 0; best->device[c] == NOWHERE && d < b->nd; d++) {
      uint64_t limit = f->device_bytes[d];
      if (limit > 0 && best->held[d] + f->class_bytes[c] > limit && d + 1 < b->nd) continue;
      best->device[c] = (uint16_t)d;
      best->held[d] += f->class_bytes[c];
    }
    devices[c] = best->device[c];
  }
}

sn_status sn__beam_schedule(sn__search *s, const int64_t *rank, int64_t evals, int *out_devices,
                            int64_t *out_start, bool *out_found) {
  const sn__flow *f = s->flow;
  const int64_t *tails = sn__flow_tails(s->simulator);
  beam b = {.s = s, .f = f, .nd = (uint32_t)f->n_devices, .tails = tails};
  int64_t width = evals < WIDTH_MOST ? evals : WIDTH_MOST;
  if (width * f->n_tasks > STEPS_MOST) width = STEPS_MOST / f->n_tasks;
  *out_found = false;
  if (width < 2 || f->n_tasks == 0 || f->n_devices < 2) return SN_OK;
  b.width = (uint32_t)width;
  b.rank = rank == NULL ? tails : rank;
  bool ok = beam_create(&b);
  int64_t units = UNITS_OF_STEP * ((int64_t)f->n_tasks + f->n_reads);
  if (ok) *out_found = run(&b, evals * units);
  if (*out_found) hand_over(&b, out_devices, out_start);
  s->evals += b.spent / units;
  beam_free(&b);
  return ok ? SN_OK : sn_status_out_of_memory();
}
