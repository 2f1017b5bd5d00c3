/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 files as examples: what a model reads, checked as a whole before the first step, in batches.
 *
 *     sn_dataset *data;      files scanned, fields typed, rows counted, labels read
 *     sn_row_split *split;   which rows train and which validate, seeded and stratified
 *     sn_preparation *prep;  normalisation, category tables and class names, fitted on training
 *                            rows; part of a checkpoint, applied to every other file
 *     sn_dataset_check(data, prep, ...);  every value: NaN, inf, labels, ids
 *     sn_loader *loader;     batches: prefetched, shuffled by a seed, position known
 *
 * One row is one example in every field. A message names file, dataset, row (as the file counts it)
 * and column, and what to do. Datasets, splits and preparations are immutable once made and may be
 * shared; a loader is one thread's, and is freed before what it was made from. */
#ifndef SN_IO_DATASET_H
#define SN_IO_DATASET_H

#include "core/allocator.h"
#include "core/dtype.h"
#include "core/options.h"

SN_BEGIN_DECLS

/* ---- fields -------------------------------------------------------------------------------- */

typedef enum sn_field_kind {
  SN_FIELD_DENSE =
      0, /* [rows] or [rows, ..]: numbers, flattened to [batch, features] (or [batch]) */
  SN_FIELD_SEQUENCE, /* group values + offsets, variable-length, or padded with lengths */
  SN_FIELD_SET,
  SN_FIELD_CATEGORY, /* [rows]: integers, strings, enums, booleans -> ids 0..count-1 */
  SN_FIELD_STREAM,   /* one long row of ids, cut into windows; each window is a row */
  SN_FIELD_IMAGE     /* [rows, height, width] or [rows, height, width, channels]: as dense */
} sn_field_kind;

typedef enum sn_field_role {
  SN_FIELD_INPUT = 0,
  SN_FIELD_CLASS,      /* a label: integers, strings, enums, booleans -> class 0..K-1 */
  SN_FIELD_TARGET,     /* regression: [rows] or [rows, D] numbers */
  SN_FIELD_MULTILABEL, /* [rows, K] of 0 and 1 */
  SN_FIELD_NEXT /* of a stream: the element after each; shares the stream's rows and offsets */
} sn_field_role;

typedef struct sn_field {
  const char *name; /* the graph's input */
  sn_field_kind kind;
  sn_field_role role;
  const char *path;    /* dataset or group; for SN_FIELD_NEXT the stream's */
  const char *lengths; /* of a padded sequence or set, or NULL */
  sn_dtype dtype;      /* what batches hold: SN_F32, or SN_I32/SN_I64 for ids and classes */
  bool normalize;      /* by feature: (x - mean) / deviation; constant columns become 0. An image
                          by channel, over all its pixels */
  bool ids; /* a sequence or set of ids to be embedded, kept as numbers from the table of ids */
  int64_t window;      /* of a stream */
  const char *missing; /* this label counts nothing (weight 0); NULL: none. "nan" for NaN targets */
  const char *const
      *classes; /* names or numbers in order, when given; NULL: found in the training rows */
  size_t n_classes;
  bool balanced; /* class weights rows / (classes * rows of the class) */
  const double
      *class_weights; /* [n_class_weights] by class, or by class_weight_names; NULL: all 1 */
  const char *const *class_weight_names;
  size_t n_class_weights;
} sn_field;

/* What is known of a field without a model. */
typedef struct sn_field_facts {
  int64_t features; /* per row or element, after flattening; 0: ids, categories and classes */
  int64_t classes;  /* CLASS, CATEGORY, ids and streams: entries in the table; else 0 */
  bool ragged;
  int64_t elements;                /* ragged: of all rows */
  int64_t longest;                 /* ragged */
  int64_t empty;                   /* ragged: rows of length 0 */
  int64_t height, width, channels; /* an image's; features is their product. Else 0 */
} sn_field_facts;

/* ---- dataset ------------------------------------------------------------------------------- */

typedef struct sn_dataset sn_dataset;

/* Opens and types; files are concatenated row-wise in the order given. The fields are copied. Row
 * counts that differ, offsets that decrease, missing datasets or filters: DATA, NOT_FOUND,
 * UNSUPPORTED. */
SN_API SN_MUST_USE sn_status sn_dataset_open(const char *const *files, size_t n_files,
                                             const sn_field *fields, size_t n_fields,
                                             sn_dataset **out_dataset);
SN_API void sn_dataset_free(sn_dataset *dataset);
SN_API int64_t sn_dataset_rows(const sn_dataset *dataset);
SN_API size_t sn_dataset_field_count(const sn_dataset *dataset);
SN_API const sn_field *sn_dataset_field(const sn_dataset *dataset, size_t i);
/* Length of each row of a ragged field: [rows], borrowed; NULL when dense. */
SN_API const int64_t *sn_dataset_lengths(const sn_dataset *dataset, size_t field);

/* 64 hexadecimal digits and a zero: the same for the same rows, however files store them. All
 * labels and lengths and a sample of the other values go into it, at the cost of decoding a few
 * chunks; it tells other data from the same, not one changed number in a million. */
SN_API SN_MUST_USE sn_status sn_dataset_fingerprint(const sn_dataset *dataset, char out_hex[65]);

/* ---- splits -------------------------------------------------------------------------------- */

typedef struct sn_row_split {
  int64_t *train; /* row numbers, ascending */
  int64_t n_train;
  int64_t *valid;
  int64_t n_valid;
} sn_row_split;

