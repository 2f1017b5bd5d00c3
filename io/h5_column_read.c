/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges, parts and lists of rows, from chunks or from flat bytes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/h5_column_impl.h"
#include "io/h5_convert.h"
#include "io/h5_read.h"

#define STAGE_BYTES         ((size_t)1 << 18)
#define DEFAULT_CACHE_BYTES ((size_t)64 << 20)

/* ---- readers ------------------------------------------------------------------------------- */

sn_status sn__h5_reader_create(size_t cache_bytes, sn__h5_reader **out_reader) {
  sn__h5_reader *r = sn__calloc(1, sizeof *r);
  if (r == NULL) return sn_status_out_of_memory();
  r->cache_bytes = cache_bytes > 0 ? cache_bytes : DEFAULT_CACHE_BYTES;
  *out_reader = r;
  return SN_OK;
}

void sn__h5_reader_free(sn__h5_reader *r) {
  if (r == NULL) return;
  for (size_t i = 0; i < r->cache_count; ++i)
    sn__free(r->cache[i].bytes);
  sn__free(r->cache);
  sn__free(r->stage);
  sn__free(r->order);
  sn__h5_scratch_clear(&r->scratch);
  sn__free(r);
}

static sn_status need_stage(sn__h5_reader *r, size_t size) {
  if (size <= r->stage_size) return SN_OK;
  uint8_t *bytes = sn__realloc(r->stage, size);
  if (bytes == NULL) return sn_status_out_of_memory();
  r->stage = bytes;
  r->stage_size = size;
  return SN_OK;
}

static void evict_oldest(sn__h5_reader *r) {
  size_t oldest = 0;
  for (size_t i = 1; i < r->cache_count; ++i)
    if (r->cache[i].used < r->cache[oldest].used) oldest = i;
  r->cached -= r->cache[oldest].size;
  sn__free(r->cache[oldest].bytes);
  r->cache[oldest] = r->cache[--r->cache_count];
}

/* The decoded chunk, borrowed until the next call. */
static sn_status cached_chunk(const sn__h5_column *c, sn__h5_reader *r, uint64_t index,
                              const uint8_t **out) {
  for (size_t i = 0; i < r->cache_count; ++i)
    if (r->cache[i].column == c->serial && r->cache[i].index == index) {
      r->cache[i].used = ++r->tick;
      *out = r->cache[i].bytes;
      return SN_OK;
    }
  size_t size = c->dataset->chunk_bytes;
  while (r->cache_count > 0 && (r->cached + size > r->cache_bytes || r->cache_count == 256))
    evict_oldest(r);
  if (!sn__grow((void **)&r->cache, &r->cache_capacity, r->cache_count + 1, sizeof *r->cache))
    return sn_status_out_of_memory();
  uint8_t *bytes = sn__alloc(size);
  if (bytes == NULL) return sn_status_out_of_memory();
  sn_status s = sn__h5_chunk_read(c->dataset, c->fd, index, &r->scratch, bytes);
  if (s != SN_OK) {
    sn__free(bytes);
    return s;
  }
  r->cache[r->cache_count++] = (struct sn__h5_cached){c->serial, index, ++r->tick, bytes, size};
  r->cached += size;
  *out = bytes;
  return SN_OK;
}

/* ---- elements ------------------------------------------------------------------------------ */

size_t sn__h5_column_item(const sn__h5_column *c, sn_dtype dtype) {
  return dtype == SN_DTYPE_NONE ? c->info.item_bytes : sn_dtype_size(dtype);
}

static sn_status unfit(const sn__h5_column *c, const void *in, size_t i, sn_dtype dtype,
                       int64_t row, int64_t column) {
  double v = sn__h5_value(c->info.stored, in, i);
  return sn_status_make(SN_CODE_DATA, "row %lld, column %lld: %.17g is no %s%s", (long long)row,
                        (long long)column, v, sn_dtype_name(dtype),
                        dtype == SN_BOOL ? " (0 or 1)"
                                         : " number: integers in its range are wanted");
}

