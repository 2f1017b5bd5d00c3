/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: every form of every kind, what is refused and how, fitting, splits, checks. */
#include <math.h>

#include "dataset_sets.h"

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(test_refused) {
  begin("refused");
  const float x[] = {1, 2, 3, 4, 5, 6};
  const int64_t n[] = {0, 2, 1, 6}, far[] = {0, 2, 9, 9}, lengths[] = {1, 3}, minus[] = {-1, 0};
  const char *const words[] = {"a", "b"};
  floats("profile", 2, 3, x);
  floats("empty", 0, 3, NULL);
  strings("names", 2, words);
  group("g");
  floats("g/values", 6, 0, x);
  ints("g/offsets", H5T_STD_I32LE, 4, n);
  group("h");
  floats("h/values", 6, 0, x);
  ints("h/offsets", H5T_STD_I32LE, 4, far);
  ints("lengths", H5T_STD_I32LE, 2, lengths);
  ints("minus", H5T_STD_I32LE, 2, minus);
  const hsize_t three[] = {2, 2, 1}, four = 4;
  h5_make(file, "padded", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 3, three, H5P_DEFAULT, x);
  h5_make(file, "unwritten", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, &four, H5P_DEFAULT, NULL);
  end();
  refused(F(.path = "/profil"), SN_CODE_NOT_FOUND, "did you mean /profile?");
  refused(F(.path = "/empty"), SN_CODE_DATA, "no rows");
  refused(F(.path = "/unwritten"), SN_CODE_DATA, "never written");
  refused(F(.path = "/names"), SN_CODE_DATA,
          "/names is strings; kind dense needs numbers; use kind: category");
  refused(F(.path = "/names", .role = SN_FIELD_TARGET), SN_CODE_DATA, "use task: classification");
  refused(F(.path = "/g"), SN_CODE_DATA, "use kind: sequence or kind: set");
  refused(F(.path = "/g", .kind = SN_FIELD_SEQUENCE), SN_CODE_DATA,
          "/g/offsets: row 2: offset 1 is less than 2");
  refused(F(.path = "/h", .kind = SN_FIELD_SET), SN_CODE_DATA, "row 2: offset 9 is past the 6");
  refused(F(.path = "/lengths", .kind = SN_FIELD_SET), SN_CODE_DATA, "[rows, steps");
  refused(F(.path = "/padded", .kind = SN_FIELD_SET, .lengths = "/lengths"), SN_CODE_DATA,
          "row 1: length 3 is not in 0..2");
  refused(F(.path = "/padded", .kind = SN_FIELD_SET, .lengths = "/minus"), SN_CODE_DATA,
          "row 0: length -1");
  refused(F(.path = "/padded", .kind = SN_FIELD_SET, .lengths = "/g/offsets"), SN_CODE_DATA,
          "has 2 rows and its lengths /g/offsets have 4");
  refused(F(.path = "/profile", .role = SN_FIELD_CLASS), SN_CODE_DATA, "3 columns");
  refused(F(.path = "/g/values", .kind = SN_FIELD_STREAM, .window = 6), SN_CODE_DATA,
          "use a smaller window");
  refused(F(.path = "/profile", .kind = SN_FIELD_STREAM), SN_CODE_INVALID, "window");
  refused(F(.path = "/profile", .dtype = SN_I32), SN_CODE_INVALID, "use f32");
  const sn_field two[] = {{.name = "a", .path = "/profile", .dtype = SN_F32},
                          {.name = "b", .path = "/g/values", .dtype = SN_F32}};
  sn_dataset *d = NULL;
  ck_sn_fails(sn_dataset_open(&path, 1, two, 2, &d), SN_CODE_DATA,
              "/profile has 2 rows and /g/values has 6");
  remove(path);
}
END_TEST

/* ---- dense ----------------------------------------------------------------------------------- */