/* fraction of the rows validate: drawn by seed; with `stratify` (and a CLASS field) class by class.
 * fraction 0: all train. Streams split at the end instead: the last windows validate. */
SN_API SN_MUST_USE sn_status sn_row_split_create(const sn_dataset *dataset, double fraction,
                                                 uint64_t seed, bool stratify,
                                                 sn_row_split **out_split);
SN_API void sn_row_split_free(sn_row_split *split);

/* ---- preparation --------------------------------------------------------------------------- */

typedef struct sn_preparation sn_preparation;

/* Fits on the given rows, ascending (NULL: all). Means and deviations in double, summed in the
 * order of the rows whatever the threads. DATA: NaN or inf in what is normalised; CONFIG: class
 * weights that do not fit the classes. */
SN_API SN_MUST_USE sn_status sn_preparation_fit(const sn_dataset *dataset, const int64_t *rows,
                                                int64_t n_rows, sn_preparation **out_preparation);
SN_API void sn_preparation_free(sn_preparation *preparation);
SN_API size_t sn_preparation_field_count(const sn_preparation *preparation);
/* The fields as they were fitted (paths, kinds, roles): how eval and predict open other files. */
SN_API const sn_field *sn_preparation_field(const sn_preparation *preparation, size_t i);
SN_API const sn_field_facts *sn_preparation_facts(const sn_preparation *preparation, size_t i);
/* The name of class or category `k` as the data has it ("3", "setosa"); borrowed. */
SN_API const char *sn_preparation_class_name(const sn_preparation *preparation, size_t field,
                                             int64_t k);
/* Per feature, or NULL when the field is not normalised. prediction * deviation + mean undoes
 * targets. */
SN_API const double *sn_preparation_mean(const sn_preparation *preparation, size_t field);
SN_API const double *sn_preparation_deviation(const sn_preparation *preparation, size_t field);
/* What is fitted belongs to a field's name: any dataset whose fields have the names, kinds and
 * widths of (some of) these may be checked and loaded with it.
 *
 * As JSON for a checkpoint (free it with sn_text_free()), and back (bounds-checked: it may come
 * from a stranger). */
SN_API SN_MUST_USE sn_status sn_preparation_to_json(const sn_preparation *preparation,
                                                    char **out_text);
SN_API SN_MUST_USE sn_status sn_preparation_from_json(const char *text, size_t length,
                                                      sn_preparation **out_preparation);

/* Reads everything once. The first thing that would stop training is the status (DATA: file,
 * dataset, row, column); `warn` hears of what would not (a constant column, a class seen once, a
 * heavy tail). */
typedef void (*sn_warn_fn)(void *user, const char *line);
SN_API SN_MUST_USE sn_status sn_dataset_check(const sn_dataset *dataset,
                                              const sn_preparation *preparation, sn_warn_fn warn,
                                              void *user);

/* ---- loader -------------------------------------------------------------------------------- */

typedef struct sn_batch_field {
  const void *data;       /* of the field's dtype: [rows, features], [rows], [elements, ..] */
  const int64_t *offsets; /* ragged: [rows + 1], from 0; else NULL */
  int64_t elements;       /* ragged: offsets[rows]; else rows */
  const float
      *weights; /* labels with class weights or missing values: [rows] (or [elements]); else NULL */
} sn_batch_field;

typedef struct sn_batch {
  int64_t rows;
  const int64_t *row_numbers;   /* in the dataset */
  int64_t index;                /* in the epoch, from 0 */
  const sn_batch_field *fields; /* in the dataset's order */
} sn_batch;

typedef struct sn_loader_options {
  SN_OPTIONS_HEAD;
  int64_t batch; /* rows; the last batch of an epoch may be smaller and is kept */
  bool shuffle;  /* by (seed, epoch); each batch is drawn from at least 8 chunks where there are */
  uint64_t seed;
  int threads;   /* readers besides the caller, who helps while waiting; 0: 1; < 0: none */
  size_t memory; /* bytes of prefetched batches and decoded chunks, about; 0: 256 MiB. Data that a
                    quarter of it holds is decoded once and stays */
} sn_loader_options;

typedef struct sn_loader sn_loader;

/* Ascending rows; NULL: all. DATA: one of them has a class or category that was not fitted. The
 * same rows, options and epoch give the same batches on any machine. */
SN_API SN_MUST_USE sn_status sn_loader_create(const sn_dataset *dataset,
                                              const sn_preparation *preparation,
                                              const int64_t *rows, int64_t n_rows,
                                              const sn_loader_options *options,
                                              sn_loader **out_loader);
SN_API void sn_loader_free(sn_loader *loader);
SN_API int64_t sn_loader_batches(const sn_loader *loader); /* an epoch */
/* Begins an epoch at a batch: (epoch, batch) is the position that a checkpoint keeps. */
SN_API SN_MUST_USE sn_status sn_loader_start(sn_loader *loader, int64_t epoch, int64_t batch);
/* NULL at the epoch's end. Borrowed until the second call after this one (so that one step can run
 * while the next batch is fetched) or the end of the loader. */
SN_API SN_MUST_USE sn_status sn_loader_next(sn_loader *loader, const sn_batch **out_batch);
/* Over the epoch's batches: the most elements and the longest row of a ragged field. */
SN_API SN_MUST_USE sn_status sn_loader_largest(const sn_loader *loader, int64_t epoch, size_t field,
                                               int64_t *out_elements, int64_t *out_longest);

SN_END_DECLS

#endif
