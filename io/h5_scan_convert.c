/* SPDX-License-Identifier: Apache-2.0 */
/* Lets libhdf5 read what we do not decode, block by block, into the shared memory as plain arrays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/h5_scan_child.h"

#define BLOCK_BYTES ((size_t)4 << 20)

typedef struct job {
  hid_t dataset, space, type;
  const sn__scan_type *t;
  const char *path;
  int rank;
  hsize_t dims[H5S_MAX_RANK];
  hsize_t elements; /* of the dataspace */
  const char *problem;
} job;

static const char full[] =
    "what it holds is larger than the memory allowed for converting it, which "
    "SN_H5SCAN_MIB raises";

/* ---- blocks: the dataspace in row-major order, a hyperslab of whole rows or a run of one row - */

typedef struct block {
  hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
  hsize_t elements;
} block;

/* The next at most `most` elements from linear position `at`, such that they form one hyperslab. */
static void block_at(const job *j, hsize_t at, hsize_t most, block *b) {
  hsize_t rest = at;
  for (int i = j->rank - 1; i >= 0; --i) {
    b->start[i] = rest % j->dims[i];
    rest /= j->dims[i];
    b->count[i] = 1;
  }
  b->elements = 1;
  for (int i = j->rank - 1; i >= 0; --i) {
    hsize_t room = j->dims[i] - b->start[i], allowed = most / b->elements;
    b->count[i] = room < allowed ? room : allowed;
    if (b->count[i] == 0) b->count[i] = 1;
    b->elements *= b->count[i];
    /* An outer axis may grow only over whole inner ones. */
    if (b->count[i] != j->dims[i]) break;
  }
}

