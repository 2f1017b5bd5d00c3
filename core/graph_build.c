/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph: inputs, variables, modules, nodes, losses. The first mistake sticks. */
#include "core/graph_impl.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const sn_op_def sn__op_input = {.name = "input",
                                .version = 1,
                                .n_outputs = 1,
                                .flags = SN_OP_NO_GRAD,
                                .doc = "fed by the caller"};
const sn_op_def sn__op_variable = {.name = "variable",
                                   .version = 1,
                                   .n_outputs = 1,
                                   .flags = SN_OP_NO_GRAD,
                                   .doc = "held by the store"};
const sn_op_def sn__op_constant = {
    .name = "constant", .version = 1, .n_outputs = 1, .flags = SN_OP_NO_GRAD, .doc = "fixed bytes"};

static sn_value fail_oom(sn_graph *g) {
  return sn_graph_fail(g, sn_status_out_of_memory());
}

#define GROW(g, table, n_table, cap_table)                                                         \
  sn__grow((void **)&(g)->table, &(g)->cap_table, (g)->n_table + 1, sizeof *(g)->table)

/* "<module path>/<name>", or with "_<number>" when that is taken; in the graph's arena. */
static char *path_text(sn_graph *g, const char *module, const char *name, size_t number) {
  char *text = number == 0
                   ? sn__format("%s%s%s", module, *module != '\0' ? "/" : "", name)
                   : sn__format("%s%s%s_%zu", module, *module != '\0' ? "/" : "", name, number);
  char *kept = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
  sn__free(text);
  return kept;
}

static bool name_ok(const char *name) {
  if (name == NULL || *name == '\0') return false;
  for (const char *c = name; *c != '\0'; c++)
    if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
          strchr("_-.", *c) != NULL))
      return false;
  return true;
}

static sn_value fail_name(sn_graph *g, const char *what, const char *name) {
  return sn_graph_fail(
      g, sn_status_make(SN_CODE_INVALID,
                        "%s '%s': a name is one or more letters, digits, '_', '-' or '.'", what,
                        name == NULL ? "" : name));
}

/* ---- nodes and values ---------------------------------------------------------------------- */

static uint32_t new_value(sn_graph *g, sn__value_kind kind, sn__type type, uint32_t node,
                          uint32_t slot, const char *name) {
  if (!GROW(g, values, n_values, cap_values)) return 0;
  uint32_t index = (uint32_t)g->n_values++;
  g->values[index] = (sn__value){.kind = kind,
                                 .dtype = type.dtype,
                                 .shape = type.shape,
                                 .node = node,
                                 .slot = slot,
                                 .name = name};
  return index;
}

/* A node with room for its lists; its outputs are still to be made. */
static sn__node *new_node(sn_graph *g, const sn_op_def *op, uint32_t n_in, uint32_t n_out) {
  if (!GROW(g, nodes, n_nodes, cap_nodes)) return NULL;
  sn__node *n = &g->nodes[g->n_nodes];
  *n = (sn__node){.op = op,
                  .n_in = n_in,
                  .n_out = n_out,
                  .module = g->module,
                  .phase = g->phase,
                  .origin = g->origin,
                  .home = g->home,
                  .device = -1};
  n->in = sn__arena_alloc(&g->arena, (n_in + 1) * sizeof *n->in);
  n->out = sn__arena_alloc(&g->arena, (n_out + 1) * sizeof *n->out);
  if (n->in == NULL || n->out == NULL) return NULL;
  g->n_nodes++;
  return n;
}

static sn_value add_source(sn_graph *g, const sn_op_def *op, sn__value_kind kind, sn_dtype dtype,
                           sn_shape shape, const char *name) {
  sn__node *n = new_node(g, op, 0, 1);
  uint32_t v =
      n == NULL ? 0
                : new_value(g, kind, (sn__type){dtype, shape}, (uint32_t)(g->n_nodes - 1), 0, name);
  if (v == 0) return fail_oom(g);
  n->name = name;
  n->out[0] = v;
  return sn__value_at(g, v);
}

sn_status sn__infer_fail(const sn__infer *c, const char *format, ...) {
  (void)c;
  va_list args;
  va_start(args, format);
  char text[512];
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return sn_status_make(SN_CODE_INVALID, "%s", text);
}

