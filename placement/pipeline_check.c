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

/* The i-th task that `task` needs, of sn__pipe's own rules; NONE past the last. */
static uint32_t need_of(const proof *x, uint32_t task, uint32_t i) {
  const sn__pipe *p = x->p;
  uint32_t s = sn__pipe_stage_of(p, task), m = sn__pipe_micro_of(p, task);
  if (task % SN__PIPE_KINDS == SN__PIPE_W) return i == 0 ? task - 1 : SN__PIPE_NONE;
  if (task % SN__PIPE_KINDS == SN__PIPE_F)
    return i < p->first_in[s + 1] - p->first_in[s]
               ? sn__pipe_task(p, p->edges[p->ins[p->first_in[s] + i]].from, m, SN__PIPE_F)
               : SN__PIPE_NONE;
  if (i == 0) return task - 1;
  return i - 1 < p->first_out[s + 1] - p->first_out[s]
             ? sn__pipe_task(p, p->edges[p->outs[p->first_out[s] + i - 1]].to, m,
                             x->glued ? SN__PIPE_W : SN__PIPE_B)
             : SN__PIPE_NONE;
}

/* The i-th task that needs `task`. */
static uint32_t user_of(const proof *x, uint32_t task, uint32_t i) {
  const sn__pipe *p = x->p;
  uint32_t s = sn__pipe_stage_of(p, task), m = sn__pipe_micro_of(p, task);
  uint32_t kind = task % SN__PIPE_KINDS;
  if (kind != SN__PIPE_W) {
    if (i == 0) return task + 1;
    i--;
  }
  if (kind == SN__PIPE_F)
    return i < p->first_out[s + 1] - p->first_out[s]
               ? sn__pipe_task(p, p->edges[p->outs[p->first_out[s] + i]].to, m, SN__PIPE_F)
               : SN__PIPE_NONE;
  if (kind != (x->glued ? SN__PIPE_W : SN__PIPE_B)) return SN__PIPE_NONE;
  return i < p->first_in[s + 1] - p->first_in[s]
             ? sn__pipe_task(p, p->edges[p->ins[p->first_in[s] + i]].from, m, SN__PIPE_B)
             : SN__PIPE_NONE;
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

/* Longest path before a task and behind it, copies included, whatever the order. */
static void find_heads(const proof *x, int64_t *head) {
  const sn__pipe *p = x->p;
  for (int back = 0; back < 2; back++)
    for (uint32_t i = 0; i < p->n_stages; i++)
      for (uint32_t m = 0; m < p->n_micro; m++) {
        uint32_t s = p->topological[back ? p->n_stages - 1 - i : i];
        uint32_t t = sn__pipe_task(p, s, m, back ? SN__PIPE_B : SN__PIPE_F), need;
        for (uint32_t k = 0; (need = need_of(x, t, k)) != SN__PIPE_NONE; k++) {
          int64_t at = head[need] + p->ns[need];
          uint32_t list = back ? (k == 0 ? SN__PIPE_NONE : p->outs[p->first_out[s] + k - 1])
                               : p->ins[p->first_in[s] + k];
          if (list != SN__PIPE_NONE &&
              p->device[p->edges[list].from] != p->device[p->edges[list].to])
            at += p->copy_ns[((size_t)list * p->n_micro + m) * 2 + (size_t)back];
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
          uint32_t t = sn__pipe_task(p, s, m, (sn__pipe_kind)kind), u;
          uint32_t own = kind == SN__PIPE_W ? 0 : 1; /* the next kind of its own stage */
          for (uint32_t k = 0; (u = user_of(x, t, k)) != SN__PIPE_NONE; k++) {
            int64_t behind = p->ns[u] + tail[u];
            if (k >= own) {
              uint32_t e =
                  back ? p->ins[p->first_in[s] + k - own] : p->outs[p->first_out[s] + k - own];
              if (p->device[p->edges[e].from] != p->device[p->edges[e].to])
                behind += p->copy_ns[((size_t)e * p->n_micro + m) * 2 + (size_t)back];
            }
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
