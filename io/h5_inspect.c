/* SPDX-License-Identifier: Apache-2.0 */
#include "io/h5_inspect.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "io/h5_column_impl.h"

#define DEFAULT_SECONDS    5.0
#define CONVERSION_SECONDS 2.0
#define ROWS_TO_JUDGE      20   /* fewer may be alike by chance */
#define FAR_FROM_THE_MEAN  30.0 /* standard deviations: no bell curve reaches there */

/* ---- lines --------------------------------------------------------------------------------- */

static sn_status push(char ***lines, size_t *count, size_t *capacity, char *line) {
  if (line == NULL) return sn_status_out_of_memory();
  if (!sn__grow((void **)lines, capacity, *count + 1, sizeof **lines)) {
    sn__free(line);
    return sn_status_out_of_memory();
  }
  (*lines)[(*count)++] = line;
  return SN_OK;
}

/* Takes the line. */
static sn_status stop(sn__inspection *x, char *line) {
  return push(&x->stops, &x->stop_count, &x->stop_capacity, line);
}

static sn_status note(sn__inspection *x, char *line) {
  return push(&x->notes, &x->note_count, &x->note_capacity, line);
}

/* A status's message without the file's path, which the heading has. */
static const char *without_path(const sn__inspection *x, const char *message) {
  const char *path = sn__h5_file_path(x->file);
  size_t n = strlen(path);
  return strncmp(message, path, n) == 0 && strncmp(message + n, ": ", 2) == 0 ? message + n + 2
                                                                              : message;
}

/* ---- what a dataset's values say ----------------------------------------------------------- */

static sn_status judge_numbers(sn__inspection *x, const sn__h5_dataset *d,
                               const sn__column_stats *s) {
  if (s->nan + s->inf > 0)
    SN_TRY(stop(x, sn__format("dataset %s: %" PRId64 " NaN and %" PRId64 " inf of %" PRId64
                              " values, the first at row %" PRId64 ", column %" PRId64
                              ": drop those rows or fill the values in",
                              d->path, s->nan, s->inf, s->count, s->bad_row, s->bad_column)));
  if (s->ragged || isnan(s->std)) return SN_OK;
  if (s->constant_columns > 0 && s->whole && s->rows_seen >= ROWS_TO_JUDGE)
    SN_TRY(
        note(x, sn__format("dataset %s: column %" PRId64 " is constant%s: it tells a model nothing",
                           d->path, s->constant_column,
                           s->constant_columns > 1 ? " and so are others" : "")));
  double far = s->std > 0 ? fmax(s->max - s->mean, s->mean - s->min) / s->std : 0;
  if (far > FAR_FROM_THE_MEAN && s->class_count == 0)
    SN_TRY(note(
        x, sn__format("dataset %s: values reach %.0f standard deviations from their mean (%.9g "
                      "to %.9g): clip or take logarithms, or use the Huber loss",
                      d->path, far, s->min, s->max)));
  return SN_OK;
}

static bool never_written(const sn__h5_dataset *d) {
  if (d->elements == 0 || sn__h5_dataset_foreign(d) != NULL) return false;
  return (d->layout == SN__H5_CONTIGUOUS && d->data_address == SN__H5_NO_ADDRESS) ||
         (d->layout == SN__H5_CHUNKED && d->chunk_count == 0);
}

static sn_status judge_storage(sn__inspection *x, const sn__h5_dataset *d) {
  if (never_written(d))
    return stop(
        x, sn__format("dataset %s: nothing was ever written to it, all its values are the fill "
                      "value: write it, or leave it out",
                      d->path));
  if (d->layout == SN__H5_CHUNKED && d->chunk_count < d->grid_count)
    return note(x, sn__format("dataset %s: %" PRIu64 " of its %" PRIu64
                              " chunks were never written and hold the fill value",
                              d->path, d->grid_count - d->chunk_count, d->grid_count));
  return SN_OK;
}

