/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/schedule.h"

#include <stdlib.h>
#include <string.h>

typedef struct edge {
  uint32_t from, to; /* draft task numbers */
} edge;

/* Everything that is dropped once the schedule stands. Draft tasks are in node order. */
typedef struct builder {
  const sn_graph *g;
  const sn_topology *topology;
  const int64_t *extents;
  const sn__schedule_options *options;
  sn__schedule *s;
  sn__arena scratch;
  uint32_t n;     /* draft tasks */
  uint32_t *node; /* [n] */
  uint32_t *queue;
  int64_t *cost, *order_of; /* order_of: of the node; 0: none given, or not read */
  int64_t *rank, *start, *finish;
  uint32_t *draft_of; /* [n_nodes] draft number + 1 */
  edge *edges;
  size_t n_edges, cap_edges;
  size_t n_given;              /* edges before those of a strict order */
  uint32_t *succ_first, *succ; /* by `from` */
  uint32_t *pred_first, *pred; /* by `to` */
  uint32_t *order;             /* [n] drafts in the order in which they start */
} builder;

static void *take(builder *b, size_t count, size_t size) {
  size_t bytes = 0;
  if (!sn__size_mul(count + 1, size, &bytes)) return NULL;
  return sn__arena_alloc(&b->scratch, bytes);
}

static void *keep(builder *b, size_t count, size_t size) {
  size_t bytes = 0;
  if (!sn__size_mul(count + 1, size, &bytes)) return NULL;
  return sn__arena_alloc(&b->s->arena, bytes);
}

/* ---- what runs ----------------------------------------------------------------------------- */

static bool is_task(const sn__node *n) {
  return !sn__node_is_source(n) && (n->op->flags & SN_OP_VIEW) == 0;
}

static sn_status make_drafts(builder *b) {
  const sn_graph *g = b->g;
  b->node = take(b, g->n_nodes, sizeof *b->node);
  b->draft_of = take(b, g->n_nodes, sizeof *b->draft_of);
  if (b->node == NULL || b->draft_of == NULL) return sn_status_out_of_memory();
  for (uint32_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (!b->s->needed[i]) continue;
    if (n->device < 0 || n->device >= b->topology->n_devices)
      return sn_status_make(SN_CODE_INTERNAL, "node '%s' has no device of this topology", n->name);
    if (!is_task(n)) continue;
    b->node[b->n++] = i;
    b->draft_of[i] = b->n;
  }
  b->queue = take(b, b->n, sizeof *b->queue);
  b->cost = take(b, b->n, sizeof *b->cost);
  b->order_of = take(b, b->n, sizeof *b->order_of);
  if (b->queue == NULL || b->cost == NULL || b->order_of == NULL) return sn_status_out_of_memory();
  for (uint32_t t = 0; t < b->n; t++) {
    const sn__node *n = &g->nodes[b->node[t]];
    bool copy = (n->op->flags & SN_OP_COPY) != 0;
    b->queue[t] =
        (uint32_t)n->device * SN__QUEUE_COUNT + (copy ? SN__QUEUE_COPY : SN__QUEUE_COMPUTE);
    b->order_of[t] = g->order_rule == SN_ORDER_LONGEST ? 0 : n->order;
    SN_TRY(sn__node_cost_ns(g, b->topology, b->extents, b->node[t], &b->cost[t]));
  }
  return SN_OK;
}

/* ---- what comes before what ---------------------------------------------------------------- */

static sn_status add_edge(builder *b, uint32_t from, uint32_t to) {
  if (from == to) return SN_OK;
  if (!sn__grow((void **)&b->edges, &b->cap_edges, b->n_edges + 1, sizeof *b->edges))
    return sn_status_out_of_memory();
  b->edges[b->n_edges++] = (edge){from, to};
  return SN_OK;
}

