/* SPDX-License-Identifier: Apache-2.0 */
/* Measured costs, the page, the trace and the placement file, as the command gives them. */
#include "tests/tools/run_sennit.h"

#define FILES "--data \"$DIGITS/digits_train.h5\" --config \"$DIGITS/digits.yaml\" "

static char text[4 << 20];

static size_t count(const char *in, const char *words) {
  size_t n = 0;
  for (const char *at = in; (at = strstr(at, words)) != NULL; at += strlen(words))
    n++;
  return n;
}

static size_t running(const char *json) {
  size_t n = 0;
  const cJSON *node;
  cJSON_ArrayForEach(node, json_at(json, "nodes")) n +=
      (size_t)cJSON_IsTrue(cJSON_GetObjectItem(node, "runs"));
  return n;
}

START_TEST(costs_are_measured_kept_and_read_again) {
  sennit_ok("plan " FILES "--devices 'cpu*2' --profile 3 --save-profile \"$T/costs.json\" --json "
            ">\"$T/plan.json\"");
  run_slurp("plan.json", text, sizeof text);
  ck_assert(json_number_at(text, "costs.analytic") == 0);
  ck_assert(json_number_at(text, "costs.steps") == 3);
  ck_assert_double_gt(json_number_at(text, "costs.measured_step_ms"), 0);
  ck_assert_double_gt(json_number_at(text, "costs.predicted_step_ms"), 0);
  ck_assert_double_gt(json_number_at(text, "costs.host_ms"), 0);
  sennit_ok("plan " FILES "--devices 'cpu*2' --profile \"$T/costs.json\" --json >\"$T/plan.json\"");
  run_slurp("plan.json", text, sizeof text);
  ck_assert(json_number_at(text, "costs.measured") > 0.8 * (double)running(text));
  ck_assert(json_number_at(text, "costs.analytic") == 0);
  /* Another batch: the same shapes, other extents. */
  sennit_ok("plan " FILES "--devices cpu:0 --threads 1 --set train.batch=16 "
            "--profile \"$T/costs.json\" --json >\"$T/plan.json\"");
}
END_TEST

START_TEST(what_is_no_profile_is_said_in_one_line) {
  run_write("list.json", "[1, 2]");
  run_write("text.json", "costs");
  run_write("other.json", "{\"format\": \"sennit profile\", \"version\": 2, \"rows\": []}");
  run_write("falls.json", "{\"format\": \"sennit profile\", \"version\": 1, \"rows\": [{\"op\": "
                          "\"relu\", \"shapes\": \"x\", \"device\": \"cpu/1\", \"points\": [[2, 1, "
                          "1], [1, 1, 1]]}]}");
  run_write("points.json", "{\"format\": \"sennit profile\", \"version\": 1, \"rows\": [{\"op\": "
                           "\"relu\", \"shapes\": \"x\", \"device\": \"cpu/1\", \"points\": 3}]}");
  sennit_fails(2, "does not say", "plan " FILES "--profile \"$T/list.json\"");
  sennit_fails(2, "not JSON", "plan " FILES "--profile \"$T/text.json\"");
  sennit_fails(2, "another version", "plan " FILES "--profile \"$T/other.json\"");
  sennit_fails(2, "relu", "plan " FILES "--profile \"$T/falls.json\"");
  sennit_fails(2, "points", "plan " FILES "--profile \"$T/points.json\"");
  sennit_fails(2, "cannot read profile", "plan " FILES "--profile \"$T/none.json\"");
  sennit_fails(2, "measure 3 to", "plan " FILES "--profile 1");
  sennit_fails(2, "--save-profile without", "plan " FILES "--save-profile \"$T/c.json\"");
}
END_TEST

START_TEST(the_page_has_every_node_and_loads_nothing) {
  sennit_ok("plan " FILES "--devices 'cpu*2' --objective spread --html \"$T/p.html\" --json "
            ">\"$T/plan.json\"");
  run_slurp("plan.json", text, sizeof text);
  size_t nodes = running(text);
  run_slurp("p.html", text, sizeof text);
  ck_assert_uint_eq(count(text, "<rect class=\"d"), nodes);
  ck_assert_uint_eq(count(text, "<svg"), count(text, "</svg>"));
  ck_assert_uint_eq(count(text, "<script"), 0);
  ck_assert_uint_eq(count(text, "http"), 0);
  ck_assert_uint_eq(count(text, "src="), 0);
  ck_assert_uint_gt(count(text, "<path class=\"c\""), 0); /* a copy is drawn */
  ck_assert_uint_eq(count(text, "class=\"mem\""), 2);
  ck_assert_ptr_nonnull(strstr(text, "strokes/lstm"));
  ck_assert_ptr_nonnull(strstr(text, "What limits the step"));
  sennit_fails(1, "/nowhere/p.html: cannot write", "plan " FILES "--html /nowhere/p.html");
}
END_TEST

START_TEST(limits_and_one_more_device_are_said) {
  const ran *r = sennit("plan " FILES "--devices 'cpu*2'");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_ptr_nonnull(strstr(r->out, "what limits it: "));
  ck_assert_ptr_nonnull(strstr(r->out, "one more device: cpu:2"));
  ck_assert_ptr_nonnull(strstr(r->out, "nothing measured"));
}
END_TEST

