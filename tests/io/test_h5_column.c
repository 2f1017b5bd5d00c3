/* SPDX-License-Identifier: Apache-2.0 */
/* Columns in use: three axes, several threads, short memory, a host that reaps no children. */
#include <pthread.h>
#include <signal.h>

#include "fail_alloc.h"
#include "h5_make.h"

#define ROWS  200
#define STEPS 9
#define WIDE  5

static float value(int64_t i, int64_t j, int64_t k) {
  return (float)(i * 100 + j * 10 + k);
}

static void make_cube(const char *path) {
  static float data[ROWS][STEPS][WIDE];
  for (int64_t i = 0; i < ROWS; ++i)
    for (int64_t j = 0; j < STEPS; ++j)
      for (int64_t k = 0; k < WIDE; ++k)
        data[i][j][k] = value(i, j, k);
  hid_t f = h5_make_file(path);
  const hsize_t dims[] = {ROWS, STEPS, WIDE};
  static const hsize_t shapes[][3] = {{16, 9, 5}, {16, 4, 5}, {16, 9, 2}, {16, 4, 2}, {7, 1, 5}};
  for (int s = 0; s < 5; ++s) {
    char name[16];
    snprintf(name, sizeof name, "cube%d", s);
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(p, 3, shapes[s]);
    H5Pset_shuffle(p);
    H5Pset_deflate(p, 1);
    h5_make(f, name, H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, 3, dims, p, data);
    H5Pclose(p);
  }
  H5Fclose(f);
}

START_TEST(test_three_axes) {
  const char *path = h5_make_path("cube");
  make_cube(path);
  sn__h5_file *file = h5_open(path);
  sn__h5_reader *r = NULL;
  ck_sn_ok(sn__h5_reader_create(4096, &r)); /* holds a chunk or two: evicts all the time */
  for (int s = 0; s < 5; ++s) {
    char name[16];
    snprintf(name, sizeof name, "cube%d", s);
    sn__h5_column *c = h5_column(file, name);
    const sn__h5_column_info *info = sn__h5_column_info_of(c);
    ck_assert_int_eq(info->width, (int64_t)STEPS * WIDE);
    ck_assert_uint_eq(info->rank, 3);
    int64_t rows[64];
    for (int i = 0; i < 64; ++i)
      rows[i] = (i * 67 + 13) % ROWS;
    float out[64][STEPS][WIDE];
    ck_sn_ok(sn__h5_column_gather(c, r, rows, 64, SN_F32, out));
    for (int64_t i = 0; i < 64; ++i)
      for (int64_t j = 0; j < STEPS; ++j)
        for (int64_t k = 0; k < WIDE; ++k)
          ck_assert_float_eq(out[i][j][k], value(rows[i], j, k));
    int64_t seen = 0, row0, row1;
    for (int64_t b = 0; b < info->bands; ++b) {
      sn__h5_column_band(c, b, &row0, &row1);
      ck_assert_int_eq(row0, seen);
      seen = row1;
    }
    ck_assert_int_eq(seen, ROWS);
    sn__h5_column_free(c);
  }
  sn__h5_reader_free(r);
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct worker {
  const sn__h5_column *column;
  int64_t from, stride;
  float *out;
  sn_status status;
} worker;

static void *work(void *arg) {
  worker *w = arg;
  const sn__h5_column_info *info = sn__h5_column_info_of(w->column);
  sn__h5_reader *r = NULL;
  w->status = sn__h5_reader_create(0, &r);
  for (int64_t task = w->from; w->status == SN_OK && task < info->bands * info->parts;
       task += w->stride) {
    int64_t band = task / info->parts, row0, row1;
    sn__h5_column_band(w->column, band, &row0, &row1);
    w->status = sn__h5_column_read_part(w->column, r, band, task % info->parts, SN_F32,
                                        w->out + row0 * info->width);
  }
  sn__h5_reader_free(r);
  return NULL;
}

START_TEST(test_parts_in_parallel) {
  const char *path = h5_make_path("threads");
  make_cube(path);
  sn__h5_file *file = h5_open(path);
  sn__h5_column *c = h5_column(file, "/cube3");
  static float out[ROWS * STEPS * WIDE], want[ROWS * STEPS * WIDE];
  pthread_t threads[4];
  worker workers[4];
  for (int i = 0; i < 4; ++i) {
    workers[i] = (worker){c, i, 4, out, SN_OK};
    ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
    ck_sn_ok(workers[i].status);
  }
  sn__h5_reader *r = h5_reader();
  ck_sn_ok(sn__h5_column_read(c, r, 0, ROWS, SN_F32, want));
  ck_assert_mem_eq(out, want, sizeof out);
  sn__h5_reader_free(r);
  sn__h5_column_free(c);
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

static sn_status use_file(void *arg) {
  sn__h5_file *f = NULL;
  sn__h5_column *c = NULL, *words = NULL;
  sn__h5_reader *r = NULL;
  sn__h5_strings strings = {0};
  static float out[ROWS * STEPS * WIDE];
  sn_status s = sn__h5_file_open(arg, NULL, &f);
  if (s == SN_OK) s = sn__h5_reader_create(0, &r);
  if (s == SN_OK) s = sn__h5_column_open(f, "cube3", &c);
  if (s == SN_OK) s = sn__h5_column_read(c, r, 0, ROWS, SN_F32, out);
  if (s == SN_OK) s = sn__h5_column_open(f, "words", &words);
  if (s == SN_OK) s = sn__h5_column_strings(words, r, 0, 2, &strings);
  sn__h5_strings_clear(&strings);
  sn__h5_column_free(words);
  sn__h5_column_free(c);
  sn__h5_reader_free(r);
  sn__h5_file_free(f);
  return s;
}

START_TEST(test_short_of_memory) {
  static char path[256];
  snprintf(path, sizeof path, "%s", h5_make_path("memory"));
  make_cube(path);
  hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), t = H5Tcopy(H5T_C_S1);
  /* One cube and some words: every call is tried, so there are not to be too many. */
  static const char *const names[] = {"cube0", "cube1", "cube2", "cube4"};
  for (int i = 0; i < 4; ++i)
    H5Ldelete(f, names[i], H5P_DEFAULT);
  const hsize_t two[] = {2};
  static const char *const words[] = {"yes", "no"};
  H5Tset_size(t, H5T_VARIABLE);
  h5_make(f, "words", t, t, 1, two, H5P_DEFAULT, words);
  H5Tclose(t);
  H5Fclose(f);
  ck_assert_int_gt(sn_fail_alloc_every_call(use_file, path), 20);
  remove(path);
}
END_TEST

/* A program that ignores SIGCHLD gets no exit statuses, and sennit none of its children's. */
START_TEST(test_host_ignores_children) {
  const char *path = h5_make_path("sigchld");
  make_cube(path);
  signal(SIGCHLD, SIG_IGN);
  sn__h5_file *file = h5_open(path);
  ck_assert_uint_eq(sn__h5_file_report(file)->dataset_count, 5);
  sn__h5_file_free(file);
  signal(SIGCHLD, SIG_DFL);
  remove(path);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("h5_column");
  TCase *t = tcase_create("column");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, test_three_axes);
  tcase_add_test(t, test_parts_in_parallel);
  tcase_add_test(t, test_short_of_memory);
  tcase_add_test(t, test_host_ignores_children);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
