/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph to the solver's problem: homes, units, costs. */
#include "placement/problem.h"

#include <assert.h>
#include <string.h>

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

static void typical_extents(const sn_graph *g, int64_t *extents) {
  for (size_t s = 0; s < g->n_symbols; s++)
    extents[s] = g->symbols[s].kind == SN_SYMBOL_ROWS       ? 64
                 : g->symbols[s].kind == SN_SYMBOL_ELEMENTS ? 64 * 16
                                                            : 32;
}

static sn_status measure_values(sn__problem *p, const int64_t *extents, sn_shape *shapes) {
  const sn_graph *g = p->graph;
  for (size_t v = 1; v < g->n_values; v++) {
    int64_t count = 0;
    size_t bytes = 0;
    shapes[v] = sn__shape_resolve(&g->values[v].shape, extents);
    if (!sn__shape_count(&shapes[v], &count) ||
        !sn__size_mul((size_t)count, sn_dtype_size(g->values[v].dtype), &bytes))
      return sn_status_make(SN_CODE_INVALID, "'%s' would have more bytes than can be counted",
                            g->values[v].name);
    p->value_bytes[v] = bytes;
  }
  return SN_OK;
}

static sn__cost node_cost(const sn__problem *p, const sn__node *n, const sn_shape *shapes,
                          sn__tensor *tensors) {
  const sn_graph *g = p->graph;
  sn__cost cost = {0, 0};
  for (uint32_t k = 0; k < n->n_in + n->n_out; k++) {
    uint32_t v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
    tensors[k] = (sn__tensor){0};
    if (v == 0) continue;
    tensors[k] = (sn__tensor){.dtype = g->values[v].dtype, .shape = shapes[v]};
    cost.bytes += (double)p->value_bytes[v];
  }
  if (n->op->cost != NULL) {
    sn__exec e = {.op = n->op,
                  .attrs = n->attrs,
                  .in = tensors,
                  .n_in = (int)n->n_in,
                  .out = tensors + n->n_in,
                  .n_out = (int)n->n_out};
    cost = (sn__cost){0, 0};
    n->op->cost(&e, &cost);
  }
  return cost;
}

static int64_t cost_ns(const sn__cost *cost, const sn_device_desc *d) {
  double compute = cost->flops / d->flops_per_s, memory = cost->bytes / d->bytes_per_s;
  return (int64_t)((compute > memory ? compute : memory) * 1e9) + d->launch_ns;
}

static sn_status make_costs(sn__problem *p, const int64_t *extents) {
  const sn_graph *g = p->graph;
  int nd = p->topology->n_devices;
  uint32_t most = 1;
  for (size_t i = 1; i < g->n_nodes; i++)
    if (g->nodes[i].n_in + g->nodes[i].n_out > most) most = g->nodes[i].n_in + g->nodes[i].n_out;
  sn_shape *shapes = sn__calloc(g->n_values, sizeof *shapes);
  sn__tensor *tensors = sn__calloc(most, sizeof *tensors);
  p->value_bytes = sn__calloc(g->n_values, sizeof *p->value_bytes);
  p->unit_bytes = sn__calloc(p->n_units + 1, sizeof *p->unit_bytes);
  p->task_ns = sn__calloc((size_t)p->n_tasks * (size_t)nd + 1, sizeof *p->task_ns);
  sn_status status = SN_OK;
  if (shapes == NULL || tensors == NULL || p->value_bytes == NULL || p->unit_bytes == NULL ||
      p->task_ns == NULL)
    status = sn_status_out_of_memory();
  if (status == SN_OK) status = measure_values(p, extents, shapes);
  for (uint32_t t = 0; status == SN_OK && t < p->n_tasks; t++) {
    const sn__node *n = &g->nodes[p->tasks[t].node];
    if ((n->op->flags & SN_OP_VIEW) != 0) continue;
    sn__cost cost = node_cost(p, n, shapes, tensors);
    for (int d = 0; d < nd; d++)
      p->task_ns[(size_t)t * (size_t)nd + (size_t)d] = cost_ns(&cost, &p->topology->devices[d]);
  }
  for (size_t i = 1; status == SN_OK && i < g->n_nodes; i++)
    if (g->nodes[i].op == &sn__op_variable || g->nodes[i].op == &sn__op_constant)
      p->unit_bytes[p->unit_of_node[i]] += p->value_bytes[g->nodes[i].out[0]];
  sn__free(shapes);
  sn__free(tensors);
  return status;
}

/* ---- tasks and edges ----------------------------------------------------------------------- */

static void add_edges(sn__problem *p, uint32_t to, const uint32_t *task_of_node) {
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
    p->edges[p->n_edges++] = (sn__edge){.from = task_of_node[producer],
                                        .to = to,
                                        .value = value,
                                        .from_unit = p->unit_of_node[producer]};
  }
}

static sn_status make_tasks(sn__problem *p) {
  const sn_graph *g = p->graph;
  size_t inputs = 0;
  for (size_t i = 1; i < g->n_nodes; i++)
    inputs += g->nodes[i].n_in;
  uint32_t *task_of_node = sn__alloc(g->n_nodes * sizeof *task_of_node);
  p->tasks = sn__calloc(g->n_nodes, sizeof *p->tasks);
  p->edges = sn__calloc(inputs + 1, sizeof *p->edges);
  p->first_edge = sn__calloc(g->n_nodes + 1, sizeof *p->first_edge);
  if (task_of_node == NULL || p->tasks == NULL || p->edges == NULL || p->first_edge == NULL) {
    sn__free(task_of_node);
    return sn_status_out_of_memory();
  }
  memset(task_of_node, 0xff, g->n_nodes * sizeof *task_of_node);
  for (size_t i = 1; i < g->n_nodes; i++) {
    if (sn__node_is_source(&g->nodes[i])) continue;
    uint32_t t = p->n_tasks++;
    task_of_node[i] = t;
    p->tasks[t] = (sn__task){.node = (uint32_t)i, .unit = p->unit_of_node[i]};
    p->first_edge[t] = p->n_edges;
    add_edges(p, t, task_of_node);
  }
  p->first_edge[p->n_tasks] = p->n_edges;
  sn__free(task_of_node);
  return SN_OK;
}

sn_status sn__problem_create(const sn_graph *graph, const sn_topology *topology,
                             const int64_t *extents, size_t n_extents, sn__problem **out_problem) {
  sn__problem *p = sn__calloc(1, sizeof *p);
  int64_t *typical = sn__calloc(graph->n_symbols, sizeof *typical);
  uint32_t *modules = NULL;
  sn_status status = p == NULL || typical == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) {
    p->graph = graph;
    p->topology = topology;
    typical_extents(graph, typical);
    for (size_t s = 0; extents != NULL && s < n_extents && s < graph->n_symbols; s++)
      typical[s] = extents[s];
    status = sn__home_modules(graph, &modules);
  }
  if (status == SN_OK) status = make_units(p, modules);
  if (status == SN_OK) status = make_tasks(p);
  if (status == SN_OK) status = make_costs(p, typical);
  sn__free(modules);
  sn__free(typical);
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
  sn__free(p->edges);
  sn__free(p->first_edge);
  sn__free(p->task_ns);
  sn__free(p->value_bytes);
  sn__free(p->unit_bytes);
  sn__free(p);
}
