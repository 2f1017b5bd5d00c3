/* SPDX-License-Identifier: Apache-2.0 */
/* Says all about one dataset: type, shape, layout, filters, fill value, chunk table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/h5_scan_child.h"

#define CHUNKS_PER_RECORD 4096

typedef struct subject {
  const char *path;
  hid_t dataset, type, space, plist;
  sn__scan_type t;
  int rank;
  hsize_t dims[H5S_MAX_RANK], max_dims[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
  H5S_class_t space_class;
  sn__h5_layout layout;
  const char *problem;
} subject;

static sn__h5_layout layout_of(hid_t plist) {
  switch (H5Pget_layout(plist)) {
  case H5D_COMPACT: return SN__H5_COMPACT;
  case H5D_CHUNKED: return SN__H5_CHUNKED;
  case H5D_VIRTUAL: return SN__H5_VIRTUAL;
  default: return H5Pget_external_count(plist) > 0 ? SN__H5_EXTERNAL : SN__H5_CONTIGUOUS;
  }
}

static bool simple_bytes(const subject *s) {
  return s->t.kind != SN__H5_KIND_NONE
             ? s->t.cls != SN__H5_CLASS_VLEN
             : s->t.cls == SN__H5_CLASS_STRING && (s->t.flags & SN__H5_VLEN_STRING) == 0;
}

static void say_space(const subject *s) {
  sn__say_u8(s->space_class != H5S_NULL);
  sn__say_u8((unsigned)s->rank);
  sn__say_u8(s->t.array_rank);
  for (int i = 0; i < s->rank; ++i) {
    sn__say_u64(s->dims[i]);
    sn__say_u64(s->max_dims[i]);
  }
  for (unsigned i = 0; i < s->t.array_rank; ++i) {
    sn__say_u64(s->t.array_dims[i]);
    sn__say_u64(s->t.array_dims[i]);
  }
}

static void say_compact(const subject *s, hsize_t storage) {
  if (s->layout != SN__H5_COMPACT || !simple_bytes(s) || s->problem != NULL ||
      s->space_class == H5S_NULL || storage == 0 || storage > 65536) {
    sn__say_blob("", 0);
    return;
  }
  uint8_t *bytes = sn__scan_alloc(65536);
  hssize_t count = H5Sget_simple_extent_npoints(s->space);
  size_t size = H5Tget_size(s->type);
  bool fits = count >= 0 && size > 0 && (hsize_t)count <= 65536 / size;
  if (fits && H5Dread(s->dataset, s->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0)
    sn__say_blob(bytes, (size_t)count * size);
  else
    sn__say_blob("", 0);
  free(bytes);
}

static void say_filters(const subject *s) {
  int count = H5Pget_nfilters(s->plist);
  if (count < 0 || count > (int)SN__H5_MAX_FILTERS) count = 0;
  sn__say_u8((unsigned)count);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    unsigned params[64] = {0};
    size_t n = sizeof params / sizeof *params;
    char name[128] = "";
    H5Z_filter_t id =
        H5Pget_filter2(s->plist, (unsigned)i, &flags, &n, params, sizeof name, name, &config);
    if (n > sizeof params / sizeof *params) n = sizeof params / sizeof *params;
    name[sizeof name - 1] = '\0';
    sn__say_u32((uint32_t)id);
    sn__say_u8(id >= 0 && H5Zfilter_avail(id) > 0);
    sn__say_str(name);
    sn__say_u32((uint32_t)n);
    for (size_t k = 0; k < n; ++k)
      sn__say_u32(params[k]);
  }
}

static void say_fill(const subject *s) {
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  size_t size = H5Tget_size(s->type);
  uint8_t bytes[8] = {0};
  bool has = H5Pfill_value_defined(s->plist, &status) >= 0 &&
             status == H5D_FILL_VALUE_USER_DEFINED && size <= sizeof bytes && simple_bytes(s) &&
             H5Pget_fill_value(s->plist, s->type, bytes) >= 0;
  sn__say_u8(status == H5D_FILL_VALUE_USER_DEFINED);
  sn__say_blob(bytes, has ? size : 0);
}

/* An array type's own fill value, many numbers, is left to libhdf5. */
static bool odd_fill(const subject *s) {
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  return s->t.array_rank > 0 && H5Pfill_value_defined(s->plist, &status) >= 0 &&
         status == H5D_FILL_VALUE_USER_DEFINED;
}

/* ---- the chunk table ----------------------------------------------------------------------- */

typedef struct table {
  uint32_t count;
  uint64_t rows[CHUNKS_PER_RECORD][4];
} table;

