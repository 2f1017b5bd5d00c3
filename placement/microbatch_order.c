/* SPDX-License-Identifier: Apache-2.0 */
/* A placed graph in parts as a pipeline of stages, and its schedule as the order of its nodes. */
#include <string.h>

#include "core/run/values.h"
#include "placement/microbatch.h"

#define NO_STAGE UINT32_MAX

enum edge_kind { NO_EDGE, EDGE_OWN, EDGE_ALL /* what one reads comes of all micro-batches */ };

typedef struct look {
  sn_graph *g;
  const sn_topology *topology;
  const int64_t *extents;
  bool *needed;       /* [n_nodes] */
  uint32_t *stage_of; /* [n_nodes] first the level, then the stage */
  uint8_t *kind_of;
  bool *leads; /* [n_nodes] a backward node that another stage waits for */
  uint32_t n_levels, n_stages;
  uint32_t *stage_at; /* [n_levels * n_devices] stage + 1 */
  uint8_t *edge;      /* [n_stages * n_stages] from, to: one of edge_kind */
  sn__pipe *pipe;
} look;

/* What makes a value, seen through the copy that brings it. */
static uint32_t maker(const sn_graph *g, uint32_t value) {
  uint32_t node = g->values[value].node;
  if ((g->nodes[node].op->flags & SN_OP_COPY) != 0) node = g->values[g->nodes[node].in[0]].node;
  return node;
}

static bool is_copy(const sn__node *n) {
  return (n->op->flags & SN_OP_COPY) != 0;
}

/* Once in the graph, between what every part brings and what every part reads: of no part's task,
 * it runs when it can. */
static bool is_total(const sn__node *n) {
  return (n->op->flags & SN_OP_ALL_PARTS) != 0;
}

static bool has_stage(const look *x, uint32_t node) {
  return x->stage_of[node] != NO_STAGE;
}

/* ---- stages -------------------------------------------------------------------------------- */

/* A forward node's level is the most device changes and totals on a path to it. One device's nodes
 * of one level are a stage: levels never fall along a path and grow where it changes devices, so
 * stages make a DAG. */
static void find_levels(look *x) {
  const sn_graph *g = x->g;
  for (uint32_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    x->stage_of[i] = NO_STAGE;
    if (!x->needed[i] || n->phase != SN_FORWARD || sn__node_is_source(n) || is_copy(n)) continue;
    uint32_t level = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
      uint32_t p = n->in[k] == 0 ? 0 : maker(g, n->in[k]);
      if (p == 0 || !has_stage(x, p)) continue;
      uint32_t at = x->stage_of[p] + (g->nodes[p].device != n->device) + is_total(&g->nodes[p]);
      level = at > level ? at : level;
    }
    x->stage_of[i] = level;
    if (level + 1 > x->n_levels) x->n_levels = level + 1;
  }
  for (uint32_t i = 1; i < g->n_nodes; i++)
    if (is_total(&g->nodes[i])) x->stage_of[i] = NO_STAGE;
}

static sn_status number_stages(look *x) {
  const sn_graph *g = x->g;
  uint32_t nd = (uint32_t)x->topology->n_devices;
  x->stage_at = sn__calloc((size_t)x->n_levels * nd + 1, sizeof *x->stage_at);
  if (x->stage_at == NULL) return sn_status_out_of_memory();
  for (uint32_t i = 1; i < g->n_nodes; i++)
    if (has_stage(x, i)) x->stage_at[x->stage_of[i] * nd + (uint32_t)g->nodes[i].device] = 1;
  for (uint32_t k = 0; k < x->n_levels * nd; k++)
    if (x->stage_at[k] != 0) x->stage_at[k] = ++x->n_stages;
  for (uint32_t i = 1; i < g->n_nodes; i++)
    if (has_stage(x, i))
      x->stage_of[i] = x->stage_at[x->stage_of[i] * nd + (uint32_t)g->nodes[i].device] - 1;
  return SN_OK;
}

/* What is recomputed belongs to the stage that first reads it, which runs before those behind it.
 */
static void stage_recomputed(look *x) {
  const sn_graph *g = x->g;
  for (uint32_t i = (uint32_t)g->n_nodes; i-- > 1;) {
    const sn__node *n = &g->nodes[i];
    for (uint32_t k = 0; has_stage(x, i) && n->phase == SN_BACKWARD && k < n->n_in; k++) {
      uint32_t p = n->in[k] == 0 ? 0 : maker(g, n->in[k]);
      if (p != 0 && g->nodes[p].recomputed && g->nodes[p].device == n->device)
        x->stage_of[p] = x->stage_of[i];
    }
  }
}

