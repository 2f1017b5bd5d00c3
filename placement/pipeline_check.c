/* SPDX-License-Identifier: Apache-2.0 */
/* What is proved about orders of a pipe's tasks: that they end, and how short none of them is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "placement/pipeline_impl.h"

/* ---- deadlock ------------------------------------------------------------------------------ */

typedef struct proof {
  const sn__pipe *p;
  bool glued;
  uint32_t *before; /* [tasks] the task before it in its device's order, or NONE */
  uint32_t *behind; /* [tasks] the one behind it */
  uint32_t *left, *stack;
} proof;

static const char *task_text(const sn__pipe *p, uint32_t task, char *text, size_t size) {
  snprintf(text, size, "%c(stage %u, micro-batch %u)", "FBW"[task % SN__PIPE_KINDS],
           sn__pipe_stage_of(p, task), sn__pipe_micro_of(p, task));
  return text;
}

/* The i-th of the tasks at the other ends of a list of edges; NONE past the last. *edge: its edge.
 */
static uint32_t across(const sn__pipe *p, const uint32_t *list, uint32_t from, uint32_t to,
                       bool forward, uint32_t micro, sn__pipe_kind kind, uint32_t i,
                       uint32_t *edge) {
  for (uint32_t k = from; k < to; k++) {
    const sn__pipe_edge *e = &p->edges[list[k]];
    const bool all = p->all[list[k]];
    const uint32_t n = all ? p->n_micro : 1;
    *edge = list[k];
    if (i < n) return sn__pipe_task(p, forward ? e->to : e->from, all ? i : micro, kind);
    i -= n;
  }
  return SN__PIPE_NONE;
}

/* The i-th task that `task` needs, of sn__pipe's own rules; NONE past the last. *edge: the edge
 * between, or NONE within a stage. */
static uint32_t need_across(const proof *x, uint32_t task, uint32_t i, uint32_t *edge) {
  const sn__pipe *p = x->p;
  uint32_t s = sn__pipe_stage_of(p, task), m = sn__pipe_micro_of(p, task);
  *edge = SN__PIPE_NONE;
  if (task % SN__PIPE_KINDS == SN__PIPE_W) return i == 0 ? task - 1 : SN__PIPE_NONE;
  if (task % SN__PIPE_KINDS == SN__PIPE_F)
    return across(p, p->ins, p->first_in[s], p->first_in[s + 1], false, m, SN__PIPE_F, i, edge);
  if (i == 0) return task - 1;
  return across(p, p->outs, p->first_out[s], p->first_out[s + 1], true, m,
                x->glued ? SN__PIPE_W : SN__PIPE_B, i - 1, edge);
}

static uint32_t need_of(const proof *x, uint32_t task, uint32_t i) {
  uint32_t edge;
  return need_across(x, task, i, &edge);
}

/* The i-th task that needs `task`; *edge likewise. */
static uint32_t user_across(const proof *x, uint32_t task, uint32_t i, uint32_t *edge) {
  const sn__pipe *p = x->p;
  uint32_t s = sn__pipe_stage_of(p, task), m = sn__pipe_micro_of(p, task);
  uint32_t kind = task % SN__PIPE_KINDS;
  *edge = SN__PIPE_NONE;
  if (kind != SN__PIPE_W) {
    if (i == 0) return task + 1;
    i--;
  }
  if (kind == SN__PIPE_F)
    return across(p, p->outs, p->first_out[s], p->first_out[s + 1], true, m, SN__PIPE_F, i, edge);
  if (kind != (x->glued ? SN__PIPE_W : SN__PIPE_B)) return SN__PIPE_NONE;
  return across(p, p->ins, p->first_in[s], p->first_in[s + 1], false, m, SN__PIPE_B, i, edge);
}

static uint32_t user_of(const proof *x, uint32_t task, uint32_t i) {
  uint32_t edge;
  return user_across(x, task, i, &edge);
}

