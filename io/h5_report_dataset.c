/* SPDX-License-Identifier: Apache-2.0 */
/* One dataset of a report: read, judged, freed. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/h5_filter.h"
#include "io/h5_report_impl.h"

#define SN__H5_MAX_CHUNK_BYTES ((uint64_t)1 << 30) /* a decoded chunk is held in memory whole */

static bool mul(uint64_t a, uint64_t b, uint64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}

static void set_problem(sn__h5_dataset *d, sn__cursor *c, char *words) {
  if (words == NULL) {
    c->no_memory = c->bad = true;
    return;
  }
  if (d->problem != NULL) /* the first one is the cause */
    sn__free(words);
  else
    d->problem = words;
}

static void read_type(sn__h5_dataset *d, sn__cursor *c) {
  sn__h5_type *t = &d->type;
  uint8_t cls = sn__cursor_u8(c), kind = sn__cursor_u8(c);
  t->flags = sn__cursor_u32(c);
  t->size = sn__cursor_u32(c);
  t->text = sn__cursor_str(c);
  uint32_t count = sn__cursor_u32(c);
  if (cls >= SN__H5_CLASS_COUNT || kind >= SN__H5_KIND_COUNT || count > SN__H5_MAX_ENUM) {
    c->bad = true;
    return;
  }
  t->cls = (sn__h5_class)cls;
  t->kind = (sn__h5_kind)kind;
  bool direct =
      cls == SN__H5_CLASS_INTEGER || cls == SN__H5_CLASS_FLOAT || cls == SN__H5_CLASS_ENUM;
  if (direct && kind != 0 && t->size != sn__h5_kind_size(t->kind)) c->bad = true;
  if (!direct && cls != SN__H5_CLASS_VLEN && kind != 0) c->bad = true;
  t->names = sn__cursor_array(c, count, sizeof *t->names, 12);
  for (uint32_t i = 0; t->names != NULL && i < count; ++i) {
    t->names[i].name = sn__cursor_str(c);
    t->names[i].value = (int64_t)sn__cursor_u64(c);
    t->name_count = i + 1;
  }
}

static void read_space(sn__h5_dataset *d, sn__cursor *c) {
  d->null_space = sn__cursor_u8(c) == 0;
  uint8_t rank = sn__cursor_u8(c), array_rank = sn__cursor_u8(c);
  if (array_rank > SN__H5_MAX_ARRAY_RANK || (unsigned)rank + array_rank > SN__H5_MAX_RANK) {
    c->bad = true;
    return;
  }
  d->space_rank = rank;
  d->rank = (unsigned)rank + array_rank;
  d->elements = d->null_space ? 0 : 1;
  for (unsigned i = 0; i < d->rank; ++i) { /* an array type's extents come after the space's */
    d->dims[i] = sn__cursor_u64(c);
    d->max_dims[i] = sn__cursor_u64(c);
    if (!mul(d->elements, d->dims[i], &d->elements)) c->bad = true;
  }
  uint64_t bytes;
  if (!mul(d->elements, d->type.size > 8 ? d->type.size : 8, &bytes) || bytes > INT64_MAX)
    c->bad = true;
}

static void read_chunk_shape(sn__h5_dataset *d, sn__cursor *c) {
  uint64_t bytes = d->type.size;
  d->grid_count = d->null_space ? 0 : 1;
  for (unsigned i = 0; i < d->rank; ++i) {
    uint64_t extent = i < d->space_rank ? sn__cursor_u64(c) : d->dims[i];
    if (c->bad || extent == 0 || extent > UINT32_MAX || !mul(bytes, extent, &bytes)) {
      c->bad = true;
      return;
    }
    d->chunk_dims[i] = extent;
    d->grid[i] = d->dims[i] / extent + (d->dims[i] % extent != 0);
    if (!mul(d->grid_count, d->grid[i], &d->grid_count)) c->bad = true;
  }
  if (bytes > SN__H5_MAX_CHUNK_BYTES)
    set_problem(d, c,
                sn__format("its chunks hold %llu MiB each, more than the 1024 MiB that one may: "
                           "write it again with smaller chunks (h5repack -l CHUNK=...)",
                           (unsigned long long)(bytes >> 20)));
  else
    d->chunk_bytes = (size_t)bytes;
}

