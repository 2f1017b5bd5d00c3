/* SPDX-License-Identifier: Apache-2.0 */
/* What a scan found in an HDF5 file, parsed from what the scanning child wrote.
 *
 * The child has run libhdf5 over a file from a stranger, so nothing it says is believed: every
 * count, rank, product of extents, address and size is checked here before anything uses it. */
#ifndef SN_IO_H5_REPORT_H
#define SN_IO_H5_REPORT_H

#include "core/status.h"
#include "io/h5_kind.h"
#include "io/h5_wire.h"

typedef struct sn__h5_enum_name {
  char *name;
  int64_t value;
} sn__h5_enum_name;

typedef struct sn__h5_type {
  sn__h5_class cls;
  sn__h5_kind kind; /* integers, floats and enums we decode; a vlen's element kind once converted */
  unsigned flags;   /* SN__H5_BIG_ENDIAN ... */
  size_t size;      /* bytes of one element (of the innermost one for an array type) */
  char *text; /* for people: "f32", "i16 big-endian", "string[16]", "compound {a: i32, ...}" */
  sn__h5_enum_name *names;
  size_t name_count;
} sn__h5_type;

typedef struct sn__h5_filter {
  uint32_t id;
  bool available; /* libhdf5 in the child could decode it */
  bool ours;      /* we can */
  char *name;
  uint32_t *params;
  size_t param_count;
} sn__h5_filter;

typedef struct sn__h5_chunk {
  uint64_t index; /* row-major number in the grid of chunks */
  uint64_t address;
  uint64_t size; /* stored bytes */
  uint32_t mask; /* bit i: filter i was skipped for this chunk */
} sn__h5_chunk;

typedef struct sn__h5_attribute {
  char *name;
  char *text;
} sn__h5_attribute;

/* What the child wrote into the shared memory for a dataset it was asked to convert. */
typedef struct sn__h5_converted {
  sn__h5_form form;
  sn__h5_kind kind;
  uint64_t rows, count;
  uint64_t values_at, offsets_at; /* byte positions; offsets are i64 */
} sn__h5_converted;

typedef struct sn__h5_dataset {
  char *path;       /* absolute */
  uint64_t address; /* of the object: what aliases lead to */
  char *problem;    /* NULL, or why it cannot be read at all */
  sn__h5_type type;
  bool null_space; /* a dataspace without elements */
  unsigned
      rank; /* 0 is a scalar; an array type's extents are appended (rank_of_space says where) */
  unsigned space_rank;
  uint64_t dims[SN__H5_MAX_RANK];
  uint64_t max_dims[SN__H5_MAX_RANK]; /* UINT64_MAX: unlimited */
  uint64_t elements;                  /* product of dims */
  sn__h5_layout layout;
  uint64_t data_address; /* contiguous: byte position in the file, or SN__H5_NO_ADDRESS */
  uint64_t storage;      /* bytes in the file */
  uint8_t *compact;
  size_t compact_size;
  uint64_t chunk_dims[SN__H5_MAX_RANK];
  uint64_t grid[SN__H5_MAX_RANK]; /* chunks along each axis */
  uint64_t grid_count;
  size_t chunk_bytes; /* of one decoded chunk */
  sn__h5_filter *filters;
  size_t filter_count;
  sn__h5_chunk *chunks; /* sorted by index; absent ones hold the fill value */
  size_t chunk_count;
  bool chunks_whole; /* false: the child died while listing them */
  bool fill_defined;
  uint8_t fill[8]; /* file byte order; zeros by default. Only for kinds that we decode */
  sn__h5_attribute *attributes;
  size_t attribute_count;
  sn__h5_converted *converted; /* NULL unless asked for */
} sn__h5_dataset;

typedef struct sn__h5_note {
  char *path;
  char *words;
} sn__h5_note;

typedef struct sn__h5_report {
  char *file;    /* the path asked for */
  char *failure; /* NULL, or one line: why the scan of the file failed as a whole */
  sn_code failure_code;
  char *library; /* "libhdf5 1.10.8" */
  uint32_t superblock;
  uint64_t userblock, file_size, end_of_allocation;
  sn__h5_dataset *datasets;
  size_t dataset_count;
  sn__h5_note *aliases; /* path = the alias, words = the dataset's own path */
  size_t alias_count;
  sn__h5_note *links; /* dangling and external links */
  size_t link_count;
  sn__h5_note *problems; /* objects that cannot be opened */
  size_t problem_count;
  char **groups;
  size_t group_count;
  char *at_path, *at_stage; /* what the child was doing last */
  bool ended;               /* the child finished by itself */
} sn__h5_report;

/* Sizes that bound what addresses may point at. */
typedef struct sn__h5_bounds {
  uint64_t file_size;
  uint64_t shared_size; /* of the memory that conversions were written to; 0: none */
} sn__h5_bounds;

/* Parses what a child wrote, whole or cut short: a cut-off tail leaves `ended` false and keeps
 * every record before it. CORRUPT: the bytes cannot come from our child. `out_report` is written on
 * success. */
SN_MUST_USE sn_status sn__h5_report_parse(const uint8_t *bytes, size_t size, sn__h5_bounds bounds,
                                          sn__h5_report **out_report);
void sn__h5_report_free(sn__h5_report *report);

/* By its own path or an alias, with or without the leading slash; NULL when there is none. */
const sn__h5_dataset *sn__h5_report_find(const sn__h5_report *report, const char *path);

/* NULL when our own half can read the dataset's numbers or fixed strings without libhdf5; otherwise
 * the reason in a few words ("filter szip", "virtual layout"). Static text. */
const char *sn__h5_dataset_foreign(const sn__h5_dataset *dataset);

/* The first filter that nobody here can decode, or NULL. */
const sn__h5_filter *sn__h5_dataset_missing_filter(const sn__h5_dataset *dataset);

/* The name that a user would know a filter by ("zstd"); NULL for an unknown one. */
const char *sn__h5_filter_known_name(uint32_t id);

#endif