static bool read_block(const job *j, const block *b, hid_t memory_type, void *out) {
  if (j->rank == 0)
    return H5Dread(j->dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0;
  hsize_t n = b->elements;
  hid_t memory = H5Screate_simple(1, &n, NULL);
  bool ok = memory >= 0 &&
            H5Sselect_hyperslab(j->space, H5S_SELECT_SET, b->start, NULL, b->count, NULL) >= 0 &&
            H5Dread(j->dataset, memory_type, memory, j->space, H5P_DEFAULT, out) >= 0;
  if (memory >= 0) H5Sclose(memory);
  return ok;
}

static void say_converted(sn__h5_form form, sn__h5_kind kind, uint64_t rows, uint64_t count,
                          uint64_t values_at, uint64_t offsets_at) {
  sn__say_begin(SN__WIRE_CONVERTED);
  sn__say_u8((unsigned)form);
  sn__say_u8((unsigned)kind);
  sn__say_u64(rows);
  sn__say_u64(count);
  sn__say_u64(values_at);
  sn__say_u64(offsets_at);
  sn__say_end();
}

/* ---- numbers ------------------------------------------------------------------------------- */

static hid_t memory_type(const job *j) {
  hid_t native = sn__scan_native(j->t->convert);
  if (native < 0) return H5I_INVALID_HID;
  if (j->t->array_rank == 0) return H5Tcopy(native);
  return H5Tarray_create2(native, j->t->array_rank, j->t->array_dims);
}

static void convert_numbers(job *j) {
  hid_t type = memory_type(j);
  size_t size = type >= 0 ? H5Tget_size(type) : 0, item = sn__h5_kind_size(j->t->convert);
  if (item == 0 || size == 0 || size > BLOCK_BYTES) {
    j->problem = "nobody can convert this type to numbers";
    if (type >= 0) H5Tclose(type);
    return;
  }
  uint8_t *bytes = sn__scan_alloc(BLOCK_BYTES);
  uint64_t count = j->elements * (size / item);
  for (hsize_t at = 0; at < j->elements && j->problem == NULL;) {
    block b;
    block_at(j, at, BLOCK_BYTES / size, &b);
    if (!read_block(j, &b, type, bytes))
      j->problem = sn__say_why();
    else if (!sn__shared_write(bytes, (size_t)b.elements * size))
      j->problem = full;
    at += b.elements;
    sn__say_at(j->path, "converting it");
  }
  free(bytes);
  H5Tclose(type);
  if (j->problem == NULL)
    say_converted(SN__H5_FORM_NUMBERS, j->t->convert, j->rank > 0 ? j->dims[0] : 1, count, 0, 0);
}

/* ---- offsets, strings and ragged rows ------------------------------------------------------ */

static void finish_ragged(job *j, sn__h5_form form, sn__h5_kind kind, const int64_t *offsets,
                          uint64_t count) {
  if (j->problem != NULL) return;
  uint64_t at = 0;
  bool ok = sn__shared_align();
  at = sn__shared_size();
  ok = ok && sn__shared_write(offsets, ((size_t)j->elements + 1) * sizeof *offsets);
  if (!ok)
    j->problem = full;
  else
    say_converted(form, kind, j->elements, count, 0, at);
}

static size_t fixed_length(const job *j, const char *text, size_t size) {
  if ((j->t->flags & SN__H5_SPACE_PAD) != 0) {
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\0'))
      --size;
    return size;
  }
  return strnlen(text, size);
}

static void convert_fixed_strings(job *j, int64_t *offsets) {
  size_t size = H5Tget_size(j->type);
  if (size == 0 || size > BLOCK_BYTES || j->t->array_rank > 0) {
    j->problem = "its strings are too long to convert";
    return;
  }
  char *bytes = sn__scan_alloc(BLOCK_BYTES);
  hsize_t row = 0;
  for (hsize_t at = 0; at < j->elements && j->problem == NULL;) {
    block b;
    block_at(j, at, BLOCK_BYTES / size, &b);
    if (!read_block(j, &b, j->type, bytes)) j->problem = sn__say_why();
    for (hsize_t i = 0; i < b.elements && j->problem == NULL; ++i, ++row) {
      size_t n = fixed_length(j, bytes + i * size, size);
      offsets[row + 1] = offsets[row] + (int64_t)n;
      if (!sn__shared_write(bytes + i * size, n)) j->problem = full;
    }
    at += b.elements;
  }
  free(bytes);
}

static void convert_strings(job *j, int64_t *offsets) {
  size_t most = 65536;
  char **texts = sn__scan_alloc(most * sizeof *texts);
  hsize_t row = 0;
  for (hsize_t at = 0; at < j->elements && j->problem == NULL;) {
    block b;
    block_at(j, at, most, &b);
    memset(texts, 0, most * sizeof *texts);
    if (!read_block(j, &b, j->type, texts)) j->problem = sn__say_why();
    for (hsize_t i = 0; i < b.elements && j->problem == NULL; ++i, ++row) {
      size_t n = texts[i] != NULL ? strlen(texts[i]) : 0;
      offsets[row + 1] = offsets[row] + (int64_t)n;
      if (n > 0 && !sn__shared_write(texts[i], n)) j->problem = full;
    }
    for (hsize_t i = 0; i < b.elements; ++i)
      H5free_memory(texts[i]);
    at += b.elements;
    sn__say_at(j->path, "converting it");
  }
  free(texts);
}

static void convert_ragged(job *j, int64_t *offsets) {
  hid_t type = H5Tvlen_create(sn__scan_native(j->t->convert));
  size_t most = 65536, item = sn__h5_kind_size(j->t->convert);
  hvl_t *rows = sn__scan_alloc(most * sizeof *rows);
  hsize_t row = 0;
  for (hsize_t at = 0; at < j->elements && j->problem == NULL;) {
    block b;
    block_at(j, at, most, &b);
    memset(rows, 0, most * sizeof *rows);
    if (type < 0 || !read_block(j, &b, type, rows)) j->problem = sn__say_why();
    for (hsize_t i = 0; i < b.elements && j->problem == NULL; ++i, ++row) {
      offsets[row + 1] = offsets[row] + (int64_t)rows[i].len;
      if (rows[i].len > 0 && !sn__shared_write(rows[i].p, rows[i].len * item)) j->problem = full;
    }
    for (hsize_t i = 0; i < b.elements; ++i)
      H5free_memory(rows[i].p);
    at += b.elements;
    sn__say_at(j->path, "converting it");
  }
  free(rows);
  if (type >= 0) H5Tclose(type);
}

/* ---- virtual datasets ------------------------------------------------------------------------ */

/* libhdf5 reads a missing source as the fill value without a word. */
static bool source_exists(const char *home, const char *file, const char *name) {
  char path[4096];
  const char *slash = strrchr(home, '/');
  if (strcmp(file, ".") == 0)
    snprintf(path, sizeof path, "%s", home);
  else if (file[0] == '/' || slash == NULL)
    snprintf(path, sizeof path, "%s", file);
  else
    snprintf(path, sizeof path, "%.*s/%s", (int)(slash - home), home, file);
  hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (f < 0) f = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (f < 0) return false;
  hid_t d = H5Dopen2(f, name, H5P_DEFAULT);
  if (d >= 0) H5Dclose(d);
  H5Fclose(f);
  return d >= 0;
}

/* False, with the source named in `words`, when one is missing. */
static bool sources_exist(hid_t dataset, char *words, size_t size) {
  hid_t plist = H5Dget_create_plist(dataset);
  size_t count = 0;
  char home[2048] = "", file[1024], name[1024];
  bool ok = true;
  if (plist < 0 || H5Pget_layout(plist) != H5D_VIRTUAL) {
    if (plist >= 0) H5Pclose(plist);
    return true;
  }
  H5Fget_name(dataset, home, sizeof home);
  if (H5Pget_virtual_count(plist, &count) < 0) count = 0;
  for (size_t i = 0; i < count && ok; ++i) {
    if (H5Pget_virtual_filename(plist, i, file, sizeof file) < 0 ||
        H5Pget_virtual_dsetname(plist, i, name, sizeof name) < 0)
      continue;
    if (strchr(file, '%') != NULL || strchr(name, '%') != NULL) continue; /* numbered: any count */
    ok = source_exists(home, file, name);
    if (!ok) snprintf(words, size, "its source %.80s in the file %.100s is missing", name, file);
  }
  H5Pclose(plist);
  return ok;
}

void sn__scan_convert(hid_t dataset, hid_t space, hid_t type, const sn__scan_type *t,
                      const char *path) {
  job j = {.dataset = dataset, .space = space, .type = type, .t = t, .path = path};
  j.rank = H5Sget_simple_extent_ndims(space);
  hssize_t points = H5Sget_simple_extent_npoints(space);
  if (j.rank > 0) j.rank = H5Sget_simple_extent_dims(space, j.dims, NULL);
  if (j.rank < 0 || points < 0) {
    sn__say_words(SN__WIRE_PROBLEM, path, sn__say_why());
    return;
  }
  j.elements = (hsize_t)points;
  char words[256];
  if (!sources_exist(dataset, words, sizeof words)) {
    sn__say_words(SN__WIRE_PROBLEM, path, words);
    return;
  }
  bool ragged = t->cls == SN__H5_CLASS_VLEN && t->convert != SN__H5_KIND_NONE;
  if (t->cls == SN__H5_CLASS_STRING || ragged) {
    if (j.elements > (hsize_t)1 << 32) {
      sn__say_words(SN__WIRE_PROBLEM, path, "it has more rows than can be converted");
      return;
    }
    int64_t *offsets = sn__scan_alloc(((size_t)j.elements + 1) * sizeof *offsets);
    if (ragged)
      convert_ragged(&j, offsets);
    else if ((t->flags & SN__H5_VLEN_STRING) != 0)
      convert_strings(&j, offsets);
    else
      convert_fixed_strings(&j, offsets);
    finish_ragged(&j, ragged ? SN__H5_FORM_RAGGED : SN__H5_FORM_STRINGS,
                  ragged ? t->convert : SN__H5_U8, offsets, (uint64_t)offsets[j.elements]);
    free(offsets);
  } else if (t->convert != SN__H5_KIND_NONE) {
    convert_numbers(&j);
  } else {
    j.problem = "a type that is neither number nor text";
  }
  if (j.problem != NULL) sn__say_words(SN__WIRE_PROBLEM, path, j.problem);
}
