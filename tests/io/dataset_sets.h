/* SPDX-License-Identifier: Apache-2.0 */
/* Small HDF5 files and the datasets opened from them, for tests of datasets. */
#ifndef SN_TESTS_DATASET_SETS_H
#define SN_TESTS_DATASET_SETS_H

#include "h5_make.h"
#include "io/dataset.h"
#include "tests/check_sn.h"

static const char *path;
static hid_t file;

static inline void begin(const char *name) {
  path = h5_make_path(name);
  file = h5_make_file(path);
}

static inline void end(void) {
  H5Fclose(file);
}

static inline void floats(const char *name, hsize_t rows, hsize_t columns, const float *data) {
  const hsize_t dims[] = {rows, columns};
  h5_make(file, name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, columns > 0 ? 2 : 1, dims, H5P_DEFAULT,
          data);
}

static inline void ints(const char *name, hid_t type, hsize_t rows, const int64_t *data) {
  h5_make(file, name, type, H5T_NATIVE_INT64, 1, &rows, H5P_DEFAULT, data);
}

static inline void strings(const char *name, hsize_t rows, const char *const *data) {
  hid_t t = H5Tcopy(H5T_C_S1);
  H5Tset_size(t, H5T_VARIABLE);
  h5_make(file, name, t, t, 1, &rows, H5P_DEFAULT, data);
  H5Tclose(t);
}

static inline void group(const char *name) {
  H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

static inline sn_status open_one(sn_field f, sn_dataset **out) {
  if (f.name == NULL) f.name = "f";
  if (f.dtype == SN_DTYPE_NONE)
    f.dtype = f.kind == SN_FIELD_CATEGORY || f.kind == SN_FIELD_STREAM || f.ids ||
                      f.role == SN_FIELD_CLASS || f.role == SN_FIELD_NEXT
                  ? SN_I32
                  : SN_F32;
  return sn_dataset_open(&path, 1, &f, 1, out);
}

/* Opened and fitted on all rows. */
typedef struct set {
  sn_dataset *data;
  sn_preparation *prep;
} set;

static inline set fitted(sn_field f) {
  set s;
  ck_sn_ok(open_one(f, &s.data));
  ck_sn_ok(sn_preparation_fit(s.data, NULL, 0, &s.prep));
  return s;
}

static inline void close_set(set s) {
  sn_preparation_free(s.prep);
  sn_dataset_free(s.data);
}

/* All rows as one batch; the loader stays open until the next call. */
static inline const sn_batch *whole(set s) {
  static sn_loader *l;
  sn_loader_free(l);
  l = NULL;
  if (s.data == NULL) return NULL;
  sn_loader_options o = {.struct_size = sizeof o, .batch = 1 << 20, .threads = -1};
  const sn_batch *b = NULL;
  ck_sn_ok(sn_loader_create(s.data, s.prep, NULL, 0, &o, &l));
  ck_sn_ok(sn_loader_start(l, 0, 0));
  ck_sn_ok(sn_loader_next(l, &b));
  return b;
}

#define refused(field, code, words)                                                                \
  do {                                                                                             \
    sn_dataset *refused_d_ = NULL;                                                                 \
    ck_sn_fails(open_one((sn_field)field, &refused_d_), code, words);                              \
  } while (0)
#define F(...)                                                                                     \
  { __VA_ARGS__ }

#endif
