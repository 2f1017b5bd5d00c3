/* SPDX-License-Identifier: Apache-2.0 */
#include "io/h5_filter.h"

#include <string.h>
#include <zlib.h>

#include "core/alloc.h"

bool sn__h5_filter_is_ours(uint32_t id) {
  return id == SN__H5_FILTER_DEFLATE || id == SN__H5_FILTER_SHUFFLE ||
         id == SN__H5_FILTER_FLETCHER32 || id == SN__H5_FILTER_LZF;
}

void sn__h5_scratch_clear(sn__h5_scratch *s) {
  sn__free(s->buffer[0]);
  sn__free(s->buffer[1]);
  if (s->inflate != NULL) inflateEnd(s->inflate);
  sn__free(s->inflate);
  memset(s, 0, sizeof *s);
}

uint8_t *sn__h5_scratch_need(sn__h5_scratch *s, int which, size_t size) {
  if (size <= s->capacity[which] && s->buffer[which] != NULL) return s->buffer[which];
  uint8_t *bytes = sn__realloc(s->buffer[which], size == 0 ? 1 : size);
  if (bytes == NULL) return NULL;
  s->buffer[which] = bytes;
  s->capacity[which] = size;
  return bytes;
}

/* ---- each filter --------------------------------------------------------------------------- */

static void unshuffle(const uint8_t *in, uint8_t *out, size_t size, size_t item) {
  size_t count = size / item, whole = count * item;
  if (count == 0) item = 0; /* of a hostile size: nothing was shuffled */
  if (item == 4) {          /* the common one, written so that the compiler keeps it in registers */
    const uint8_t *a = in, *b = in + count, *c = in + 2 * count, *d = in + 3 * count;
    for (size_t i = 0; i < count; ++i) {
      out[4 * i] = a[i];
      out[4 * i + 1] = b[i];
      out[4 * i + 2] = c[i];
      out[4 * i + 3] = d[i];
    }
  } else {
    for (size_t byte = 0; byte < item; ++byte)
      for (size_t i = 0; i < count; ++i)
        out[i * item + byte] = in[byte * count + i];
  }
  memcpy(out + whole, in + whole, size - whole);
}

uint32_t sn__h5_fletcher32(const uint8_t *bytes, size_t size) {
  uint64_t a = 0, b = 0;
  size_t words = size / 2;
  for (size_t i = 0; i < words;) {
    size_t stop = words - i > 16384 ? i + 16384 : words; /* far from overflow of 64 bits */
    for (; i < stop; ++i) {
      a += (uint64_t)bytes[2 * i] << 8 | bytes[2 * i + 1];
      b += a;
    }
    a %= 65535;
    b %= 65535;
  }
  if (size % 2 != 0) {
    a += (uint64_t)bytes[size - 1] << 8;
    b += a;
  }
  return (uint32_t)(b % 65535) << 16 | (uint32_t)(a % 65535);
}

static bool same_sum(uint32_t a, uint32_t b) {
  return (a >> 16) % 65535 == (b >> 16) % 65535 && (a & 65535) % 65535 == (b & 65535) % 65535;
}

static uint32_t swap_pairs(uint32_t v) {
  return (v & 0x00ff00ffu) << 8 | (v & 0xff00ff00u) >> 8;
}

