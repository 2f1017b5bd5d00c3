/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph to the solver's problem: homes, units, costs. */
#include "placement/problem.h"

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

/* ---- tasks and values ---------------------------------------------------------------------- */

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

/* Numbers tasks and values in the graph's order, which is what ties go by in the schedule, too. */
static sn_status number(sn__problem *p, const bool *needed) {
  const sn_graph *g = p->graph;
  p->task_of_node = sn__alloc(g->n_nodes * sizeof *p->task_of_node);
  p->node_of_task = sn__calloc(g->n_nodes, sizeof *p->node_of_task);
  p->value_number = sn__alloc(g->n_values * sizeof *p->value_number);
  p->value_of = sn__calloc(g->n_values, sizeof *p->value_of);
  if (p->task_of_node == NULL || p->node_of_task == NULL || p->value_number == NULL ||
      p->value_of == NULL)
    return sn_status_out_of_memory();
  memset(p->task_of_node, 0xff, g->n_nodes * sizeof *p->task_of_node);
  memset(p->value_number, 0xff, g->n_values * sizeof *p->value_number);
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (!needed[i]) continue;
    if (!sn__node_is_source(n)) {
      p->task_of_node[i] = p->n_tasks;
      p->node_of_task[p->n_tasks++] = (uint32_t)i;
    }
    for (uint32_t o = 0; o < n->n_out; o++) {
      p->value_number[n->out[o]] = p->n_values;
      p->value_of[p->n_values++] = n->out[o];
    }
  }
  return SN_OK;
}

/* The task that writes the variable behind this value, or UINT32_MAX. */
static uint32_t writer_of(const sn__problem *p, uint32_t value) {
  const sn_graph *g = p->graph;
  const sn__value *v = &g->values[sn__value_behind_views(g, value)];
  if (v->kind != SN_VALUE_VARIABLE || g->variables[v->extra].commit == 0) return UINT32_MAX;
  return p->task_of_node[g->variables[v->extra].commit];
}

/* The task that a node waits for without reading what it makes, or UINT32_MAX. */
static uint32_t before_of(const sn__problem *p, const sn__node *n) {
  const sn_graph *g = p->graph;
  if (n->after == 0) return UINT32_MAX;
  return p->task_of_node[g->values[sn__value_behind_views(g, n->after)].node];
}

/* Reads, and for each reading of a variable that the step writes, what comes after it; then what
 * else waits. Counts them when `f` is NULL. */
static void list_edges(const sn__problem *p, sn__flow *f, uint32_t *n_reads, uint32_t *n_orders) {
  const sn_graph *g = p->graph;
  *n_reads = *n_orders = 0;
  for (uint32_t t = 0; t < p->n_tasks; t++) {
    const sn__node *n = &g->nodes[p->node_of_task[t]];
    bool view = (n->op->flags & SN_OP_VIEW) != 0;
    uint32_t before = view ? UINT32_MAX : before_of(p, n);
    if (before != UINT32_MAX && f != NULL) f->orders[*n_orders] = (sn__flow_order){before, t, 0};
    *n_orders += before != UINT32_MAX;
    for (uint32_t k = 0; k < n->n_in; k++) {
      if (n->in[k] == 0) continue;
      uint32_t value = p->value_number[n->in[k]];
      if (f != NULL) f->reads[*n_reads] = (sn__flow_read){value, t};
      ++*n_reads;
      uint32_t writer = view ? UINT32_MAX : writer_of(p, n->in[k]);
      if (writer == UINT32_MAX || writer == t) continue;
      if (f != NULL) f->orders[*n_orders] = (sn__flow_order){t, writer, value + 1};
      ++*n_orders;
    }
  }
}

/* ---- links ---------------------------------------------------------------------------------- */

static bool device_alike(const sn_device_desc *a, const sn_device_desc *b) {
  return a->kind == b->kind && a->threads == b->threads;
}

/* Whether copies take the same time over two links, by description and by profile. */
static bool link_alike(const sn_topology *t, const sn_link_desc *a, const sn_link_desc *b) {
  return a->latency_ns == b->latency_ns && !(a->bytes_per_s < b->bytes_per_s) &&
         !(a->bytes_per_s > b->bytes_per_s) && a->path == b->path &&
         device_alike(&t->devices[a->from], &t->devices[b->from]) &&
         device_alike(&t->devices[a->to], &t->devices[b->to]);
}

/* Numbers the kinds of link: first[k] is a link of kind k. */
static int find_links(const sn_topology *t, uint16_t *link_of, int *first) {
  int n = 0, pairs = t->n_devices * t->n_devices;
  for (int i = 0; i < pairs; i++) {
    int k = 0;
    link_of[i] = 0;
    if (i / t->n_devices == i % t->n_devices) continue;
    while (k < n && !link_alike(t, &t->links[first[k]], &t->links[i]))
      k++;
    if (k == n) first[n++] = i;
    link_of[i] = (uint16_t)k;
  }
  return n;
}

