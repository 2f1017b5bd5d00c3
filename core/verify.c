/* SPDX-License-Identifier: Apache-2.0 */
/* Structure and V1 to V5 of a placed graph; schedules are in verify_schedule.c. */
#include "core/verify.h"

#include <string.h>

#define BROKEN(...) sn_status_make(SN_CODE_INTERNAL, __VA_ARGS__)

static const char *device_name(const sn_topology *t, int32_t device) {
  return device >= 0 && device < t->n_devices ? t->devices[device].name : "no device";
}

static int32_t value_device(const sn_graph *g, uint32_t value) {
  return g->nodes[g->values[value].node].device;
}

static bool is_copy(const sn__node *n) {
  return (n->op->flags & SN_OP_COPY) != 0;
}

/* ---- structure ----------------------------------------------------------------------------- */

static sn_status check_indices(const sn_graph *g, uint32_t i) {
  const sn__node *n = &g->nodes[i];
  if (n->op == NULL || n->name == NULL) return BROKEN("node %u has no op or no name", i);
  if (n->module >= g->n_modules || n->origin >= g->n_nodes || n->home >= g->n_values)
    return BROKEN("node '%s' has a module, origin or home out of range", n->name);
  if (n->after >= g->n_values || (n->after != 0 && g->values[n->after].node >= i))
    return BROKEN("node '%s' comes after a value that is not made before it", n->name);
  if (n->n_out < 1 || n->n_out > SN_MAX_OUTPUTS)
    return BROKEN("node '%s' has %u outputs", n->name, n->n_out);
  for (uint32_t k = 0; k < n->n_in; k++) {
    if (n->in[k] >= g->n_values) return BROKEN("input %u of node '%s' is out of range", k, n->name);
    if (n->in[k] != 0 && g->values[n->in[k]].node >= i)
      return BROKEN("node '%s' reads '%s', which is not made before it", n->name,
                    g->values[n->in[k]].name);
  }
  for (uint32_t o = 0; o < n->n_out; o++) {
    const sn__value *v = n->out[o] < g->n_values ? &g->values[n->out[o]] : NULL;
    if (v == NULL || n->out[o] == 0 || v->node != i || v->slot != o)
      return BROKEN("output %u of node '%s' is not a value made by it", o, n->name);
  }
  return SN_OK;
}

static sn_status check_types(const sn_graph *g, const sn__node *n, sn__type *types) {
  sn__infer c = {.graph = g,
                 .op = n->op,
                 .attrs = n->attrs,
                 .in = types,
                 .n_in = (int)n->n_in,
                 .n_out = n->op->n_outputs};
  for (uint32_t k = 0; k < n->n_in; k++) {
    const sn__value *v = &g->values[n->in[k]];
    types[k] = n->in[k] == 0 ? (sn__type){SN_DTYPE_NONE, {0, {0}}} : (sn__type){v->dtype, v->shape};
  }
  if (is_copy(n))
    c.out[0] = types[0]; /* a copy may stand without a shape rule of its own */
  else
    SN_TRY(sn_status_context(n->op->infer(&c), "node '%s' does not keep its own rules", n->name));
  for (uint32_t o = 0; o < n->n_out; o++) {
    const sn__value *v = &g->values[n->out[o]];
    if ((int)o < c.n_out && v->dtype == c.out[o].dtype &&
        sn_shape_equal(&v->shape, &c.out[o].shape))
      continue;
    char has[160], gives[160];
    return BROKEN("output %u of node '%s' is %s %s; its op gives %s %s", o, n->name,
                  sn_dtype_name(v->dtype), sn_shape_text(g, &v->shape, has, sizeof has),
                  sn_dtype_name(c.out[o].dtype),
                  sn_shape_text(g, &c.out[o].shape, gives, sizeof gives));
  }
  return SN_OK;
}

static sn_status check_source(const sn_graph *g, const sn__node *n) {
  const sn__value *v = &g->values[n->out[0]];
  bool sound = false;
  switch (v->kind) {
  case SN_VALUE_INPUT:
    sound = v->extra < g->n_inputs && g->inputs[v->extra].value == n->out[0];
    break;
  case SN_VALUE_VARIABLE:
    sound = v->extra < g->n_variables && g->variables[v->extra].value == n->out[0];
    break;
  case SN_VALUE_CONSTANT:
    sound = v->extra < g->n_constants && g->constants[v->extra].value == n->out[0];
    break;
  default: break;
  }
  return sound ? SN_OK : BROKEN("'%s' is not in the list of its kind", n->name);
}

