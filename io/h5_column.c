/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files and columns: everything that can be wrong with a dataset is said here. */
#include "io/h5_column_impl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/nearest.h"

#define FLAT_BAND_BYTES ((int64_t)1 << 20)

/* ---- files --------------------------------------------------------------------------------- */

sn_status sn__h5_file_open_partial(const char *path, const sn__h5_limits *limits,
                                   sn__h5_file **out_file) {
  sn__h5_file *f = sn__calloc(1, sizeof *f);
  if (f == NULL) return sn_status_out_of_memory();
  f->fd = -1;
  if (limits != NULL) f->limits = *limits;
  f->path = sn__strdup(path);
  sn_status s = f->path == NULL ? sn_status_out_of_memory() : sn__h5_scan(path, limits, &f->report);
  if (s == SN_OK) {
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0) s = sn_status_make(SN_CODE_IO, "%s: %s", path, strerror(errno));
  }
  if (s != SN_OK) {
    sn__h5_file_free(f);
    return s;
  }
  *out_file = f;
  return SN_OK;
}

sn_status sn__h5_file_open(const char *path, const sn__h5_limits *limits, sn__h5_file **out_file) {
  sn__h5_file *f = NULL;
  SN_TRY(sn__h5_file_open_partial(path, limits, &f));
  assert(f != NULL);
  if (f->report->failure != NULL) {
    sn_status s = sn_status_make(f->report->failure_code, "%s", f->report->failure);
    sn__h5_file_free(f);
    return s;
  }
  *out_file = f;
  return SN_OK;
}

void sn__h5_file_free(sn__h5_file *f) {
  if (f == NULL) return;
  if (f->fd >= 0) close(f->fd);
  sn__h5_report_free(f->report);
  sn__free(f->path);
  sn__free(f);
}

const sn__h5_report *sn__h5_file_report(const sn__h5_file *file) {
  return file->report;
}

const char *sn__h5_file_path(const sn__h5_file *file) {
  return file->path;
}

/* ---- what can be wrong ----------------------------------------------------------------------- */

static const char *problem_of(const sn__h5_report *r, const char *path) {
  for (size_t i = 0; i < r->problem_count; ++i)
    if (strcmp(r->problems[i].path, path) == 0) return r->problems[i].words;
  return NULL;
}

static sn_status not_found(const sn__h5_file *f, const char *path) {
  const sn__h5_report *r = f->report;
  for (size_t i = 0; i < r->link_count; ++i)
    if (strcmp(r->links[i].path, path) == 0)
      return sn_status_make(SN_CODE_NOT_FOUND, "%s: %s is %s: copy the data into this file",
                            f->path, path, r->links[i].words);
  const char *words = problem_of(r, path);
  if (words != NULL)
    return sn_status_make(SN_CODE_CORRUPT,
                          "%s: %s cannot be opened (%s): get the file again from "
                          "where it came",
                          f->path, path, words);
  const char *nearest = NULL;
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < r->dataset_count; ++i)
    if (sn__is_near(path, r->datasets[i].path) &&
        sn__edit_distance(path, r->datasets[i].path) < best) {
      nearest = r->datasets[i].path;
      best = sn__edit_distance(path, nearest);
    }
  if (nearest != NULL)
    return sn_status_make(SN_CODE_NOT_FOUND, "%s: no dataset %s; did you mean %s?", f->path, path,
                          nearest);
  return sn_status_make(SN_CODE_NOT_FOUND,
                        "%s: no dataset %s: sennit inspect lists all %zu of them", f->path, path,
                        r->dataset_count);
}

