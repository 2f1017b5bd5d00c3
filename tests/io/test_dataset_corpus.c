/* SPDX-License-Identifier: Apache-2.0 */
/* Every dataset of every public file as every kind of field: a batch or one line that says why not.
 */
#include <dirent.h>
#include <stdio.h>
#include <time.h>

#include "check_sn.h"
#include "io/dataset.h"
#include "io/h5_column.h"

static int tried, trained;

static void heard(void *user, const char *line) {
  (void)user;
  ck_assert_ptr_null(strchr(line, '\n'));
}

/* Opens, fits, checks and reads an epoch's first batches, as training does. */
static sn_status train(const char *file, const sn_field *f) {
  sn_dataset *d = NULL;
  sn_preparation *p = NULL;
  sn_loader *l = NULL;
  sn_loader_options o = {.struct_size = sizeof o, .batch = 16, .shuffle = true, .memory = 1 << 20};
  const sn_batch *b = NULL;
  sn_status s = sn_dataset_open(&file, 1, f, 1, &d);
  if (s == SN_OK && sn_dataset_rows(d) > 1000000)
    s = sn_status_make(SN_CODE_DATA, "left out: too long for a test");
  if (s == SN_OK) s = sn_preparation_fit(d, NULL, 0, &p);
  if (s == SN_OK) s = sn_dataset_check(d, p, heard, NULL);
  if (s == SN_OK) s = sn_loader_create(d, p, NULL, 0, &o, &l);
  if (s == SN_OK) s = sn_loader_start(l, 1, 0);
  for (int i = 0; s == SN_OK && i < 3; ++i)
    s = sn_loader_next(l, &b);
  sn_loader_free(l);
  sn_preparation_free(p);
  sn_dataset_free(d);
  return s;
}

static void try_path(const char *file, const char *path) {
  const sn_field kinds[] = {
      {.name = "f", .path = path, .dtype = SN_F32, .normalize = true},
      {.name = "f", .path = path, .dtype = SN_F32, .role = SN_FIELD_TARGET, .missing = "nan"},
      {.name = "f", .path = path, .dtype = SN_I32, .role = SN_FIELD_CLASS, .balanced = true},
      {.name = "f", .path = path, .dtype = SN_I32, .kind = SN_FIELD_CATEGORY},
      {.name = "f", .path = path, .dtype = SN_F32, .kind = SN_FIELD_SET, .normalize = true},
      {.name = "f", .path = path, .dtype = SN_I32, .kind = SN_FIELD_SEQUENCE, .ids = true},
      {.name = "f", .path = path, .dtype = SN_I32, .kind = SN_FIELD_STREAM, .window = 4},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    sn_status s = train(file, &kinds[i]);
    ++tried;
    trained += s == SN_OK;
    if (s == SN_OK) continue;
    const char *words = sn_status_message(s);
    sn_code code = sn_status_code(s);
    ck_assert_msg(strchr(words, '\n') == NULL, "%s %s: two lines: %s", file, path, words);
    ck_assert_msg(code != SN_CODE_INTERNAL && code != SN_CODE_INVALID, "%s %s: %s", file, path,
                  words);
    if (getenv("SN_SHOW") != NULL) printf("%s\n", words);
    sn_status_free(s);
  }
}

static void try_file(const char *file) {
  sn__h5_file *f = NULL;
  sn_status s = sn__h5_file_open(file, NULL, &f);
  if (s != SN_OK) {
    sn_status_free(s);
    try_path(file, "/x");
    return;
  }
  const sn__h5_report *r = sn__h5_file_report(f);
  size_t step = r->dataset_count > 3 ? r->dataset_count / 3 : 1; /* a few of each file */
  for (size_t i = 0; i < r->dataset_count; i += step)
    if (r->datasets[i].elements < 4000000) try_path(file, r->datasets[i].path);
  for (size_t i = 0; i < r->group_count && i < 2; ++i)
    try_path(file, r->groups[i]);
  sn__h5_file_free(f);
}

static void try_folder(const char *name) {
  const char *folder = getenv("SN_SHARED");
  char path[900];
  snprintf(path, sizeof path, "%s/data/%s", folder != NULL ? folder : "../shared", name);
  DIR *d = opendir(path);
  if (d == NULL) {
    printf("skipped: no %s\n", path);
    return;
  }
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    char file[1200];
    snprintf(file, sizeof file, "%s/%s", path, e->d_name);
    try_file(file);
  }
  closedir(d);
  ck_assert_int_gt(tried, 0);
}

START_TEST(test_train) {
  try_folder("train");
  if (tried > 0) ck_assert_int_gt(trained, 10);
}
END_TEST
START_TEST(test_sets) {
  try_folder("sets");
}
END_TEST
START_TEST(test_odd) {
  try_folder("odd");
}
END_TEST
START_TEST(test_hdfgroup) {
  try_folder("hdfgroup");
}
END_TEST
START_TEST(test_hostile) {
  try_folder("hostile");
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("dataset corpus");
  TCase *t = tcase_create("files");
  tcase_set_timeout(t, 200);
  tcase_add_test(t, test_train);
  tcase_add_test(t, test_sets);
  tcase_add_test(t, test_odd);
  tcase_add_test(t, test_hdfgroup);
  tcase_add_test(t, test_hostile);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
