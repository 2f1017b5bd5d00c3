/* SPDX-License-Identifier: Apache-2.0 */
/* Undoes a chunk's filters: shuffle, deflate (gzip), fletcher32, LZF. No libhdf5, no shared state.
 */
#ifndef SN_IO_H5_FILTER_H
#define SN_IO_H5_FILTER_H

#include "io/h5_lzf.h"
#include "io/h5_report.h"

#define SN__H5_FILTER_DEFLATE    1u
#define SN__H5_FILTER_SHUFFLE    2u
#define SN__H5_FILTER_FLETCHER32 3u
#define SN__H5_FILTER_LZF        32000u

bool sn__h5_filter_is_ours(uint32_t id);

/* One thread's scratch: two buffers that filters go back and forth between, and zlib's state. */
typedef struct sn__h5_scratch {
  uint8_t *buffer[2];
  size_t capacity[2];
  struct z_stream_s *inflate;
} sn__h5_scratch;

void sn__h5_scratch_clear(sn__h5_scratch *scratch);
/* buffer[which] of at least `size` bytes, or NULL. */
uint8_t *sn__h5_scratch_need(sn__h5_scratch *scratch, int which, size_t size);

/* Decodes the chunk whose stored bytes lie in scratch->buffer[0] (`size` of them, `mask` as the
 * chunk table has it) into chunk_bytes at `out`, undoing the last filter first. CORRUPT when the
 * bytes do not decode to exactly chunk_bytes or a checksum differs; the message says which filter.
 */
SN_MUST_USE sn_status sn__h5_filter_decode(const sn__h5_filter *filters, size_t count,
                                           sn__h5_scratch *scratch, size_t size, uint32_t mask,
                                           uint8_t *out, size_t chunk_bytes);

/* Fletcher's checksum as HDF5 stores it; each half is defined modulo 65535 only. */
uint32_t sn__h5_fletcher32(const uint8_t *bytes, size_t size);

#endif
