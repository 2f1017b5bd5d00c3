/* SPDX-License-Identifier: Apache-2.0 */
/* Better orders than the rules find: tasks are moved along their device's order, one at a time, and
 * a move stays when the clock says that the step is no longer. */
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "placement/pipeline_impl.h"

typedef struct search {
  const sn__pipe *p;
  sn__pipe_clock *clock;
  sn__pipe_orders orders;
  uint32_t *order; /* the one that is tried */
  const uint32_t *cap;
  uint32_t *flying; /* [n_stages] scratch */
  uint64_t seed, draw;
} search;

static uint32_t below(search *x, uint32_t n) {
  return (uint32_t)sn__rng_below(x->seed, 0x70697065, x->draw++, n);
}

/* a may not pass b: the micro-batches of a stage stay in order in each kind (gradients are added in
 * that order), and F, B, W of one micro-batch follow one another. */
static bool bound_together(const sn__pipe *p, uint32_t a, uint32_t b) {
  return sn__pipe_stage_of(p, a) == sn__pipe_stage_of(p, b) &&
         (a % SN__PIPE_KINDS == b % SN__PIPE_KINDS ||
          sn__pipe_micro_of(p, a) == sn__pipe_micro_of(p, b));
}

static bool within_caps(search *x, int device) {
  memset(x->flying, 0, x->p->n_stages * sizeof *x->flying);
  for (uint32_t i = x->orders.first[device]; i < x->orders.first[device + 1]; i++) {
    uint32_t t = x->order[i], s = sn__pipe_stage_of(x->p, t);
    if (t % SN__PIPE_KINDS == SN__PIPE_F && ++x->flying[s] > x->cap[s]) return false;
    if (t % SN__PIPE_KINDS == SN__PIPE_W) x->flying[s]--;
  }
  return true;
}

static void move(uint32_t *order, uint32_t from, uint32_t to) {
  uint32_t t = order[from];
  if (from < to)
    memmove(order + from, order + from + 1, (to - from) * sizeof *order);
  else
    memmove(order + to + 1, order + to, (from - to) * sizeof *order);
  order[to] = t;
}

/* Draws a move and makes it; false when it is none that may be. */
static bool draw_move(search *x, uint32_t *out_from, uint32_t *out_to) {
  const uint32_t *first = x->orders.first;
  int d = (int)below(x, (uint32_t)x->p->n_devices);
  uint32_t n = first[d + 1] - first[d];
  if (n < 2) return false;
  uint32_t from = first[d] + below(x, n), span = 1 + below(x, 6);
  bool up = below(x, 2) == 1;
  if (up ? first[d + 1] - from <= span : from - first[d] < span) return false;
  uint32_t to = up ? from + span : from - span;
  for (uint32_t i = from; i != to;) {
    i = up ? i + 1 : i - 1;
    if (bound_together(x->p, x->order[from], x->order[i])) return false;
  }
  move(x->order, from, to);
  if (!within_caps(x, d)) {
    move(x->order, to, from);
    return false;
  }
  *out_from = from;
  *out_to = to;
  return true;
}

static void climb(search *x, uint32_t evals, sn__pipe_schedule *s) {
  uint32_t n = sn__pipe_task_count(x->p);
  int64_t here = s->step_ns;
  /* Draws that come to nothing count a little, so that it ends when no move is left. */
  for (uint64_t tries = 0; s->evals < evals && tries < 20 * (uint64_t)evals; tries++) {
    uint32_t from = 0, to = 0;
    if (s->step_ns <= s->bound_ns) return;
    if (!draw_move(x, &from, &to)) continue;
    s->evals++;
    if (!sn__pipe_run_orders(x->clock, s->glued, &x->orders) || x->clock->now > here) {
      move(x->order, to, from);
      continue;
    }
    here = x->clock->now;
    if (here >= s->step_ns) continue;
    memcpy(s->order, x->order, n * sizeof *s->order);
    s->step_ns = here;
    s->from = "search";
  }
}

sn_status sn__pipe_search(const sn__pipe *p, sn__pipe_clock *clock, uint32_t evals, uint64_t seed,
                          sn__pipe_schedule *s) {
  uint32_t n = sn__pipe_task_count(p);
  search x = {.p = p, .clock = clock, .cap = s->cap, .seed = seed};
  x.order = sn__calloc(n, sizeof *x.order);
  x.flying = sn__calloc(p->n_stages, sizeof *x.flying);
  uint32_t *at = sn__calloc((size_t)p->n_devices, sizeof *at);
  bool lost = x.order == NULL || x.flying == NULL || at == NULL;
  if (!lost) {
    memcpy(x.order, s->order, n * sizeof *x.order);
    x.orders = (sn__pipe_orders){s->first, x.order, at};
    climb(&x, evals, s);
  }
  sn__free(x.order);
  sn__free(x.flying);
  sn__free(at);
  return lost ? sn_status_out_of_memory() : SN_OK;
}
