/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "io/h5_inspect.h"

#define SLICE_ELEMENTS ((int64_t)1 << 18)
#define WIDEST_ROW     ((int64_t)1 << 24)
#define MOST_CLASSES   ((size_t)1024)

double sn__h5_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sn__column_stats_clear(sn__column_stats *s) {
  for (size_t i = 0; i < s->class_count; ++i)
    sn__free(s->classes[i].name);
  sn__free(s->classes);
  sn__free(s->problem);
  memset(s, 0, sizeof *s);
}

/* ---- classes ------------------------------------------------------------------------------- */

typedef struct tally {
  sn__column_stats *stats;
  size_t capacity;
  uint32_t slots[4 * MOST_CLASSES]; /* open addressing: 1 + index into classes */
} tally;

static uint64_t hash_of(const void *bytes, size_t size) {
  const uint8_t *p = bytes;
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; ++i)
    h = (h ^ p[i]) * 0x100000001b3u;
  return h ^ h >> 32;
}

/* Counts one more of an integer (name NULL) or of a string. */
static bool count_class(tally *t, int64_t value, const char *name, size_t length) {
  sn__column_stats *s = t->stats;
  if (s->many_classes) return true;
  uint64_t h = name != NULL ? hash_of(name, length) : hash_of(&value, sizeof value);
  size_t at = (size_t)(h % (4 * MOST_CLASSES));
  for (; t->slots[at] != 0; at = (at + 1) % (4 * MOST_CLASSES)) {
    sn__class_count *c = &s->classes[t->slots[at] - 1];
    bool same = name != NULL ? strlen(c->name) == length && memcmp(c->name, name, length) == 0
                             : c->value == value;
    if (same) {
      c->count++;
      return true;
    }
  }
  if (s->class_count == MOST_CLASSES) {
    s->many_classes = true;
    return true;
  }
  if (!sn__grow((void **)&s->classes, &t->capacity, s->class_count + 1, sizeof *s->classes))
    return false;
  char *copy = name != NULL ? sn__strndup(name, length) : NULL;
  if (name != NULL && copy == NULL) return false;
  s->classes[s->class_count++] = (sn__class_count){copy, value, 1};
  t->slots[at] = (uint32_t)s->class_count;
  return true;
}

static int by_count(const void *a, const void *b) {
  const sn__class_count *x = a, *y = b;
  if (x->count != y->count) return (x->count < y->count) - (x->count > y->count);
  return (x->value > y->value) - (x->value < y->value);
}

static void drop_classes(sn__column_stats *s) {
  for (size_t i = 0; i < s->class_count; ++i)
    sn__free(s->classes[i].name);
  s->class_count = 0;
}

static sn_status name_classes(const sn__h5_column *c, sn__column_stats *s) {
  const sn__h5_type *t = &sn__h5_column_dataset(c)->type;
  for (size_t i = 0; i < s->class_count && t->name_count > 0; ++i)
    for (size_t k = 0; k < t->name_count; ++k)
      if (t->names[k].value == s->classes[i].value && s->classes[i].name == NULL) {
        s->classes[i].name = sn__strdup(t->names[k].name);
        if (s->classes[i].name == NULL) return sn_status_out_of_memory();
      }
  return SN_OK;
}

/* ---- numbers ------------------------------------------------------------------------------- */

typedef struct sums {
  double shift, sum, squares; /* of (x - shift), shift being the first finite value */
  int64_t finite;
  double *low, *high; /* per column, or NULL */
} sums;

static void see(sn__column_stats *s, sums *m, double v, int64_t row, int64_t column) {
  if (!isfinite(v)) {
    if (isnan(v))
      s->nan++;
    else
      s->inf++;
    if (s->bad_row < 0) {
      s->bad_row = row;
      s->bad_column = column;
    }
    return;
  }
  if (m->finite++ == 0) {
    m->shift = s->min = s->max = v;
  }
  if (v < s->min) s->min = v;
  if (v > s->max) s->max = v;
  if (v != trunc(v)) s->integral = false;
  double d = v - m->shift;
  m->sum += d;
  m->squares += d * d;
  if (m->low != NULL) {
    if (v < m->low[column]) m->low[column] = v;
    if (v > m->high[column]) m->high[column] = v;
  }
}

