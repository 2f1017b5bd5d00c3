/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/race.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is touched ----------------------------------------------------------------------- */

typedef struct collector {
  const sn_graph *g;
  const sn__schedule *s;
  const sn__memory *m;
  const int64_t *capacity;
  sn__accesses *out;
} collector;

static sn_status push(collector *c, sn__access access) {
  sn__accesses *out = c->out;
  if (access.begin == access.end) return SN_OK;
  if (!sn__grow((void **)&out->items, &out->capacity, out->count + 1, sizeof *out->items))
    return sn_status_out_of_memory();
  out->items[out->count++] = access;
  return SN_OK;
}

/* Spaces: arenas first, then one for each value that is a variable or an input. */
static sn_status push_value(collector *c, uint32_t task, uint32_t value, sn__access access) {
  const sn_graph *g = c->g;
  uint32_t storage = sn__value_storage(g, value);
  size_t bytes = 0;
  if (!sn__value_bytes(g, value, c->capacity, &bytes)) bytes = 0; /* refused by the memory plan */
  access.task = task;
  access.value = storage;
  int32_t block = c->m->block_of[storage];
  if (block == SN__NO_BLOCK) {
    access.space = c->m->n_arenas + storage;
    access.end = bytes;
    return g->values[storage].kind == SN_VALUE_CONSTANT ? SN_OK : push(c, access);
  }
  const sn__block *b = &c->m->blocks[block];
  access.space = (uint32_t)b->arena;
  access.begin = b->offset;
  access.end = b->offset + bytes;
  return push(c, access);
}

static sn_status collect_task(collector *c, uint32_t task) {
  const sn_graph *g = c->g;
  const sn__node *n = &g->nodes[c->s->tasks[task].node];
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (n->in[i] == 0) continue;
    uint32_t producer = g->values[sn__value_behind_views(g, n->in[i])].node;
    SN_TRY(push_value(c, task, n->in[i], (sn__access){.writer = c->s->task_of[producer]}));
  }
  for (uint32_t o = 0; o < n->n_out; o++) {
    bool commit = (n->op->flags & SN_OP_COMMIT) != 0 && n->op->commits[o] != 0;
    SN_TRY(push_value(
        c, task, n->out[o],
        (sn__access){.write = true, .in_place = commit || sn__memory_in_place(c->m, n, o)}));
  }
  int32_t workspace = c->m->workspace[task];
  if (workspace == SN__NO_BLOCK) return SN_OK;
  const sn__block *b = &c->m->blocks[workspace];
  return push(c, (sn__access){.space = (uint32_t)b->arena,
                              .task = task,
                              .begin = b->offset,
                              .end = b->offset + c->m->workspace_bytes[task],
                              .write = true});
}

/* What is fetched is read after the step: by a task of its own, numbered n_tasks. */
static sn_status collect_fetches(collector *c, const sn__schedule_options *options) {
  for (size_t i = 0; i < options->n_fetches; i++) {
    uint32_t value = options->fetches[i];
    uint32_t producer = c->g->values[sn__value_behind_views(c->g, value)].node;
    SN_TRY(push_value(c, c->s->n_tasks, value, (sn__access){.writer = c->s->task_of[producer]}));
  }
  return SN_OK;
}

sn_status sn__accesses_collect(const sn_graph *graph, const sn__schedule *schedule,
                               const sn__memory *memory, const int64_t *capacity,
                               const sn__schedule_options *options, sn__accesses *out_accesses) {
  *out_accesses = (sn__accesses){.n_spaces = memory->n_arenas + (uint32_t)graph->n_values};
  collector c = {graph, schedule, memory, capacity, out_accesses};
  sn_status status = SN_OK;
  for (uint32_t t = 0; status == SN_OK && t < schedule->n_tasks; t++)
    status = collect_task(&c, t);
  if (status == SN_OK) status = collect_fetches(&c, options);
  if (status != SN_OK) {
    sn__free(out_accesses->items);
    *out_accesses = (sn__accesses){0};
  }
  return status;
}

/* ---- order --------------------------------------------------------------------------------- */

