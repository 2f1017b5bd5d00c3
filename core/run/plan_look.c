/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a plan: the placed graph, its copies, and what belongs to each variable. */
#include "core/run/run_impl.h"

static const char *phase_name(sn_phase phase) {
  static const char *const names[] = {"forward", "backward", "update"};
  return names[phase];
}

static bool is_copy(const sn__node *n) {
  return (n->op->flags & SN_OP_COPY) != 0;
}

/* A gradient's sum goes with what made the value that it is the gradient of. */
static uint32_t origin_of(const sn_graph *g, const sn__node *n) {
  if (n->phase != SN_BACKWARD) return 0;
  return n->origin != 0 || n->home == 0 ? n->origin : g->values[n->home].node;
}

size_t sn_plan_placed_count(const sn_plan *p) {
  return p->graph->n_nodes - 1;
}

sn_plan_placed sn_plan_placed_at(const sn_plan *p, size_t i) {
  if (i >= sn_plan_placed_count(p)) return (sn_plan_placed){.device = -1};
  const sn__node *n = &p->graph->nodes[i + 1];
  return (sn_plan_placed){.node = (uint32_t)(i + 1),
                          .name = n->name,
                          .op = n->op->name,
                          .module = p->graph->modules[n->module].path,
                          .phase = phase_name(n->phase),
                          .device = n->device,
                          .cause = n->cause,
                          .copy = is_copy(n),
                          .runs = p->schedule->task_of[i + 1] != 0,
                          .n_inputs = n->n_in,
                          .n_outputs = n->n_out,
                          .inputs = n->in,
                          .outputs = n->out,
                          .origin = origin_of(p->graph, n)};
}

const char *sn_plan_value_name(const sn_plan *p, uint32_t value) {
  return value > 0 && value < p->graph->n_values ? p->graph->values[value].name : NULL;
}

/* ---- bytes --------------------------------------------------------------------------------- */

uint64_t sn_plan_value_bytes(const sn_plan *p, uint32_t value) {
  const sn_graph *g = p->graph;
  if (value == 0 || value >= g->n_values) return 0;
  sn_shape shape = g->values[value].shape;
  uint64_t bytes = sn_dtype_size(g->values[value].dtype);
  for (int32_t d = 0; d < shape.rank; d++) {
    int64_t dim = shape.dims[d];
    if (sn_dim_is_symbolic(dim))
      dim = sn__plan_extent(p, (uint32_t)sn_dim_symbol(dim)) + sn_dim_addend(dim);
    bytes *= (uint64_t)dim;
  }
  return bytes;
}

/* ---- copies -------------------------------------------------------------------------------- */

size_t sn_plan_copy_count(const sn_plan *p) {
  size_t count = 0;
  for (uint32_t t = 0; t < p->schedule->n_tasks; t++)
    count += is_copy(&p->graph->nodes[p->schedule->tasks[t].node]);
  return count;
}

sn_plan_copy sn_plan_copy_at(const sn_plan *p, size_t i) {
  const sn_graph *g = p->graph;
  uint32_t t = 0;
  for (size_t seen = 0; t < p->schedule->n_tasks; t++)
    if (is_copy(&g->nodes[p->schedule->tasks[t].node]) && seen++ == i) break;
  if (t == p->schedule->n_tasks) return (sn_plan_copy){.from = -1, .to = -1};
  uint32_t node = p->schedule->tasks[t].node;
  const sn__node *n = &g->nodes[node];
  int from = g->nodes[g->values[n->in[0]].node].device;
  uint64_t bytes = sn_plan_value_bytes(p, n->in[0]);
  return (sn_plan_copy){.node = node,
                        .value = g->values[n->in[0]].name,
                        .from = from,
                        .to = n->device,
                        .bytes = bytes,
                        .ns = p->schedule->tasks[t].cost_ns,
                        .path = sn_topology_link(p->topology, from, n->device)->path,
                        .phase = phase_name(n->phase)};
}

/* ---- variables ----------------------------------------------------------------------------- */

static int device_of(const sn_graph *g, uint32_t value) {
  return value == 0 ? -1 : g->nodes[g->values[value].node].device;
}

size_t sn_plan_variable_count(const sn_plan *p) {
  size_t count = 0;
  for (size_t v = 0; v < p->graph->n_variables; v++)
    count += p->graph->variables[v].owner == 0;
  return count;
}

/* The graph's number of the i-th variable that is no slot; n_variables when there is none. */
static uint32_t variable_at(const sn_graph *g, size_t i) {
  uint32_t v = 0;
  for (size_t seen = 0; v < g->n_variables; v++)
    if (g->variables[v].owner == 0 && seen++ == i) break;
  return v;
}

sn_plan_variable sn_plan_variable_at(const sn_plan *p, size_t i) {
  const sn_graph *g = p->graph;
  uint32_t number = variable_at(g, i);
  if (number == g->n_variables)
    return (sn_plan_variable){.device = -1, .gradient_device = -1, .update_device = -1};
  const sn__variable *v = &g->variables[number];
  sn_plan_variable out = {.name = v->name,
                          .device = device_of(g, v->value),
                          .gradient_device = device_of(g, v->gradient),
                          .update_device = v->commit == 0 ? -1 : g->nodes[v->commit].device};
  for (size_t s = 0; s < g->n_variables; s++)
    out.n_slots += g->variables[s].owner == number + 1;
  return out;
}

int sn_plan_slot_device(const sn_plan *p, size_t variable, size_t slot) {
  const sn_graph *g = p->graph;
  uint32_t number = variable_at(g, variable);
  for (size_t s = 0, seen = 0; s < g->n_variables; s++)
    if (g->variables[s].owner == number + 1 && seen++ == slot)
      return device_of(g, g->variables[s].value);
  return -1;
}
