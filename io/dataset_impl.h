/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make up datasets, preparations and loaders. */
#ifndef SN_IO_DATASET_IMPL_H
#define SN_IO_DATASET_IMPL_H

#include "core/alloc.h"
#include "io/dataset.h"
#include "io/h5_column.h"

/* ---- keys: what classes, categories and ids are told apart by -------------------------------- */

typedef struct sn__key {
  bool text;      /* compared by name; else by number */
  int64_t number; /* integers, booleans, whole floats */
  char *name;     /* for people, and of text keys */
} sn__key;

/* Distinct keys in the order they came, found by hash. Zero-initialise. */
typedef struct sn__keys {
  sn__key *items;
  int64_t count;
  size_t capacity;
  int32_t *slots; /* key + 1, 0 is free */
  size_t slot_count;
} sn__keys;

#define SN__MOST_KEYS ((int64_t)1 << 24)

void sn__keys_clear(sn__keys *keys);
/* -1 when it is not there. */
int64_t sn__keys_find(const sn__keys *keys, bool text, int64_t number, const char *name,
                      size_t length);
/* Adds it unless it is there. A number's name is made from it when `name` is NULL. */
SN_MUST_USE sn_status sn__keys_add(sn__keys *keys, bool text, int64_t number, const char *name,
                                   size_t length, int64_t *out_index);
/* Numbers by value, then text by bytes. */
int sn__key_compare(const sn__key *a, const sn__key *b);
/* "3", "-2.0", "+1": a whole number as a person writes it. */
bool sn__parse_whole(const char *text, int64_t *out);

/* ---- fields in files ------------------------------------------------------------------------- */

typedef enum sn__form {
  SN__FORM_TABLE = 0, /* one item a row */
  SN__FORM_PADDED,    /* one item a row: steps x width, of which lengths[row] steps count */
  SN__FORM_OFFSETS,   /* items first[row]..first[row + 1] of a group's values */
  SN__FORM_VLEN,      /* the same of a variable-length dataset */
  SN__FORM_STREAM     /* items row * window .. of one long dataset */
} sn__form;

/* A field in one file. An item is one row of `items`: what bands are made of and what is read. */
typedef struct sn__source {
  const sn__h5_file *file;
  sn__form form;
  sn__h5_column *column;      /* owned */
  const sn__h5_column *items; /* the column or its values */
  int64_t row0, rows;         /* of the dataset */
  int64_t *first;             /* OFFSETS, VLEN: [rows + 1] */
  int64_t item_width;         /* numbers of an item */
  int64_t item_count;
  int64_t band_items;
} sn__source;

typedef struct sn__field_data {
  sn_field field;      /* strings in the dataset's arena */
  sn__source *sources; /* one a file */
  bool ragged, coded, ids;
  int64_t width;    /* numbers of a row (dense) or an element (ragged) */
  int64_t image[3]; /* height, width and channels of an image; else 0 */
  int64_t *lengths; /* ragged: [rows] */
  int64_t elements, longest, empty;
  double missing; /* the missing label as a number; NaN also when it is none */
  bool missing_number;
  sn__keys keys;  /* coded: what occurs in the data */
  int32_t *codes; /* coded: [rows], key of each; -1: missing */
} sn__field_data;

struct sn_dataset {
  sn__arena arena;
  sn__h5_file **files;
  size_t n_files;
  sn__field_data *fields;
  size_t n_fields;
  int64_t rows;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* One thread's reader and scratch. Zero-initialise, then init. */
typedef struct sn__reading {
  sn__h5_reader *reader;
  void *scratch[3];
  size_t scratch_size[3];
  int64_t *runs;
  size_t runs_capacity;
} sn__reading;

SN_MUST_USE sn_status sn__reading_init(sn__reading *reading, size_t cache_bytes);
void sn__reading_clear(sn__reading *reading);
/* scratch[which] of at least `size` bytes. */
SN_MUST_USE sn_status sn__reading_need(sn__reading *reading, int which, size_t size, void **out);

/* Rows of a field that are read and worked on together: some rows of one file whose items lie in
 * one band or a few small ones. Ragged rows may be cut between elements. */
typedef struct sn__cut {
  int64_t row0, row1; /* positions in the list of rows */
  int64_t skip;       /* items of the first row that belong to the cut before */
  int64_t items;      /* of this cut */
  int64_t to;         /* elements (ragged) or rows before it */
  int64_t elements;   /* rows, or elements of a ragged field */
  int32_t source;
} sn__cut;

typedef struct sn__cuts {
  sn__cut *items;
  size_t count, capacity;
} sn__cuts;

/* Appends the cuts of ascending `rows` for a field that is not coded. They depend on the file's
 * layout and the rows, never on threads. */
SN_MUST_USE sn_status sn__field_cut(const sn__field_data *field, size_t n_sources,
                                    const int64_t *rows, int64_t n_rows, sn__cuts *cuts);

/* elements x width numbers as SN_F32, SN_F64 or SN_I64 (ids) at `out`. */
SN_MUST_USE sn_status sn__field_read(const sn__field_data *field, const sn__cut *cut,
                                     const int64_t *rows, sn__reading *reading, sn_dtype dtype,
                                     void *out);

/* Where element `element` (row, for a dense field) of a cut lies: row of the dataset, and element
 * in the row. */
void sn__cut_locate(const sn__field_data *field, const sn__cut *cut, const int64_t *rows,
                    int64_t element, int64_t *out_row, int64_t *out_step);

/* Begins "file: dataset /x: row r" or "...: row r, element e" for messages. `step` < 0: no element.
 */
void sn__field_where(const sn__field_data *field, size_t n_sources, int64_t row, int64_t step,
                     char *buffer, size_t size);

/* ---- pieces of opening ----------------------------------------------------------------------- */

SN_MUST_USE sn_status sn__source_open(sn_dataset *dataset, sn__field_data *field, size_t file);
/* After all sources are open and rows are counted: lengths, or codes. */
SN_MUST_USE sn_status sn__field_lengths(sn_dataset *dataset, sn__field_data *field);
SN_MUST_USE sn_status sn__field_codes(sn_dataset *dataset, sn__field_data *field);
SN_MUST_USE sn_status sn__field_copy(sn__arena *arena, const sn_field *from, sn_field *out);

/* Does not hold NaN or inf at out of these numbers; count when all are finite. */
int64_t sn__first_nonfinite(sn_dtype dtype, const void *values, int64_t count);

/* Whether a field makes sense by itself: INVALID. */
SN_MUST_USE sn_status sn__field_check(const sn_field *field);
/* The missing label as a number; NaN also when it is none. */
void sn__field_missing(const sn_field *field, double *out_number, bool *out_is_number);
bool sn__field_weighted(const sn_field *field);

/* ---- tasks in parallel ----------------------------------------------------------------------- */

typedef sn_status (*sn__part_fn)(void *arg, int64_t index, sn__reading *reading);
/* fn for every index in [0, count) on a few threads; the failure of the lowest index comes back.
 * What fn does must not depend on who runs it. */
SN_MUST_USE sn_status sn__in_parts(int64_t count, sn__part_fn fn, void *arg);

#endif
