/* SPDX-License-Identifier: Apache-2.0 */
/* An inspection in words and as JSON. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "io/h5_inspect.h"

#define CLASSES_IN_TEXT 12u
#define CLASSES_IN_JSON 1024u

/* ---- text ---------------------------------------------------------------------------------- */

typedef struct text {
  char *bytes;
  size_t size, capacity;
  bool failed;
} text;

SN_PRINTF(2, 3) static void say(text *t, const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n < 0 || t->failed) return;
  size_t length = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
  if (!sn__grow((void **)&t->bytes, &t->capacity, t->size + length + 1, 1)) {
    t->failed = true;
    return;
  }
  memcpy(t->bytes + t->size, line, length + 1);
  t->size += length;
}

static void say_shape(text *t, const sn__h5_dataset *d) {
  if (d->null_space) {
    say(t, "empty");
    return;
  }
  if (d->rank == 0) say(t, "scalar");
  for (unsigned i = 0; i < d->rank; ++i)
    say(t, "%s%" PRIu64, i > 0 ? " x " : "", d->dims[i]);
}

static const char *layout_words(const sn__h5_dataset *d) {
  static const char *const words[] = {"contiguous", "compact", "chunks", "virtual",
                                      "external files"};
  return words[d->layout];
}

static void say_storage(text *t, const sn__h5_dataset *d) {
  if (d->layout == SN__H5_CONTIGUOUS) return; /* the plain case */
  say(t, ", %s", layout_words(d));
  for (unsigned i = 0; d->layout == SN__H5_CHUNKED && i < d->rank; ++i)
    say(t, "%s%" PRIu64, i > 0 ? " x " : " of ", d->chunk_dims[i]);
  for (size_t i = 0; i < d->filter_count; ++i) {
    const char *known = sn__h5_filter_known_name(d->filters[i].id);
    say(t, ", %.60s", known != NULL ? known : d->filters[i].name);
  }
}

static double share(const sn__column_stats *s, int64_t count) {
  return s->rows_seen > 0 ? 100.0 * (double)count / (double)s->rows_seen : 0;
}

static void say_classes(text *t, const sn__column_stats *s) {
  say(t, "      %zu class%s:", s->class_count, s->class_count == 1 ? "" : "es");
  for (size_t i = 0; i < s->class_count && i < CLASSES_IN_TEXT; ++i) {
    const sn__class_count *c = &s->classes[i];
    if (c->name != NULL)
      say(t, "%s %.40s", i > 0 ? "," : "", *c->name != '\0' ? c->name : "\"\"");
    else
      say(t, "%s %" PRId64, i > 0 ? "," : "", c->value);
    say(t, " %" PRId64 " (%.1f%%)", c->count, share(s, c->count));
  }
  say(t, "%s\n", s->class_count > CLASSES_IN_TEXT ? ", ..." : "");
}

/* Real classes repeat; numbers that are all different are ids. */
static bool has_classes(const sn__column_stats *s) {
  return s->class_count > 0 && s->rows_seen > 1 && (int64_t)s->class_count * 2 <= s->rows_seen;
}

static void say_stats(text *t, const sn__inspect_entry *e) {
  const sn__column_stats *s = &e->stats;
  if (e->column == NULL || s->problem != NULL) return;
  const sn__h5_column_info *info = sn__h5_column_info_of(e->column);
  if (s->rows_seen > 0 &&
      (info->kind == SN__H5_COLUMN_RAGGED || info->kind == SN__H5_COLUMN_STRING))
    say(t, "      lengths %" PRId64 " to %" PRId64 ", mean %.4g, %" PRId64 " empty\n",
        s->length_min, s->length_max, s->length_mean, s->empty_rows);
  if (info->kind != SN__H5_COLUMN_STRING && isfinite(s->mean) && s->count > 0) {
    say(t, "      %.9g to %.9g, mean %.6g, std %.6g", s->min, s->max, s->mean, s->std);
    if (s->integral && sn__h5_kind_is_float(info->stored)) say(t, ", all integers");
    if (s->nan > 0) say(t, ", %" PRId64 " NaN", s->nan);
    if (s->inf > 0) say(t, ", %" PRId64 " inf", s->inf);
    say(t, "\n");
  }
  if (has_classes(s)) say_classes(t, s);
  if (!s->whole && s->rows_seen > 0)
    say(t, "      (the first %" PRId64 " of %" PRId64 " rows, for lack of time)\n", s->rows_seen,
        info->rows);
}