static sn_status inflate_into(sn__h5_scratch *s, const uint8_t *in, size_t size, uint8_t *out,
                              size_t capacity, size_t *out_size) {
  if (s->inflate == NULL) {
    s->inflate = sn__calloc(1, sizeof *s->inflate);
    if (s->inflate == NULL) return sn_status_out_of_memory();
    if (inflateInit(s->inflate) != Z_OK) {
      sn__free(s->inflate);
      s->inflate = NULL;
      return sn_status_out_of_memory();
    }
  } else if (inflateReset(s->inflate) != Z_OK) {
    return sn_status_make(SN_CODE_INTERNAL, "zlib cannot start anew");
  }
  z_stream *z = s->inflate;
  size_t most = (uInt)-1; /* chunks are at most 1 GiB, so one call does */
  z->next_in = (Bytef *)(uintptr_t)in;
  z->avail_in = (uInt)(size < most ? size : most);
  z->next_out = out;
  z->avail_out = (uInt)(capacity < most ? capacity : most);
  int e = inflate(z, Z_FINISH);
  if (e != Z_STREAM_END)
    return sn_status_make(SN_CODE_CORRUPT, "its gzip data is damaged (%s)",
                          e == Z_BUF_ERROR ? "it does not end where its chunk does"
                          : z->msg != NULL ? z->msg
                                           : "no valid stream");
  *out_size = capacity - z->avail_out;
  return SN_OK;
}

/* ---- the pipeline -------------------------------------------------------------------------- */

static sn_status undo(const sn__h5_filter *f, sn__h5_scratch *s, const uint8_t *in, size_t size,
                      uint8_t *out, size_t capacity, size_t *out_size) {
  switch (f->id) {
  case SN__H5_FILTER_DEFLATE: return inflate_into(s, in, size, out, capacity, out_size);
  case SN__H5_FILTER_LZF:
    *out_size = sn__h5_lzf_decode(in, size, out, capacity);
    if (*out_size == SIZE_MAX) return sn_status_make(SN_CODE_CORRUPT, "its LZF data is damaged");
    return SN_OK;
  case SN__H5_FILTER_SHUFFLE: {
    size_t item = f->param_count > 0 && f->params[0] > 0 ? f->params[0] : 1;
    if (size > capacity) return sn_status_make(SN_CODE_CORRUPT, "its chunk is too long");
    unshuffle(in, out, size, item);
    *out_size = size;
    return SN_OK;
  }
  default: return sn_status_make(SN_CODE_UNSUPPORTED, "filter %u is not known", f->id);
  }
}

static sn_status check_sum(const uint8_t *bytes, size_t *size) {
  if (*size < 4) return sn_status_make(SN_CODE_CORRUPT, "its checksum is missing");
  *size -= 4;
  const uint8_t *p = bytes + *size;
  uint32_t stored = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
  uint32_t sum = sn__h5_fletcher32(bytes, *size);
  /* Some old writers stored each half with its bytes swapped. */
  if (!same_sum(stored, sum) && !same_sum(stored, swap_pairs(sum)))
    return sn_status_make(SN_CODE_CORRUPT, "its fletcher32 checksum does not match: the data was "
                                           "damaged after writing");
  return SN_OK;
}

sn_status sn__h5_filter_decode(const sn__h5_filter *filters, size_t count, sn__h5_scratch *s,
                               size_t size, uint32_t mask, uint8_t *out, size_t chunk_bytes) {
  /* What is between two filters may exceed the chunk by checksums and incompressible data. */
  size_t between = chunk_bytes + chunk_bytes / 8 + 1024;
  int from = 0;
  const uint8_t *in = s->buffer[0];
  for (size_t i = count; i-- > 0;) {
    if ((mask >> i & 1) != 0) continue;
    if (filters[i].id == SN__H5_FILTER_FLETCHER32) {
      SN_TRY(check_sum(in, &size));
      continue;
    }
    uint8_t *to = out;
    size_t capacity = chunk_bytes;
    if (i > 0) { /* the filter undone last writes straight to `out` */
      to = sn__h5_scratch_need(s, 1 - from, between);
      if (to == NULL) return sn_status_out_of_memory();
      capacity = between;
    }
    SN_TRY(undo(&filters[i], s, in, size, to, capacity, &size));
    in = to;
    if (to != out) from = 1 - from;
  }
  if (size != chunk_bytes)
    return sn_status_make(SN_CODE_CORRUPT, "it decodes to %zu bytes in place of %zu", size,
                          chunk_bytes);
  if (in != out) memcpy(out, in, size);
  return SN_OK;
}
