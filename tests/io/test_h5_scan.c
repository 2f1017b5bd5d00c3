/* SPDX-License-Identifier: Apache-2.0 */
/* The scan: what a report says, what libhdf5 converts, and scanners that crash, hang, lie or are
 * not there. */
#include <sys/stat.h>
#include <time.h>

#include "h5_make.h"

/* ---- what is found ------------------------------------------------------------------------- */

START_TEST(test_links_and_cycles) {
  const char *path = h5_make_path("links");
  hid_t f = h5_make_file(path);
  const hsize_t dims[] = {4};
  const int data[] = {1, 2, 3, 4};
  hid_t g = H5Gcreate2(f, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  h5_make(g, "x", H5T_STD_I32LE, H5T_NATIVE_INT, 1, dims, H5P_DEFAULT, data);
  H5Lcreate_hard(f, "/group", g, "itself", H5P_DEFAULT, H5P_DEFAULT); /* a cycle */
  H5Lcreate_hard(g, "x", f, "again", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/group/x", f, "soft", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/nowhere", f, "dangling", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "/y", f, "external", H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(g);
  H5Fclose(f);
  sn__h5_file *file = h5_open(path);
  const sn__h5_report *r = sn__h5_file_report(file);
  ck_assert_uint_eq(r->dataset_count, 1);
  ck_assert_uint_eq(r->alias_count, 2);
  ck_assert_uint_eq(r->link_count, 2);
  const sn__h5_dataset *x = sn__h5_report_find(r, "group/x");
  ck_assert_ptr_nonnull(x);
  ck_assert_ptr_eq(sn__h5_report_find(r, "/again"), x);
  ck_assert_ptr_eq(sn__h5_report_find(r, "soft"), x);
  sn__h5_column *c = NULL;
  ck_sn_fails(sn__h5_column_open(file, "/dangling", &c), SN_CODE_NOT_FOUND, "leads nowhere");
  ck_sn_fails(sn__h5_column_open(file, "/external", &c), SN_CODE_NOT_FOUND, "other.h5");
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

/* All rows of a dataset, which are `count` numbers. */
static void check_column(const sn__h5_file *file, const char *name, int64_t rows, const int *want,
                         size_t count) {
  int32_t out[300];
  sn__h5_reader *r = h5_reader();
  sn__h5_column *c = h5_column(file, name);
  ck_assert_uint_le(count, 300);
  ck_sn_ok(sn__h5_column_read(c, r, 0, rows, SN_I32, out));
  ck_assert_msg(memcmp(out, want, count * sizeof *out) == 0, "%s holds other numbers", name);
  sn__h5_column_free(c);
  sn__h5_reader_free(r);
}

START_TEST(test_user_block) {
  const char *path = h5_make_path("userblock");
  hid_t p = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(p, 1024);
  hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, p, H5P_DEFAULT);
  H5Pclose(p);
  const hsize_t dims[] = {100}, chunk[] = {30};
  int data[100];
  for (int i = 0; i < 100; ++i)
    data[i] = 5 * i + 1;
  h5_make(f, "flat", H5T_STD_I32LE, H5T_NATIVE_INT, 1, dims, H5P_DEFAULT, data);
  p = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(p, 1, chunk);
  h5_make(f, "chunks", H5T_STD_I32LE, H5T_NATIVE_INT, 1, dims, p, data);
  H5Pset_deflate(p, 6);
  h5_make(f, "gzip", H5T_STD_I32LE, H5T_NATIVE_INT, 1, dims, p, data);
  H5Pclose(p);
  H5Fclose(f);
  sn__h5_file *file = h5_open(path);
  ck_assert_uint_eq(sn__h5_file_report(file)->userblock, 1024);
  check_column(file, "flat", 100, data, 100);
  check_column(file, "chunks", 100, data, 100);
  check_column(file, "gzip", 100, data, 100);
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

/* Every chunk index that libhdf5 has, and a sparse grid. */
START_TEST(test_chunk_tables) {
  const char *path = h5_make_path("tables");
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Pclose(access);
  const hsize_t dims[] = {50, 6}, chunk[] = {7, 4}, one[] = {H5S_UNLIMITED, 6},
                both[] = {H5S_UNLIMITED, H5S_UNLIMITED}, whole[] = {50, 6};
  const hsize_t *limits[] = {dims, one, both, dims, dims, dims};
  int data[300];
  for (int i = 0; i < 300; ++i)
    data[i] = i * i;
  for (int k = 0; k < 6; ++k) {
    char name[16];
    snprintf(name, sizeof name, "t%d", k);
    hid_t p = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, dims, limits[k]);
    H5Pset_chunk(p, 2, k == 3 ? whole : chunk);             /* 3: a single chunk */
    if (k == 4) H5Pset_alloc_time(p, H5D_ALLOC_TIME_EARLY); /* 4: no index */
    if (k == 5) {                                           /* edges left unfiltered */
      H5Pset_deflate(p, 1);
      H5Pset_chunk_opts(p, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    }
    hid_t d = H5Dcreate2(f, name, H5T_STD_I32LE, space, H5P_DEFAULT, p, H5P_DEFAULT);
    ck_assert(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(p);
  }
  H5Fclose(f);
  sn__h5_file *file = h5_open(path);
  for (int k = 0; k < 6; ++k) {
    char name[16];
    snprintf(name, sizeof name, "t%d", k);
    check_column(file, name, 50, data, 300);
  }
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

/* One chunk of 2^36. */
START_TEST(test_sparse_grid) {
  const char *path = h5_make_path("sparse");
  hid_t f = h5_make_file(path);
  const int data[] = {25, 36, 49};
  const hsize_t huge[] = {(hsize_t)1 << 40}, small[] = {16};
  hid_t p = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(p, 1, small);
  h5_make(f, "sparse", H5T_STD_I32LE, 0, 1, huge, p, NULL);
  H5Pclose(p);
  hid_t d = H5Dopen2(f, "sparse", H5P_DEFAULT), space = H5Dget_space(d), memory;
  const hsize_t at[] = {(hsize_t)1 << 39}, count[] = {3};
  H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, count, NULL);
  memory = H5Screate_simple(1, count, NULL);
  ck_assert(H5Dwrite(d, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, data) >= 0);
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(d);
  H5Fclose(f);
  sn__h5_file *file = h5_open(path);
  sn__h5_reader *r = h5_reader();
  sn__h5_column *c = h5_column(file, "sparse");
  int32_t out[5];
  ck_sn_ok(sn__h5_column_read(c, r, ((int64_t)1 << 39) - 1, 5, SN_I32, out));
  const int32_t want[] = {0, 25, 36, 49, 0};
  ck_assert_mem_eq(out, want, sizeof want);
  sn__h5_column_free(c);
  sn__h5_reader_free(r);
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

/* ---- what libhdf5 converts ----------------------------------------------------------------- */

START_TEST(test_conversions) {
  const char *path = h5_make_path("convert");
  hid_t f = h5_make_file(path), t;
  const hsize_t rows[] = {4}, dims[] = {40, 8}, chunk[] = {16, 8};
  static const char *const words[] = {"alpha", "", "gamma ray", "d"};
  t = H5Tcopy(H5T_C_S1);
  H5Tset_size(t, H5T_VARIABLE);
  h5_make(f, "words", t, t, 1, rows, H5P_DEFAULT, words);
  H5Tclose(t);
  t = H5Tcopy(H5T_FORTRAN_S1);
  H5Tset_size(t, 6);
  h5_make(f, "padded", t, t, 1, rows, H5P_DEFAULT, "ab    cd ef       abcdef");
  H5Tclose(t);
  int32_t a[] = {1, 2, 3}, b[] = {-4};
  const hvl_t ragged[] = {{3, a}, {0, NULL}, {1, b}, {2, a}};
  t = H5Tvlen_create(H5T_STD_I32BE);
  hid_t memory = H5Tvlen_create(H5T_NATIVE_INT);
  h5_make(f, "ragged", t, memory, 1, rows, H5P_DEFAULT, ragged);
  H5Tclose(memory);
  H5Tclose(t);
  int data[320];
  for (int i = 0; i < 320; ++i)
    data[i] = (i * 37) % 1000;
  hid_t p = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(p, 2, chunk);
  H5Pset_scaleoffset(p, H5Z_SO_INT, 0);
  h5_make(f, "scaled", H5T_STD_I32LE, H5T_NATIVE_INT, 2, dims, p, data);
  H5Pclose(p);
  t = H5Tcopy(H5T_STD_I32LE); /* 20 bits of 32 */
  H5Tset_precision(t, 20);
  h5_make(f, "narrow", t, H5T_NATIVE_INT, 2, dims, H5P_DEFAULT, data);
  H5Tclose(t);
  H5Fclose(f);

  sn__h5_file *file = h5_open(path);
  sn__h5_reader *r = h5_reader();
  sn__h5_strings s = {0};
  sn__h5_column *c = h5_column(file, "words");
  ck_assert_int_eq(sn__h5_column_info_of(c)->kind, SN__H5_COLUMN_STRING);
  ck_sn_ok(sn__h5_column_strings(c, r, 1, 3, &s));
  ck_assert_int_eq(s.offsets[0], 0);
  ck_assert_int_eq(s.offsets[1], 0);
  ck_assert_int_eq(s.offsets[3], 10);
  ck_assert_mem_eq(s.bytes, "gamma rayd", 10);
  sn__h5_strings_clear(&s);
  sn__h5_column_free(c);
  c = h5_column(file, "padded");
  ck_sn_ok(sn__h5_column_strings(c, r, 0, 4, &s));
  ck_assert_mem_eq(s.bytes, "abcd efabcdef", 13);
  ck_assert_int_eq(s.offsets[2], 7);
  ck_assert_int_eq(s.offsets[3], 7);
  sn__h5_strings_clear(&s);
  sn__h5_column_free(c);
  c = h5_column(file, "ragged");
  int64_t offsets[5];
  float values[6];
  ck_sn_ok(sn__h5_column_offsets(c, 0, 4, offsets));
  const int64_t want[] = {0, 3, 3, 4, 6};
  ck_assert_mem_eq(offsets, want, sizeof want);
  ck_sn_ok(sn__h5_column_read(sn__h5_column_values(c), r, 0, 6, SN_F32, values));
  const float elements[] = {1, 2, 3, -4, 1, 2};
  ck_assert_mem_eq(values, elements, sizeof elements);
  ck_sn_fails(sn__h5_column_read(c, r, 0, 4, SN_F32, values), SN_CODE_UNSUPPORTED, "sequence");
  sn__h5_column_free(c);
  static const char *const names[] = {"scaled", "narrow"};
  for (int k = 0; k < 2; ++k) {
    c = h5_column(file, names[k]);
    ck_assert(sn__h5_column_info_of(c)->converted);
    int32_t out[320];
    ck_sn_ok(sn__h5_column_read(c, r, 0, 40, SN_I32, out));
    ck_assert_mem_eq(out, data, sizeof data);
    sn__h5_column_free(c);
  }
  sn__h5_reader_free(r);
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

START_TEST(test_virtual_sources) {
  char path[256], source[256];
  snprintf(path, sizeof path, "%s", h5_make_path("virtual"));
  snprintf(source, sizeof source, "%s", h5_make_path("source"));
  const hsize_t dims[] = {5};
  const int data[] = {3, 1, 4, 1, 5};
  hid_t f = h5_make_file(source);
  h5_make(f, "d", H5T_STD_I32LE, H5T_NATIVE_INT, 1, dims, H5P_DEFAULT, data);
  H5Fclose(f);
  f = h5_make_file(path);
  hid_t p = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, dims, NULL);
  ck_assert(H5Pset_virtual(p, space, source, "d", space) >= 0);
  h5_make(f, "v", H5T_STD_I32LE, 0, 1, dims, p, NULL);
  H5Sclose(space);
  H5Pclose(p);
  H5Fclose(f);
  sn__h5_file *file = h5_open(path);
  sn__h5_column *c = h5_column(file, "v");
  sn__h5_reader *r = h5_reader();
  int32_t out[5];
  ck_sn_ok(sn__h5_column_read(c, r, 0, 5, SN_I32, out));
  ck_assert_mem_eq(out, data, sizeof data);
  sn__h5_reader_free(r);
  sn__h5_column_free(c);
  remove(source); /* libhdf5 alone would now say zeros */
  ck_sn_fails(sn__h5_column_open(file, "v", &c), SN_CODE_UNSUPPORTED, "is missing");
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

/* ---- scanners that misbehave --------------------------------------------------------------- */

/* A shell script that takes the scanner's place. */
static const char *fake(const char *name, const char *script) {
  static char path[256];
  snprintf(path, sizeof path, "./test_h5_fake_%s_%d.sh", name, (int)getpid());
  FILE *f = fopen(path, "w");
  ck_assert_ptr_nonnull(f);
  fprintf(f, "#!/bin/sh\n%s\n", script);
  fclose(f);
  chmod(path, 0755);
  setenv("SN_H5SCAN", path, 1);
  return path;
}

/* What a report says after `script` has played the scanner on a sound file. */
static void check_fake(const char *name, const char *script, const char *words) {
  const char *path = h5_make_path(name);
  hid_t f = h5_make_file(path);
  H5Fclose(f);
  const char *program = fake(name, script);
  const sn__h5_limits limits = {.idle_seconds = 0.5, .total_seconds = 2};
  sn__h5_report *report = NULL;
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  sn_status s = sn__h5_scan(path, &limits, &report);
  clock_gettime(CLOCK_MONOTONIC, &b);
  ck_assert_int_lt(b.tv_sec - a.tv_sec, 30); /* did not wait for the sleeper */
  const char *message = s != SN_OK ? sn_status_message(s) : report->failure;
  ck_assert_msg(message != NULL && strstr(message, words) != NULL && strstr(message, path) != NULL,
                "'%s' lacks '%s'", message != NULL ? message : "(nothing)", words);
  ck_assert_ptr_null(strchr(message, '\n'));
  sn_status_free(s);
  sn__h5_report_free(report);
  remove(program);
  remove(path);
  unsetenv("SN_H5SCAN");
}

START_TEST(test_bad_scanners) {
  check_fake("hangs", "exec sleep 60", "did not end within");
  check_fake("chatters", "printf SNH5RPT1 >&3; while :; do printf x >&3 || exit; sleep 0.05; done",
             "did not end within");
  check_fake("crashes", "kill -SEGV $$", "crashed (Segmentation fault)");
  check_fake("silent", "exit 0", "without a word");
  check_fake("memory", "exit 3", "MiB allowed");
  check_fake("lies", "printf 'not a report at all' >&3", "wrong form");
  check_fake("garbage", "printf 'SNH5RPT1\\005\\004\\000\\000\\000abcd' >&3", "damaged");
  /* Said where it was, then died: "/x" while "s". */
  check_fake(
      "dies",
      "printf 'SNH5RPT1\\002\\013\\000\\000\\000\\002\\000\\000\\000/x\\001\\000\\000\\000s' "
      ">&3; kill -ABRT $$",
      "while at /x (s)");
}
END_TEST

START_TEST(test_files_that_are_none) {
  sn__h5_file *f = NULL;
  ck_sn_fails(sn__h5_file_open("absent.h5", NULL, &f), SN_CODE_NOT_FOUND,
              "absent.h5: no such file");
  ck_sn_fails(sn__h5_file_open(".", NULL, &f), SN_CODE_IO, "a folder");
  const char *path = h5_make_path("none");
  FILE *out = fopen(path, "w");
  fclose(out);
  ck_sn_fails(sn__h5_file_open(path, NULL, &f), SN_CODE_CORRUPT, "empty file");
  out = fopen(path, "w");
  fputs("epoch,loss\n1,0.5\n", out);
  fclose(out);
  ck_sn_fails(sn__h5_file_open(path, NULL, &f), SN_CODE_CORRUPT, "not an HDF5 file");
  remove(path);
  setenv("SN_H5SCAN", "/nowhere/sennit-h5scan", 1);
  ck_sn_fails(sn__h5_file_open("/proc/self/exe", NULL, &f), SN_CODE_CONFIG, "SN_H5SCAN names");
}
END_TEST

/* What one file may cost is bounded, and the bound is told from damage. */
START_TEST(test_memory_limit) {
  const char *path = h5_make_path("limit");
  hid_t f = h5_make_file(path), p = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t dims[] = {1 << 24};
  H5Pset_chunk(p, 1, dims);
  H5Pset_scaleoffset(p, H5Z_SO_INT, 0); /* for libhdf5 to undo */
  static int32_t data[1 << 24];
  h5_make(f, "x", H5T_STD_I32LE, H5T_NATIVE_INT, 1, dims, p, data);
  H5Pclose(p);
  H5Fclose(f);
  const sn__h5_limits limits = {.memory_mib = 48};
  sn__h5_file *file = NULL;
  sn__h5_column *c = NULL;
  ck_sn_ok(sn__h5_file_open(path, &limits, &file));
  sn_status s = sn__h5_column_open(file, "x", &c);
  ck_assert_msg(s != SN_OK && strstr(sn_status_message(s), "memory") != NULL, "%s",
                sn_status_message(s));
  sn_status_free(s);
  sn__h5_file_free(file);
  file = h5_open(path); /* 2 GiB are plenty */
  c = h5_column(file, "x");
  ck_assert_int_eq(sn__h5_column_info_of(c)->rows, 1 << 24);
  sn__h5_column_free(c);
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

/* A copy cut short is told from a whole one, and what lies beyond its end is not read. */
START_TEST(test_cut_short) {
  const char *path = h5_make_path("cut");
  hid_t f = h5_make_file(path);
  const hsize_t dims[] = {4000};
  static int data[4000];
  h5_make(f, "x", H5T_STD_I32LE, H5T_NATIVE_INT, 1, dims, H5P_DEFAULT, data);
  H5Fclose(f);
  struct stat s;
  ck_assert_int_eq(stat(path, &s), 0);
  ck_assert_int_eq(truncate(path, s.st_size - 1000), 0);
  sn__h5_file *file = NULL;
  ck_sn_fails(sn__h5_file_open(path, NULL, &file), SN_CODE_CORRUPT, "cut short");
  remove(path);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("h5_scan");
  TCase *t = tcase_create("scan");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, test_links_and_cycles);
  tcase_add_test(t, test_user_block);
  tcase_add_test(t, test_chunk_tables);
  tcase_add_test(t, test_sparse_grid);
  tcase_add_test(t, test_conversions);
  tcase_add_test(t, test_virtual_sources);
  tcase_add_test(t, test_bad_scanners);
  tcase_add_test(t, test_files_that_are_none);
  tcase_add_test(t, test_memory_limit);
  tcase_add_test(t, test_cut_short);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
