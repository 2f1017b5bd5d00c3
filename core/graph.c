/* SPDX-License-Identifier: Apache-2.0 */
/* The graph as a container: creation, copies, look-ups. Building is in graph_build.c. */
#include "core/graph_impl.h"
#include "core/rng.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void free_tables(sn_graph *g) {
  sn__free(g->nodes);
  sn__free(g->values);
  sn__free(g->modules);
  sn__free(g->symbols);
  sn__free(g->raggeds);
  sn__free(g->inputs);
  sn__free(g->variables);
  sn__free(g->constants);
  sn__free(g->losses);
  sn__free(g->outputs);
  sn__free(g->gradients);
}

sn_status sn_graph_create(sn_graph **out_graph) {
  sn_graph *g = sn__calloc(1, sizeof *g);
  if (g == NULL) return sn_status_out_of_memory();
  bool ok = sn__grow((void **)&g->nodes, &g->cap_nodes, 1, sizeof *g->nodes) &&
            sn__grow((void **)&g->values, &g->cap_values, 1, sizeof *g->values) &&
            sn__grow((void **)&g->modules, &g->cap_modules, 1, sizeof *g->modules) &&
            sn__grow((void **)&g->symbols, &g->cap_symbols, 1, sizeof *g->symbols);
  if (!ok) {
    sn_graph_free(g);
    return sn_status_out_of_memory();
  }
  memset(&g->nodes[0], 0, sizeof g->nodes[0]);
  memset(&g->values[0], 0, sizeof g->values[0]);
  g->n_nodes = g->n_values = 1;
  g->modules[g->n_modules++] = (sn__module){.path = ""};
  g->symbols[g->n_symbols++] = (sn__symbol){.name = "batch", .kind = SN_SYMBOL_ROWS};
  *out_graph = g;
  return SN_OK;
}

void sn_graph_free(sn_graph *g) {
  if (g == NULL) return;
  sn_status_free(g->status);
  free_tables(g);
  sn__arena_free(&g->arena);
  sn__free(g);
}

sn_status sn_graph_status(const sn_graph *g) {
  return g->status == SN_OK ? SN_OK : sn_status_copy(g->status);
}

sn_value sn_graph_fail(sn_graph *g, sn_status status) {
  if (g->status == SN_OK)
    g->status = status;
  else
    sn_status_free(status);
  return (sn_value){g, 0};
}

bool sn_graph_options(sn_graph *g, const void *options, size_t size, const char *what,
                      void *out_options) {
  sn_status status = sn_options_read(options, size, what, out_options);
  if (status != SN_OK) sn_graph_fail(g, status);
  return status == SN_OK;
}

/* ---- cloning ------------------------------------------------------------------------------- */

static bool clone_text(sn_graph *g, const char **text) {
  if (*text == NULL) return true;
  *text = sn__arena_strdup(&g->arena, *text);
  return *text != NULL;
}

static void *clone_bytes(sn_graph *g, const void *from, size_t bytes) {
  void *to = sn__arena_alloc(&g->arena, bytes == 0 ? 1 : bytes);
  if (to != NULL && bytes > 0) memcpy(to, from, bytes);
  return to;
}

static bool clone_table(void **to, size_t *cap, const void *from, size_t count, size_t size) {
  *to = NULL;
  *cap = 0;
  if (count == 0) return true;
  if (!sn__grow(to, cap, count, size)) return false;
  memcpy(*to, from, count * size);
  return true;
}

static bool clone_node(sn_graph *g, sn__node *n) {
  if (n->op == NULL) return true;
  bool ok = clone_text(g, &n->name) && clone_text(g, &n->cause);
  if (n->attrs != NULL) n->attrs = clone_bytes(g, n->attrs, n->op->attrs_size);
  n->in = clone_bytes(g, n->in, n->n_in * sizeof *n->in);
  n->out = clone_bytes(g, n->out, n->n_out * sizeof *n->out);
  return ok && n->in != NULL && n->out != NULL && (n->op->attrs_size == 0 || n->attrs != NULL);
}

#define CLONE(g, from, table, n_table, cap_table)                                                  \
  clone_table((void **)&(g)->table, &(g)->cap_table, (from)->table, (from)->n_table,               \
              sizeof *(g)->table)

static bool clone_contents(sn_graph *g) {
  bool ok = true;
  for (size_t i = 1; ok && i < g->n_nodes; i++)
    ok = clone_node(g, &g->nodes[i]);
  for (size_t i = 1; ok && i < g->n_values; i++)
    ok = clone_text(g, &g->values[i].name);
  for (size_t i = 0; ok && i < g->n_modules; i++)
    ok = clone_text(g, &g->modules[i].path);
  for (size_t i = 0; ok && i < g->n_symbols; i++)
    ok = clone_text(g, &g->symbols[i].name);
  for (size_t i = 0; ok && i < g->n_raggeds; i++)
    ok = clone_text(g, &g->raggeds[i].name);
  for (size_t i = 0; ok && i < g->n_inputs; i++)
    ok = clone_text(g, &g->inputs[i].name);
  for (size_t i = 0; ok && i < g->n_variables; i++)
    ok = clone_text(g, &g->variables[i].name) && clone_text(g, &g->variables[i].role);
  for (size_t i = 0; ok && i < g->n_losses; i++)
    ok = clone_text(g, &g->losses[i].name);
  for (size_t i = 0; ok && i < g->n_outputs; i++)
    ok = clone_text(g, &g->outputs[i].name);
  for (size_t i = 0; ok && i < g->n_constants; i++) {
    g->constants[i].data = clone_bytes(g, g->constants[i].data, g->constants[i].bytes);
    ok = g->constants[i].data != NULL;
  }
  return ok;
}

