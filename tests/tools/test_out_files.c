/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the command writes through libhdf5 leave the process's error handler alone. */
#include <hdf5.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/check_sn.h"
#include "tools/sennit/h5_out.h"
#include "tools/sennit/pred_file.h"

static int heard;

static herr_t hear(hid_t stack, void *user) {
  (void)stack;
  ck_assert_ptr_eq(user, &heard);
  heard++;
  return 0;
}

/* Ours, and still called. */
static void check_handler(void) {
  H5E_auto2_t handler = NULL;
  void *user = NULL;
  H5Eget_auto2(H5E_DEFAULT, &handler, &user);
  ck_assert(handler == hear && user == &heard);
  int before = heard;
  H5Fclose(H5I_INVALID_HID);
  ck_assert_int_eq(heard, before + 1);
}

static const char *path_of(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "out_files_%s_%d.h5", name, (int)getpid());
  return path;
}

START_TEST(predictions_keep_the_handler) {
  pred_file *f = NULL;
  const char *path = path_of("pred");
  H5Eset_auto2(H5E_DEFAULT, hear, &heard);
  ck_sn_ok(pred_file_create(path, NULL, &f));
  check_handler();
  ck_sn_ok(pred_file_finish(f));
  check_handler();
  pred_file_free(f);
  check_handler();
  ck_sn_fails(pred_file_create("/nowhere/x.h5", NULL, &f), SN_CODE_IO, "/nowhere/x.h5");
  check_handler();
  remove(path);
}
END_TEST

START_TEST(steps_keep_the_handler) {
  h5_out *f = NULL;
  const char *path = path_of("step");
  const double one = 1;
  H5Eset_auto2(H5E_DEFAULT, hear, &heard);
  ck_sn_ok(h5_out_create(path, &f));
  ck_sn_ok(h5_out_tensor(f, "/a/b", SN_F64, (sn_shape){0, {0}}, &one));
  check_handler();
  int before = heard; /* what fails inside is told by the status alone */
  sn_status again = h5_out_tensor(f, "/a/b", SN_F64, (sn_shape){0, {0}}, &one);
  ck_assert(again != SN_OK);
  sn_status_free(again);
  ck_assert_int_eq(heard, before);
  ck_sn_ok(h5_out_finish(f));
  h5_out_free(f);
  check_handler();
  remove(path);
}
END_TEST

static Suite *out_files_suite(void) {
  Suite *suite = suite_create("out_files");
  TCase *tc = tcase_create("handler");
  tcase_add_test(tc, predictions_keep_the_handler);
  tcase_add_test(tc, steps_keep_the_handler);
  suite_add_tcase(suite, tc);
  return suite;
}

SN_TEST_MAIN(out_files_suite)