static sn_status add_data_edges(builder *b) {
  const sn_graph *g = b->g;
  for (uint32_t t = 0; t < b->n; t++) {
    const sn__node *n = &g->nodes[b->node[t]];
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (n->in[i] == 0) continue;
      uint32_t producer = g->values[sn__value_behind_views(g, n->in[i])].node;
      if (b->draft_of[producer] != 0) SN_TRY(add_edge(b, b->draft_of[producer] - 1, t));
    }
  }
  return SN_OK;
}

/* The variable's commit among the needed tasks, by the variable's value; checks that it is one. */
static sn_status find_commits(builder *b, uint32_t *commit_of) {
  const sn_graph *g = b->g;
  for (uint32_t t = 0; t < b->n; t++) {
    const sn__node *n = &g->nodes[b->node[t]];
    if ((n->op->flags & SN_OP_COMMIT) == 0) continue;
    for (uint32_t o = 0; o < n->n_out; o++) {
      int input = n->op->commits[o];
      if (input == 0 || n->in[input - 1] == 0) continue;
      uint32_t variable = sn__value_storage(g, n->in[input - 1]);
      if (g->values[variable].kind != SN_VALUE_VARIABLE)
        return sn_status_make(SN_CODE_INTERNAL, "'%s' commits '%s', which is no variable", n->name,
                              g->values[variable].name);
      if (commit_of[variable] != 0)
        return sn_status_make(SN_CODE_INTERNAL, "variable '%s' is committed by '%s' and by '%s'",
                              g->values[variable].name,
                              g->nodes[b->node[commit_of[variable] - 1]].name, n->name);
      commit_of[variable] = t + 1;
    }
  }
  return SN_OK;
}

/* Whoever reads a variable's old state, copies included, comes before its commit. */
static sn_status add_commit_edges(builder *b) {
  const sn_graph *g = b->g;
  uint32_t *commit_of = take(b, g->n_values, sizeof *commit_of);
  if (commit_of == NULL) return sn_status_out_of_memory();
  SN_TRY(find_commits(b, commit_of));
  for (uint32_t t = 0; t < b->n; t++) {
    const sn__node *n = &g->nodes[b->node[t]];
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (n->in[i] == 0) continue;
      uint32_t commit = commit_of[sn__value_behind_views(g, n->in[i])];
      if (commit != 0) SN_TRY(add_edge(b, t, commit - 1));
    }
  }
  return SN_OK;
}

/* Some nodes wait for a value that they do not read (sn__node.after). */
static sn_status add_after_edges(builder *b) {
  const sn_graph *g = b->g;
  for (uint32_t t = 0; t < b->n; t++) {
    uint32_t after = g->nodes[b->node[t]].after;
    uint32_t producer = after == 0 ? 0 : g->values[sn__value_behind_views(g, after)].node;
    if (b->draft_of[producer] != 0) SN_TRY(add_edge(b, b->draft_of[producer] - 1, t));
  }
  return SN_OK;
}

/* A draft of a queue whose order is fixed. */
typedef struct position {
  uint32_t queue, draft;
  int64_t order;
} position;

static int compare_positions(const void *a, const void *b) {
  const position *x = a, *y = b;
  if (x->queue != y->queue) return x->queue < y->queue ? -1 : 1;
  if (x->order != y->order) return x->order < y->order ? -1 : 1;
  return x->draft < y->draft ? -1 : x->draft > y->draft;
}

/* A strict order is one more thing to wait for: each for the one before it in its queue. */
static sn_status add_order_edges(builder *b) {
  if (b->g->order_rule != SN_ORDER_STRICT) return SN_OK;
  position *line = take(b, b->n, sizeof *line);
  if (line == NULL) return sn_status_out_of_memory();
  uint32_t n = 0;
  for (uint32_t t = 0; t < b->n; t++)
    if (b->order_of[t] != 0) line[n++] = (position){b->queue[t], t, b->order_of[t]};
  if (n > 0) qsort(line, n, sizeof *line, compare_positions);
  for (uint32_t i = 1; i < n; i++)
    if (line[i].queue == line[i - 1].queue) SN_TRY(add_edge(b, line[i - 1].draft, line[i].draft));
  return SN_OK;
}

