/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph to the solver's problem: homes, units, costs. */
#include "placement/problem.h"

#include <assert.h>
#include <string.h>

#include "core/run/values.h"

/* ---- homes --------------------------------------------------------------------------------- */

static bool goes_with_first_use(const sn__node *n) {
  return n->op == &sn__op_input || n->op == &sn__op_constant;
}

/* The module of the first node (in graph order) that reads any of n's outputs; UINT32_MAX if none.
 */
static void mark_first_uses(const sn_graph *g, const uint32_t *modules, uint32_t *first) {
  for (size_t i = g->n_nodes; i-- > 1;) {
    const sn__node *n = &g->nodes[i];
    for (uint32_t k = 0; k < n->n_in; k++)
      if (n->in[k] != 0) first[g->values[n->in[k]].node] = modules[i];
  }
}

sn_status sn__home_modules(const sn_graph *g, uint32_t **out_modules) {
  uint32_t *modules = sn__calloc(g->n_nodes, sizeof *modules);
  uint32_t *first = sn__alloc(g->n_nodes * sizeof *first);
  if (modules == NULL || first == NULL) {
    sn__free(modules);
    sn__free(first);
    return sn_status_out_of_memory();
  }
  memset(first, 0xff, g->n_nodes * sizeof *first);
  /* Homes point back along the graph (to a variable, or to the value a gradient belongs to), so one
   * forward sweep settles them. */
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    modules[i] =
        n->home != 0 && g->values[n->home].node < i ? modules[g->values[n->home].node] : n->module;
    if (n->origin != 0 && n->home == 0) modules[i] = modules[n->origin];
  }
  mark_first_uses(g, modules, first);
  uint32_t loss_module = g->n_losses > 0 ? modules[g->values[g->losses[0].sum].node] : 0;
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (!goes_with_first_use(n) || n->home != 0) continue;
    sn__input_role role =
        n->op == &sn__op_input ? g->inputs[g->values[n->out[0]].extra].role : SN_INPUT_DATA;
    if (role == SN_INPUT_SEED || role == SN_INPUT_STEP)
      modules[i] = loss_module;
    else
      modules[i] = first[i] != UINT32_MAX ? first[i] : loss_module;
  }
  sn__free(first);
  *out_modules = modules;
  return SN_OK;
}

/* ---- units --------------------------------------------------------------------------------- */

static sn_status make_units(sn__problem *p, const uint32_t *modules) {
  const sn_graph *g = p->graph;
  uint32_t *unit_of_module = sn__alloc(g->n_modules * sizeof *unit_of_module);
  p->unit_of_node = sn__calloc(g->n_nodes, sizeof *p->unit_of_node);
  p->units = sn__calloc(g->n_modules, sizeof *p->units);
  if (unit_of_module == NULL || p->unit_of_node == NULL || p->units == NULL) {
    sn__free(unit_of_module);
    return sn_status_out_of_memory();
  }
  memset(unit_of_module, 0xff, g->n_modules * sizeof *unit_of_module);
  for (size_t i = 1; i < g->n_nodes; i++) {
    uint32_t *unit = &unit_of_module[modules[i]];
    if (*unit == UINT32_MAX) {
      *unit = p->n_units;
      p->units[p->n_units++] = (sn__unit){.module = modules[i], .pinned = -1};
    }
    p->unit_of_node[i] = *unit;
  }
  sn__free(unit_of_module);
  return SN_OK;
}

/* ---- costs --------------------------------------------------------------------------------- */

static sn_status choose_extents(const sn_graph *g, const int64_t *given, size_t n_given,
                                int64_t *extents) {
  for (size_t s = 0; s < g->n_symbols; s++) {
    bool known = given != NULL && s < n_given;
    extents[s] = known ? given[s] : sn__usual_extent(&g->symbols[s]);
    if (extents[s] < 0)
      return sn_status_make(SN_CODE_INVALID, "placement: extent '%s' is %lld; it is 0 at least",
                            g->symbols[s].name, (long long)extents[s]);
  }
  return SN_OK;
}

static sn_status measure_values(sn__problem *p, const int64_t *extents) {
  const sn_graph *g = p->graph;
  for (uint32_t v = 1; v < g->n_values; v++) {
    size_t bytes = 0;
    if (!sn__value_bytes(g, v, extents, &bytes))
      return sn_status_make(SN_CODE_INVALID, "'%s' is too large for memory; use a smaller batch",
                            g->values[v].name);
    p->value_bytes[v] = bytes;
  }
  return SN_OK;
}