static sn_status inspect_entry(sn__inspection *x, sn__inspect_entry *e, sn__h5_reader *reader,
                               double deadline) {
  const sn__h5_dataset *d = e->dataset;
  sn_status s = sn__h5_column_open(x->file, d->path, &e->column);
  if (s != SN_OK) {
    if (sn_status_code(s) == SN_CODE_OUT_OF_MEMORY) return s;
    e->stats.problem = sn__strdup(without_path(x, sn_status_message(s)));
    sn_status_free(s);
    if (e->stats.problem == NULL) return sn_status_out_of_memory();
    /* Types that nobody would feed to a network, beside data, stop nothing. */
    bool other = d->type.cls == SN__H5_CLASS_OTHER || d->null_space;
    char *line = sn__strdup(e->stats.problem);
    return other && d->problem == NULL ? note(x, line) : stop(x, line);
  }
  SN_TRY(sn__column_stats_read(e->column, reader, deadline, &e->stats));
  if (e->stats.problem != NULL) return stop(x, sn__strdup(without_path(x, e->stats.problem)));
  SN_TRY(judge_storage(x, d));
  if (never_written(d) || sn__h5_column_info_of(e->column)->kind == SN__H5_COLUMN_STRING)
    return SN_OK;
  return judge_numbers(x, d, &e->stats);
}

/* ---- groups of values and offsets ---------------------------------------------------------- */

static sn__inspect_entry *entry_at(const sn__inspection *x, const char *group, const char *name) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", group, name);
  for (size_t i = 0; i < x->entry_count; ++i)
    if (strcmp(x->entries[i].dataset->path, path) == 0) return &x->entries[i];
  return NULL;
}

static sn_status check_offsets(const sn__h5_column *c, sn__h5_reader *reader,
                               sn__inspect_ragged *g) {
  const int64_t step = 65536;
  int64_t *offsets = sn__calloc((size_t)step + 1, sizeof *offsets);
  if (offsets == NULL) return sn_status_out_of_memory();
  sn_status s = SN_OK;
  int64_t last = 0;
  g->rows = sn__h5_column_info_of(c)->rows - 1;
  for (int64_t row = 0, n; row <= g->rows && g->problem == NULL && s == SN_OK; row += n) {
    n = g->rows + 1 - row < step ? g->rows + 1 - row : step;
    s = sn__h5_column_read(c, reader, row, n, SN_I64, offsets);
    for (int64_t i = 0; s == SN_OK && g->problem == NULL && i < n; ++i) {
      int64_t length = offsets[i] - last, seen = row + i - 1;
      if (row + i == 0 ? offsets[i] != 0 : length < 0) {
        g->problem = sn__format("%s/offsets: %s at row %" PRId64 " (%" PRId64 " after %" PRId64
                                "): write the running sum of the lengths, from 0",
                                g->path, row + i == 0 ? "it does not begin with 0" : "it decreases",
                                row + i, offsets[i], last);
        if (g->problem == NULL) s = sn_status_out_of_memory();
      } else if (row + i > 0) {
        if (seen == 0 || length < g->length_min) g->length_min = length;
        if (seen == 0 || length > g->length_max) g->length_max = length;
        g->length_mean += ((double)length - g->length_mean) / (double)(seen + 1);
        g->empty_rows += length == 0;
      }
      last = offsets[i];
    }
  }
  sn__free(offsets);
  if (s == SN_OK && g->problem == NULL && last != g->values) {
    g->problem = sn__format("%s/offsets ends with %" PRId64 " and %s/values has %" PRId64
                            " rows: both must be equal",
                            g->path, last, g->path, g->values);
    if (g->problem == NULL) s = sn_status_out_of_memory();
  }
  return s;
}

