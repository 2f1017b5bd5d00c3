/* SPDX-License-Identifier: Apache-2.0 */
/* One field in one file: which form it has, and whether that form suits its kind. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/dataset_impl.h"

#define BYTES_PER_ROW 24 /* numbers of rows, their order, codes or lengths */
#define MOST_ELEMENTS ((int64_t)1 << 48)

static const char *kind_word(const sn_field *f) {
  static const char *const words[] = {"dense", "sequence", "set", "category", "stream", "image"};
  if (f->role == SN_FIELD_TARGET) return "task regression";
  if (f->role == SN_FIELD_MULTILABEL) return "task multilabel";
  return words[f->kind];
}

static sn_status wrong(const sn__source *s, const char *what, const sn_field *f,
                       const char *remedy) {
  const char *word = kind_word(f), *kind = f->role == SN_FIELD_INPUT ? "kind " : "";
  return sn_status_make(SN_CODE_DATA, "%s: %s %s; %s%s needs numbers%s%s",
                        sn__h5_file_path(s->file), f->path, what, kind, word,
                        remedy[0] != '\0' ? "; use " : "", remedy);
}

/* A column of numbers, whose elements are read as such. */
static sn_status need_numbers(const sn__source *s, const sn__h5_column *c, const sn_field *f) {
  bool input = f->role == SN_FIELD_INPUT;
  switch (sn__h5_column_info_of(c)->kind) {
  case SN__H5_COLUMN_STRING:
    return wrong(s, "is strings", f,
                 f->kind == SN_FIELD_SEQUENCE || f->kind == SN_FIELD_SET ||
                         f->kind == SN_FIELD_STREAM
                     ? "numbers for its words, the same word always by the same one"
                 : input ? "kind: category"
                         : "task: classification");
  case SN__H5_COLUMN_ENUM:
    if (f->kind != SN_FIELD_DENSE && f->kind != SN_FIELD_IMAGE) return SN_OK;
    return wrong(s, "is an enum", f, input ? "kind: category" : "task: classification");
  case SN__H5_COLUMN_RAGGED:
    return wrong(s, "has rows of variable length", f, input ? "kind: sequence or kind: set" : "");
  default: return SN_OK;
  }
}

static sn_status check_written(const sn__source *s, const sn__h5_column *c) {
  const sn__h5_dataset *d = sn__h5_column_dataset(c);
  bool empty = (d->layout == SN__H5_CHUNKED && d->chunk_count == 0) ||
               (d->layout == SN__H5_CONTIGUOUS && d->data_address == SN__H5_NO_ADDRESS);
  if (d->converted != NULL || d->elements == 0 || !empty) return SN_OK;
  return sn_status_make(SN_CODE_DATA,
                        "%s: dataset %s was never written: it holds nothing but its fill value; "
                        "write it, or leave it out",
                        sn__h5_file_path(s->file), d->path);
}

static bool is_there(const sn__h5_file *file, const char *path) {
  return sn__h5_report_find(sn__h5_file_report(file), path) != NULL;
}

/* "<group>/<member>" in the dataset's arena; NULL when out of memory. */
static char *member(sn_dataset *d, const char *group, const char *name) {
  char *path = sn__format("%s/%s", group, name);
  char *kept = path != NULL ? sn__arena_strdup(&d->arena, path) : NULL;
  sn__free(path);
  return kept;
}

/* Rows are numbered, shuffled and given lengths in memory, whatever little they take in the file.
 */
static sn_status check_count(const sn__source *s, const char *path, int64_t rows) {
  double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  double need = (double)rows * BYTES_PER_ROW;
  if (need <= memory / 2) return SN_OK;
  return sn_status_make(SN_CODE_DATA,
                        "%s: %s has %" PRId64 " rows: their order alone needs %.1f GiB of this "
                        "machine's %.1f; train on a part of them",
                        sn__h5_file_path(s->file), path, rows, need * 0x1p-30, memory * 0x1p-30);
}

/* ---- positions ------------------------------------------------------------------------------- */