/* ---- the flow ------------------------------------------------------------------------------- */

/* What a value's bytes are those of: a view's input, the variable that a commit writes. */
static uint32_t base_of(const sn__problem *p, const sn__node *n, uint32_t slot) {
  if ((n->op->flags & SN_OP_VIEW) != 0 && slot == 0) return p->value_number[n->in[0]];
  if ((n->op->flags & SN_OP_COMMIT) == 0 || n->op->commits[slot] == 0) return SN__FLOW_NONE;
  uint32_t written = n->in[n->op->commits[slot] - 1];
  return written == 0 ? SN__FLOW_NONE : p->value_number[written];
}

/* Who reads a value's bytes, views included: what the memory plan asks before it lets an op write
 * over them. */
typedef struct readers {
  uint32_t last;  /* task; UINT32_MAX: none */
  uint32_t class; /* of its maker and all readers; UINT32_MAX: of several */
} readers;

static readers *list_readers(const sn__problem *p) {
  const sn_graph *g = p->graph;
  readers *all = sn__calloc(g->n_values, sizeof *all);
  for (size_t v = 1; all != NULL && v < g->n_values; v++)
    all[v] = (readers){UINT32_MAX, p->unit_of_node[g->values[v].node]};
  for (uint32_t t = 0; all != NULL && t < p->n_tasks; t++) {
    const sn__node *n = &g->nodes[p->node_of_task[t]];
    for (uint32_t k = 0; k < n->n_in && (n->op->flags & SN_OP_VIEW) == 0; k++) {
      if (n->in[k] == 0) continue;
      readers *r = &all[sn__value_behind_views(g, n->in[k])];
      r->last = t;
      if (r->class != p->unit_of_node[p->node_of_task[t]]) r->class = UINT32_MAX;
    }
  }
  return all;
}

/* The value that output `o` of a task writes over where the plan lets it, or SN__FLOW_NONE: one
 * that is read last there, in the graph's order, and never goes to another device. */
static uint32_t overwritten(const sn__problem *p, const readers *all, uint32_t t, uint32_t o) {
  const sn_graph *g = p->graph;
  const sn__node *n = &g->nodes[p->node_of_task[t]];
  int input = n->op->inplace[o];
  if (input == 0 || (uint32_t)input > n->n_in || n->in[input - 1] == 0) return SN__FLOW_NONE;
  const sn__value *from = &g->values[n->in[input - 1]], *to = &g->values[n->out[o]];
  uint32_t value = sn__value_behind_views(g, n->in[input - 1]);
  const sn__node *maker = &g->nodes[g->values[value].node];
  if (sn_dtype_size(from->dtype) != sn_dtype_size(to->dtype) ||
      !sn_shape_equal(&from->shape, &to->shape) || sn__node_is_source(maker) ||
      (maker->op->flags & SN_OP_COMMIT) != 0 || all[value].last != t)
    return SN__FLOW_NONE;
  if (p->topology->n_devices > 1 && all[value].class != p->unit_of_node[p->node_of_task[t]])
    return SN__FLOW_NONE;
  for (uint32_t k = 0; k < n->n_in; k++)
    if ((int)k != input - 1 && n->in[k] != 0 && sn__value_behind_views(g, n->in[k]) == value)
      return SN__FLOW_NONE;
  for (uint32_t k = 0; k < o; k++) /* another output has it already */
    if (p->flow->value_base[p->value_number[n->out[k]]] == p->value_number[n->in[input - 1]])
      return SN__FLOW_NONE;
  return p->value_number[n->in[input - 1]];
}

static sn_status fill_in_place(sn__problem *p) {
  readers *all = list_readers(p);
  if (all == NULL) return sn_status_out_of_memory();
  for (uint32_t t = 0; t < p->n_tasks; t++) {
    const sn__node *n = &p->graph->nodes[p->node_of_task[t]];
    for (uint32_t o = 0; o < n->n_out; o++) {
      uint32_t *base = &p->flow->value_base[p->value_number[n->out[o]]];
      if (*base == SN__FLOW_NONE) *base = overwritten(p, all, t, o);
    }
  }
  sn__free(all);
  return SN_OK;
}

