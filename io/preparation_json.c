/* SPDX-License-Identifier: Apache-2.0 */
/* A preparation as JSON, and back. What is read may come from a stranger: types, counts and ranges
 * are checked, and a key that is not known is refused. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/preparation_impl.h"

#define FORMAT       1
#define MOST_TEXT    ((size_t)1 << 30)
#define MOST_FIELDS  4096
#define MOST_COLUMNS ((int64_t)1 << 31)

static const char *const kinds[] = {"dense", "sequence", "set", "category", "stream", "image"};
static const char *const roles[] = {"input", "class", "target", "multilabel", "next"};

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct text {
  char *bytes;
  size_t count, capacity;
  bool failed;
} text;

static void add(text *t, const char *bytes, size_t n) {
  if (t->failed) return;
  if (!sn__grow((void **)&t->bytes, &t->capacity, t->count + n + 1, 1)) {
    t->failed = true;
    return;
  }
  memcpy(t->bytes + t->count, bytes, n);
  t->count += n;
  t->bytes[t->count] = '\0';
}

static void add_text(text *t, const char *bytes) {
  add(t, bytes, strlen(bytes));
}

/* Quoted. Bytes that are no UTF-8 would be no JSON: they go as the code points of the same number,
 * marked, and come back as they were. */
static bool is_utf8(const char *s) {
  const uint8_t *p = (const uint8_t *)s;
  while (*p != 0) {
    int more = *p < 0x80                 ? 0
               : *p >= 0xc2 && *p < 0xe0 ? 1
               : *p >= 0xe0 && *p < 0xf0 ? 2
               : *p >= 0xf0 && *p < 0xf5 ? 3
                                         : -1;
    if (more < 0) return false;
    for (int i = 1; i <= more; ++i)
      if ((p[i] & 0xc0) != 0x80) return false;
    p += more + 1;
  }
  return true;
}

static void add_quoted(text *t, const char *s) {
  add_text(t, "\"");
  for (const uint8_t *p = (const uint8_t *)s; *p != 0; ++p) {
    char escape[8];
    if (*p >= 0x20 && *p != '"' && *p != '\\') {
      add(t, (const char *)p, 1);
      continue;
    }
    snprintf(escape, sizeof escape, "\\u%04x", *p);
    add_text(t, escape);
  }
  add_text(t, "\"");
}

static void add_name(text *t, const char *s) {
  if (is_utf8(s)) {
    add_quoted(t, s);
    return;
  }
  add_text(t, "[");
  for (const uint8_t *p = (const uint8_t *)s; *p != 0; ++p) {
    char number[8];
    snprintf(number, sizeof number, "%s%u", p == (const uint8_t *)s ? "" : ",", *p);
    add_text(t, number);
  }
  add_text(t, "]");
}

/* 17 digits bring back the same double; a locale's comma is no JSON. */
static void add_double(text *t, double v) {
  char number[40];
  snprintf(number, sizeof number, "%.17g", v);
  for (char *p = number; *p != '\0'; ++p)
    if (*p == ',') *p = '.';
  add_text(t, number);
}

static void add_int(text *t, int64_t v) {
  char number[40];
  bool exact = v > -((int64_t)1 << 53) && v < ((int64_t)1 << 53);
  snprintf(number, sizeof number, exact ? "%" PRId64 : "\"%" PRId64 "\"", v);
  add_text(t, number);
}

static void add_key(text *t, const char *key) {
  add_text(t, ",\n   \"");
  add_text(t, key);
  add_text(t, "\": ");
}

static void add_bool(text *t, const char *key, bool v) {
  add_key(t, key);
  add_text(t, v ? "true" : "false");
}

static void add_count(text *t, const char *key, int64_t v) {
  add_key(t, key);
  add_int(t, v);
}

static void add_optional(text *t, const char *key, const char *v) {
  if (v == NULL) return;
  add_key(t, key);
  add_name(t, v);
}

static void add_doubles(text *t, const char *key, const double *v, int64_t n) {
  if (v == NULL) return;
  add_key(t, key);
  add_text(t, "[");
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) add_text(t, ", ");
    add_double(t, v[i]);
  }
  add_text(t, "]");
}

