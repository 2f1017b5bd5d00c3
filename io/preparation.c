/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of classes and ids, and what a preparation tells about itself. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "io/preparation_impl.h"

/* ---- tables ---------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b, void *keys) {
  const sn__key *k = keys;
  return sn__key_compare(&k[*(const int32_t *)a], &k[*(const int32_t *)b]);
}

int64_t sn__table_find(const sn__table *t, bool text, int64_t number, const char *name) {
  const sn__key wanted = {text, number, (char *)(uintptr_t)name};
  int64_t low = 0, high = t->count;
  while (low < high) {
    int64_t mid = low + (high - low) / 2;
    if (sn__key_compare(&t->keys[t->sorted[mid]], &wanted) < 0)
      low = mid + 1;
    else
      high = mid;
  }
  if (low == t->count || sn__key_compare(&t->keys[t->sorted[low]], &wanted) != 0) return -1;
  return t->sorted[low];
}

/* Numbers close together are looked up by position. */
static sn_status make_direct(sn__table *t) {
  if (t->count == 0 || t->keys[t->sorted[t->count - 1]].text) return SN_OK;
  int64_t low = t->keys[t->sorted[0]].number, high = t->keys[t->sorted[t->count - 1]].number;
  uint64_t span = (uint64_t)high - (uint64_t)low;
  if (span >= (uint64_t)t->count * 16 + 4096) return SN_OK;
  t->direct = sn__calloc((size_t)span + 1, sizeof *t->direct);
  if (t->direct == NULL) return sn_status_out_of_memory();
  t->low = low;
  t->span = (int64_t)span + 1;
  for (int64_t k = 0; k < t->count; ++k)
    t->direct[t->keys[k].number - low] = (int32_t)k + 1;
  return SN_OK;
}

sn_status sn__table_finish(sn__table *t) {
  t->sorted = sn__calloc((size_t)t->count + 1, sizeof *t->sorted);
  if (t->sorted == NULL) return sn_status_out_of_memory();
  for (int64_t k = 0; k < t->count; ++k)
    t->sorted[k] = (int32_t)k;
  qsort_r(t->sorted, (size_t)t->count, sizeof *t->sorted, by_key, t->keys);
  for (int64_t i = 1; i < t->count; ++i) {
    const sn__key *a = &t->keys[t->sorted[i - 1]], *b = &t->keys[t->sorted[i]];
    if (sn__key_compare(a, b) == 0)
      return sn_status_make(SN_CODE_CONFIG, "class '%s' is there twice: name each once", b->name);
  }
  return make_direct(t);
}

void sn__table_clear(sn__table *t) {
  for (int64_t k = 0; t->keys != NULL && k < t->count; ++k)
    sn__free(t->keys[k].name);
  sn__free(t->keys);
  sn__free(t->rows);
  sn__free(t->sorted);
  sn__free(t->direct);
  memset(t, 0, sizeof *t);
}

/* ---- from a dataset's keys to classes -------------------------------------------------------- */

sn_status sn__preparation_match(const sn_preparation *p, const sn__field_data *fd,
                                const sn__prep_field **out_field) {
  const sn_field *f = &fd->field;
  for (size_t i = 0; i < p->n_fields; ++i) {
    const sn_field *g = &p->fields[i].field;
    if (strcmp(g->name, f->name) != 0) continue;
    if (g->kind != f->kind || g->role != f->role || g->ids != f->ids)
      return sn_status_make(SN_CODE_INVALID,
                            "field '%s' is of another kind than the one that was fitted", f->name);
    int64_t width = fd->coded || fd->ids ? 0 : fd->width;
    if (width != p->fields[i].facts.features)
      return sn_status_make(SN_CODE_DATA,
                            "%s: %s has %lld columns; the model was trained on %lld: give data "
                            "with the same columns",
                            sn__h5_file_path(fd->sources[0].file), f->path, (long long)width,
                            (long long)p->fields[i].facts.features);
    const sn_field_facts *facts = &p->fields[i].facts;
    if (fd->image[0] != facts->height || fd->image[1] != facts->width)
      return sn_status_make(SN_CODE_DATA,
                            "%s: %s holds images of %lld x %lld; the model was trained on %lld x "
                            "%lld: give images of that size",
                            sn__h5_file_path(fd->sources[0].file), f->path, (long long)fd->image[0],
                            (long long)fd->image[1], (long long)facts->height,
                            (long long)facts->width);
    *out_field = &p->fields[i];
    return SN_OK;
  }
  return sn_status_make(SN_CODE_INVALID, "field '%s' was not fitted", f->name);
}

sn_status sn__map_keys(const sn__prep_field *pf, const sn__field_data *fd, int32_t **out_map) {
  int32_t *map = sn__calloc((size_t)fd->keys.count + 1, sizeof *map);
  if (map == NULL) return sn_status_out_of_memory();
  for (int64_t i = 0; i < fd->keys.count; ++i) {
    const sn__key *k = &fd->keys.items[i];
    map[i] = (int32_t)sn__table_find(&pf->table, k->text, k->number, k->name);
  }
  *out_map = map;
  return SN_OK;
}

/* Whether training had what this key looks like as text for a number, or a number for text. */
static bool stored_otherwise(const sn__prep_field *pf, const sn__key *k) {
  int64_t number;
  if (!k->text) return sn__table_find(&pf->table, true, 0, k->name) >= 0;
  return sn__parse_whole(k->name, &number) && sn__table_find(&pf->table, false, number, NULL) >= 0;
}

