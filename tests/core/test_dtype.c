/* SPDX-License-Identifier: Apache-2.0 */
#include "core/dtype.h"

#include "tests/check_sn.h"

START_TEST(names_go_both_ways) {
  for (int d = SN_DTYPE_NONE + 1; d < SN_DTYPE_COUNT; d++) {
    sn_dtype dtype = (sn_dtype)d;
    ck_assert_int_eq(sn_dtype_from_name(sn_dtype_name(dtype)), dtype);
    ck_assert_uint_gt(sn_dtype_size(dtype), 0);
  }
  ck_assert_int_eq(sn_dtype_from_name("f16x"), SN_DTYPE_NONE);
  ck_assert_int_eq(sn_dtype_from_name("none"), SN_DTYPE_NONE);
  ck_assert_int_eq(sn_dtype_from_name(NULL), SN_DTYPE_NONE);
}
END_TEST

START_TEST(facts) {
  ck_assert_uint_eq(sn_dtype_size(SN_F32), sizeof(float));
  ck_assert_uint_eq(sn_dtype_size(SN_F64), sizeof(double));
  ck_assert_uint_eq(sn_dtype_size(SN_BF16), 2);
  ck_assert_uint_eq(sn_dtype_size(SN_I64), 8);
  ck_assert(sn_dtype_is_float(SN_BF16));
  ck_assert(!sn_dtype_is_float(SN_I32));
  ck_assert_str_eq(sn_dtype_name(SN_DTYPE_NONE), "none");
  ck_assert_uint_eq(sn_dtype_size(SN_DTYPE_NONE), 0);
  ck_assert_uint_eq(sn_dtype_size((sn_dtype)-1), 0);
  ck_assert_uint_eq(sn_dtype_size(SN_DTYPE_COUNT), 0);
  ck_assert(!sn_dtype_is_float((sn_dtype)1000));
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("dtype");
  TCase *t = tcase_create("dtype");
  tcase_add_test(t, names_go_both_ways);
  tcase_add_test(t, facts);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
