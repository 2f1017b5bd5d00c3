/* SPDX-License-Identifier: Apache-2.0 */
/* States of a simulated step, and steps from one of them onwards.
 *
 * A state is kept between two moments. It holds for a changed plan when nothing that the change
 * touches has happened by then: no value has come that a moved task reads, no task of another
 * priority has been ready, no copy has been chosen by a rank that is another now. What a state
 * holds is then the same in both plans but for the counters of readers, which are made anew. */
#include "placement/flow_history.h"

#include <string.h>

#include "core/alloc.h"
#include "placement/flow_simulate_impl.h"

enum { STATES = 16 }; /* of a step */

typedef struct state {
  int64_t now, copy_time;
  uint64_t copy_bytes;
  uint32_t done, mark;
  uint64_t masks[4 * SN__WORDS]; /* idle, some, copy_idle, copy_some */
  uint32_t *waiting;             /* [n_tasks] */
  int64_t *ends;                 /* [2 * n_devices] */
  uint64_t *runs;                /* [2 * n_devices] */
  int64_t *busy, *worked;        /* [n_devices] */
  uint64_t *live, *peak;         /* [n_devices] */
  uint32_t *counts;              /* [2 * n_devices] of ready tasks, of copies that wait */
  uint32_t n_arrivals;
  sn__entry *entries; /* those, heap by heap, then arrivals */
  size_t n_entries, cap_entries;
} state;

struct sn__flow_history {
  sn__flow_simulator *s;
  state states[2 * STATES + 4];
  state *kept[STATES + 2], *fresh[STATES + 2], *spare[2 * STATES + 4];
  uint32_t n_kept, n_fresh, n_spare;
  uint32_t n_shared;          /* states of the kept plan that are the last plan's too */
  bool any;                   /* a plan is kept */
  const int64_t *start, *end; /* of the kept plan, and the last one's */
  const uint32_t *previous;
  sn__flow_step last;
  int64_t *came, *last_came;   /* [n_tasks] */
  int64_t *keyed, *last_keyed; /* [n_tasks] with copies_queue */
  int64_t *ranks;              /* [n_tasks] of the kept plan, with copies_queue */
  bool *
      feeds_others; /* [n_classes] something of it that is there from the start is read elsewhere */
};

/* ---- making and freeing --------------------------------------------------------------------- */

static bool state_create(const sn__flow *f, state *x) {
  size_t nd = (size_t)f->n_devices;
  x->waiting = sn__calloc((size_t)f->n_tasks + 1, sizeof *x->waiting);
  x->ends = sn__calloc(2 * nd, sizeof *x->ends);
  x->runs = sn__calloc(2 * nd, sizeof *x->runs);
  x->busy = sn__calloc(nd, sizeof *x->busy);
  x->worked = sn__calloc(nd, sizeof *x->worked);
  x->live = sn__calloc(nd, sizeof *x->live);
  x->peak = sn__calloc(nd, sizeof *x->peak);
  x->counts = sn__calloc(2 * nd, sizeof *x->counts);
  return x->waiting && x->ends && x->runs && x->busy && x->worked && x->live && x->peak &&
         x->counts;
}

static void state_free(state *x) {
  void *const arrays[] = {x->waiting, x->worked, x->ends,   x->runs,   x->busy,
                          x->live,    x->peak,   x->counts, x->entries};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
}

sn_status sn__flow_history_create(sn__flow_simulator *s, sn__flow_history **out) {
  const sn__flow *f = s->flow;
  size_t nt = (size_t)f->n_tasks + 1;
  sn__flow_history *h = sn__calloc(1, sizeof *h);
  if (h == NULL) return sn_status_out_of_memory();
  h->s = s;
  h->came = sn__calloc(nt, sizeof *h->came);
  h->last_came = sn__calloc(nt, sizeof *h->last_came);
  h->feeds_others = sn__calloc((size_t)f->n_classes + 1, sizeof *h->feeds_others);
  bool ok = h->came && h->last_came && h->feeds_others;
  if (f->copies_queue) {
    h->keyed = sn__calloc(nt, sizeof *h->keyed);
    h->last_keyed = sn__calloc(nt, sizeof *h->last_keyed);
    h->ranks = sn__calloc(nt, sizeof *h->ranks);
    ok = ok && h->keyed && h->last_keyed && h->ranks;
  }
  for (size_t i = 0; i < sizeof h->states / sizeof *h->states; i++) {
    ok = ok && state_create(f, &h->states[i]);
    h->spare[h->n_spare++] = &h->states[i];
  }
  if (!ok) {
    sn__flow_history_free(h);
    return sn_status_out_of_memory();
  }
  for (uint32_t i = 0; i < f->n_reads; i++) {
    uint32_t v = f->reads[i].value;
    if (f->value_task[v] == SN__FLOW_NONE && f->task_class[f->reads[i].task] != f->value_class[v])
      h->feeds_others[f->value_class[v]] = true;
  }
  *out = h;
  return SN_OK;
}