/* The total that a node reads, of the phase given; 0: none. */
static uint32_t total_before(const sn_graph *g, uint32_t node, sn_phase phase) {
  const sn__node *n = &g->nodes[node];
  for (uint32_t k = 0; k < n->n_in; k++) {
    uint32_t p = n->in[k] == 0 ? 0 : maker(g, n->in[k]);
    if (p != 0 && is_total(&g->nodes[p]) && g->nodes[p].phase == phase) return p;
  }
  return 0;
}

/* Of a backward node that reads a backward total: as its forward node begins a stage behind the
 * forward total, it ends the one before. */
static uint32_t stage_before_total(const look *x, uint32_t node) {
  const sn_graph *g = x->g;
  uint32_t total = total_before(g, g->nodes[node].origin, SN_FORWARD);
  return total == 0 ? NO_STAGE : x->stage_of[maker(g, g->nodes[total].in[0])];
}

/* A backward node goes with its forward node. A variable's gradient goes with what gives it, as
 * long as all of that is one stage's: one that comes together from several runs when it can. */
static void stage_backward(look *x) {
  const sn_graph *g = x->g;
  for (uint32_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (!x->needed[i] || n->phase != SN_BACKWARD || is_copy(n) || is_total(n)) continue;
    if (n->origin != 0 && !sn__node_is_source(&g->nodes[n->origin])) {
      x->stage_of[i] =
          total_before(g, i, SN_BACKWARD) != 0 ? stage_before_total(x, i) : x->stage_of[n->origin];
      if (has_stage(x, i) && g->nodes[n->origin].device != n->device) x->stage_of[i] = NO_STAGE;
      continue;
    }
    uint32_t stage = NO_STAGE, several = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
      uint32_t p = n->in[k] == 0 ? 0 : maker(g, n->in[k]);
      if (p == 0 || g->nodes[p].phase != SN_BACKWARD) continue;
      several += stage != NO_STAGE && stage != x->stage_of[p];
      several += !has_stage(x, p) || g->nodes[p].device != n->device;
      stage = x->stage_of[p];
    }
    x->stage_of[i] = several > 0 ? NO_STAGE : stage;
  }
}

/* Which backward nodes another stage waits for: those are B, the others W. */
static void find_kinds(look *x) {
  const sn_graph *g = x->g;
  for (uint32_t i = (uint32_t)g->n_nodes; i-- > 1;) {
    const sn__node *n = &g->nodes[i];
    if (!has_stage(x, i)) continue;
    x->kind_of[i] = n->phase == SN_FORWARD ? SN__PIPE_F : x->leads[i] ? SN__PIPE_B : SN__PIPE_W;
    if (n->phase != SN_BACKWARD) continue;
    for (uint32_t k = 0; k <= n->n_in; k++) {
      uint32_t value = k < n->n_in ? n->in[k] : n->after; /* it waits for that one all the same */
      uint32_t p = value == 0 ? 0 : maker(g, value);
      if (p == 0 || !has_stage(x, p) || g->nodes[p].phase != SN_BACKWARD) continue;
      if (x->leads[i] || x->stage_of[p] != x->stage_of[i]) x->leads[p] = true;
    }
  }
}

/* ---- the pipe ------------------------------------------------------------------------------ */

/* Node i, which has a stage, reads what node p makes; true when the two stages have no edge yet. */
static bool note_edge(look *x, uint32_t i, uint32_t p, uint8_t kind) {
  const sn_graph *g = x->g;
  if (!has_stage(x, p) || x->stage_of[p] == x->stage_of[i]) return false;
  /* Behind a total, it goes back a stage before the forward node whose results it reads. */
  if (g->nodes[p].phase == SN_FORWARD && total_before(g, i, SN_BACKWARD) != 0) return false;
  /* What goes back along no edge forward (there is none today) orders stages all the same. */
  bool back = g->nodes[i].phase == SN_BACKWARD && g->nodes[p].phase == SN_BACKWARD;
  uint32_t from = x->stage_of[back ? i : p], to = x->stage_of[back ? p : i];
  uint8_t *edge = &x->edge[(size_t)from * x->n_stages + to];
  bool fresh = *edge == NO_EDGE;
  if (*edge < kind) *edge = kind;
  return fresh;
}

