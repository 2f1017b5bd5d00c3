/* SPDX-License-Identifier: Apache-2.0 */
/* The first model file: what is guessed, and that train takes it as it stands. */
#include "tests/tools/read_h5.h"

static const char *guess(const char *data) {
  const ran *r = sennit("init %s -o -", data);
  ck_assert_msg(r->code == 0, "%s: %s", data, r->err);
  return r->out;
}

static void has(const char *text, const char *words) {
  ck_assert_msg(strstr(text, words) != NULL, "lacks '%s':\n%s", words, text);
}

static void trains(const char *data) {
  static int number;
  number++;
  sennit_ok("init %s -o \"$T/m%d.yaml\"", data, number);
  sennit_ok("train --data %s --config \"$T/m%d.yaml\" --out \"$T/r%d\" --steps 2", data, number,
            number);
}

START_TEST(digits_are_guessed) {
  const char *text = guess("\"$DIGITS/digits_train.h5\"");
  has(text, "pixels: {kind: set, path: /pixels,");
  has(text, "strokes: {kind: sequence, path: /strokes,");
  has(text, "profile: {kind: dense, path: /profile,");
  has(text, "digit: {path: /digit, task: classification}");
  ck_assert_ptr_null(strstr(text, "licence:"));
  trains("\"$DIGITS/digits_train.h5\"");
}
END_TEST

/* One of each form that a file may have. */
static void make_file(const char *path) {
  enum { ROWS = 24, STEPS = 5, WIDE = 4 };
  double padded[ROWS * STEPS * WIDE], heavy[ROWS];
  static uint8_t pixels[ROWS * 6 * 5 * 3];
  for (size_t i = 0; i < sizeof pixels; i++)
    pixels[i] = (uint8_t)(i * 89 % 251);
  int64_t lengths[ROWS], many[ROWS], kind[ROWS];
  uint8_t flags[ROWS * 3], same[ROWS];
  char words[ROWS][4];
  for (int i = 0; i < ROWS * STEPS * WIDE; i++)
    padded[i] = (i * 37 % 101) * 0.1;
  for (int r = 0; r < ROWS; r++) {
    heavy[r] = r * 0.5;
    lengths[r] = 1 + r % STEPS;
    many[r] = 1000 + r;
    kind[r] = r % 3;
    same[r] = 7;
    snprintf(words[r], sizeof words[r], "%s", r % 2 == 0 ? "cat" : "dog");
    for (int k = 0; k < 3; k++)
      flags[r * 3 + k] = (uint8_t)((r >> k) & 1);
  }
  hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, sizeof words[0]);
  const struct {
    const char *name;
    hid_t type;
    int rank;
    hsize_t dims[4];
    const void *data;
  } sets[] = {
      {"walk", H5T_NATIVE_DOUBLE, 3, {ROWS, STEPS, WIDE}, padded},
      {"photo", H5T_NATIVE_UINT8, 4, {ROWS, 6, 5, 3}, pixels},
      {"first", H5T_NATIVE_UINT8, 4, {ROWS, 3, 6, 5}, pixels},
      {"walk_lengths", H5T_NATIVE_INT64, 1, {ROWS}, lengths},
      {"row_id", H5T_NATIVE_INT64, 1, {ROWS}, many},
      {"kind", H5T_NATIVE_INT64, 1, {ROWS}, kind},
      {"animal", text, 1, {ROWS}, words},
      {"constant", H5T_NATIVE_UINT8, 1, {ROWS}, same},
      {"tags_labels", H5T_NATIVE_UINT8, 2, {ROWS, 3}, flags},
      {"cost_target", H5T_NATIVE_DOUBLE, 1, {ROWS}, heavy},
  };
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    hid_t space = H5Screate_simple(sets[i].rank, sets[i].dims, NULL);
    hid_t set =
        H5Dcreate2(file, sets[i].name, sets[i].type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(H5Dwrite(set, sets[i].type, H5S_ALL, H5S_ALL, H5P_DEFAULT, sets[i].data) >= 0);
    H5Dclose(set);
    H5Sclose(space);
  }
  H5Tclose(text);
  H5Fclose(file);
}

START_TEST(each_form_is_guessed) {
  char path[128];
  snprintf(path, sizeof path, "%s/all.h5", run_folder);
  make_file(path);
  const char *text = guess("\"$T/all.h5\"");
  has(text, "walk: {kind: sequence, path: /walk, lengths: /walk_lengths,");
  has(text, "photo: {kind: image, path: /photo, encoder: conv, filters: [32, 64], max_pool: [2], ");
  has(text, "with the channels last it could be kind: image\n  first: {kind: dense, path: /first,");
  has(text, "animal: {kind: category, path: /animal}");
  has(text, "kind: {kind: category, path: /kind}");
  has(text, "# not read: /row_id looks like a number of the row");
  has(text, "# not read: /constant is the same in every row");
  has(text, "tags_labels: {path: /tags_labels, task: multilabel}");
  has(text, "cost_target: {path: /cost_target, task: regression}");
  ck_assert_ptr_null(strstr(text, "walk_lengths:"));
  trains("\"$T/all.h5\"");
}
END_TEST

START_TEST(public_files_train_as_guessed) {
  static const struct {
    const char *file, *words;
  } files[] = {
      {"train/iris.h5", "test: {X_data: /X_test_data, y_data: /y_test_data}"},
      {"train/coinft_val.h5", "label: {path: /label, task: regression}"},
      {"train/simplenn_dataset.h5", "loss: huber"},
      {"train/caffe_sample_data.h5", "label2: {path: /label2, task: regression}"},
      {"sets/pointnet_test_data.h5", "data: {kind: set, path: /data,"},
  };
  const char *shared = getenv("SN_SHARED");
  char path[500];
  if (shared == NULL) return; /* run by hand, without the folder */
  snprintf(path, sizeof path, "%s/data/train/iris.h5", shared);
  if (access(path, R_OK) != 0) {
    printf("skipped: no %s\n", path);
    return;
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "'%s/data/%s'", shared, files[i].file);
    has(guess(path), files[i].words);
    trains(path);
  }
  snprintf(path, sizeof path, "'%s/data/seq/torchrnn_tiny-shakespeare.h5'", shared);
  has(guess(path), "{kind: stream, path: /train,");
}
END_TEST

START_TEST(mistakes_are_one_line) {
  sennit_ok("init \"$DIGITS/digits_train.h5\" -o \"$T/m.yaml\"");
  sennit_fails(2, "m.yaml is already there", "init \"$DIGITS/digits_train.h5\" -o \"$T/m.yaml\"");
  sennit_fails(1, "not an HDF5 file", "init \"$DIGITS/digits.yaml\" -o -");
  sennit_fails(1, "/nowhere", "init /nowhere -o -");
  char path[128];
  snprintf(path, sizeof path, "%s/empty.h5", run_folder);
  H5Fclose(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  sennit_fails(1, "no dataset has one row for each example", "init \"$T/empty.h5\" -o -");
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("init");
  TCase *tcase = tcase_create("init");
  tcase_set_timeout(tcase, 120);
  tcase_add_checked_fixture(tcase, run_begin, run_end);
  tcase_add_test(tcase, digits_are_guessed);
  tcase_add_test(tcase, each_form_is_guessed);
  tcase_add_test(tcase, public_files_train_as_guessed);
  tcase_add_test(tcase, mistakes_are_one_line);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(make_suite)
