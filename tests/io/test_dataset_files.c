/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of several files, and fingerprints: what makes rows the same rows. */
#include "h5_make.h"
#include "io/dataset.h"

enum { ROWS = 500, WIDTH = 3 };

/* What the rows of a file are, and how they are stored. */
typedef struct content {
  int first, rows;
  int change; /* 0: none; else the kind of a change: see cell(), put_categories(), put_sequences()
               */
  bool packed, wide; /* chunks, gzip; f64 */
  bool text;         /* categories as words */
} content;

static const char *words[] = {"7", "9", "8"};

static float cell(const content *c, int row, int k) {
  bool other = c->change == 1 ? row == 0 && k == 0 : c->change == 2 && row == ROWS - 1 && k == 2;
  return (float)(row * 8 + k) * 0.125f + (other ? 1 : 0);
}

static void put_categories(hid_t f, const content *c) {
  const hsize_t n = (hsize_t)c->rows;
  int64_t numbers[ROWS];
  const char *names[ROWS];
  for (int i = 0; i < c->rows; ++i) {
    int row = c->first + i, which = row % 3 == 1 && row % 2 == 0 ? 2 : row % 2;
    if (c->change == 3 && row == 333) which = (which + 1) % 3;
    names[i] = words[which];
    numbers[i] = names[i][0] - '0';
  }
  hid_t t = H5Tcopy(H5T_C_S1);
  H5Tset_size(t, H5T_VARIABLE);
  if (c->text)
    h5_make(f, "ward", t, t, 1, &n, H5P_DEFAULT, names);
  else
    h5_make(f, "ward", H5T_STD_I16BE, H5T_NATIVE_INT64, 1, &n, H5P_DEFAULT, numbers);
  H5Tclose(t);
}