static void finish_sums(sn__column_stats *s, sums *m, int64_t width) {
  if (m->finite == 0) {
    s->min = s->max = s->mean = s->std = NAN;
    s->integral = false;
    return;
  }
  double n = (double)m->finite, mean = m->sum / n, variance = m->squares / n - mean * mean;
  s->mean = m->shift + mean;
  s->std = variance > 0 ? sqrt(variance) : 0;
  for (int64_t j = 0; m->low != NULL && s->rows_seen > 1 && j < width; ++j)
    if (m->low[j] == m->high[j]) {
      if (s->constant_columns++ == 0) s->constant_column = j;
    }
}

static bool is_label(double v) {
  return v == trunc(v) && fabs(v) <= 0x1p53;
}

static sn_status see_slice(const sn__h5_column_info *info, sn__column_stats *s, sums *m, tally *t,
                           const double *values, int64_t row0, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < info->width; ++j) {
      double v = values[i * info->width + j];
      see(s, m, v, row0 + i, j);
      if (info->width != 1 || s->many_classes || !isfinite(v)) continue;
      if (!is_label(v))
        s->many_classes = true; /* real numbers, no classes */
      else if (!count_class(t, (int64_t)v, NULL, 0))
        return sn_status_out_of_memory();
    }
  s->count += rows * info->width;
  s->rows_seen += rows;
  return SN_OK;
}

/* Takes the message of a failure; lack of memory stays a status. */
static sn_status take_problem(sn__column_stats *s, sn_status status) {
  if (sn_status_code(status) == SN_CODE_OUT_OF_MEMORY) return status;
  s->problem = sn__strdup(sn_status_message(status));
  sn_status_free(status);
  return s->problem != NULL ? SN_OK : sn_status_out_of_memory();
}

static sn_status read_numbers(const sn__h5_column *c, sn__h5_reader *r, double deadline,
                              sn__column_stats *s, tally *t) {
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  int64_t width = info->width, step = width > 0 ? SLICE_ELEMENTS / width : 1;
  if (width > WIDEST_ROW || width == 0 || info->rows == 0) {
    s->min = s->max = s->mean = s->std = NAN;
    s->integral = false;
    return SN_OK;
  }
  if (step == 0) step = 1;
  sums m = {0};
  sn_status status = SN_OK;
  double *values = sn__calloc((size_t)(step * width), sizeof *values);
  bool columns = width <= 65536;
  if (columns) {
    m.low = sn__calloc((size_t)width, 2 * sizeof *m.low);
    if (m.low != NULL) m.high = m.low + width;
    for (int64_t j = 0; m.low != NULL && j < width; ++j) {
      m.low[j] = INFINITY;
      m.high[j] = -INFINITY;
    }
  }
  if (values == NULL || (columns && m.low == NULL)) {
    sn__free(values);
    sn__free(m.low);
    return sn_status_out_of_memory();
  }
  for (int64_t row = 0, n; status == SN_OK && row < info->rows; row += n) {
    if (row > 0 && sn__h5_now() > deadline) break;
    n = info->rows - row < step ? info->rows - row : step;
    status = sn__h5_column_read(c, r, row, n, SN_F64, values);
    if (status != SN_OK) {
      status = take_problem(s, status);
      break;
    }
    status = see_slice(info, s, &m, t, values, row, n);
  }
  if (status == SN_OK) finish_sums(s, &m, width);
  sn__free(values);
  sn__free(m.low);
  return status;
}

/* ---- strings and lengths ------------------------------------------------------------------- */

