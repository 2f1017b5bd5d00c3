/* SPDX-License-Identifier: Apache-2.0 */
/* The check of all data before the first step. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "io/preparation_impl.h"

#define HEAVY 50.0 /* deviations from the mean */

typedef struct check {
  const sn_dataset *dataset;
  const sn__field_data *fd;
  const sn__prep_field *pf;
  const int64_t *rows;
  int64_t n_rows;
  sn__cuts cuts;
  sn_warn_fn warn;
  void *user;
  pthread_mutex_t lock;
  int64_t heavy, heavy_row, heavy_column; /* numbers far out; the first of them */
  double heavy_most;
} check;

static void warn(const check *c, const char *words) {
  if (c->warn == NULL) return;
  char line[1000];
  snprintf(line, sizeof line, "%s: dataset %s: %s", sn__h5_file_path(c->fd->sources[0].file),
           c->fd->field.path, words);
  c->warn(c->user, line);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static double number_at(sn_dtype dtype, const void *values, int64_t i) {
  return dtype == SN_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static bool row_missing(const check *c, sn_dtype dtype, const void *values, int64_t row) {
  if (c->fd->field.missing == NULL) return false;
  double missing = dtype == SN_F32 ? (double)(float)c->fd->missing : c->fd->missing;
  for (int64_t j = 0; j < c->fd->width; ++j)
    if (sn__number_missing(number_at(dtype, values, row * c->fd->width + j), missing)) return true;
  return false;
}

static sn_status bad_number(const check *c, const sn__cut *cut, int64_t at, double v,
                            sn_dtype dtype) {
  int64_t row, step;
  char where[600];
  sn__cut_locate(c->fd, cut, c->rows, at / c->fd->width, &row, &step);
  sn__field_where(c->fd, c->dataset->n_files, row, step, where, sizeof where);
  const char *what = "is NaN: replace it or take the row out";
  char words[120];
  if (v == v && c->fd->field.role == SN_FIELD_MULTILABEL && isfinite(v)) {
    snprintf(words, sizeof words, "is %.9g: a label of task multilabel is 0 or 1", v);
    what = words;
  } else if (v == v) {
    bool wide = dtype == SN_F32 &&
                sn__h5_column_info_of(c->fd->sources[cut->source].items)->stored == SN__H5_F64;
    what = wide ? "is infinite or too large for f32: replace it, scale it, or take the row out"
                : "is infinite: replace it or take the row out";
  }
  return sn_status_make(SN_CODE_DATA, "%s, column %" PRId64 " %s", where, at % c->fd->width, what);
}

/* The first number that must not be there; the count when all may. */
static int64_t first_bad(const check *c, sn_dtype dtype, const void *values, int64_t rows) {
  int64_t width = c->fd->width, count = rows * width;
  bool labels = c->fd->field.role == SN_FIELD_MULTILABEL;
  if (!labels && c->fd->field.missing == NULL) return sn__first_nonfinite(dtype, values, count);
  for (int64_t i = 0; i < rows; ++i) {
    if (row_missing(c, dtype, values, i)) continue;
    for (int64_t j = i * width; j < (i + 1) * width; ++j) {
      double v = number_at(dtype, values, j);
      if (!isfinite(v) || (labels && v != 0 && v != 1)) return j;
    }
  }
  return count;
}

static void find_heavy(check *c, const sn__cut *cut, sn_dtype dtype, const void *values,
                       int64_t rows) {
  int64_t width = c->fd->width, count = 0, first = -1;
  double most = 0;
  const double *mean = c->pf->mean, *scale = c->pf->scale;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) {
      double z = (number_at(dtype, values, i * width + j) - mean[j]) * scale[j];
      if (!(fabs(z) > HEAVY)) continue;
      if (row_missing(c, dtype, values, i)) continue;
      if (count++ == 0) first = i * width + j;
      if (fabs(z) > most) most = fabs(z);
    }
  if (count == 0) return;
  int64_t row, step;
  sn__cut_locate(c->fd, cut, c->rows, first / width, &row, &step);
  pthread_mutex_lock(&c->lock);
  if (c->heavy == 0 || row < c->heavy_row) {
    c->heavy_row = row;
    c->heavy_column = first % width;
  }
  c->heavy += count;
  if (most > c->heavy_most) c->heavy_most = most;
  pthread_mutex_unlock(&c->lock);
}

static sn_status check_cut(void *arg, int64_t index, sn__reading *reading) {
  check *c = arg;
  const sn__cut *cut = &c->cuts.items[index];
  sn_dtype dtype = sn__read_dtype(c->fd, &c->fd->sources[cut->source], c->pf->mean != NULL);
  void *values;
  size_t size = (size_t)(cut->elements * c->fd->width) * sn_dtype_size(dtype);
  SN_TRY(sn__reading_need(reading, 2, size, &values));
  SN_TRY(sn__field_read(c->fd, cut, c->rows, reading, dtype, values));
  if (c->fd->ids) {
    for (int64_t i = 0; i < cut->elements; ++i) {
      int64_t id = ((int64_t *)values)[i], row, step;
      if (sn__table_id(&c->pf->table, id) >= 0) continue;
      sn__cut_locate(c->fd, cut, c->rows, i, &row, &step);
      return sn__unknown_id(c->fd, c->dataset->n_files, row, step, id);
    }
    return SN_OK;
  }
  int64_t bad = first_bad(c, dtype, values, cut->elements);
  if (bad < cut->elements * c->fd->width)
    return bad_number(c, cut, bad, number_at(dtype, values, bad), dtype);
  if (c->pf->mean != NULL) find_heavy(c, cut, dtype, values, cut->elements);
  return SN_OK;
}

static void warn_numbers(const check *c) {
  char words[400];
  int64_t constant = 0, first = -1;
  for (int64_t j = 0; c->pf->mean != NULL && j < c->fd->width; ++j)
    if (c->pf->deviation[j] == 0 && constant++ == 0) first = j;
  if (constant > 0) {
    snprintf(words, sizeof words,
             constant > 1
                 ? "column %" PRId64 " and others never change in the training rows (%" PRId64
                   " of %" PRId64 "): they become 0"
                 : "column %" PRId64 " never changes in the training rows (%" PRId64 " of %" PRId64
                   "): it becomes 0",
             first, constant, c->fd->width);
    warn(c, words);
  }
  if (c->heavy > 0) {
    char where[600];
    sn__field_where(c->fd, c->dataset->n_files, c->heavy_row, -1, where, sizeof where);
    snprintf(words, sizeof words,
             "heavy tail: %" PRId64 " numbers lie more than %g deviations from the mean (the first "
             "in row %" PRId64 ", column %" PRId64 "; the farthest %.4g): consider a logarithm, "
             "clip_norm, or loss: huber",
             c->heavy, HEAVY, c->heavy_row, c->heavy_column, c->heavy_most);
    warn(c, words);
  }
}

/* ---- codes ----------------------------------------------------------------------------------- */

static sn_status check_codes(check *c) {
  int32_t *map = NULL;
  SN_TRY(sn__map_keys(c->pf, c->fd, &map));
  sn_status s = sn__check_codes(c->pf, c->fd, c->dataset->n_files, map, NULL, c->n_rows);
  sn__free(map);
  const sn__table *t = &c->pf->table;
  if (s != SN_OK || c->fd->field.role != SN_FIELD_CLASS) return s;
  char words[400];
  for (int64_t k = 0; k < t->count; ++k)
    if (t->rows[k] <= 1) {
      snprintf(words, sizeof words, "class '%.100s' has %s training row: it can hardly be learnt",
               t->keys[k].name, t->rows[k] == 1 ? "one" : "no");
      warn(c, words);
    }
  if (t->count == 1) {
    snprintf(words, sizeof words, "there is one class only ('%.100s'): nothing can be learnt",
             t->keys[0].name);
    warn(c, words);
  }
  return SN_OK;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static void warn_holes(const check *c) {
  for (size_t k = 0; k < c->dataset->n_files; ++k) {
    const sn__source *s = &c->fd->sources[k];
    const sn__h5_dataset *d = sn__h5_column_dataset(s->items);
    if (d->converted != NULL || d->layout != SN__H5_CHUNKED || d->chunk_count >= d->grid_count)
      continue;
    char words[200];
    snprintf(words, sizeof words,
             "%" PRIu64 " of its %" PRIu64 " chunks were never written and hold the fill value",
             d->grid_count - (uint64_t)d->chunk_count, d->grid_count);
    warn(c, words);
  }
}

static void warn_empty(const check *c) {
  if (c->fd->empty == 0) return;
  char words[200];
  snprintf(words, sizeof words, "%" PRId64 " of %" PRId64 " rows are empty: they encode to zeros",
           c->fd->empty, c->n_rows);
  warn(c, words);
}

static sn_status check_field(check *c, const sn_preparation *p) {
  SN_TRY(sn__preparation_match(p, c->fd, &c->pf));
  warn_holes(c);
  warn_empty(c);
  if (c->fd->coded) return check_codes(c);
  c->cuts.count = 0;
  c->heavy = 0;
  c->heavy_most = 0;
  SN_TRY(sn__field_cut(c->fd, c->dataset->n_files, c->rows, c->n_rows, &c->cuts));
  SN_TRY(sn__in_parts((int64_t)c->cuts.count, check_cut, c));
  warn_numbers(c);
  return SN_OK;
}

sn_status sn_dataset_check(const sn_dataset *d, const sn_preparation *p, sn_warn_fn warn_fn,
                           void *user) {
  int64_t *owned = NULL;
  check c = {.dataset = d, .warn = warn_fn, .user = user};
  SN_TRY(sn__rows_all(d, &c.rows, &c.n_rows, &owned));
  pthread_mutex_init(&c.lock, NULL);
  sn_status s = SN_OK;
  for (size_t i = 0; s == SN_OK && i < d->n_fields; ++i) {
    c.fd = &d->fields[i];
    s = check_field(&c, p);
  }
  pthread_mutex_destroy(&c.lock);
  sn__free(c.cuts.items);
  sn__free(owned);
  return s;
}