static sn_status fill_values(sn__problem *p, const int64_t *extents, const int *first_link) {
  const sn_graph *g = p->graph;
  const sn_topology *t = p->topology;
  sn__flow *f = p->flow;
  for (uint32_t v = 0; v < p->n_values; v++) {
    const sn__value *value = &g->values[p->value_of[v]];
    const sn__node *n = &g->nodes[value->node];
    size_t bytes = 0;
    if (!sn__value_bytes(g, p->value_of[v], extents, &bytes))
      return sn_status_make(SN_CODE_INVALID, "'%s' is too large for memory; use a smaller batch",
                            value->name);
    f->value_task[v] = p->task_of_node[value->node];
    f->value_class[v] = p->unit_of_node[value->node];
    f->value_bytes[v] = bytes;
    f->value_base[v] = base_of(p, n, value->slot);
    for (int k = 0; t->n_devices > 1 && k < f->n_links; k++)
      f->copy_ns[(size_t)v * (size_t)f->n_links + (size_t)k] = sn__copy_ns(
          t, first_link[k] / t->n_devices, first_link[k] % t->n_devices, (uint64_t)bytes);
  }
  return SN_OK;
}

static sn_status fill_tasks(sn__problem *p, const int64_t *extents) {
  const sn_graph *g = p->graph;
  sn__flow *f = p->flow;
  size_t nd = (size_t)p->topology->n_devices;
  for (uint32_t t = 0; t < p->n_tasks; t++) {
    uint32_t node = p->node_of_task[t];
    f->task_class[t] = p->unit_of_node[node];
    f->task_view[t] = (g->nodes[node].op->flags & SN_OP_VIEW) != 0;
    for (size_t d = 0; !f->task_view[t] && d < nd; d++)
      SN_TRY(
          sn__node_device_ns(g, p->topology, extents, node, (int)d, &f->task_ns[t * nd + d], NULL));
  }
  /* Variables and constants are there whether the step needs them or not. */
  for (size_t i = 1; i < g->n_nodes; i++) {
    size_t bytes = 0;
    if (g->nodes[i].op != &sn__op_variable && g->nodes[i].op != &sn__op_constant) continue;
    if (!sn__value_bytes(g, g->nodes[i].out[0], extents, &bytes))
      return sn_status_make(SN_CODE_INVALID, "'%s' is too large for memory; use a smaller model",
                            g->nodes[i].name);
    f->class_bytes[p->unit_of_node[i]] += bytes;
  }
  for (size_t d = 0; d < nd; d++)
    f->device_bytes[d] = p->topology->devices[d].memory_bytes;
  return SN_OK;
}

static sn_status make_flow(sn__problem *p, const int64_t *extents) {
  const sn_topology *t = p->topology;
  size_t pairs = (size_t)t->n_devices * (size_t)t->n_devices;
  uint16_t *link_of = sn__calloc(pairs, sizeof *link_of);
  int *first_link = sn__calloc(pairs, sizeof *first_link);
  sn_status status = link_of == NULL || first_link == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) {
    uint32_t n_reads = 0, n_orders = 0;
    list_edges(p, NULL, &n_reads, &n_orders);
    status = sn__flow_create(t->n_devices, p->n_units, p->n_tasks, p->n_values, n_reads, n_orders,
                             find_links(t, link_of, first_link), &p->flow);
  }
  if (status == SN_OK) {
    uint32_t n_reads = 0, n_orders = 0;
    memcpy(p->flow->link_of, link_of, pairs * sizeof *link_of);
    p->flow->copies_queue = true;
    list_edges(p, p->flow, &n_reads, &n_orders);
    status = fill_values(p, extents, first_link);
  }
  if (status == SN_OK) status = fill_in_place(p);
  if (status == SN_OK) status = fill_tasks(p, extents);
  if (status == SN_OK) status = sn__flow_finish(p->flow);
  sn__free(link_of);
  sn__free(first_link);
  return status;
}

sn_status sn__problem_create(const sn_graph *graph, const sn_topology *topology,
                             const int64_t *extents, size_t n_extents, sn__problem **out_problem) {
  sn__problem *p = sn__calloc(1, sizeof *p);
  int64_t *chosen = sn__calloc(graph->n_symbols, sizeof *chosen);
  bool *needed = sn__calloc(graph->n_nodes, sizeof *needed);
  uint32_t *modules = NULL;
  sn_status status =
      p == NULL || chosen == NULL || needed == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) {
    p->graph = graph;
    p->topology = topology;
    status = choose_extents(graph, extents, n_extents, chosen);
  }
  if (status == SN_OK) status = sn__home_modules(graph, &modules);
  if (status == SN_OK) status = make_units(p, modules);
  if (status == SN_OK) status = mark_needed(graph, needed);
  if (status == SN_OK) status = number(p, needed);
  if (status == SN_OK) status = make_flow(p, chosen);
  sn__free(modules);
  sn__free(needed);
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
  sn__flow_free(p->flow);
  sn__free(p->units);
  sn__free(p->unit_of_node);
  sn__free(p->task_of_node);
  sn__free(p->node_of_task);
  sn__free(p->value_number);
  sn__free(p->value_of);
  sn__free(p);
}
