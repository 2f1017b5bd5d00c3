/* SPDX-License-Identifier: Apache-2.0 */
/* Deciding pairs, the tightest first, until a bound passes the cutoff or none is left. */
#include "placement/exact_pairs.h"

enum { DEPTH_MOST = 200 };

typedef struct searcher {
  sn__bounder *b;
  int64_t cutoff, *budget;
  int64_t open; /* the least bound of what was left unexplored */
} searcher;

typedef struct choice {
  uint32_t i, j;
  bool found;
  int64_t i_first, j_first; /* the step at least */
} choice;

/* The undecided pair for which the better way is worst. */
static choice tightest(const sn__bounder *b) {
  const sn__jobs *x = b->jobs;
  choice best = {0};
  int64_t best_least = -1, best_most = -1;
  for (int q = 0; q < x->n_queues; q++)
    for (uint32_t k = x->first_on[q]; k < x->first_on[q + 1]; k++)
      for (uint32_t l = k + 1; l < x->first_on[q + 1]; l++) {
        uint32_t i = x->on[k], j = x->on[l];
        const sn__job *a = &x->jobs[i], *c = &x->jobs[j];
        if (b->apart[(size_t)i * x->n + j] >= 0 || b->apart[(size_t)j * x->n + i] >= 0) continue;
        int64_t first = a->head + a->ns + c->ns + c->tail;
        int64_t second = c->head + c->ns + a->ns + a->tail;
        int64_t least = first < second ? first : second, most = first < second ? second : first;
        if (least < best_least || (least == best_least && most <= best_most)) continue;
        best_least = least;
        best_most = most;
        best = (choice){.i = i, .j = j, .found = true, .i_first = first, .j_first = second};
      }
  return best;
}

static int64_t bound_again(searcher *s, int64_t bound) {
  sn__jobs *x = s->b->jobs;
  for (uint32_t j = 0; j < x->n; j++)
    x->jobs[j].head = x->jobs[j].tail = 0;
  *s->budget -= sn__bound_deep_jobs(x);
  int64_t deep = sn__bound_deep(s->b, s->cutoff);
  return deep > bound ? deep : bound;
}

/* The bound with one more edge; the cutoff when there is a cycle. */
static int64_t bound_with(searcher *s, uint32_t before, uint32_t after, int64_t bound) {
  if (!sn__jobs_join(s->b->jobs, before, after)) return bound; /* no room */
  return sn__jobs_link(s->b->jobs) ? bound_again(s, bound) : s->cutoff;
}

/* A schedule that keeps all edges: what can start earliest goes first, of equal ones what has the
 * longest tail. Its step; the jobs' heads become its starts. */
static int64_t complete(sn__bounder *b) {
  sn__jobs *x = b->jobs;
  int64_t last = 0;
  uint32_t *waits = x->scratch;
  sn__piece *jobs = b->pieces; /* of each job: when it is there; of each queue in heap: when free */
  for (uint32_t j = 0; j < x->n; j++) {
    waits[j] = x->first_before[j + 1] - x->first_before[j];
    jobs[j].head = 0;
  }
  for (int q = 0; q < x->n_queues; q++)
    b->heap[q].head = 0;
  for (uint32_t done = 0; done < x->n; done++) {
    uint32_t best = UINT32_MAX;
    int64_t best_at = 0;
    for (uint32_t j = 0; j < x->n; j++) {
      if (waits[j] != 0) continue;
      int queue = x->jobs[j].queue;
      int64_t at = jobs[j].head;
      if (queue >= 0 && b->heap[queue].head > at) at = b->heap[queue].head;
      if (best != UINT32_MAX &&
          (at > best_at || (at == best_at && x->jobs[j].tail <= x->jobs[best].tail)))
        continue;
      best = j;
      best_at = at;
    }
    int64_t end = best_at + x->jobs[best].ns;
    waits[best] = UINT32_MAX; /* done */
    jobs[best].tail = best_at;
    if (x->jobs[best].queue >= 0) b->heap[x->jobs[best].queue].head = end;
    if (end > last) last = end;
    for (uint32_t e = x->first_after[best]; e < x->first_after[best + 1]; e++) {
      waits[x->after[e]]--;
      if (end > jobs[x->after[e]].head) jobs[x->after[e]].head = end;
    }
  }
  return last;
}

static void take_starts(sn__bounder *b) {
  for (uint32_t j = 0; j < b->jobs->n; j++)
    b->jobs->jobs[j].head = b->pieces[j].tail;
}

/* Whether a schedule was found. */
static bool decide(searcher *s, int64_t bound, int depth) {
  sn__jobs *x = s->b->jobs;
  if (*s->budget <= 0 || depth == DEPTH_MOST) {
    if (bound < s->open) s->open = bound;
    return false;
  }
  if (complete(s->b) < s->cutoff) {
    take_starts(s->b);
    return true;
  }
  choice c = tightest(s->b);
  if (!c.found) return true;
  uint32_t edges = x->n_edges;
  for (int way = 0; way < 2; way++) {
    bool i_first = (c.i_first <= c.j_first) == (way == 0);
    int64_t below = bound_with(s, i_first ? c.i : c.j, i_first ? c.j : c.i, bound);
    if (below < s->cutoff && decide(s, below, depth + 1)) return true;
    x->n_edges = edges;
  }
  return false;
}

/* From the problem's own edges again, with what can be exchanged in one order. False: no schedule
 * is below the cutoff. */
static bool start(searcher *s, int64_t *bound) {
  sn__jobs *x = s->b->jobs;
  x->n_edges = x->n_real;
  if (!sn__jobs_link(x)) return false;
  sn__alike_find(s->b->alike);
  if (!sn__jobs_link(x)) return false;
  s->b->exchange = true;
  *bound = bound_again(s, *bound);
  return *bound < s->cutoff;
}

sn__pairs_answer sn__pairs_search(sn__bounder *b, int64_t bound, int64_t cutoff, int64_t *budget,
                                  int64_t *out_bound) {
  searcher s = {.b = b, .cutoff = cutoff, .budget = budget, .open = INT64_MAX};
  *out_bound = bound;
  if (b->jobs->n > b->apart_most) return SN__PAIRS_SPENT;
  bool found = start(&s, &bound) && decide(&s, bound, 0);
  b->exchange = false;
  if (found) return SN__PAIRS_FOUND;
  *out_bound = s.open < cutoff ? s.open : cutoff;
  return s.open < cutoff ? SN__PAIRS_SPENT : SN__PAIRS_NOTHING;
}
