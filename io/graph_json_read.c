/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a stranger may have written: every index, name, size and number is checked, and every
 * node passes its op's own rules once more. */
#include "io/graph_json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/verify.h"

/* More than any model has; they bound the time that a hostile text can take. */
enum { MOST_NODES = 32768, MOST_NAME = 1024, MOST_INPUTS = 4096 };

typedef struct reader {
  sn_graph *g;
  const cJSON *root;
} reader;

#define CORRUPT(...) sn_status_make(SN_CODE_CORRUPT, "graph: " __VA_ARGS__)

/* ---- fields -------------------------------------------------------------------------------- */

static const cJSON *field(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Names are shown in messages: one line, of a bearable length. */
static bool name_sound(const char *name, bool empty_is) {
  size_t n = strlen(name);
  if (n == 0) return empty_is;
  if (n > MOST_NAME) return false;
  for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++)
    if (*c < 0x20 || *c == 0x7f) return false;
  return true;
}

static sn_status get_name(const cJSON *object, const char *key, const char **out) {
  const cJSON *item = field(object, key);
  if (!cJSON_IsString(item) || !name_sound(item->valuestring, strcmp(key, "path") == 0))
    return CORRUPT("'%s' is not a name", key);
  *out = item->valuestring;
  return SN_OK;
}

/* A whole number, or one as text where a double would not hold it. */
static bool read_int(const cJSON *item, int64_t *out) {
  if (cJSON_IsNumber(item)) {
    double x = item->valuedouble;
    if (!(fabs(x) <= 0x1p53) || x != floor(x)) return false;
    *out = (int64_t)x;
    return true;
  }
  if (!cJSON_IsString(item)) return false;
  const char *words = item->valuestring;
  if (*words != '-' && !(*words >= '0' && *words <= '9')) return false;
  char *end;
  errno = 0;
  long long number = strtoll(words, &end, 10);
  if (errno != 0 || *end != '\0') return false;
  *out = number;
  return true;
}

static bool read_float(const cJSON *item, double *out) {
  if (cJSON_IsNumber(item)) {
    *out = item->valuedouble;
    return true;
  }
  if (!cJSON_IsString(item)) return false;
  if (strcmp(item->valuestring, "nan") == 0)
    *out = (double)NAN;
  else if (strcmp(item->valuestring, "inf") == 0)
    *out = (double)INFINITY;
  else if (strcmp(item->valuestring, "-inf") == 0)
    *out = -(double)INFINITY;
  else
    return false;
  return true;
}

/* A number in [low, high). */
static sn_status get_index(const cJSON *object, const char *key, int64_t low, size_t high,
                           int64_t *out) {
  if (!read_int(field(object, key), out) || *out < low || *out >= (int64_t)high)
    return CORRUPT("'%s' is not a number from %lld to below %zu", key, (long long)low, high);
  return SN_OK;
}

static sn_status get_list(const cJSON *object, const char *key, const cJSON **out) {
  *out = field(object, key);
  return cJSON_IsArray(*out) ? SN_OK : CORRUPT("'%s' is not a list", key);
}

/* The number of a word among `words`. */
static sn_status get_word(const cJSON *object, const char *key, const char *const *words, int count,
                          int *out) {
  const cJSON *item = field(object, key);
  for (int i = 0; cJSON_IsString(item) && i < count; i++)
    if (strcmp(item->valuestring, words[i]) == 0) {
      *out = i;
      return SN_OK;
    }
  return CORRUPT("'%s' is none of the known words", key);
}

static sn_status keep_name(sn_graph *g, const char *name, const char **out) {
  *out = sn__arena_strdup(&g->arena, name);
  return *out != NULL ? SN_OK : sn_status_out_of_memory();
}

#define GROW(g, table, n_table, cap_table)                                                         \
  sn__grow((void **)&(g)->table, &(g)->cap_table, (g)->n_table + 1, sizeof *(g)->table)

/* ---- tables -------------------------------------------------------------------------------- */

