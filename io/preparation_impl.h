/* SPDX-License-Identifier: Apache-2.0 */
/* What a preparation holds, for the files that fit, store, check and apply it. */
#ifndef SN_IO_PREPARATION_IMPL_H
#define SN_IO_PREPARATION_IMPL_H

#include "io/dataset_impl.h"

typedef struct sn__table {
  sn__key *keys; /* class or id k */
  int64_t count;
  int64_t *rows;   /* of the training rows (or elements) that hold k */
  int32_t *sorted; /* k in the order of keys */
  int32_t *direct; /* k + 1 of number low + i; NULL when numbers are spread out */
  int64_t low, span;
} sn__table;

typedef struct sn__prep_field {
  sn_field field; /* strings in the preparation's arena */
  sn_field_facts facts;
  double *mean, *deviation; /* [features]; NULL: not normalised */
  double *scale;            /* 1 / deviation; 0 for constant columns */
  double missing;           /* as in sn__field_data */
  bool missing_number;
  sn__table table;
  float *class_weights; /* [table.count] or NULL */
} sn__prep_field;

struct sn_preparation {
  sn__arena arena;
  sn__prep_field *fields;
  size_t n_fields;
};

/* -1 when it is not there. */
int64_t sn__table_find(const sn__table *table, bool text, int64_t number, const char *name);
static inline int64_t sn__table_id(const sn__table *table, int64_t number) {
  if (table->direct != NULL) {
    uint64_t at = (uint64_t)number - (uint64_t)table->low;
    return at < (uint64_t)table->span ? (int64_t)table->direct[at] - 1 : -1;
  }
  return sn__table_find(table, false, number, NULL);
}
/* `keys` and `rows` are the table's from now on. CONFIG when two keys are equal. */
SN_MUST_USE sn_status sn__table_finish(sn__table *table);
void sn__table_clear(sn__table *table);

/* After mean and deviation are there. */
SN_MUST_USE sn_status sn__prep_field_scale(sn__prep_field *field);

/* The preparation's field of this name for a dataset's field. */
SN_MUST_USE sn_status sn__preparation_match(const sn_preparation *preparation,
                                            const sn__field_data *field,
                                            const sn__prep_field **out_field);

/* Which class or category each of the dataset's keys is; -1 for those never seen. */
SN_MUST_USE sn_status sn__map_keys(const sn__prep_field *field, const sn__field_data *data,
                                   int32_t **out_map);
/* DATA when one of these rows (NULL: all) holds a key that is not in the map. */
SN_MUST_USE sn_status sn__check_codes(const sn__prep_field *field, const sn__field_data *data,
                                      size_t n_sources, const int32_t *map, const int64_t *rows,
                                      int64_t n_rows);
SN_MUST_USE sn_status sn__unknown_id(const sn__field_data *data, size_t n_sources, int64_t row,
                                     int64_t step, int64_t id);

/* What the stored numbers of a field are read as before they are normalised. */
sn_dtype sn__read_dtype(const sn__field_data *data, const sn__source *source, bool normalised);

/* True when a target's row says that it is not known. */
static inline bool sn__number_missing(double value, double missing) {
  return value == missing || (value != value && missing != missing);
}

SN_MUST_USE sn_status sn__rows_check(const sn_dataset *dataset, const int64_t *rows,
                                     int64_t n_rows);
/* `rows`, or all of the dataset's in *out_owned (to be freed). */
SN_MUST_USE sn_status sn__rows_all(const sn_dataset *dataset, const int64_t **rows, int64_t *n_rows,
                                   int64_t **out_owned);

#endif