static void read_filters(sn__h5_dataset *d, sn__cursor *c) {
  uint8_t count = sn__cursor_u8(c);
  if (count > SN__H5_MAX_FILTERS) c->bad = true;
  d->filters = sn__cursor_array(c, count, sizeof *d->filters, 13);
  for (uint8_t i = 0; d->filters != NULL && i < count; ++i) {
    sn__h5_filter *f = &d->filters[i];
    d->filter_count = (size_t)i + 1;
    f->id = sn__cursor_u32(c);
    f->available = sn__cursor_u8(c) != 0;
    f->ours = sn__h5_filter_is_ours(f->id);
    f->name = sn__cursor_str(c);
    uint32_t params = sn__cursor_u32(c);
    f->params = sn__cursor_array(c, params, sizeof *f->params, 4);
    for (uint32_t k = 0; f->params != NULL && k < params; ++k)
      f->params[k] = sn__cursor_u32(c);
    f->param_count = f->params != NULL ? params : 0;
  }
}

static void read_fill(sn__h5_dataset *d, sn__cursor *c) {
  d->fill_defined = sn__cursor_u8(c) != 0;
  size_t size;
  uint8_t *bytes = sn__cursor_blob(c, &size);
  if (bytes != NULL && size <= sizeof d->fill && size == d->type.size) memcpy(d->fill, bytes, size);
  sn__free(bytes);
}

static void read_attributes(sn__h5_dataset *d, sn__cursor *c) {
  uint32_t count = sn__cursor_u32(c);
  d->attributes = sn__cursor_array(c, count, sizeof *d->attributes, 8);
  for (uint32_t i = 0; d->attributes != NULL && i < count; ++i) {
    d->attribute_count = (size_t)i + 1;
    d->attributes[i].name = sn__cursor_str(c);
    d->attributes[i].text = sn__cursor_str(c);
  }
}

void sn__h5_dataset_read(sn__h5_dataset *d, sn__cursor *c) {
  d->path = sn__cursor_str(c);
  d->address = sn__cursor_u64(c);
  char *problem = sn__cursor_str(c);
  if (problem != NULL && *problem != '\0')
    d->problem = problem;
  else
    sn__free(problem);
  read_type(d, c);
  read_space(d, c);
  uint8_t layout = sn__cursor_u8(c);
  if (c->bad || layout >= SN__H5_LAYOUT_COUNT) {
    c->bad = true;
    return;
  }
  d->layout = (sn__h5_layout)layout;
  d->data_address = sn__cursor_u64(c);
  d->storage = sn__cursor_u64(c);
  d->compact = sn__cursor_blob(c, &d->compact_size);
  if (d->layout == SN__H5_CHUNKED) read_chunk_shape(d, c);
  read_filters(d, c);
  read_fill(d, c);
  read_attributes(d, c);
}

void sn__h5_dataset_clear(sn__h5_dataset *d) {
  sn__free(d->path);
  sn__free(d->problem);
  sn__free(d->type.text);
  for (size_t i = 0; i < d->type.name_count; ++i)
    sn__free(d->type.names[i].name);
  sn__free(d->type.names);
  for (size_t i = 0; i < d->filter_count; ++i) {
    sn__free(d->filters[i].name);
    sn__free(d->filters[i].params);
  }
  sn__free(d->filters);
  for (size_t i = 0; i < d->attribute_count; ++i) {
    sn__free(d->attributes[i].name);
    sn__free(d->attributes[i].text);
  }
  sn__free(d->attributes);
  sn__free(d->compact);
  sn__free(d->chunks);
  sn__free(d->converted);
}

/* ---- judging ------------------------------------------------------------------------------- */

static int by_index(const void *a, const void *b) {
  const sn__h5_chunk *x = a, *y = b;
  return (x->index > y->index) - (x->index < y->index);
}