/* Symbol 0, batch, is there from the start. */
static sn_status read_symbols(reader *r, size_t n_raggeds) {
  static const char *const kinds[] = {"rows", "elements", "longest"};
  const cJSON *list = NULL, *item;
  sn_graph *g = r->g;
  SN_TRY(get_list(r->root, "symbols", &list));
  size_t i = 0;
  cJSON_ArrayForEach(item, list) {
    sn__symbol symbol = {0};
    int kind = 0;
    int64_t ragged = 0;
    SN_TRY(get_name(item, "name", &symbol.name));
    SN_TRY(get_word(item, "kind", kinds, 3, &kind));
    if ((i == 0) != (kind == SN_SYMBOL_ROWS) || (i == 0 && strcmp(symbol.name, "batch") != 0))
      return CORRUPT("symbol %zu is wrong: the first, and only the first, is the batch", i);
    if (i++ == 0) continue;
    if (i > MOST_NODES) return CORRUPT("too many symbols");
    SN_TRY(get_index(item, "ragged", 0, n_raggeds, &ragged));
    symbol.kind = (sn__symbol_kind)kind;
    symbol.ragged = (uint32_t)ragged;
    SN_TRY(keep_name(g, symbol.name, &symbol.name));
    if (!GROW(g, symbols, n_symbols, cap_symbols)) return sn_status_out_of_memory();
    g->symbols[g->n_symbols++] = symbol;
  }
  return i > 0 ? SN_OK : CORRUPT("there is no symbol for the batch");
}

static sn_status read_raggeds(reader *r, const cJSON *list) {
  const cJSON *item;
  sn_graph *g = r->g;
  cJSON_ArrayForEach(item, list) {
    sn__ragged ragged = {0};
    int64_t elements = 0, longest = 0;
    SN_TRY(get_name(item, "name", &ragged.name));
    SN_TRY(get_index(item, "elements", 1, g->n_symbols, &elements));
    SN_TRY(get_index(item, "longest", 1, g->n_symbols, &longest));
    const sn__symbol *e = &g->symbols[elements], *l = &g->symbols[longest];
    if (e->kind != SN_SYMBOL_ELEMENTS || l->kind != SN_SYMBOL_LONGEST ||
        e->ragged != g->n_raggeds || l->ragged != g->n_raggeds)
      return CORRUPT("ragged structure '%s' and its symbols do not belong together", ragged.name);
    ragged.elements_symbol = (uint32_t)elements;
    ragged.longest_symbol = (uint32_t)longest;
    SN_TRY(keep_name(g, ragged.name, &ragged.name));
    if (!GROW(g, raggeds, n_raggeds, cap_raggeds)) return sn_status_out_of_memory();
    g->raggeds[g->n_raggeds++] = ragged;
  }
  return SN_OK;
}

static sn_status read_modules(reader *r) {
  const cJSON *list = NULL, *item;
  sn_graph *g = r->g;
  SN_TRY(get_list(r->root, "modules", &list));
  size_t i = 0;
  cJSON_ArrayForEach(item, list) {
    sn__module module = {0};
    int64_t parent = 0;
    SN_TRY(get_name(item, "path", &module.path));
    SN_TRY(get_index(item, "parent", 0, i == 0 ? 1 : i, &parent));
    if (i++ == 0) {
      if (*module.path != '\0') return CORRUPT("the first module is not the root");
      continue;
    }
    const char *above = g->modules[parent].path;
    size_t n = strlen(above);
    const char *own = module.path + n + (n > 0);
    if (strlen(module.path) <= n || strncmp(module.path, above, n) != 0 ||
        (n > 0 && module.path[n] != '/') || *own == '\0' || strchr(own, '/') != NULL)
      return CORRUPT("module '%s' is not beneath its parent '%s'", module.path, above);
    if (i > MOST_NODES) return CORRUPT("too many modules");
    module.parent = (uint32_t)parent;
    SN_TRY(keep_name(g, module.path, &module.path));
    if (!GROW(g, modules, n_modules, cap_modules)) return sn_status_out_of_memory();
    g->modules[g->n_modules++] = module;
  }
  return i > 0 ? SN_OK : CORRUPT("there is no root module");
}

