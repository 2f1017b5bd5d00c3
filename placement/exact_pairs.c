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

/* Whether a schedule was found. */
static bool decide(searcher *s, int64_t bound, int depth) {
  sn__jobs *x = s->b->jobs;
  if (*s->budget <= 0 || depth == DEPTH_MOST) {
    if (bound < s->open) s->open = bound;
    return false;
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
