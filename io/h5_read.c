/* SPDX-License-Identifier: Apache-2.0 */
#include "io/h5_read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "io/h5_convert.h"

/* A deflated byte stands for at most this many: more is a lie about the chunk's size. */
#define MOST_PER_STORED_BYTE 1040u

sn_status sn__h5_pread(int fd, uint64_t at, void *out, size_t size) {
  uint8_t *to = out;
  while (size > 0) {
    ssize_t n = pread(fd, to, size < ((size_t)1 << 30) ? size : (size_t)1 << 30, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return sn_status_make(SN_CODE_IO, "reading %zu bytes at %llu: %s", size,
                            (unsigned long long)at, strerror(errno));
    if (n == 0)
      return sn_status_make(SN_CODE_CORRUPT,
                            "the file ends at %llu, before its data does: it has "
                            "changed since it was opened",
                            (unsigned long long)at);
    to += n;
    at += (uint64_t)n;
    size -= (size_t)n;
  }
  return SN_OK;
}

const sn__h5_chunk *sn__h5_chunk_find(const sn__h5_dataset *d, uint64_t index) {
  if (index < d->chunk_count && d->chunks[index].index == index) return &d->chunks[index];
  size_t low = 0, high = d->chunk_count; /* the table is sorted; chunks may be absent */
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (d->chunks[mid].index < index)
      low = mid + 1;
    else
      high = mid;
  }
  return low < d->chunk_count && d->chunks[low].index == index ? &d->chunks[low] : NULL;
}

static bool is_swapped(const sn__h5_dataset *d) {
  const uint16_t one = 1;
  bool big = *(const uint8_t *)&one == 0;
  return ((d->type.flags & SN__H5_BIG_ENDIAN) != 0) != big;
}

void sn__h5_fill(const sn__h5_dataset *d, uint64_t count, uint8_t *out) {
  size_t size = d->type.size;
  if (size > sizeof d->fill || d->type.kind == SN__H5_KIND_NONE) {
    memset(out, 0, (size_t)count * size);
    return;
  }
  uint8_t one[8];
  memcpy(one, d->fill, size);
  if (is_swapped(d)) sn__h5_swap(one, 1, size);
  for (uint64_t i = 0; i < count; ++i)
    memcpy(out + i * size, one, size);
}

static sn_status read_stored(const sn__h5_dataset *d, int fd, const sn__h5_chunk *k,
                             sn__h5_scratch *scratch, uint8_t *out) {
  bool plain = true;
  int packed = 0; /* filters that make bytes fewer; twice deflated may stand for anything */
  for (size_t i = 0; i < d->filter_count; ++i)
    if ((k->mask >> i & 1) == 0) {
      plain = false;
      packed += d->filters[i].id == SN__H5_FILTER_DEFLATE || d->filters[i].id == SN__H5_FILTER_LZF;
    }
  if (plain) {
    if (k->size != d->chunk_bytes)
      return sn_status_make(SN_CODE_CORRUPT, "it holds %llu bytes in place of %zu",
                            (unsigned long long)k->size, d->chunk_bytes);
    return sn__h5_pread(fd, k->address, out, d->chunk_bytes);
  }
  if (packed == 1 && d->chunk_bytes / MOST_PER_STORED_BYTE > k->size) /* before memory is taken */
    return sn_status_make(SN_CODE_CORRUPT, "%llu bytes cannot hold its %zu",
                          (unsigned long long)k->size, d->chunk_bytes);
  if (k->size > d->chunk_bytes + d->chunk_bytes / 8 + 1024)
    return sn_status_make(SN_CODE_CORRUPT, "%llu bytes are stored for its %zu",
                          (unsigned long long)k->size, d->chunk_bytes);
  uint8_t *stored = sn__h5_scratch_need(scratch, 0, (size_t)k->size);
  if (stored == NULL) return sn_status_out_of_memory();
  SN_TRY(sn__h5_pread(fd, k->address, stored, (size_t)k->size));
  return sn__h5_filter_decode(d->filters, d->filter_count, scratch, (size_t)k->size, k->mask, out,
                              d->chunk_bytes);
}

sn_status sn__h5_chunk_read(const sn__h5_dataset *d, int fd, uint64_t index,
                            sn__h5_scratch *scratch, uint8_t *out) {
  const sn__h5_chunk *k = sn__h5_chunk_find(d, index);
  size_t count = d->chunk_bytes / d->type.size;
  if (k == NULL) {
    sn__h5_fill(d, count, out);
    return SN_OK;
  }
  SN_TRY(sn_status_context(read_stored(d, fd, k, scratch, out), "chunk %llu of %llu",
                           (unsigned long long)index, (unsigned long long)d->grid_count));
  if (d->type.kind != SN__H5_KIND_NONE && is_swapped(d)) sn__h5_swap(out, count, d->type.size);
  return SN_OK;
}