/* ---- sources ------------------------------------------------------------------------------- */

/* "visits.elements", "batch + 1" */
static bool read_symbolic(const sn_graph *g, const char *words, int64_t *out) {
  static const char plus[] = " + 1";
  size_t n = strlen(words);
  bool one = n > sizeof plus - 1 && strcmp(words + n - (sizeof plus - 1), plus) == 0;
  if (one) n -= sizeof plus - 1;
  for (size_t s = 0; s < g->n_symbols; s++)
    if (strlen(g->symbols[s].name) == n && strncmp(g->symbols[s].name, words, n) == 0) {
      *out = one ? SN_DIM_SYMBOL_PLUS_ONE(s) : SN_DIM_SYMBOL(s);
      return true;
    }
  return false;
}

static sn_status read_type(const reader *r, const cJSON *item, sn__type *out) {
  const cJSON *list = NULL, *dim, *dtype = field(item, "dtype");
  SN_TRY(get_list(item, "shape", &list));
  out->dtype = cJSON_IsString(dtype) ? sn_dtype_from_name(dtype->valuestring) : SN_DTYPE_NONE;
  if (out->dtype == SN_DTYPE_NONE) return CORRUPT("'dtype' is no element type");
  out->shape = (sn_shape){0, {0}};
  cJSON_ArrayForEach(dim, list) {
    int64_t d = -1;
    bool symbolic = cJSON_IsString(dim) && read_symbolic(r->g, dim->valuestring, &d);
    if (out->shape.rank == SN_MAX_RANK || (!symbolic && (!read_int(dim, &d) || d < 0)))
      return CORRUPT("'shape' is not a list of at most %d dimensions", SN_MAX_RANK);
    out->shape.dims[out->shape.rank++] = d;
  }
  return SN_OK;
}

static sn_status read_input(reader *r, const cJSON *item, const char *name, sn__type type) {
  static const char *const roles[] = {"data", "offsets", "seed"};
  sn_graph *g = r->g;
  int role = 0;
  int64_t ragged = 0, loss = 0;
  SN_TRY(get_word(item, "role", roles, 3, &role));
  SN_TRY(get_index(item, "ragged", -1, g->n_raggeds, &ragged));
  if (role == SN_INPUT_SEED) SN_TRY(get_index(item, "loss", 0, MOST_NODES, &loss));
  if (ragged >= 0) {
    sn__ragged *structure = &g->raggeds[ragged];
    bool offsets = role == SN_INPUT_OFFSETS;
    int64_t first = offsets ? SN_DIM_SYMBOL_PLUS_ONE(SN_SYMBOL_BATCH)
                            : SN_DIM_SYMBOL(structure->elements_symbol);
    if (role == SN_INPUT_SEED || type.shape.rank < 1 || type.shape.dims[0] != first ||
        (offsets && (type.dtype != SN_I32 || type.shape.rank != 1 || structure->offsets != 0)))
      return CORRUPT("input '%s' does not fit its ragged structure", name);
    if (offsets) structure->offsets = (uint32_t)g->n_values;
  } else if (role == SN_INPUT_OFFSETS ||
             (role == SN_INPUT_SEED && (type.shape.rank != 0 || !sn_dtype_is_float(type.dtype)))) {
    return CORRUPT("input '%s' is not what its role '%s' needs", name, roles[role]);
  }
  if (!sn_value_ok(sn__role_input(g, name, type.dtype, type.shape, (sn__input_role)role)))
    return sn_graph_status(g);
  sn__input *in = &g->inputs[g->n_inputs - 1];
  in->ragged = (int32_t)ragged;
  in->loss = (uint32_t)loss;
  return SN_OK;
}

