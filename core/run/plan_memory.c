/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a plan's memory over the step: what of a device's arenas is in use when. */
#include <stdlib.h>
#include <string.h>

#include "core/run/run_impl.h"

typedef struct span {
  int64_t from, to; /* from -1: nobody touches it */
} span;

static void touch(span *s, const sn__task *task) {
  if (s->from < 0 || task->start_ns < s->from) s->from = task->start_ns;
  if (task->finish_ns > s->to) s->to = task->finish_ns;
}

/* When each block is in use: from its first writer's start to its last reader's end. */
static void find_spans(const sn_plan *p, span *spans) {
  const sn_graph *g = p->graph;
  const sn__memory *m = p->memory;
  for (uint32_t b = 0; b < m->n_blocks; b++)
    spans[b] = (span){-1, m->blocks[b].fetched ? p->schedule->makespan_ns : 0};
  for (uint32_t t = 0; t < p->schedule->n_tasks; t++) {
    const sn__task *task = &p->schedule->tasks[t];
    const sn__node *n = &g->nodes[task->node];
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
      uint32_t value = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
      int32_t b = value == 0 ? SN__NO_BLOCK : m->block_of[sn__value_storage(g, value)];
      if (b != SN__NO_BLOCK) touch(&spans[b], task);
    }
    if (m->workspace[t] != SN__NO_BLOCK) touch(&spans[m->workspace[t]], task);
  }
}

static int by_time(const void *a, const void *b) {
  const sn_plan_memory_point *x = a, *y = b;
  return (x->ns > y->ns) - (x->ns < y->ns);
}

size_t sn_plan_memory_over(const sn_plan *p, size_t device, sn_plan_memory_point *out) {
  if (p->memory == NULL || device >= sn_plan_device_count(p)) return 0;
  uint32_t n = p->memory->n_blocks;
  if (out == NULL) return 2 * (size_t)n;
  span *spans = sn__calloc((size_t)n + 1, sizeof *spans);
  if (spans == NULL) return 0;
  find_spans(p, spans);
  size_t count = 0;
  for (uint32_t b = 0; b < n; b++) {
    const sn__block *block = &p->memory->blocks[b];
    if ((size_t)block->arena / SN__QUEUE_COUNT != device || spans[b].from < 0) continue;
    out[count++] = (sn_plan_memory_point){spans[b].from, (int64_t)block->bytes};
    out[count++] = (sn_plan_memory_point){spans[b].to, -(int64_t)block->bytes};
  }
  sn__free(spans);
  qsort(out, count, sizeof *out, by_time);
  /* From changes to sums; changes of one moment are one point. */
  size_t kept = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    bytes += out[i].bytes;
    if (kept > 0 && out[kept - 1].ns == out[i].ns) kept--;
    out[kept++] = (sn_plan_memory_point){out[i].ns, bytes};
  }
  return kept;
}