static void say_entry(text *t, const sn__inspect_entry *e) {
  const sn__h5_dataset *d = e->dataset;
  say(t, "  %.400s  %.240s, ", d->path, d->type.text);
  say_shape(t, d);
  say_storage(t, d);
  if (e->stats.problem != NULL) say(t, "  (cannot be used: see below)");
  say(t, "\n");
  for (size_t i = 0; i < d->attribute_count; ++i)
    say(t, "      @%s = %s\n", d->attributes[i].name, d->attributes[i].text);
  say_stats(t, e);
}

static void say_lines(text *t, const char *heading, char **lines, size_t count) {
  if (count == 0) return;
  say(t, "%s\n", heading);
  for (size_t i = 0; i < count; ++i)
    say(t, "  - %s\n", lines[i]);
}

sn_status sn__inspection_text(const sn__inspection *x, char **out_text) {
  text t = {0};
  const sn__h5_report *r = sn__h5_file_report(x->file);
  say(&t, "%.900s: %zu dataset%s", sn__h5_file_path(x->file), r->dataset_count,
      r->dataset_count == 1 ? "" : "s");
  if (r->library != NULL)
    say(&t, ", %.2f MiB, superblock %u", (double)r->file_size / 1048576.0, r->superblock);
  if (r->userblock > 0) say(&t, ", user block of %" PRIu64 " bytes", r->userblock);
  say(&t, "\n");
  for (size_t i = 0; i < x->entry_count; ++i)
    say_entry(&t, &x->entries[i]);
  for (size_t i = 0; i < x->ragged_count; ++i) {
    const sn__inspect_ragged *g = &x->ragged[i];
    if (g->problem == NULL)
      say(&t,
          "  %.400s  sequence or set of %" PRId64 " rows: lengths %" PRId64 " to %" PRId64
          ", mean %.4g, %" PRId64 " empty\n",
          g->path, g->rows, g->length_min, g->length_max, g->length_mean, g->empty_rows);
  }
  say_lines(&t, "Worth knowing:", x->notes, x->note_count);
  if (x->stop_count == 0)
    say(&t, "Nothing seen here would stop training.\n");
  else
    say_lines(&t, "This would stop training with what it names:", x->stops, x->stop_count);
  if (t.failed) {
    sn__free(t.bytes);
    return sn_status_out_of_memory();
  }
  *out_text = t.bytes;
  return SN_OK;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void add_number(cJSON *o, const char *key, double v) {
  if (isfinite(v)) cJSON_AddNumberToObject(o, key, v); /* JSON has no NaN */
}

static void add_extents(cJSON *o, const char *key, const uint64_t *dims, unsigned rank) {
  cJSON *a = cJSON_AddArrayToObject(o, key);
  for (unsigned i = 0; i < rank; ++i)
    cJSON_AddItemToArray(a, cJSON_CreateNumber((double)dims[i]));
}

static void add_classes(cJSON *o, const sn__column_stats *s) {
  cJSON *a = cJSON_AddArrayToObject(o, "classes");
  for (size_t i = 0; i < s->class_count && i < CLASSES_IN_JSON; ++i) {
    cJSON *c = cJSON_CreateObject();
    if (s->classes[i].name != NULL)
      cJSON_AddStringToObject(c, "name", s->classes[i].name);
    else
      add_number(c, "value", (double)s->classes[i].value);
    add_number(c, "count", (double)s->classes[i].count);
    cJSON_AddItemToArray(a, c);
  }
}

static void add_lengths(cJSON *o, int64_t low, int64_t high, double mean, int64_t empty) {
  cJSON *l = cJSON_AddObjectToObject(o, "lengths");
  add_number(l, "min", (double)low);
  add_number(l, "max", (double)high);
  add_number(l, "mean", mean);
  add_number(l, "empty", (double)empty);
}

static void add_stats(cJSON *o, const sn__inspect_entry *e) {
  const sn__column_stats *s = &e->stats;
  const sn__h5_column_info *info = sn__h5_column_info_of(e->column);
  static const char *const kinds[SN__H5_COLUMN_KINDS] = {"number", "bool", "enum", "string",
                                                         "ragged"};
  cJSON_AddStringToObject(o, "kind", kinds[info->kind]);
  add_number(o, "rows", (double)info->rows);
  add_number(o, "rows_seen", (double)s->rows_seen);
  if (info->kind == SN__H5_COLUMN_STRING || s->ragged)
    add_lengths(o, s->length_min, s->length_max, s->length_mean, s->empty_rows);
  if (info->kind != SN__H5_COLUMN_STRING && s->count > 0) {
    add_number(o, "min", s->min);
    add_number(o, "max", s->max);
    add_number(o, "mean", s->mean);
    add_number(o, "std", s->std);
    add_number(o, "nan", (double)s->nan);
    add_number(o, "inf", (double)s->inf);
    cJSON_AddBoolToObject(o, "integral", s->integral);
  }
  if (has_classes(s)) add_classes(o, s);
}

static cJSON *entry_json(const sn__inspect_entry *e) {
  const sn__h5_dataset *d = e->dataset;
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "path", d->path);
  cJSON_AddStringToObject(o, "type", d->type.text);
  add_extents(o, "shape", d->dims, d->rank);
  cJSON_AddStringToObject(o, "layout", layout_words(d));
  if (d->layout == SN__H5_CHUNKED) add_extents(o, "chunk", d->chunk_dims, d->rank);
  cJSON *filters = cJSON_AddArrayToObject(o, "filters");
  for (size_t i = 0; i < d->filter_count; ++i) {
    const char *known = sn__h5_filter_known_name(d->filters[i].id);
    cJSON_AddItemToArray(filters, cJSON_CreateString(known != NULL ? known : d->filters[i].name));
  }
  if (e->stats.problem != NULL)
    cJSON_AddStringToObject(o, "problem", e->stats.problem);
  else if (e->column != NULL)
    add_stats(o, e);
  return o;
}

