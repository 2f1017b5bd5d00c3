/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds by queues: each must take its own work one after another. */
#include "placement/exact_bound.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* ---- one queue ------------------------------------------------------------------------------ */

static void sift_up(sn__piece *heap, uint32_t i, sn__piece p) {
  for (; i > 0 && p.tail > heap[(i - 1) / 2].tail; i = (i - 1) / 2)
    heap[i] = heap[(i - 1) / 2];
  heap[i] = p;
}

static void take_top(sn__piece *heap, uint32_t *n) {
  sn__piece last = heap[--*n];
  uint32_t i = 0;
  for (;;) {
    uint32_t c = 2 * i + 1;
    if (c >= *n) break;
    if (c + 1 < *n && heap[c + 1].tail > heap[c].tail) c++;
    if (heap[c].tail <= last.tail) break;
    heap[i] = heap[c];
    i = c;
  }
  if (*n > 0) heap[i] = last;
}

static int compare_heads(const void *a, const void *b) {
  const sn__piece *x = a, *y = b;
  return x->head < y->head ? -1 : x->head > y->head;
}

/* They come nearly sorted; where they do not, moving one by one would take the square of n. Equals
 * may come in any order: all are there before one is chosen. */
static void sort_by_head(sn__piece *pieces, uint32_t n) {
  uint64_t moves = 64 * (uint64_t)n;
  for (uint32_t i = 1; i < n; i++) {
    sn__piece p = pieces[i];
    uint32_t k = i;
    for (; k > 0 && pieces[k - 1].head > p.head; k--)
      pieces[k] = pieces[k - 1];
    pieces[k] = p;
    if (i - k <= moves) {
      moves -= i - k;
      continue;
    }
    qsort(pieces, n, sizeof *pieces, compare_heads);
    return;
  }
}

int64_t sn__one_queue(sn__piece *pieces, uint32_t n, sn__piece *heap) {
  int64_t now = 0, last = 0;
  uint32_t waiting = 0;
  sort_by_head(pieces, n);
  for (uint32_t i = 0; i < n || waiting > 0;) {
    if (waiting == 0 && pieces[i].head > now) now = pieces[i].head;
    for (; i < n && pieces[i].head <= now; i++)
      sift_up(heap, waiting++, pieces[i]);
    int64_t until = now + heap[0].ns;
    if (i < n && pieces[i].head < until) {
      heap[0].ns = until - pieces[i].head;
      now = pieces[i].head;
      continue;
    }
    now = until;
    if (now + heap[0].tail > last) last = now + heap[0].tail;
    take_top(heap, &waiting);
  }
  return last;
}

/* ---- all of a placement --------------------------------------------------------------------- */

enum { APART_MOST = 512, ROUNDS_MOST = 12 };

sn_status sn__bounder_create(sn__jobs *jobs, sn__bounder **out_bounder) {
  sn__bounder *b = sn__calloc(1, sizeof *b);
  if (b == NULL) return sn_status_out_of_memory();
  b->jobs = jobs;
  b->apart_most = jobs->most < APART_MOST ? jobs->most : APART_MOST;
  b->pieces = sn__calloc(jobs->most, sizeof *b->pieces);
  b->heap = sn__calloc((size_t)jobs->most + (size_t)jobs->n_queues, sizeof *b->heap);
  b->apart = sn__calloc((size_t)b->apart_most * b->apart_most, sizeof *b->apart);
  if (b->pieces == NULL || b->heap == NULL || b->apart == NULL ||
      sn__alike_create(jobs, &b->alike) != SN_OK) {
    sn__bounder_free(b);
    return sn_status_out_of_memory();
  }
  *out_bounder = b;
  return SN_OK;
}

void sn__bounder_free(sn__bounder *b) {
  if (b == NULL) return;
  sn__free(b->pieces);
  sn__free(b->heap);
  sn__free(b->apart);
  sn__alike_free(b->alike);
  sn__free(b);
}

/* The jobs that are nowhere yet have to be done, too. */
static int64_t shared_out(const sn__jobs *x) {
  int64_t sum = 0, devices = x->flow->n_devices;
  for (uint32_t t = 0; t < x->flow->n_tasks; t++)
    sum += x->jobs[t].ns;
  return sum / devices + (sum % devices != 0);
}