/* Wraps a shape rule's complaint: op and path before it, the inputs with their shapes behind it. */
static sn_status infer_context(sn_graph *g, const sn_op_def *op, const char *name,
                               const sn_value *in, size_t n_in, sn_status complaint) {
  if (sn_status_code(complaint) == SN_CODE_OUT_OF_MEMORY) return complaint;
  char inputs[768];
  size_t used = 0;
  inputs[0] = '\0';
  for (size_t i = 0; i < n_in && used < sizeof inputs - 1; i++) {
    const sn__value *v = sn__value_info(g, in[i]);
    char shape[160];
    int n = v == NULL ? snprintf(inputs + used, sizeof inputs - used, "%snone", i > 0 ? ", " : "")
                      : snprintf(inputs + used, sizeof inputs - used, "%s'%s' %s %s",
                                 i > 0 ? ", " : "", v->name, sn_dtype_name(v->dtype),
                                 sn_shape_text(g, &v->shape, shape, sizeof shape));
    if (n < 0) break;
    used += (size_t)n;
  }
  sn_status out = sn_status_make(sn_status_code(complaint), "%s '%s%s%s': %s (inputs: %s)",
                                 op->name, g->modules[g->module].path, g->module != 0 ? "/" : "",
                                 name, sn_status_message(complaint), inputs);
  sn_status_free(complaint);
  return out;
}

static sn_status check_inputs(sn_graph *g, const sn_op_def *op, const sn_value *in, size_t n_in,
                              sn__type *types) {
  if ((int)n_in < op->min_inputs || (op->max_inputs >= 0 && (int)n_in > op->max_inputs))
    return sn_status_make(SN_CODE_INVALID, "takes %d to %d inputs and was given %zu",
                          op->min_inputs, op->max_inputs, n_in);
  for (size_t i = 0; i < n_in; i++) {
    const sn__value *v = sn__value_info(g, in[i]);
    types[i] = (sn__type){SN_DTYPE_NONE, {0, {0}}};
    if (v == NULL) {
      if ((int)i + 1 == op->control) continue;
      if ((int)i < op->min_inputs || op->max_inputs < 0)
        return sn_status_make(SN_CODE_INVALID, "input %zu is missing (an invalid value)", i);
      continue;
    }
    if (in[i].graph != g)
      return sn_status_make(SN_CODE_INVALID, "input %zu, '%s', belongs to another graph", i,
                            v->name);
    types[i] = (sn__type){v->dtype, v->shape};
  }
  return SN_OK;
}

/* The number that makes <module>/<name> unique among the module's nodes: 0, 1, 2... */
static size_t free_number(const sn_graph *g, const char *name) {
  size_t used = 0;
  const char *path = g->modules[g->module].path;
  size_t skip = strlen(path) + (*path != '\0'), length = strlen(name);
  for (size_t i = 1; i < g->n_nodes; i++) {
    if (g->nodes[i].module != g->module || sn__node_is_source(&g->nodes[i]) ||
        g->nodes[i].name == NULL)
      continue;
    const char *other = g->nodes[i].name + skip;
    if (strncmp(other, name, length) != 0) continue;
    if (other[length] == '\0' && used == 0) used = 1;
    if (other[length] == '_') {
      size_t number = 0;
      if (sscanf(other + length + 1, "%zu", &number) == 1 && number >= used) used = number + 1;
    }
  }
  return used;
}

/* Notes which variables a node writes. Two writers of one are a mistake: which would be last? */
static sn_status note_commits(sn_graph *g, uint32_t index) {
  const sn__node *n = &g->nodes[index];
  if ((n->op->flags & SN_OP_COMMIT) == 0) return SN_OK;
  for (uint32_t o = 0; o < n->n_out && o < SN_MAX_OUTPUTS; o++) {
    int input = n->op->commits[o] - 1;
    if (input < 0 || (uint32_t)input >= n->n_in || n->in[input] == 0) continue;
    const sn__value *v = &g->values[n->in[input]];
    if (v->kind != SN_VALUE_VARIABLE)
      return sn_status_make(SN_CODE_INVALID, "'%s' writes its input '%s', which is not a variable",
                            n->name, v->name);
    sn__variable *variable = &g->variables[v->extra];
    if (variable->commit != 0)
      return sn_status_make(SN_CODE_INVALID,
                            "'%s' writes variable '%s', which '%s' writes already in this step",
                            n->name, v->name, g->nodes[variable->commit].name);
    variable->commit = index;
  }
  return SN_OK;
}