sn_status sn__graph_clone(const sn_graph *from, sn_graph **out_graph) {
  SN_TRY(sn_graph_status(from));
  sn_graph *g = sn__calloc(1, sizeof *g);
  if (g == NULL) return sn_status_out_of_memory();
  *g = *from;
  g->arena = (sn__arena){NULL};
  /* Every table first gets memory of its own, so that freeing is right whatever fails. */
  bool ok = CLONE(g, from, nodes, n_nodes, cap_nodes);
  ok &= CLONE(g, from, values, n_values, cap_values);
  ok &= CLONE(g, from, modules, n_modules, cap_modules);
  ok &= CLONE(g, from, symbols, n_symbols, cap_symbols);
  ok &= CLONE(g, from, raggeds, n_raggeds, cap_raggeds);
  ok &= CLONE(g, from, inputs, n_inputs, cap_inputs);
  ok &= CLONE(g, from, variables, n_variables, cap_variables);
  ok &= CLONE(g, from, constants, n_constants, cap_constants);
  ok &= CLONE(g, from, losses, n_losses, cap_losses);
  ok &= CLONE(g, from, outputs, n_outputs, cap_outputs);
  ok &= CLONE(g, from, gradients, n_gradients, cap_gradients);
  if (!ok || !clone_contents(g)) {
    sn_graph_free(g);
    return sn_status_out_of_memory();
  }
  *out_graph = g;
  return SN_OK;
}

/* ---- looking ------------------------------------------------------------------------------- */

sn_value sn__value_at(const sn_graph *g, uint32_t index) {
  /* Handles do not carry const: what may be done with a graph is decided by who holds it. */
  return (sn_value){(sn_graph *)(uintptr_t)g, index};
}

sn__value *sn__value_info(const sn_graph *g, sn_value v) {
  if (v.index == 0 || v.index >= g->n_values) return NULL;
  return &g->values[v.index];
}

sn__node *sn__producer(const sn_graph *g, uint32_t value) {
  assert(value > 0 && value < g->n_values);
  return &g->nodes[g->values[value].node];
}

bool sn__node_is_source(const sn__node *node) {
  return node->op == &sn__op_input || node->op == &sn__op_variable || node->op == &sn__op_constant;
}

bool sn_value_ok(sn_value v) {
  return v.graph != NULL && v.index != 0 && v.index < v.graph->n_values;
}

sn_dtype sn_value_dtype(sn_value v) {
  return sn_value_ok(v) ? v.graph->values[v.index].dtype : SN_DTYPE_NONE;
}

sn_shape sn_value_shape(sn_value v) {
  return sn_value_ok(v) ? v.graph->values[v.index].shape : (sn_shape){-1, {0}};
}

const char *sn_value_name(sn_value v) {
  return sn_value_ok(v) ? v.graph->values[v.index].name : "(invalid)";
}

const char *sn_shape_text(const sn_graph *g, const sn_shape *shape, char *buffer, size_t size) {
  size_t used = 0;
  int n = snprintf(buffer, size, "[");
  for (int32_t i = 0; n >= 0 && i <= shape->rank; i++) {
    used += (size_t)n;
    if (used >= size) return buffer;
    if (i == shape->rank || shape->rank < 0) {
      n = snprintf(buffer + used, size - used, "]");
      break;
    }
    int64_t d = shape->dims[i];
    const char *comma = i > 0 ? ", " : "";
    if (!sn_dim_is_symbolic(d))
      n = snprintf(buffer + used, size - used, "%s%lld", comma, (long long)d);
    else if ((size_t)sn_dim_symbol(d) < g->n_symbols)
      n = snprintf(buffer + used, size - used, "%s%s%s", comma, g->symbols[sn_dim_symbol(d)].name,
                   sn_dim_addend(d) ? " + 1" : "");
    else
      n = snprintf(buffer + used, size - used, "%s?", comma);
  }
  return buffer;
}

size_t sn_graph_variable_count(const sn_graph *g) {
  return g->n_variables;
}

sn_value sn_graph_variable(const sn_graph *g, size_t i) {
  return sn__value_at(g, i < g->n_variables ? g->variables[i].value : 0);
}

sn_value sn_graph_find_variable(const sn_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_variables; i++)
    if (strcmp(g->variables[i].name, name) == 0) return sn__value_at(g, g->variables[i].value);
  return sn__value_at(g, 0);
}