static sn_status index_edges(builder *b) {
  b->succ_first = take(b, b->n + 1, sizeof *b->succ_first);
  b->pred_first = take(b, b->n + 1, sizeof *b->pred_first);
  b->succ = take(b, b->n_edges, sizeof *b->succ);
  b->pred = take(b, b->n_edges, sizeof *b->pred);
  uint32_t *at = take(b, 2 * (size_t)b->n, sizeof *at);
  if (b->succ_first == NULL || b->pred_first == NULL || b->succ == NULL || b->pred == NULL ||
      at == NULL)
    return sn_status_out_of_memory();
  for (size_t e = 0; e < b->n_edges; e++) {
    b->succ_first[b->edges[e].from + 1]++;
    b->pred_first[b->edges[e].to + 1]++;
  }
  for (uint32_t t = 0; t < b->n; t++) {
    b->succ_first[t + 1] += b->succ_first[t];
    b->pred_first[t + 1] += b->pred_first[t];
    at[t] = b->succ_first[t];
    at[b->n + t] = b->pred_first[t];
  }
  for (size_t e = 0; e < b->n_edges; e++) {
    b->succ[at[b->edges[e].from]++] = b->edges[e].to;
    b->pred[at[b->n + b->edges[e].to]++] = b->edges[e].from;
  }
  return SN_OK;
}

/* ---- order --------------------------------------------------------------------------------- */

/* Not only a strict order has `from` before `to`. */
static bool is_given(const builder *b, uint32_t from, uint32_t to) {
  for (size_t e = 0; e < b->n_given; e++)
    if (b->edges[e].from == from && b->edges[e].to == to) return true;
  return false;
}

/* The error for a cycle: left[x] > 0 for whatever is on one or comes before one, as `t` does. After
 * n steps along such tasks we are on a cycle, and n more go all the way round. */
static sn_status fail_cycle(const builder *b, const uint32_t *left, uint32_t t) {
  const sn_graph *g = b->g;
  for (uint64_t step = 0; step < 2 * (uint64_t)b->n; step++) {
    uint32_t i = b->succ_first[t];
    while (left[b->succ[i]] == 0)
      i++;
    uint32_t next = b->succ[i];
    if (step >= b->n && b->n_given < b->n_edges && !is_given(b, t, next))
      return sn_status_make(SN_CODE_INVALID,
                            "the order given for %s has '%s' before '%s', but '%s' waits for '%s', "
                            "directly or through others",
                            b->topology->devices[b->queue[t] / SN__QUEUE_COUNT].name,
                            g->nodes[b->node[t]].name, g->nodes[b->node[next]].name,
                            g->nodes[b->node[t]].name, g->nodes[b->node[next]].name);
    t = next;
  }
  return sn_status_make(SN_CODE_INTERNAL, "a cycle through '%s': it waits for itself",
                        g->nodes[b->node[t]].name);
}

/* Time from a task's start to the end of the step at least: the longest path behind it. */
static sn_status rank_tasks(builder *b) {
  uint32_t *left = take(b, b->n, sizeof *left), *stack = take(b, b->n, sizeof *stack);
  b->rank = take(b, b->n, sizeof *b->rank);
  if (left == NULL || stack == NULL || b->rank == NULL) return sn_status_out_of_memory();
  uint32_t top = 0, done = 0;
  for (uint32_t t = 0; t < b->n; t++) {
    left[t] = b->succ_first[t + 1] - b->succ_first[t];
    if (left[t] == 0) stack[top++] = t;
  }
  for (; top > 0; done++) {
    uint32_t t = stack[--top];
    int64_t behind = 0;
    for (uint32_t i = b->succ_first[t]; i < b->succ_first[t + 1]; i++)
      if (b->rank[b->succ[i]] > behind) behind = b->rank[b->succ[i]];
    b->rank[t] = behind + b->cost[t];
    for (uint32_t i = b->pred_first[t]; i < b->pred_first[t + 1]; i++)
      if (--left[b->pred[i]] == 0) stack[top++] = b->pred[i];
  }
  if (done < b->n)
    for (uint32_t t = 0; t < b->n; t++)
      if (left[t] > 0) return fail_cycle(b, left, t);
  bool one_queue = true;
  for (uint32_t t = 1; t < b->n; t++)
    one_queue &= b->queue[t] == b->queue[0];
  for (uint32_t t = 0; one_queue && t < b->n; t++)
    b->rank[t] = 0; /* ties go by node number: the graph's own order */
  return SN_OK;
}

