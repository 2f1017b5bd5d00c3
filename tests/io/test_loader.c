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
    for (int threads = -1; threads < 4; threads += 2)
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

/* The order of an epoch from a batch on. */
static void order_of(sn_loader *l, int64_t epoch, int64_t batch, int64_t *out, int64_t *out_count) {
  *out_count = 0;
  ck_sn_ok(sn_loader_start(l, epoch, batch));
  for (const sn_batch *b;;) {
    ck_sn_ok(sn_loader_next(l, &b));
    if (b == NULL) break;
    memcpy(out + *out_count, b->row_numbers, (size_t)b->rows * sizeof *out);
    *out_count += b->rows;
  }
}

START_TEST(test_position) {
  const char *path = make_file(50, true);
  set s = open_set(path);
  const size_t memory[] = {0, 20000};
  for (int m = 0; m < 2; ++m) {
    const sn_loader_options o = {
        .batch = 32, .shuffle = true, .seed = 11, .threads = 2, .memory = memory[m]};
    sn_loader *a = loader_of(s, o), *b = loader_of(s, o);
    int64_t whole[ROWS], rest[ROWS], n, k;
    order_of(a, 4, 0, whole, &n);
    ck_assert_int_eq(n, ROWS);
    for (int64_t batch = sn_loader_batches(b); batch >= 0; batch -= 5) {
      order_of(b, 4, batch, rest, &k);
      int64_t first = batch * 32 < ROWS ? batch * 32 : ROWS;
      ck_assert_int_eq(k, ROWS - first);
      ck_assert_mem_eq(rest, whole + first, (size_t)k * sizeof *rest);
    }
    order_of(b, 5, 0, rest, &k);
    ck_assert_mem_ne(rest, whole, sizeof whole);
    const sn_batch *left; /* a batch in the middle, left behind */
    ck_sn_ok(sn_loader_start(b, 9, 3));
    ck_sn_ok(sn_loader_next(b, &left));
    order_of(b, 4, 0, rest, &k);
    ck_assert_mem_eq(rest, whole, sizeof whole);
    sn_loader_free(a);
    sn_loader_free(b);
  }
  close_set(s);
  remove(path);
}
END_TEST

/* Pearson's correlation of the order with the stored one. */
static double correlation(const int64_t *order, int64_t n) {
  double mean = (double)(n - 1) / 2, up = 0, down = 0;
  for (int64_t i = 0; i < n; ++i) {
    up += ((double)i - mean) * ((double)order[i] - mean);
    down += ((double)i - mean) * ((double)i - mean);
  }
  return up / down;
}