/* Every task once, on its own device. */
static sn_status link_order(proof *x, const uint32_t *first, const uint32_t *order) {
  const sn__pipe *p = x->p;
  uint32_t n = sn__pipe_task_count(p), *seen = x->stack;
  char text[64];
  if (first[0] != 0 || first[p->n_devices] != n)
    return sn_status_make(SN_CODE_INVALID, "a pipeline order has %u tasks of %u",
                          first[p->n_devices], n);
  memset(seen, 0, n * sizeof *seen);
  for (int d = 0; d < p->n_devices; d++)
    for (uint32_t i = first[d]; i < first[d + 1]; i++) {
      uint32_t t = order[i];
      if (t >= n || seen[t]++ > 0 || p->device[sn__pipe_stage_of(p, t)] != d)
        return sn_status_make(SN_CODE_INVALID,
                              "a pipeline order has %s, at place %u of device %d: each task stands "
                              "once, on its stage's device",
                              t < n ? task_text(p, t, text, sizeof text) : "no such task",
                              i - first[d], d);
      x->before[t] = i > first[d] ? order[i - 1] : SN__PIPE_NONE;
      x->behind[t] = i + 1 < first[d + 1] ? order[i + 1] : SN__PIPE_NONE;
    }
  return SN_OK;
}

/* Something that never starts and that `t`, which never starts, waits for. */
static uint32_t stuck_before(const proof *x, uint32_t t) {
  uint32_t next = x->before[t];
  for (uint32_t i = 0; next == SN__PIPE_NONE || x->left[next] == 0; i++)
    next = need_of(x, t, i);
  return next;
}

static sn_status name_ring(const proof *x, uint32_t t) {
  char text[400] = "", one[64];
  uint32_t length = 0, u;
  size_t used = 0;
  for (uint32_t i = 0; i < sn__pipe_task_count(x->p); i++) /* far enough to be on the ring */
    t = stuck_before(x, t);
  for (u = t; length == 0 || u != t; u = stuck_before(x, u))
    if (length++ < 5)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s waits for ",
                               task_text(x->p, u, one, sizeof one));
  return sn_status_make(SN_CODE_INVALID, "a pipeline order that deadlocks: %s%s%s (a ring of %u)",
                        text, length > 5 ? "... " : "", task_text(x->p, t, one, sizeof one),
                        length);
}

static sn_status prove(proof *x, const uint32_t *first, const uint32_t *order) {
  const sn__pipe *p = x->p;
  uint32_t n = sn__pipe_task_count(p), top = 0, done = 0;
  SN_TRY(link_order(x, first, order));
  for (uint32_t t = 0; t < n; t++) {
    x->left[t] = x->before[t] != SN__PIPE_NONE;
    for (uint32_t i = 0; need_of(x, t, i) != SN__PIPE_NONE; i++)
      x->left[t]++;
    if (x->left[t] == 0) x->stack[top++] = t;
  }
  for (; top > 0; done++) {
    uint32_t t = x->stack[--top], u;
    if (x->behind[t] != SN__PIPE_NONE && --x->left[x->behind[t]] == 0)
      x->stack[top++] = x->behind[t];
    for (uint32_t i = 0; (u = user_of(x, t, i)) != SN__PIPE_NONE; i++)
      if (--x->left[u] == 0) x->stack[top++] = u;
  }
  if (done == n) return SN_OK;
  uint32_t stuck = 0;
  while (x->left[stuck] == 0)
    stuck++;
  return name_ring(x, stuck);
}

sn_status sn__pipe_check_order(const sn__pipe *p, bool glued, const uint32_t *first,
                               const uint32_t *order) {
  size_t n = sn__pipe_task_count(p);
  uint32_t *all = sn__calloc(4 * n, sizeof *all);
  if (all == NULL) return sn_status_out_of_memory();
  proof x = {.p = p,
             .glued = glued,
             .before = all,
             .behind = all + n,
             .left = all + 2 * n,
             .stack = all + 3 * n};
  sn_status status = prove(&x, first, order);
  sn__free(all);
  return status;
}

/* ---- a bound ------------------------------------------------------------------------------- */

/* What comes between two tasks of two devices: the copy of the micro-batch that is sent. */
static int64_t copy_time(const sn__pipe *p, uint32_t edge, uint32_t sender, bool back) {
  if (edge == SN__PIPE_NONE || p->device[p->edges[edge].from] == p->device[p->edges[edge].to])
    return 0;
  return p->copy_ns[((size_t)edge * p->n_micro + sn__pipe_micro_of(p, sender)) * 2 + back];
}