size_t sn_graph_output_count(const sn_graph *g) {
  return g->n_outputs;
}

sn_value sn_graph_output(const sn_graph *g, size_t i, const char **out_name) {
  if (i >= g->n_outputs) return sn__value_at(g, 0);
  if (out_name != NULL) *out_name = g->outputs[i].name;
  return sn__value_at(g, g->outputs[i].value);
}

size_t sn_graph_loss_count(const sn_graph *g) {
  return g->n_losses;
}

sn_loss_info sn_graph_loss(const sn_graph *g, size_t i) {
  sn_value none = sn__value_at(g, 0);
  sn_loss_info info = {.sum = none, .prediction = none, .label = none, .weights = none};
  if (i >= g->n_losses) return info;
  const sn__loss_info *loss = &g->losses[i];
  const sn__node *node = sn__producer(g, loss->sum);
  info.name = loss->name;
  info.op = node->op->name;
  info.scale = loss->lambda;
  info.sum = sn__value_at(g, loss->sum);
  if (node->n_in > 0) info.prediction = sn__value_at(g, node->in[0]);
  if (node->n_in > 1) info.label = sn__value_at(g, node->in[1]);
  info.weights = sn__value_at(g, loss->weights);
  return info;
}

size_t sn_graph_input_count(const sn_graph *g) {
  return g->n_inputs;
}

sn_value sn_graph_input(const sn_graph *g, size_t i) {
  return sn__value_at(g, i < g->n_inputs ? g->inputs[i].value : 0);
}

sn_value sn_graph_find_input(const sn_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_inputs; i++)
    if (strcmp(g->inputs[i].name, name) == 0) return sn__value_at(g, g->inputs[i].value);
  return sn__value_at(g, 0);
}

size_t sn_graph_value_count(const sn_graph *g) {
  return g->n_values - 1;
}

sn_value sn_graph_value(const sn_graph *g, size_t number) {
  return sn__value_at(g, number < g->n_values ? (uint32_t)number : 0);
}

/* Behind views, and behind what is written in place of a variable. */
bool sn_value_computed(sn_value v) {
  const sn__value *info = sn__value_info(v.graph, v);
  while (info != NULL && info->kind == SN_VALUE_OP) {
    const sn__node *n = &v.graph->nodes[info->node];
    bool view = (n->op->flags & SN_OP_VIEW) != 0 && info->slot == 0;
    int commits = (n->op->flags & SN_OP_COMMIT) != 0 ? n->op->commits[info->slot] : 0;
    if (!view && commits == 0) return true;
    info = &v.graph->values[n->in[view ? 0 : commits - 1]];
  }
  return false;
}

sn_value sn_graph_gradient(const sn_graph *train, sn_value variable) {
  const sn__value *info = sn__value_info(train, variable);
  bool is = info != NULL && info->kind == SN_VALUE_VARIABLE;
  return sn__value_at(train, is ? train->variables[info->extra].gradient : 0);
}

int32_t sn__value_ragged(const sn_graph *g, sn_value v) {
  const sn__value *info = sn__value_info(g, v);
  if (info == NULL || info->shape.rank < 1 || !sn_dim_is_symbolic(info->shape.dims[0]) ||
      sn_dim_addend(info->shape.dims[0]) != 0)
    return -1;
  const sn__symbol *s = &g->symbols[sn_dim_symbol(info->shape.dims[0])];
  return s->kind == SN_SYMBOL_ELEMENTS ? (int32_t)s->ragged : -1;
}

int32_t sn__offsets_ragged(const sn_graph *g, sn_value offsets) {
  for (size_t i = 0; i < g->n_raggeds; i++)
    if (g->raggeds[i].offsets == offsets.index) return (int32_t)i;
  /* After copies are inserted an op may read a copy of the offsets. */
  const sn__value *info = sn__value_info(g, offsets);
  if (info != NULL && (g->nodes[info->node].op->flags & SN_OP_COPY) != 0)
    return sn__offsets_ragged(g, sn__value_at(g, g->nodes[info->node].in[0]));
  return -1;
}

uint64_t sn__hash_text(uint64_t seed, const char *text) {
  uint64_t h = seed ^ 0xcbf29ce484222325u; /* FNV-1a, 64 bits */
  for (; *text != '\0'; text++)
    h = (h ^ (unsigned char)*text) * 0x100000001b3u;
  return h;
}

uint64_t sn__mix_key(const char *module_path, uint32_t ordinal) {
  return sn__mix64(sn__hash_text(0, module_path) ^ sn__mix64(ordinal));
}

const sn_op_def *sn__op_find(const char *name) {
  for (int i = 0; i < sn__op_count; i++)
    if (strcmp(sn__op_table[i]->name, name) == 0) return sn__op_table[i];
  const sn_op_def *sources[] = {&sn__op_input, &sn__op_variable, &sn__op_constant};
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
    if (strcmp(sources[i]->name, name) == 0) return sources[i];
  return NULL;
}
