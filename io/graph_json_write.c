/* SPDX-License-Identifier: Apache-2.0 */
#include "io/graph_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A growing text; `failed` sticks when memory is short. */
typedef struct text {
  char *bytes;
  size_t used, capacity;
  bool failed;
} text;

static void put_bytes(text *t, const char *bytes, size_t n) {
  if (!t->failed && !sn__grow((void **)&t->bytes, &t->capacity, t->used + n + 1, 1))
    t->failed = true;
  if (t->failed) return;
  memcpy(t->bytes + t->used, bytes, n);
  t->used += n;
  t->bytes[t->used] = '\0';
}

static void put(text *t, const char *words) {
  put_bytes(t, words, strlen(words));
}

SN_PRINTF(2, 3) static void putf(text *t, const char *format, ...) {
  char line[128];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n > 0) put_bytes(t, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static void put_string(text *t, const char *words) {
  put(t, "\"");
  for (const unsigned char *c = (const unsigned char *)words; *c != '\0'; c++) {
    if (*c == '"' || *c == '\\')
      putf(t, "\\%c", *c);
    else if (*c < 0x20)
      putf(t, "\\u%04x", *c);
    else
      put_bytes(t, (const char *)c, 1);
  }
  put(t, "\"");
}

/* Readers of JSON keep numbers as doubles: larger ones go as text. */
static void put_int(text *t, int64_t number) {
  bool exact = number >= -(1LL << 53) && number <= 1LL << 53;
  putf(t, exact ? "%lld" : "\"%lld\"", (long long)number);
}

static void put_float(text *t, double number) {
  if (isnan(number)) {
    put(t, "\"nan\"");
  } else if (isinf(number)) {
    put(t, number > 0 ? "\"inf\"" : "\"-inf\"");
  } else {
    char digits[40];
    snprintf(digits, sizeof digits, "%.17g", number);
    for (char *c = digits; *c != '\0'; c++)
      if (*c == ',') *c = '.'; /* the host program may have set a locale */
    put(t, digits);
  }
}

static void put_shape(text *t, const sn_graph *g, const sn_shape *shape) {
  put(t, "[");
  for (int32_t i = 0; i < shape->rank; i++) {
    int64_t d = shape->dims[i];
    if (i > 0) put(t, ", ");
    if (!sn_dim_is_symbolic(d)) {
      put_int(t, d);
      continue;
    }
    char *words =
        sn__format("%s%s", g->symbols[sn_dim_symbol(d)].name, sn_dim_addend(d) != 0 ? " + 1" : "");
    if (words == NULL)
      t->failed = true;
    else
      put_string(t, words);
    sn__free(words);
  }
  put(t, "]");
}

static void put_base64(text *t, const unsigned char *bytes, size_t n) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  put(t, "\"");
  for (size_t i = 0; i < n; i += 3) {
    uint32_t three = (uint32_t)bytes[i] << 16;
    if (i + 1 < n) three |= (uint32_t)bytes[i + 1] << 8;
    if (i + 2 < n) three |= bytes[i + 2];
    char four[4] = {letters[three >> 18], letters[three >> 12 & 63],
                    i + 1 < n ? letters[three >> 6 & 63] : '=',
                    i + 2 < n ? letters[three & 63] : '='};
    put_bytes(t, four, 4);
  }
  put(t, "\"");
}

/* ---- tables -------------------------------------------------------------------------------- */

static void put_tables(text *t, const sn_graph *g) {
  static const char *const kinds[] = {"rows", "elements", "longest"};
  put(t, " \"symbols\": [");
  for (size_t i = 0; i < g->n_symbols; i++) {
    put(t, i > 0 ? ",\n  {\"name\": " : "\n  {\"name\": ");
    put_string(t, g->symbols[i].name);
    putf(t, ", \"kind\": \"%s\", \"ragged\": %u}", kinds[g->symbols[i].kind], g->symbols[i].ragged);
  }
  put(t, "],\n \"raggeds\": [");
  for (size_t i = 0; i < g->n_raggeds; i++) {
    put(t, i > 0 ? ",\n  {\"name\": " : "\n  {\"name\": ");
    put_string(t, g->raggeds[i].name);
    putf(t, ", \"elements\": %u, \"longest\": %u}", g->raggeds[i].elements_symbol,
         g->raggeds[i].longest_symbol);
  }
  put(t, "],\n \"modules\": [");
  for (size_t i = 0; i < g->n_modules; i++) {
    put(t, i > 0 ? ",\n  {\"path\": " : "\n  {\"path\": ");
    put_string(t, g->modules[i].path);
    putf(t, ", \"parent\": %u}", g->modules[i].parent);
  }
  put(t, "],\n");
}