/* What follows the module's path in a full name. */
static sn_status local_name(const sn_graph *g, const char *name, const char **out) {
  const char *path = g->modules[g->module].path;
  size_t n = strlen(path);
  if (n > 0 && (strncmp(name, path, n) != 0 || name[n] != '/'))
    return CORRUPT("'%s' does not stand in its module '%s'", name, path);
  *out = name + n + (n > 0);
  return **out != '\0' ? SN_OK : CORRUPT("'%s' is no name", name);
}

static sn_status read_variable(reader *r, const cJSON *item, const char *name, sn__type type) {
  const char *own = NULL;
  SN_TRY(local_name(r->g, name, &own));
  sn_variable_options options = {.struct_size = sizeof options,
                                 .frozen = cJSON_IsTrue(field(item, "frozen")),
                                 .no_decay = cJSON_IsTrue(field(item, "no_decay"))};
  sn_variable_opt(r->g, own, type.dtype, type.shape, &options);
  return sn_graph_status(r->g);
}

static int letter_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Exactly `size` bytes, or false. */
static bool decode_base64(const char *words, unsigned char *out, size_t size) {
  size_t n = strlen(words);
  if (n % 4 != 0 || n / 4 != (size + 2) / 3) return false;
  for (size_t i = 0, at = 0; i < n; i += 4, at += 3) {
    size_t bytes = size - at < 3 ? size - at : 3;
    uint32_t three = 0;
    for (size_t k = 0; k < 4; k++) {
      int v = letter_value(words[i + k]);
      if (k > bytes ? words[i + k] != '=' : v < 0) return false;
      three = three << 6 | (v < 0 ? 0 : (uint32_t)v);
    }
    for (size_t k = 0; k < bytes; k++)
      out[at + k] = (unsigned char)(three >> (16 - 8 * k));
  }
  return true;
}

static sn_status read_constant(reader *r, const cJSON *item, const char *name, sn__type type) {
  const cJSON *data = field(item, "data");
  int64_t count = 0;
  size_t bytes = 0;
  if (!cJSON_IsString(data) || !sn_shape_is_fixed(&type.shape) ||
      !sn__shape_count(&type.shape, &count) ||
      !sn__size_mul((size_t)count, sn_dtype_size(type.dtype), &bytes) ||
      strlen(data->valuestring) / 4 != bytes / 3 + (bytes % 3 != 0))
    return CORRUPT("constant '%s' has not the data of its shape", name);
  unsigned char *decoded = sn__alloc(bytes + 1);
  if (decoded == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  if (!decode_base64(data->valuestring, decoded, bytes))
    status = CORRUPT("constant '%s' has not the data of its shape", name);
  else if (!sn_value_ok(sn_constant(r->g, type.dtype, type.shape, decoded)))
    status = sn_graph_status(r->g);
  sn__free(decoded);
  return status;
}

/* ---- operations ---------------------------------------------------------------------------- */

static sn_status read_ints(const cJSON *item, sn__ints *out) {
  const cJSON *number;
  out->count = 0;
  if (!cJSON_IsArray(item)) return CORRUPT("attribute '%s' is not a list", item->string);
  cJSON_ArrayForEach(number, item) {
    if (out->count == SN_MAX_RANK || !read_int(number, &out->v[out->count]))
      return CORRUPT("attribute '%s' is not a list of at most %d whole numbers", item->string,
                     SN_MAX_RANK);
    out->count++;
  }
  return SN_OK;
}

static sn_status read_attr(const sn_op_def *op, const cJSON *item, char *attrs) {
  for (int i = 0; i < op->n_attrs; i++) {
    const sn__attr_def *def = &op->attrs[i];
    if (strcmp(def->name, item->string) != 0) continue;
    void *to = attrs + def->offset;
    if (def->kind == SN_ATTR_INTS) return read_ints(item, to);
    if (def->kind == SN_ATTR_INT ? read_int(item, to) : read_float(item, to)) return SN_OK;
    return CORRUPT("attribute '%s' of operation '%s' is not a %s", def->name, op->name,
                   def->kind == SN_ATTR_INT ? "whole number" : "number");
  }
  return sn_status_make(SN_CODE_UNSUPPORTED,
                        "graph: attribute '%s' of operation '%s' is unknown here; the file needs a "
                        "newer sennit",
                        name_sound(item->string, false) ? item->string : "?", op->name);
}

/* Finds the op, in a version that this program has. */
static sn_status find_op(const cJSON *item, const char *name, const sn_op_def **out) {
  const cJSON *word = field(item, "op");
  if (!cJSON_IsString(word) || !name_sound(word->valuestring, false))
    return CORRUPT("node '%s' names no operation", name);
  *out = sn__op_find(word->valuestring);
  if (*out == NULL)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "graph: operation '%s' of '%s' is unknown here; the file needs a newer "
                          "sennit",
                          word->valuestring, name);
  if (*out == &sn__op_input || *out == &sn__op_variable || *out == &sn__op_constant) return SN_OK;
  int64_t version = 0;
  SN_TRY(get_index(item, "version", 1, INT32_MAX, &version));
  if (version > (*out)->version)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "graph: '%s' needs version %lld of operation '%s'; this sennit has "
                          "version %d",
                          name, (long long)version, (*out)->name, (*out)->version);
  if (((*out)->flags & (SN_OP_COPY | SN_OP_GRAD)) != 0)
    return CORRUPT("operation '%s' of '%s' has no place in a forward graph", (*out)->name, name);
  return SN_OK;
}