/* Ready tasks of one queue: a binary heap, the longest remaining path on top. */
typedef struct heap {
  uint32_t *items;
  uint32_t count;
} heap;

static bool sooner(const builder *b, uint32_t x, uint32_t y) {
  if (b->g->order_rule == SN_ORDER_PRIORITY && b->order_of[x] != b->order_of[y]) {
    if (b->order_of[x] == 0 || b->order_of[y] == 0) return b->order_of[y] == 0;
    return b->order_of[x] > b->order_of[y];
  }
  if (b->g->order_rule == SN_ORDER_PRIORITY && b->order_of[x] != 0) return x < y;
  if (b->rank[x] != b->rank[y]) return b->rank[x] > b->rank[y];
  return x < y;
}

static void heap_push(const builder *b, heap *h, uint32_t task) {
  uint32_t i = h->count++;
  for (; i > 0 && sooner(b, task, h->items[(i - 1) / 2]); i = (i - 1) / 2)
    h->items[i] = h->items[(i - 1) / 2];
  h->items[i] = task;
}

static uint32_t heap_pop(const builder *b, heap *h) {
  uint32_t top = h->items[0], last = h->items[--h->count], i = 0;
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= h->count) break;
    if (child + 1 < h->count && sooner(b, h->items[child + 1], h->items[child])) child++;
    if (!sooner(b, h->items[child], last)) break;
    h->items[i] = h->items[child];
    i = child;
  }
  h->items[i] = last;
  return top;
}

typedef struct lanes {
  heap *ready;       /* by queue */
  uint32_t *running; /* task + 1; 0: idle */
  uint32_t *left;    /* by task: what it still waits for */
} lanes;

static sn_status make_lanes(builder *b, lanes *l) {
  uint32_t queues = b->s->n_queues;
  l->ready = take(b, queues, sizeof *l->ready);
  l->running = take(b, queues, sizeof *l->running);
  l->left = take(b, b->n, sizeof *l->left);
  uint32_t *items = take(b, b->n, sizeof *items), *count = take(b, queues, sizeof *count);
  if (l->ready == NULL || l->running == NULL || l->left == NULL || items == NULL || count == NULL)
    return sn_status_out_of_memory();
  for (uint32_t t = 0; t < b->n; t++)
    count[b->queue[t]]++;
  for (uint32_t q = 0; q < queues; q++) {
    l->ready[q].items = items;
    items += count[q];
  }
  for (uint32_t t = 0; t < b->n; t++) {
    l->left[t] = b->pred_first[t + 1] - b->pred_first[t];
    if (l->left[t] == 0) heap_push(b, &l->ready[b->queue[t]], t);
  }
  return SN_OK;
}