static bool finish_node(sn_graph *g, uint32_t index, const void *attrs, const sn_value *in,
                        const sn__infer *c, const char *name) {
  sn__node *n = &g->nodes[index];
  const sn_op_def *op = n->op;
  n->name = path_text(g, g->modules[g->module].path, name, free_number(g, name));
  if (n->name == NULL) return false;
  if (op->attrs_size > 0) {
    n->attrs = sn__arena_alloc(&g->arena, op->attrs_size);
    if (n->attrs == NULL) return false;
    if (attrs != NULL) memcpy(n->attrs, attrs, op->attrs_size);
  }
  for (uint32_t i = 0; i < n->n_in; i++)
    n->in[i] = in[i].index;
  sn__module *m = &g->modules[n->module];
  if (n->origin != 0)
    n->rng_key = g->nodes[n->origin].rng_key;
  else
    n->rng_key = sn__mix_key(m->path, n->phase == SN_FORWARD ? m->ordinal++ : UINT32_MAX);
  for (uint32_t o = 0; o < n->n_out; o++) {
    const char *value_name = n->name;
    if (o > 0) {
      char *text = sn__format("%s:%u", n->name, o);
      value_name = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
      sn__free(text);
      if (value_name == NULL) return false;
    }
    uint32_t v = new_value(g, SN_VALUE_OP, c->out[o], index, o, value_name);
    if (v == 0) return false;
    n->out[o] = v;
  }
  return true;
}

sn_value sn__node_add(sn_graph *g, const sn_op_def *op, const void *attrs, const sn_value *inputs,
                      size_t n_inputs, const char *name, sn_value *out) {
  for (int o = 0; out != NULL && o < op->n_outputs; o++)
    out[o] = sn__value_at(g, 0);
  if (g->status != SN_OK) return sn__value_at(g, 0);
  if (name == NULL) name = op->name;
  sn__type *types = sn__calloc(n_inputs + 1, sizeof *types);
  void *zeros = attrs == NULL && op->attrs_size > 0 ? sn__calloc(1, op->attrs_size) : NULL;
  if (types == NULL || (attrs == NULL && op->attrs_size > 0 && zeros == NULL)) {
    sn__free(types);
    sn__free(zeros);
    return fail_oom(g);
  }
  sn__infer c = {.graph = g,
                 .op = op,
                 .attrs = attrs != NULL ? attrs : zeros,
                 .in = types,
                 .n_in = (int)n_inputs,
                 .n_out = op->n_outputs};
  sn_status status = check_inputs(g, op, inputs, n_inputs, types);
  if (status == SN_OK) status = op->infer(&c);
  if (status != SN_OK)
    status = infer_context(g, op, name, inputs, n_inputs, status);
  else if (new_node(g, op, (uint32_t)n_inputs, (uint32_t)c.n_out) == NULL ||
           !finish_node(g, (uint32_t)(g->n_nodes - 1), c.attrs, inputs, &c, name))
    status = sn_status_out_of_memory();
  sn__free(types);
  sn__free(zeros);
  if (status == SN_OK) status = note_commits(g, (uint32_t)(g->n_nodes - 1));
  if (status != SN_OK) return sn_graph_fail(g, status);
  const sn__node *n = &g->nodes[g->n_nodes - 1];
  for (int o = 0; out != NULL && o < (int)n->n_out; o++)
    out[o] = sn__value_at(g, n->out[o]);
  return sn__value_at(g, n->out[0]);
}

sn_value sn__graph_find_node(const sn_graph *g, const sn_op_def *op, const void *attrs,
                             const sn_value *inputs, size_t n_inputs) {
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (n->op != op || n->module != g->module || n->phase != g->phase || n->n_in != n_inputs)
      continue;
    bool same =
        op->attrs_size == 0 || (attrs != NULL && memcmp(n->attrs, attrs, op->attrs_size) == 0);
    for (size_t k = 0; same && k < n_inputs; k++)
      same = n->in[k] == inputs[k].index;
    if (same) return sn__value_at(g, n->out[0]);
  }
  return sn__value_at(g, 0);
}