static void add_lines(cJSON *o, const char *key, char **lines, size_t count) {
  cJSON *a = cJSON_AddArrayToObject(o, key);
  for (size_t i = 0; i < count; ++i)
    cJSON_AddItemToArray(a, cJSON_CreateString(lines[i]));
}

sn_status sn__inspection_json(const sn__inspection *x, char **out_text) {
  const sn__h5_report *r = sn__h5_file_report(x->file);
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "file", sn__h5_file_path(x->file));
  add_number(o, "bytes", (double)r->file_size);
  cJSON *datasets = cJSON_AddArrayToObject(o, "datasets");
  for (size_t i = 0; i < x->entry_count; ++i)
    cJSON_AddItemToArray(datasets, entry_json(&x->entries[i]));
  cJSON *groups = cJSON_AddArrayToObject(o, "ragged");
  for (size_t i = 0; i < x->ragged_count; ++i) {
    const sn__inspect_ragged *g = &x->ragged[i];
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "path", g->path);
    add_number(item, "rows", (double)g->rows);
    add_lengths(item, g->length_min, g->length_max, g->length_mean, g->empty_rows);
    if (g->problem != NULL) cJSON_AddStringToObject(item, "problem", g->problem);
    cJSON_AddItemToArray(groups, item);
  }
  add_lines(o, "stops", x->stops, x->stop_count);
  add_lines(o, "notes", x->notes, x->note_count);
  char *printed = cJSON_Print(o);
  cJSON_Delete(o);
  char *copy = printed != NULL ? sn__strdup(printed) : NULL; /* freed by our own allocator */
  cJSON_free(printed);
  if (copy == NULL) return sn_status_out_of_memory();
  *out_text = copy;
  return SN_OK;
}