/* The builder numbers names as it goes; the written ones take their place again. */
static sn_status restore_names(sn_graph *g, const char *name) {
  sn__node *n = &g->nodes[g->n_nodes - 1];
  SN_TRY(keep_name(g, name, &n->name));
  for (uint32_t o = 0; o < n->n_out; o++) {
    char *words = o == 0 ? sn__strdup(name) : sn__format("%s:%u", name, o);
    if (words == NULL) return sn_status_out_of_memory();
    sn_status status = keep_name(g, words, &g->values[n->out[o]].name);
    sn__free(words);
    SN_TRY(status);
  }
  return SN_OK;
}

static sn_status read_inputs(const sn_graph *g, const cJSON *list, sn_value **out, size_t *out_n) {
  int n = cJSON_GetArraySize(list);
  if (n > MOST_INPUTS) return CORRUPT("a node has %d inputs", n);
  sn_value *in = sn__calloc((size_t)n + 1, sizeof *in);
  if (in == NULL) return sn_status_out_of_memory();
  const cJSON *item;
  size_t k = 0;
  cJSON_ArrayForEach(item, list) {
    int64_t index = 0;
    if (!read_int(item, &index) || index < 0 || index >= (int64_t)g->n_values) {
      sn__free(in);
      return CORRUPT("input %zu of a node is not a value made before it", k);
    }
    in[k++] = sn__value_at(g, (uint32_t)index);
  }
  *out = in;
  *out_n = k;
  return SN_OK;
}

