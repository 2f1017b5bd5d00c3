/* SPDX-License-Identifier: Apache-2.0 */
/* What every test file needs: Check, and asserts on statuses that print the message. */
#ifndef SN_TESTS_CHECK_SN_H
#define SN_TESTS_CHECK_SN_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/status.h"

/* Whether sanitizers look on: loops that only repeat a check may then be shorter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SN_SANITIZED 1
#endif
#endif
#ifndef SN_SANITIZED
#define SN_SANITIZED 0
#endif

/* Fails the test, with its message, when `expr` is not SN_OK. */
#define ck_sn_ok(expr)                                                                             \
  do {                                                                                             \
    sn_status ck_s_ = (expr);                                                                      \
    ck_assert_msg(ck_s_ == SN_OK, "%s: %s", #expr, sn_status_message(ck_s_));                      \
  } while (0)

/* Fails the test unless `expr` fails with `want` and its message holds `words`. */
#define ck_sn_fails(expr, want, words)                                                             \
  do {                                                                                             \
    sn_status ck_s_ = (expr);                                                                      \
    ck_assert_msg(sn_status_code(ck_s_) == (want), "%s: code %s, message: %s", #expr,              \
                  sn_code_words(sn_status_code(ck_s_)), sn_status_message(ck_s_));                 \
    ck_assert_msg(strstr(sn_status_message(ck_s_), (words)) != NULL, "%s: '%s' lacks '%s'", #expr, \
                  sn_status_message(ck_s_), (words));                                              \
    sn_status_free(ck_s_);                                                                         \
  } while (0)

/* Each test file defines its suite and ends with SN_TEST_MAIN(suite_function). */
#define SN_TEST_MAIN(make_suite)                                                                   \
  int main(void) {                                                                                 \
    SRunner *runner = srunner_create(make_suite());                                                \
    srunner_run_all(runner, CK_ENV);                                                               \
    int failed = srunner_ntests_failed(runner);                                                    \
    srunner_free(runner);                                                                          \
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;                                              \
  }

#endif