void sn__flow_history_free(sn__flow_history *h) {
  if (h == NULL) return;
  for (size_t i = 0; i < sizeof h->states / sizeof *h->states; i++)
    state_free(&h->states[i]);
  sn__free(h->came);
  sn__free(h->last_came);
  sn__free(h->keyed);
  sn__free(h->last_keyed);
  sn__free(h->ranks);
  sn__free(h->feeds_others);
  sn__free(h);
}

/* ---- keeping a state ------------------------------------------------------------------------ */

static uint32_t distance(const sn__flow_simulator *s) {
  return s->flow->n_tasks / STATES + 1;
}

static void add_entries(state *x, const sn__heap *heap) {
  if (heap->count == 0) return; /* it may have no items at all */
  memcpy(x->entries + x->n_entries, heap->items, heap->count * sizeof *heap->items);
  x->n_entries += heap->count;
}

void sn__flow_history_mark(sn__flow_simulator *s) {
  sn__flow_history *h = s->history;
  size_t nd = (size_t)s->flow->n_devices, n = s->arrivals.count;
  s->mark = s->done + distance(s);
  if (h->n_spare == 0 || h->n_shared + h->n_fresh >= STATES + 2) return;
  for (size_t d = 0; d < nd; d++)
    n += s->ready[d].count + s->copies[d].count;
  state *x = h->spare[h->n_spare - 1];
  if (n > x->cap_entries) { /* without it steps begin a little earlier */
    sn__entry *entries = sn__calloc(2 * n, sizeof *entries);
    if (entries == NULL) return;
    sn__free(x->entries);
    x->entries = entries;
    x->cap_entries = 2 * n;
  }
  h->n_spare--;
  h->fresh[h->n_fresh++] = x;
  x->now = s->now;
  x->done = s->done;
  x->mark = s->mark;
  x->copy_time = s->step->copy_time;
  x->copy_bytes = s->step->copy_bytes;
  memcpy(x->masks, s->idle, sizeof s->idle);
  memcpy(x->masks + SN__WORDS, s->some, sizeof s->some);
  memcpy(x->masks + 2 * SN__WORDS, s->copy_idle, sizeof s->copy_idle);
  memcpy(x->masks + 3 * SN__WORDS, s->copy_some, sizeof s->copy_some);
  memcpy(x->waiting, s->waiting, (size_t)s->flow->n_tasks * sizeof *x->waiting);
  memcpy(x->ends, s->ends, 2 * nd * sizeof *x->ends);
  memcpy(x->runs, s->runs, 2 * nd * sizeof *x->runs);
  memcpy(x->worked, s->worked, nd * sizeof *x->worked);
  if (s->step->busy != NULL) memcpy(x->busy, s->step->busy, nd * sizeof *x->busy);
  if (s->watched) memcpy(x->live, s->live, nd * sizeof *x->live);
  if (s->watched) memcpy(x->peak, s->step->peak_bytes, nd * sizeof *x->peak);
  x->n_entries = 0;
  for (size_t d = 0; d < nd; d++) {
    x->counts[d] = s->ready[d].count;
    x->counts[nd + d] = s->copies[d].count;
    add_entries(x, &s->ready[d]);
    add_entries(x, &s->copies[d]);
  }
  x->n_arrivals = s->arrivals.count;
  add_entries(x, &s->arrivals);
}

/* ---- bringing one back ---------------------------------------------------------------------- */

/* A copy under way reads its value at the source. */
static void count_copy(sn__flow_simulator *s, uint64_t copy) {
  uint32_t value = (uint32_t)(copy / (uint64_t)s->flow->n_devices);
  ++*sn__flow_uses(s, value, s->devices[s->flow->value_class[value]]);
}