/* Runs the step on paper: whenever a queue is free, it takes its most urgent ready task. */
static sn_status list_schedule(builder *b) {
  lanes l;
  b->start = take(b, b->n, sizeof *b->start);
  b->finish = take(b, b->n, sizeof *b->finish);
  b->order = take(b, b->n, sizeof *b->order);
  if (b->start == NULL || b->finish == NULL || b->order == NULL) return sn_status_out_of_memory();
  SN_TRY(make_lanes(b, &l));
  uint32_t started = 0, queues = b->s->n_queues;
  int64_t now = 0;
  for (bool busy = b->n > 0; busy;) {
    for (uint32_t q = 0; q < queues; q++) {
      if (l.running[q] != 0 || l.ready[q].count == 0) continue;
      uint32_t t = heap_pop(b, &l.ready[q]);
      b->start[t] = now;
      b->finish[t] = now + b->cost[t];
      b->order[started++] = t;
      l.running[q] = t + 1;
    }
    int64_t next = INT64_MAX;
    for (uint32_t q = 0; q < queues; q++)
      if (l.running[q] != 0 && b->finish[l.running[q] - 1] < next)
        next = b->finish[l.running[q] - 1];
    busy = next != INT64_MAX;
    now = busy ? next : now;
    for (uint32_t q = 0; busy && q < queues; q++) {
      uint32_t t = l.running[q] - 1;
      if (l.running[q] == 0 || b->finish[t] != now) continue;
      l.running[q] = 0;
      for (uint32_t i = b->succ_first[t]; i < b->succ_first[t + 1]; i++)
        if (--l.left[b->succ[i]] == 0) heap_push(b, &l.ready[b->queue[b->succ[i]]], b->succ[i]);
    }
  }
  b->s->makespan_ns = now;
  return SN_OK;
}

/* Drafts become tasks, numbered in the order in which they start. */
static sn_status make_tasks(builder *b, uint32_t *task_of_draft) {
  sn__schedule *s = b->s;
  s->n_tasks = b->n;
  s->tasks = keep(b, b->n, sizeof *s->tasks);
  s->queue_first = keep(b, s->n_queues + 1, sizeof *s->queue_first);
  s->queue_tasks = keep(b, b->n, sizeof *s->queue_tasks);
  uint32_t *at = take(b, s->n_queues, sizeof *at);
  if (s->tasks == NULL || s->queue_first == NULL || s->queue_tasks == NULL || at == NULL)
    return sn_status_out_of_memory();
  for (uint32_t t = 0; t < b->n; t++)
    s->queue_first[b->queue[t] + 1]++;
  for (uint32_t q = 0; q < s->n_queues; q++)
    s->queue_first[q + 1] += s->queue_first[q];
  for (uint32_t i = 0; i < b->n; i++) {
    uint32_t draft = b->order[i], q = b->queue[draft];
    s->tasks[i] = (sn__task){.node = b->node[draft],
                             .queue = q,
                             .position = at[q],
                             .cost_ns = b->cost[draft],
                             .start_ns = b->start[draft],
                             .finish_ns = b->finish[draft]};
    s->queue_tasks[s->queue_first[q] + at[q]++] = i;
    s->task_of[b->node[draft]] = i + 1;
    task_of_draft[draft] = i;
  }
  return SN_OK;
}

/* ---- waits --------------------------------------------------------------------------------- */

static void merge(uint32_t *clock, const uint32_t *other, uint32_t n) {
  for (uint32_t q = 0; q < n; q++)
    if (other[q] > clock[q]) clock[q] = other[q];
}

/* The waits of one task: of each queue the latest task it needs (need[q], position + 1), unless its
 * own queue or another of the waits implies it. Its clock comes out complete. */
static uint32_t choose_waits(sn__schedule *s, uint32_t task, const uint32_t *need,
                             sn__queue_point *out) {
  uint32_t *clock = &s->clocks[(size_t)task * s->n_queues], n = 0, queues = s->n_queues;
  sn__task *t = &s->tasks[task];
  if (t->position > 0) {
    uint32_t before = s->queue_tasks[s->queue_first[t->queue] + t->position - 1];
    memcpy(clock, &s->clocks[(size_t)before * queues], queues * sizeof *clock);
  }
  clock[t->queue] = t->position;
  for (uint32_t q = 0; q < queues; q++) {
    if (need[q] <= clock[q]) continue;
    bool implied = false;
    for (uint32_t p = 0; !implied && p < queues; p++) {
      if (p == q || need[p] <= clock[p]) continue;
      uint32_t other = s->queue_tasks[s->queue_first[p] + need[p] - 1];
      implied = s->clocks[(size_t)other * queues + q] >= need[q];
    }
    if (!implied) out[n++] = (sn__queue_point){q, need[q] - 1};
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t other = s->queue_tasks[s->queue_first[out[i].queue] + out[i].position];
    merge(clock, &s->clocks[(size_t)other * queues], queues);
    if (clock[out[i].queue] <= out[i].position) clock[out[i].queue] = out[i].position + 1;
  }
  return n;
}

