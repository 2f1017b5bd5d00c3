/* SPDX-License-Identifier: Apache-2.0 */
/* Where a cost comes from: the row, a row of the same op, the device's rows, or nothing. */
#include "core/device/profile.h"

#include <math.h>

#include "core/device/desc.h"
#include "tests/check_sn.h"
#include "tests/fail_alloc.h"

static void put(sn_profile *p, const char *op, const char *shapes, const char *device,
                const sn_profile_point *points, size_t n) {
  sn_profile_row row = {
      .op = op, .shapes = shapes, .device = device, .n_points = n, .points = points};
  ck_sn_ok(sn_profile_put(p, &row));
}

static sn_profile *make(void) {
  static const sn_profile_point product[] = {{100, 300, 9}, {200, 500, 9}};
  static const sn_profile_point small[] = {{10, 40, 9}}, other[] = {{1000, 8000, 9}};
  sn_profile *p = NULL;
  ck_sn_ok(sn_profile_create(&p));
  put(p, "matmul", "a", "cpu/1", product, 2);
  put(p, "matmul", "b", "cpu/1", small, 1);
  put(p, "lstm", "c", "cpu/1", other, 1);
  put(p, "matmul", "a", "cpu/2", small, 1);
  return p;
}

static double ask(const sn_profile *p, const char *op, const char *shapes, const char *device,
                  double work, sn_cost_source want) {
  double ns = -1;
  ck_assert_int_eq(sn__profile_ns(p, op, shapes, device, work, &ns), want);
  return ns;
}

START_TEST(a_row_answers_between_its_points) {
  sn_profile *p = make();
  ck_assert(ask(p, "matmul", "a", "cpu/1", 100, SN_COST_MEASURED) == 300);
  ck_assert(ask(p, "matmul", "a", "cpu/1", 150, SN_COST_MEASURED) == 400);
  ck_assert(ask(p, "matmul", "a", "cpu/1", 200, SN_COST_MEASURED) == 500);
  /* Past the ends in proportion. */
  ck_assert(ask(p, "matmul", "a", "cpu/1", 50, SN_COST_MEASURED) == 150);
  ck_assert(ask(p, "matmul", "a", "cpu/1", 400, SN_COST_MEASURED) == 1000);
  ck_assert(ask(p, "matmul", "a", "cpu/2", 20, SN_COST_MEASURED) == 80);
  sn_profile_free(p);
}
END_TEST

START_TEST(an_unseen_shape_is_scaled_from_the_nearest) {
  sn_profile *p = make();
  ck_assert(ask(p, "matmul", "new", "cpu/1", 20, SN_COST_SCALED) == 80);     /* from b */
  ck_assert(ask(p, "matmul", "new", "cpu/1", 150, SN_COST_SCALED) == 400);   /* from a */
  ck_assert(ask(p, "matmul", "new", "cpu/1", 1000, SN_COST_SCALED) == 2500); /* from a's end */
  sn_profile_free(p);
}
END_TEST

START_TEST(an_unseen_op_is_calibrated_and_an_unseen_device_is_not) {
  sn_profile *p = make();
  double ns = ask(p, "relu", "x", "cpu/1", 121, SN_COST_CALIBRATED);
  ck_assert_double_eq_tol(ns, 121 * (500.0 + 40 + 8000) / (200 + 10 + 1000), 1e-9);
  ck_assert(ask(p, "relu", "x", "cuda/1", 121, SN_COST_ANALYTIC) == -1);
  ck_assert(ask(NULL, "relu", "x", "cpu/1", 121, SN_COST_ANALYTIC) == -1);
  sn_profile_free(p);
}
END_TEST

START_TEST(a_row_takes_the_place_of_its_like) {
  static const sn_profile_point better[] = {{100, 10, 1}};
  sn_profile *p = make();
  size_t rows = sn_profile_row_count(p);
  put(p, "matmul", "a", "cpu/1", better, 1);
  ck_assert_uint_eq(sn_profile_row_count(p), rows);
  ck_assert(ask(p, "matmul", "a", "cpu/1", 200, SN_COST_MEASURED) == 20);
  ck_assert_str_eq(sn_profile_row_at(p, 0).op, "matmul");
  ck_assert_ptr_null(sn_profile_row_at(p, rows).op);
  sn_profile_free(p);
}
END_TEST

START_TEST(what_cannot_be_is_refused) {
  static const sn_profile_point falls[] = {{2, 1, 1}, {1, 1, 1}}, same[] = {{1, 1, 1}, {1, 2, 1}};
  const sn_profile_point odd[] = {{1, (double)NAN, 1}}, minus[] = {{1, -1, 1}};
  const struct {
    const sn_profile_point *points;
    size_t n;
  } bad[] = {{falls, 2}, {same, 2}, {odd, 1}, {minus, 1}, {falls, 0}};
  sn_profile *p = make();
  size_t rows = sn_profile_row_count(p);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    sn_profile_row row = {.op = "relu",
                          .shapes = "x",
                          .device = "cpu/1",
                          .n_points = bad[i].n,
                          .points = bad[i].points};
    ck_sn_fails(sn_profile_put(p, &row), SN_CODE_INVALID, "relu");
  }
  ck_assert_uint_eq(sn_profile_row_count(p), rows);
  sn_profile_free(p);
}
END_TEST

static sn_status share(void *arg) {
  (void)arg;
  static const sn_profile_point one[] = {{1, 2, 1}};
  sn_profile_row row = {
      .op = "relu", .shapes = "x", .device = "cpu/1", .n_points = 1, .points = one};
  sn_profile *p = NULL;
  sn_topology *t = NULL, *copy = NULL;
  sn_status status = sn_topology_parse("cpu*2", 2, &t);
  if (status == SN_OK) status = sn_profile_create(&p);
  if (status == SN_OK) status = sn_profile_put(p, &row);
  if (status == SN_OK) sn_topology_set_profile(t, p);
  sn_profile_free(p);
  if (status == SN_OK) status = sn_topology_copy(t, &copy);
  sn_topology_free(t);
  if (status == SN_OK) { /* the copy alone holds it */
    ck_assert_uint_eq(sn_profile_row_count(copy->profile), 1);
    sn_topology_set_profile(copy, NULL);
    ck_assert_ptr_null(copy->profile);
  }
  sn_topology_free(copy);
  return status;
}

START_TEST(a_topology_and_its_copies_share_one) {
  sn_fail_alloc_every_call(share, NULL);
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("profile");
  TCase *tcase = tcase_create("profile");
  tcase_add_test(tcase, a_row_answers_between_its_points);
  tcase_add_test(tcase, an_unseen_shape_is_scaled_from_the_nearest);
  tcase_add_test(tcase, an_unseen_op_is_calibrated_and_an_unseen_device_is_not);
  tcase_add_test(tcase, a_row_takes_the_place_of_its_like);
  tcase_add_test(tcase, what_cannot_be_is_refused);
  tcase_add_test(tcase, a_topology_and_its_copies_share_one);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(make_suite)