/* All rows of a one-column dataset of integers. */
static sn_status read_integers(const sn__h5_column *c, int64_t *out) {
  sn__h5_reader *r = NULL;
  SN_TRY(sn__h5_reader_create(0, &r));
  sn_status s = sn__h5_column_read(c, r, 0, sn__h5_column_info_of(c)->rows, SN_I64, out);
  sn__h5_reader_free(r);
  return s;
}

static sn_status check_offsets(const sn__source *s, const char *path) {
  for (int64_t i = 0; i <= s->rows; ++i) {
    int64_t at = s->first[i], before = i > 0 ? s->first[i - 1] : 0;
    if (at < before)
      return sn_status_make(SN_CODE_DATA,
                            "%s: dataset %s: row %" PRId64 ": offset %" PRId64
                            " is less than %" PRId64
                            " before it: offsets must start at 0 or more and never decrease",
                            sn__h5_file_path(s->file), path, i, at, before);
    if (at > s->item_count)
      return sn_status_make(SN_CODE_DATA,
                            "%s: dataset %s: row %" PRId64 ": offset %" PRId64
                            " is past the %" PRId64 " values: write the offsets again",
                            sn__h5_file_path(s->file), path, i, at, s->item_count);
  }
  return SN_OK;
}

static sn_status open_offsets(sn__source *s, const char *path) {
  sn__h5_column *c = NULL;
  SN_TRY(sn__h5_column_open(s->file, path, &c));
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  sn_status status = SN_OK;
  if (info->kind != SN__H5_COLUMN_NUMBER || info->width != 1 || info->rows < 1)
    status = sn_status_make(SN_CODE_DATA,
                            "%s: dataset %s: offsets are rows + 1 integers, beginning with 0",
                            sn__h5_file_path(s->file), path);
  if (status == SN_OK) status = check_count(s, path, info->rows);
  if (status == SN_OK) {
    s->rows = info->rows - 1;
    s->first = sn__calloc((size_t)info->rows, sizeof *s->first);
    status = s->first == NULL ? sn_status_out_of_memory() : read_integers(c, s->first);
  }
  sn__h5_column_free(c);
  if (status != SN_OK) return status;
  return check_offsets(s, path);
}

static sn_status open_group(sn_dataset *d, sn__source *s, const sn_field *f) {
  const char *values = member(d, f->path, "values"), *offsets = member(d, f->path, "offsets");
  if (values == NULL || offsets == NULL) return sn_status_out_of_memory();
  s->form = SN__FORM_OFFSETS;
  SN_TRY(sn__h5_column_open(s->file, values, &s->column));
  SN_TRY(need_numbers(s, s->column, f));
  s->items = s->column;
  s->item_count = sn__h5_column_info_of(s->items)->rows;
  s->item_width = sn__h5_column_info_of(s->items)->width;
  return open_offsets(s, offsets);
}

static sn_status open_vlen(sn__source *s, const sn_field *f) {
  const sn__h5_column_info *info = sn__h5_column_info_of(s->column);
  if (info->width != 1)
    return sn_status_make(SN_CODE_DATA,
                          "%s: %s has %lld variable-length rows a row: write it as a group of "
                          "values and offsets",
                          sn__h5_file_path(s->file), f->path, (long long)info->width);
  s->form = SN__FORM_VLEN;
  s->items = sn__h5_column_values(s->column);
  s->item_count = sn__h5_column_info_of(s->items)->rows;
  s->item_width = 1;
  s->rows = info->rows;
  SN_TRY(check_count(s, f->path, s->rows));
  s->first = sn__calloc((size_t)s->rows + 1, sizeof *s->first);
  if (s->first == NULL) return sn_status_out_of_memory();
  return sn__h5_column_offsets(s->column, 0, s->rows, s->first);
}

/* ---- forms ----------------------------------------------------------------------------------- */

static int64_t width_after(const sn__h5_column_info *info, unsigned axis) {
  int64_t width = 1;
  for (unsigned i = axis; i < info->rank; ++i)
    width *= (int64_t)info->dims[i];
  return width;
}

