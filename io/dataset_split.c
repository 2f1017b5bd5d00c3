/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows train and which validate. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "io/dataset_impl.h"

enum { KEY_SPLIT = 0x5350 };

typedef struct stratum {
  int64_t *rows; /* in random order */
  int64_t count, valid;
  double rest; /* of the share that whole rows leave */
  int64_t number;
} stratum;

void sn_row_split_free(sn_row_split *s) {
  if (s == NULL) return;
  sn__free(s->train);
  sn__free(s->valid);
  sn__free(s);
}

static const sn__field_data *class_field(const sn_dataset *d) {
  for (size_t i = 0; i < d->n_fields; ++i)
    if (d->fields[i].field.role == SN_FIELD_CLASS) return &d->fields[i];
  return NULL;
}

static int by_rest(const void *a, const void *b) {
  const stratum *x = a, *y = b;
  if (x->rest != y->rest) return x->rest < y->rest ? 1 : -1;
  return (x->number > y->number) - (x->number < y->number);
}

/* Rows grouped by class; missing labels are a class of their own. */
static sn_status make_strata(const sn_dataset *d, const sn__field_data *by, uint64_t seed,
                             int64_t *rows, stratum *strata, size_t n) {
  int64_t at = 0;
  for (int64_t i = 0; i < d->rows; ++i)
    ++strata[by != NULL ? by->codes[i] + 1 : 0].count;
  for (size_t k = 0; k < n; ++k) {
    strata[k].rows = rows + at;
    at += strata[k].count;
    strata[k].number = (int64_t)k;
    strata[k].count = 0;
  }
  for (int64_t i = 0; i < d->rows; ++i) {
    stratum *s = &strata[by != NULL ? by->codes[i] + 1 : 0];
    s->rows[s->count++] = i;
  }
  int64_t *order = sn__calloc((size_t)d->rows * 2, sizeof *order);
  if (order == NULL) return sn_status_out_of_memory();
  for (size_t k = 0; k < n; ++k) {
    stratum *s = &strata[k];
    int64_t *copy = order + d->rows;
    sn__rng_permutation(seed, ((uint64_t)KEY_SPLIT << 32) + k, s->count, order);
    memcpy(copy, s->rows, (size_t)s->count * sizeof *copy);
    for (int64_t i = 0; i < s->count; ++i)
      s->rows[i] = copy[order[i]];
  }
  sn__free(order);
  return SN_OK;
}

/* The largest remainders get the rows that rounding down leaves. A class's only row trains. */
static void share_out(stratum *strata, size_t n, double fraction, int64_t wanted) {
  int64_t given = 0;
  for (size_t k = 0; k < n; ++k) {
    stratum *s = &strata[k];
    double share = fraction * (double)s->count;
    s->valid = (int64_t)share;
    s->rest = s->count > 1 ? share - (double)s->valid : -1;
    given += s->valid;
  }
  qsort(strata, n, sizeof *strata, by_rest);
  for (size_t k = 0; k < n && given < wanted && strata[k].rest > 0; ++k) {
    ++strata[k].valid;
    ++given;
  }
}

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static sn_status draw(const sn_dataset *d, double fraction, uint64_t seed, bool stratify,
                      sn_row_split *split, int64_t wanted) {
  const sn__field_data *by = stratify ? class_field(d) : NULL;
  size_t n = by != NULL ? (size_t)by->keys.count + 1 : 1;
  stratum *strata = sn__calloc(n, sizeof *strata);
  int64_t *rows = sn__calloc((size_t)d->rows, sizeof *rows);
  sn_status s = strata == NULL || rows == NULL ? sn_status_out_of_memory()
                                               : make_strata(d, by, seed, rows, strata, n);
  if (strata != NULL && rows != NULL && s == SN_OK) {
    share_out(strata, n, fraction, wanted);
    for (size_t k = 0; k < n; ++k)
      for (int64_t i = 0; i < strata[k].count; ++i) {
        if (i < strata[k].valid)
          split->valid[split->n_valid++] = strata[k].rows[i];
        else
          split->train[split->n_train++] = strata[k].rows[i];
      }
    qsort(split->valid, (size_t)split->n_valid, sizeof *split->valid, ascending);
    qsort(split->train, (size_t)split->n_train, sizeof *split->train, ascending);
  }
  sn__free(strata);
  sn__free(rows);
  return s;
}

sn_status sn_row_split_create(const sn_dataset *d, double fraction, uint64_t seed, bool stratify,
                              sn_row_split **out_split) {
  if (!(fraction >= 0 && fraction < 1))
    return sn_status_make(SN_CODE_INVALID, "validation fraction %g: 0 or more and less than 1",
                          fraction);
  if (fraction > 0 && d->rows < 2)
    return sn_status_make(
        SN_CODE_DATA,
        "%s: one row cannot be split into training and validation: give more rows, or "
        "a validation fraction of 0",
        sn__h5_file_path(d->files[0]));
  sn_row_split *split = sn__calloc(1, sizeof *split);
  if (split != NULL) {
    split->train = sn__calloc((size_t)d->rows, sizeof *split->train);
    split->valid = sn__calloc((size_t)d->rows, sizeof *split->valid);
  }
  if (split == NULL || split->train == NULL || split->valid == NULL) {
    sn_row_split_free(split);
    return sn_status_out_of_memory();
  }
  int64_t wanted = fraction > 0 ? llround(fraction * (double)d->rows) : 0;
  if (fraction > 0 && wanted == 0) wanted = 1;
  if (wanted == d->rows) --wanted;
  sn_status s = SN_OK;
  bool stream = false;
  for (size_t i = 0; i < d->n_fields; ++i)
    stream |= d->fields[i].field.kind == SN_FIELD_STREAM;
  if (stream || wanted == 0) { /* a stream's future must not train what judges its past */
    for (int64_t i = 0; i < d->rows; ++i)
      if (i < d->rows - wanted)
        split->train[split->n_train++] = i;
      else
        split->valid[split->n_valid++] = i;
  } else {
    s = draw(d, fraction, seed, stratify, split, wanted);
  }
  if (s != SN_OK) {
    sn_row_split_free(split);
    return s;
  }
  *out_split = split;
  return SN_OK;
}
