/* SPDX-License-Identifier: Apache-2.0 */
/* What `sennit inspect` says, and that all of it is said at once. */
#include <cjson/cJSON.h>
#include <math.h>
#include <time.h>

#include "h5_make.h"
#include "io/h5_inspect.h"

#define ROWS 60

static void make_file(const char *path) {
  hid_t f = h5_make_file(path), t, g;
  const hsize_t wide[] = {ROWS, 3}, rows[] = {ROWS}, few[] = {ROWS - 1}, offsets[] = {4};
  double x[ROWS * 3], y[ROWS];
  int labels[ROWS];
  for (int i = 0; i < ROWS; ++i) {
    double *row = x + (size_t)3 * (size_t)i;
    row[0] = i;
    row[1] = 4; /* constant */
    row[2] = -i / 2.0;
    y[i] = i % 7 / 7.0;
    labels[i] = i % 3 == 0 ? 5 : 9;
  }
  h5_make(f, "x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, wide, H5P_DEFAULT, x);
  h5_make(f, "label", H5T_STD_I32LE, H5T_NATIVE_INT, 1, rows, H5P_DEFAULT, labels);
  h5_make(f, "short", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, few, H5P_DEFAULT, y);
  y[41] = NAN;
  y[50] = INFINITY;
  h5_make(f, "holes", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, rows, H5P_DEFAULT, y);
  h5_make(f, "unwritten", H5T_IEEE_F64LE, 0, 1, rows, H5P_DEFAULT, NULL);
  t = H5Tcreate(H5T_COMPOUND, 8);
  H5Tinsert(t, "a", 0, H5T_NATIVE_INT);
  H5Tinsert(t, "b", 4, H5T_NATIVE_FLOAT);
  h5_make(f, "table", t, 0, 1, rows, H5P_DEFAULT, NULL);
  H5Tclose(t);
  const int64_t good[] = {0, 10, 10, ROWS}, bad[] = {0, 20, 10, ROWS};
  for (int k = 0; k < 2; ++k) {
    g = H5Gcreate2(f, k == 0 ? "good" : "bad", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    h5_make(g, "values", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, wide, H5P_DEFAULT, x);
    h5_make(g, "offsets", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, offsets, H5P_DEFAULT,
            k == 0 ? good : bad);
    H5Gclose(g);
  }
  H5Fclose(f);
}

static void has(const char *text, const char *words) {
  ck_assert_msg(strstr(text, words) != NULL, "lacks '%s':\n%s", words, text);
}

START_TEST(test_text) {
  const char *path = h5_make_path("inspect");
  make_file(path);
  char *text = NULL;
  ck_sn_ok(sn__inspect_file(path, false, &text));
  has(text, "/x  f64, 60 x 3\n      -29.5 to 59, mean");
  has(text, "2 classes: 9 40 (66.7%), 5 20 (33.3%)");
  has(text, "/good  sequence or set of 3 rows: lengths 0 to 50, mean 20, 1 empty");
  has(text, "dataset /x: column 1 is constant");
  has(text, "row counts differ");
  has(text, "/short 59");
  has(text, "dataset /table holds compound {a: i32, b: f32}");
  const char *stops = strstr(text, "This would stop training");
  ck_assert_ptr_nonnull(stops);
  has(stops, "dataset /holes: 1 NaN and 1 inf of 60 values, the first at row 41, column 0");
  has(stops, "dataset /unwritten: nothing was ever written");
  has(stops, "/bad/offsets: it decreases at row 2 (10 after 20)");
  ck_assert_ptr_null(strstr(stops, "/x:"));
  sn__free(text);
  remove(path);
}
END_TEST

static const cJSON *item(const cJSON *list, const char *path) {
  const cJSON *i;
  cJSON_ArrayForEach(i, list) {
    const cJSON *p = cJSON_GetObjectItem(i, "path");
    if (p != NULL && strcmp(p->valuestring, path) == 0) return i;
  }
  ck_abort_msg("no %s", path);
  return NULL;
}

static double number(const cJSON *o, const char *key) {
  const cJSON *n = cJSON_GetObjectItem(o, key);
  ck_assert_msg(cJSON_IsNumber(n), "%s", key);
  return n->valuedouble;
}

START_TEST(test_json) {
  const char *path = h5_make_path("json");
  make_file(path);
  char *text = NULL;
  ck_sn_ok(sn__inspect_file(path, true, &text));
  cJSON *o = cJSON_Parse(text);
  ck_assert_ptr_nonnull(o);
  const cJSON *datasets = cJSON_GetObjectItem(o, "datasets"), *x = item(datasets, "/x");
  ck_assert_double_eq(number(x, "min"), -29.5);
  ck_assert_double_eq(number(x, "max"), 59);
  ck_assert_double_eq(number(x, "rows"), ROWS);
  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(x, "shape")), 2);
  const cJSON *holes = item(datasets, "/holes");
  ck_assert_double_eq(number(holes, "nan"), 1);
  ck_assert_double_eq(number(holes, "inf"), 1);
  const cJSON *classes = cJSON_GetObjectItem(item(datasets, "/label"), "classes");
  ck_assert_int_eq(cJSON_GetArraySize(classes), 2);
  ck_assert_double_eq(number(cJSON_GetArrayItem(classes, 0), "value"), 9);
  ck_assert_double_eq(number(cJSON_GetArrayItem(classes, 0), "count"), 40);
  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(o, "stops")), 3);
  cJSON_Delete(o);
  sn__free(text);
  remove(path);
}
END_TEST