/* Readers still to come of every value, from what has happened by then. */
static void count_uses(const sn__flow_history *h, const state *x) {
  sn__flow_simulator *s = h->s;
  const sn__flow *f = s->flow;
  size_t nd = (size_t)f->n_devices;
  memset(s->uses, 0, (size_t)f->n_values * nd * sizeof *s->uses);
  for (uint32_t v = 0; v < f->n_values; v++) {
    int home = s->devices[f->value_class[v]];
    uint64_t to[SN__WORDS] = {0};
    bool made = f->value_task[v] == SN__FLOW_NONE || h->end[f->value_task[v]] <= x->now;
    for (uint32_t r = f->first_reader[v]; r < f->first_reader[v + 1]; r++) {
      uint32_t t = f->reads[r].task;
      int d = s->device[t];
      if (!f->task_view[t] && (h->end[t] > x->now || x->waiting[t] > 0)) ++*sn__flow_uses(s, v, d);
      if (d != home && !made) to[d >> 6] |= (uint64_t)1 << (d & 63);
    }
    for (int w = 0; w < SN__WORDS; w++)
      if (to[w] != 0) *sn__flow_uses(s, v, home) += (uint32_t)__builtin_popcountll(to[w]);
  }
  for (size_t d = 0; d < nd; d++) {
    if (f->copies_queue && s->ends[nd + d] != INT64_MAX) count_copy(s, s->runs[nd + d]);
    for (uint32_t i = 0; i < s->copies[d].count; i++)
      count_copy(s, s->copies[d].items[i].item);
  }
  for (uint32_t i = 0; i < s->arrivals.count; i++)
    count_copy(s, s->arrivals.items[i].item);
}

static const sn__entry *take_entries(sn__heap *heap, uint32_t count, const sn__entry *from) {
  if (count > 0) memcpy(heap->items, from, count * sizeof *from);
  heap->count = count;
  return from + count;
}

static void bring_back(const sn__flow_history *h, const state *x) {
  sn__flow_simulator *s = h->s;
  const sn__flow *f = s->flow;
  size_t nd = (size_t)f->n_devices;
  s->now = x->now;
  s->done = x->done;
  s->mark = x->mark;
  s->step->copy_time = x->copy_time;
  s->step->copy_bytes = x->copy_bytes;
  memcpy(s->idle, x->masks, sizeof s->idle);
  memcpy(s->some, x->masks + SN__WORDS, sizeof s->some);
  memcpy(s->copy_idle, x->masks + 2 * SN__WORDS, sizeof s->copy_idle);
  memcpy(s->copy_some, x->masks + 3 * SN__WORDS, sizeof s->copy_some);
  memcpy(s->waiting, x->waiting, (size_t)f->n_tasks * sizeof *s->waiting);
  memcpy(s->ends, x->ends, 2 * nd * sizeof *s->ends);
  memcpy(s->runs, x->runs, 2 * nd * sizeof *s->runs);
  memcpy(s->worked, x->worked, nd * sizeof *x->worked);
  if (s->step->busy != NULL) memcpy(s->step->busy, x->busy, nd * sizeof *x->busy);
  if (s->watched) memcpy(s->live, x->live, nd * sizeof *s->live);
  if (s->watched) memcpy(s->step->peak_bytes, x->peak, nd * sizeof *x->peak);
  const sn__entry *from = x->entries;
  for (size_t d = 0; d < nd; d++) {
    from = take_entries(&s->ready[d], x->counts[d], from);
    from = take_entries(&s->copies[d], x->counts[nd + d], from);
    if (s->copies[d].count != 1) continue;
    /* One that has waited alone so far has its rank of this plan; several have equal ones in both.
     */
    sn__entry *e = &s->copies[d].items[0];
    uint32_t v = (uint32_t)(e->item / nd);
    e->key = sn__flow_copy_key(s, v, (int)d,
                               sn__flow_copy_ns(f, v, s->devices[f->value_class[v]], (int)d));
  }
  take_entries(&s->arrivals, x->n_arrivals, from);
  memcpy(s->step->start, h->start, (size_t)f->n_tasks * sizeof *s->step->start);
  memcpy(s->step->end, h->end, (size_t)f->n_tasks * sizeof *s->step->end);
  memcpy(s->step->previous, h->previous, (size_t)f->n_tasks * sizeof *s->step->previous);
  memcpy(s->came, h->came, (size_t)f->n_tasks * sizeof *s->came);
  for (uint32_t t = 0; s->keyed != NULL && t < f->n_tasks; t++)
    s->keyed[t] = h->keyed[t] <= x->now ? h->keyed[t] : INT64_MAX;
  if (s->watched) count_uses(h, x);
}

/* ---- what a change touches ------------------------------------------------------------------ */

static void at_most(int64_t *at, int64_t other) {
  if (other < *at) *at = other;
}