/* Before anything is converted. */
static sn_status check_dataset(const sn__h5_file *f, const sn__h5_dataset *d) {
  if (d->problem != NULL)
    return sn_status_make(SN_CODE_CORRUPT, "%s: dataset %s: %s", f->path, d->path, d->problem);
  const char *words = problem_of(f->report, d->path);
  if (words != NULL)
    return sn_status_make(SN_CODE_CORRUPT,
                          "%s: dataset %s cannot be read (%s): get the file again "
                          "from where it came",
                          f->path, d->path, words);
  if (!d->chunks_whole)
    return sn_status_make(SN_CODE_CORRUPT,
                          "%s: dataset %s: its chunk table could not be read whole: "
                          "get the file again from where it came",
                          f->path, d->path);
  if (d->null_space)
    return sn_status_make(SN_CODE_DATA,
                          "%s: dataset %s has a null dataspace and so no rows: leave it "
                          "out of the model",
                          f->path, d->path);
  const sn__h5_filter *missing = sn__h5_dataset_missing_filter(d);
  if (missing != NULL) {
    const char *known = sn__h5_filter_known_name(missing->id);
    return sn_status_make(
        SN_CODE_UNSUPPORTED,
        "%s: dataset %s is compressed with filter %u (%s), which is not installed: "
        "on a machine that has it run: h5repack -f GZIP=4 FILE NEW",
        f->path, d->path, missing->id,
        known != NULL              ? known
        : missing->name[0] != '\0' ? missing->name
                                   : "unknown");
  }
  bool vlen = d->type.cls == SN__H5_CLASS_VLEN && d->type.kind == SN__H5_KIND_NONE;
  if (d->type.cls == SN__H5_CLASS_OTHER || vlen)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "%s: dataset %s holds %s, which is neither numbers nor "
                          "text: write the parts that matter as datasets of their "
                          "own",
                          f->path, d->path, d->type.text);
  if (d->type.size == 0)
    return sn_status_make(SN_CODE_CORRUPT,
                          "%s: dataset %s: its elements have no size: the file is "
                          "damaged",
                          f->path, d->path);
  return SN_OK;
}

/* ---- columns ------------------------------------------------------------------------------- */

static uint64_t next_serial(void) {
  static atomic_uint_least64_t last;
  return atomic_fetch_add(&last, 1) + 1;
}

static sn__h5_column_kind kind_of(const sn__h5_type *t) {
  if (t->cls == SN__H5_CLASS_STRING) return SN__H5_COLUMN_STRING;
  if (t->cls == SN__H5_CLASS_VLEN) return SN__H5_COLUMN_RAGGED;
  if ((t->flags & SN__H5_BOOLEAN) != 0) return SN__H5_COLUMN_BOOL;
  return t->cls == SN__H5_CLASS_ENUM ? SN__H5_COLUMN_ENUM : SN__H5_COLUMN_NUMBER;
}

static void set_shape(sn__h5_column *c) {
  const sn__h5_dataset *d = c->dataset;
  sn__h5_column_info *info = &c->info;
  info->path = d->path;
  info->kind = kind_of(&d->type);
  info->stored = d->converted != NULL ? d->converted->kind : d->type.kind;
  info->rank = d->rank;
  info->dims = d->dims;
  info->rows = d->space_rank > 0 ? (int64_t)d->dims[0] : 1;
  info->width = info->rows > 0 ? (int64_t)d->elements / info->rows : 0;
  if (info->rows == 0) {
    info->width = 1; /* a row's width when there is none; 0 only where an inner extent is 0 */
    for (unsigned i = 1; i < d->rank; ++i)
      info->width = d->dims[i] < ((uint64_t)1 << 31) && info->width < ((int64_t)1 << 31)
                        ? info->width * (int64_t)d->dims[i]
                        : 0;
  }
  info->item_bytes = d->converted != NULL ? sn__h5_kind_size(info->stored) : d->type.size;
  info->converted = d->converted != NULL;
  info->parts = 1;
}

static void set_bands(sn__h5_column *c) {
  sn__h5_column_info *info = &c->info;
  const sn__h5_dataset *d = c->dataset;
  if (c->store == SN__H5_STORE_CHUNKS) {
    info->packed = true;
    c->band_rows = d->space_rank > 0 ? (int64_t)d->chunk_dims[0] : 1;
    for (unsigned i = 1; i < d->rank && info->rows > 0; ++i)
      info->parts *= (int64_t)d->grid[i];
  } else {
    int64_t row_bytes = info->width * (int64_t)info->item_bytes;
    c->band_rows = row_bytes > 0 && row_bytes < FLAT_BAND_BYTES ? FLAT_BAND_BYTES / row_bytes : 1;
  }
  info->bands = info->rows / c->band_rows + (info->rows % c->band_rows != 0);
}

static bool big_endian_machine(void) {
  const uint16_t one = 1;
  return *(const uint8_t *)&one == 0;
}