sn_status sn__verify_structure(const sn_graph *g) {
  size_t most = 1;
  for (uint32_t i = 1; i < g->n_nodes; i++) {
    SN_TRY(check_indices(g, i));
    if (g->nodes[i].n_in > most) most = g->nodes[i].n_in;
  }
  sn__type *types = sn__calloc(most, sizeof *types);
  if (types == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  for (uint32_t i = 1; status == SN_OK && i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    status = sn__node_is_source(n) ? check_source(g, n) : check_types(g, n, types);
  }
  sn__free(types);
  for (size_t v = 0; status == SN_OK && v < g->n_variables; v++) {
    const sn__variable *variable = &g->variables[v];
    if (variable->value >= g->n_values || variable->gradient >= g->n_values ||
        variable->commit >= g->n_nodes || variable->owner > g->n_variables)
      status = BROKEN("variable '%s' refers to what is not there", variable->name);
  }
  return status;
}

/* ---- V1 to V3 ------------------------------------------------------------------------------ */

static sn_status check_placed(const sn_graph *g, const sn_topology *t) {
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (n->device < 0) return BROKEN("V3: node '%s' (%s) has no device", n->name, n->op->name);
    if (n->device >= t->n_devices)
      return BROKEN("V3: node '%s' (%s) is on device number %d; there are %d", n->name, n->op->name,
                    (int)n->device, t->n_devices);
  }
  return SN_OK;
}

static sn_status check_devices(const sn_graph *g, const sn_topology *t) {
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    for (uint32_t k = 0; k < n->n_in; k++) {
      if (n->in[k] == 0) continue;
      int32_t from = value_device(g, n->in[k]);
      if (is_copy(n) ? from != n->device : from == n->device) continue;
      if (is_copy(n))
        return BROKEN("V1: copy '%s' stays on %s", n->name, device_name(t, n->device));
      return BROKEN("V1: node '%s' on %s reads '%s' on %s", n->name, device_name(t, n->device),
                    g->values[n->in[k]].name, device_name(t, from));
    }
  }
  return SN_OK;
}

static sn_status check_homes(const sn_graph *g, const sn_topology *t) {
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (n->home == 0 || n->device == value_device(g, n->home)) continue;
    return BROKEN("V2: node '%s' on %s belongs to '%s' on %s", n->name, device_name(t, n->device),
                  g->values[n->home].name, device_name(t, value_device(g, n->home)));
  }
  for (size_t v = 0; v < g->n_variables; v++) {
    const sn__variable *variable = &g->variables[v];
    int32_t home = value_device(g, variable->value);
    if (variable->owner != 0 && home != value_device(g, g->variables[variable->owner - 1].value))
      return BROKEN("V2: slot '%s' is on %s, its variable on %s", variable->name,
                    device_name(t, home),
                    device_name(t, value_device(g, g->variables[variable->owner - 1].value)));
    if (variable->gradient != 0 && value_device(g, variable->gradient) != home)
      return BROKEN("V2: the gradient of '%s' is on %s, the variable on %s", variable->name,
                    device_name(t, value_device(g, variable->gradient)), device_name(t, home));
    if (variable->commit != 0 && g->nodes[variable->commit].device != home)
      return BROKEN(
          "V2: the update '%s' is on %s, variable '%s' on %s", g->nodes[variable->commit].name,
          device_name(t, g->nodes[variable->commit].device), variable->name, device_name(t, home));
  }
  return SN_OK;
}

/* ---- V4 ------------------------------------------------------------------------------------ */

/* The value that a chain of copies began with. */
static uint32_t copied_value(const sn_graph *g, uint32_t value) {
  while (is_copy(&g->nodes[g->values[value].node]))
    value = g->nodes[g->values[value].node].in[0];
  return value;
}