static sn_status open_padded(sn__source *s, const sn_field *f, int64_t *out_width) {
  SN_TRY(need_numbers(s, s->column, f));
  const sn__h5_column_info *info = sn__h5_column_info_of(s->column);
  if (info->rank < 2)
    return sn_status_make(SN_CODE_DATA,
                          "%s: %s has one value a row and no steps: kind: %s needs [rows, steps, "
                          "features], a variable-length dataset, or a group of values and offsets",
                          sn__h5_file_path(s->file), f->path, kind_word(f));
  s->form = SN__FORM_PADDED;
  s->items = s->column;
  s->rows = s->item_count = info->rows;
  s->item_width = info->width;
  *out_width = width_after(info, 2);
  return SN_OK;
}

static sn_status open_stream(sn__source *s, const sn_field *f) {
  SN_TRY(need_numbers(s, s->column, f));
  const sn__h5_column_info *info = sn__h5_column_info_of(s->column);
  if (info->width != 1)
    return sn_status_make(SN_CODE_DATA, "%s: %s has %lld columns: a stream is one long row of ids",
                          sn__h5_file_path(s->file), f->path, (long long)info->width);
  if (info->rows <= f->window)
    return sn_status_make(SN_CODE_DATA,
                          "%s: %s has %lld elements: a window of %lld and the next one need at "
                          "least %lld; use a smaller window",
                          sn__h5_file_path(s->file), f->path, (long long)info->rows,
                          (long long)f->window, (long long)f->window + 1);
  s->form = SN__FORM_STREAM;
  s->items = s->column;
  s->item_count = info->rows;
  s->item_width = 1;
  s->rows = (info->rows - 1) / f->window;
  return SN_OK;
}

static sn_status open_table(sn__source *s, const sn__field_data *fd) {
  const sn_field *f = &fd->field;
  const sn__h5_column_info *info = sn__h5_column_info_of(s->column);
  if (!fd->coded) {
    SN_TRY(need_numbers(s, s->column, f));
  } else {
    if (info->kind == SN__H5_COLUMN_RAGGED)
      return sn_status_make(
          SN_CODE_DATA, "%s: %s has rows of variable length: one %s a row is wanted",
          sn__h5_file_path(s->file), f->path, f->role == SN_FIELD_CLASS ? "label" : "category");
    if (info->width != 1 && info->rows > 0)
      return sn_status_make(SN_CODE_DATA, "%s: %s has %lld columns: one %s a row is wanted%s",
                            sn__h5_file_path(s->file), f->path, (long long)info->width,
                            f->role == SN_FIELD_CLASS ? "label" : "category",
                            f->role == SN_FIELD_CLASS
                                ? "; use task: multilabel, or store the number of the class"
                                : "; use kind: dense");
  }
  s->form = SN__FORM_TABLE;
  s->items = s->column;
  s->rows = s->item_count = info->rows;
  s->item_width = info->width;
  return SN_OK;
}

/* Without a last extent of their own, pixels have one channel. */
static sn_status check_image(const sn__source *s, const sn_field *f, int64_t extents[3]) {
  const sn__h5_column_info *info = sn__h5_column_info_of(s->column);
  if (info->rank != 3 && info->rank != 4)
    return sn_status_make(SN_CODE_DATA,
                          "%s: %s has %u dimensions: kind: image needs [rows, height, width] or "
                          "[rows, height, width, channels]",
                          sn__h5_file_path(s->file), f->path, info->rank);
  extents[2] = 1;
  for (unsigned i = 1; i < info->rank; ++i)
    extents[i - 1] = (int64_t)info->dims[i];
  return SN_OK;
}

/* A path that is no dataset: a group of values and offsets, or a mistake. */
static sn_status open_missing(sn_dataset *d, sn__field_data *fd, sn__source *s, bool *out_group) {
  const sn_field *f = &fd->field;
  bool group = false;
  char *values = member(d, f->path, "values");
  if (values == NULL) return sn_status_out_of_memory();
  group = is_there(s->file, values);
  *out_group = group && fd->ragged && f->kind != SN_FIELD_STREAM;
  if (group && !*out_group)
    return sn_status_make(SN_CODE_DATA,
                          "%s: %s is a group of values and offsets: use kind: "
                          "sequence or kind: set",
                          sn__h5_file_path(s->file), f->path);
  const sn__h5_report *r = sn__h5_file_report(s->file);
  for (size_t i = 0; !group && fd->ragged && i < r->group_count; ++i)
    if (strcmp(r->groups[i], f->path) == 0)
      return sn_status_make(SN_CODE_DATA,
                            "%s: %s is a group without the dataset values: kind: %s reads a group "
                            "of values and offsets, or a dataset",
                            sn__h5_file_path(s->file), f->path, kind_word(f));
  return SN_OK;
}