static sn_status make_costs(sn__problem *p, const int64_t *extents) {
  const sn_graph *g = p->graph;
  int nd = p->topology->n_devices;
  p->value_bytes = sn__calloc(g->n_values, sizeof *p->value_bytes);
  p->unit_bytes = sn__calloc(p->n_units + 1, sizeof *p->unit_bytes);
  p->task_ns = sn__calloc((size_t)p->n_tasks * (size_t)nd + 1, sizeof *p->task_ns);
  if (p->value_bytes == NULL || p->unit_bytes == NULL || p->task_ns == NULL)
    return sn_status_out_of_memory();
  SN_TRY(measure_values(p, extents));
  for (uint32_t t = 0; t < p->n_tasks; t++) {
    if (p->tasks[t].view) continue;
    for (int d = 0; d < nd; d++)
      SN_TRY(sn__node_device_ns(g, p->topology, extents, p->tasks[t].node, d,
                                &p->task_ns[(size_t)t * (size_t)nd + (size_t)d], NULL));
  }
  for (size_t i = 1; i < g->n_nodes; i++)
    if (g->nodes[i].op == &sn__op_variable || g->nodes[i].op == &sn__op_constant)
      p->unit_bytes[p->unit_of_node[i]] += p->value_bytes[g->nodes[i].out[0]];
  return SN_OK;
}

/* ---- tasks and edges ----------------------------------------------------------------------- */

/* What a plan of this graph computes: see sn__problem_create(). A graph without any of it (one that
 * is being looked at) runs as a whole. */
static sn_status mark_needed(const sn_graph *g, bool *needed) {
  bool training = false;
  for (size_t i = 1; !training && i < g->n_nodes; i++)
    training = (g->nodes[i].op->flags & SN_OP_COMMIT) != 0;
  uint32_t *fetches = sn__calloc(g->n_losses + g->n_outputs + 3, sizeof *fetches);
  if (fetches == NULL) return sn_status_out_of_memory();
  size_t n = 0;
  for (size_t i = 0; i < g->n_losses; i++)
    fetches[n++] = g->losses[i].sum;
  for (size_t i = 0; !training && i < g->n_outputs; i++)
    fetches[n++] = g->outputs[i].value;
  const uint32_t scalars[] = {g->scalars.finite, g->scalars.norm, g->scalars.rate};
  for (size_t i = 0; training && i < 3; i++)
    if (scalars[i] != 0) fetches[n++] = scalars[i];
  sn_status status = sn__mark_needed(g, fetches, n, training, needed);
  sn__free(fetches);
  if (n == 0 && !training) memset(needed, 1, g->n_nodes * sizeof *needed);
  return status;
}

static void add_reads(sn__problem *p, uint32_t to) {
  const sn_graph *g = p->graph;
  const sn__node *n = &g->nodes[p->tasks[to].node];
  for (uint32_t k = 0; k < n->n_in; k++) {
    uint32_t value = n->in[k];
    if (value == 0) continue;
    bool twice = false;
    for (uint32_t e = p->first_edge[to]; !twice && e < p->n_edges; e++)
      twice = p->edges[e].value == value;
    if (twice) continue;
    uint32_t producer = g->values[value].node;
    p->edges[p->n_edges++] = (sn__problem_edge){.from = p->task_of_node[producer],
                                                .to = to,
                                                .value = value,
                                                .from_unit = p->unit_of_node[producer]};
  }
}

/* The task that writes the variable behind this value, or UINT32_MAX. */
static uint32_t writer_of(const sn__problem *p, uint32_t value) {
  const sn_graph *g = p->graph;
  const sn__value *v = &g->values[sn__value_behind_views(g, value)];
  if (v->kind != SN_VALUE_VARIABLE || g->variables[v->extra].commit == 0) return UINT32_MAX;
  return p->task_of_node[g->variables[v->extra].commit];
}

/* Readings of variables that are written in the step, as (writer, reader, value): chains by writer.
 */
typedef struct reading {
  uint32_t reader, value, next;
} reading;

static void find_readings(const sn__problem *p, uint32_t *first, reading *readings) {
  const sn_graph *g = p->graph;
  uint32_t n = 0;
  for (uint32_t t = p->n_tasks; t-- > 0;) {
    const sn__node *node = &g->nodes[p->tasks[t].node];
    for (uint32_t k = 0; !p->tasks[t].view && k < node->n_in; k++) {
      uint32_t writer = node->in[k] == 0 ? UINT32_MAX : writer_of(p, node->in[k]);
      if (writer == UINT32_MAX || writer == t) continue;
      readings[n++] = (reading){t, node->in[k], first[writer]};
      first[writer] = n; /* 0 ends a chain */
    }
  }
}

static void add_edges(sn__problem *p, const uint32_t *first, const reading *readings) {
  for (uint32_t t = 0; t < p->n_tasks; t++) {
    p->first_edge[t] = p->n_edges;
    add_reads(p, t);
    for (uint32_t r = first[t]; r != 0; r = readings[r - 1].next)
      p->edges[p->n_edges++] = (sn__problem_edge){
          .from = readings[r - 1].reader, .to = t, .value = readings[r - 1].value, .order = true};
  }
  p->first_edge[p->n_tasks] = p->n_edges;
}

