/* SPDX-License-Identifier: Apache-2.0 */
/* A placement put on a graph: devices and causes on nodes, then one copy node for each value that
 * is read on another device, right behind its producer in the node order (which stays topological).
 */
#include "placement/copies.h"

#include <assert.h>
#include <string.h>

typedef struct rewrite {
  const sn_graph *from;
  sn_graph *to;
  const sn_op_def *copy;
  uint32_t *node_index; /* old node -> new node */
  uint32_t *copy_value; /* [n_values * n_devices]: the copy there, 0 = none */
  size_t n_old_values;
  int n_devices;
} rewrite;

static uint32_t *copy_slot(const rewrite *r, uint32_t value, int device) {
  return &r->copy_value[(size_t)value * (size_t)r->n_devices + (size_t)device];
}

static const char *device_word(const sn_topology *topology, int device) {
  return topology->devices[device].name;
}

/* Adds the copy node of `value` to `device`. The reader's phase is the copy's: a copy that only the
 * backward pass reads is part of it. */
static sn_status add_copy(rewrite *r, const sn_topology *topology, uint32_t value, int device,
                          sn_phase phase) {
  sn_graph *g = r->to;
  const sn__node *producer = &r->from->nodes[r->from->values[value].node];
  uint32_t index = (uint32_t)g->n_nodes;
  uint32_t *in = sn__arena_alloc(&g->arena, sizeof *in),
           *out = sn__arena_alloc(&g->arena, sizeof *out);
  char *text = sn__format("%s@%s", g->values[value].name, device_word(topology, device));
  const char *name = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
  sn__free(text);
  text = sn__format("read on %s, made on %s", device_word(topology, device),
                    device_word(topology, producer->device));
  const char *cause = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
  sn__free(text);
  if (in == NULL || out == NULL || name == NULL || cause == NULL ||
      !sn__grow((void **)&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof *g->nodes) ||
      !sn__grow((void **)&g->values, &g->cap_values, g->n_values + 1, sizeof *g->values))
    return sn_status_out_of_memory();
  uint32_t copy = (uint32_t)g->n_values++;
  g->values[copy] = g->values[value];
  g->values[copy].kind = SN_VALUE_OP;
  g->values[copy].node = index;
  g->values[copy].slot = 0;
  g->values[copy].name = name;
  g->values[copy].extra = 0;
  in[0] = value;
  out[0] = copy;
  g->nodes[g->n_nodes++] = (sn__node){.op = r->copy,
                                      .in = in,
                                      .n_in = 1,
                                      .out = out,
                                      .n_out = 1,
                                      .module = producer->module,
                                      .name = name,
                                      .part = producer->part,
                                      .phase = phase > producer->phase ? phase : producer->phase,
                                      .device = device,
                                      .cause = cause};
  *copy_slot(r, value, device) = copy;
  return SN_OK;
}

/* The earliest phase in which `value` is read on `device`; false when it is not. */
static bool read_there(const sn_graph *g, const uint32_t *first_reader, uint32_t value, int device,
                       int n_devices, sn_phase *out_phase) {
  uint32_t reader = first_reader[(size_t)value * (size_t)n_devices + (size_t)device];
  if (reader == 0) return false;
  *out_phase = g->nodes[reader].phase;
  return true;
}

static void find_readers(const sn_graph *g, int n_devices, uint32_t *first_reader) {
  for (size_t i = g->n_nodes; i-- > 1;)
    for (uint32_t k = 0; k < g->nodes[i].n_in; k++)
      if (g->nodes[i].in[k] != 0)
        first_reader[(size_t)g->nodes[i].in[k] * (size_t)n_devices + (size_t)g->nodes[i].device] =
            (uint32_t)i;
}

static sn_status emit_node(rewrite *r, const sn_topology *topology, uint32_t old,
                           const uint32_t *first_reader) {
  sn_graph *g = r->to;
  if (!sn__grow((void **)&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof *g->nodes))
    return sn_status_out_of_memory();
  uint32_t index = (uint32_t)g->n_nodes++;
  g->nodes[index] = r->from->nodes[old];
  sn__node *n = &g->nodes[index];
  r->node_index[old] = index;
  n->origin = n->origin == 0 ? 0 : r->node_index[n->origin];
  /* The lists are the clone's own; readers elsewhere now read the copy. */
  for (uint32_t k = 0; k < n->n_in; k++) {
    if (n->in[k] == 0) continue;
    uint32_t copy = *copy_slot(r, n->in[k], n->device);
    if (copy != 0) n->in[k] = copy;
  }
  for (uint32_t o = 0; o < n->n_out; o++)
    g->values[n->out[o]].node = index;
  uint32_t n_out = n->n_out, *out = n->out;
  int home = n->device;
  for (uint32_t o = 0; o < n_out; o++)
    for (int d = 0; d < r->n_devices; d++) {
      sn_phase phase;
      if (d != home && read_there(r->from, first_reader, out[o], d, r->n_devices, &phase))
        SN_TRY(add_copy(r, topology, out[o], d, phase));
    }
  return SN_OK;
}

sn_status sn__insert_copies(const sn_graph *placed, const sn_topology *topology,
                            sn_graph **out_graph) {
  rewrite r = {.from = placed,
               .copy = sn__op_find("copy"),
               .n_devices = topology->n_devices,
               .n_old_values = placed->n_values};
  assert(r.copy != NULL);
  size_t cells = placed->n_values * (size_t)r.n_devices;
  uint32_t *first_reader = sn__calloc(cells, sizeof *first_reader);
  r.node_index = sn__calloc(placed->n_nodes, sizeof *r.node_index);
  r.copy_value = sn__calloc(cells, sizeof *r.copy_value);
  sn_status status = first_reader == NULL || r.node_index == NULL || r.copy_value == NULL
                         ? sn_status_out_of_memory()
                         : sn__graph_clone(placed, &r.to);
  if (status == SN_OK) {
    /* The clone's nodes hold lists of its own; they are the ones emitted again, in order. */
    sn__node *old = r.to->nodes;
    sn_graph view = *placed;
    view.nodes = old;
    r.from = &view;
    r.to->nodes = NULL;
    r.to->cap_nodes = r.to->n_nodes = 0;
    find_readers(&view, r.n_devices, first_reader);
    if (!sn__grow((void **)&r.to->nodes, &r.to->cap_nodes, placed->n_nodes, sizeof *old))
      status = sn_status_out_of_memory();
    else
      r.to->nodes[r.to->n_nodes++] = old[0];
    for (uint32_t i = 1; status == SN_OK && i < placed->n_nodes; i++)
      status = emit_node(&r, topology, i, first_reader);
    for (size_t v = 0; status == SN_OK && v < r.to->n_variables; v++)
      if (r.to->variables[v].commit != 0)
        r.to->variables[v].commit = r.node_index[r.to->variables[v].commit];
    sn__free(old);
  }
  sn__free(first_reader);
  sn__free(r.node_index);
  sn__free(r.copy_value);
  if (status != SN_OK) {
    sn_graph_free(r.to);
    return status;
  }
  *out_graph = r.to;
  return SN_OK;
}