static sn_status open_form(sn_dataset *d, sn__field_data *fd, sn__source *s, int64_t *out_width) {
  const sn_field *f = &fd->field;
  bool group = false;
  if (!is_there(s->file, f->path)) SN_TRY(open_missing(d, fd, s, &group));
  if (group) {
    SN_TRY(open_group(d, s, f));
  } else {
    SN_TRY(sn__h5_column_open(s->file, f->path, &s->column));
    if (f->kind == SN_FIELD_STREAM)
      SN_TRY(open_stream(s, f));
    else if (!fd->ragged)
      SN_TRY(open_table(s, fd));
    else if (sn__h5_column_info_of(s->column)->kind == SN__H5_COLUMN_RAGGED)
      SN_TRY(open_vlen(s, f));
    else
      return open_padded(s, f, out_width);
  }
  *out_width = s->item_width;
  return SN_OK;
}

static bool is_text(const sn__source *s) {
  sn__h5_column_kind kind = sn__h5_column_info_of(s->column)->kind;
  return kind == SN__H5_COLUMN_STRING || kind == SN__H5_COLUMN_ENUM;
}

/* Numbers and text are told apart, so a class stored as both would be two. */
static sn_status check_alike(const sn_dataset *d, const sn__field_data *fd, size_t file) {
  const sn__source *first = &fd->sources[0], *s = &fd->sources[file];
  if (!fd->coded || is_text(first) == is_text(s)) return SN_OK;
  return sn_status_make(
      SN_CODE_DATA, "%s is %s in %s and %s in %s: 7 and \"7\" would be two %s; store both alike",
      fd->field.path, is_text(first) ? "text" : "numbers", sn__h5_file_path(d->files[0]),
      is_text(s) ? "text" : "numbers", sn__h5_file_path(d->files[file]),
      fd->field.role == SN_FIELD_CLASS ? "classes" : "categories");
}

sn_status sn__source_open(sn_dataset *d, sn__field_data *fd, size_t file) {
  sn__source *s = &fd->sources[file];
  const sn_field *f = &fd->field;
  s->file = d->files[file];
  int64_t width = 0;
  SN_TRY(open_form(d, fd, s, &width));
  SN_TRY(check_count(s, f->path, s->rows));
  SN_TRY(check_written(s, s->column));
  int64_t image[3] = {0, 0, 0};
  if (f->kind == SN_FIELD_IMAGE) SN_TRY(check_image(s, f, image));
  if (width < 1 || width > INT32_MAX || s->item_width > INT32_MAX)
    return sn_status_make(SN_CODE_DATA,
                          "%s: %s has %lld numbers in a row: it needs 1 to 2147483647",
                          sn__h5_file_path(s->file), f->path, (long long)s->item_width);
  if (fd->ids && width != 1)
    return sn_status_make(SN_CODE_DATA,
                          "%s: %s has %lld numbers an element: ids are one; leave out embedding:",
                          sn__h5_file_path(s->file), f->path, (long long)width);
  if (f->lengths != NULL && s->form != SN__FORM_PADDED)
    return sn_status_make(SN_CODE_DATA, "%s: %s has lengths of its own: leave out lengths: %s",
                          sn__h5_file_path(s->file), f->path, f->lengths);
  if (file > 0 && width != fd->width)
    return sn_status_make(
        SN_CODE_DATA, "%s has %lld columns in %s and %lld in %s: files read together must agree",
        f->path, (long long)fd->width, sn__h5_file_path(d->files[0]), (long long)width,
        sn__h5_file_path(s->file));
  if (file > 0 && memcmp(image, fd->image, sizeof image) != 0)
    return sn_status_make(SN_CODE_DATA,
                          "%s: %s holds images of another height or width than %s: files read "
                          "together must agree",
                          sn__h5_file_path(s->file), f->path, sn__h5_file_path(d->files[0]));
  if (file > 0) SN_TRY(check_alike(d, fd, file));
  fd->width = width;
  memcpy(fd->image, image, sizeof image);
  int64_t band0 = 0, band1 = 0;
  if (sn__h5_column_info_of(s->items)->bands > 0) sn__h5_column_band(s->items, 0, &band0, &band1);
  s->band_items = band1 > 0 ? band1 : 1;
  return SN_OK;
}