static void put_sequences(hid_t f, const content *c) {
  static int64_t ids[ROWS * 4];
  int64_t offsets[ROWS + 1] = {0}, at = 0;
  for (int i = 0; i < c->rows; ++i) {
    int row = c->first + i, length = row % 4;
    if (c->change == 4 && row == 222) length = length == 3 ? 2 : length + 1;
    for (int k = 0; k < length; ++k)
      ids[at++] = row % 50 + k;
    offsets[i + 1] = at;
  }
  if (c->change == 5) ids[at - 1] += 1;
  const hsize_t n = (hsize_t)at, n_offsets = (hsize_t)c->rows + 1;
  H5Gclose(H5Gcreate2(f, "notes", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  h5_make(f, "notes/values", c->wide ? H5T_STD_I64LE : H5T_STD_U8LE, H5T_NATIVE_INT64, 1, &n,
          H5P_DEFAULT, ids);
  h5_make(f, "notes/offsets", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n_offsets, H5P_DEFAULT, offsets);
}

static void make(const char *path, content c) {
  static float x[ROWS][WIDTH];
  hid_t f = h5_make_file(path), p = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t dims[] = {(hsize_t)c.rows, WIDTH}, chunk[] = {64, 2};
  for (int i = 0; i < c.rows; ++i)
    for (int k = 0; k < WIDTH; ++k)
      x[i][k] = cell(&c, c.first + i, k);
  if (c.packed) {
    H5Pset_chunk(p, 2, chunk);
    H5Pset_deflate(p, 3);
  }
  h5_make(f, "x", c.wide ? H5T_IEEE_F64BE : H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, dims, p, x);
  put_categories(f, &c);
  put_sequences(f, &c);
  H5Pclose(p);
  H5Fclose(f);
}

static const sn_field fields[] = {
    {.name = "x", .path = "/x", .dtype = SN_F32},
    {.name = "ward", .path = "/ward", .kind = SN_FIELD_CATEGORY, .dtype = SN_I32},
    {.name = "notes", .path = "/notes", .kind = SN_FIELD_SEQUENCE, .ids = true, .dtype = SN_I32},
};

/* Paths of two files, which are written. */
static const char *const *two_files(content a, content b) {
  static char paths[2][256];
  static const char *const both[] = {paths[0], paths[1]};
  strcpy(paths[0], h5_make_path("first"));
  strcpy(paths[1], h5_make_path("second"));
  make(paths[0], a);
  if (b.rows > 0) make(paths[1], b);
  return both;
}

static void remove_both(const char *const *paths) {
  remove(paths[0]);
  remove(paths[1]);
}

static void fingerprint(content a, content b, char out[65]) {
  sn_dataset *d = NULL;
  const char *const *paths = two_files(a, b);
  ck_sn_ok(sn_dataset_open(paths, b.rows > 0 ? 2 : 1, fields, 3, &d));
  ck_sn_ok(sn_dataset_fingerprint(d, out));
  ck_assert_uint_eq(strlen(out), 64);
  sn_dataset_free(d);
  remove_both(paths);
}

START_TEST(test_same_rows_are_the_same_data) {
  const content none = {.rows = 0};
  char plain[65], other[65];
  fingerprint((content){.rows = ROWS}, none, plain);
  fingerprint((content){.rows = ROWS, .packed = true, .wide = true}, none, other);
  ck_assert_str_eq(plain, other);
  fingerprint((content){.rows = 130, .packed = true},
              (content){.first = 130, .rows = ROWS - 130, .wide = true}, other);
  ck_assert_str_eq(plain, other);
}
END_TEST

START_TEST(test_other_rows_are_other_data) {
  const content none = {.rows = 0};
  char seen[7][65];
  for (int change = 0; change < 6; ++change)
    fingerprint((content){.rows = ROWS, .change = change}, none, seen[change]);
  fingerprint((content){.rows = ROWS, .text = true}, none, seen[6]);
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < i; ++j)
      ck_assert_msg(strcmp(seen[i], seen[j]) != 0, "changes %d and %d", i, j);
  fingerprint((content){.rows = ROWS - 1}, none, seen[0]);
  ck_assert_str_ne(seen[0], seen[1]);
}
END_TEST

/* 7 and "7" would be two categories. */
START_TEST(test_numbers_and_text_do_not_mix) {
  sn_dataset *d = NULL;
  const char *const *paths =
      two_files((content){.rows = 20}, (content){.first = 20, .rows = 20, .text = true});
  char want[700];
  snprintf(want, sizeof want,
           "/ward is numbers in %s and text in %s: 7 and \"7\" would be two categories; store both "
           "alike",
           paths[0], paths[1]);
  ck_sn_fails(sn_dataset_open(paths, 2, fields, 3, &d), SN_CODE_DATA, want);
  const char *const turned[] = {paths[1], paths[0]};
  ck_sn_fails(sn_dataset_open(turned, 2, fields, 3, &d), SN_CODE_DATA, "/ward is text in");
  /* Nor where one file trains and the other does not. */
  sn_preparation *p = NULL;
  for (int i = 0; i < 2; ++i) {
    ck_sn_ok(sn_dataset_open(paths + i, 1, fields, 3, &d));
    ck_sn_ok(sn_preparation_fit(d, NULL, 0, &p));
    sn_dataset_free(d);
    ck_sn_ok(sn_dataset_open(paths + 1 - i, 1, fields, 3, &d));
    ck_sn_fails(sn_dataset_check(d, p, NULL, NULL), SN_CODE_DATA,
                i == 0 ? "/ward: row 0: '7' is text here and was a number in the training rows"
                       : "is a number here and was text in the training rows: store both alike");
    sn_preparation_free(p);
    sn_dataset_free(d);
  }
  remove_both(paths);
}
END_TEST

/* Ids of a sequence are numbers: the message says how to get there. */
START_TEST(test_ids_are_no_strings) {
  const content c = {.rows = 20, .text = true};
  const char *const *paths = two_files(c, (content){.rows = 0});
  const sn_field words_of[] = {
      {.name = "s", .path = "/ward", .kind = SN_FIELD_SEQUENCE, .ids = true, .dtype = SN_I32}};
  sn_dataset *d = NULL;
  ck_sn_fails(sn_dataset_open(paths, 1, words_of, 1, &d), SN_CODE_DATA,
              "/ward is strings; kind sequence needs numbers; use numbers for its words, the same "
              "word always by the same one");
  remove_both(paths);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("dataset files");
  TCase *t = tcase_create("files");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, test_same_rows_are_the_same_data);
  tcase_add_test(t, test_other_rows_are_other_data);
  tcase_add_test(t, test_numbers_and_text_do_not_mix);
  tcase_add_test(t, test_ids_are_no_strings);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
