/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 datasets as columns: rows along axis 0, read by range, by band or by a list of rows.
 *
 * A file is scanned once, in a child process, when it is opened; after that libhdf5 is not
 * involved, except that a column which only libhdf5 can decode is converted by one more child when
 * opened. Files and columns are immutable once open: any number of threads may read them, each with
 * a reader of its own. Errors name file, dataset, row and column. */
#ifndef SN_IO_H5_COLUMN_H
#define SN_IO_H5_COLUMN_H

#include "core/dtype.h"
#include "io/h5_report.h"
#include "io/h5_scan.h"

typedef struct sn__h5_file sn__h5_file;
typedef struct sn__h5_column sn__h5_column;
typedef struct sn__h5_reader sn__h5_reader;

/* ---- files --------------------------------------------------------------------------------- */

/* Fails when the scan failed as a whole. `limits` may be NULL. */
SN_MUST_USE sn_status sn__h5_file_open(const char *path, const sn__h5_limits *limits,
                                       sn__h5_file **out_file);
/* The same, but a failed scan gives a file with what was found; see report->failure. */
SN_MUST_USE sn_status sn__h5_file_open_partial(const char *path, const sn__h5_limits *limits,
                                               sn__h5_file **out_file);
void sn__h5_file_free(sn__h5_file *file); /* after its columns */
const sn__h5_report *sn__h5_file_report(const sn__h5_file *file);
const char *sn__h5_file_path(const sn__h5_file *file);

/* ---- columns ------------------------------------------------------------------------------- */

typedef enum sn__h5_column_kind {
  SN__H5_COLUMN_NUMBER = 0,
  SN__H5_COLUMN_BOOL,   /* read as integers 0 and 1 */
  SN__H5_COLUMN_ENUM,   /* read as integers; the names are in the dataset's type */
  SN__H5_COLUMN_STRING, /* sn__h5_column_strings() */
  SN__H5_COLUMN_RAGGED, /* sn__h5_column_offsets() and sn__h5_column_values() */
  SN__H5_COLUMN_KINDS
} sn__h5_column_kind;

typedef struct sn__h5_column_info {
  const char *path; /* of the dataset */
  sn__h5_column_kind kind;
  sn__h5_kind stored; /* element type in the file, or as converted */
  int64_t rows;       /* 1 for a scalar */
  int64_t width;      /* elements of a row: the product of the extents after axis 0 */
  unsigned rank;      /* 0: scalar */
  const uint64_t *dims;
  int64_t bands;     /* runs of rows that are stored together: see sn__h5_column_band() */
  int64_t parts;     /* pieces of a band that can be decoded on their own (chunks across a row) */
  size_t item_bytes; /* of one stored element */
  bool packed;       /* chunked: a band costs decoding as a whole */
  bool converted;    /* by libhdf5 */
} sn__h5_column_info;

/* NOT_FOUND names the nearest dataset; UNSUPPORTED and CORRUPT say what is wrong and what to do. */
SN_MUST_USE sn_status sn__h5_column_open(const sn__h5_file *file, const char *path,
                                         sn__h5_column **out_column);
void sn__h5_column_free(sn__h5_column *column);
const sn__h5_column_info *sn__h5_column_info_of(const sn__h5_column *column);
/* Attributes, enum names, fill value. */
const sn__h5_dataset *sn__h5_column_dataset(const sn__h5_column *column);

/* ---- reading ------------------------------------------------------------------------------- */

/* One thread's scratch and cache of decoded chunks, for any columns. */
SN_MUST_USE sn_status sn__h5_reader_create(size_t cache_bytes /* 0: 64 MiB */,
                                           sn__h5_reader **out_reader);
void sn__h5_reader_free(sn__h5_reader *reader);

/* Rows [row0, row0 + rows) as rows x width elements of `dtype` (f32, f64, i64, i32, u8, bool). DATA
 * when an element does not fit `dtype` (1.5 or NaN as an integer, out of range): names its row and
 * column. Floats out of f32's range become inf. */
SN_MUST_USE sn_status sn__h5_column_read(const sn__h5_column *column, sn__h5_reader *reader,
                                         int64_t row0, int64_t rows, sn_dtype dtype, void *out);

/* Any rows in any order, repeats allowed; out[i] is rows[i]. Each chunk is decoded once a call. */
SN_MUST_USE sn_status sn__h5_column_gather(const sn__h5_column *column, sn__h5_reader *reader,
                                           const int64_t *rows, int64_t count, sn_dtype dtype,
                                           void *out);

/* Band `band` holds rows [*out_row0, *out_row1): a chunk's extent along axis 0, or about a MiB of
 * unchunked rows. */
void sn__h5_column_band(const sn__h5_column *column, int64_t band, int64_t *out_row0,
                        int64_t *out_row1);

/* Decodes part `part` of `band` into its place in the band's rows at `out`. Parts write disjoint
 * elements, so they can run in parallel; the cache is not used. */
SN_MUST_USE sn_status sn__h5_column_read_part(const sn__h5_column *column, sn__h5_reader *reader,
                                              int64_t band, int64_t part, sn_dtype dtype,
                                              void *out);

/* ---- strings and ragged rows --------------------------------------------------------------- */

typedef struct sn__h5_strings {
  int64_t count;
  int64_t *offsets; /* count + 1, into bytes */
  char *bytes;
} sn__h5_strings;

/* rows x width strings, padding removed. */
SN_MUST_USE sn_status sn__h5_column_strings(const sn__h5_column *column, sn__h5_reader *reader,
                                            int64_t row0, int64_t rows, sn__h5_strings *out);
void sn__h5_strings_clear(sn__h5_strings *strings);

/* rows + 1 positions in the values column; they never decrease and never pass its end. */
SN_MUST_USE sn_status sn__h5_column_offsets(const sn__h5_column *column, int64_t row0, int64_t rows,
                                            int64_t *out);
/* The elements of all rows after each other, as a column of width 1. Borrowed. */
const sn__h5_column *sn__h5_column_values(const sn__h5_column *column);

#endif