static uint32_t find_edges(look *x) {
  const sn_graph *g = x->g;
  uint32_t n = 0;
  for (uint32_t i = 1; i < g->n_nodes; i++)
    for (uint32_t k = 0; has_stage(x, i) && k < g->nodes[i].n_in; k++) {
      uint32_t p = g->nodes[i].in[k] == 0 ? 0 : maker(g, g->nodes[i].in[k]);
      if (p == 0) continue;
      const sn__node *from = &g->nodes[p];
      n += note_edge(x, i, p, EDGE_OWN);
      for (uint32_t t = 0; is_total(from) && t < from->n_in; t++)
        n += note_edge(x, i, maker(g, from->in[t]), EDGE_ALL);
    }
  return n;
}

static sn_status add_times(look *x) {
  const sn_graph *g = x->g;
  sn__pipe *p = x->pipe;
  for (uint32_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (!has_stage(x, i)) continue;
    int64_t ns = 0;
    SN_TRY(sn__node_cost_ns(g, x->topology, x->extents, i, &ns));
    p->device[x->stage_of[i]] = n->device;
    p->ns[sn__pipe_task(p, x->stage_of[i], n->part, (sn__pipe_kind)x->kind_of[i])] += ns;
  }
  return SN_OK;
}

static uint32_t edge_between(const sn__pipe *p, uint32_t from, uint32_t to) {
  uint32_t e = 0;
  while (e < p->n_edges && (p->edges[e].from != from || p->edges[e].to != to))
    e++;
  return e;
}