/* The first moment that is another when a class is elsewhere. */
static int64_t touched_by_class(const sn__flow_history *h, uint32_t class_) {
  const sn__flow *f = h->s->flow;
  int64_t at = h->feeds_others[class_] ? 0 : INT64_MAX;
  for (uint32_t m = f->first_member[class_]; m < f->first_member[class_ + 1] && at > 0; m++) {
    uint32_t t = f->members[m];
    at_most(&at, h->came[t]);
    for (uint32_t i = f->first_input[t]; i < f->first_input[t + 1]; i++) {
      uint32_t v = f->inputs[i];
      if (f->value_class[v] == class_) continue; /* comes along */
      at_most(&at, f->value_task[v] == SN__FLOW_NONE ? 0 : h->end[f->value_task[v]]);
    }
  }
  return at;
}

static int64_t touched(const sn__flow_history *h, const sn__flow_changes *c) {
  const sn__flow *f = h->s->flow;
  int64_t at = INT64_MAX;
  for (uint32_t i = 0; i < c->n_classes; i++)
    at_most(&at, touched_by_class(h, c->classes[i]));
  for (uint32_t i = 0; i < c->n_tasks; i++)
    at_most(&at, h->came[c->tasks[i]]);
  for (uint32_t t = 0; f->copies_queue && t < f->n_tasks && at > 0; t++)
    if (h->keyed[t] < at && h->ranks[t] != h->s->ranks[t]) at = h->keyed[t];
  return at;
}

/* ---- simulating ----------------------------------------------------------------------------- */

static void begin_whole(sn__flow_history *h, const int *devices, const int64_t *priorities,
                        sn__flow_step *step) {
  sn__flow_simulator *s = h->s;
  h->n_shared = 0;
  s->mark = 0;
  for (uint32_t t = 0; s->keyed != NULL && t < s->flow->n_tasks; t++)
    s->keyed[t] = INT64_MAX;
  sn__flow_simulate(s, devices, priorities, step);
}

void sn__flow_history_simulate(sn__flow_history *h, const int *devices, const int64_t *priorities,
                               const sn__flow_changes *changes, sn__flow_step *step) {
  sn__flow_simulator *s = h->s;
  int64_t cutoff = step->cutoff;
  while (h->n_fresh > 0)
    h->spare[h->n_spare++] = h->fresh[--h->n_fresh];
  s->history = h;
  s->came = h->last_came;
  s->keyed = h->last_keyed;
  s->devices = devices;
  if (s->flow->copies_queue) sn__flow_key(s, priorities);
  int64_t at = h->any && changes != NULL ? touched(h, changes) : 0;
  h->n_shared = 0;
  while (h->any && h->n_shared < h->n_kept && h->kept[h->n_shared]->now < at)
    h->n_shared++;
  if (h->n_shared == 0) {
    begin_whole(h, devices, priorities, step);
  } else {
    s->step = step;
    if (cutoff == 0) step->cutoff = INT64_MAX;
    sn__flow_reset(s);
    s->keys = priorities;
    s->watched = step->peak_bytes != NULL && s->uses != NULL;
    bring_back(h, h->kept[h->n_shared - 1]);
    if (!s->watched && step->peak_bytes != NULL)
      memset(step->peak_bytes, 0, (size_t)s->flow->n_devices * sizeof *step->peak_bytes);
    step->makespan = sn__flow_run(s);
    if (step->peak_bytes != NULL) sn__flow_add_classes(s, step->peak_bytes);
    step->cutoff = cutoff;
  }
  h->last = *step;
  s->history = NULL;
  s->came = s->keyed = NULL;
}

static void swap(int64_t **a, int64_t **b) {
  int64_t *x = *a;
  *a = *b;
  *b = x;
}

void sn__flow_history_keep(sn__flow_history *h) {
  while (h->n_kept > h->n_shared)
    h->spare[h->n_spare++] = h->kept[--h->n_kept];
  for (uint32_t i = 0; i < h->n_fresh; i++)
    h->kept[h->n_kept++] = h->fresh[i];
  h->n_fresh = 0;
  h->start = h->last.start;
  h->end = h->last.end;
  h->previous = h->last.previous;
  swap(&h->came, &h->last_came);
  swap(&h->keyed, &h->last_keyed);
  if (h->ranks != NULL)
    memcpy(h->ranks, h->s->ranks, (size_t)h->s->flow->n_tasks * sizeof *h->ranks);
  h->any = true;
}
