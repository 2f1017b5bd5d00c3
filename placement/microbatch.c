/* SPDX-License-Identifier: Apache-2.0 */
/* A differentiated graph for several micro-batches at once. */
#include "placement/microbatch.h"

#include <assert.h>
#include <string.h>

typedef struct unroll {
  const sn_graph *from;
  sn_graph *to;
  sn__node *old;    /* [from->n_nodes] the clone's own nodes, emitted again in order */
  bool *shared;     /* [from->n_nodes] the same in every part */
  uint32_t *node;   /* [n_parts * from->n_nodes] part by part: its number in `to` */
  uint32_t *value;  /* [n_parts * from->n_values] part by part: what stands for it */
  uint32_t *totals; /* [n_variables] gradient of the parts so far */
  uint32_t n_parts;
} unroll;

/* Of a part: by node and by value of the original. */
static uint32_t *nodes_of(const unroll *u, uint32_t part) {
  return u->node + (size_t)part * u->from->n_nodes;
}

static uint32_t *values_of(const unroll *u, uint32_t part) {
  return u->value + (size_t)part * u->from->n_values;
}

/* ---- what the parts share ------------------------------------------------------------------ */

static bool is_commit(const sn__node *n) {
  return (n->op->flags & SN_OP_COMMIT) != 0;
}

/* One node takes what every part brings, and all parts read what it gives. */
static bool is_total(const sn__node *n) {
  return (n->op->flags & SN_OP_ALL_PARTS) != 0;
}

static bool is_shared_input(const sn_graph *g, const sn__node *n) {
  const sn__value *v = &g->values[n->out[0]];
  sn__input_role role = g->inputs[v->extra].role;
  return role == SN_INPUT_SEED || role == SN_INPUT_STEP ||
         (role == SN_INPUT_DATA && v->shape.rank == 0);
}

static void mark_shared(unroll *u) {
  const sn_graph *g = u->from;
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (sn__node_is_source(n)) {
      u->shared[i] = n->op != &sn__op_input || is_shared_input(g, n);
      continue;
    }
    bool shared = n->phase == SN_FORWARD && n->n_in > 0 && (n->op->flags & SN_OP_RANDOM) == 0 &&
                  !is_commit(n) && !is_total(n);
    for (uint32_t k = 0; shared && k < n->n_in; k++)
      shared = n->in[k] == 0 || u->shared[g->values[n->in[k]].node];
    for (uint32_t o = 0; shared && o < n->n_out; o++)
      shared = sn_shape_is_fixed(&g->values[n->out[o]].shape);
    u->shared[i] = shared;
  }
}

/* ---- emitting ------------------------------------------------------------------------------ */

static const char *part_name(sn_graph *g, const char *name, uint32_t part) {
  char *text = sn__format("%s@%u", name, part);
  const char *kept = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
  sn__free(text);
  return kept;
}

static sn_status add_value(unroll *u, uint32_t old, uint32_t node, uint32_t part) {
  sn_graph *g = u->to;
  const char *name = part_name(g, u->from->values[old].name, part);
  if (name == NULL ||
      !sn__grow((void **)&g->values, &g->cap_values, g->n_values + 1, sizeof *g->values))
    return sn_status_out_of_memory();
  uint32_t index = (uint32_t)g->n_values++;
  g->values[index] = u->from->values[old];
  g->values[index].node = node;
  g->values[index].name = name;
  values_of(u, part)[old] = index;
  if (g->values[index].kind != SN_VALUE_INPUT) return SN_OK;
  if (!sn__grow((void **)&g->inputs, &g->cap_inputs, g->n_inputs + 1, sizeof *g->inputs))
    return sn_status_out_of_memory();
  sn__input in = u->from->inputs[u->from->values[old].extra];
  in.name = name;
  in.value = index;
  g->values[index].extra = (uint32_t)g->n_inputs;
  g->inputs[g->n_inputs++] = in;
  return SN_OK;
}

