/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint keeps of datasets, read back; and everything about them without memory. */
#include "dataset_sets.h"
#include "tests/fail_alloc.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

static void make_mixed(void) {
  begin("mixed");
  const float x[] = {0.1f, 5, 0.7f, 5, -3e20f, 5};
  const int64_t big[] = {INT64_MAX, INT64_MIN, 0}, offsets[] = {0, 1, 1, 3};
  const char *const names[] = {"k\"\n\xc3\xa9", "\xff\xfe", ""};
  floats("x", 3, 2, x);
  ints("big", H5T_STD_I64LE, 3, big);
  strings("s", 3, names);
  group("g");
  ints("g/values", H5T_STD_I64LE, 3, big);
  ints("g/offsets", H5T_STD_I64LE, 4, offsets);
  end();
}

static const double mixed_weights[] = {0.1, 3};
static const char *const mixed_names[] = {"\xff\xfe", ""};
static const sn_field mixed[] = {
    {.name = "x", .path = "/x", .dtype = SN_F32, .normalize = true},
    {.name = "g", .path = "/g", .kind = SN_FIELD_SEQUENCE, .ids = true, .dtype = SN_I64},
    {.name = "s",
     .path = "/s",
     .role = SN_FIELD_CLASS,
     .dtype = SN_I32,
     .missing = "zz",
     .class_weights = mixed_weights,
     .class_weight_names = mixed_names,
     .n_class_weights = 2},
    {.name = "b", .path = "/big", .kind = SN_FIELD_CATEGORY, .dtype = SN_I32},
};

/* What our own text never says: found by the fuzzer. */
static void check_refused(const char *text) {
  static const char key[] = "\"class_weight_names\": [";
  const char *at = strstr(text, key);
  ck_assert_ptr_nonnull(at);
  at += sizeof key - 1;
  char *bad = malloc(strlen(text) + 1);
  const char *end = at; /* of the list: one of its names is a list of bytes */
  for (int depth = 1; depth > 0; ++end)
    depth += (*end == '[') - (*end == ']');
  sprintf(bad, "%.*s%s", (int)(at - text), text, end - 1);
  sn_preparation *back = NULL;
  ck_sn_fails(sn_preparation_from_json(bad, strlen(bad), &back), SN_CODE_CORRUPT,
              "class_weight_names");
  free(bad);
}

START_TEST(test_json) {
  make_mixed();
  set s;
  ck_sn_ok(sn_dataset_open(&path, 1, mixed, 4, &s.data));
  ck_sn_ok(sn_preparation_fit(s.data, NULL, 0, &s.prep));
  char *text = NULL, *again = NULL;
  ck_sn_ok(sn_preparation_to_json(s.prep, &text));
  if (getenv("SN_WRITE") != NULL) { /* the fuzzer's seed */
    FILE *f = fopen(getenv("SN_WRITE"), "w");
    fputs(text, f);
    fclose(f);
  }
  sn_preparation *back = NULL;
  ck_sn_ok(sn_preparation_from_json(text, strlen(text), &back));
  ck_sn_ok(sn_preparation_to_json(back, &again));
  ck_assert_str_eq(text, again);
  ck_assert_mem_eq(sn_preparation_mean(back, 0), sn_preparation_mean(s.prep, 0), 16);
  ck_assert_mem_eq(sn_preparation_deviation(back, 0), sn_preparation_deviation(s.prep, 0), 16);
  for (int64_t k = 0; k < 3; ++k) {
    ck_assert_str_eq(sn_preparation_class_name(back, 2, k),
                     sn_preparation_class_name(s.prep, 2, k));
    ck_assert_str_eq(sn_preparation_class_name(back, 1, k),
                     sn_preparation_class_name(s.prep, 1, k));
  }
  ck_assert_str_eq(sn_preparation_field(back, 2)->missing, "zz");
  /* A file opened by what the checkpoint holds, with its tables. */
  sn_field fields[4];
  for (size_t i = 0; i < 4; ++i)
    fields[i] = *sn_preparation_field(back, i);
  set t = {.prep = back};
  ck_sn_ok(sn_dataset_open(&path, 1, fields, 4, &t.data));
  ck_sn_ok(sn_dataset_check(t.data, back, NULL, NULL));
  const int64_t ids[] = {2, 0, 1};
  ck_assert_mem_eq(whole(t)->fields[1].data, ids, sizeof ids);
  close_set(t);
  check_refused(text);
  size_t n = strlen(text);
  ck_sn_fails(sn_preparation_from_json(text, n - 3, &back), SN_CODE_CORRUPT, "damaged");
  for (size_t i = 0; i < n; ++i) { /* every byte changed: refused or sound, never a crash */
    for (int k = 0; k < 3; ++k) {
      char was = text[i];
      text[i] = "x9]"[k];
      back = NULL;
      sn_status status = sn_preparation_from_json(text, n, &back);
      if (status == SN_OK) {
        sn_loader_options o = {.struct_size = sizeof o, .batch = 8, .threads = -1};
        sn_loader *l = NULL;
        status = sn_loader_create(s.data, back, NULL, 0, &o, &l);
        const sn_batch *b;
        if (status == SN_OK) status = sn_loader_start(l, 0, 0);
        if (status == SN_OK) status = sn_loader_next(l, &b);
        sn_loader_free(l);
      }
      sn_status_free(status);
      sn_preparation_free(back);
      text[i] = was;
    }
  }
  sn_text_free(text);
  sn_text_free(again);
  close_set(s);
  whole((set){NULL, NULL});
  remove(path);
}
END_TEST

/* ---- out of memory --------------------------------------------------------------------------- */

static sn_status all_of_it(void *arg) {
  (void)arg;
  set s = {NULL, NULL};
  sn_row_split *split = NULL;
  sn_loader *l = NULL;
  char *text = NULL;
  sn_preparation *back = NULL;
  const sn_batch *b = NULL;
  sn_loader_options o = {.struct_size = sizeof o, .batch = 2, .threads = 1, .shuffle = true};
  int64_t most, longest;
  sn_status st = sn_dataset_open(&path, 1, mixed, 4, &s.data);
  if (st == SN_OK) st = sn_row_split_create(s.data, 0.3, 1, true, &split);
  if (st == SN_OK) st = sn_preparation_fit(s.data, NULL, 0, &s.prep);
  if (st == SN_OK) st = sn_dataset_check(s.data, s.prep, NULL, NULL);
  if (st == SN_OK) st = sn_preparation_to_json(s.prep, &text);
  if (st == SN_OK) st = sn_preparation_from_json(text, strlen(text), &back);
  if (st == SN_OK) st = sn_loader_create(s.data, back, NULL, 0, &o, &l);
  if (st == SN_OK) st = sn_loader_largest(l, 0, 1, &most, &longest);
  if (st == SN_OK) st = sn_loader_start(l, 0, 0);
  for (int i = 0; st == SN_OK && i < 3; ++i)
    st = sn_loader_next(l, &b);
  sn_loader_free(l);
  sn_preparation_free(back);
  sn_text_free(text);
  sn_row_split_free(split);
  close_set(s);
  return st;
}

START_TEST(test_out_of_memory) {
  make_mixed();
  ck_assert_int_gt(sn_fail_alloc_every_call(all_of_it, NULL), 50);
  remove(path);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("dataset_kept");
  TCase *t = tcase_create("kept");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, test_json);
  tcase_add_test(t, test_out_of_memory);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