/* Longest path before a task and behind it, copies included, whatever the order. */
static void find_heads(const proof *x, int64_t *head) {
  const sn__pipe *p = x->p;
  for (int back = 0; back < 2; back++)
    for (uint32_t i = 0; i < p->n_stages; i++)
      for (uint32_t m = 0; m < p->n_micro; m++) {
        uint32_t s = p->topological[back ? p->n_stages - 1 - i : i];
        uint32_t t = sn__pipe_task(p, s, m, back ? SN__PIPE_B : SN__PIPE_F), need, edge;
        for (uint32_t k = 0; (need = need_across(x, t, k, &edge)) != SN__PIPE_NONE; k++) {
          int64_t at = head[need] + p->ns[need] + copy_time(p, edge, need, back != 0);
          if (at > head[t]) head[t] = at;
        }
        if (back) head[t + 1] = head[t] + p->ns[t];
      }
}

static void find_tails(const proof *x, int64_t *tail) {
  const sn__pipe *p = x->p;
  for (int back = 1; back >= 0; back--)
    for (uint32_t i = 0; i < p->n_stages; i++)
      for (uint32_t m = 0; m < p->n_micro; m++) {
        uint32_t s = p->topological[back ? i : p->n_stages - 1 - i];
        for (int kind = back ? SN__PIPE_W : SN__PIPE_F; kind >= (back ? SN__PIPE_B : SN__PIPE_F);
             kind--) {
          uint32_t t = sn__pipe_task(p, s, m, (sn__pipe_kind)kind), u, edge;
          for (uint32_t k = 0; (u = user_across(x, t, k, &edge)) != SN__PIPE_NONE; k++) {
            int64_t behind = p->ns[u] + tail[u] + copy_time(p, edge, t, back != 0);
            if (behind > tail[t]) tail[t] = behind;
          }
        }
      }
}

typedef struct job {
  int64_t head, ns, tail;
} job;

static int by_tail_down(const void *a, const void *b) {
  const job *x = a, *y = b;
  return x->tail != y->tail ? (x->tail > y->tail ? -1 : 1) : 0;
}

/* max over sets of jobs of (least head + all work + least tail): the sets that matter are those
 * with head and tail at least some numbers. */
static int64_t one_device_bound(job *jobs, uint32_t n) {
  int64_t best = 0, last = -1;
  qsort(jobs, n, sizeof *jobs, by_tail_down);
  for (;;) { /* by each different head, growing */
    int64_t least = INT64_MAX, work = 0;
    for (uint32_t i = 0; i < n; i++)
      if (jobs[i].head > last && jobs[i].head < least) least = jobs[i].head;
    if (least == INT64_MAX) return best;
    for (uint32_t i = 0; i < n; i++) {
      if (jobs[i].head < least) continue;
      work += jobs[i].ns;
      if (least + work + jobs[i].tail > best) best = least + work + jobs[i].tail;
    }
    last = least;
  }
}

sn_status sn__pipe_bound(const sn__pipe *p, bool glued, int64_t *out_ns) {
  uint32_t n = sn__pipe_task_count(p);
  int64_t *head = sn__calloc(2 * (size_t)n, sizeof *head), best = 0;
  job *jobs = sn__calloc(n, sizeof *jobs);
  if (head == NULL || jobs == NULL) {
    sn__free(head);
    sn__free(jobs);
    return sn_status_out_of_memory();
  }
  int64_t *tail = head + n;
  proof x = {.p = p, .glued = glued};
  find_heads(&x, head);
  find_tails(&x, tail);
  for (int d = 0; d < p->n_devices; d++) {
    uint32_t count = 0;
    for (uint32_t t = 0; t < n; t++)
      if (p->device[sn__pipe_stage_of(p, t)] == d)
        jobs[count++] = (job){head[t], p->ns[t], tail[t]};
    int64_t bound = one_device_bound(jobs, count);
    if (bound > best) best = bound;
  }
  sn__free(head);
  sn__free(jobs);
  *out_ns = best;
  return SN_OK;
}