static void check_chunks(sn__h5_dataset *d, uint64_t file_size, sn__cursor *c) {
  if (d->chunk_count > 0) qsort(d->chunks, d->chunk_count, sizeof *d->chunks, by_index);
  for (size_t i = 0; i < d->chunk_count && d->problem == NULL && !c->bad; ++i) {
    const sn__h5_chunk *k = &d->chunks[i];
    if (k->index >= d->grid_count || (i > 0 && k->index == d->chunks[i - 1].index))
      set_problem(d, c,
                  sn__format("its chunk table is damaged: chunk %llu of %llu is listed twice or "
                             "lies outside; get the file again from where it came",
                             (unsigned long long)k->index, (unsigned long long)d->grid_count));
    else if (k->address > file_size || k->size > file_size - k->address)
      set_problem(d, c,
                  sn__format("its chunk %llu of %llu lies beyond the end of the file: a copy "
                             "that was cut short or a damaged file; get it again from where it "
                             "came",
                             (unsigned long long)k->index, (unsigned long long)d->grid_count));
  }
}

void sn__h5_dataset_check(sn__h5_dataset *d, uint64_t file_size, sn__cursor *c) {
  uint64_t bytes = d->elements * d->type.size; /* cannot overflow: read_space() saw to it */
  if (d->layout == SN__H5_CHUNKED) check_chunks(d, file_size, c);
  if (sn__h5_dataset_foreign(d) != NULL) return; /* libhdf5 would do the reading */
  if (d->layout == SN__H5_COMPACT && d->compact_size != bytes && bytes != 0)
    set_problem(d, c,
                sn__format("it holds %zu bytes in place of %llu: the file is damaged",
                           d->compact_size, (unsigned long long)bytes));
  if (d->layout == SN__H5_CONTIGUOUS && d->data_address != SN__H5_NO_ADDRESS &&
      (d->data_address > file_size || bytes > file_size - d->data_address))
    set_problem(d, c,
                sn__format("its %llu bytes reach beyond the end of the file: a copy that was "
                           "cut short or a damaged file; get it again from where it came",
                           (unsigned long long)bytes));
}

const char *sn__h5_dataset_foreign(const sn__h5_dataset *d) {
  if (d->layout == SN__H5_VIRTUAL) return "a virtual layout";
  if (d->layout == SN__H5_EXTERNAL) return "external files";
  for (size_t i = 0; i < d->filter_count; ++i)
    if (!d->filters[i].ours) return "a filter of libhdf5's own";
  switch (d->type.cls) {
  case SN__H5_CLASS_STRING:
    return (d->type.flags & SN__H5_VLEN_STRING) != 0 ? "strings of variable length" : NULL;
  case SN__H5_CLASS_VLEN: return "variable length";
  case SN__H5_CLASS_INTEGER:
  case SN__H5_CLASS_FLOAT:
  case SN__H5_CLASS_ENUM: return d->type.kind == SN__H5_KIND_NONE ? "an unusual number type" : NULL;
  default: return "a type that is neither number nor text";
  }
}

const sn__h5_filter *sn__h5_dataset_missing_filter(const sn__h5_dataset *d) {
  for (size_t i = 0; i < d->filter_count; ++i)
    if (!d->filters[i].ours && !d->filters[i].available) return &d->filters[i];
  return NULL;
}

/* Registered numbers that people meet. */
const char *sn__h5_filter_known_name(uint32_t id) {
  static const struct {
    uint32_t id;
    const char *name;
  } known[] = {{1, "gzip"},      {2, "shuffle"},     {3, "fletcher32"},     {4, "szip"},
               {5, "nbit"},      {6, "scaleoffset"}, {307, "bzip2"},        {32000, "lzf"},
               {32001, "blosc"}, {32004, "lz4"},     {32008, "bitshuffle"}, {32013, "zfp"},
               {32015, "zstd"},  {32017, "sz"},      {32024, "sz3"},        {32026, "blosc2"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (known[i].id == id) return known[i].name;
  return NULL;
}