/* A file of many rows: width 1, in chunks. */
static const char *make_long(int64_t rows, hsize_t chunk) {
  const char *path = h5_make_path("long");
  hid_t f = h5_make_file(path), p = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t n = (hsize_t)rows;
  float *x = malloc(sizeof *x * n);
  for (int64_t i = 0; i < rows; ++i)
    x[i] = (float)(i % 1000);
  H5Pset_chunk(p, 1, &chunk);
  H5Pset_deflate(p, 1);
  h5_make(f, "x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, &n, p, x);
  free(x);
  H5Pclose(p);
  H5Fclose(f);
  return path;
}

START_TEST(test_shuffle_mixes) {
  enum { N = 20000, CHUNK = 1000, CHUNKS = N / CHUNK, BATCH = 128 };
  const char *path = make_long(N, CHUNK);
  sn_dataset *d = NULL;
  sn_preparation *p = NULL;
  ck_sn_ok(sn_dataset_open(&path, 1, fields, 1, &d));
  ck_sn_ok(sn_preparation_fit(d, NULL, 0, &p));
  const size_t memory[] = {0, 200000, 100000, 40000}; /* 1, 2, 4 and 9 windows */
  int64_t *order = malloc(sizeof *order * N), n;
  for (int m = 0; m < 4; ++m)
    for (uint64_t seed = 0; seed < 5; ++seed) {
      sn_loader_options o = {.struct_size = sizeof o,
                             .batch = BATCH,
                             .shuffle = true,
                             .seed = seed,
                             .memory = memory[m]};
      sn_loader *l = NULL;
      ck_sn_ok(sn_loader_create(d, p, NULL, 0, &o, &l));
      order_of(l, 1, 0, order, &n);
      sn_loader_free(l);
      ck_assert_int_eq(n, N);
      double r = correlation(order, N);
      ck_assert_msg(fabs(r) < 0.05, "memory %zu, seed %d: %g", memory[m], (int)seed, r);
      for (int64_t b = 0; b + BATCH <= N; b += BATCH) {
        bool from[CHUNKS] = {false};
        int chunks = 0;
        for (int64_t i = b; i < b + BATCH; ++i) {
          chunks += !from[order[i] / CHUNK];
          from[order[i] / CHUNK] = true;
        }
        ck_assert_msg(chunks >= 8, "memory %zu: batch %d is drawn from %d chunks", memory[m],
                      (int)(b / BATCH), chunks);
      }
    }
  free(order);
  sn_preparation_free(p);
  sn_dataset_free(d);
  remove(path);
}
END_TEST

/* ---- ragged, weights, all kinds at once ------------------------------------------------------ */

enum { MIXED_ROWS = 300 };

static const char *make_mixed(void) {
  const char *path = h5_make_path("mixed");
  hid_t f = h5_make_file(path), p = H5Pcreate(H5P_DATASET_CREATE);
  int64_t offsets[MIXED_ROWS + 1] = {0}, y[MIXED_ROWS], ids[MIXED_ROWS * 7];
  float x[MIXED_ROWS * 7 * 2], t[MIXED_ROWS];
  for (int64_t i = 0; i < MIXED_ROWS; ++i) {
    offsets[i + 1] = offsets[i] + i * 5 % 8;
    y[i] = i % 7 == 0 ? -1 : i % 2;
    t[i] = i % 5 == 0 ? NAN : (float)i;
  }
  hsize_t n = (hsize_t)offsets[MIXED_ROWS];
  for (hsize_t e = 0; e < n; ++e) {
    ids[e] = (int64_t)(e % 50) * 3;
    x[2 * e] = (float)e;
    x[2 * e + 1] = -(float)e;
  }
  const hsize_t dims[] = {n, 2}, chunk[] = {64, 1}, rows = MIXED_ROWS, rows1 = MIXED_ROWS + 1;
  H5Pset_chunk(p, 2, chunk);
  H5Pset_shuffle(p);
  H5Pset_deflate(p, 1);
  H5Gclose(H5Gcreate2(f, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(H5Gcreate2(f, "i", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  h5_make(f, "g/values", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, dims, p, x);
  h5_make(f, "g/offsets", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &rows1, H5P_DEFAULT, offsets);
  h5_make(f, "i/values", H5T_STD_U8LE, H5T_NATIVE_INT64, 1, &n, H5P_DEFAULT, ids);
  h5_make(f, "i/offsets", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &rows1, H5P_DEFAULT, offsets);
  h5_make(f, "y", H5T_STD_I8LE, H5T_NATIVE_INT64, 1, &rows, H5P_DEFAULT, y);
  h5_make(f, "t", H5T_IEEE_F64LE, H5T_NATIVE_FLOAT, 1, &rows, H5P_DEFAULT, t);
  H5Pclose(p);
  H5Fclose(f);
  return path;
}

static const sn_field mixed[] = {
    {.name = "g", .path = "/g", .kind = SN_FIELD_SET, .dtype = SN_F32, .normalize = true},
    {.name = "i", .path = "/i", .kind = SN_FIELD_SEQUENCE, .ids = true, .dtype = SN_I32},
    {.name = "y",
     .path = "/y",
     .role = SN_FIELD_CLASS,
     .dtype = SN_I32,
     .missing = "-1",
     .balanced = true},
    {.name = "t",
     .path = "/t",
     .role = SN_FIELD_TARGET,
     .dtype = SN_F32,
     .missing = "nan",
     .normalize = true},
};

/* A fingerprint of every byte that an epoch's batches show. */
static uint64_t fingerprint(sn_loader *l, int64_t epoch, int64_t *most, int64_t *longest) {
  uint64_t h = 1469598103934665603u;
  *most = *longest = 0;
  ck_sn_ok(sn_loader_start(l, epoch, 0));
  for (const sn_batch *b;;) {
    ck_sn_ok(sn_loader_next(l, &b));
    if (b == NULL) return h;
    for (size_t i = 0; i < 4; ++i) {
      const sn_batch_field *f = &b->fields[i];
      size_t bytes = (size_t)f->elements * (i == 0 ? 8 : 4);
      for (size_t k = 0; k < bytes; ++k)
        h = (h ^ ((const uint8_t *)f->data)[k]) * 1099511628211u;
      for (int64_t k = 0; f->weights != NULL && k < f->elements * 4; ++k)
        h = (h ^ ((const uint8_t *)f->weights)[k]) * 1099511628211u;
      for (int64_t k = 0; f->offsets != NULL && k <= b->rows; ++k)
        h = (h ^ (uint64_t)f->offsets[k]) * 1099511628211u;
    }
    const int64_t *offsets = b->fields[0].offsets;
    if (offsets[b->rows] > *most) *most = offsets[b->rows];
    for (int64_t k = 0; k < b->rows; ++k) {
      ck_assert_int_eq(offsets[k + 1] - offsets[k], b->row_numbers[k] * 5 % 8);
      if (offsets[k + 1] - offsets[k] > *longest) *longest = offsets[k + 1] - offsets[k];
      ck_assert((b->fields[3].weights[k] == 0) == (b->row_numbers[k] % 5 == 0));
      ck_assert((b->fields[2].weights[k] == 0) == (b->row_numbers[k] % 7 == 0));
    }
  }
}

START_TEST(test_same_bits) {
  const char *path = make_mixed();
  set s;
  ck_sn_ok(sn_dataset_open(&path, 1, mixed, 4, &s.data));
  int64_t rows[MIXED_ROWS], n = 0;
  for (int64_t i = 0; i < MIXED_ROWS; ++i)
    if (i % 4 != 1) rows[n++] = i;
  ck_sn_ok(sn_preparation_fit(s.data, rows, n, &s.prep));
  ck_sn_ok(sn_dataset_check(s.data, s.prep, NULL, NULL));
  const size_t memory[] = {0, 6000};
  const int64_t sizes[] = {17, 1, 200};
  for (int m = 0; m < 2; ++m)
    for (int b = 0; b < 3; ++b) {
      uint64_t first = 0;
      for (int threads = -1; threads < 5; ++threads) {
        if (threads == 0) continue;
        sn_loader_options o = {.struct_size = sizeof o,
                               .batch = sizes[b],
                               .shuffle = true,
                               .seed = 5,
                               .threads = threads,
                               .memory = memory[m]};
        sn_loader *l = NULL;
        int64_t most, longest, want_most, want_longest;
        ck_sn_ok(sn_loader_create(s.data, s.prep, rows, n, &o, &l));
        uint64_t h = fingerprint(l, 2, &most, &longest);
        if (threads == -1) first = h;
        ck_assert(h == first);
        ck_sn_ok(sn_loader_largest(l, 2, 0, &want_most, &want_longest));
        ck_assert_int_eq(most, want_most);
        ck_assert_int_eq(longest, want_longest);
        sn_loader_free(l);
      }
    }
  close_set(s);
  remove(path);
}
END_TEST

/* ---- life and failure ------------------------------------------------------------------------ */

START_TEST(test_borrowed) {
  const char *path = make_file(100, true);
  set s = open_set(path);
  sn_loader *l = loader_of(s, (sn_loader_options){.batch = 50, .shuffle = true, .threads = 3});
  const sn_batch *before = NULL, *b = NULL;
  float kept[50 * WIDTH];
  ck_sn_fails(sn_loader_next(l, &b), SN_CODE_INVALID, "sn_loader_start");
  ck_sn_ok(sn_loader_start(l, 0, 0));
  for (;;) {
    ck_sn_ok(sn_loader_next(l, &b));
    if (before != NULL) ck_assert_mem_eq(before->fields[0].data, kept, sizeof kept);
    if (b == NULL) break;
    memcpy(kept, b->fields[0].data, sizeof kept);
    before = b;
  }
  sn_loader_free(l);
  close_set(s);
  remove(path);
}
END_TEST

START_TEST(test_free_at_any_moment) {
  const char *path = make_file(20, true);
  set s = open_set(path);
  for (int stop = -1; stop < 12; ++stop) {
    sn_loader *l = loader_of(
        s, (sn_loader_options){.batch = 32, .shuffle = true, .threads = 3, .memory = 20000});
    const sn_batch *b;
    if (stop >= 0) ck_sn_ok(sn_loader_start(l, 0, 0));
    for (int i = 0; i < stop; ++i)
      ck_sn_ok(sn_loader_next(l, &b));
    if (stop % 3 == 0) ck_sn_ok(sn_loader_start(l, 1, 2));
    sn_loader_free(l);
  }
  close_set(s);
  remove(path);
}
END_TEST

/* The file is cut short behind our back: batches before are good, then there is a status, again
 * and again. */
START_TEST(test_errors_travel) {
  const char *path = make_file(20, false);
  set s = open_set(path);
  ck_assert_int_eq(truncate(path, 9000), 0);
  for (int threads = -1; threads < 3; threads += 2) {
    sn_loader *l =
        loader_of(s, (sn_loader_options){.batch = 10, .threads = threads, .memory = 8192});
    const sn_batch *b;
    ck_sn_ok(sn_loader_start(l, 0, 0));
    sn_status status = SN_OK;
    int good = 0;
    while ((status = sn_loader_next(l, &b)) == SN_OK) {
      ck_assert_ptr_nonnull(b);
      ++good;
    }
    ck_assert_int_gt(good, 2);
    ck_assert_msg(strstr(sn_status_message(status), "dataset /x") != NULL, "%s",
                  sn_status_message(status));
    sn_status_free(status);
    ck_sn_fails(sn_loader_next(l, &b), SN_CODE_CORRUPT, "/x");
    ck_sn_ok(sn_loader_start(l, 0, 0));
    ck_sn_ok(sn_loader_next(l, &b));
    sn_loader_free(l);
  }
  close_set(s);
  remove(path);
}
END_TEST

START_TEST(test_options) {
  const char *path = make_file(0, false);
  set s = open_set(path);
  sn_loader *l = NULL;
  sn_loader_options o = {.struct_size = sizeof o};
  ck_sn_fails(sn_loader_create(s.data, s.prep, NULL, 0, &o, &l), SN_CODE_INVALID, "batch 0");
  o.batch = 5000;
  const int64_t twice[] = {3, 3}, far[] = {1, ROWS};
  ck_sn_fails(sn_loader_create(s.data, s.prep, twice, 2, &o, &l), SN_CODE_INVALID, "ascend");
  ck_sn_fails(sn_loader_create(s.data, s.prep, far, 2, &o, &l), SN_CODE_INVALID, "0..999");
  ck_sn_ok(sn_loader_create(s.data, s.prep, NULL, 0, &o, &l)); /* more than there are */
  ck_assert_int_eq(sn_loader_batches(l), 1);
  check_epoch(s, l, 0, true);
  ck_sn_fails(sn_loader_start(l, 0, 2), SN_CODE_INVALID, "batches 0..1");
  sn_loader_free(l);
  close_set(s);
  remove(path);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("loader");
  TCase *t = tcase_create("batches");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, test_every_row_once);
  tcase_add_test(t, test_position);
  tcase_add_test(t, test_shuffle_mixes);
  tcase_add_test(t, test_same_bits);
  tcase_add_test(t, test_borrowed);
  tcase_add_test(t, test_free_at_any_moment);
  tcase_add_test(t, test_errors_travel);
  tcase_add_test(t, test_options);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