static void add_names(text *t, const char *key, const char *const *v, size_t n) {
  if (v == NULL) return;
  add_key(t, key);
  add_text(t, "[");
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) add_text(t, ", ");
    add_name(t, v[i]);
  }
  add_text(t, "]");
}

/* Text keys are their names; numbers may have another name: [number, name]. */
static void add_table(text *t, const sn__table *table) {
  if (table->count == 0) return;
  add_key(t, "table");
  add_text(t, "[");
  for (int64_t k = 0; k < table->count; ++k) {
    const sn__key *key = &table->keys[k];
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, key->number);
    if (k > 0) add_text(t, ", ");
    if (key->text) {
      add_text(t, "{\"text\": ");
      add_name(t, key->name);
      add_text(t, "}");
    } else if (strcmp(digits, key->name) == 0) {
      add_int(t, key->number);
    } else {
      add_text(t, "{\"number\": ");
      add_int(t, key->number);
      add_text(t, ", \"name\": ");
      add_name(t, key->name);
      add_text(t, "}");
    }
  }
  add_text(t, "]");
  add_key(t, "table_rows");
  add_text(t, "[");
  for (int64_t k = 0; k < table->count; ++k) {
    if (k > 0) add_text(t, ", ");
    add_int(t, table->rows[k]);
  }
  add_text(t, "]");
}

static void add_field(text *t, const sn__prep_field *pf) {
  const sn_field *f = &pf->field;
  add_text(t, "  {\"name\": ");
  add_name(t, f->name);
  add_optional(t, "kind", kinds[f->kind]);
  add_optional(t, "role", roles[f->role]);
  add_optional(t, "path", f->path);
  add_optional(t, "lengths", f->lengths);
  add_optional(t, "dtype", sn_dtype_name(f->dtype));
  add_bool(t, "normalize", f->normalize);
  add_bool(t, "ids", f->ids);
  add_count(t, "window", f->window);
  add_optional(t, "missing", f->missing);
  add_names(t, "classes", f->classes, f->n_classes);
  add_bool(t, "balanced", f->balanced);
  add_doubles(t, "class_weights", f->class_weights, (int64_t)f->n_class_weights);
  add_names(t, "class_weight_names", f->class_weight_names, f->n_class_weights);
  add_count(t, "features", pf->facts.features);
  add_bool(t, "ragged", pf->facts.ragged);
  add_count(t, "elements", pf->facts.elements);
  add_count(t, "longest", pf->facts.longest);
  add_count(t, "empty", pf->facts.empty);
  if (f->kind == SN_FIELD_IMAGE) {
    add_count(t, "height", pf->facts.height);
    add_count(t, "width", pf->facts.width);
    add_count(t, "channels", pf->facts.channels);
  }
  add_doubles(t, "mean", pf->mean, pf->facts.features);
  add_doubles(t, "deviation", pf->deviation, pf->facts.features);
  add_table(t, &pf->table);
  if (pf->class_weights != NULL) {
    add_key(t, "table_weights");
    add_text(t, "[");
    for (int64_t k = 0; k < pf->table.count; ++k) {
      if (k > 0) add_text(t, ", ");
      add_double(t, (double)pf->class_weights[k]);
    }
    add_text(t, "]");
  }
  add_text(t, "}");
}