/* ---- inputs -------------------------------------------------------------------------------- */

static int32_t add_symbol(sn_graph *g, const char *input, const char *suffix,
                          sn__symbol_kind kind) {
  char *text = sn__format("%s.%s", input, suffix);
  char *name = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
  sn__free(text);
  if (name == NULL || !GROW(g, symbols, n_symbols, cap_symbols)) return -1;
  g->symbols[g->n_symbols] =
      (sn__symbol){.name = name, .kind = kind, .ragged = (uint32_t)g->n_raggeds};
  return (int32_t)g->n_symbols++;
}

static sn_value add_input(sn_graph *g, const char *name, sn_dtype dtype, sn_shape shape,
                          sn__input_role role, int32_t ragged) {
  if (g->status != SN_OK) return sn__value_at(g, 0);
  if (shape.rank < 0)
    return sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID, "input '%s': at most %d dimensions", name, SN_MAX_RANK));
  for (int32_t i = 0; i < shape.rank; i++)
    if (!sn_dim_is_symbolic(shape.dims[i]) && shape.dims[i] < 1)
      return sn_graph_fail(g,
                           sn_status_make(SN_CODE_INVALID,
                                          "input '%s': dimension %d is %lld; it must be at least 1",
                                          name, i, (long long)shape.dims[i]));
  if (dtype <= SN_DTYPE_NONE || dtype >= SN_DTYPE_COUNT)
    return sn_graph_fail(g,
                         sn_status_make(SN_CODE_INVALID, "input '%s': no such element type", name));
  if (sn_value_ok(sn_graph_find_input(g, name)))
    return sn_graph_fail(g, sn_status_make(SN_CODE_INVALID,
                                           "input '%s' exists already; give this one another name",
                                           name));
  const char *kept = sn__arena_strdup(&g->arena, name);
  if (kept == NULL || !GROW(g, inputs, n_inputs, cap_inputs)) return fail_oom(g);
  sn_value v = add_source(g, &sn__op_input, SN_VALUE_INPUT, dtype, shape, kept);
  if (!sn_value_ok(v)) return v;
  g->values[v.index].extra = (uint32_t)g->n_inputs;
  g->inputs[g->n_inputs++] =
      (sn__input){.name = kept, .value = v.index, .role = role, .ragged = ragged};
  return v;
}

sn_value sn_input_shaped(sn_graph *g, const char *name, sn_dtype dtype, int32_t rank,
                         const int64_t *dims) {
  if (!name_ok(name)) return fail_name(g, "input", name);
  sn_shape shape = {1, {SN_DIM_BATCH}};
  if (rank < 0 || rank >= SN_MAX_RANK) {
    shape.rank = -1;
  } else {
    shape.rank = rank + 1;
    for (int32_t i = 0; i < rank; i++)
      /* A negative number is no symbol of the caller's to use. */
      shape.dims[i + 1] = dims[i] < 0 ? 0 : dims[i];
  }
  return add_input(g, name, dtype, shape, SN_INPUT_DATA, -1);
}

sn_value sn_input(sn_graph *g, const char *name, sn_dtype dtype, int64_t features) {
  return sn_input_shaped(g, name, dtype, features == 0 ? 0 : 1, &features);
}

sn_value sn_scalar_input(sn_graph *g, const char *name, sn_dtype dtype) {
  if (!name_ok(name)) return fail_name(g, "input", name);
  return add_input(g, name, dtype, (sn_shape){0, {0}}, SN_INPUT_DATA, -1);
}

sn_value sn__role_input(sn_graph *g, const char *name, sn_dtype dtype, sn_shape shape,
                        sn__input_role role) {
  return add_input(g, name, dtype, shape, role, -1);
}

static sn_shape element_shape(int64_t dim0, int64_t features) {
  sn_shape shape = {features == 0 ? 1 : 2, {dim0, features < 0 ? 0 : features}};
  return shape;
}

