/* SPDX-License-Identifier: Apache-2.0 */
/* Loaders: the same batches whatever the threads, memory or starting place; shuffles that mix. */
#include <math.h>

#include "h5_make.h"
#include "io/dataset.h"

enum { ROWS = 1000, WIDTH = 6 };

static float cell(int64_t row, int64_t column) {
  return (float)(row * 10 + column) * 0.25f;
}

/* /x [ROWS, WIDTH] in chunks of `chunk` rows (0: contiguous), /y [ROWS] of row % 3. */
static const char *make_file(hsize_t chunk, bool gzip) {
  const char *path = h5_make_path("loader");
  hid_t f = h5_make_file(path), p = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t dims[] = {ROWS, WIDTH}, chunks[] = {chunk, WIDTH};
  float *x = malloc(sizeof(float) * ROWS * WIDTH);
  int64_t y[ROWS];
  for (int64_t i = 0; i < ROWS; ++i) {
    y[i] = i % 3;
    for (int64_t j = 0; j < WIDTH; ++j)
      x[i * WIDTH + j] = cell(i, j);
  }
  if (chunk > 0) H5Pset_chunk(p, 2, chunks);
  if (gzip) H5Pset_deflate(p, 4);
  h5_make(f, "x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, dims, p, x);
  h5_make(f, "y", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, dims, H5P_DEFAULT, y);
  free(x);
  H5Pclose(p);
  H5Fclose(f);
  return path;
}

static const sn_field fields[] = {
    {.name = "x", .kind = SN_FIELD_DENSE, .path = "/x", .dtype = SN_F32, .normalize = true},
    {.name = "y.label", .role = SN_FIELD_CLASS, .path = "/y", .dtype = SN_I32},
};

typedef struct set {
  sn_dataset *data;
  sn_preparation *prep;
} set;

static set open_set(const char *path) {
  set s;
  ck_sn_ok(sn_dataset_open(&path, 1, fields, 2, &s.data));
  ck_sn_ok(sn_preparation_fit(s.data, NULL, 0, &s.prep));
  return s;
}

static void close_set(set s) {
  sn_preparation_free(s.prep);
  sn_dataset_free(s.data);
}

static sn_loader *loader_of(set s, sn_loader_options o) {
  sn_loader *l = NULL;
  o.struct_size = sizeof o;
  ck_sn_ok(sn_loader_create(s.data, s.prep, NULL, 0, &o, &l));
  return l;
}

/* Each row once, each with its own numbers. */
static void check_epoch(set s, sn_loader *l, int64_t epoch, bool in_order) {
  const double *mean = sn_preparation_mean(s.prep, 0), *dev = sn_preparation_deviation(s.prep, 0);
  char seen[ROWS] = {0};
  int64_t total = 0, index = 0;
  ck_sn_ok(sn_loader_start(l, epoch, 0));
  for (const sn_batch *b;;) {
    ck_sn_ok(sn_loader_next(l, &b));
    if (b == NULL) break;
    ck_assert_int_eq(b->index, index++);
    const float *x = b->fields[0].data;
    const int32_t *y = b->fields[1].data;
    for (int64_t i = 0; i < b->rows; ++i) {
      int64_t row = b->row_numbers[i];
      ck_assert(row >= 0 && row < ROWS && !seen[row]);
      if (in_order) ck_assert_int_eq(row, total + i);
      seen[row] = 1;
      ck_assert_int_eq(y[i], row % 3);
      for (int64_t j = 0; j < WIDTH; ++j)
        ck_assert(x[i * WIDTH + j] == (float)(((double)cell(row, j) - mean[j]) * (1 / dev[j])));
    }
    total += b->rows;
  }
  ck_assert_int_eq(total, ROWS);
  ck_assert_int_eq(index, sn_loader_batches(l));
}

START_TEST(test_every_row_once) {
  const hsize_t chunks[] = {0, 7, 100, 1000};
  const size_t memory[] = {0, 30000, 8192};
  for (size_t c = 0; c < 4; ++c) {
    const char *path = make_file(chunks[c], c % 2 == 1);
    set s = open_set(path);
    for (int threads = -1; threads < 4; ++threads)
      for (size_t m = 0; m < 3; ++m)
        for (int shuffle = 0; shuffle < 2; ++shuffle) {
          sn_loader *l = loader_of(s, (sn_loader_options){.batch = 64,
                                                          .shuffle = shuffle,
                                                          .seed = 3,
                                                          .threads = threads,
                                                          .memory = memory[m]});
          for (int64_t epoch = 0; epoch < 2; ++epoch)
            check_epoch(s, l, epoch, !shuffle);
          sn_loader_free(l);
        }
    close_set(s);
    remove(path);
  }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("loader");
  TCase *t = tcase_create("batches");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, test_every_row_once);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
