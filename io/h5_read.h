/* SPDX-License-Identifier: Apache-2.0 */
/* Reading stored bytes without libhdf5: pread, and one chunk at a time. Thread-safe: the only thing
 * shared is the descriptor, whose position is never used. */
#ifndef SN_IO_H5_READ_H
#define SN_IO_H5_READ_H

#include "io/h5_filter.h"
#include "io/h5_report.h"

/* All of `size` bytes at `at`, or IO (errno), or CORRUPT when the file ends before. */
SN_MUST_USE sn_status sn__h5_pread(int fd, uint64_t at, void *out, size_t size);

/* NULL when the chunk was never written. `index` counts in row-major order over the grid. */
const sn__h5_chunk *sn__h5_chunk_find(const sn__h5_dataset *dataset, uint64_t index);

/* Decodes chunk `index` into chunk_bytes at `out`, elements in native byte order; the fill value
 * where the chunk was never written. */
SN_MUST_USE sn_status sn__h5_chunk_read(const sn__h5_dataset *dataset, int fd, uint64_t index,
                                        sn__h5_scratch *scratch, uint8_t *out);

/* `count` elements of the fill value in native byte order (zeros for strings). */
void sn__h5_fill(const sn__h5_dataset *dataset, uint64_t count, uint8_t *out);

#endif
