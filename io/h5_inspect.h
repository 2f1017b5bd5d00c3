/* SPDX-License-Identifier: Apache-2.0 */
/* Looks through an HDF5 file for a person about to train from it: what is there, what it holds, and
 * everything that would stop training, all at once. */
#ifndef SN_IO_H5_INSPECT_H
#define SN_IO_H5_INSPECT_H

#include "io/h5_column.h"

typedef struct sn__class_count {
  char *name; /* of an enum's member or a string; NULL for a bare integer */
  int64_t value;
  int64_t count;
} sn__class_count;

/* What the values of a column are like, from as many leading rows as the time allowed. */
typedef struct sn__column_stats {
  int64_t rows_seen;
  bool whole;                                /* all rows were seen */
  int64_t count, nan, inf, missing;          /* elements; `missing` are empty strings */
  int64_t bad_row, bad_column;               /* of the first NaN or inf; -1 */
  double min, max, mean, std;                /* of the finite ones; NaN when there are none */
  bool integral;                             /* all finite ones are integers */
  int64_t constant_columns, constant_column; /* how many, and the first */
  sn__class_count *classes;                  /* most frequent first; one-column datasets only */
  size_t class_count;
  bool many_classes; /* more than are counted */
  bool ragged;       /* then the lengths below are of its rows; of strings otherwise */
  int64_t length_min, length_max, empty_rows;
  double length_mean;
  char *problem; /* owned; reading failed: the status's message */
} sn__column_stats;

/* Reads until `deadline` (CLOCK_MONOTONIC seconds) at most. Fails only for lack of memory: what is
 * wrong with the data goes into `problem`. */
SN_MUST_USE sn_status sn__column_stats_read(const sn__h5_column *column, sn__h5_reader *reader,
                                            double deadline, sn__column_stats *out);
void sn__column_stats_clear(sn__column_stats *stats);
double sn__h5_now(void);

typedef struct sn__inspect_entry {
  const sn__h5_dataset *dataset; /* of the file's report */
  sn__h5_column *column; /* NULL: could not be opened (see stats.problem), or no time was left */
  sn__column_stats stats;
} sn__inspect_entry;

/* A group of `values` and `offsets`. */
typedef struct sn__inspect_ragged {
  char *path;
  int64_t rows, values, empty_rows, length_min, length_max;
  double length_mean;
  char *problem; /* NULL: the offsets are sound */
} sn__inspect_ragged;

typedef struct sn__inspection {
  sn__h5_file *file;
  sn__inspect_entry *entries; /* one per dataset of the report */
  size_t entry_count;
  sn__inspect_ragged *ragged;
  size_t ragged_count;
  char **stops; /* what would stop training: one line each, with remedy */
  size_t stop_count;
  char **notes; /* worth knowing */
  size_t note_count;
  size_t stop_capacity, note_capacity, ragged_capacity;
} sn__inspection;

typedef struct sn__inspect_options {
  double seconds; /* for looking at values; 0: 5 */
} sn__inspect_options;

/* A file whose scan failed still gives an inspection: its failure is the first of `stops`. A status
 * means that there is nothing to say about the file: absent, empty, no scanner. */
SN_MUST_USE sn_status sn__inspect(const char *path, const sn__inspect_options *options,
                                  sn__inspection **out_inspection);
void sn__inspection_free(sn__inspection *inspection);

/* As text for a terminal, or as one JSON object; owned by the caller (sn__free). */
SN_MUST_USE sn_status sn__inspection_text(const sn__inspection *inspection, char **out_text);
SN_MUST_USE sn_status sn__inspection_json(const sn__inspection *inspection, char **out_text);

/* All of the above for the command. `out_text` is what belongs on stdout, NULL when there is
 * nothing; written even when a status comes back, which is when libhdf5 refused, crashed or hung on
 * the file: its message is the line for stderr. */
SN_MUST_USE sn_status sn__inspect_file(const char *path, bool json, char **out_text);

#endif