START_TEST(test_no_time_left) {
  const char *path = h5_make_path("time");
  make_file(path);
  const sn__inspect_options options = {.seconds = 1e-9};
  sn__inspection *x = NULL;
  char *text = NULL, *json = NULL;
  ck_sn_ok(sn__inspect(path, &options, &x));
  ck_sn_ok(sn__inspection_text(x, &text));
  ck_sn_ok(sn__inspection_json(x, &json));
  has(text, "10 datasets were not looked at, for lack of time");
  has(text, "/x  f64, 60 x 3");
  sn__free(text);
  sn__free(json);
  sn__inspection_free(x);
  remove(path);
}
END_TEST

/* Row 11 of the acceptance table, for inspect: every public file, in ten seconds. */
START_TEST(test_corpus) {
  const char *shared = getenv("SN_SHARED");
  char list[1200], path[2048];
  snprintf(list, sizeof list, "%s/data/MANIFEST.tsv", shared != NULL ? shared : "../shared");
  FILE *manifest = fopen(list, "r");
  if (manifest == NULL) {
    puts("test_h5_inspect: skipped the public files, no ../shared/data here (SN_SHARED)");
    return;
  }
  char line[2048];
  int count = 0;
  for (; fgets(line, sizeof line, manifest) != NULL;) {
    char *tab = strchr(line, '\t');
    if (tab == NULL || strchr(line, '/') == NULL || strchr(line, '/') > tab) continue;
    *tab = '\0';
    snprintf(path, sizeof path, "%.1000s/data/%.900s", shared != NULL ? shared : "../shared", line);
    char *text = NULL;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    sn_status s = sn__inspect_file(path, count % 2 == 1, &text);
    clock_gettime(CLOCK_MONOTONIC, &b);
    ck_assert_msg(b.tv_sec - a.tv_sec < 10, "%s", path);
    ck_assert_msg(s != SN_OK || text != NULL, "%s", path);
    if (s != SN_OK) {
      ck_assert_ptr_nonnull(strstr(sn_status_message(s), path));
      ck_assert_ptr_null(strchr(sn_status_message(s), '\n'));
    }
    sn_status_free(s);
    sn__free(text);
    count++;
  }
  fclose(manifest);
  ck_assert_int_ge(count, 90);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("h5_inspect");
  TCase *t = tcase_create("inspect");
  tcase_set_timeout(t, 280);
  tcase_add_test(t, test_text);
  tcase_add_test(t, test_json);
  tcase_add_test(t, test_no_time_left);
  tcase_add_test(t, test_corpus);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