/* A copy is the time of one edge: that of the first stage on its device that reads it. */
static sn_status add_copies(look *x) {
  const sn_graph *g = x->g;
  sn__pipe *p = x->pipe;
  bool *counted = sn__calloc(g->n_nodes, sizeof *counted);
  if (counted == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  for (uint32_t i = 1; status == SN_OK && i < g->n_nodes; i++)
    for (uint32_t k = 0; status == SN_OK && has_stage(x, i) && k < g->nodes[i].n_in; k++) {
      uint32_t value = g->nodes[i].in[k], copy = value == 0 ? 0 : g->values[value].node;
      if (copy == 0 || counted[copy] || !is_copy(&g->nodes[copy])) continue;
      uint32_t from = maker(g, value);
      if (!has_stage(x, from)) continue;
      bool back = g->nodes[from].phase == SN_BACKWARD;
      uint32_t e = back ? edge_between(p, x->stage_of[i], x->stage_of[from])
                        : edge_between(p, x->stage_of[from], x->stage_of[i]);
      if (e == p->n_edges) continue;
      counted[copy] = true;
      int64_t ns = 0;
      status = sn__node_cost_ns(g, x->topology, x->extents, copy, &ns);
      p->copy_ns[((size_t)e * p->n_micro + g->nodes[i].part) * 2 + back] += ns;
    }
  sn__free(counted);
  return status;
}

/* What stands from a stage's forward to its backward tasks: what its own backward nodes read. */
static sn_status add_bytes(look *x) {
  const sn_graph *g = x->g;
  bool *counted = sn__calloc(g->n_values, sizeof *counted);
  if (counted == NULL) return sn_status_out_of_memory();
  for (uint32_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (!has_stage(x, i) || n->phase != SN_BACKWARD || n->part != 0) continue;
    for (uint32_t k = 0; k < n->n_in; k++) {
      uint32_t value = n->in[k] == 0 ? 0 : sn__value_behind_views(g, n->in[k]);
      size_t bytes = 0;
      const sn__node *from = &g->nodes[g->values[value].node];
      if (value == 0 || counted[value] || sn__node_is_source(from) || from->phase != SN_FORWARD ||
          (is_copy(from) && sn__node_is_source(&g->nodes[maker(g, value)])))
        continue;
      counted[value] = true;
      if (sn__value_bytes(g, value, x->extents, &bytes)) x->pipe->bytes[x->stage_of[i]] += bytes;
    }
  }
  sn__free(counted);
  for (int d = 0; d < x->pipe->n_devices; d++) {
    uint64_t room = x->topology->devices[d].memory_bytes, kept = 0;
    for (uint32_t v = 1; v < g->n_values; v++) {
      size_t bytes = 0;
      if (g->values[v].kind == SN_VALUE_VARIABLE && g->nodes[g->values[v].node].device == d &&
          sn__value_bytes(g, v, x->extents, &bytes))
        kept += bytes;
    }
    if (room > 0) x->pipe->device_bytes[d] = room > kept ? room - kept : 1;
  }
  return SN_OK;
}

static sn_status make_pipe(look *x) {
  x->edge = sn__calloc((size_t)x->n_stages * x->n_stages + 1, sizeof *x->edge);
  if (x->edge == NULL) return sn_status_out_of_memory();
  uint32_t n_edges = find_edges(x), e = 0;
  SN_TRY(sn__pipe_create(x->topology->n_devices, x->n_stages, n_edges, sn__graph_parts(x->g),
                         &x->pipe));
  for (uint32_t a = 0; a < x->n_stages; a++)
    for (uint32_t b = 0; b < x->n_stages; b++) {
      const uint8_t kind = x->edge[(size_t)a * x->n_stages + b];
      if (kind == NO_EDGE) continue;
      x->pipe->all[e] = kind == EDGE_ALL;
      x->pipe->edges[e++] = (sn__pipe_edge){a, b};
    }
  SN_TRY(add_times(x));
  SN_TRY(add_copies(x));
  SN_TRY(add_bytes(x));
  return sn__pipe_finish(x->pipe);
}

/* ---- the order ----------------------------------------------------------------------------- */

/* Each task of the schedule is a place in its device's order; its nodes share it and follow one
 * another as the graph has them. With W glued to B the two are one place. */
static sn_status order_nodes(look *x, const sn__pipe_schedule *s) {
  sn_graph *g = x->g;
  const sn__pipe *p = x->pipe;
  uint32_t *place = sn__calloc(sn__pipe_task_count(p), sizeof *place);
  if (place == NULL) return sn_status_out_of_memory();
  for (int d = 0; d < p->n_devices; d++)
    for (uint32_t i = s->first[d]; i < s->first[d + 1]; i++)
      place[s->order[i]] = i - s->first[d] + 1;
  for (uint32_t i = 1; i < g->n_nodes; i++) {
    sn__node *n = &g->nodes[i];
    n->order = 0;
    if (!has_stage(x, i)) continue;
    sn__pipe_kind kind = (sn__pipe_kind)x->kind_of[i];
    if (s->glued && kind == SN__PIPE_W) kind = SN__PIPE_B;
    n->order = place[sn__pipe_task(p, x->stage_of[i], n->part, kind)];
  }
  g->order_rule = SN_ORDER_STRICT;
  sn__free(place);
  return SN_OK;
}

static sn_status mark_needed(look *x) {
  const sn_graph *g = x->g;
  uint32_t *sums = sn__calloc(g->n_losses + 1, sizeof *sums);
  if (sums == NULL) return sn_status_out_of_memory();
  for (size_t l = 0; l < g->n_losses; l++)
    sums[l] = g->losses[l].sum;
  sn_status status = sn__mark_needed(g, sums, g->n_losses, true, x->needed);
  sn__free(sums);
  return status;
}

static sn_status run(look *x, sn__pipe_rule rule, uint64_t seed, sn__pipe_schedule **out) {
  SN_TRY(mark_needed(x));
  find_levels(x);
  SN_TRY(number_stages(x));
  stage_backward(x);
  stage_recomputed(x);
  find_kinds(x);
  SN_TRY(make_pipe(x));
  return sn__pipe_schedule_make(x->pipe, rule, 0, seed, out);
}

sn_status sn__micro_order(sn_graph *placed, const sn_topology *topology, const int64_t *extents,
                          sn__pipe_rule rule, uint64_t seed, sn__micro_plan *out_plan) {
  look x = {.g = placed, .topology = topology, .extents = extents};
  sn__pipe_schedule *schedule = NULL;
  x.needed = sn__calloc(placed->n_nodes, sizeof *x.needed);
  x.stage_of = sn__calloc(placed->n_nodes, sizeof *x.stage_of);
  x.kind_of = sn__calloc(placed->n_nodes, sizeof *x.kind_of);
  x.leads = sn__calloc(placed->n_nodes, sizeof *x.leads);
  sn_status status = x.needed == NULL || x.stage_of == NULL || x.kind_of == NULL || x.leads == NULL
                         ? sn_status_out_of_memory()
                         : run(&x, rule, seed, &schedule);
  if (status == SN_OK) status = order_nodes(&x, schedule);
  sn__free(x.needed);
  sn__free(x.leads);
  sn__free(x.stage_at);
  sn__free(x.edge);
  *out_plan = (sn__micro_plan){x.pipe, schedule, x.stage_of, x.kind_of};
  if (status != SN_OK) sn__micro_plan_free(out_plan);
  return status;
}

void sn__micro_plan_free(sn__micro_plan *plan) {
  sn__pipe_free(plan->pipe);
  sn__pipe_schedule_free(plan->schedule);
  sn__free(plan->stage_of);
  sn__free(plan->kind_of);
  *plan = (sn__micro_plan){NULL, NULL, NULL, NULL};
}