typedef struct checker {
  const sn_graph *g;
  const sn_topology *topology;
  const sn__schedule *s;
  uint32_t *clocks; /* [n_tasks * n_queues] as in the schedule, worked out anew */
} checker;

static sn_status deadlock(const checker *c, const uint32_t *at) {
  const sn__schedule *s = c->s;
  for (uint32_t q = 0; q < s->n_queues; q++) {
    if (s->queue_first[q] + at[q] == s->queue_first[q + 1]) continue;
    const sn__task *t = &s->tasks[s->queue_tasks[s->queue_first[q] + at[q]]];
    return sn_status_make(SN_CODE_INTERNAL, "deadlock: '%s' on %s can never start",
                          c->g->nodes[t->node].name, c->topology->devices[sn__task_device(t)].name);
  }
  return SN_OK;
}

/* Starts the task at the head of queue q if all that it waits for has ended. */
static bool advance(checker *c, uint32_t q, const uint32_t *at) {
  const sn__schedule *s = c->s;
  uint32_t task = s->queue_tasks[s->queue_first[q] + at[q]], queues = s->n_queues;
  const sn__task *t = &s->tasks[task];
  for (uint32_t w = 0; w < t->n_waits; w++) {
    const sn__queue_point *p = &s->waits[t->first_wait + w];
    if (at[p->queue] <= p->position) return false;
  }
  uint32_t *clock = &c->clocks[(size_t)task * queues];
  if (at[q] > 0)
    memcpy(clock, &c->clocks[(size_t)s->queue_tasks[s->queue_first[q] + at[q] - 1] * queues],
           queues * sizeof *clock);
  clock[q] = at[q];
  for (uint32_t w = 0; w < t->n_waits; w++) {
    const sn__queue_point *p = &s->waits[t->first_wait + w];
    uint32_t other = s->queue_tasks[s->queue_first[p->queue] + p->position];
    for (uint32_t k = 0; k < queues; k++) {
      uint32_t seen = c->clocks[(size_t)other * queues + k];
      if (seen > clock[k]) clock[k] = seen;
    }
    if (p->position + 1 > clock[p->queue]) clock[p->queue] = p->position + 1;
  }
  return true;
}

/* Runs the queues until nothing moves: either all is done, or it never will be. */
static sn_status run_clocks(checker *c) {
  const sn__schedule *s = c->s;
  uint32_t *at = sn__calloc((size_t)s->n_queues + 1, sizeof *at);
  if (at == NULL) return sn_status_out_of_memory();
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t q = 0; q < s->n_queues; q++)
      while (s->queue_first[q] + at[q] < s->queue_first[q + 1] && advance(c, q, at)) {
        at[q]++;
        moved = true;
      }
  }
  sn_status status = deadlock(c, at);
  sn__free(at);
  return status;
}

/* The host, as task n_tasks, comes after everything. */
static bool before(const checker *c, uint32_t a, uint32_t b) {
  if (a == c->s->n_tasks) return false;
  if (b == c->s->n_tasks) return true;
  const sn__task *t = &c->s->tasks[a];
  return c->clocks[(size_t)b * c->s->n_queues + t->queue] > t->position;
}

/* ---- pairs --------------------------------------------------------------------------------- */

static const char *task_name(const checker *c, uint32_t task) {
  return task == c->s->n_tasks ? "the host" : c->g->nodes[c->s->tasks[task].node].name;
}

static const char *task_device(const checker *c, uint32_t task) {
  if (task == c->s->n_tasks) return "the host";
  return c->topology->devices[sn__task_device(&c->s->tasks[task])].name;
}

static sn_status complain(const checker *c, const char *what, const sn__access *a,
                          const sn__access *b) {
  uint64_t begin = a->begin > b->begin ? a->begin : b->begin;
  uint64_t end = a->end < b->end ? a->end : b->end;
  const char *where = "an arena";
  if (a->value != 0 && c->g->values[a->value].kind != SN_VALUE_OP)
    where = c->g->values[a->value].name;
  return sn_status_make(
      SN_CODE_INTERNAL, "%s: '%s' on %s %s and '%s' on %s %s bytes %llu to %llu of %s", what,
      task_name(c, a->task), task_device(c, a->task), a->write ? "writes" : "reads",
      task_name(c, b->task), task_device(c, b->task), b->write ? "writes" : "reads",
      (unsigned long long)begin, (unsigned long long)end, where);
}

