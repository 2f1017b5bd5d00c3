/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make up columns. */
#ifndef SN_IO_H5_COLUMN_IMPL_H
#define SN_IO_H5_COLUMN_IMPL_H

#include "io/h5_column.h"
#include "io/h5_filter.h"

struct sn__h5_file {
  char *path;
  int fd;
  sn__h5_report *report;
  sn__h5_limits limits;
};

typedef enum sn__h5_store {
  SN__H5_STORE_FLAT = 0, /* bytes at `at` of `fd` */
  SN__H5_STORE_CHUNKS,
  SN__H5_STORE_MEMORY, /* compact */
  SN__H5_STORE_FILL    /* never written */
} sn__h5_store;

struct sn__h5_column {
  const sn__h5_file *file;
  const sn__h5_dataset *dataset; /* of the file's report, or of `own` */
  sn__h5_report *own;            /* of a conversion */
  sn__h5_column *values;         /* of a ragged column; also its only owner */
  sn__h5_column_info info;
  sn__h5_store store;
  int fd, own_fd;
  uint64_t at;          /* flat: of the first element */
  uint64_t offsets_at;  /* converted strings and ragged: i64 offsets */
  uint64_t bytes_count; /* what those offsets may reach: bytes or elements */
  bool swap;            /* flat and memory: foreign byte order */
  int64_t band_rows;
  uint64_t serial; /* names it in caches: addresses are used again */
};

struct sn__h5_reader {
  sn__h5_scratch scratch;
  uint8_t *stage; /* elements on their way from a flat store to another type */
  size_t stage_size;
  size_t cache_bytes, cached;
  uint64_t tick;
  struct sn__h5_cached {
    uint64_t column, index, used;
    uint8_t *bytes;
    size_t size;
  } * cache;
  size_t cache_count, cache_capacity;
  int64_t *order; /* gather: rows by band */
  size_t order_capacity;
};

/* Elements of rows [row0, row0+rows) as they are stored, in native byte order: SN_DTYPE_NONE as
 * dtype reads them so too. */
size_t sn__h5_column_item(const sn__h5_column *column, sn_dtype dtype);

/* "<file>: dataset <path>: " before the message. */
sn_status sn__h5_column_context(const sn__h5_column *column, sn_status status);

#endif