static sn_status read_operation(reader *r, const cJSON *item, const sn_op_def *op,
                                const char *name) {
  const cJSON *list = NULL, *attr, *attrs = field(item, "attrs");
  const char *own = NULL;
  sn_value *in = NULL;
  size_t n_in = 0;
  SN_TRY(local_name(r->g, name, &own));
  SN_TRY(get_list(item, "in", &list));
  char *fields = sn__calloc(1, op->attrs_size + 1);
  if (fields == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  if (attrs != NULL && !cJSON_IsObject(attrs)) status = CORRUPT("'attrs' is not an object");
  if (status == SN_OK && attrs != NULL) cJSON_ArrayForEach(attr, attrs) {
      status = read_attr(op, attr, fields);
      if (status != SN_OK) break;
    }
  if (status == SN_OK) status = read_inputs(r->g, list, &in, &n_in);
  if (status == SN_OK) {
    sn__node_add(r->g, op, op->attrs_size > 0 ? fields : NULL, in, n_in, own, NULL);
    status = sn_graph_status(r->g);
    if (status == SN_OK) status = restore_names(r->g, name);
  }
  sn__free(in);
  sn__free(fields);
  return status;
}

static sn_status read_node(reader *r, const cJSON *item) {
  const sn_op_def *op = NULL;
  const char *name = NULL;
  int64_t module = 0;
  SN_TRY(get_name(item, "name", &name));
  SN_TRY(find_op(item, name, &op));
  SN_TRY(get_index(item, "module", 0, r->g->n_modules, &module));
  r->g->module = (uint32_t)module;
  if (op != &sn__op_input && op != &sn__op_variable && op != &sn__op_constant)
    return read_operation(r, item, op, name);
  sn__type type = {SN_DTYPE_NONE, {0, {0}}};
  SN_TRY(sn_status_context(read_type(r, item, &type), "'%s'", name));
  if (op == &sn__op_input) return read_input(r, item, name, type);
  if (op == &sn__op_variable) return read_variable(r, item, name, type);
  return read_constant(r, item, name, type);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static sn_status check_names(const sn_graph *g) {
  const char **names = sn__calloc(g->n_nodes, sizeof *names);
  if (names == NULL) return sn_status_out_of_memory();
  size_t n = 0;
  for (size_t i = 1; i < g->n_nodes; i++)
    if (!sn__node_is_source(&g->nodes[i])) names[n++] = g->nodes[i].name;
  if (n > 0) qsort(names, n, sizeof *names, compare_names);
  sn_status status = SN_OK;
  for (size_t i = 1; status == SN_OK && i < n; i++)
    if (strcmp(names[i - 1], names[i]) == 0)
      status = CORRUPT("two nodes have the name '%s'", names[i]);
  sn__free(names);
  return status;
}

static sn_status read_nodes(reader *r) {
  const cJSON *list = NULL, *item;
  SN_TRY(get_list(r->root, "nodes", &list));
  cJSON_ArrayForEach(item, list) {
    if (r->g->n_nodes > MOST_NODES) return CORRUPT("more than %d nodes", (int)MOST_NODES);
    SN_TRY(read_node(r, item));
  }
  r->g->module = 0;
  for (size_t i = 0; i < r->g->n_raggeds; i++)
    if (r->g->raggeds[i].offsets == 0)
      return CORRUPT("ragged structure '%s' has no offsets", r->g->raggeds[i].name);
  return check_names(r->g);
}

/* ---- outputs and losses -------------------------------------------------------------------- */

static sn_status read_outputs(reader *r) {
  const cJSON *list = NULL, *item;
  SN_TRY(get_list(r->root, "outputs", &list));
  cJSON_ArrayForEach(item, list) {
    const char *name = NULL;
    int64_t value = 0;
    if (r->g->n_outputs > MOST_INPUTS) return CORRUPT("too many outputs");
    SN_TRY(get_name(item, "name", &name));
    SN_TRY(get_index(item, "value", 1, r->g->n_values, &value));
    sn_output(r->g, name, sn__value_at(r->g, (uint32_t)value));
    SN_TRY(sn_graph_status(r->g));
  }
  return SN_OK;
}

static bool loss_sound(const sn_graph *g, const sn__loss_info *l) {
  const sn__value *sum = &g->values[l->sum], *seed = &g->values[l->seed];
  if (sum->shape.rank != 0 || !sn_dtype_is_float(sum->dtype) || seed->dtype != sum->dtype ||
      seed->kind != SN_VALUE_INPUT || !isfinite(l->lambda))
    return false;
  const sn__input *in = &g->inputs[seed->extra];
  if (in->role != SN_INPUT_SEED || in->loss != g->n_losses) return false;
  return l->weights == 0 || g->values[l->weights].kind == SN_VALUE_INPUT;
}

static sn_status read_losses(reader *r) {
  const cJSON *list = NULL, *item;
  sn_graph *g = r->g;
  SN_TRY(get_list(r->root, "losses", &list));
  cJSON_ArrayForEach(item, list) {
    sn__loss_info l = {0};
    int64_t sum = 0, seed = 0, weights = 0, symbol = 0;
    if (g->n_losses > MOST_INPUTS) return CORRUPT("too many losses");
    SN_TRY(get_name(item, "name", &l.name));
    SN_TRY(get_index(item, "sum", 1, g->n_values, &sum));
    SN_TRY(get_index(item, "seed", 1, g->n_values, &seed));
    SN_TRY(get_index(item, "weights", 0, g->n_values, &weights));
    SN_TRY(get_index(item, "symbol", weights == 0 ? 0 : INT32_MIN, g->n_symbols, &symbol));
    if (!read_float(field(item, "lambda"), &l.lambda)) return CORRUPT("'lambda' is not a number");
    l.sum = (uint32_t)sum;
    l.seed = (uint32_t)seed;
    l.weights = (uint32_t)weights;
    l.symbol = (int32_t)symbol;
    if (!loss_sound(g, &l)) return CORRUPT("loss '%s' does not fit what it refers to", l.name);
    for (size_t i = 0; i < g->n_losses; i++)
      if (strcmp(g->losses[i].name, l.name) == 0)
        return CORRUPT("two losses have the name '%s'", l.name);
    SN_TRY(keep_name(g, l.name, &l.name));
    if (!GROW(g, losses, n_losses, cap_losses)) return sn_status_out_of_memory();
    g->losses[g->n_losses++] = l;
  }
  for (size_t i = 0; i < g->n_inputs; i++)
    if (g->inputs[i].role == SN_INPUT_SEED &&
        (g->inputs[i].loss >= g->n_losses ||
         g->losses[g->inputs[i].loss].seed != g->inputs[i].value))
      return CORRUPT("input '%s' is the seed of no loss", g->inputs[i].name);
  return SN_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static sn_status check_head(const cJSON *root) {
  const cJSON *format = field(root, "format");
  int64_t version = 0, least = 0;
  if (!cJSON_IsObject(root) || !cJSON_IsString(format) ||
      strcmp(format->valuestring, "sennit graph") != 0)
    return CORRUPT("this is not a sennit graph");
  SN_TRY(get_index(root, "format_version", 1, INT32_MAX, &version));
  SN_TRY(get_index(root, "min_reader", 1, INT32_MAX, &least));
  if (least > SN__GRAPH_FORMAT)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "graph: format version %lld needs a reader of version %lld; this sennit "
                          "reads up to %d",
                          (long long)version, (long long)least, SN__GRAPH_FORMAT);
  return SN_OK;
}

static sn_status read_all(reader *r) {
  const cJSON *raggeds = NULL;
  SN_TRY(check_head(r->root));
  SN_TRY(get_list(r->root, "raggeds", &raggeds));
  int n = cJSON_GetArraySize(raggeds);
  if (n > MOST_NODES) return CORRUPT("too many ragged structures");
  SN_TRY(read_symbols(r, (size_t)n));
  SN_TRY(read_raggeds(r, raggeds));
  SN_TRY(read_modules(r));
  SN_TRY(read_nodes(r));
  SN_TRY(read_outputs(r));
  SN_TRY(read_losses(r));
  return sn__verify_structure(r->g);
}

/* A rule of the graph that the text breaks is the text's fault, not the caller's. */
static sn_status blame_text(sn_status status) {
  sn_code code = sn_status_code(status);
  if (code != SN_CODE_INVALID && code != SN_CODE_INTERNAL) return status;
  sn_status blamed = CORRUPT("%s", sn_status_message(status));
  sn_status_free(status);
  return blamed;
}

sn_status sn__graph_from_json(const char *text, size_t length, sn_graph **out_graph) {
  cJSON *root = cJSON_ParseWithLength(text, length);
  if (root == NULL) return CORRUPT("the text is not JSON");
  reader r = {.root = root};
  sn_status status = sn_graph_create(&r.g);
  if (status == SN_OK) status = read_all(&r);
  cJSON_Delete(root);
  if (status != SN_OK) {
    sn_graph_free(r.g);
    return blame_text(status);
  }
  *out_graph = r.g;
  return SN_OK;
}