static void set_store(sn__h5_column *c) {
  const sn__h5_dataset *d = c->dataset;
  c->fd = c->file->fd;
  c->swap = ((d->type.flags & SN__H5_BIG_ENDIAN) != 0) != big_endian_machine();
  if (c->info.kind == SN__H5_COLUMN_STRING) c->swap = false;
  if (d->converted != NULL) {
    c->fd = c->own_fd;
    c->at = d->converted->values_at;
    c->offsets_at = d->converted->offsets_at;
    c->bytes_count = d->converted->count;
    c->swap = false;
    c->store = SN__H5_STORE_FLAT;
  } else if (d->layout == SN__H5_CHUNKED) {
    c->store = SN__H5_STORE_CHUNKS;
  } else if (d->layout == SN__H5_COMPACT) {
    c->store = d->compact_size > 0 ? SN__H5_STORE_MEMORY : SN__H5_STORE_FILL;
  } else {
    c->at = d->data_address;
    c->store = d->data_address == SN__H5_NO_ADDRESS ? SN__H5_STORE_FILL : SN__H5_STORE_FLAT;
  }
}

static sn_status make_values(sn__h5_column *c) {
  sn__h5_column *v = sn__calloc(1, sizeof *v);
  if (v == NULL) return sn_status_out_of_memory();
  *v = *c;
  v->own = NULL;
  v->own_fd = -1;
  v->values = NULL;
  v->serial = next_serial();
  v->info.kind = SN__H5_COLUMN_NUMBER;
  v->info.rows = (int64_t)c->bytes_count;
  v->info.width = 1;
  v->info.rank = 1;
  v->info.dims = &c->bytes_count;
  set_bands(v);
  c->values = v;
  return SN_OK;
}

static sn_status convert(sn__h5_column *c) {
  const sn__h5_file *f = c->file;
  const char *path = c->dataset->path;
  SN_TRY(sn__h5_scan_convert(f->path, path, &f->limits, &c->own, &c->own_fd));
  if (c->own->failure != NULL) return sn_status_make(c->own->failure_code, "%s", c->own->failure);
  const sn__h5_dataset *d = sn__h5_report_find(c->own, path);
  const char *words = problem_of(c->own, path);
  if (d == NULL || d->converted == NULL)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "%s: dataset %s has %s, which libhdf5 could not convert (%s): write it "
                          "again as plain numbers or text",
                          f->path, path, sn__h5_dataset_foreign(c->dataset),
                          words != NULL ? words : "no reason given");
  if (d->elements != c->dataset->elements || d->space_rank != c->dataset->space_rank)
    return sn_status_make(SN_CODE_CORRUPT,
                          "%s: dataset %s changed while it was being read: try again "
                          "when its writer has finished",
                          f->path, path);
  c->dataset = d;
  return SN_OK;
}

sn_status sn__h5_column_open(const sn__h5_file *file, const char *path,
                             sn__h5_column **out_column) {
  const sn__h5_dataset *d = sn__h5_report_find(file->report, path);
  if (d == NULL) return not_found(file, path);
  SN_TRY(check_dataset(file, d));
  sn__h5_column *c = sn__calloc(1, sizeof *c);
  if (c == NULL) return sn_status_out_of_memory();
  c->file = file;
  c->dataset = d;
  c->fd = c->own_fd = -1;
  c->serial = next_serial();
  sn_status s = SN_OK;
  if (sn__h5_dataset_foreign(d) != NULL) s = convert(c);
  if (s == SN_OK) {
    set_shape(c);
    set_store(c);
    set_bands(c);
    if (c->info.kind == SN__H5_COLUMN_RAGGED) s = make_values(c);
  }
  if (s != SN_OK) {
    sn__h5_column_free(c);
    return s;
  }
  *out_column = c;
  return SN_OK;
}

void sn__h5_column_free(sn__h5_column *c) {
  if (c == NULL) return;
  sn__free(c->values);
  sn__h5_report_free(c->own);
  if (c->own_fd >= 0) close(c->own_fd);
  sn__free(c);
}

const sn__h5_column_info *sn__h5_column_info_of(const sn__h5_column *c) {
  return &c->info;
}

const sn__h5_dataset *sn__h5_column_dataset(const sn__h5_column *c) {
  return c->dataset;
}

const sn__h5_column *sn__h5_column_values(const sn__h5_column *c) {
  return c->values;
}

void sn__h5_column_band(const sn__h5_column *c, int64_t band, int64_t *out_row0,
                        int64_t *out_row1) {
  int64_t row0 = band * c->band_rows, row1 = row0 + c->band_rows;
  *out_row0 = row0;
  *out_row1 = row1 < c->info.rows ? row1 : c->info.rows;
}

sn_status sn__h5_column_context(const sn__h5_column *c, sn_status status) {
  return sn_status_context(status, "%s: dataset %s", c->file->path, c->info.path);
}