static sn_status make_waits(builder *b, const uint32_t *task_of_draft) {
  sn__schedule *s = b->s;
  size_t clocks = 0;
  if (!sn__size_mul(b->n, s->n_queues, &clocks)) return sn_status_out_of_memory();
  s->clocks = keep(b, clocks, sizeof *s->clocks);
  s->waits = keep(b, b->n_edges, sizeof *s->waits);
  uint32_t *need = take(b, s->n_queues, sizeof *need);
  sn__queue_point *chosen = take(b, s->n_queues, sizeof *chosen);
  if (s->clocks == NULL || s->waits == NULL || need == NULL || chosen == NULL)
    return sn_status_out_of_memory();
  for (uint32_t i = 0; i < b->n; i++) {
    uint32_t draft = b->order[i];
    sn__task *t = &s->tasks[i];
    memset(need, 0, s->n_queues * sizeof *need);
    for (uint32_t k = b->pred_first[draft]; k < b->pred_first[draft + 1]; k++) {
      const sn__task *p = &s->tasks[task_of_draft[b->pred[k]]];
      if (p->queue != t->queue && p->position + 1 > need[p->queue])
        need[p->queue] = p->position + 1;
    }
    t->first_wait = s->n_waits;
    t->n_waits = choose_waits(s, i, need, chosen);
    memcpy(&s->waits[s->n_waits], chosen, t->n_waits * sizeof *chosen);
    s->n_waits += t->n_waits;
  }
  return SN_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static sn_status build(builder *b) {
  sn__schedule *s = b->s;
  s->n_queues = (uint32_t)b->topology->n_devices * SN__QUEUE_COUNT;
  s->needed = keep(b, b->g->n_nodes, sizeof *s->needed);
  s->task_of = keep(b, b->g->n_nodes, sizeof *s->task_of);
  if (s->needed == NULL || s->task_of == NULL) return sn_status_out_of_memory();
  SN_TRY(sn__mark_needed(b->g, b->options->fetches, b->options->n_fetches, b->options->commits,
                         s->needed));
  SN_TRY(make_drafts(b));
  SN_TRY(add_data_edges(b));
  SN_TRY(add_commit_edges(b));
  SN_TRY(add_after_edges(b));
  b->n_given = b->n_edges;
  SN_TRY(add_order_edges(b));
  SN_TRY(index_edges(b));
  SN_TRY(rank_tasks(b));
  SN_TRY(list_schedule(b));
  uint32_t *task_of_draft = take(b, b->n, sizeof *task_of_draft);
  if (task_of_draft == NULL) return sn_status_out_of_memory();
  SN_TRY(make_tasks(b, task_of_draft));
  return make_waits(b, task_of_draft);
}

sn_status sn__schedule_build(const sn_graph *graph, const sn_topology *topology,
                             const int64_t *extents, const sn__schedule_options *options,
                             sn__schedule **out_schedule) {
  SN_TRY(sn_graph_status(graph));
  sn__schedule *s = sn__calloc(1, sizeof *s);
  if (s == NULL) return sn_status_out_of_memory();
  builder b = {.g = graph, .topology = topology, .extents = extents, .options = options, .s = s};
  sn_status status = build(&b);
  sn__free(b.edges);
  sn__arena_free(&b.scratch);
  if (status != SN_OK) {
    sn__schedule_free(s);
    return sn_status_context(status, "schedule");
  }
  *out_schedule = s;
  return SN_OK;
}

void sn__schedule_free(sn__schedule *s) {
  if (s == NULL) return;
  sn__arena_free(&s->arena);
  sn__free(s);
}