sn_status sn_preparation_to_json(const sn_preparation *p, char **out_text) {
  text t = {0};
  add_text(&t, "{\"format\": 1, \"fields\": [\n");
  for (size_t i = 0; i < p->n_fields; ++i) {
    if (i > 0) add_text(&t, ",\n");
    add_field(&t, &p->fields[i]);
  }
  add_text(&t, "]}\n");
  if (t.failed) {
    sn__free(t.bytes);
    return sn_status_out_of_memory();
  }
  *out_text = t.bytes;
  return SN_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static sn_status wrong(const char *key) {
  return sn_status_make(SN_CODE_CORRUPT,
                        "\"%s\" of the stored data preparation makes no sense: the checkpoint is "
                        "damaged or was not written by sennit",
                        key);
}

/* By its exact name; JSON in which a key is missing or there twice was not written by us. */
static const cJSON *get(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

static bool read_int(const cJSON *v, int64_t least, int64_t most, int64_t *out) {
  if (cJSON_IsNumber(v)) {
    double d = v->valuedouble;
    if (!(fabs(d) < 0x1p53) || d != trunc(d)) return false;
    *out = (int64_t)d;
  } else if (!cJSON_IsString(v) || !sn__parse_whole(v->valuestring, out)) {
    return false;
  }
  return *out >= least && *out <= most;
}

static sn_status get_int(const cJSON *o, const char *key, int64_t least, int64_t most,
                         int64_t *out) {
  return read_int(get(o, key), least, most, out) ? SN_OK : wrong(key);
}

static sn_status get_bool(const cJSON *o, const char *key, bool *out) {
  const cJSON *v = get(o, key);
  if (!cJSON_IsBool(v)) return wrong(key);
  *out = cJSON_IsTrue(v);
  return SN_OK;
}

static sn_status read_name(const cJSON *v, const char *key, char **out) {
  if (cJSON_IsString(v)) {
    *out = sn__strdup(v->valuestring);
    return *out != NULL ? SN_OK : sn_status_out_of_memory();
  }
  if (!cJSON_IsArray(v)) return wrong(key);
  size_t n = 0;
  for (const cJSON *b = v->child; b != NULL; b = b->next)
    ++n;
  char *bytes = sn__calloc(n + 1, 1);
  if (bytes == NULL) return sn_status_out_of_memory();
  size_t i = 0;
  for (const cJSON *b = v->child; b != NULL; b = b->next) {
    int64_t byte;
    if (!read_int(b, 1, 255, &byte)) {
      sn__free(bytes);
      return wrong(key);
    }
    bytes[i++] = (char)byte;
  }
  *out = bytes;
  return SN_OK;
}

static sn_status arena_name(sn__arena *arena, const cJSON *v, const char *key, const char **out) {
  char *name = NULL;
  SN_TRY(read_name(v, key, &name));
  *out = sn__arena_strdup(arena, name);
  sn__free(name);
  return *out != NULL ? SN_OK : sn_status_out_of_memory();
}

static sn_status get_name(sn__arena *arena, const cJSON *o, const char *key, bool needed,
                          const char **out) {
  const cJSON *v = get(o, key);
  *out = NULL;
  if (v == NULL) return needed ? wrong(key) : SN_OK;
  return arena_name(arena, v, key, out);
}

static sn_status get_word(const cJSON *o, const char *key, const char *const *words, int count,
                          int *out) {
  const cJSON *v = get(o, key);
  for (int i = 0; cJSON_IsString(v) && i < count; ++i)
    if (strcmp(v->valuestring, words[i]) == 0) {
      *out = i;
      return SN_OK;
    }
  return wrong(key);
}

static int64_t array_size(const cJSON *v) {
  int64_t n = 0;
  for (const cJSON *i = v->child; i != NULL; i = i->next)
    ++n;
  return n;
}

/* NULL when it is not there; otherwise `count` finite numbers (any count when that is < 0). */
static sn_status get_doubles(const cJSON *o, const char *key, int64_t count, bool negative,
                             double **out, int64_t *out_count) {
  const cJSON *v = get(o, key);
  *out = NULL;
  if (v == NULL) return SN_OK;
  if (!cJSON_IsArray(v)) return wrong(key);
  int64_t n = array_size(v), i = 0;
  if (n == 0 || (count >= 0 && n != count)) return wrong(key);
  double *numbers = sn__calloc((size_t)n, sizeof *numbers);
  if (numbers == NULL) return sn_status_out_of_memory();
  for (const cJSON *d = v->child; d != NULL; d = d->next) {
    if (!cJSON_IsNumber(d) || !isfinite(d->valuedouble) || (!negative && d->valuedouble < 0)) {
      sn__free(numbers);
      return wrong(key);
    }
    numbers[i++] = d->valuedouble;
  }
  *out = numbers;
  if (out_count != NULL) *out_count = n;
  return SN_OK;
}

static sn_status get_names(sn__arena *arena, const cJSON *o, const char *key,
                           const char *const **out, size_t *out_count) {
  const cJSON *v = get(o, key);
  *out = NULL;
  *out_count = 0;
  if (v == NULL) return SN_OK;
  if (!cJSON_IsArray(v)) return wrong(key);
  size_t n = (size_t)array_size(v), i = 0;
  const char **names = sn__arena_alloc(arena, (n + 1) * sizeof *names);
  if (names == NULL) return sn_status_out_of_memory();
  for (const cJSON *d = v->child; d != NULL; d = d->next)
    SN_TRY(arena_name(arena, d, key, &names[i++]));
  *out = names;
  *out_count = n;
  return SN_OK;
}

static sn_status read_key(const cJSON *v, sn__key *out) {
  char digits[24];
  if (!cJSON_IsObject(v)) {
    if (!read_int(v, INT64_MIN, INT64_MAX, &out->number)) return wrong("table");
    snprintf(digits, sizeof digits, "%" PRId64, out->number);
    out->name = sn__strdup(digits);
    return out->name != NULL ? SN_OK : sn_status_out_of_memory();
  }
  const cJSON *name = get(v, "text");
  if (name != NULL) {
    out->text = true;
    return read_name(name, "table", &out->name);
  }
  SN_TRY(get_int(v, "number", INT64_MIN, INT64_MAX, &out->number));
  return read_name(get(v, "name"), "table", &out->name);
}

static sn_status get_table(const cJSON *o, sn__table *t) {
  const cJSON *v = get(o, "table"), *rows = get(o, "table_rows");
  if (v == NULL) return SN_OK;
  if (!cJSON_IsArray(v) || !cJSON_IsArray(rows)) return wrong("table");
  int64_t n = array_size(v), i = 0;
  if (n == 0 || n > SN__MOST_KEYS || array_size(rows) != n) return wrong("table");
  t->keys = sn__calloc((size_t)n, sizeof *t->keys);
  t->rows = sn__calloc((size_t)n, sizeof *t->rows);
  if (t->keys == NULL || t->rows == NULL) return sn_status_out_of_memory();
  for (const cJSON *k = v->child; k != NULL; k = k->next) {
    t->count = i + 1;
    SN_TRY(read_key(k, &t->keys[i++]));
  }
  i = 0;
  for (const cJSON *k = rows->child; k != NULL; k = k->next)
    if (!read_int(k, 0, INT64_MAX, &t->rows[i++])) return wrong("table_rows");
  sn_status s = sn__table_finish(t);
  if (sn_status_code(s) != SN_CODE_CONFIG) return s;
  sn_status_free(s);
  return wrong("table");
}

static sn_status get_table_weights(const cJSON *o, sn__prep_field *pf) {
  double *weights = NULL;
  SN_TRY(get_doubles(o, "table_weights", pf->table.count, false, &weights, NULL));
  if (weights == NULL)
    return pf->field.balanced || pf->field.n_class_weights > 0 ? wrong("table_weights") : SN_OK;
  pf->class_weights = sn__calloc((size_t)pf->table.count, sizeof *pf->class_weights);
  bool sound = true;
  for (int64_t k = 0; pf->class_weights != NULL && k < pf->table.count; ++k) {
    sound &= weights[k] <= 1e38;
    pf->class_weights[k] = sound ? (float)weights[k] : 0;
  }
  sn__free(weights);
  if (pf->class_weights == NULL) return sn_status_out_of_memory();
  return sound ? SN_OK : wrong("table_weights");
}

static sn_status read_words(sn__arena *arena, const cJSON *o, sn_field *f) {
  int kind = 0, role = 0;
  const char *dtype;
  SN_TRY(get_name(arena, o, "name", true, &f->name));
  SN_TRY(get_word(o, "kind", kinds, 6, &kind));
  SN_TRY(get_word(o, "role", roles, 5, &role));
  f->kind = (sn_field_kind)kind;
  f->role = (sn_field_role)role;
  SN_TRY(get_name(arena, o, "path", true, &f->path));
  SN_TRY(get_name(arena, o, "lengths", false, &f->lengths));
  SN_TRY(get_name(arena, o, "dtype", true, &dtype));
  f->dtype = sn_dtype_from_name(dtype);
  SN_TRY(get_bool(o, "normalize", &f->normalize));
  SN_TRY(get_bool(o, "ids", &f->ids));
  SN_TRY(get_int(o, "window", 0, MOST_COLUMNS, &f->window));
  SN_TRY(get_name(arena, o, "missing", false, &f->missing));
  SN_TRY(get_names(arena, o, "classes", &f->classes, &f->n_classes));
  SN_TRY(get_bool(o, "balanced", &f->balanced));
  double *weights = NULL;
  int64_t n = 0;
  SN_TRY(get_doubles(o, "class_weights", -1, false, &weights, &n));
  if (weights != NULL) {
    double *kept = sn__arena_alloc(arena, (size_t)n * sizeof *kept);
    if (kept != NULL) memcpy(kept, weights, (size_t)n * sizeof *kept);
    sn__free(weights);
    if (kept == NULL) return sn_status_out_of_memory();
    f->class_weights = kept;
    f->n_class_weights = (size_t)n;
  }
  size_t names = 0;
  SN_TRY(get_names(arena, o, "class_weight_names", &f->class_weight_names, &names));
  /* An empty list is not the same as none: names are looked up by weight. */
  if (f->class_weight_names != NULL && names != f->n_class_weights)
    return wrong("class_weight_names");
  return SN_OK;
}

/* A key that we do not write, or one that is there twice. */
static sn_status check_keys(const cJSON *o) {
  static const char *const known[] = {"name",          "kind",
                                      "role",          "path",
                                      "lengths",       "dtype",
                                      "normalize",     "ids",
                                      "window",        "missing",
                                      "classes",       "balanced",
                                      "class_weights", "class_weight_names",
                                      "features",      "ragged",
                                      "elements",      "longest",
                                      "empty",         "mean",
                                      "deviation",     "table",
                                      "table_rows",    "table_weights",
                                      "height",        "width",
                                      "channels"};
  bool seen[sizeof known / sizeof *known] = {false};
  for (const cJSON *v = o->child; v != NULL; v = v->next) {
    size_t i = 0;
    while (i < sizeof known / sizeof *known && strcmp(known[i], v->string) != 0)
      ++i;
    if (i == sizeof known / sizeof *known || seen[i]) {
      char key[40];
      snprintf(key, sizeof key, "%.30s", v->string);
      for (char *c = key; *c != '\0'; ++c)
        if ((unsigned char)*c < 0x20) *c = '?';
      return wrong(key);
    }
    seen[i] = true;
  }
  return SN_OK;
}

static sn_status read_facts(const cJSON *o, sn__prep_field *pf) {
  sn_field_facts *facts = &pf->facts;
  SN_TRY(get_int(o, "features", 0, MOST_COLUMNS, &facts->features));
  SN_TRY(get_bool(o, "ragged", &facts->ragged));
  SN_TRY(get_int(o, "elements", 0, INT64_MAX, &facts->elements));
  SN_TRY(get_int(o, "longest", 0, INT64_MAX, &facts->longest));
  SN_TRY(get_int(o, "empty", 0, INT64_MAX, &facts->empty));
  if (pf->field.kind == SN_FIELD_IMAGE) {
    SN_TRY(get_int(o, "height", 1, MOST_COLUMNS, &facts->height));
    SN_TRY(get_int(o, "width", 1, MOST_COLUMNS, &facts->width));
    SN_TRY(get_int(o, "channels", 1, MOST_COLUMNS, &facts->channels));
  }
  SN_TRY(get_doubles(o, "mean", facts->features, true, &pf->mean, NULL));
  SN_TRY(get_doubles(o, "deviation", facts->features, false, &pf->deviation, NULL));
  SN_TRY(get_table(o, &pf->table));
  facts->classes = pf->table.count;
  return get_table_weights(o, pf);
}

/* What a field says of itself must fit what it holds: the loader does not look again. */
static sn_status check_sense(const sn__prep_field *pf) {
  const sn_field *f = &pf->field;
  SN_TRY(sn__field_check(f));
  bool ragged =
      f->kind == SN_FIELD_SEQUENCE || f->kind == SN_FIELD_SET || f->kind == SN_FIELD_STREAM;
  bool coded = f->kind == SN_FIELD_CATEGORY || f->role == SN_FIELD_CLASS;
  bool ids = f->kind == SN_FIELD_STREAM || (ragged && f->ids);
  if (pf->facts.ragged != ragged) return wrong("ragged");
  if ((coded || ids) != (pf->table.count > 0)) return wrong("table");
  if ((coded || ids) != (pf->facts.features == 0)) return wrong("features");
  int64_t pixels = 0, row = 0;
  if (f->kind == SN_FIELD_IMAGE &&
      (__builtin_mul_overflow(pf->facts.height, pf->facts.width, &pixels) ||
       __builtin_mul_overflow(pixels, pf->facts.channels, &row) || row != pf->facts.features))
    return wrong("height");
  if (f->normalize != (pf->mean != NULL) || f->normalize != (pf->deviation != NULL))
    return wrong("mean");
  for (int64_t k = 0; ids && k < pf->table.count; ++k)
    if (pf->table.keys[k].text) return wrong("table");
  return SN_OK;
}

static sn_status read_field(sn_preparation *p, const cJSON *o, sn__prep_field *pf) {
  if (!cJSON_IsObject(o)) return wrong("fields");
  SN_TRY(check_keys(o));
  SN_TRY(read_words(&p->arena, o, &pf->field));
  SN_TRY(read_facts(o, pf));
  sn_status s = check_sense(pf);
  if (sn_status_code(s) == SN_CODE_INVALID) { /* no fault of the caller's */
    s = sn_status_join(wrong("fields"), s);
  }
  SN_TRY(s);
  sn__field_missing(&pf->field, &pf->missing, &pf->missing_number);
  return pf->mean != NULL ? sn__prep_field_scale(pf) : SN_OK;
}

static sn_status read_all(const cJSON *root, sn_preparation *p) {
  int64_t format = 0;
  if (!cJSON_IsObject(root)) return wrong("format");
  SN_TRY(get_int(root, "format", 1, INT32_MAX, &format));
  if (format > FORMAT)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "the stored data preparation has format %" PRId64
                          ", newer than this sennit reads (%d): use a newer one",
                          format, FORMAT);
  const cJSON *fields = get(root, "fields");
  if (!cJSON_IsArray(fields)) return wrong("fields");
  int64_t n = array_size(fields);
  if (n < 1 || n > MOST_FIELDS) return wrong("fields");
  p->fields = sn__calloc((size_t)n, sizeof *p->fields);
  if (p->fields == NULL) return sn_status_out_of_memory();
  for (const cJSON *o = fields->child; o != NULL; o = o->next) {
    ++p->n_fields;
    SN_TRY(read_field(p, o, &p->fields[p->n_fields - 1]));
  }
  return SN_OK;
}

sn_status sn_preparation_from_json(const char *bytes, size_t length,
                                   sn_preparation **out_preparation) {
  if (length > MOST_TEXT || memchr(bytes, '\0', length) != NULL) return wrong("text");
  const char *end = NULL;
  cJSON *root = cJSON_ParseWithLengthOpts(bytes, length, &end, 0);
  if (root == NULL) return wrong("text");
  sn_status s = SN_OK;
  for (const char *p = end; s == SN_OK && p < bytes + length; ++p)
    if (*p != ' ' && *p != '\n' && *p != '\t' && *p != '\r') s = wrong("text");
  sn_preparation *p = sn__calloc(1, sizeof *p);
  if (p == NULL)
    s = sn_status_join(s, sn_status_out_of_memory());
  else if (s == SN_OK)
    s = read_all(root, p);
  cJSON_Delete(root);
  if (s != SN_OK) {
    sn_preparation_free(p);
    return s;
  }
  *out_preparation = p;
  return SN_OK;
}