/* Copies of one value are chained by `next`; a value has at most one a device and phase. */
static sn_status check_copies(const sn_graph *g, const sn_topology *t) {
  uint32_t *first = sn__calloc(g->n_values, sizeof *first);
  uint32_t *next = sn__calloc(g->n_nodes, sizeof *next);
  sn_status status = first == NULL || next == NULL ? sn_status_out_of_memory() : SN_OK;
  for (uint32_t i = 1; status == SN_OK && i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (!is_copy(n)) continue;
    uint32_t value = copied_value(g, n->in[0]);
    for (uint32_t other = first[value]; status == SN_OK && other != 0; other = next[other])
      if (g->nodes[other].device == n->device && g->nodes[other].phase == n->phase)
        status =
            BROKEN("V4: '%s' is copied to %s twice, by '%s' and by '%s'", g->values[value].name,
                   device_name(t, n->device), g->nodes[other].name, n->name);
    next[i] = first[value];
    first[value] = i;
  }
  sn__free(first);
  sn__free(next);
  return status;
}

/* ---- V5, without a schedule ---------------------------------------------------------------- */

/* No node that follows `writer` may read the bytes that it overwrote: there is no order in which it
 * could. `mark` is scratch for every node. */
static sn_status check_late_readers(const sn_graph *g, uint32_t writer, uint32_t old, bool *mark) {
  memset(mark, 0, g->n_nodes * sizeof *mark);
  mark[writer] = true;
  for (uint32_t i = writer + 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    bool reads = false;
    for (uint32_t k = 0; k < n->n_in; k++) {
      if (n->in[k] == 0) continue;
      mark[i] |= mark[g->values[n->in[k]].node];
      reads |= n->in[k] == old;
    }
    if (mark[i] && reads)
      return BROKEN("V5: %s '%s' follows '%s' and reads '%s', which that overwrote",
                    is_copy(n) ? "copy" : "node", n->name, g->nodes[writer].name,
                    g->values[old].name);
  }
  return SN_OK;
}

static sn_status check_commit(const sn_graph *g, uint32_t node, uint32_t *writer, bool *mark) {
  const sn__node *n = &g->nodes[node];
  for (uint32_t o = 0; o < n->n_out; o++) {
    int input = n->op->commits[o] - 1;
    if (input < 0) continue;
    uint32_t target = (uint32_t)input < n->n_in ? n->in[input] : 0;
    if (target == 0) return BROKEN("V5: '%s' writes an input that it does not have", n->name);
    if (g->values[target].kind != SN_VALUE_VARIABLE)
      return BROKEN("V5: '%s' writes '%s', which is not a variable but made by '%s'", n->name,
                    g->values[target].name, g->nodes[g->values[target].node].name);
    uint32_t variable = g->values[target].extra;
    if (writer[variable] != 0)
      return BROKEN("V5: variable '%s' is written by '%s' and by '%s'", g->variables[variable].name,
                    g->nodes[writer[variable]].name, n->name);
    writer[variable] = node;
    if (g->variables[variable].commit != node)
      return BROKEN("V5: '%s' writes variable '%s', which does not know it", n->name,
                    g->variables[variable].name);
    SN_TRY(check_late_readers(g, node, target, mark));
  }
  return SN_OK;
}

static sn_status check_commits(const sn_graph *g) {
  uint32_t *writer = sn__calloc(g->n_variables + 1, sizeof *writer);
  bool *mark = sn__calloc(g->n_nodes, sizeof *mark);
  sn_status status = writer == NULL || mark == NULL ? sn_status_out_of_memory() : SN_OK;
  for (uint32_t i = 1; status == SN_OK && i < g->n_nodes; i++)
    if ((g->nodes[i].op->flags & SN_OP_COMMIT) != 0) status = check_commit(g, i, writer, mark);
  sn__free(writer);
  sn__free(mark);
  return status;
}

sn_status sn__verify(const sn_graph *placed, const sn_topology *topology) {
  SN_TRY(sn__verify_structure(placed));
  SN_TRY(check_placed(placed, topology));
  SN_TRY(check_devices(placed, topology));
  SN_TRY(check_homes(placed, topology));
  SN_TRY(check_copies(placed, topology));
  return check_commits(placed);
}