static sn_sequence add_ragged(sn_graph *g, const char *name, sn_dtype dtype, int64_t features) {
  sn_sequence none = {sn__value_at(g, 0), sn__value_at(g, 0)};
  if (!name_ok(name)) {
    fail_name(g, "input", name);
    return none;
  }
  if (g->status != SN_OK) return none;
  const char *kept = sn__arena_strdup(&g->arena, name);
  int32_t elements = kept == NULL ? -1 : add_symbol(g, name, "elements", SN_SYMBOL_ELEMENTS);
  int32_t longest = elements < 0 ? -1 : add_symbol(g, name, "longest", SN_SYMBOL_LONGEST);
  if (longest < 0 || !GROW(g, raggeds, n_raggeds, cap_raggeds)) {
    fail_oom(g);
    return none;
  }
  int32_t ragged = (int32_t)g->n_raggeds;
  sn_value values = add_input(g, name, dtype, element_shape(SN_DIM_SYMBOL(elements), features),
                              SN_INPUT_DATA, ragged);
  char *offsets_name = sn__format("%s.offsets", name);
  if (offsets_name == NULL) {
    fail_oom(g);
    return none;
  }
  sn_value offsets =
      add_input(g, offsets_name, SN_I32, (sn_shape){1, {SN_DIM_SYMBOL_PLUS_ONE(SN_SYMBOL_BATCH)}},
                SN_INPUT_OFFSETS, ragged);
  sn__free(offsets_name);
  if (!sn_value_ok(offsets)) return none;
  g->raggeds[g->n_raggeds++] = (sn__ragged){.name = kept,
                                            .offsets = offsets.index,
                                            .elements_symbol = (uint32_t)elements,
                                            .longest_symbol = (uint32_t)longest};
  return (sn_sequence){values, offsets};
}

sn_sequence sn_sequence_input(sn_graph *g, const char *name, sn_dtype dtype, int64_t features) {
  return add_ragged(g, name, dtype, features);
}

sn_set sn_set_input(sn_graph *g, const char *name, sn_dtype dtype, int64_t features) {
  sn_sequence s = add_ragged(g, name, dtype, features);
  return (sn_set){s.values, s.offsets};
}

sn_value sn_sequence_input_like(sn_graph *g, const char *name, sn_dtype dtype, int64_t features,
                                sn_sequence like) {
  if (!name_ok(name)) return fail_name(g, "input", name);
  int32_t ragged = sn__offsets_ragged(g, like.offsets);
  if (g->status == SN_OK && ragged < 0)
    return sn_graph_fail(g, sn_status_make(SN_CODE_INVALID,
                                           "input '%s': the sequence it is to be like is not one",
                                           name));
  if (g->status != SN_OK) return sn__value_at(g, 0);
  int64_t dim0 = SN_DIM_SYMBOL(g->raggeds[ragged].elements_symbol);
  return add_input(g, name, dtype, element_shape(dim0, features), SN_INPUT_DATA, ragged);
}

sn_value sn_constant(sn_graph *g, sn_dtype dtype, sn_shape shape, const void *data) {
  if (g->status != SN_OK) return sn__value_at(g, 0);
  int64_t count = 0;
  size_t bytes = 0;
  if (shape.rank < 0 || !sn_shape_is_fixed(&shape) || !sn__shape_count(&shape, &count) ||
      !sn__size_mul((size_t)count, sn_dtype_size(dtype), &bytes) || sn_dtype_size(dtype) == 0)
    return sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID, "a constant needs a fixed shape and an element type"));
  if (bytes > 0 && data == NULL)
    return sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID,
                          "a constant of %lld elements needs their numbers, and data is NULL",
                          (long long)count));
  void *kept = sn__arena_alloc(&g->arena, bytes + 1);
  char *text = sn__format("constant_%zu", g->n_constants);
  const char *name = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
  sn__free(text);
  if (kept == NULL || name == NULL || !GROW(g, constants, n_constants, cap_constants))
    return fail_oom(g);
  if (bytes > 0) memcpy(kept, data, bytes);
  sn_value v = add_source(g, &sn__op_constant, SN_VALUE_CONSTANT, dtype, shape, name);
  if (!sn_value_ok(v)) return v;
  g->values[v.index].extra = (uint32_t)g->n_constants;
  g->constants[g->n_constants++] = (sn__constant){.value = v.index, .data = kept, .bytes = bytes};
  return v;
}