static void flush(table *t) {
  if (t->count == 0) return;
  sn__say_begin(SN__WIRE_CHUNKS);
  sn__say_u32(t->count);
  for (uint32_t i = 0; i < t->count; ++i) {
    sn__say_u64(t->rows[i][0]);
    sn__say_u64(t->rows[i][1]);
    sn__say_u64(t->rows[i][2]);
    sn__say_u32((uint32_t)t->rows[i][3]);
  }
  sn__say_end();
  t->count = 0;
}

/* Edge chunks may be kept unfiltered without their masks saying so. */
static bool edge_unfiltered(const subject *s, const hsize_t *at) {
  unsigned options = 0;
  if (H5Pget_chunk_opts(s->plist, &options) < 0 ||
      (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) == 0)
    return false;
  for (int i = 0; i < s->rank; ++i)
    if (at[i] + s->chunk[i] > s->dims[i]) return true;
  return false;
}

static void add_chunk(table *t, uint64_t index, uint64_t address, uint64_t size, unsigned mask) {
  uint64_t *row = t->rows[t->count++];
  row[0] = index;
  row[1] = address;
  row[2] = size;
  row[3] = mask;
  if (t->count == CHUNKS_PER_RECORD) flush(t);
}

/* libhdf5 has given chunk addresses without the user block in some versions and with it in others:
 * compare the bytes. */
static uint64_t chunk_base(const subject *s, int fd, const hsize_t *at, haddr_t address,
                           hsize_t size, uint64_t userblock) {
  if (userblock == 0) return 0;
  uint32_t mask = 0;
  uint8_t *ours = sn__scan_alloc(size), *theirs = sn__scan_alloc(size);
  uint64_t base = userblock;
  if (H5Dread_chunk(s->dataset, H5P_DEFAULT, at, &mask, theirs) >= 0 &&
      pread(fd, ours, size, (off_t)address) == (ssize_t)size && memcmp(ours, theirs, size) == 0)
    base = 0;
  free(ours);
  free(theirs);
  return base;
}

static uint64_t linear(const subject *s, const hsize_t *at) {
  uint64_t index = 0;
  for (int i = 0; i < s->rank; ++i)
    index =
        index * (s->dims[i] / s->chunk[i] + (s->dims[i] % s->chunk[i] != 0)) + at[i] / s->chunk[i];
  return index;
}

/* By coordinates where most of the grid exists: a look-up each; by number otherwise, which walks
 * the table from its start each time. */
static bool list_by_coordinates(const subject *s, table *t, int fd, uint64_t userblock) {
  hsize_t at[H5S_MAX_RANK] = {0};
  uint64_t base = 0;
  bool have_base = false;
  for (uint64_t index = 0;; ++index) {
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    if (H5Dget_chunk_info_by_coord(s->dataset, at, &mask, &address, &size) < 0) return false;
    if (address != HADDR_UNDEF && size > 0) {
      if (!have_base) base = chunk_base(s, fd, at, address, size, userblock);
      have_base = true;
      add_chunk(t, index, address + base, size, edge_unfiltered(s, at) ? UINT32_MAX : mask);
    }
    int i = s->rank - 1;
    for (; i >= 0; --i) {
      at[i] += s->chunk[i];
      if (at[i] < s->dims[i]) break;
      at[i] = 0;
    }
    if (i < 0) return true;
  }
}

static bool list_by_number(const subject *s, table *t, hsize_t count, int fd, uint64_t userblock) {
  uint64_t base = 0;
  for (hsize_t n = 0; n < count; ++n) {
    hsize_t at[H5S_MAX_RANK] = {0}, size = 0;
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    if (H5Dget_chunk_info(s->dataset, s->space, n, at, &mask, &address, &size) < 0) return false;
    if (address == HADDR_UNDEF || size == 0) continue;
    if (n == 0) base = chunk_base(s, fd, at, address, size, userblock);
    bool inside = true; /* chunks outlive a dataset's shrinking */
    for (int i = 0; i < s->rank; ++i)
      inside = inside && at[i] < s->dims[i];
    if (inside)
      add_chunk(t, linear(s, at), address + base, size, edge_unfiltered(s, at) ? UINT32_MAX : mask);
  }
  return true;
}

