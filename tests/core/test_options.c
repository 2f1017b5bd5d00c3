/* SPDX-License-Identifier: Apache-2.0 */
/* Options of callers that were built with an older or a newer header. */
#include "core/graph.h"
#include "core/options.h"
#include "tests/core/toy_ops.h"

typedef struct known {
  SN_OPTIONS_HEAD;
  int64_t first;
  int64_t added; /* in a later version than `older` */
} known;

typedef struct older {
  SN_OPTIONS_HEAD;
  int64_t first;
} older;

typedef struct newer {
  SN_OPTIONS_HEAD;
  int64_t first, added, later;
} newer;

START_TEST(absent_are_defaults) {
  known out = {1, 2, 3};
  ck_sn_ok(sn_options_read(NULL, sizeof out, "call", &out));
  ck_assert_uint_eq(out.struct_size, sizeof out);
  ck_assert_int_eq(out.first, 0);
  ck_assert_int_eq(out.added, 0);
}
END_TEST

START_TEST(an_older_caller) {
  struct {
    older options;
    int64_t behind; /* must not be taken for `added` */
  } caller = {{sizeof(older), 5}, 99};
  known out = {1, 2, 3};
  ck_sn_ok(sn_options_read(&caller.options, sizeof out, "call", &out));
  ck_assert_uint_eq(out.struct_size, sizeof out);
  ck_assert_int_eq(out.first, 5);
  ck_assert_int_eq(out.added, 0);
}
END_TEST

START_TEST(a_newer_caller) {
  newer options = {sizeof options, 5, 6, 0};
  known out;
  ck_sn_ok(sn_options_read(&options, sizeof out, "call", &out));
  ck_assert_int_eq(out.first, 5);
  ck_assert_int_eq(out.added, 6);
  options.later = (int64_t)1 << 40;
  ck_sn_fails(sn_options_read(&options, sizeof out, "call", &out), SN_CODE_UNSUPPORTED,
              "call: an option is set that sennit");
}
END_TEST

START_TEST(no_size) {
  static const size_t sizes[] = {0, sizeof(size_t) - 1, 4097, SIZE_MAX};
  known options = {0}, out;
  options.struct_size = sizes[_i];
  ck_sn_fails(sn_options_read(&options, sizeof out, "call", &out), SN_CODE_INVALID,
              "call: the options' struct_size is");
}
END_TEST

START_TEST(builders_keep_the_mistake) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  const sn_variable_options forgotten = {.frozen = true};
  sn_value v = sn_variable_opt(g, "w", SN_F32, SN_SHAPE(2), &forgotten);
  ck_assert(!sn_value_ok(v));
  ck_sn_fails(sn_graph_status(g), SN_CODE_INVALID, "variable: the options' struct_size is 0");
  sn_graph_free(g);
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("options");
  TCase *c = tcase_create("options");
  tcase_add_test(c, absent_are_defaults);
  tcase_add_test(c, an_older_caller);
  tcase_add_test(c, a_newer_caller);
  tcase_add_loop_test(c, no_size, 0, 4);
  tcase_add_test(c, builders_keep_the_mistake);
  suite_add_tcase(suite, c);
  return suite;
}

SN_TEST_MAIN(make_suite)
