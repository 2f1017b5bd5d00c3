/* SPDX-License-Identifier: Apache-2.0 */
#include "core/status.h"

#include "tests/check_sn.h"
#include "tests/fail_alloc.h"

START_TEST(ok_is_null) {
  ck_assert_ptr_null(SN_OK);
  ck_assert_int_eq(sn_status_code(SN_OK), SN_CODE_OK);
  ck_assert_str_eq(sn_status_message(SN_OK), "ok");
  ck_assert_ptr_null(sn_status_context(SN_OK, "opening"));
  ck_assert_ptr_null(sn_status_copy(SN_OK));
  ck_assert_int_eq(sn_code_exit(SN_CODE_OK), 0);
  sn_status_free(SN_OK);
}
END_TEST

START_TEST(message_and_context) {
  sn_status s = sn_status_make(SN_CODE_DATA, "row %d: label %s", 7, "x");
  ck_assert_int_eq(sn_status_code(s), SN_CODE_DATA);
  ck_assert_str_eq(sn_status_message(s), "row 7: label x");
  s = sn_status_context(s, "dataset %s", "labels");
  s = sn_status_context(s, "a.h5");
  ck_assert_int_eq(sn_status_code(s), SN_CODE_DATA);
  ck_assert_str_eq(sn_status_message(s), "a.h5: dataset labels: row 7: label x");
  sn_status copy = sn_status_copy(s);
  ck_assert_ptr_ne(copy, s);
  sn_status_free(s);
  ck_assert_str_eq(sn_status_message(copy), "a.h5: dataset labels: row 7: label x");
  sn_status_free(copy);
}
END_TEST

/* Names come from files; a terminal must not obey them and a log line must stay one line. */
START_TEST(one_line) {
  sn_status s = sn_status_make(SN_CODE_IO, "a\nb\r\tc\x1b[31m\x7f\xc2\x9b"
                                           "d\xc3\xa9 \n\n");
  ck_assert_str_eq(sn_status_message(s), "a b  c?[31m??d\xc3\xa9");
  s = sn_status_context(s, "x\ny");
  ck_assert_str_eq(sn_status_message(s), "x y: a b  c?[31m??d\xc3\xa9");
  sn_status_free(s);
}
END_TEST

START_TEST(long_message) {
  char text[5001];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  sn_status s = sn_status_make(SN_CODE_IO, "%s!", text);
  ck_assert_uint_eq(strlen(sn_status_message(s)), sizeof text);
  sn_status_free(s);
}
END_TEST

START_TEST(join_keeps_the_first) {
  sn_status s = sn_status_join(SN_OK, sn_status_make(SN_CODE_IO, "close"));
  ck_assert_str_eq(sn_status_message(s), "close");
  s = sn_status_join(s, sn_status_make(SN_CODE_IO, "unlink"));
  ck_assert_str_eq(sn_status_message(s), "close");
  s = sn_status_join(s, SN_OK);
  ck_assert_str_eq(sn_status_message(s), "close");
  sn_status_free(s);
}
END_TEST

START_TEST(codes) {
  for (int code = SN_CODE_OK + 1; code < SN_CODE_COUNT; code++) {
    int status = sn_code_exit((sn_code)code);
    ck_assert_msg(status == 1 || status == 2, "code %d exits with %d", code, status);
    ck_assert_uint_gt(strlen(sn_code_words((sn_code)code)), 3);
  }
  ck_assert_int_eq(sn_code_exit(SN_CODE_CONFIG), 2);
  ck_assert_int_eq(sn_code_exit(SN_CODE_DATA), 1);
  ck_assert_str_eq(sn_code_words((sn_code)999), "unknown status code");
  sn_status s = sn_status_make((sn_code)999, "x"); /* never a failure that looks like success */
  ck_assert_int_eq(sn_status_code(s), SN_CODE_INTERNAL);
  sn_status_free(s);
}
END_TEST

START_TEST(out_of_memory_needs_no_memory) {
  sn_fail_alloc_install(1);
  sn_status s = sn_status_make(SN_CODE_DATA, "row %d", 7);
  ck_assert_ptr_eq(s, sn_status_out_of_memory());
  ck_assert_int_eq(sn_status_code(s), SN_CODE_OUT_OF_MEMORY);
  ck_assert_str_eq(sn_status_message(s), "out of memory");
  s = sn_status_context(s, "a.h5");
  ck_assert_ptr_eq(s, sn_status_out_of_memory());
  ck_assert_ptr_eq(sn_status_copy(s), s);
  sn_status_free(s);
  sn_status_free(s); /* the static one has no owner */
  ck_assert_int_eq(sn_fail_alloc_live(), 0);
  sn_fail_alloc_remove();
}
END_TEST

START_TEST(context_without_memory_keeps_the_report) {
  sn_fail_alloc_install(2);
  sn_status s = sn_status_make(SN_CODE_DATA, "row 7");
  s = sn_status_context(s, "a.h5");
  ck_assert_int_eq(sn_status_code(s), SN_CODE_DATA);
  ck_assert_str_eq(sn_status_message(s), "row 7");
  sn_status_free(s);
  ck_assert_int_eq(sn_fail_alloc_live(), 0);
  sn_fail_alloc_remove();
}
END_TEST

static sn_status tries(int *calls, bool fail) {
  ++*calls;
  if (fail) return sn_status_make(SN_CODE_IO, "no");
  return SN_OK;
}

static sn_status uses_try(int *calls, bool fail) {
  SN_TRY(tries(calls, fail));
  SN_TRY(tries(calls, fail));
  return SN_OK;
}

START_TEST(try_returns_early) {
  int calls = 0;
  ck_sn_ok(uses_try(&calls, false));
  ck_assert_int_eq(calls, 2);
  ck_sn_fails(uses_try(&calls, true), SN_CODE_IO, "no");
  ck_assert_int_eq(calls, 3);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("status");
  TCase *t = tcase_create("status");
  tcase_add_test(t, ok_is_null);
  tcase_add_test(t, message_and_context);
  tcase_add_test(t, one_line);
  tcase_add_test(t, long_message);
  tcase_add_test(t, join_keeps_the_first);
  tcase_add_test(t, codes);
  tcase_add_test(t, out_of_memory_needs_no_memory);
  tcase_add_test(t, context_without_memory_keeps_the_report);
  tcase_add_test(t, try_returns_early);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