sn_status sn__check_codes(const sn__prep_field *pf, const sn__field_data *fd, size_t n_sources,
                          const int32_t *map, const int64_t *rows, int64_t n_rows) {
  bool label = pf->field.role == SN_FIELD_CLASS;
  for (int64_t i = 0; i < n_rows; ++i) {
    int64_t row = rows != NULL ? rows[i] : i;
    int32_t code = fd->codes[row];
    if (code < 0 || map[code] >= 0) continue;
    char where[600];
    sn__field_where(fd, n_sources, row, -1, where, sizeof where);
    const char *name = fd->keys.items[code].name;
    if (stored_otherwise(pf, &fd->keys.items[code]))
      return sn_status_make(SN_CODE_DATA,
                            "%s: '%s' is %s here and was %s in the training rows: store both alike",
                            where, name, fd->keys.items[code].text ? "text" : "a number",
                            fd->keys.items[code].text ? "a number" : "text");
    if (label && pf->field.n_classes > 0)
      return sn_status_make(SN_CODE_DATA,
                            "%s: '%s' is none of the %" PRId64 " classes that labels: names: add "
                            "it there, or take the row out",
                            where, name, pf->table.count);
    return sn_status_make(SN_CODE_DATA,
                          "%s: %s '%s' does not occur in the training rows (%" PRId64
                          " do): take the row out, or train on data that has it",
                          where, label ? "class" : "category", name, pf->table.count);
  }
  return SN_OK;
}

sn_status sn__unknown_id(const sn__field_data *fd, size_t n_sources, int64_t row, int64_t step,
                         int64_t id) {
  char where[600];
  sn__field_where(fd, n_sources, row, step, where, sizeof where);
  return sn_status_make(SN_CODE_DATA,
                        "%s: id %" PRId64 " does not occur in the training rows: take the row "
                        "out, or train on data that has it",
                        where, id);
}

sn_dtype sn__read_dtype(const sn__field_data *fd, const sn__source *s, bool normalised) {
  if (fd->ids) return SN_I64;
  sn__h5_kind k = sn__h5_column_info_of(s->items)->stored;
  bool wide = k == SN__H5_F64 || k == SN__H5_I32 || k == SN__H5_U32 || k == SN__H5_I64 ||
              k == SN__H5_U64; /* more than a float's 24 bits: normalised before rounding */
  return normalised && wide ? SN_F64 : SN_F32;
}

sn_status sn__prep_field_scale(sn__prep_field *pf) {
  int64_t n = pf->facts.features;
  pf->scale = sn__calloc((size_t)n, sizeof *pf->scale);
  if (pf->scale == NULL) return sn_status_out_of_memory();
  for (int64_t j = 0; j < n; ++j)
    pf->scale[j] = pf->deviation[j] > 1e-300 ? 1 / pf->deviation[j] : 0;
  return SN_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

sn_status sn__rows_check(const sn_dataset *d, const int64_t *rows, int64_t n_rows) {
  for (int64_t i = 0; i < n_rows; ++i)
    if (rows[i] < (i > 0 ? rows[i - 1] + 1 : 0) || rows[i] >= d->rows)
      return sn_status_make(SN_CODE_INVALID,
                            "row numbers must ascend and lie in 0..%" PRId64 "; [%" PRId64
                            "] is %" PRId64,
                            d->rows - 1, i, rows[i]);
  if (n_rows < 1) return sn_status_make(SN_CODE_INVALID, "there are no rows to read");
  return SN_OK;
}

sn_status sn__rows_all(const sn_dataset *d, const int64_t **rows, int64_t *n_rows,
                       int64_t **out_owned) {
  *out_owned = NULL;
  if (*rows != NULL) return sn__rows_check(d, *rows, *n_rows);
  int64_t *all = sn__calloc((size_t)d->rows, sizeof *all);
  if (all == NULL) return sn_status_out_of_memory();
  for (int64_t i = 0; i < d->rows; ++i)
    all[i] = i;
  *rows = *out_owned = all;
  *n_rows = d->rows;
  return SN_OK;
}

/* ---- accessors ------------------------------------------------------------------------------- */

void sn_preparation_free(sn_preparation *p) {
  if (p == NULL) return;
  for (size_t i = 0; p->fields != NULL && i < p->n_fields; ++i) {
    sn__prep_field *f = &p->fields[i];
    sn__free(f->mean);
    sn__free(f->deviation);
    sn__free(f->scale);
    sn__free(f->class_weights);
    sn__table_clear(&f->table);
  }
  sn__free(p->fields);
  sn__arena_free(&p->arena);
  sn__free(p);
}

size_t sn_preparation_field_count(const sn_preparation *p) {
  return p->n_fields;
}

const sn_field *sn_preparation_field(const sn_preparation *p, size_t i) {
  return i < p->n_fields ? &p->fields[i].field : NULL;
}

const sn_field_facts *sn_preparation_facts(const sn_preparation *p, size_t i) {
  return i < p->n_fields ? &p->fields[i].facts : NULL;
}

const char *sn_preparation_class_name(const sn_preparation *p, size_t field, int64_t k) {
  if (field >= p->n_fields || k < 0 || k >= p->fields[field].table.count) return NULL;
  return p->fields[field].table.keys[k].name;
}

const double *sn_preparation_mean(const sn_preparation *p, size_t field) {
  return field < p->n_fields ? p->fields[field].mean : NULL;
}

const double *sn_preparation_deviation(const sn_preparation *p, size_t field) {
  return field < p->n_fields ? p->fields[field].deviation : NULL;
}