/* ---- lengths --------------------------------------------------------------------------------- */

static sn_status padded_lengths(const sn__field_data *fd, const sn__source *s, int64_t *lengths) {
  int64_t steps = s->item_width / fd->width;
  const char *path = fd->field.lengths;
  for (int64_t i = 0; i < s->rows; ++i)
    lengths[i] = steps;
  if (path == NULL) return SN_OK;
  sn__h5_column *c = NULL;
  SN_TRY(sn__h5_column_open(s->file, path, &c));
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  sn_status status = SN_OK;
  if (info->kind != SN__H5_COLUMN_NUMBER || info->width != 1)
    status = sn_status_make(SN_CODE_DATA, "%s: dataset %s: lengths are one integer a row",
                            sn__h5_file_path(s->file), path);
  else if (info->rows != s->rows)
    status = sn_status_make(SN_CODE_DATA,
                            "%s: %s has %lld rows and its lengths %s have %lld: one length for "
                            "each row is wanted",
                            sn__h5_file_path(s->file), fd->field.path, (long long)s->rows, path,
                            (long long)info->rows);
  else
    status = read_integers(c, lengths);
  sn__h5_column_free(c);
  for (int64_t i = 0; status == SN_OK && i < s->rows; ++i)
    if (lengths[i] < 0 || lengths[i] > steps)
      status =
          sn_status_make(SN_CODE_DATA,
                         "%s: dataset %s: row %" PRId64 ": length %" PRId64 " is not in 0..%" PRId64
                         ", the steps of %s",
                         sn__h5_file_path(s->file), path, i, lengths[i], steps, fd->field.path);
  return status;
}

sn_status sn__field_lengths(sn_dataset *d, sn__field_data *fd) {
  fd->lengths = sn__calloc((size_t)d->rows, sizeof *fd->lengths);
  if (fd->lengths == NULL) return sn_status_out_of_memory();
  for (size_t k = 0; k < d->n_files; ++k) {
    const sn__source *s = &fd->sources[k];
    int64_t *lengths = fd->lengths + s->row0;
    if (s->form == SN__FORM_PADDED)
      SN_TRY(padded_lengths(fd, s, lengths));
    else
      for (int64_t i = 0; i < s->rows; ++i)
        lengths[i] = s->form == SN__FORM_STREAM ? fd->field.window : s->first[i + 1] - s->first[i];
  }
  for (int64_t i = 0; i < d->rows; ++i) {
    fd->elements += fd->lengths[i];
    if (fd->elements > MOST_ELEMENTS)
      return sn_status_make(SN_CODE_DATA, "%s: more than 2^48 elements", fd->field.path);
    if (fd->lengths[i] > fd->longest) fd->longest = fd->lengths[i];
    fd->empty += fd->lengths[i] == 0;
  }
  return SN_OK;
}

/* ---- codes ----------------------------------------------------------------------------------- */

enum { CODE_ROWS = 16384 };

static bool is_missing(const sn__field_data *fd, bool text, double number, const char *name,
                       size_t length) {
  const char *m = fd->field.missing;
  if (m == NULL) return false;
  if (text) return strlen(m) == length && memcmp(m, name, length) == 0;
  return fd->missing_number &&
         (number == fd->missing || (number != number && fd->missing != fd->missing));
}

static const char *enum_name(const sn__h5_type *t, int64_t value) {
  for (size_t i = 0; i < t->name_count; ++i)
    if (t->names[i].value == value) return t->names[i].name;
  return NULL;
}