static sn_status inspect_group(sn__inspection *x, const char *path, sn__h5_reader *reader) {
  sn__inspect_entry *values = entry_at(x, path, "values"), *offsets = entry_at(x, path, "offsets");
  if (values == NULL || offsets == NULL || values->column == NULL || offsets->column == NULL)
    return SN_OK;
  const sn__h5_column_info *o = sn__h5_column_info_of(offsets->column);
  if (o->width != 1 || o->rows < 1 || o->kind != SN__H5_COLUMN_NUMBER) return SN_OK;
  if (!sn__grow((void **)&x->ragged, &x->ragged_capacity, x->ragged_count + 1, sizeof *x->ragged))
    return sn_status_out_of_memory();
  sn__inspect_ragged *g = &x->ragged[x->ragged_count++];
  memset(g, 0, sizeof *g);
  g->path = sn__strdup(path);
  if (g->path == NULL) return sn_status_out_of_memory();
  g->values = sn__h5_column_info_of(values->column)->rows;
  sn_status s = check_offsets(offsets->column, reader, g);
  if (s != SN_OK && sn_status_code(s) != SN_CODE_OUT_OF_MEMORY) { /* not integers */
    g->problem = sn__strdup(without_path(x, sn_status_message(s)));
    sn_status_free(s);
    s = g->problem != NULL ? SN_OK : sn_status_out_of_memory();
  }
  if (s == SN_OK && g->problem != NULL) s = stop(x, sn__strdup(g->problem));
  return s;
}

/* ---- the file as a whole ------------------------------------------------------------------- */

static sn_status judge_report(sn__inspection *x) {
  const sn__h5_report *r = sn__h5_file_report(x->file);
  if (r->failure != NULL) SN_TRY(stop(x, sn__strdup(without_path(x, r->failure))));
  for (size_t i = 0; i < r->problem_count; ++i) {
    const sn__h5_note *p = &r->problems[i];
    if (sn__h5_report_find(r, p->path) != NULL) continue; /* said with the dataset */
    SN_TRY(
        stop(x, sn__format("%s cannot be opened (%s): the file is damaged; get it again from where "
                           "it came",
                           p->path, p->words)));
  }
  for (size_t i = 0; i < r->link_count; ++i)
    SN_TRY(note(x, sn__format("%s is %s", r->links[i].path, r->links[i].words)));
  for (size_t i = 0; i < r->alias_count; ++i)
    SN_TRY(
        note(x, sn__format("%s is another name of %s", r->aliases[i].path, r->aliases[i].words)));
  if (r->failure == NULL && r->dataset_count == 0 && x->stop_count == 0)
    SN_TRY(
        stop(x, sn__strdup("there are no datasets in it: write inputs and outputs as datasets of "
                           "one row per example")));
  return SN_OK;
}

/* Inputs and outputs that train together have one row count. */
typedef struct row_counts {
  int64_t first;
  bool differ;
  char words[600];
  size_t used;
} row_counts;

static void count_rows(row_counts *c, const char *path, int64_t rows) {
  if (c->first >= 0 && rows != c->first) c->differ = true;
  if (c->first < 0) c->first = rows;
  if (c->used < sizeof c->words - 100)
    c->used += (size_t)snprintf(c->words + c->used, sizeof c->words - c->used, "%s%.60s %" PRId64,
                                c->used > 0 ? ", " : "", path, rows);
}

static bool in_ragged(const sn__inspection *x, const char *path) {
  for (size_t i = 0; i < x->ragged_count; ++i) {
    size_t n = strlen(x->ragged[i].path);
    const char *rest = path + n;
    if (strncmp(path, x->ragged[i].path, n) == 0 &&
        (strcmp(rest, "/values") == 0 || strcmp(rest, "/offsets") == 0))
      return true;
  }
  return false;
}

static sn_status judge_rows(sn__inspection *x) {
  row_counts c = {.first = -1};
  for (size_t i = 0; i < x->ragged_count; ++i)
    count_rows(&c, x->ragged[i].path, x->ragged[i].rows);
  for (size_t i = 0; i < x->entry_count; ++i) {
    const sn__inspect_entry *e = &x->entries[i];
    if (e->column == NULL || e->dataset->space_rank == 0 || in_ragged(x, e->dataset->path))
      continue;
    count_rows(&c, e->dataset->path, sn__h5_column_info_of(e->column)->rows);
  }
  if (!c.differ) return SN_OK;
  return note(
      x, sn__format("row counts differ, and what trains together needs one row per example: %s",
                    c.words));
}

