/* SPDX-License-Identifier: Apache-2.0 */
/* export and inspect on a checkpoint, and the way back through --init. */
#include "io/checkpoint.h"
#include "tests/tools/read_h5.h"

#define FILES "--data \"$DIGITS/digits_train.h5\" --config \"" SN_DIGITS_STEP "\" "

static void train(const char *more) {
  sennit_ok("train " FILES "--epochs 1 --valid-fraction 0.2 --out \"$T/run\" %s", more);
}

static sn_checkpoint *weights(void) {
  char path[300];
  sn_checkpoint *file = NULL;
  snprintf(path, sizeof path, "%s/w.safetensors", run_folder);
  ck_sn_ok(sn_safetensors_read(path, &file));
  return file;
}

static void check_tensor(const sn_checkpoint *file, const char *dotted, hid_t h5, const char *group,
                         const char *name) {
  const sn_named_tensor *t = sn_checkpoint_find(file, dotted);
  ck_assert_msg(t != NULL, "no tensor %s", dotted);
  numbers want = h5_numbers(h5, group, name);
  for (size_t i = 0; i < want.count; i++)
    ck_assert_msg((double)((const float *)t->data)[i] == want.at[i], "%s[%zu]", dotted, i);
  sn__free(want.at);
}

START_TEST(weights_go_out_and_come_back) {
  train("");
  sennit_ok("export --checkpoint \"$T/run\" --format safetensors --out \"$T/w.safetensors\"");
  sn_checkpoint *file = weights();
  ck_assert_uint_eq(sn_checkpoint_tensor_count(file), 36);
  hid_t best = h5_open("run/best.h5");
  check_tensor(file, "strokes.lstm.weight_hh_l0_reverse", best, "tensors/variables",
               "strokes/lstm/weight_hh_l0_reverse");
  check_tensor(file, "digit.out.bias", best, "tensors/variables", "digit/out/bias");
  sennit_ok("debug " FILES "--rows 0:8 --init \"$T/w.safetensors\" --out \"$T/step.h5\"");
  hid_t step = h5_open("step.h5");
  check_tensor(file, "strokes.lstm.weight_hh_l0_reverse", step, "variables",
               "strokes/lstm/weight_hh_l0_reverse");
  check_tensor(file, "pixels.phi_1.weight", step, "variables", "pixels/phi_1/weight");
  H5Fclose(best);
  H5Fclose(step);
  sn_checkpoint_free(file);
}
END_TEST

/* Averaged weights are what predictions are made with. */
START_TEST(averages_are_exported) {
  train("--set train.ema=0.9");
  sennit_ok("export --checkpoint \"$T/run/last.h5\" --format safetensors --out "
            "\"$T/w.safetensors\"");
  sn_checkpoint *file = weights();
  hid_t last = h5_open("run/last.h5");
  check_tensor(file, "digit.out.bias", last, "tensors/slots/digit/out/bias", "ema");
  H5Fclose(last);
  sn_checkpoint_free(file);
}
END_TEST

START_TEST(the_header_says_whose_weights) {
  train("");
  const ran *r = sennit("train " FILES "--epochs 1 --out \"$T/hash\" --json");
  ck_assert_int_eq(r->code, 0);
  char hash[65];
  snprintf(hash, sizeof hash, "%s", json_text_at(r->out, "params_sha256"));
  sennit_ok("export --checkpoint \"$T/hash/last.h5\" --format safetensors --out "
            "\"$T/w.safetensors\"");
  static char text[1 << 16];
  run_slurp("w.safetensors", text, sizeof text);
  ck_assert_msg(strstr(text + 8, hash) != NULL, "no %s in %s", hash, text + 8);
  ck_assert_ptr_nonnull(strstr(text + 8, "\"sennit\""));
}
END_TEST

START_TEST(a_checkpoint_is_inspected) {
  train("");
  sennit_ok("inspect \"$T/run\" --json >\"$T/i.json\"");
  static char text[1 << 18];
  run_slurp("i.json", text, sizeof text);
  ck_assert(json_number_at(text, "params") == 19690);
  ck_assert(json_number_at(text, "epochs") == 1);
  ck_assert_str_eq(json_text_at(text, "kind"), "checkpoint");
  ck_assert_double_gt(json_number_at(text, "metrics.digit.accuracy"), 0.1);
  ck_assert_int_eq(cJSON_GetArraySize(json_at(text, "tensors")), 108);
  const ran *r = sennit("inspect \"$T/run/last.h5\"");
  ck_assert_int_eq(r->code, 0);
  ck_assert_ptr_nonnull(strstr(r->out, "strokes/lstm/weight_hh_l0 "));
  ck_assert_ptr_nonnull(strstr(r->out, "10 classes (0 to 9)"));
}
END_TEST

START_TEST(data_is_inspected) {
  const ran *r = sennit("inspect \"$DIGITS/digits_train.h5\"");
  ck_assert_int_eq(r->code, 0);
  ck_assert_ptr_nonnull(strstr(r->out, "/pixels  sequence or set of 1437 rows"));
  ck_assert_ptr_null(strstr(r->out, "row counts differ"));
}
END_TEST

START_TEST(mistakes_are_one_line) {
  sennit_fails(1, "/nowhere: No such file", "inspect /nowhere");
  sennit_fails(2, "onnx is not in version",
               "export --checkpoint x --format onnx --out \"$T/x.onnx\"");
  sennit_fails(1, "", "export --checkpoint /nowhere --format safetensors --out \"$T/x\"");
  sennit_fails(1, "",
               "export --checkpoint \"$DIGITS/digits_train.h5\" --format safetensors --out "
               "\"$T/x\"");
  train("");
  sennit_fails(1, "/nowhere/x",
               "export --checkpoint \"$T/run\" --format safetensors --out "
               "/nowhere/x");
  ck_assert_int_eq(system("cd \"$T/run\" && head -c 4096 best.h5 >cut.h5"), 0);
  sennit_fails(1, "cut.h5", "inspect \"$T/run/cut.h5\"");
  ck_assert_int_eq(system("echo words >\"$T/text\""), 0);
  const ran *r = sennit("inspect \"$T/text\"");
  ck_assert_int_eq(r->code, 1);
  ck_assert_ptr_nonnull(strstr(r->err, "not an HDF5 file"));
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("export");
  TCase *tcase = tcase_create("export");
  tcase_set_timeout(tcase, 120);
  tcase_add_checked_fixture(tcase, run_begin, run_end);
  tcase_add_test(tcase, weights_go_out_and_come_back);
  tcase_add_test(tcase, averages_are_exported);
  tcase_add_test(tcase, the_header_says_whose_weights);
  tcase_add_test(tcase, a_checkpoint_is_inspected);
  tcase_add_test(tcase, data_is_inspected);
  tcase_add_test(tcase, mistakes_are_one_line);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(make_suite)