/* `count` elements of one or more whole rows, or a run within row `row` that begins at `column`. */
static sn_status put(const sn__h5_column *c, const void *in, int64_t count, sn_dtype dtype,
                     void *out, int64_t row, int64_t column) {
  if (dtype == SN_DTYPE_NONE) {
    memcpy(out, in, (size_t)count * c->info.item_bytes);
    return SN_OK;
  }
  size_t done = sn__h5_convert(c->info.stored, in, (size_t)count, dtype, out);
  if (done == (size_t)count) return SN_OK;
  int64_t at = column + (int64_t)done;
  return unfit(c, in, done, dtype, row + at / c->info.width, at % c->info.width);
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* A chunk's place in the rows: computed once per chunk. */
typedef struct tile {
  int64_t row0, rows;               /* that it holds, clipped to the dataset */
  int64_t row_elements;             /* of the chunk, from one row to the next in its bytes */
  int64_t run;                      /* elements that lie together in both */
  unsigned outer;                   /* axes 1..outer-1 are stepped over */
  uint64_t origin[SN__H5_MAX_RANK]; /* of the chunk */
  uint64_t extent[SN__H5_MAX_RANK]; /* clipped */
  int64_t first;                    /* of a row's elements, that the chunk holds */
  bool whole_rows;                  /* one run per row, and rows follow each other */
} tile;

static void make_tile(const sn__h5_column *c, uint64_t index, tile *t) {
  memset(t, 0, sizeof *t);
  const sn__h5_dataset *d = c->dataset;
  unsigned rank = d->rank;
  uint64_t rest = index;
  t->row_elements = 1;
  for (unsigned i = rank; i-- > 0;) {
    t->origin[i] = rest % d->grid[i] * d->chunk_dims[i];
    rest /= d->grid[i];
    uint64_t left = d->dims[i] - t->origin[i];
    t->extent[i] = left < d->chunk_dims[i] ? left : d->chunk_dims[i];
    if (i > 0) t->row_elements *= (int64_t)d->chunk_dims[i];
  }
  uint64_t first = 0;
  for (unsigned i = 1; i < rank; ++i)
    first = first * d->dims[i] + t->origin[i];
  t->first = (int64_t)first;
  t->row0 = (int64_t)t->origin[0];
  t->rows = (int64_t)t->extent[0];
  t->run = 1;
  unsigned k = rank;
  while (k > 1) {
    --k;
    t->run *= (int64_t)t->extent[k];
    if (t->extent[k] != d->chunk_dims[k] || t->extent[k] != d->dims[k]) break;
  }
  t->outer = rank > 1 ? k : 1;
  t->whole_rows = t->run == c->info.width && t->run == t->row_elements;
}

/* Row `local` of the chunk into its places in the dataset's row at `out`. */
static sn_status put_row(const sn__h5_column *c, const tile *t, const uint8_t *chunk, int64_t local,
                         sn_dtype dtype, uint8_t *out) {
  const sn__h5_dataset *d = c->dataset;
  size_t from_item = c->info.item_bytes, to_item = sn__h5_column_item(c, dtype);
  uint64_t at[SN__H5_MAX_RANK] = {0};
  for (;;) {
    uint64_t from = (uint64_t)local, to = 0;
    for (unsigned i = 1; i < d->rank; ++i) {
      from = from * d->chunk_dims[i] + at[i];
      to = to * d->dims[i] + t->origin[i] + at[i];
    }
    SN_TRY(put(c, chunk + from * from_item, t->run, dtype, out + to * to_item, t->row0 + local,
               (int64_t)to));
    unsigned i = t->outer;
    while (i-- > 1) {
      if (++at[i] < t->extent[i]) break;
      at[i] = 0;
    }
    if (i == 0) return SN_OK;
  }
}

/* Rows [row0, row1) of those that the chunk holds; `out` is where row `row0` goes. */
static sn_status put_rows(const sn__h5_column *c, const tile *t, const uint8_t *chunk, int64_t row0,
                          int64_t row1, sn_dtype dtype, uint8_t *out) {
  size_t row_bytes = (size_t)c->info.width * sn__h5_column_item(c, dtype);
  if (t->whole_rows)
    return put(c, chunk + (size_t)((row0 - t->row0) * t->row_elements) * c->info.item_bytes,
               (row1 - row0) * c->info.width, dtype, out, row0, 0);
  if (t->outer == 1) { /* one run a row: the common shape of chunks narrower than a row */
    size_t to_item = sn__h5_column_item(c, dtype),
           step = (size_t)t->row_elements * c->info.item_bytes;
    const uint8_t *from = chunk + (size_t)(row0 - t->row0) * step;
    out += (size_t)t->first * to_item;
    sn__h5_runs runs = {(size_t)(row1 - row0), (size_t)t->run, step, row_bytes};
    if (dtype == SN_DTYPE_NONE) {
      sn__h5_copy_runs(runs.length * to_item, runs, from, out);
      return SN_OK;
    }
    if (sn__h5_convert_runs(c->info.stored, runs, from, dtype, out)) return SN_OK;
    for (int64_t row = row0; row < row1; ++row, from += step, out += row_bytes)
      SN_TRY(put(c, from, t->run, dtype, out, row, t->first));
    return SN_OK;
  }
  for (int64_t row = row0; row < row1; ++row)
    SN_TRY(put_row(c, t, chunk, row - t->row0, dtype, out + (size_t)(row - row0) * row_bytes));
  return SN_OK;
}

static sn_status read_chunks(const sn__h5_column *c, sn__h5_reader *r, int64_t row0, int64_t rows,
                             sn_dtype dtype, uint8_t *out) {
  size_t row_bytes = (size_t)c->info.width * sn__h5_column_item(c, dtype);
  int64_t end = row0 + rows;
  for (int64_t band = row0 / c->band_rows; band * c->band_rows < end; ++band)
    for (int64_t part = 0; part < c->info.parts; ++part) {
      uint64_t index = (uint64_t)(band * c->info.parts + part);
      const uint8_t *chunk = NULL;
      tile t;
      SN_TRY(cached_chunk(c, r, index, &chunk));
      make_tile(c, index, &t);
      int64_t from = t.row0 > row0 ? t.row0 : row0;
      int64_t to = t.row0 + t.rows < end ? t.row0 + t.rows : end;
      SN_TRY(put_rows(c, &t, chunk, from, to, dtype, out + (size_t)(from - row0) * row_bytes));
    }
  return SN_OK;
}

/* ---- flat ---------------------------------------------------------------------------------- */

static sn_status flat_bytes(const sn__h5_column *c, uint64_t first, size_t count, uint8_t *out) {
  size_t item = c->info.item_bytes;
  switch (c->store) {
  case SN__H5_STORE_FLAT:
    SN_TRY(sn__h5_pread(c->fd, c->at + first * item, out, count * item));
    break;
  case SN__H5_STORE_MEMORY: memcpy(out, c->dataset->compact + first * item, count * item); break;
  default: sn__h5_fill(c->dataset, count, out); return SN_OK;
  }
  if (c->swap) sn__h5_swap(out, count, item);
  return SN_OK;
}

static bool is_as_stored(const sn__h5_column *c, sn_dtype dtype) {
  sn__h5_kind k = c->info.stored;
  return dtype == SN_DTYPE_NONE || (dtype == SN_F32 && k == SN__H5_F32) ||
         (dtype == SN_F64 && k == SN__H5_F64) || (dtype == SN_I64 && k == SN__H5_I64) ||
         (dtype == SN_I32 && k == SN__H5_I32) || (dtype == SN_U8 && k == SN__H5_U8);
}

static sn_status read_flat(const sn__h5_column *c, sn__h5_reader *r, int64_t row0, int64_t rows,
                           sn_dtype dtype, uint8_t *out) {
  uint64_t first = (uint64_t)row0 * (uint64_t)c->info.width;
  uint64_t left = (uint64_t)rows * (uint64_t)c->info.width;
  if (is_as_stored(c, dtype)) return flat_bytes(c, first, (size_t)left, out);
  size_t block = STAGE_BYTES / c->info.item_bytes, item = sn_dtype_size(dtype);
  SN_TRY(need_stage(r, STAGE_BYTES));
  int64_t column = 0; /* counted on from row0 */
  while (left > 0) {
    size_t n = left < block ? (size_t)left : block;
    SN_TRY(flat_bytes(c, first, n, r->stage));
    SN_TRY(put(c, r->stage, (int64_t)n, dtype, out, row0, column));
    first += n;
    left -= n;
    column += (int64_t)n;
    out += n * item;
  }
  return SN_OK;
}

/* ---- the calls ----------------------------------------------------------------------------- */

static sn_status check_request(const sn__h5_column *c, int64_t row0, int64_t rows, sn_dtype dtype) {
  if (rows < 0 || row0 < 0 || row0 > c->info.rows || rows > c->info.rows - row0)
    return sn_status_make(SN_CODE_INVALID,
                          "%" PRId64 " rows from %" PRId64 " are not all in its %" PRId64 " rows",
                          rows, row0, c->info.rows);
  if (dtype != SN_DTYPE_NONE && !sn__h5_convertible(c->info.stored, dtype))
    return sn_status_make(SN_CODE_UNSUPPORTED, "%s cannot be read as %s numbers",
                          c->dataset->type.text, sn_dtype_name(dtype));
  if (c->info.kind == SN__H5_COLUMN_RAGGED)
    return sn_status_make(SN_CODE_UNSUPPORTED, "rows of variable length are read as a sequence or "
                                               "set, not as a table");
  return SN_OK;
}

static sn_status read_rows(const sn__h5_column *c, sn__h5_reader *r, int64_t row0, int64_t rows,
                           sn_dtype dtype, void *out) {
  if (rows == 0 || c->info.width == 0) return SN_OK;
  if (c->store == SN__H5_STORE_CHUNKS) return read_chunks(c, r, row0, rows, dtype, out);
  return read_flat(c, r, row0, rows, dtype, out);
}

sn_status sn__h5_column_read(const sn__h5_column *c, sn__h5_reader *r, int64_t row0, int64_t rows,
                             sn_dtype dtype, void *out) {
  sn_status s = check_request(c, row0, rows, dtype);
  if (s == SN_OK) s = read_rows(c, r, row0, rows, dtype, out);
  return sn__h5_column_context(c, s);
}

sn_status sn__h5_column_read_part(const sn__h5_column *c, sn__h5_reader *r, int64_t band,
                                  int64_t part, sn_dtype dtype, void *out) {
  int64_t row0, row1;
  sn__h5_column_band(c, band, &row0, &row1);
  sn_status s = check_request(c, row0, row1 - row0, dtype);
  if (s == SN_OK && (band < 0 || part < 0 || part >= c->info.parts))
    s = sn_status_make(SN_CODE_INVALID, "it has no part %lld", (long long)part);
  if (s == SN_OK && c->info.width > 0) {
    if (c->store == SN__H5_STORE_CHUNKS) {
      uint64_t index = (uint64_t)(band * c->info.parts + part);
      tile t;
      make_tile(c, index, &t);
      s = need_stage(r, c->dataset->chunk_bytes);
      if (s == SN_OK) s = sn__h5_chunk_read(c->dataset, c->fd, index, &r->scratch, r->stage);
      if (s == SN_OK) s = put_rows(c, &t, r->stage, row0, row1, dtype, out);
    } else {
      s = read_rows(c, r, row0, row1 - row0, dtype, out);
    }
  }
  return sn__h5_column_context(c, s);
}

/* ---- lists of rows ------------------------------------------------------------------------- */

static sn_status gather_flat(const sn__h5_column *c, sn__h5_reader *r, const int64_t *rows,
                             int64_t count, sn_dtype dtype, uint8_t *out) {
  size_t row_bytes = (size_t)c->info.width * sn__h5_column_item(c, dtype);
  for (int64_t i = 0, n; i < count; i += n) {
    n = 1; /* rows that follow each other are one read */
    while (i + n < count && rows[i + n] == rows[i] + n)
      ++n;
    SN_TRY(read_flat(c, r, rows[i], n, dtype, out + (size_t)i * row_bytes));
  }
  return SN_OK;
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* order[] = (band, place in rows) pairs, by band: each chunk is then decoded once. */
static sn_status sort_by_band(const sn__h5_column *c, sn__h5_reader *r, const int64_t *rows,
                              int64_t count) {
  size_t need;
  if (!sn__size_mul((size_t)count, 2 * sizeof(int64_t), &need) ||
      !sn__grow((void **)&r->order, &r->order_capacity, (size_t)count * 2, sizeof *r->order))
    return sn_status_out_of_memory();
  for (int64_t i = 0; i < count; ++i) {
    r->order[2 * i] = rows[i] / c->band_rows;
    r->order[2 * i + 1] = i;
  }
  qsort(r->order, (size_t)count, 2 * sizeof *r->order, by_value);
  return SN_OK;
}

static sn_status gather_chunks(const sn__h5_column *c, sn__h5_reader *r, const int64_t *rows,
                               int64_t count, sn_dtype dtype, uint8_t *out) {
  size_t row_bytes = (size_t)c->info.width * sn__h5_column_item(c, dtype);
  SN_TRY(sort_by_band(c, r, rows, count));
  for (int64_t i = 0, next; i < count; i = next) {
    int64_t band = r->order[2 * i];
    for (next = i; next < count && r->order[2 * next] == band;)
      ++next;
    for (int64_t part = 0; part < c->info.parts; ++part) {
      uint64_t index = (uint64_t)(band * c->info.parts + part);
      const uint8_t *chunk = NULL;
      tile t;
      SN_TRY(cached_chunk(c, r, index, &chunk));
      make_tile(c, index, &t);
      for (int64_t k = i; k < next; ++k) {
        int64_t place = r->order[2 * k + 1];
        SN_TRY(put_rows(c, &t, chunk, rows[place], rows[place] + 1, dtype,
                        out + (size_t)place * row_bytes));
      }
    }
  }
  return SN_OK;
}

sn_status sn__h5_column_gather(const sn__h5_column *c, sn__h5_reader *r, const int64_t *rows,
                               int64_t count, sn_dtype dtype, void *out) {
  sn_status s = check_request(c, 0, 0, dtype);
  for (int64_t i = 0; s == SN_OK && i < count; ++i)
    s = check_request(c, rows[i], 1, dtype);
  if (s == SN_OK && count > 0 && c->info.width > 0)
    s = c->store == SN__H5_STORE_CHUNKS ? gather_chunks(c, r, rows, count, dtype, out)
                                        : gather_flat(c, r, rows, count, dtype, out);
  return sn__h5_column_context(c, s);
}