sn_value sn_constant_scalar(sn_graph *g, sn_dtype dtype, double number) {
  union {
    float f32;
    double f64;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
  } bits;
  memset(&bits, 0, sizeof bits);
  switch (dtype) {
  case SN_F32: bits.f32 = (float)number; break;
  case SN_F64: bits.f64 = number; break;
  case SN_I32: bits.i32 = (int32_t)number; break;
  case SN_I64: bits.i64 = (int64_t)number; break;
  case SN_U8: bits.u8 = (uint8_t)number; break;
  case SN_BOOL: bits.u8 = number != 0; break;
  default:
    return sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID, "no scalar constants of type %s", sn_dtype_name(dtype)));
  }
  return sn_constant(g, dtype, (sn_shape){0, {0}}, &bits);
}

/* ---- variables ----------------------------------------------------------------------------- */

sn_init sn_init_pytorch_linear(int64_t fan_in) {
  return (sn_init){.kind = SN_INIT_UNIFORM, .value = fan_in > 0 ? 1.0 / sqrt((double)fan_in) : 0};
}

sn_init sn_init_pytorch_recurrent(int64_t units) {
  return sn_init_pytorch_linear(units);
}

sn_init sn_init_pytorch_embedding(void) {
  return (sn_init){.kind = SN_INIT_NORMAL, .value = 1.0};
}

static sn_value add_variable(sn_graph *g, const char *name, sn_dtype dtype, sn_shape shape,
                             const sn__variable *what) {
  int64_t count = 0;
  if (shape.rank < 0 || !sn_shape_is_fixed(&shape) || !sn__shape_count(&shape, &count) ||
      sn_dtype_size(dtype) == 0 || count > INT64_MAX / 16)
    return sn_graph_fail(
        g, sn_status_make(
               SN_CODE_INVALID,
               "variable '%s' needs an element type and a fixed shape of at most %d dimensions",
               name, SN_MAX_RANK));
  if (sn_value_ok(sn_graph_find_variable(g, name)))
    return sn_graph_fail(
        g, sn_status_make(
               SN_CODE_INVALID,
               "variable '%s' exists already; to share one, keep its sn_value and use it twice",
               name));
  if (!GROW(g, variables, n_variables, cap_variables)) return fail_oom(g);
  sn_value v = add_source(g, &sn__op_variable, SN_VALUE_VARIABLE, dtype, shape, name);
  if (!sn_value_ok(v)) return v;
  g->values[v.index].extra = (uint32_t)g->n_variables;
  sn__variable *slot = &g->variables[g->n_variables++];
  *slot = *what;
  slot->name = name;
  slot->value = v.index;
  return v;
}

sn_value sn_variable_opt(sn_graph *g, const char *name, sn_dtype dtype, sn_shape shape,
                         const sn_variable_options *options) {
  if (!name_ok(name)) return fail_name(g, "variable", name);
  sn_variable_options o;
  if (!sn_graph_options(g, options, sizeof o, "variable", &o)) return sn__value_at(g, 0);
  if (g->status != SN_OK) return sn__value_at(g, 0);
  char *full = path_text(g, g->modules[g->module].path, name, 0);
  if (full == NULL) return fail_oom(g);
  sn__variable what = {.init = o.init, .frozen = o.frozen, .no_decay = o.no_decay};
  return add_variable(g, full, dtype, shape, &what);
}

sn_value sn__slot_variable(sn_graph *g, sn_value owner, const char *role, sn_dtype dtype,
                           sn_shape shape, sn_init init) {
  const sn__value *o = sn__value_info(g, owner);
  if (g->status != SN_OK || o == NULL) return sn__value_at(g, 0);
  assert(o->kind == SN_VALUE_VARIABLE);
  uint32_t owner_index = o->extra;
  char *text = sn__format("%s/%s", o->name, role);
  const char *full = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
  sn__free(text);
  const char *kept_role = sn__arena_strdup(&g->arena, role);
  if (full == NULL || kept_role == NULL) return fail_oom(g);
  uint32_t module = g->module, home = g->home;
  g->module = g->nodes[o->node].module;
  g->home = owner.index;
  sn__variable what = {.init = init, .frozen = true, .owner = owner_index + 1, .role = kept_role};
  sn_value v = add_variable(g, full, dtype, shape, &what);
  g->module = module;
  g->home = home;
  return v;
}