static sn_status check_same_task(const checker *c, const sn__access *a, const sn__access *b) {
  if (a->write && b->write) return complain(c, "two outputs over one another", a, b);
  const sn__access *w = a->write ? a : b;
  if (w->in_place && a->begin == b->begin && a->end == b->end) return SN_OK;
  return complain(c, "an output over an input", a, b);
}

/* Overlapping bytes, one access a write. */
static sn_status check_pair(const checker *c, const sn__access *a, const sn__access *b) {
  if (a->task == b->task) return check_same_task(c, a, b);
  if (!before(c, a->task, b->task) && !before(c, b->task, a->task))
    return complain(c, "race", a, b);
  if (a->write && b->write) return SN_OK;
  const sn__access *read = a->write ? b : a, *write = a->write ? a : b;
  if (read->writer == write->task + 1) {
    if (read->value == write->value && before(c, write->task, read->task)) return SN_OK;
    if (read->value == write->value) return complain(c, "read before it is written", a, b);
  }
  bool in_time = before(c, read->task, write->task) ||
                 (read->writer != 0 &&
                  (before(c, write->task, read->writer - 1) || write->task == read->writer - 1));
  return in_time ? SN_OK : complain(c, "overwritten before it is read", a, b);
}

static int by_space(const void *x, const void *y) {
  const sn__access *a = x, *b = y;
  if (a->space != b->space) return a->space < b->space ? -1 : 1;
  if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
  if (a->task != b->task) return a->task < b->task ? -1 : 1;
  return a->write < b->write ? -1 : a->write > b->write;
}

/* A sweep along the bytes: `open` holds the accesses that reach past the present beginning. */
static sn_status check_pairs(const checker *c, const sn__accesses *accesses) {
  const sn__access **open = sn__alloc((accesses->count + 1) * sizeof *open);
  if (open == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  size_t n = 0;
  for (size_t i = 0; status == SN_OK && i < accesses->count; i++) {
    const sn__access *a = &accesses->items[i];
    size_t kept = 0;
    for (size_t k = 0; k < n; k++)
      if (open[k]->space == a->space && open[k]->end > a->begin) open[kept++] = open[k];
    n = kept;
    for (size_t k = 0; status == SN_OK && k < n; k++)
      if (open[k]->write || a->write) status = check_pair(c, open[k], a);
    open[n++] = a;
  }
  sn__free(open);
  return status;
}

sn_status sn__race_check(const sn_graph *graph, const sn_topology *topology,
                         const sn__schedule *schedule, sn__accesses *accesses) {
  size_t cells = 0;
  checker c = {.g = graph, .topology = topology, .s = schedule};
  if (sn__size_mul((size_t)schedule->n_tasks + 1, schedule->n_queues, &cells))
    c.clocks = sn__calloc(cells, sizeof *c.clocks);
  if (c.clocks == NULL) return sn_status_out_of_memory();
  sn_status status = run_clocks(&c);
  if (status == SN_OK && accesses->count > 0) {
    qsort(accesses->items, accesses->count, sizeof *accesses->items, by_space);
    status = check_pairs(&c, accesses);
  }
  sn__free(c.clocks);
  return status;
}

sn_status sn__race_check_plan(const sn_graph *graph, const sn_topology *topology,
                              const sn__schedule *schedule, const sn__memory *memory,
                              const int64_t *capacity, const sn__schedule_options *options) {
  sn__accesses accesses;
  SN_TRY(sn__accesses_collect(graph, schedule, memory, capacity, options, &accesses));
  sn_status status = sn__race_check(graph, topology, schedule, &accesses);
  sn__free(accesses.items);
  return sn_status_context(status, "race check");
}