/* Node `old` of the original for a part; its inputs have been emitted for it. */
static sn_status emit(unroll *u, uint32_t old, uint32_t part) {
  sn_graph *g = u->to;
  const sn__node *from = &u->old[old];
  const uint32_t *node = nodes_of(u, part), *value = values_of(u, part);
  if (!sn__grow((void **)&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof *g->nodes))
    return sn_status_out_of_memory();
  uint32_t index = (uint32_t)g->n_nodes++;
  sn__node *n = &g->nodes[index];
  *n = *from;
  nodes_of(u, part)[old] = index;
  n->origin = n->origin == 0 ? 0 : node[n->origin];
  if (part == 0) {
    for (uint32_t p = 1; p < u->n_parts && u->shared[old]; p++)
      nodes_of(u, p)[old] = index;
    for (uint32_t o = 0; o < n->n_out; o++)
      g->values[n->out[o]].node = index;
    return SN_OK;
  }
  n->part = part;
  n->name = part_name(g, from->name, part);
  n->in = sn__arena_alloc(&g->arena, (n->n_in + 1) * sizeof *n->in);
  n->out = sn__arena_alloc(&g->arena, (n->n_out + 1) * sizeof *n->out);
  if (n->name == NULL || n->in == NULL || n->out == NULL) return sn_status_out_of_memory();
  n->home = n->home == 0 ? 0 : value[n->home];
  for (uint32_t k = 0; k < n->n_in; k++)
    n->in[k] = from->in[k] == 0 ? 0 : value[from->in[k]];
  for (uint32_t o = 0; o < n->n_out; o++) {
    SN_TRY(add_value(u, from->out[o], index, part));
    g->nodes[index].out[o] = value[from->out[o]];
  }
  return SN_OK;
}

/* A node that is there once and takes what every part brings: first its inputs that are the same in
 * all of them, then the others part by part. */
static sn_status emit_joined(unroll *u, uint32_t old, uint32_t *out_node) {
  sn_graph *g = u->to;
  const sn__node *from = &u->old[old];
  if (from->op->max_inputs >= 0 || from->n_out != 1)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "%s '%s' writes a variable in every micro-batch and takes one at a "
                          "time: run them one after the other",
                          from->op->name, from->name);
  uint32_t *in = sn__arena_alloc(&g->arena, ((size_t)from->n_in * u->n_parts + 1) * sizeof *in);
  if (in == NULL || !sn__grow((void **)&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof *g->nodes))
    return sn_status_out_of_memory();
  uint32_t n_in = 0, index = (uint32_t)g->n_nodes++;
  for (uint32_t k = 0; k < from->n_in; k++)
    if (values_of(u, 0)[from->in[k]] == values_of(u, 1)[from->in[k]])
      in[n_in++] = values_of(u, 0)[from->in[k]];
  for (uint32_t p = 0; p < u->n_parts; p++)
    for (uint32_t k = 0; k < from->n_in; k++)
      if (values_of(u, 0)[from->in[k]] != values_of(u, 1)[from->in[k]])
        in[n_in++] = values_of(u, p)[from->in[k]];
  g->nodes[index] = *from;
  g->nodes[index].origin = from->origin == 0 ? 0 : nodes_of(u, 0)[from->origin];
  g->nodes[index].in = in;
  g->nodes[index].n_in = n_in;
  g->values[from->out[0]].node = index;
  for (uint32_t p = 0; p < u->n_parts; p++)
    nodes_of(u, p)[old] = index;
  *out_node = index;
  return SN_OK;
}

/* Adds this part's gradients to those before it, each where its variable lives. */
static sn_status accumulate(unroll *u, uint32_t part) {
  sn_graph *g = u->to;
  const sn_op_def *add_n = sn__op_find("add_n");
  assert(add_n != NULL); /* differentiation has used it or would have failed */
  for (size_t v = 0; v < u->from->n_variables; v++) {
    uint32_t gradient = u->from->variables[v].gradient;
    if (gradient == 0) continue;
    if (part == 0) {
      u->totals[v] = gradient;
      continue;
    }
    uint32_t variable = g->variables[v].value;
    g->phase = SN_BACKWARD;
    g->origin = g->values[variable].node;
    g->home = variable;
    g->module = g->nodes[g->origin].module;
    const sn_value in[] = {sn__value_at(g, u->totals[v]),
                           sn__value_at(g, values_of(u, part)[gradient])};
    sn_value sum = sn__node_add(g, add_n, NULL, in, 2, "gradient", NULL);
    SN_TRY(sn_graph_status(g));
    g->nodes[g->n_nodes - 1].part = part;
    u->totals[v] = sum.index;
  }
  return SN_OK;
}

static sn_status add_losses(unroll *u, uint32_t part) {
  sn_graph *g = u->to;
  for (size_t l = 0; l < u->from->n_losses; l++) {
    sn__loss_info loss = u->from->losses[l];
    loss.name = part_name(g, loss.name, part);
    loss.sum = values_of(u, part)[loss.sum];
    loss.weights = loss.weights == 0 ? 0 : values_of(u, part)[loss.weights];
    if (loss.name == NULL ||
        !sn__grow((void **)&g->losses, &g->cap_losses, g->n_losses + 1, sizeof *g->losses))
      return sn_status_out_of_memory();
    g->losses[g->n_losses++] = loss;
  }
  return SN_OK;
}