/* ---- modules, outputs, losses -------------------------------------------------------------- */

void sn_module_begin(sn_graph *g, const char *name) {
  if (!name_ok(name)) {
    fail_name(g, "module", name);
    return;
  }
  if (g->status != SN_OK) return;
  for (size_t number = 0;; number++) {
    char *path = path_text(g, g->modules[g->module].path, name, number);
    if (path == NULL || !GROW(g, modules, n_modules, cap_modules)) {
      fail_oom(g);
      return;
    }
    bool taken = false;
    for (size_t i = 0; !taken && i < g->n_modules; i++)
      taken = strcmp(g->modules[i].path, path) == 0;
    if (taken) continue;
    g->modules[g->n_modules] = (sn__module){.path = path, .parent = g->module};
    g->module = (uint32_t)g->n_modules++;
    g->module_depth++;
    return;
  }
}

void sn_module_end(sn_graph *g) {
  if (g->status != SN_OK) return;
  if (g->module_depth == 0) {
    sn_graph_fail(g, sn_status_make(SN_CODE_INVALID, "sn_module_end without a module begun"));
    return;
  }
  g->module_depth--;
  g->module = g->modules[g->module].parent;
}

void sn_output(sn_graph *g, const char *name, sn_value value) {
  if (g->status != SN_OK) return;
  if (!name_ok(name)) {
    fail_name(g, "output", name);
    return;
  }
  if (sn__value_info(g, value) == NULL || value.graph != g) {
    sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID, "output '%s' is not a value of this graph", name));
    return;
  }
  for (size_t i = 0; i < g->n_outputs; i++)
    if (strcmp(g->outputs[i].name, name) == 0) {
      sn_graph_fail(g, sn_status_make(SN_CODE_INVALID, "output '%s' exists already", name));
      return;
    }
  const char *kept = sn__arena_strdup(&g->arena, name);
  if (kept == NULL || !GROW(g, outputs, n_outputs, cap_outputs)) {
    fail_oom(g);
    return;
  }
  g->outputs[g->n_outputs++] = (sn__output_info){.name = kept, .value = value.index};
}

sn_loss sn__graph_add_loss(sn_graph *g, const char *name, sn_value sum, sn_value weights,
                           int32_t symbol, double lambda) {
  sn_loss none = {sn__value_at(g, 0), 0};
  if (g->status != SN_OK || sn__value_info(g, sum) == NULL) return none;
  if (name == NULL) name = "loss";
  size_t number = 0;
  char *unique = NULL;
  for (bool taken = true; taken; number++) {
    sn__free(unique);
    unique = number == 0 ? sn__strdup(name) : sn__format("%s_%zu", name, number);
    if (unique == NULL) {
      fail_oom(g);
      return none;
    }
    taken = false;
    for (size_t i = 0; !taken && i < g->n_losses; i++)
      taken = strcmp(g->losses[i].name, unique) == 0;
  }
  char *seed_name = sn__format("loss/%s/seed", unique);
  const char *kept = sn__arena_strdup(&g->arena, unique);
  sn__free(unique);
  if (seed_name == NULL || kept == NULL || !GROW(g, losses, n_losses, cap_losses)) {
    sn__free(seed_name);
    fail_oom(g);
    return none;
  }
  sn_value seed =
      sn__role_input(g, seed_name, sn_value_dtype(sum), (sn_shape){0, {0}}, SN_INPUT_SEED);
  sn__free(seed_name);
  if (!sn_value_ok(seed)) return none;
  g->inputs[g->values[seed.index].extra].loss = (uint32_t)g->n_losses;
  g->losses[g->n_losses] = (sn__loss_info){.name = kept,
                                           .sum = sum.index,
                                           .seed = seed.index,
                                           .lambda = lambda,
                                           .weights = weights.index,
                                           .symbol = symbol};
  return (sn_loss){sum, (uint32_t)g->n_losses++};
}
