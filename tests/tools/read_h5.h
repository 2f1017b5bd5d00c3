/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of files that the command wrote, as doubles. */
#ifndef SN_TESTS_TOOLS_READ_H5_H
#define SN_TESTS_TOOLS_READ_H5_H

#include <hdf5.h>

#include "tests/tools/run_sennit.h"

typedef struct numbers {
  size_t count;
  double *at; /* sn__free */
} numbers;

static inline hid_t h5_open(const char *name) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", run_folder, name);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  ck_assert_msg(file >= 0, "cannot open %s", path);
  return file;
}

static inline numbers h5_numbers(hid_t file, const char *group, const char *name) {
  char path[300];
  snprintf(path, sizeof path, "/%s/%s", group, name);
  hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
  ck_assert_msg(set >= 0, "no dataset %s", path);
  hid_t space = H5Dget_space(set);
  numbers n = {.count = (size_t)H5Sget_simple_extent_npoints(space)};
  n.at = sn__calloc(n.count + 1, sizeof *n.at);
  ck_assert_ptr_nonnull(n.at);
  ck_assert(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, n.at) >= 0);
  H5Sclose(space);
  H5Dclose(set);
  return n;
}

static inline void same_numbers(const numbers *a, const numbers *b, const char *what) {
  ck_assert_uint_eq(a->count, b->count);
  for (size_t i = 0; i < a->count; i++)
    ck_assert_msg(a->at[i] == b->at[i], "%s: element %zu is %.9g and %.9g", what, i, a->at[i],
                  b->at[i]);
}

#endif
