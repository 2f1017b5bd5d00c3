/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a dataset: files, fields, and whether their rows agree. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/dataset_impl.h"

#define MOST_FIELDS 4096

/* ---- fields ---------------------------------------------------------------------------------- */

static sn_status copy_texts(sn__arena *arena, const char *const *from, size_t count,
                            const char *const **out) {
  *out = NULL;
  if (from == NULL || count == 0) return SN_OK;
  const char **copy = sn__arena_alloc(arena, count * sizeof *copy);
  if (copy == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    copy[i] = sn__arena_strdup(arena, from[i]);
    if (copy[i] == NULL) return sn_status_out_of_memory();
  }
  *out = copy;
  return SN_OK;
}

static sn_status copy_text(sn__arena *arena, const char *from, const char **out) {
  *out = NULL;
  if (from == NULL) return SN_OK;
  *out = sn__arena_strdup(arena, from);
  return *out != NULL ? SN_OK : sn_status_out_of_memory();
}

sn_status sn__field_copy(sn__arena *arena, const sn_field *from, sn_field *out) {
  *out = *from;
  SN_TRY(copy_text(arena, from->name, &out->name));
  SN_TRY(copy_text(arena, from->path, &out->path));
  SN_TRY(copy_text(arena, from->lengths, &out->lengths));
  SN_TRY(copy_text(arena, from->missing, &out->missing));
  SN_TRY(copy_texts(arena, from->classes, from->n_classes, &out->classes));
  SN_TRY(
      copy_texts(arena, from->class_weight_names, from->n_class_weights, &out->class_weight_names));
  out->class_weights = NULL;
  if (from->n_class_weights > 0) {
    double *weights = sn__arena_alloc(arena, from->n_class_weights * sizeof *weights);
    if (weights == NULL) return sn_status_out_of_memory();
    memcpy(weights, from->class_weights, from->n_class_weights * sizeof *weights);
    out->class_weights = weights;
  }
  return SN_OK;
}

bool sn__field_weighted(const sn_field *f) {
  return f->missing != NULL || f->balanced || f->n_class_weights > 0;
}

static bool is_class(const sn_field *f) {
  return f->role == SN_FIELD_CLASS || f->role == SN_FIELD_NEXT;
}

void sn__field_missing(const sn_field *f, double *out_number, bool *out_is_number) {
  *out_number = NAN;
  *out_is_number = false;
  if (f->missing == NULL) return;
  char *end;
  double v = strtod(f->missing, &end);
  *out_is_number = end != f->missing && *end == '\0';
  if (*out_is_number) *out_number = v;
}

sn_status sn__field_check(const sn_field *f) {
  if (f->name == NULL || f->name[0] == '\0' || f->path == NULL || f->path[0] == '\0')
    return sn_status_make(SN_CODE_INVALID, "a field has no name or no path: give both");
  bool stream = f->kind == SN_FIELD_STREAM;
  bool ragged = stream || f->kind == SN_FIELD_SEQUENCE || f->kind == SN_FIELD_SET;
  bool ids = stream || f->kind == SN_FIELD_CATEGORY || (ragged && f->ids) || is_class(f);
  if (f->kind > SN_FIELD_IMAGE || f->role > SN_FIELD_NEXT)
    return sn_status_make(SN_CODE_INVALID, "field '%s': no such kind or role", f->name);
  if (ids ? f->dtype != SN_I32 && f->dtype != SN_I64 : f->dtype != SN_F32)
    return sn_status_make(SN_CODE_INVALID, "field '%s': batches cannot hold it as %s; use %s",
                          f->name, sn_dtype_name(f->dtype), ids ? "i32 or i64" : "f32");
  if (stream && f->window < 1)
    return sn_status_make(SN_CODE_INVALID, "field '%s': a stream's window must be at least 1",
                          f->name);
  if ((f->role == SN_FIELD_NEXT) != (stream && f->role != SN_FIELD_INPUT))
    return sn_status_make(SN_CODE_INVALID, "field '%s': only a stream has next elements", f->name);
  if (f->role != SN_FIELD_INPUT && !stream && f->kind != SN_FIELD_DENSE)
    return sn_status_make(SN_CODE_INVALID, "field '%s': labels and targets are kind dense",
                          f->name);
  if (f->normalize && ids)
    return sn_status_make(SN_CODE_INVALID, "field '%s': ids and classes cannot be normalised",
                          f->name);
  if (f->role == SN_FIELD_INPUT && sn__field_weighted(f))
    return sn_status_make(SN_CODE_INVALID, "field '%s': an input has no missing label or weights",
                          f->name);
  if (!is_class(f) && (f->balanced || f->n_class_weights > 0))
    return sn_status_make(SN_CODE_INVALID, "field '%s': only classes have class weights", f->name);
  if (f->role == SN_FIELD_NEXT && f->missing != NULL)
    return sn_status_make(SN_CODE_INVALID, "field '%s': a stream has no missing labels", f->name);
  if (f->missing != NULL && f->role != SN_FIELD_CLASS) {
    double number;
    bool is_number;
    sn__field_missing(f, &number, &is_number);
    if (!is_number)
      return sn_status_make(SN_CODE_INVALID,
                            "field '%s': missing: '%s' is no number; targets are numbers, or nan",
                            f->name, f->missing);
  }
  for (size_t i = 0; i < f->n_class_weights; ++i)
    if (!(f->class_weights[i] >= 0 && f->class_weights[i] <= 1e30))
      return sn_status_make(SN_CODE_INVALID, "field '%s': class weight %g must be in 0..1e30",
                            f->name, f->class_weights[i]);
  return SN_OK;
}