static int64_t queues(sn__bounder *b) {
  const sn__jobs *x = b->jobs;
  int64_t most = 0;
  for (int q = 0; q < x->n_queues; q++) {
    uint32_t n = 0;
    for (uint32_t i = x->first_on[q]; i < x->first_on[q + 1]; i++) {
      const sn__job *j = &x->jobs[x->on[i]];
      b->pieces[n++] = (sn__piece){j->head, j->ns, j->tail};
    }
    int64_t end = sn__one_queue(b->pieces, n, b->heap);
    if (end > most) most = end;
  }
  return most;
}

int64_t sn__bound_quick(sn__bounder *b) {
  int64_t bound = shared_out(b->jobs);
  int64_t path = sn__jobs_paths(b->jobs), queue = queues(b);
  if (path > bound) bound = path;
  return queue > bound ? queue : bound;
}

/* ---- heads and tails that know of queues ---------------------------------------------------- */

/* apart[i * n + j]: from i's end to j's start at least, by paths; -1 where j does not wait for i.
 */
static void measure(sn__bounder *b) {
  const sn__jobs *x = b->jobs;
  size_t n = x->n;
  memset(b->apart, 0xff, n * n * sizeof *b->apart);
  for (size_t i = n; i-- > 0;) { /* rows of later jobs are there */
    uint32_t from = x->order[i];
    int64_t *row = b->apart + from * n;
    for (uint32_t e = x->first_after[from]; e < x->first_after[from + 1]; e++) {
      uint32_t next = x->after[e];
      const int64_t *other = b->apart + next * n;
      int64_t ns = x->jobs[next].ns;
      if (row[next] < 0) row[next] = 0;
      for (size_t k = i + 2; k < n; k++) {
        uint32_t j = x->order[k];
        if (other[j] >= 0 && ns + other[j] > row[j]) row[j] = ns + other[j];
      }
    }
  }
}

/* A job starts when each queue can be done with what comes before it. */
static void raise_heads(sn__bounder *b) {
  sn__jobs *x = b->jobs;
  for (uint32_t k = 0; k < x->n; k++) {
    uint32_t at = x->order[k];
    sn__job *j = &x->jobs[at];
    for (uint32_t e = x->first_before[at]; e < x->first_before[at + 1]; e++) {
      const sn__job *p = &x->jobs[x->before[e]];
      if (p->head + p->ns > j->head) j->head = p->head + p->ns;
    }
    if (x->first_before[at + 1] - x->first_before[at] < 2) continue; /* the one before knows */
    for (int q = 0; q < x->n_queues; q++) {
      uint32_t n = 0;
      for (uint32_t i = x->first_on[q]; i < x->first_on[q + 1]; i++) {
        const sn__job *p = &x->jobs[x->on[i]];
        int64_t apart = b->apart[(size_t)x->on[i] * x->n + at];
        if (apart >= 0) b->pieces[n++] = (sn__piece){p->head, p->ns, apart};
      }
      int64_t end = n > 1 ? sn__one_queue(b->pieces, n, b->heap) : 0;
      if (end > j->head) j->head = end;
    }
  }
}

static void raise_tails(sn__bounder *b) {
  sn__jobs *x = b->jobs;
  for (uint32_t k = x->n; k-- > 0;) {
    uint32_t at = x->order[k];
    sn__job *j = &x->jobs[at];
    for (uint32_t e = x->first_after[at]; e < x->first_after[at + 1]; e++) {
      const sn__job *a = &x->jobs[x->after[e]];
      if (a->ns + a->tail > j->tail) j->tail = a->ns + a->tail;
    }
    if (x->first_after[at + 1] - x->first_after[at] < 2) continue;
    for (int q = 0; q < x->n_queues; q++) {
      uint32_t n = 0;
      for (uint32_t i = x->first_on[q + 1]; i-- > x->first_on[q];) {
        const sn__job *a = &x->jobs[x->on[i]];
        int64_t apart = b->apart[(size_t)at * x->n + x->on[i]];
        if (apart >= 0) b->pieces[n++] = (sn__piece){a->tail, a->ns, apart};
      }
      int64_t end = n > 1 ? sn__one_queue(b->pieces, n, b->heap) : 0;
      if (end > j->tail) j->tail = end;
    }
  }
}