static void put_ends(text *t, const sn_graph *g) {
  put(t, " \"outputs\": [");
  for (size_t i = 0; i < g->n_outputs; i++) {
    put(t, i > 0 ? ",\n  {\"name\": " : "\n  {\"name\": ");
    put_string(t, g->outputs[i].name);
    putf(t, ", \"value\": %u}", g->outputs[i].value);
  }
  put(t, "],\n \"losses\": [");
  for (size_t i = 0; i < g->n_losses; i++) {
    const sn__loss_info *l = &g->losses[i];
    put(t, i > 0 ? ",\n  {\"name\": " : "\n  {\"name\": ");
    put_string(t, l->name);
    putf(t, ", \"sum\": %u, \"seed\": %u, \"weights\": %u, \"symbol\": %d, \"lambda\": ", l->sum,
         l->seed, l->weights, (int)l->symbol);
    put_float(t, l->lambda);
    put(t, "}");
  }
  put(t, "]}\n");
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void put_attrs(text *t, const sn__node *n) {
  put(t, ", \"attrs\": {");
  bool first = true;
  for (int i = 0; i < n->op->n_attrs; i++) {
    const sn__attr_def *def = &n->op->attrs[i];
    const char *field = (const char *)n->attrs + def->offset;
    if (def->added && def->kind == SN_ATTR_INT && *(const int64_t *)(const void *)field == 0)
      continue;
    if (!first) put(t, ", ");
    first = false;
    put_string(t, def->name);
    put(t, ": ");
    switch (def->kind) {
    case SN_ATTR_INT: put_int(t, *(const int64_t *)(const void *)field); break;
    case SN_ATTR_FLOAT: put_float(t, *(const double *)(const void *)field); break;
    case SN_ATTR_INTS: {
      const sn__ints *list = (const void *)field;
      put(t, "[");
      for (int64_t k = 0; k < list->count && k < SN_MAX_RANK; k++) {
        if (k > 0) put(t, ", ");
        put_int(t, list->v[k]);
      }
      put(t, "]");
      break;
    }
    }
  }
  put(t, "}");
}

static void put_source(text *t, const sn_graph *g, const sn__node *n) {
  static const char *const roles[] = {"data", "offsets", "seed", "step"};
  const sn__value *v = &g->values[n->out[0]];
  putf(t, ", \"dtype\": \"%s\", \"shape\": ", sn_dtype_name(v->dtype));
  put_shape(t, g, &v->shape);
  if (v->kind == SN_VALUE_INPUT) {
    const sn__input *in = &g->inputs[v->extra];
    putf(t, ", \"role\": \"%s\", \"ragged\": %d", roles[in->role], (int)in->ragged);
    if (in->role == SN_INPUT_SEED) putf(t, ", \"loss\": %u", in->loss);
  } else if (v->kind == SN_VALUE_VARIABLE) {
    const sn__variable *variable = &g->variables[v->extra];
    if (variable->frozen) put(t, ", \"frozen\": true");
    if (variable->no_decay) put(t, ", \"no_decay\": true");
  } else {
    put(t, ", \"data\": ");
    put_base64(t, g->constants[v->extra].data, g->constants[v->extra].bytes);
  }
}

static void put_node(text *t, const sn_graph *g, const sn__node *n) {
  put(t, "{\"op\": ");
  put_string(t, n->op->name);
  put(t, ", \"name\": ");
  put_string(t, n->name);
  putf(t, ", \"module\": %u", n->module);
  if (sn__node_is_source(n)) {
    put_source(t, g, n);
  } else {
    putf(t, ", \"version\": %d, \"in\": [", n->op->version);
    for (uint32_t k = 0; k < n->n_in; k++)
      putf(t, k > 0 ? ", %u" : "%u", n->in[k]);
    put(t, "]");
    if (n->op->n_attrs > 0) put_attrs(t, n);
  }
  put(t, "}");
}

static sn_status check_forward(const sn_graph *g) {
  SN_TRY(sn_graph_status(g));
  for (size_t i = 1; i < g->n_nodes; i++)
    if (g->nodes[i].phase != SN_FORWARD || (g->nodes[i].op->flags & (SN_OP_COPY | SN_OP_GRAD)) != 0)
      return sn_status_make(SN_CODE_INVALID,
                            "only a forward graph is saved; '%s' belongs to training or placement",
                            g->nodes[i].name);
  for (size_t i = 0; i < g->n_variables; i++)
    if (g->variables[i].owner != 0)
      return sn_status_make(SN_CODE_INVALID,
                            "only a forward graph is saved; '%s' is an optimizer's slot",
                            g->variables[i].name);
  return SN_OK;
}

sn_status sn__graph_to_json(const sn_graph *graph, char **out_text) {
  SN_TRY(check_forward(graph));
  text t = {0};
  putf(&t, "{\"format\": \"sennit graph\", \"format_version\": %d, \"min_reader\": %d,\n",
       SN__GRAPH_FORMAT, SN__GRAPH_FORMAT);
  put_tables(&t, graph);
  put(&t, " \"nodes\": [");
  for (size_t i = 1; i < graph->n_nodes; i++) {
    put(&t, i > 1 ? ",\n  " : "\n  ");
    put_node(&t, graph, &graph->nodes[i]);
  }
  put(&t, "],\n");
  put_ends(&t, graph);
  if (t.failed) {
    sn__free(t.bytes);
    return sn_status_out_of_memory();
  }
  *out_text = t.bytes;
  return SN_OK;
}