static void see_length(sn__column_stats *s, int64_t length, int64_t seen) {
  if (seen == 0 || length < s->length_min) s->length_min = length;
  if (seen == 0 || length > s->length_max) s->length_max = length;
  s->empty_rows += length == 0;
  s->length_mean += ((double)length - s->length_mean) / (double)(seen + 1);
}

static sn_status read_strings(const sn__h5_column *c, sn__h5_reader *r, double deadline,
                              sn__column_stats *s, tally *t) {
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  int64_t step = SLICE_ELEMENTS / 16 / (info->width > 0 ? info->width : 1);
  if (info->item_bytes > 64) step = step * 64 / (int64_t)info->item_bytes;
  if (step == 0) step = 1;
  for (int64_t row = 0, n; row < info->rows && info->width <= SLICE_ELEMENTS; row += n) {
    if (row > 0 && sn__h5_now() > deadline) break;
    n = info->rows - row < step ? info->rows - row : step;
    sn__h5_strings strings = {0};
    sn_status status = sn__h5_column_strings(c, r, row, n, &strings);
    if (status != SN_OK) return take_problem(s, status);
    bool ok = true;
    for (int64_t i = 0; i < strings.count && ok; ++i) {
      int64_t length = strings.offsets[i + 1] - strings.offsets[i];
      see_length(s, length, s->count++);
      ok = count_class(t, 0, strings.bytes + strings.offsets[i], (size_t)length);
    }
    sn__h5_strings_clear(&strings);
    if (!ok) return sn_status_out_of_memory();
    s->rows_seen += n;
  }
  s->missing = s->empty_rows;
  return SN_OK;
}

static sn_status read_ragged(const sn__h5_column *c, sn__h5_reader *r, double deadline,
                             sn__column_stats *s, tally *t) {
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  int64_t width = info->width > 0 ? info->width : 1, step = SLICE_ELEMENTS / width, seen = 0;
  if (step == 0) return SN_OK;
  int64_t *offsets = sn__calloc((size_t)(step * width) + 1, sizeof *offsets);
  if (offsets == NULL) return sn_status_out_of_memory();
  s->ragged = true;
  sn_status status = SN_OK;
  for (int64_t row = 0, n; row < info->rows && status == SN_OK; row += n) {
    if (row > 0 && sn__h5_now() > deadline) break;
    n = info->rows - row < step ? info->rows - row : step;
    status = sn__h5_column_offsets(c, row, n, offsets);
    for (int64_t i = 0; status == SN_OK && i < n * width; ++i)
      see_length(s, offsets[i + 1] - offsets[i], seen++);
  }
  sn__free(offsets);
  if (status != SN_OK) return take_problem(s, status);
  SN_TRY(read_numbers(sn__h5_column_values(c), r, deadline, s, t));
  s->rows_seen = seen / width;
  drop_classes(s); /* elements of sequences are no labels */
  s->constant_columns = 0;
  return SN_OK;
}

sn_status sn__column_stats_read(const sn__h5_column *c, sn__h5_reader *r, double deadline,
                                sn__column_stats *out) {
  memset(out, 0, sizeof *out);
  out->bad_row = out->bad_column = -1;
  out->integral = true;
  tally *t = sn__calloc(1, sizeof *t);
  if (t == NULL) return sn_status_out_of_memory();
  t->stats = out;
  sn_status status;
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  if (info->kind == SN__H5_COLUMN_STRING)
    status = read_strings(c, r, deadline, out, t);
  else if (info->kind == SN__H5_COLUMN_RAGGED)
    status = read_ragged(c, r, deadline, out, t);
  else
    status = read_numbers(c, r, deadline, out, t);
  sn__free(t);
  out->whole = out->rows_seen == info->rows;
  if (out->many_classes) drop_classes(out);
  if (out->class_count > 0) qsort(out->classes, out->class_count, sizeof *out->classes, by_count);
  if (status == SN_OK) status = name_classes(c, out);
  if (status != SN_OK) sn__column_stats_clear(out);
  return status;
}