START_TEST(a_trace_has_each_node_twice) {
  sennit_ok("train " FILES "--devices 'cpu*2' --objective spread --valid-fraction 0 --set "
            "train.monitor=train.loss --steps 4 "
            "--out \"$T/run\" --trace \"$T/t.json\"");
  sennit_ok("plan " FILES "--devices 'cpu*2' --objective spread --json >\"$T/plan.json\"");
  run_slurp("plan.json", text, sizeof text);
  size_t nodes = running(text), copies = (size_t)cJSON_GetArraySize(json_at(text, "copies"));
  run_slurp("t.json", text, sizeof text);
  size_t slices = 0, copied = 0, measured = 0;
  const cJSON *event;
  cJSON_ArrayForEach(event, json_at(text, "traceEvents")) {
    if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(event, "ph")), "X") != 0) continue;
    slices++;
    measured += cJSON_GetObjectItem(event, "pid")->valueint == 1;
    copied += strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(event, "cat")), "copy") == 0;
    ck_assert_double_ge(cJSON_GetObjectItem(event, "dur")->valuedouble, 0);
  }
  ck_assert_uint_eq(slices, 4 * (2 * nodes + 4));
  ck_assert_uint_eq(measured, 4 * (nodes + 3));
  ck_assert_uint_eq(copied, 4 * 2 * copies);
  ck_assert_uint_gt(copies, 0);
}
END_TEST

/* Watching changes no bit, nor does a plan with other costs. */
START_TEST(a_traced_run_gives_the_same_weights) {
  static const char *const more[] = {"", "--trace \"$T/t.json\"", "--profile 3"};
  char first[80] = "";
  for (size_t i = 0; i < 3; i++) {
    const ran *r =
        sennit("train " FILES
               "--devices 'cpu*2' --steps 4 --valid-fraction 0 --set train.monitor=train.loss "
               "--out \"$T/run%zu\" --json %s",
               i, more[i]);
    ck_assert_msg(r->code == 0, "%s", r->err);
    const char *hash = json_text_at(r->out, "params_sha256");
    if (i == 0) snprintf(first, sizeof first, "%s", hash);
    ck_assert_str_eq(first, hash);
  }
}
END_TEST

static void expect_device(const char *json, const char *module, const char *device) {
  const cJSON *m;
  cJSON_ArrayForEach(m, json_at(json, "modules")) {
    if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(m, "path")), module) != 0) continue;
    ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(m, "device")), device);
    return;
  }
  ck_abort_msg("no module %s", module);
}

START_TEST(a_placement_goes_out_is_edited_and_comes_back) {
  sennit_ok("plan " FILES "--devices 'cpu*2' --objective spread --save-placement \"$T/p.yaml\" "
            "--json >\"$T/a.json\"");
  sennit_ok("plan " FILES "--devices 'cpu*2' --placement \"$T/p.yaml\" --save-placement "
            "\"$T/q.yaml\" --json >\"$T/b.json\"");
  static char a[1 << 20], b[1 << 20];
  run_slurp("a.json", a, sizeof a);
  run_slurp("b.json", b, sizeof b);
  const cJSON *m;
  cJSON_ArrayForEach(m, json_at(a, "modules")) {
    const char *path = cJSON_GetStringValue(cJSON_GetObjectItem(m, "path"));
    if (*path != '\0')
      expect_device(b, path, cJSON_GetStringValue(cJSON_GetObjectItem(m, "device")));
  }
  ck_assert_ptr_nonnull(strstr(b, "pinned by 'strokes/lstm'"));
  /* One line kept, the rest left to the solver. */
  run_write("edited.yaml", "# by hand\n\"strokes\": cpu:1   # all of it\n\"pixels\": auto\n");
  sennit_ok("plan " FILES "--devices 'cpu*2' --set placement.pixels=cpu:1 "
            "--placement \"$T/edited.yaml\" --json >\"$T/c.json\"");
  run_slurp("c.json", a, sizeof a);
  expect_device(a, "strokes/lstm", "cpu:1");
  ck_assert_ptr_null(strstr(a, "pinned by 'pixels'"));
  sennit_ok("train " FILES "--devices 'cpu*2' --steps 1 --valid-fraction 0 --set "
            "train.monitor=train.loss --out \"$T/run\" "
            "--placement \"$T/p.yaml\" --save-placement \"$T/r.yaml\"");
  run_slurp("p.yaml", a, sizeof a);
  run_slurp("r.yaml", b, sizeof b);
  ck_assert_uint_eq(count(a, "\": cpu:"), count(b, "\": cpu:"));
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("explain");
  TCase *tcase = tcase_create("explain");
  tcase_set_timeout(tcase, 120);
  tcase_add_checked_fixture(tcase, run_begin, run_end);
  tcase_add_test(tcase, costs_are_measured_kept_and_read_again);
  tcase_add_test(tcase, what_is_no_profile_is_said_in_one_line);
  tcase_add_test(tcase, the_page_has_every_node_and_loads_nothing);
  tcase_add_test(tcase, limits_and_one_more_device_are_said);
  tcase_add_test(tcase, a_trace_has_each_node_twice);
  tcase_add_test(tcase, a_traced_run_gives_the_same_weights);
  tcase_add_test(tcase, a_placement_goes_out_is_edited_and_comes_back);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(make_suite)
