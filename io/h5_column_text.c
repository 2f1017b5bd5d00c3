/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and ragged rows. */
#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"
#include "io/h5_column_impl.h"
#include "io/h5_read.h"

void sn__h5_strings_clear(sn__h5_strings *s) {
  sn__free(s->offsets);
  sn__free(s->bytes);
  memset(s, 0, sizeof *s);
}

/* Positions first..first+count of a converted column, checked. */
static sn_status read_offsets(const sn__h5_column *c, uint64_t first, uint64_t count,
                              int64_t *out) {
  SN_TRY(sn__h5_pread(c->fd, c->offsets_at + 8 * first, out, (size_t)(count + 1) * sizeof *out));
  for (uint64_t i = 0; i <= count; ++i)
    if (out[i] < (i > 0 ? out[i - 1] : 0) || (uint64_t)out[i] > c->bytes_count)
      return sn_status_make(SN_CODE_CORRUPT, "row %" PRIu64 ": its length is damaged", first + i);
  return SN_OK;
}

sn_status sn__h5_column_offsets(const sn__h5_column *c, int64_t row0, int64_t rows, int64_t *out) {
  sn_status s = SN_OK;
  if (c->values == NULL)
    s = sn_status_make(SN_CODE_INVALID, "its rows are not of variable length");
  else if (row0 < 0 || rows < 0 || row0 > c->info.rows || rows > c->info.rows - row0)
    s = sn_status_make(SN_CODE_INVALID,
                       "%" PRId64 " rows from %" PRId64 " are not all in its %" PRId64 " rows",
                       rows, row0, c->info.rows);
  else
    s = read_offsets(c, (uint64_t)(row0 * c->info.width), (uint64_t)(rows * c->info.width), out);
  return sn__h5_column_context(c, s);
}

static sn_status converted_strings(const sn__h5_column *c, uint64_t first, sn__h5_strings *out) {
  SN_TRY(read_offsets(c, first, (uint64_t)out->count, out->offsets));
  int64_t begin = out->offsets[0], size = out->offsets[out->count] - begin;
  out->bytes = sn__alloc((size_t)size + 1);
  if (out->bytes == NULL) return sn_status_out_of_memory();
  for (int64_t i = 0; i <= out->count; ++i)
    out->offsets[i] -= begin;
  return sn__h5_pread(c->fd, c->at + (uint64_t)begin, out->bytes, (size_t)size);
}

static size_t text_length(const char *text, size_t size, bool space_pad) {
  if (!space_pad) return strnlen(text, size);
  while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\0'))
    --size;
  return size;
}

/* Reads the padded elements, then closes the gaps in place. */
static sn_status fixed_strings(const sn__h5_column *c, sn__h5_reader *r, int64_t row0, int64_t rows,
                               sn__h5_strings *out) {
  size_t item = c->info.item_bytes, size;
  if (!sn__size_mul((size_t)out->count, item, &size)) return sn_status_out_of_memory();
  out->bytes = sn__alloc(size + 1);
  if (out->bytes == NULL) return sn_status_out_of_memory();
  SN_TRY(sn__h5_column_read(c, r, row0, rows, SN_DTYPE_NONE, out->bytes));
  bool space_pad = (c->dataset->type.flags & SN__H5_SPACE_PAD) != 0;
  int64_t to = 0;
  for (int64_t i = 0; i < out->count; ++i) {
    const char *text = out->bytes + (size_t)i * item;
    size_t n = text_length(text, item, space_pad);
    memmove(out->bytes + to, text, n);
    out->offsets[i] = to;
    to += (int64_t)n;
  }
  out->offsets[out->count] = to;
  return SN_OK;
}

sn_status sn__h5_column_strings(const sn__h5_column *c, sn__h5_reader *r, int64_t row0,
                                int64_t rows, sn__h5_strings *out) {
  sn__h5_strings t = {0};
  sn_status s = SN_OK;
  if (c->info.kind != SN__H5_COLUMN_STRING)
    s = sn_status_make(SN_CODE_DATA, "it holds %s, not text", c->dataset->type.text);
  else if (row0 < 0 || rows < 0 || row0 > c->info.rows || rows > c->info.rows - row0)
    s = sn_status_make(SN_CODE_INVALID,
                       "%" PRId64 " rows from %" PRId64 " are not all in its %" PRId64 " rows",
                       rows, row0, c->info.rows);
  if (s != SN_OK) return sn__h5_column_context(c, s);
  t.count = rows * c->info.width;
  size_t bytes;
  if (sn__size_mul((size_t)t.count + 1, sizeof *t.offsets, &bytes)) t.offsets = sn__alloc(bytes);
  if (t.offsets == NULL) return sn_status_out_of_memory();
  if (c->info.converted)
    s = sn__h5_column_context(c, converted_strings(c, (uint64_t)(row0 * c->info.width), &t));
  else
    s = fixed_strings(c, r, row0, rows, &t);
  if (s != SN_OK) {
    sn__h5_strings_clear(&t);
    return s;
  }
  *out = t;
  return SN_OK;
}