START_TEST(test_dense) {
  begin("dense");
  const double x[] = {1.7e9 + 0.001, 5, 7, 1.7e9 + 0.003, 5, 9, 1.7e9 + 0.002, 5, 8};
  const hsize_t dims[] = {3, 3, 1};
  h5_make(file, "x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 3, dims, H5P_DEFAULT, x);
  end();
  set s = fitted((sn_field){.path = "/x", .normalize = true});
  ck_assert_int_eq(sn_preparation_facts(s.prep, 0)->features, 3);
  ck_assert(sn_preparation_mean(s.prep, 0)[1] == 5);
  ck_assert(sn_preparation_deviation(s.prep, 0)[1] == 0);
  ck_assert(fabs(sn_preparation_deviation(s.prep, 0)[2] - sqrt(2.0 / 3)) < 1e-12);
  const float *y = whole(s)->fields[0].data;
  const float want[] = {-1.2247f, 0, -1.2247f, 1.2247f, 0, 1.2247f, 0, 0, 0};
  for (int i = 0; i < 9; ++i) /* times: a float could not hold them before their mean is gone */
    ck_assert_msg(fabsf(y[i] - want[i]) < 2e-3f, "%d: %g", i, (double)y[i]);
  close_set(s);
  s = fitted((sn_field){.path = "x"});
  y = whole(s)->fields[0].data;
  ck_assert(y[2] == 7 && y[8] == 8);
  ck_assert_ptr_null(sn_preparation_mean(s.prep, 0));
  close_set(s);
  whole((set){NULL, NULL});
  remove(path);
}
END_TEST

/* The sums of numpy over the same numbers, over many cuts and any layout. */
START_TEST(test_moments) {
  enum { N = 40000, W = 9 };
  begin("moments");
  float *x = malloc(sizeof *x * N * W);
  double mean[W] = {0}, square[W] = {0};
  for (int64_t i = 0; i < N * W; ++i)
    x[i] = (float)((i * 7919) % 10007) * (float)(i % W + 1);
  for (int64_t i = 0; i < N * W; ++i)
    mean[i % W] += (double)x[i] / N;
  for (int64_t i = 0; i < N * W; ++i)
    square[i % W] += ((double)x[i] - mean[i % W]) * ((double)x[i] - mean[i % W]) / N;
  floats("x", N, W, x);
  const hsize_t dims[] = {N, W}, chunk[] = {1000, 4};
  hid_t p = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(p, 2, chunk);
  H5Pset_deflate(p, 1);
  h5_make(file, "z", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, dims, p, x);
  H5Pclose(p);
  end();
  double first[2 * W];
  for (int k = 0; k < 4; ++k) {
    set s = fitted((sn_field){.path = k < 2 ? "/x" : "/z", .normalize = true});
    const double *m = sn_preparation_mean(s.prep, 0), *d = sn_preparation_deviation(s.prep, 0);
    for (int j = 0; j < W; ++j) {
      ck_assert(fabs(m[j] - mean[j]) <= 1e-11 * mean[j]);
      ck_assert(fabs(d[j] - sqrt(square[j])) <= 1e-11 * mean[j]);
    }
    if (k % 2 == 1) { /* whoever ran which cut */
      ck_assert_mem_eq(first, m, W * sizeof *m);
      ck_assert_mem_eq(first + W, d, W * sizeof *d);
    }
    memcpy(first, m, W * sizeof *m);
    memcpy(first + W, d, W * sizeof *d);
    close_set(s);
  }
  free(x);
  remove(path);
}
END_TEST

/* ---- images ---------------------------------------------------------------------------------- */

/* Extents are facts, here and in a checkpoint; each channel has one mean and deviation. */
START_TEST(test_images) {
  begin("images");
  const int64_t ink[] = {0, 1, 2, 3, 4, 5, 8, 9};
  const float x[] = {1, 10, 2, 10, 3, 10, 4, 10, 5, 10, 6, 10};
  const hsize_t gray[] = {2, 2, 2}, color[] = {2, 1, 3, 2}, turned[] = {2, 3, 1, 2};
  h5_make(file, "ink", H5T_STD_U8LE, H5T_NATIVE_INT64, 3, gray, H5P_DEFAULT, ink);
  h5_make(file, "color", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 4, color, H5P_DEFAULT, x);
  h5_make(file, "turned", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 4, turned, H5P_DEFAULT, x);
  floats("flat", 2, 6, x);
  end();
  set s = fitted((sn_field){.path = "/ink", .kind = SN_FIELD_IMAGE, .normalize = true});
  const sn_field_facts *f = sn_preparation_facts(s.prep, 0);
  ck_assert(f->height == 2 && f->width == 2 && f->channels == 1 && f->features == 4);
  const float *y = whole(s)->fields[0].data;
  for (int i = 0; i < 8; ++i)
    ck_assert(fabs((double)y[i] - ((double)ink[i] - 4) / 3) < 1e-6); /* mean 4, deviation 3 */
  close_set(s);
  s = fitted((sn_field){.path = "/color", .kind = SN_FIELD_IMAGE, .normalize = true});
  f = sn_preparation_facts(s.prep, 0);
  ck_assert(f->height == 1 && f->width == 3 && f->channels == 2);
  for (int i = 0; i < 3; ++i) {
    ck_assert(fabs(sn_preparation_mean(s.prep, 0)[2 * i] - 3.5) < 1e-12);
    ck_assert(fabs(sn_preparation_deviation(s.prep, 0)[2 * i] - sqrt(35.0 / 12)) < 1e-12);
    ck_assert(sn_preparation_deviation(s.prep, 0)[2 * i + 1] == 0);
  }
  char *text = NULL;
  sn_preparation *back = NULL;
  ck_sn_ok(sn_preparation_to_json(s.prep, &text));
  ck_sn_ok(sn_preparation_from_json(text, strlen(text), &back));
  ck_assert_mem_eq(sn_preparation_facts(back, 0), f, sizeof *f);
  set other = {.prep = back};
  ck_sn_ok(open_one((sn_field){.path = "/turned", .kind = SN_FIELD_IMAGE, .normalize = true},
                    &other.data));
  sn_loader *l = NULL;
  sn_loader_options o = {.struct_size = sizeof o, .batch = 2, .threads = -1};
  ck_sn_fails(sn_loader_create(other.data, back, NULL, 0, &o, &l), SN_CODE_DATA,
              "/turned holds images of 3 x 1; the model was trained on 1 x 3");
  close_set(other);
  *strstr(text, "\"height\": 1") = ' ';
  ck_sn_fails(sn_preparation_from_json(text, strlen(text), &back), SN_CODE_CORRUPT, "");
  sn_text_free(text);
  close_set(s);
  refused(F(.path = "/flat", .kind = SN_FIELD_IMAGE), SN_CODE_DATA,
          "/flat has 2 dimensions: kind: image needs [rows, height, width]");
  whole((set){NULL, NULL});
  remove(path);
}
END_TEST

/* ---- ragged ---------------------------------------------------------------------------------- */

static void check_ragged(set s, bool ids) {
  const int64_t offsets[] = {0, 2, 2, 5};
  const sn_batch *b = whole(s);
  ck_assert_int_eq(b->rows, 3);
  ck_assert_int_eq(b->fields[0].elements, 5);
  ck_assert_mem_eq(b->fields[0].offsets, offsets, sizeof offsets);
  ck_assert_int_eq(sn_preparation_facts(s.prep, 0)->longest, 3);
  ck_assert_int_eq(sn_preparation_facts(s.prep, 0)->empty, 1);
  ck_assert_int_eq(sn_dataset_lengths(s.data, 0)[2], 3);
  const int32_t id[] = {0, 1, 2, 3, 4};
  const float x[] = {10, 20, 30, 40, 50};
  if (ids)
    ck_assert_mem_eq(b->fields[0].data, id, sizeof id);
  else
    ck_assert_mem_eq(b->fields[0].data, x, sizeof x);
  close_set(s);
  whole((set){NULL, NULL});
}

START_TEST(test_ragged) {
  begin("ragged");
  float v[] = {10, 20, 30, 40, 50}, padded[] = {10, 20, -1, -1, -1, -1, 30, 40, 50};
  const int64_t offsets[] = {0, 2, 2, 5}, lengths[] = {2, 0, 3};
  group("g");
  floats("g/values", 5, 0, v);
  ints("g/offsets", H5T_STD_U32BE, 4, offsets);
  hid_t t = H5Tvlen_create(H5T_NATIVE_FLOAT);
  hvl_t rows[] = {{2, v}, {0, NULL}, {3, v + 2}};
  const hsize_t three = 3, dims[] = {3, 3, 1};
  h5_make(file, "v", t, t, 1, &three, H5P_DEFAULT, rows);
  H5Tclose(t);
  h5_make(file, "p", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 3, dims, H5P_DEFAULT, padded);
  h5_make(file, "q", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, dims, H5P_DEFAULT, padded);
  ints("n", H5T_STD_U8LE, 3, lengths);
  end();
  for (int ids = 0; ids < 2; ++ids) {
    sn_field_kind kind = ids ? SN_FIELD_SEQUENCE : SN_FIELD_SET;
    check_ragged(fitted((sn_field){.path = "/g", .kind = kind, .ids = ids}), ids);
    check_ragged(fitted((sn_field){.path = "/v", .kind = kind, .ids = ids}), ids);
    check_ragged(fitted((sn_field){.path = "/p", .kind = kind, .ids = ids, .lengths = "/n"}), ids);
    check_ragged(fitted((sn_field){.path = "/q", .kind = kind, .ids = ids, .lengths = "n"}), ids);
  }
  set s = fitted((sn_field){.path = "/q", .kind = SN_FIELD_SET});
  ck_assert_int_eq(whole(s)->fields[0].elements, 9);
  close_set(s);
  s = fitted((sn_field){.path = "/g", .kind = SN_FIELD_SEQUENCE, .normalize = true});
  const float *x = whole(s)->fields[0].data;
  ck_assert(sn_preparation_mean(s.prep, 0)[0] == 30 && x[2] == 0 && x[0] == -x[4]);
  close_set(s);
  whole((set){NULL, NULL});
  remove(path);
}
END_TEST

START_TEST(test_stream) {
  begin("stream");
  const int64_t text[] = {5, 6, 7, 5, 5, 9, 300, 7, 6};
  ints("t", H5T_STD_I16LE, 9, text);
  ints("u", H5T_STD_I16LE, 8, text);
  end();
  const sn_field f[] = {
      {.name = "in", .path = "/t", .kind = SN_FIELD_STREAM, .window = 4, .dtype = SN_I32},
      {.name = "out",
       .path = "/t",
       .kind = SN_FIELD_STREAM,
       .role = SN_FIELD_NEXT,
       .window = 4,
       .dtype = SN_I64,
       .balanced = true}};
  set s;
  ck_sn_ok(sn_dataset_open(&path, 1, f, 2, &s.data));
  ck_assert_int_eq(sn_dataset_rows(s.data), 2);
  ck_sn_ok(sn_preparation_fit(s.data, NULL, 0, &s.prep));
  ck_assert_int_eq(sn_preparation_facts(s.prep, 0)->classes, 5);
  ck_assert_int_eq(sn_preparation_facts(s.prep, 1)->classes, 5);
  ck_assert_str_eq(sn_preparation_class_name(s.prep, 1, 4), "300");
  const sn_batch *b = whole(s);
  const int32_t in[] = {0, 1, 2, 0, 0, 3, 4, 2};
  const int64_t next[] = {1, 2, 0, 0, 3, 4, 2, 1}, offsets[] = {0, 4, 8};
  ck_assert_mem_eq(b->fields[0].data, in, sizeof in);
  ck_assert_mem_eq(b->fields[1].data, next, sizeof next);
  ck_assert_mem_eq(b->fields[1].offsets, offsets, sizeof offsets);
  ck_assert(b->fields[1].weights[0] == 0.8f && b->fields[1].weights[4] == 1.6f);
  close_set(s);
  /* Fitted on the first window: 300 is new in the second. */
  const int64_t first = 0;
  ck_sn_ok(sn_dataset_open(&path, 1, f, 2, &s.data));
  ck_sn_ok(sn_preparation_fit(s.data, &first, 1, &s.prep));
  ck_sn_fails(sn_dataset_check(s.data, s.prep, NULL, NULL), SN_CODE_DATA,
              "row 1, element 1: id 9 does not occur");
  close_set(s);
  sn_row_split *split = NULL;
  s = fitted((sn_field){.path = "/u", .kind = SN_FIELD_STREAM, .window = 1});
  ck_sn_ok(sn_row_split_create(s.data, 0.3, 1, true, &split));
  ck_assert(split->n_valid == 2 && split->valid[0] == 5 && split->n_train == 5);
  sn_row_split_free(split);
  close_set(s);
  whole((set){NULL, NULL});
  remove(path);
}
END_TEST

/* ---- labels ---------------------------------------------------------------------------------- */

static void check_classes(const char *name, const char *words[3], sn_field_kind kind) {
  set s = fitted((sn_field){.path = name,
                            .kind = kind,
                            .role = kind == SN_FIELD_DENSE ? SN_FIELD_CLASS : SN_FIELD_INPUT});
  const int32_t want[] = {1, 0, 2, 1, 1, 0};
  ck_assert_int_eq(sn_preparation_facts(s.prep, 0)->classes, 3);
  ck_assert_mem_eq(whole(s)->fields[0].data, want, sizeof want);
  for (int k = 0; k < 3; ++k)
    ck_assert_str_eq(sn_preparation_class_name(s.prep, 0, k), words[k]);
  ck_assert_ptr_null(sn_preparation_class_name(s.prep, 0, 3));
  close_set(s);
  whole((set){NULL, NULL});
}

static void make_labels(void) {
  begin("labels");
  const int64_t whole_numbers[] = {3, -1, 20, 3, 3, -1}, codes[] = {2, 0, 7, 2, 2, 0},
                flags[] = {1, 0, 0, 1, 1, 0};
  const float real[] = {3, -1, 20, 3, 3, -1}, half[] = {0, 1, 0, 1.5f, 0, 1};
  const float gaps[] = {0, 1, NAN, 1, 0, 0};
  const char *const names[] = {"b", "a", "c", "b", "b", "a"};
  ints("i", H5T_STD_I16BE, 6, whole_numbers);
  floats("r", 6, 0, real);
  floats("half", 6, 0, half);
  floats("gaps", 6, 0, gaps);
  strings("s", 6, names);
  hid_t e = H5Tenum_create(H5T_NATIVE_INT64);
  int64_t v[] = {7, 0, 2};
  H5Tenum_insert(e, "RED", &v[0]);
  H5Tenum_insert(e, "BLUE", &v[1]);
  H5Tenum_insert(e, "GREEN", &v[2]);
  const hsize_t six = 6, column[] = {6, 1};
  h5_make(file, "e", e, e, 1, &six, H5P_DEFAULT, codes);
  H5Tclose(e);
  e = H5Tenum_create(H5T_NATIVE_INT8);
  int8_t f[] = {0, 1}, b[6];
  H5Tenum_insert(e, "FALSE", &f[0]);
  H5Tenum_insert(e, "TRUE", &f[1]);
  for (int i = 0; i < 6; ++i)
    b[i] = (int8_t)flags[i];
  h5_make(file, "b", e, e, 1, &six, H5P_DEFAULT, b);
  H5Tclose(e);
  h5_make(file, "column", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, column, H5P_DEFAULT, whole_numbers);
  end();
}

START_TEST(test_classes) {
  make_labels();
  const char *numbers[] = {"-1", "3", "20"}, *letters[] = {"a", "b", "c"},
             *colours[] = {"BLUE", "GREEN", "RED"};
  for (int k = 0; k < 2; ++k) {
    sn_field_kind kind = k == 0 ? SN_FIELD_DENSE : SN_FIELD_CATEGORY;
    check_classes("/i", numbers, kind);
    check_classes("/r", numbers, kind);
    check_classes("/column", numbers, kind);
    check_classes("/s", letters, kind);
    check_classes("/e", colours, kind);
  }
  set s = fitted((sn_field){.path = "/b", .role = SN_FIELD_CLASS});
  ck_assert_str_eq(sn_preparation_class_name(s.prep, 0, 1), "1");
  close_set(s);
  refused(F(.path = "/half", .role = SN_FIELD_CLASS), SN_CODE_DATA, "row 3: 1.5 is no class");
  refused(F(.path = "/gaps", .role = SN_FIELD_CLASS), SN_CODE_DATA, "row 2: nan is no class");
  remove(path);
}
END_TEST

START_TEST(test_missing_and_weights) {
  make_labels();
  const double by_class[] = {0.5, 2, 4}, by_name[] = {7};
  const char *names[] = {"c"}, *wrong[] = {"d"}, *order[] = {"c", "b", "a"},
             *shown[] = {"zero", "one"};
  set s = fitted((sn_field){.path = "/gaps", .role = SN_FIELD_CLASS, .missing = "nan"});
  const sn_batch *b = whole(s);
  const float w[] = {1, 1, 0, 1, 1, 1};
  const int32_t y[] = {0, 1, 0, 1, 0, 0};
  ck_assert_mem_eq(b->fields[0].weights, w, sizeof w);
  ck_assert_mem_eq(b->fields[0].data, y, sizeof y);
  close_set(s);
  s = fitted((sn_field){.path = "/i", .role = SN_FIELD_CLASS, .missing = "20", .balanced = true});
  b = whole(s);
  ck_assert_int_eq(sn_preparation_facts(s.prep, 0)->classes, 2);
  ck_assert(b->fields[0].weights[0] == (float)(5.0 / 6) && b->fields[0].weights[1] == 1.25f &&
            b->fields[0].weights[2] == 0);
  close_set(s);
  s = fitted((sn_field){.path = "/s",
                        .role = SN_FIELD_CLASS,
                        .class_weights = by_class,
                        .n_class_weights = 3,
                        .classes = order,
                        .n_classes = 3});
  b = whole(s);
  ck_assert(b->fields[0].weights[0] == 2 && b->fields[0].weights[1] == 4 &&
            b->fields[0].weights[2] == 0.5f);
  ck_assert_int_eq(((const int32_t *)b->fields[0].data)[1], 2);
  close_set(s);
  s = fitted((sn_field){.path = "/s",
                        .role = SN_FIELD_CLASS,
                        .class_weights = by_name,
                        .class_weight_names = names,
                        .n_class_weights = 1});
  ck_assert(whole(s)->fields[0].weights[2] == 7);
  close_set(s);
  s = fitted((sn_field){.path = "/b", .role = SN_FIELD_CLASS, .classes = shown, .n_classes = 2});
  ck_assert_str_eq(sn_preparation_class_name(s.prep, 0, 1), "one");
  ck_assert_int_eq(((const int32_t *)whole(s)->fields[0].data)[0], 1);
  close_set(s);
  sn_dataset *d = NULL;
  sn_preparation *p = NULL;
  ck_sn_ok(open_one((sn_field){.path = "/s",
                               .role = SN_FIELD_CLASS,
                               .class_weights = by_class,
                               .class_weight_names = wrong,
                               .n_class_weights = 1},
                    &d));
  ck_sn_fails(sn_preparation_fit(d, NULL, 0, &p), SN_CODE_CONFIG, "no class 'd'");
  sn_dataset_free(d);
  ck_sn_ok(open_one(
      (sn_field){
          .path = "/s", .role = SN_FIELD_CLASS, .class_weights = by_class, .n_class_weights = 2},
      &d));
  ck_sn_fails(sn_preparation_fit(d, NULL, 0, &p), SN_CODE_CONFIG, "3 classes, 2 weights");
  sn_dataset_free(d);
  ck_sn_ok(open_one((sn_field){.path = "/s",
                               .role = SN_FIELD_CLASS,
                               .class_weights = (double[]){0, 0, 0},
                               .n_class_weights = 3},
                    &d));
  ck_sn_fails(sn_preparation_fit(d, NULL, 0, &p), SN_CODE_CONFIG, "every class of /s weighs 0");
  sn_dataset_free(d);
  whole((set){NULL, NULL});
  remove(path);
}
END_TEST

START_TEST(test_unseen_class) {
  make_labels();
  const int64_t train[] = {0, 1, 3, 4, 5};
  sn_dataset *d = NULL;
  sn_preparation *p = NULL;
  ck_sn_ok(open_one((sn_field){.path = "/s", .role = SN_FIELD_CLASS}, &d));
  ck_sn_ok(sn_preparation_fit(d, train, 5, &p));
  ck_sn_fails(sn_dataset_check(d, p, NULL, NULL), SN_CODE_DATA,
              "dataset /s: row 2: class 'c' does not occur in the training rows");
  sn_loader_options o = {.struct_size = sizeof o, .batch = 4};
  sn_loader *l = NULL;
  ck_sn_fails(sn_loader_create(d, p, NULL, 0, &o, &l), SN_CODE_DATA, "row 2");
  ck_sn_ok(sn_loader_create(d, p, train, 5, &o, &l));
  sn_loader_free(l);
  sn_preparation_free(p);
  sn_dataset_free(d);
  remove(path);
}
END_TEST

/* ---- the check ------------------------------------------------------------------------------- */

static char heard[4000];

static void hear(void *user, const char *line) {
  (void)user;
  strncat(heard, line, sizeof heard - strlen(heard) - 2);
  strcat(heard, "\n");
}

START_TEST(test_check) {
  enum { N = 4000 };
  begin("check");
  float *x = calloc(N * 3, sizeof *x);
  double *wide = calloc(N, sizeof *wide);
  int64_t y[N] = {0};
  for (int i = 0; i < N; ++i) {
    x[3 * i] = (float)(i % 2);
    x[3 * i + 2] = (float)(i % 3);
  }
  y[77] = 1;
  floats("constant", N, 3, x);
  ints("y", H5T_STD_I8LE, N, y);
  x[3 * 3999 + 2] = 1e6f;
  floats("tail", N, 3, x);
  x[3 * 3000 + 1] = -INFINITY;
  floats("inf", N, 3, x);
  x[3 * 2000 + 2] = NAN;
  floats("nan", N, 3, x);
  floats("labels", N, 3, x);
  wide[9] = 1e300;
  const hsize_t n = N;
  h5_make(file, "wide", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &n, H5P_DEFAULT, wide);
  end();
  const struct {
    sn_field field;
    const char *words;
  } cases[] = {
      {{.path = "/inf"}, "dataset /inf: row 3000, column 1 is infinite"},
      {{.path = "/nan"}, "row 2000, column 2 is NaN"},
      {{.path = "/wide"}, "row 9, column 0 is infinite or too large for f32"},
      {{.path = "/labels", .role = SN_FIELD_MULTILABEL}, "row 2, column 2 is 2: a label of task"},
      {{.path = "/nan", .role = SN_FIELD_TARGET, .missing = "nan"}, "row 3000, column 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    set s = fitted(cases[i].field);
    ck_sn_fails(sn_dataset_check(s.data, s.prep, NULL, NULL), SN_CODE_DATA, cases[i].words);
    close_set(s);
  }
  sn_dataset *d = NULL;
  sn_preparation *p = NULL;
  ck_sn_ok(open_one((sn_field){.path = "/nan", .normalize = true}, &d));
  ck_sn_fails(sn_preparation_fit(d, NULL, 0, &p), SN_CODE_DATA, "row 2000, column 2: NaN");
  sn_dataset_free(d);
  const struct {
    sn_field field;
    const char *words;
  } warnings[] = {
      {{.path = "/constant", .normalize = true}, "column 1 never changes"},
      {{.path = "/tail", .normalize = true}, "heavy tail: 1 numbers lie more than 50"},
      {{.path = "/y", .role = SN_FIELD_CLASS}, "class '1' has one training row"},
  };
  for (size_t i = 0; i < sizeof warnings / sizeof *warnings; ++i) {
    set s = fitted(warnings[i].field);
    heard[0] = '\0';
    ck_sn_ok(sn_dataset_check(s.data, s.prep, hear, NULL));
    ck_assert_msg(strstr(heard, warnings[i].words) != NULL, "'%s'", heard);
    close_set(s);
  }
  free(x);
  free(wide);
  remove(path);
}
END_TEST

START_TEST(test_targets) {
  begin("targets");
  const float t[] = {1, 10, 3, NAN, 5, 30, -9, 20};
  floats("t", 4, 2, t);
  end();
  set s = fitted(
      (sn_field){.path = "/t", .role = SN_FIELD_TARGET, .missing = "nan", .normalize = true});
  ck_assert(sn_preparation_mean(s.prep, 0)[0] == -1 && sn_preparation_mean(s.prep, 0)[1] == 20);
  const sn_batch *b = whole(s);
  const float w[] = {1, 0, 1, 1}, *x = b->fields[0].data;
  ck_assert_mem_eq(b->fields[0].weights, w, sizeof w);
  ck_assert(x[2] == 0 && x[3] == 0 && x[7] == 0);
  close_set(s);
  s = fitted((sn_field){.path = "/t", .role = SN_FIELD_TARGET, .missing = "-9"});
  b = whole(s);
  ck_assert(b->fields[0].weights[3] == 0 && ((const float *)b->fields[0].data)[7] == 0);
  close_set(s);
  whole((set){NULL, NULL});
  remove(path);
}
END_TEST

/* ---- splits, files --------------------------------------------------------------------------- */

START_TEST(test_split) {
  enum { N = 1000 };
  begin("split");
  int64_t y[N];
  for (int i = 0; i < N; ++i)
    y[i] = i == 500 ? 9 : i % 10 == 0 ? 1 : i % 100 == 7 ? 2 : 0;
  ints("y", H5T_STD_I8LE, N, y);
  end();
  sn_dataset *d = NULL;
  ck_sn_ok(open_one((sn_field){.path = "/y", .role = SN_FIELD_CLASS}, &d));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    sn_row_split *a = NULL, *b = NULL;
    ck_sn_ok(sn_row_split_create(d, 0.2, seed, true, &a));
    ck_sn_ok(sn_row_split_create(d, 0.2, seed, true, &b));
    ck_assert_int_eq(a->n_valid, 200);
    ck_assert_int_eq(a->n_train, 800);
    ck_assert_mem_eq(a->valid, b->valid, 200 * sizeof *a->valid);
    char seen[N] = {0};
    int count[10] = {0};
    for (int i = 0; i < 200; ++i) {
      ck_assert(i == 0 || a->valid[i] > a->valid[i - 1]);
      seen[a->valid[i]]++;
      count[y[a->valid[i]]]++;
    }
    for (int i = 0; i < 800; ++i)
      seen[a->train[i]]++;
    for (int i = 0; i < N; ++i)
      ck_assert_int_eq(seen[i], 1);
    ck_assert(count[2] == 2 && count[9] == 0 && abs(count[1] - 20) <= 1);
    sn_row_split_free(b);
    ck_sn_ok(sn_row_split_create(d, 0.2, seed + 100, false, &b));
    ck_assert_int_eq(b->n_valid, 200);
    ck_assert_mem_ne(a->valid, b->valid, 200 * sizeof *a->valid);
    sn_row_split_free(a);
    sn_row_split_free(b);
  }
  sn_row_split *none = NULL;
  ck_sn_ok(sn_row_split_create(d, 0, 1, true, &none));
  ck_assert(none->n_train == N && none->n_valid == 0);
  sn_row_split_free(none);
  ck_sn_fails(sn_row_split_create(d, 1, 1, true, &none), SN_CODE_INVALID, "fraction");
  sn_dataset_free(d);
  remove(path);
}
END_TEST

START_TEST(test_files) {
  char paths[2][300];
  const float x[] = {1, 2, 3, 4, 5, 6, 7};
  const int64_t offsets[2][4] = {{0, 1, 3, 3}, {0, 4}};
  const char *const names[] = {"b", "a", "c", "d"};
  for (int i = 0; i < 2; ++i) {
    begin(i == 0 ? "files0" : "files1");
    strcpy(paths[i], path);
    group("g");
    floats("g/values", i == 0 ? 3 : 4, 0, x + 3 * i);
    ints("g/offsets", i == 0 ? H5T_STD_I64LE : H5T_STD_U16LE, i == 0 ? 4 : 2, offsets[i]);
    strings("s", i == 0 ? 3 : 1, names + 3 * i);
    end();
  }
  const sn_field f[] = {
      {.name = "g", .path = "/g", .kind = SN_FIELD_SEQUENCE, .dtype = SN_F32},
      {.name = "s", .path = "/s", .kind = SN_FIELD_CATEGORY, .dtype = SN_I32, .ids = true}};
  set s;
  const char *both[] = {paths[0], paths[1]};
  ck_sn_ok(sn_dataset_open(both, 2, f, 2, &s.data));
  ck_sn_ok(sn_preparation_fit(s.data, NULL, 0, &s.prep));
  const sn_batch *b = whole(s);
  const int64_t want[] = {0, 1, 3, 3, 7};
  const int32_t ids[] = {1, 0, 2, 3};
  ck_assert_int_eq(b->rows, 4);
  ck_assert_mem_eq(b->fields[0].offsets, want, sizeof want);
  ck_assert_mem_eq(b->fields[0].data, x, sizeof x);
  ck_assert_mem_eq(b->fields[1].data, ids, sizeof ids);
  close_set(s);
  whole((set){NULL, NULL});
  remove(paths[0]);
  remove(paths[1]);
}
END_TEST

/* ---- public files ---------------------------------------------------------------------------- */

static bool shared(const char *name) {
  static char buffer[600];
  const char *folder = getenv("SN_SHARED");
  snprintf(buffer, sizeof buffer, "%s/data/%s", folder != NULL ? folder : "../shared", name);
  path = buffer;
  if (access(path, R_OK) == 0) return true;
  printf("skipped: no %s\n", path);
  return false;
}

START_TEST(test_public) {
  if (shared("train/iris.h5")) {
    const sn_field f[] = {
        {.name = "x", .path = "/X_train_data", .dtype = SN_F32, .normalize = true},
        {.name = "z", .path = "/z_train_data", .dtype = SN_F32, .normalize = true},
        {.name = "y", .path = "/y_train_data", .role = SN_FIELD_CLASS, .dtype = SN_I32}};
    set s;
    ck_sn_ok(sn_dataset_open(&path, 1, f, 3, &s.data));
    ck_sn_ok(sn_preparation_fit(s.data, NULL, 0, &s.prep));
    heard[0] = '\0';
    ck_sn_ok(sn_dataset_check(s.data, s.prep, hear, NULL));
    ck_assert_ptr_nonnull(strstr(heard, "/z_train_data: column 0 never changes"));
    const sn_batch *b = whole(s);
    for (int i = 0; i < 120; ++i)
      ck_assert(((const float *)b->fields[1].data)[i] == 0);
    ck_assert_int_eq(sn_preparation_facts(s.prep, 2)->classes, 3);
    close_set(s);
  }
  if (shared("sets/pointnet_train_data.h5")) {
    set s = fitted((sn_field){.path = "/data", .kind = SN_FIELD_SET, .normalize = true});
    ck_assert_int_eq(whole(s)->fields[0].elements, 361 * 128);
    ck_assert_int_eq(sn_preparation_facts(s.prep, 0)->features, 3);
    close_set(s);
  }
  if (shared("seq/torchrnn_tiny-shakespeare.h5")) {
    set s = fitted((sn_field){.path = "/train", .kind = SN_FIELD_STREAM, .window = 64});
    ck_assert_int_eq(sn_preparation_facts(s.prep, 0)->classes, 65);
    ck_assert_int_eq(sn_dataset_rows(s.data), (892316 - 1) / 64);
    close_set(s);
  }
  if (shared("train/simplenn_dataset.h5")) {
    set s = fitted((sn_field){.path = "/y", .role = SN_FIELD_TARGET, .normalize = true});
    heard[0] = '\0';
    ck_sn_ok(sn_dataset_check(s.data, s.prep, hear, NULL));
    ck_assert_ptr_nonnull(strstr(heard, "heavy tail"));
    close_set(s);
  }
  if (shared("train/caffe_sample_data.h5")) {
    set s = fitted((sn_field){.path = "/label", .role = SN_FIELD_CLASS});
    ck_assert_str_eq(sn_preparation_class_name(s.prep, 0, 0), "1");
    close_set(s);
  }
  whole((set){NULL, NULL});
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("dataset");
  TCase *t = tcase_create("fields");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, test_refused);
  tcase_add_test(t, test_dense);
  tcase_add_test(t, test_moments);
  tcase_add_test(t, test_images);
  tcase_add_test(t, test_ragged);
  tcase_add_test(t, test_stream);
  tcase_add_test(t, test_classes);
  tcase_add_test(t, test_missing_and_weights);
  tcase_add_test(t, test_unseen_class);
  tcase_add_test(t, test_check);
  tcase_add_test(t, test_targets);
  tcase_add_test(t, test_split);
  tcase_add_test(t, test_files);
  tcase_add_test(t, test_public);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