/* Tasks from the last to the first: each behind all that waits for it. */
static sn_status order_backwards(sn__problem *p, uint32_t *left) {
  uint32_t n = 0;
  memset(left, 0, p->n_tasks * sizeof *left);
  for (uint32_t e = 0; e < p->n_edges; e++)
    if (p->edges[e].from != UINT32_MAX) left[p->edges[e].from]++;
  for (uint32_t t = p->n_tasks; t-- > 0;)
    if (left[t] == 0) p->backwards[n++] = t;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t t = p->backwards[i];
    for (uint32_t e = p->first_edge[t]; e < p->first_edge[t + 1]; e++)
      if (p->edges[e].from != UINT32_MAX && --left[p->edges[e].from] == 0)
        p->backwards[n++] = p->edges[e].from;
  }
  if (n == p->n_tasks) return SN_OK;
  for (uint32_t t = 0;; t++)
    if (left[t] > 0)
      return sn_status_make(SN_CODE_INTERNAL,
                            "placement: a cycle through '%s': it waits for itself",
                            p->graph->nodes[p->tasks[t].node].name);
}

static sn_status number_tasks(sn__problem *p) {
  const sn_graph *g = p->graph;
  p->task_of_node = sn__alloc(g->n_nodes * sizeof *p->task_of_node);
  p->tasks = sn__calloc(g->n_nodes, sizeof *p->tasks);
  bool *needed = sn__calloc(g->n_nodes, sizeof *needed);
  sn_status status = p->task_of_node == NULL || p->tasks == NULL || needed == NULL
                         ? sn_status_out_of_memory()
                         : mark_needed(g, needed);
  for (size_t i = 0; status == SN_OK && i < g->n_nodes; i++) {
    p->task_of_node[i] = UINT32_MAX;
    if (i == 0 || !needed[i] || sn__node_is_source(&g->nodes[i])) continue;
    p->task_of_node[i] = p->n_tasks;
    p->tasks[p->n_tasks++] = (sn__problem_task){.node = (uint32_t)i,
                                                .unit = p->unit_of_node[i],
                                                .view = (g->nodes[i].op->flags & SN_OP_VIEW) != 0};
  }
  sn__free(needed);
  return status;
}

static sn_status make_tasks(sn__problem *p) {
  const sn_graph *g = p->graph;
  size_t inputs = 0;
  for (size_t i = 1; i < g->n_nodes; i++)
    inputs += g->nodes[i].n_in;
  SN_TRY(number_tasks(p));
  p->edges = sn__calloc(2 * inputs + 1, sizeof *p->edges);
  p->first_edge = sn__calloc((size_t)p->n_tasks + 1, sizeof *p->first_edge);
  p->backwards = sn__calloc((size_t)p->n_tasks + 1, sizeof *p->backwards);
  uint32_t *first = sn__calloc((size_t)p->n_tasks + 1, sizeof *first);
  reading *readings = sn__calloc(inputs + 1, sizeof *readings);
  sn_status status = SN_OK;
  if (p->edges == NULL || p->first_edge == NULL || p->backwards == NULL || first == NULL ||
      readings == NULL) {
    status = sn_status_out_of_memory();
  } else {
    find_readings(p, first, readings);
    add_edges(p, first, readings);
    status = order_backwards(p, first);
  }
  sn__free(first);
  sn__free(readings);
  return status;
}

sn_status sn__problem_create(const sn_graph *graph, const sn_topology *topology,
                             const int64_t *extents, size_t n_extents, sn__problem **out_problem) {
  sn__problem *p = sn__calloc(1, sizeof *p);
  int64_t *chosen = sn__calloc(graph->n_symbols, sizeof *chosen);
  uint32_t *modules = NULL;
  sn_status status = p == NULL || chosen == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) {
    p->graph = graph;
    p->topology = topology;
    status = choose_extents(graph, extents, n_extents, chosen);
  }
  if (status == SN_OK) status = sn__home_modules(graph, &modules);
  if (status == SN_OK) status = make_units(p, modules);
  if (status == SN_OK) status = make_tasks(p);
  if (status == SN_OK) status = make_costs(p, chosen);
  sn__free(modules);
  sn__free(chosen);
  if (status != SN_OK) {
    sn__problem_free(p);
    return status;
  }
  *out_problem = p;
  return SN_OK;
}

void sn__problem_free(sn__problem *p) {
  if (p == NULL) return;
  sn__free(p->units);
  sn__free(p->unit_of_node);
  sn__free(p->tasks);
  sn__free(p->task_of_node);
  sn__free(p->backwards);
  sn__free(p->edges);
  sn__free(p->first_edge);
  sn__free(p->task_ns);
  sn__free(p->value_bytes);
  sn__free(p->unit_bytes);
  sn__free(p);
}