static sn_status inspect_all(sn__inspection *x, double deadline) {
  const sn__h5_report *r = sn__h5_file_report(x->file);
  SN_TRY(judge_report(x));
  x->entries = sn__calloc(r->dataset_count + 1, sizeof *x->entries);
  if (x->entries == NULL) return sn_status_out_of_memory();
  sn__h5_reader *reader = NULL;
  SN_TRY(sn__h5_reader_create(0, &reader));
  sn_status s = SN_OK;
  size_t unseen = 0;
  for (size_t i = 0; i < r->dataset_count && s == SN_OK; ++i) {
    sn__inspect_entry *e = &x->entries[x->entry_count++];
    double left = deadline - sn__h5_now();
    double share = left / (double)(r->dataset_count - i);
    e->dataset = &r->datasets[i];
    if (left <= 0) { /* the rest is listed, not looked into */
      unseen++;
      continue;
    }
    x->file->limits.idle_seconds = left < CONVERSION_SECONDS ? fmax(left, 0.2) : CONVERSION_SECONDS;
    x->file->limits.total_seconds = fmax(left, 0.2);
    /* Early ones may take what later ones are not likely to need. */
    s = inspect_entry(x, e, reader, sn__h5_now() + fmax(share, left / 4));
  }
  for (size_t i = 0; i < r->group_count && s == SN_OK && sn__h5_now() < deadline; ++i)
    s = inspect_group(x, r->groups[i], reader);
  if (s == SN_OK && unseen > 0)
    s = note(x,
             sn__format("the values of %zu datasets were not looked at, for lack of time", unseen));
  if (s == SN_OK) s = judge_rows(x);
  sn__h5_reader_free(reader);
  return s;
}

sn_status sn__inspect(const char *path, const sn__inspect_options *options,
                      sn__inspection **out_inspection) {
  double seconds = options != NULL && options->seconds > 0 ? options->seconds : DEFAULT_SECONDS;
  double deadline = sn__h5_now() + seconds;
  sn__inspection *x = sn__calloc(1, sizeof *x);
  if (x == NULL) return sn_status_out_of_memory();
  sn_status s = sn__h5_file_open_partial(path, NULL, &x->file);
  if (s == SN_OK) s = inspect_all(x, deadline);
  if (s != SN_OK) {
    sn__inspection_free(x);
    return s;
  }
  *out_inspection = x;
  return SN_OK;
}

static void free_lines(char **lines, size_t count) {
  for (size_t i = 0; i < count; ++i)
    sn__free(lines[i]);
  sn__free(lines);
}

void sn__inspection_free(sn__inspection *x) {
  if (x == NULL) return;
  for (size_t i = 0; i < x->entry_count; ++i) {
    sn__column_stats_clear(&x->entries[i].stats);
    sn__h5_column_free(x->entries[i].column);
  }
  sn__free(x->entries);
  for (size_t i = 0; i < x->ragged_count; ++i) {
    sn__free(x->ragged[i].path);
    sn__free(x->ragged[i].problem);
  }
  sn__free(x->ragged);
  free_lines(x->stops, x->stop_count);
  free_lines(x->notes, x->note_count);
  sn__h5_file_free(x->file);
  sn__free(x);
}

sn_status sn__inspect_file(const char *path, bool json, char **out_text) {
  *out_text = NULL;
  sn__inspection *x = NULL;
  SN_TRY(sn__inspect(path, NULL, &x));
  assert(x != NULL);
  sn_status s = json ? sn__inspection_json(x, out_text) : sn__inspection_text(x, out_text);
  const sn__h5_report *r = sn__h5_file_report(x->file);
  if (s == SN_OK && r->failure != NULL) s = sn_status_make(r->failure_code, "%s", r->failure);
  sn__inspection_free(x);
  return s;
}