static const char *say_chunks(const subject *s, int fd, uint64_t userblock) {
  hsize_t count = 0;
  uint64_t grid = 1;
  for (int i = 0; i < s->rank; ++i)
    if (__builtin_mul_overflow(grid, s->dims[i] / s->chunk[i] + (s->dims[i] % s->chunk[i] != 0),
                               &grid))
      grid = UINT64_MAX;
  if (grid == 0) return NULL;
  if (H5Dget_num_chunks(s->dataset, s->space, &count) < 0) return sn__say_why();
  if (count == 0) return NULL;
  table *t = sn__scan_alloc(sizeof *t);
  bool ok = grid / 64 <= count ? list_by_coordinates(s, t, fd, userblock)
                               : list_by_number(s, t, count, fd, userblock);
  flush(t);
  free(t);
  return ok ? NULL : sn__say_why();
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void open_subject(subject *s, hid_t file) {
  s->type = s->space = s->plist = H5I_INVALID_HID;
  s->t.enumeration = H5I_INVALID_HID;
  s->dataset = H5Dopen2(file, s->path, H5P_DEFAULT);
  if (s->dataset < 0) return;
  s->type = H5Dget_type(s->dataset);
  s->space = H5Dget_space(s->dataset);
  s->plist = H5Dget_create_plist(s->dataset);
  if (s->type < 0 || s->space < 0 || s->plist < 0) {
    s->problem = sn__say_why();
    return;
  }
  sn__scan_type_read(s->type, &s->t);
  s->space_class = H5Sget_simple_extent_type(s->space);
  s->rank = H5Sget_simple_extent_ndims(s->space);
  if (s->rank > 0) s->rank = H5Sget_simple_extent_dims(s->space, s->dims, s->max_dims);
  if (s->rank < 0 || s->space_class == H5S_NO_CLASS) {
    s->problem = sn__say_why();
    s->rank = 0;
  }
  s->layout = layout_of(s->plist);
  if (s->layout == SN__H5_CHUNKED &&
      (H5Pget_chunk(s->plist, H5S_MAX_RANK, s->chunk) != s->rank || s->rank == 0)) {
    s->problem = "its chunk shape does not fit its shape";
    s->layout = SN__H5_CONTIGUOUS;
  }
  if ((unsigned)s->rank + s->t.array_rank > SN__H5_MAX_RANK || odd_fill(s)) {
    s->t.kind = SN__H5_KIND_NONE;
    if (s->t.array_rank + (unsigned)s->rank > SN__H5_MAX_RANK) s->t.array_rank = 0;
  }
  if (s->t.size > UINT32_MAX) s->problem = "its elements are larger than 4 GiB";
}

static void close_subject(subject *s) {
  sn__scan_type_release(&s->t);
  if (s->plist >= 0) H5Pclose(s->plist);
  if (s->space >= 0) H5Sclose(s->space);
  if (s->type >= 0) H5Tclose(s->type);
  if (s->dataset >= 0) H5Dclose(s->dataset);
}

static void say_dataset(const subject *s, uint64_t address, haddr_t data, hsize_t storage) {
  sn__say_begin(SN__WIRE_DATASET);
  sn__say_str(s->path);
  sn__say_u64(address);
  sn__say_str(s->problem != NULL ? s->problem : "");
  sn__scan_type_say(&s->t);
  say_space(s);
  sn__say_u8((unsigned)s->layout);
  sn__say_u64(data == HADDR_UNDEF ? SN__H5_NO_ADDRESS : data);
  sn__say_u64(storage);
  say_compact(s, storage);
  if (s->layout == SN__H5_CHUNKED)
    for (int i = 0; i < s->rank; ++i)
      sn__say_u64(s->chunk[i]);
  say_filters(s);
  say_fill(s);
  sn__scan_attributes_say(s->dataset);
  sn__say_end();
}

void sn__scan_dataset(hid_t file, const char *path, uint64_t address, uint64_t userblock,
                      int file_fd, bool convert) {
  subject s = {.path = path};
  sn__say_at(path, "opening it");
  open_subject(&s, file);
  if (s.dataset < 0 || s.plist < 0) {
    sn__say_words(SN__WIRE_PROBLEM, path, s.problem != NULL ? s.problem : sn__say_why());
    close_subject(&s);
    return;
  }
  haddr_t data = HADDR_UNDEF;
  hsize_t storage = 0;
  sn__say_at(path, "looking for its data");
  if (s.problem == NULL) {
    if (s.layout == SN__H5_CONTIGUOUS) data = H5Dget_offset(s.dataset);
    if (s.layout == SN__H5_COMPACT) storage = H5Dget_storage_size(s.dataset); /* others may walk */
  }
  say_dataset(&s, address, data, storage);
  const char *words = NULL;
  if (s.layout == SN__H5_CHUNKED && s.problem == NULL) {
    sn__say_at(path, "listing its chunks");
    words = say_chunks(&s, file_fd, userblock);
  }
  if (words != NULL)
    sn__say_words(SN__WIRE_PROBLEM, path, words);
  else {
    sn__say_begin(SN__WIRE_DONE);
    sn__say_end();
  }
  if (convert && s.problem == NULL) {
    sn__say_at(path, "converting it");
    sn__scan_convert(s.dataset, s.space, s.type, &s.t, path);
  }
  close_subject(&s);
}