/* Nodes [from, to) of the original, which hold no total. */
static sn_status emit_part(unroll *u, uint32_t part, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++)
    if (!is_commit(&u->old[i]) && (part == 0 || !u->shared[i])) SN_TRY(emit(u, i, part));
  if (to < u->from->n_nodes) return SN_OK;
  SN_TRY(accumulate(u, part));
  return part == 0 ? SN_OK : add_losses(u, part);
}

/* All parts one after another as far as the next total, which needs them all; then on. */
static sn_status emit_parts(unroll *u) {
  const uint32_t end = (uint32_t)u->from->n_nodes;
  for (uint32_t from = 1, to; from <= end; from = to + 1) {
    uint32_t joined = 0;
    for (to = from; to < end && !is_total(&u->old[to]);)
      to++;
    for (uint32_t part = 0; part < u->n_parts; part++)
      SN_TRY(emit_part(u, part, from, to));
    if (to == end) return SN_OK;
    SN_TRY(emit_joined(u, to, &joined));
  }
  return SN_OK;
}

/* A variable is written once: by what every part brings, in order. */
static sn_status emit_commits(unroll *u) {
  sn_graph *g = u->to;
  for (uint32_t i = 1; i < u->from->n_nodes; i++) {
    if (!is_commit(&u->old[i])) continue;
    uint32_t index = 0;
    SN_TRY(emit_joined(u, i, &index));
    for (size_t v = 0; v < g->n_variables; v++)
      if (g->variables[v].commit == i) u->totals[v] = index; /* it has no gradient */
  }
  for (size_t v = 0; v < g->n_variables; v++) {
    if (g->variables[v].commit != 0) g->variables[v].commit = u->totals[v];
    if (g->variables[v].gradient == 0) continue;
    g->variables[v].gradient = u->totals[v];
    g->gradients[g->variables[v].value] = u->totals[v];
  }
  return SN_OK;
}

/* ---- the pass ------------------------------------------------------------------------------ */

static sn_status build(unroll *u) {
  const sn_graph *from = u->from;
  sn_graph *g = u->to;
  u->shared = sn__calloc(from->n_nodes, sizeof *u->shared);
  u->node = sn__calloc(from->n_nodes * u->n_parts, sizeof *u->node);
  u->value = sn__calloc(from->n_values * u->n_parts, sizeof *u->value);
  u->totals = sn__calloc(from->n_variables + 1, sizeof *u->totals);
  if (u->shared == NULL || u->node == NULL || u->value == NULL || u->totals == NULL ||
      !sn__grow((void **)&g->nodes, &g->cap_nodes, from->n_nodes * u->n_parts, sizeof *g->nodes))
    return sn_status_out_of_memory();
  for (uint32_t part = 0; part < u->n_parts; part++)
    for (uint32_t v = 0; v < from->n_values; v++)
      values_of(u, part)[v] = v;
  mark_shared(u);
  g->nodes[g->n_nodes++] = u->old[0];
  SN_TRY(emit_parts(u));
  SN_TRY(emit_commits(u));
  g->n_parts = u->n_parts;
  return SN_OK;
}

sn_status sn__micro_unroll(const sn_graph *differentiated, uint32_t n_parts, sn_graph **out_graph) {
  assert(n_parts > 1);
  unroll u = {.from = differentiated, .n_parts = n_parts};
  SN_TRY(sn__graph_clone(differentiated, &u.to));
  sn_graph *g = u.to;
  uint32_t module = g->module;
  u.old = g->nodes;
  g->nodes = NULL;
  g->n_nodes = g->cap_nodes = 0;
  sn_status status = build(&u);
  g->phase = SN_FORWARD;
  g->origin = g->home = 0;
  g->module = module;
  void *const all[] = {u.old, u.shared, u.node, u.value, u.totals};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    sn__free(all[i]);
  if (status != SN_OK) {
    sn_graph_free(g);
    return sn_status_context(status, "micro-batches");
  }
  *out_graph = g;
  return SN_OK;
}

uint32_t sn__micro_total(const sn_graph *graph) {
  for (uint32_t i = 1; i < graph->n_nodes; i++)
    if (is_total(&graph->nodes[i])) return i;
  return 0;
}

uint32_t sn__micro_input(const sn_graph *unrolled, uint32_t value, uint32_t part) {
  if (part == 0) return value;
  char *name = sn__format("%s@%u", unrolled->values[value].name, part);
  sn_value found = name == NULL ? sn__value_at(unrolled, 0) : sn_graph_find_input(unrolled, name);
  sn__free(name);
  return found.index != 0 ? found.index : value;
}
