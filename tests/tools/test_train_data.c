/* SPDX-License-Identifier: Apache-2.0 */
/* train, eval and predict on small data made here: every kind of output, missing labels, first
 * weights, rows in other company, and every kind of bad data. */
#include <math.h>

#include <hdf5.h>

#include "io/checkpoint.h"
#include "tests/tools/run_sennit.h"

enum { ROWS = 120, VALUES_MOST = 16 * ROWS };

typedef enum defect {
  SOUND = 0,
  LABEL_HALF,    /* 1.5 */
  LABEL_NEW,     /* a class that training never saw */
  LABEL_MISSING, /* every third is -1 */
  X_NAN,
  X_INF,
  SHORT, /* one label less */
  OFFSETS_DOWN,
  WIDE /* x has a column more */
} defect;

/* A row's numbers follow from its number alone. */
static double draw(int row, int column) {
  unsigned long long h = (unsigned long long)(row * 64 + column + 1) * 0x9e3779b97f4a7c15ull;
  h ^= h >> 31;
  h *= 0xbf58476d1ce4e5b9ull;
  h ^= h >> 29;
  return (double)(h >> 11) / 9007199254740992.0 - 0.5;
}

static void put(hid_t file, const char *name, hid_t type, int rank, hsize_t rows, hsize_t width,
                const void *data) {
  hsize_t dims[2] = {rows, width};
  hid_t space = H5Screate_simple(rank, dims, NULL);
  hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  ck_assert(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Dclose(set);
  H5Sclose(space);
}

/* Sequences of 0..9 steps. */
static void put_sequences(hid_t file, const int *rows, int n, bool down) {
  static float values[VALUES_MOST][2];
  int64_t offsets[ROWS + 1] = {0};
  int at = 0;
  for (int r = 0; r < n; r++) {
    int length = (int)((draw(rows[r], 40) + 0.5) * 10);
    for (int i = 0; i < length; i++, at++)
      for (int k = 0; k < 2; k++)
        values[at][k] = (float)draw(rows[r], 41 + 2 * i + k);
    offsets[r + 1] = at;
  }
  if (down) offsets[5] = offsets[4] - 1;
  hid_t group = H5Gcreate2(file, "steps", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  put(group, "values", H5T_NATIVE_FLOAT, 2, (hsize_t)at, 2, values);
  put(group, "offsets", H5T_NATIVE_INT64, 1, (hsize_t)n + 1, 0, offsets);
  H5Gclose(group);
}

static void put_labels(hid_t file, const int *rows, int n, defect bad) {
  double label[ROWS];
  int32_t whole[ROWS];
  float targets[ROWS][2];
  uint8_t tags[ROWS][3];
  for (int r = 0; r < n; r++) {
    double a = draw(rows[r], 0), b = draw(rows[r], 1), c = draw(rows[r], 2);
    whole[r] = a > b ? (a > c ? 0 : 2) : (b > c ? 1 : 2);
    if (bad == LABEL_MISSING && r % 3 == 0) whole[r] = -1;
    if (bad == LABEL_NEW && r == 7) whole[r] = 7;
    label[r] = r == 7 ? 1.5 : whole[r];
    targets[r][0] = (float)(5000 + 1000 * (a - 2 * b));
    targets[r][1] = (float)(0.01 * (b + c));
    tags[r][0] = a > 0;
    tags[r][1] = a + b > 0;
    tags[r][2] = c > 0.2;
  }
  hsize_t count = (hsize_t)(bad == SHORT ? n - 1 : n);
  if (bad == LABEL_HALF)
    put(file, "label", H5T_NATIVE_DOUBLE, 1, count, 0, label);
  else
    put(file, "label", H5T_NATIVE_INT32, 1, count, 0, whole);
  put(file, "target", H5T_NATIVE_FLOAT, 2, (hsize_t)n, 2, targets);
  put(file, "tags", H5T_NATIVE_UINT8, 2, (hsize_t)n, 3, tags);
}

/* The given rows, in this order; labels only where asked for. */
static void make(const char *name, const int *rows, int n, bool labels, defect bad) {
  char path[128];
  static float x[ROWS][4];
  float flat[ROWS * 4];
  int width = bad == WIDE ? 4 : 3;
  snprintf(path, sizeof path, "%s/%s", run_folder, name);
  for (int r = 0; r < n; r++)
    for (int k = 0; k < 4; k++)
      x[r][k] = (float)draw(rows[r], k);
  if (bad == X_NAN) x[9][1] = NAN;
  if (bad == X_INF) x[9][2] = INFINITY;
  for (int r = 0; r < n; r++)
    memcpy(flat + r * width, x[r], (size_t)width * sizeof(float));
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  ck_assert(file >= 0);
  put(file, "x", H5T_NATIVE_FLOAT, 2, (hsize_t)n, (hsize_t)width, flat);
  put_sequences(file, rows, n, bad == OFFSETS_DOWN);
  if (labels) put_labels(file, rows, n, bad);
  ck_assert(H5Fclose(file) >= 0);
}

static void make_all(const char *name, defect bad) {
  int rows[ROWS];
  for (int r = 0; r < ROWS; r++)
    rows[r] = r;
  make(name, rows, ROWS, true, bad);
}

static void begin(void) {
  run_begin();
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  run_write("m.yaml", "inputs:\n"
                      "  x: {kind: dense, hidden: [16]}\n"
                      "  steps: {kind: sequence, encoder: gru, units: 8}\n"
                      "outputs:\n"
                      "  kind: {path: /label, task: classification}\n"
                      "  size: {path: /target, task: regression, weight: 0.5}\n"
                      "  tags: {task: multilabel}\n"
                      "trunk: {hidden: [16], dropout: 0.1}\n"
                      "train: {learning_rate: 0.02, batch: 16, epochs: 8}\n");
  make_all("sound.h5", SOUND);
}

#define TRAIN "train --config \"$T/m.yaml\" --json --data \"$T/sound.h5\" "

static void read_floats(const char *name, const char *dataset, size_t most, float *out,
                        hsize_t *out_dims) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", run_folder, name);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  ck_assert_msg(file >= 0, "cannot open %s", path);
  hid_t set = H5Dopen2(file, dataset, H5P_DEFAULT);
  ck_assert_msg(set >= 0, "no %s in %s", dataset, path);
  hid_t space = H5Dget_space(set);
  ck_assert((size_t)H5Sget_simple_extent_npoints(space) <= most);
  H5Sget_simple_extent_dims(space, out_dims, NULL);
  ck_assert(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
  H5Sclose(space);
  H5Dclose(set);
  H5Fclose(file);
}

/* ---- what works ------------------------------------------------------------------------------ */

START_TEST(three_kinds_of_outputs) {
  const ran *r = sennit(TRAIN "--epochs 25 --out \"$T/a\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  char *out = strdup(r->out);
  ck_assert_double_gt(json_number_at(out, "valid.kind.accuracy"), 0.7);
  ck_assert_double_gt(json_number_at(out, "valid.size.r2"), 0.7);
  ck_assert_double_gt(json_number_at(out, "valid.tags.auc"), 0.8);
  /* In the data's units: thousands and hundredths, so the mean of both is in hundreds. */
  double mae = json_number_at(out, "valid.size.mae");
  ck_assert_msg(mae > 1 && mae < 400, "mae %g", mae);
  double loss = json_number_at(out, "valid.kind.loss") +
                0.5 * json_number_at(out, "valid.size.loss") +
                json_number_at(out, "valid.tags.loss");
  ck_assert_double_eq_tol(json_number_at(out, "valid.loss"), loss, 1e-9);
  /* Errors computed here from what predict writes are those that eval reports. */
  static float target[ROWS * 2], value[ROWS * 2];
  hsize_t dims[2];
  sennit_ok("predict --checkpoint \"$T/a\" --data \"$T/sound.h5\" --out \"$T/p.h5\"");
  read_floats("sound.h5", "target", ROWS * 2, target, dims);
  read_floats("p.h5", "size/values", ROWS * 2, value, dims);
  ck_assert(dims[0] == ROWS && dims[1] == 2);
  double sum = 0;
  for (int i = 0; i < 2 * ROWS; i++)
    sum += fabs((double)value[i] - (double)target[i]) / (2 * ROWS);
  r = sennit("eval --checkpoint \"$T/a\" --data \"$T/sound.h5\" --json");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_double_eq_tol(json_number_at(r->out, "size.mae"), sum, 1e-3);
  free(out);
}
END_TEST

START_TEST(rows_predict_alike_in_any_company) {
  static const char *const sets[] = {"kind/logits", "size/values", "tags/logits"};
  static float all[3][ROWS * 3], some[3][ROWS * 3];
  hsize_t dims[2];
  int rows[37];
  for (int i = 0; i < 37; i++)
    rows[i] = (i * 53 + 11) % ROWS;
  make("some.h5", rows, 37, false, SOUND);
  sennit_ok(TRAIN "--epochs 2 --out \"$T/a\"");
  sennit_ok("predict --checkpoint \"$T/a\" --data \"$T/sound.h5\" --out \"$T/all.h5\"");
  sennit_ok("predict --checkpoint \"$T/a\" --data \"$T/some.h5\" --out \"$T/some_p.h5\" --devices "
            "'cpu*2' --threads 3");
  for (int s = 0; s < 3; s++) {
    read_floats("all.h5", sets[s], ROWS * 3, all[s], dims);
    read_floats("some_p.h5", sets[s], ROWS * 3, some[s], dims);
    ck_assert_uint_eq(dims[0], 37);
    for (int i = 0; i < 37; i++)
      ck_assert_msg(memcmp(some[s] + i * (int)dims[1], all[s] + rows[i] * (int)dims[1],
                           dims[1] * sizeof(float)) == 0,
                    "%s: row %d differs", sets[s], rows[i]);
  }
  for (int i = 0; i < 8; i++) { /* a row alone */
    make("one.h5", &rows[i], 1, false, SOUND);
    sennit_ok("predict --checkpoint \"$T/a\" --data \"$T/one.h5\" --out \"$T/one_p.h5\"");
    read_floats("one_p.h5", sets[0], ROWS * 3, some[0], dims);
    ck_assert(memcmp(some[0], all[0] + rows[i] * 3, 3 * sizeof(float)) == 0);
  }
}
END_TEST

START_TEST(several_files_are_one) {
  int first[50], second[ROWS - 50];
  for (int r = 0; r < ROWS; r++)
    *(r < 50 ? &first[r] : &second[r - 50]) = r;
  make("first.h5", first, 50, true, SOUND);
  make("second.h5", second, ROWS - 50, true, SOUND);
  const ran *r = sennit(TRAIN "--epochs 2 --out \"$T/a\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  char *one = strdup(json_text_at(r->out, "params_sha256"));
  r = sennit("train --config \"$T/m.yaml\" --json --data \"$T/first.h5\" --data \"$T/second.h5\" "
             "--epochs 2 --out \"$T/b\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_str_eq(json_text_at(r->out, "params_sha256"), one);
  /* A file to validate on instead of a part. */
  r = sennit("train --config \"$T/m.yaml\" --json --data \"$T/first.h5\" --valid \"$T/second.h5\" "
             "--test \"$T/sound.h5\" --epochs 2 --out \"$T/c\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_ptr_nonnull(strstr(r->err, "50 rows train and 70 validate"));
  json_number_at(r->out, "test.kind.accuracy");
  free(one);
}
END_TEST

/* Splits that are datasets of one file: eval reads those under data.test. */
START_TEST(splits_in_one_file) {
  run_write("one.yaml", "inputs:\n  x: {kind: dense, path: /none, hidden: [8]}\n"
                        "outputs:\n  kind: {path: /none, task: classification}\n"
                        "train: {epochs: 2, batch: 16}\n"
                        "data:\n  train: {x: /x, kind: /label}\n"
                        "  valid: {x: /x_valid, kind: /y_valid}\n"
                        "  test: {x: /x_test, kind: /y_test}\n");
  char path[128];
  snprintf(path, sizeof path, "%s/sound.h5", run_folder);
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  float x[40 * 3];
  int32_t y[40];
  for (int i = 0; i < 40; i++) {
    for (int k = 0; k < 3; k++)
      x[i * 3 + k] = (float)draw(500 + i, k);
    y[i] = i % 3;
  }
  put(file, "x_valid", H5T_NATIVE_FLOAT, 2, 40, 3, x);
  put(file, "y_valid", H5T_NATIVE_INT32, 1, 40, 0, y);
  put(file, "x_test", H5T_NATIVE_FLOAT, 2, 25, 3, x);
  put(file, "y_test", H5T_NATIVE_INT32, 1, 25, 0, y);
  H5Fclose(file);
  const ran *r =
      sennit("train --config \"$T/one.yaml\" --json --data \"$T/sound.h5\" --out \"$T/a\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_ptr_nonnull(strstr(r->err, "120 rows train and 40 validate"));
  double loss = json_number_at(r->out, "test.kind.log_loss");
  r = sennit("eval --checkpoint \"$T/a\" --data \"$T/sound.h5\" --json");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_double_eq(json_number_at(r->out, "rows"), 25);
  ck_assert_double_eq(json_number_at(r->out, "kind.log_loss"), loss);
}
END_TEST

START_TEST(missing_labels_and_class_weights) {
  make_all("missing.h5", LABEL_MISSING);
  sennit_fails(1, "label",
               "train --config \"$T/m.yaml\" --data \"$T/missing.h5\" --set "
               "'outputs.kind.labels=[0, 1, 2]' --out \"$T/no\"");
  const ran *r =
      sennit("train --config \"$T/m.yaml\" --json --data \"$T/missing.h5\" --set "
             "outputs.kind.missing=-1 --set outputs.kind.class_weights=balanced --epochs "
             "20 --out \"$T/a\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_double_gt(json_number_at(r->out, "valid.kind.accuracy"), 0.6);
  /* Rows that are not known do not count: the same accuracy as on the known ones alone. */
  int known[ROWS], n = 0;
  for (int i = 0; i < ROWS; i++)
    if (i % 3 != 0) known[n++] = i;
  make("known.h5", known, n, true, SOUND);
  r = sennit("eval --checkpoint \"$T/a\" --data \"$T/missing.h5\" --json");
  ck_assert_msg(r->code == 0, "%s", r->err);
  double accuracy = json_number_at(r->out, "kind.accuracy");
  double log_loss = json_number_at(r->out, "kind.log_loss");
  r = sennit("eval --checkpoint \"$T/a\" --data \"$T/known.h5\" --json");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_double_eq(json_number_at(r->out, "kind.accuracy"), accuracy);
  ck_assert_double_eq_tol(json_number_at(r->out, "kind.log_loss"), log_loss, 1e-12);
}
END_TEST

/* The variables of last.h5 as a safetensors file, without those that begin with `leave`. */
static void export_weights(const char *run, const char *to, const char *leave, bool wrong_shape) {
  char path[128];
  sn_checkpoint *c = NULL;
  sn_named_tensor tensors[64];
  size_t n = 0, prefix = strlen("variables/");
  snprintf(path, sizeof path, "%s/%s/last.h5", run_folder, run);
  ck_sn_ok(sn_checkpoint_open(path, &c));
  for (size_t i = 0; i < sn_checkpoint_tensor_count(c); i++) {
    const sn_named_tensor *t = sn_checkpoint_tensor(c, i);
    if (strncmp(t->name, "variables/", prefix) != 0) continue;
    if (leave != NULL && strncmp(t->name + prefix, leave, strlen(leave)) == 0) continue;
    tensors[n] = *t;
    tensors[n].name += prefix;
    if (wrong_shape && t->shape.rank == 2 && t->shape.dims[0] != t->shape.dims[1]) {
      wrong_shape = false;
      tensors[n].shape.dims[0] = t->shape.dims[1];
      tensors[n].shape.dims[1] = t->shape.dims[0];
    }
    n++;
  }
  snprintf(path, sizeof path, "%s/%s", run_folder, to);
  ck_sn_ok(sn_safetensors_write(path, tensors, n, NULL, 0));
  sn_checkpoint_free(c);
}

START_TEST(first_weights) {
  sennit_ok(TRAIN "--epochs 2 --out \"$T/a\"");
  export_weights("a", "all.st", NULL, false);
  export_weights("a", "some.st", "trunk", false);
  export_weights("a", "wrong.st", NULL, true);
  export_weights("a", "none.st", "", false);
  const ran *r = sennit(TRAIN "--epochs 1 --seed 9 --init \"$T/all.st\" --out \"$T/b\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  char *b = strdup(json_text_at(r->out, "params_sha256"));
  ck_assert_msg(strstr(r->err, "first weights: 14 of 14 variables") != NULL, "%s", r->err);
  r = sennit(TRAIN "--epochs 1 --seed 9 --out \"$T/c\"");
  ck_assert_str_ne(json_text_at(r->out, "params_sha256"), b);
  r = sennit(TRAIN "--epochs 1 --seed 9 --init \"$T/some.st\" --out \"$T/d\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_msg(strstr(r->err, "first weights: 12 of 14 variables") != NULL, "%s", r->err);
  r = sennit(TRAIN "--init \"$T/wrong.st\" --out \"$T/e\"");
  ck_assert_int_eq(r->code, 1);
  ck_assert_msg(strstr(last_line(r->err), "has shape [") != NULL, "%s", r->err);
  r = sennit(TRAIN "--init \"$T/none.st\" --out \"$T/f\"");
  ck_assert_int_eq(r->code, 1);
  ck_assert_msg(strstr(last_line(r->err), "none of its 0 tensors") != NULL, "%s", r->err);
  sennit_fails(2, "--resume and --init", TRAIN "--resume --init \"$T/all.st\" --out \"$T/a\"");
  free(b);
}
END_TEST

/* The checkpoint as it was written before there were fingerprints. */
static void forget_data(const char *run) {
  char path[128];
  sn_checkpoint *c = NULL;
  static sn_named_tensor tensors[256];
  sn_named_text texts[8];
  size_t n = 0, n_texts = 0;
  static const char *const names[] = {"graph", "config", "preparation", "state"};
  snprintf(path, sizeof path, "%s/%s/last.h5", run_folder, run);
  ck_sn_ok(sn_checkpoint_open(path, &c));
  for (size_t i = 0; i < sn_checkpoint_tensor_count(c); i++)
    tensors[n++] = *sn_checkpoint_tensor(c, i);
  for (int i = 0; i < 4; i++) {
    texts[n_texts] = *sn_checkpoint_text(c, names[i]);
    char *print =
        i == 3 ? memmem(texts[n_texts].text, texts[n_texts].length, "\"data\":", 7) : NULL;
    if (print != NULL) memcpy(print, "\"date\"", 6);
    n_texts++;
  }
  ck_sn_ok(sn_checkpoint_write(path, tensors, n, texts, n_texts));
  sn_checkpoint_free(c);
}

START_TEST(other_data_is_noticed) {
  int turned[ROWS];
  for (int r = 0; r < ROWS; r++)
    turned[r] = ROWS - 1 - r;
  make("turned.h5", turned, ROWS, true, SOUND);
  sennit_ok(TRAIN "--epochs 4 --steps 9 --out \"$T/a\"");
  sennit_ok(TRAIN "--epochs 4 --steps 9 --valid \"$T/turned.h5\" --out \"$T/v\"");
  const char *const other = "train --config \"$T/m.yaml\" --json --data \"$T/turned.h5\" ";
  const ran *r = sennit("%s--epochs 4 --steps 12 --resume --out \"$T/a\"", other);
  ck_assert_int_eq(r->code, 0);
  ck_assert_msg(strstr(r->err, "the training data is not what the run was trained on so far: going "
                               "on with the new data at the start of epoch 2") != NULL,
                "%s", r->err);
  ck_assert_msg(strstr(r->err, "resuming after step 9, epoch 1, batch 0") != NULL, "%s", r->err);
  /* It is the run's data from then on. */
  r = sennit("%s--epochs 4 --steps 13 --resume --out \"$T/a\"", other);
  ck_assert_int_eq(r->code, 0);
  ck_assert_msg(strstr(r->err, "is not what") == NULL, "%s", r->err);
  forget_data("a");
  r = sennit(TRAIN "--epochs 4 --resume --out \"$T/a\"");
  ck_assert_int_eq(r->code, 0);
  ck_assert_msg(strstr(r->err, "is not what") == NULL, "%s", r->err);
  r = sennit(TRAIN "--epochs 4 --resume --valid \"$T/sound.h5\" --out \"$T/v\"");
  ck_assert_int_eq(r->code, 0);
  ck_assert_msg(
      strstr(r->err, "rows of --valid are not what the run had: its best epoch so far, 1") != NULL,
      "%s", r->err);
  ck_assert_msg(strstr(r->err, "training data is not") == NULL, "%s", r->err);
}
END_TEST

/* ---- what does not --------------------------------------------------------------------------- */

START_TEST(bad_data_is_one_line) {
  static const struct {
    const char *name;
    defect bad;
    const char *words[3];
  } cases[] = {
      {"half.h5", LABEL_HALF, {"/label", "row 7", "1.5"}},
      {"nan.h5", X_NAN, {"/x", "row 9", "column 1"}},
      {"inf.h5", X_INF, {"/x", "row 9", "column 2"}},
      {"short.h5", SHORT, {"/label", "119", "120"}},
      {"down.h5", OFFSETS_DOWN, {"/steps", "offsets", "row 5"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    make_all(cases[i].name, cases[i].bad);
    for (int w = 0; w < 3; w++)
      sennit_fails(1, cases[i].words[w],
                   "train --config \"$T/m.yaml\" --data \"$T/%s\" --epochs 1 --out \"$T/no\"",
                   cases[i].name);
    ck_assert_ptr_nonnull(strstr(sennit("train --config \"$T/m.yaml\" --data \"$T/%s\" --epochs 1 "
                                        "--out \"$T/no\"",
                                        cases[i].name)
                                     ->err,
                                 cases[i].name));
  }
}
END_TEST

START_TEST(bad_splits_are_one_line) {
  make_all("new.h5", LABEL_NEW);
  make_all("wide.h5", WIDE);
  sennit_fails(1, "7",
               "train --config \"$T/m.yaml\" --data \"$T/sound.h5\" --valid \"$T/new.h5\" "
               "--epochs 1 --out \"$T/no\"");
  sennit_fails(1, "/x",
               "train --config \"$T/m.yaml\" --data \"$T/sound.h5\" --valid \"$T/wide.h5\" "
               "--epochs 1 --out \"$T/no\"");
  sennit_ok(TRAIN "--epochs 1 --out \"$T/a\"");
  sennit_fails(1, "/x", "eval --checkpoint \"$T/a\" --data \"$T/wide.h5\"");
  sennit_fails(1, "7", "eval --checkpoint \"$T/a\" --data \"$T/new.h5\"");
  sennit_fails(1, "/nothing.h5", "eval --checkpoint \"$T/a\" --data \"$T/nothing.h5\"");
  sennit_fails(1, "sound.h5", "eval --checkpoint \"$T/sound.h5\" --data \"$T/sound.h5\"");
  sennit_fails(1, "/p.h5",
               "predict --checkpoint \"$T/a\" --data \"$T/sound.h5\" --out "
               "\"$T/none/p.h5\"");
}
END_TEST

START_TEST(bad_settings_are_two) {
  static const char *const cases[][2] = {
      {"--set train.bath=3", "did you mean 'batch'"},
      {"--save-placement \"$T/sound.h5\"", "would write over --data"},
      {"--save-placement \"$T\"", "is a folder"},
      {"--set 'outputs.kind.class_weights=[0,0,0]'", "all 0"},
      {"--set inputs.x.kind=dens", "did you mean 'dense'"},
      {"--batch 0", "--batch is '0'"},
      {"--epochs 1.5", "--epochs is '1.5'"},
      {"--set train.learning_rate=-1", "learning_rate"},
      {"--precision fp16", "no device here computes it"},
      {"--set train.precision=fp16", "no device here computes it"},
      {"--set placement.x=cpu:1", "not in --devices (cpu:0)"},
      {"--set placement.y=cpu:0", "'y'"},
      {"--devices cuda:0", "cuda"},
      {"--valid a.h5 --valid-fraction 0.1", "keep one"},
      {"--set train.monitor=valid.kind.acuracy", "did you mean 'accuracy'"},
      {"--set train.monitor=valid.kind.accuracy --valid-fraction 0", "needs rows to validate on"},
      {"--resme", "did you mean '--resume'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    sennit_fails(2, cases[i][1], TRAIN "--out \"$T/no\" %s", cases[i][0]);
}
END_TEST

static Suite *train_data_suite(void) {
  Suite *suite = suite_create("train_data");
  TCase *tc = tcase_create("made");
  tcase_set_timeout(tc, 240);
  tcase_add_checked_fixture(tc, begin, run_end);
  tcase_add_test(tc, three_kinds_of_outputs);
  tcase_add_test(tc, rows_predict_alike_in_any_company);
  tcase_add_test(tc, several_files_are_one);
  tcase_add_test(tc, splits_in_one_file);
  tcase_add_test(tc, missing_labels_and_class_weights);
  tcase_add_test(tc, first_weights);
  tcase_add_test(tc, other_data_is_noticed);
  tcase_add_test(tc, bad_data_is_one_line);
  tcase_add_test(tc, bad_splits_are_one_line);
  tcase_add_test(tc, bad_settings_are_two);
  suite_add_tcase(suite, tc);
  return suite;
}

SN_TEST_MAIN(train_data_suite)