static sn_status set_field(sn_dataset *d, const sn_field *from, sn__field_data *to) {
  SN_TRY(sn__field_check(from));
  SN_TRY(sn__field_copy(&d->arena, from, &to->field));
  bool stream = from->kind == SN_FIELD_STREAM;
  to->ragged = stream || from->kind == SN_FIELD_SEQUENCE || from->kind == SN_FIELD_SET;
  to->ids = stream || (to->ragged && from->ids);
  to->coded = from->kind == SN_FIELD_CATEGORY || from->role == SN_FIELD_CLASS;
  sn__field_missing(from, &to->missing, &to->missing_number);
  to->sources = sn__calloc(d->n_files, sizeof *to->sources);
  return to->sources != NULL ? SN_OK : sn_status_out_of_memory();
}

/* ---- rows ------------------------------------------------------------------------------------ */

static sn_status check_rows(const sn_dataset *d, size_t file) {
  const sn__source *a = &d->fields[0].sources[file];
  for (size_t i = 1; i < d->n_fields; ++i) {
    const sn__source *b = &d->fields[i].sources[file];
    if (a->rows != b->rows)
      return sn_status_make(SN_CODE_DATA,
                            "%s: %s has %lld rows and %s has %lld: one row must be one example in "
                            "both; write them again together",
                            sn__h5_file_path(d->files[file]), d->fields[0].field.path,
                            (long long)a->rows, d->fields[i].field.path, (long long)b->rows);
  }
  return SN_OK;
}

static sn_status open_fields(sn_dataset *d) {
  for (size_t k = 0; k < d->n_files; ++k) {
    for (size_t i = 0; i < d->n_fields; ++i)
      SN_TRY(sn__source_open(d, &d->fields[i], k));
    SN_TRY(check_rows(d, k));
    int64_t rows = d->fields[0].sources[k].rows;
    for (size_t i = 0; i < d->n_fields; ++i)
      d->fields[i].sources[k].row0 = d->rows;
    if (rows > INT64_MAX / 64 - d->rows)
      return sn_status_make(SN_CODE_DATA, "%s: too many rows", sn__h5_file_path(d->files[k]));
    d->rows += rows;
  }
  if (d->rows == 0)
    return sn_status_make(SN_CODE_DATA, "%s: %s has no rows: there is nothing to read",
                          sn__h5_file_path(d->files[0]), d->fields[0].field.path);
  for (size_t i = 0; i < d->n_fields; ++i) {
    sn__field_data *f = &d->fields[i];
    if (f->ragged) SN_TRY(sn__field_lengths(d, f));
    if (f->coded) SN_TRY(sn__field_codes(d, f));
  }
  return SN_OK;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static sn_status open_all(sn_dataset *d, const char *const *files, size_t n_files,
                          const sn_field *fields, size_t n_fields) {
  d->files = sn__calloc(n_files, sizeof *d->files);
  d->fields = sn__calloc(n_fields, sizeof *d->fields);
  if (d->files == NULL || d->fields == NULL) return sn_status_out_of_memory();
  d->n_files = n_files;
  d->n_fields = n_fields;
  for (size_t i = 0; i < n_fields; ++i) {
    SN_TRY(set_field(d, &fields[i], &d->fields[i]));
    for (size_t j = 0; j < i; ++j)
      if (strcmp(fields[j].name, fields[i].name) == 0)
        return sn_status_make(SN_CODE_INVALID, "two fields are called '%s'", fields[i].name);
  }
  for (size_t i = 0; i < n_files; ++i)
    SN_TRY(sn__h5_file_open(files[i], NULL, &d->files[i]));
  return open_fields(d);
}

sn_status sn_dataset_open(const char *const *files, size_t n_files, const sn_field *fields,
                          size_t n_fields, sn_dataset **out_dataset) {
  if (n_files == 0 || n_fields == 0 || n_fields > MOST_FIELDS)
    return sn_status_make(SN_CODE_INVALID, "a dataset needs 1 file or more and 1..%d fields",
                          MOST_FIELDS);
  sn_dataset *d = sn__calloc(1, sizeof *d);
  if (d == NULL) return sn_status_out_of_memory();
  sn_status s = open_all(d, files, n_files, fields, n_fields);
  if (s != SN_OK) {
    sn_dataset_free(d);
    return s;
  }
  *out_dataset = d;
  return SN_OK;
}

void sn_dataset_free(sn_dataset *d) {
  if (d == NULL) return;
  for (size_t i = 0; i < d->n_fields; ++i) {
    sn__field_data *f = &d->fields[i];
    for (size_t k = 0; f->sources != NULL && k < d->n_files; ++k) {
      sn__h5_column_free(f->sources[k].column);
      sn__free(f->sources[k].first);
    }
    sn__free(f->sources);
    sn__free(f->lengths);
    sn__free(f->codes);
    sn__keys_clear(&f->keys);
  }
  for (size_t i = 0; i < d->n_files; ++i)
    sn__h5_file_free(d->files[i]);
  sn__free(d->files);
  sn__free(d->fields);
  sn__arena_free(&d->arena);
  sn__free(d);
}

int64_t sn_dataset_rows(const sn_dataset *d) {
  return d->rows;
}

size_t sn_dataset_field_count(const sn_dataset *d) {
  return d->n_fields;
}

const sn_field *sn_dataset_field(const sn_dataset *d, size_t i) {
  return i < d->n_fields ? &d->fields[i].field : NULL;
}

const int64_t *sn_dataset_lengths(const sn_dataset *d, size_t field) {
  return field < d->n_fields ? d->fields[field].lengths : NULL;
}