/* ---- orders that must be -------------------------------------------------------------------- */

/* Adds an edge for each pair of a queue that can go only one way. The number of edges added; -1:
 * some pair can go neither way. */
static int choose_pairs(sn__bounder *b, int64_t cutoff) {
  sn__jobs *x = b->jobs;
  int added = 0;
  for (int q = 0; q < x->n_queues; q++)
    for (uint32_t k = x->first_on[q]; k < x->first_on[q + 1]; k++)
      for (uint32_t l = k + 1; l < x->first_on[q + 1]; l++) {
        uint32_t i = x->on[k], j = x->on[l];
        const sn__job *a = &x->jobs[i], *c = &x->jobs[j];
        if (b->apart[(size_t)i * x->n + j] >= 0 || b->apart[(size_t)j * x->n + i] >= 0) continue;
        bool first = a->head + a->ns + c->ns + c->tail < cutoff;
        bool second = c->head + c->ns + a->ns + a->tail < cutoff;
        if (first && second) continue;
        if (!first && !second) return -1;
        if (!sn__jobs_join(x, first ? i : j, first ? j : i)) return added;
        added++;
      }
  return added;
}

/* How much of the time before j starts at the earliest others than i can keep their queue busy. */
static int64_t busy_before(const sn__bounder *b, int q, uint32_t i, uint32_t j) {
  const sn__jobs *x = b->jobs;
  int64_t until = x->jobs[j].head, sum = 0;
  for (uint32_t l = x->first_on[q]; l < x->first_on[q + 1]; l++) {
    uint32_t k = x->on[l];
    int64_t room = until - x->jobs[k].head;
    if (k == i || k == j || room <= 0) continue;
    if (b->apart[(size_t)j * x->n + k] >= 0 || b->apart[(size_t)i * x->n + k] >= 0) continue;
    sum += x->jobs[k].ns < room ? x->jobs[k].ns : room;
  }
  return sum;
}

/* What waits for nothing runs as soon as its device would be idle: so it goes before what comes so
 * late that the device would be idle before it. The number of edges added. */
static int fill_idle(sn__bounder *b) {
  sn__jobs *x = b->jobs;
  int added = 0;
  memset(x->scratch, 0, (size_t)x->n * sizeof *x->scratch);
  for (uint32_t e = 0; e < x->n_real; e++)
    x->scratch[x->edges[e].after] = 1;
  for (int q = 0; q < x->flow->n_devices; q++)
    for (uint32_t k = x->first_on[q]; k < x->first_on[q + 1]; k++) {
      uint32_t i = x->on[k];
      for (uint32_t l = x->first_on[q]; x->scratch[i] == 0 && l < x->first_on[q + 1]; l++) {
        uint32_t j = x->on[l];
        if (i == j || b->apart[(size_t)i * x->n + j] >= 0) continue;
        if (b->apart[(size_t)j * x->n + i] >= 0 || busy_before(b, q, i, j) >= x->jobs[j].head)
          continue;
        if (!sn__jobs_join(x, i, j)) return added;
        added++;
      }
    }
  return added;
}

int64_t sn__bound_deep(sn__bounder *b, int64_t cutoff) {
  sn__jobs *x = b->jobs;
  int64_t bound = sn__bound_quick(b);
  if (x->n > b->apart_most) return bound;
  for (int round = 0; bound < cutoff && round < ROUNDS_MOST; round++) {
    measure(b);
    raise_heads(b);
    raise_tails(b);
    int64_t path = sn__jobs_paths(x), queue = queues(b);
    if (path > bound) bound = path;
    if (queue > bound) bound = queue;
    if (bound >= cutoff) break;
    int added = choose_pairs(b, cutoff);
    if (added < 0) return cutoff;
    if (b->exchange) added += sn__alike_order(b->alike, b->apart);
    if (b->no_waiting) added += fill_idle(b);
    if (added == 0) break;
    if (!sn__jobs_link(x)) return cutoff;
  }
  return bound;
}