static sn_status code_number(sn__field_data *fd, const sn__source *s, int64_t row, double number,
                             int64_t whole, bool exact) {
  const sn__h5_column_info *info = sn__h5_column_info_of(s->column);
  int32_t *code = &fd->codes[s->row0 + row];
  const char *path = sn__h5_file_path(s->file), *f = fd->field.path;
  *code = -1;
  int64_t index;
  if (info->kind == SN__H5_COLUMN_ENUM) {
    const char *name = enum_name(&sn__h5_column_dataset(s->column)->type, whole);
    if (name == NULL)
      return sn_status_make(SN_CODE_DATA,
                            "%s: dataset %s: row %" PRId64 ": %" PRId64
                            " has no name in the dataset's enum: correct the row",
                            path, f, row, whole);
    if (is_missing(fd, true, 0, name, strlen(name))) return SN_OK;
    SN_TRY(sn__keys_add(&fd->keys, true, 0, name, strlen(name), &index));
  } else {
    if (is_missing(fd, false, number, NULL, 0)) return SN_OK;
    if (!exact)
      return sn_status_make(
          SN_CODE_DATA,
          "%s: dataset %s: row %" PRId64 ": %.17g is no %s: whole numbers or text are%s", path, f,
          row, number, fd->field.role == SN_FIELD_CLASS ? "class" : "category",
          number == number ? "" : "; if it means not known, give missing: nan");
    SN_TRY(sn__keys_add(&fd->keys, false, whole, NULL, 0, &index));
  }
  *code = (int32_t)index;
  return SN_OK;
}

static sn_status code_numbers(sn__field_data *fd, const sn__source *s, sn__h5_reader *r,
                              void *values) {
  bool floats = sn__h5_kind_is_float(sn__h5_column_info_of(s->column)->stored);
  for (int64_t row = 0, n; row < s->rows; row += n) {
    n = s->rows - row < CODE_ROWS ? s->rows - row : CODE_ROWS;
    SN_TRY(sn__h5_column_read(s->column, r, row, n, floats ? SN_F64 : SN_I64, values));
    for (int64_t i = 0; i < n; ++i) {
      double number = floats ? ((double *)values)[i] : (double)((int64_t *)values)[i];
      bool exact =
          !floats || (number > -0x1p53 && number < 0x1p53 && (double)(int64_t)number == number);
      int64_t whole = !floats ? ((int64_t *)values)[i] : exact ? (int64_t)number : 0;
      SN_TRY(code_number(fd, s, row + i, number, whole, exact));
    }
  }
  return SN_OK;
}

static sn_status code_strings(sn__field_data *fd, const sn__source *s, sn__h5_reader *r) {
  for (int64_t row = 0, n; row < s->rows; row += n) {
    n = s->rows - row < CODE_ROWS ? s->rows - row : CODE_ROWS;
    sn__h5_strings t = {0};
    SN_TRY(sn__h5_column_strings(s->column, r, row, n, &t));
    sn_status status = SN_OK;
    for (int64_t i = 0; status == SN_OK && i < n; ++i) {
      const char *name = t.bytes + t.offsets[i];
      size_t length = (size_t)(t.offsets[i + 1] - t.offsets[i]);
      int64_t index = -1;
      if (!is_missing(fd, true, 0, name, length))
        status = sn__keys_add(&fd->keys, true, 0, name, length, &index);
      fd->codes[s->row0 + row + i] = (int32_t)index;
    }
    sn__h5_strings_clear(&t);
    SN_TRY(status);
  }
  return SN_OK;
}

sn_status sn__field_codes(sn_dataset *d, sn__field_data *fd) {
  fd->codes = sn__calloc((size_t)d->rows, sizeof *fd->codes);
  if (fd->codes == NULL) return sn_status_out_of_memory();
  sn__h5_reader *r = NULL;
  SN_TRY(sn__h5_reader_create(0, &r));
  sn_status status = SN_OK;
  void *values = sn__calloc(CODE_ROWS, sizeof(int64_t));
  if (values == NULL) status = sn_status_out_of_memory();
  for (size_t k = 0; values != NULL && status == SN_OK && k < d->n_files; ++k) {
    const sn__source *s = &fd->sources[k];
    bool text = sn__h5_column_info_of(s->column)->kind == SN__H5_COLUMN_STRING;
    status = text ? code_strings(fd, s, r) : code_numbers(fd, s, r, values);
  }
  sn__free(values);
  sn__h5_reader_free(r);
  return status;
}
