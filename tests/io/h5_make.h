/* SPDX-License-Identifier: Apache-2.0 */
/* Small HDF5 files made by the tests themselves through libhdf5. */
#ifndef SN_TESTS_IO_H5_MAKE_H
#define SN_TESTS_IO_H5_MAKE_H

#define H5_USE_110_API
#include <hdf5.h>
#include <stdio.h>
#include <unistd.h>

#include "check_sn.h"
#include "io/h5_column.h"

/* A path of its own for this process, in the current folder. */
static inline const char *h5_make_path(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "test_h5_%s_%d.h5", name, (int)getpid());
  return path;
}

static inline hid_t h5_make_file(const char *path) {
  hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  ck_assert(f >= 0);
  return f;
}

/* Writes `data` (of memory type `memory`) as a dataset of type `type`; closes nothing of the
 * caller's. */
static inline void h5_make(hid_t file, const char *name, hid_t type, hid_t memory, int rank,
                           const hsize_t *dims, hid_t plist, const void *data) {
  hid_t space = rank > 0 ? H5Screate_simple(rank, dims, NULL) : H5Screate(H5S_SCALAR);
  hid_t d = H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  ck_assert(d >= 0);
  if (data != NULL) ck_assert(H5Dwrite(d, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Dclose(d);
  H5Sclose(space);
}

static inline sn__h5_file *h5_open(const char *path) {
  sn__h5_file *f = NULL;
  ck_sn_ok(sn__h5_file_open(path, NULL, &f));
  return f;
}

static inline sn__h5_column *h5_column(const sn__h5_file *f, const char *path) {
  sn__h5_column *c = NULL;
  ck_sn_ok(sn__h5_column_open(f, path, &c));
  return c;
}

static inline sn__h5_reader *h5_reader(void) {
  sn__h5_reader *r = NULL;
  ck_sn_ok(sn__h5_reader_create(0, &r));
  return r;
}

#endif
