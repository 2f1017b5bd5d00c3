/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what a person reads, the picture, and what it refuses. check_placement.py reads the rest.
 */
#include "tests/tools/run_sennit.h"

#define FILES "--data \"$DIGITS/digits_train.h5\" --config \"$DIGITS/digits.yaml\" "

static void has(const char *text, const char *words) {
  ck_assert_msg(strstr(text, words) != NULL, "lacks '%s':\n%s", words, text);
}

START_TEST(tables_say_where_and_why) {
  const ran *r = sennit("plan " FILES "--devices 'cpu*2' --set placement.strokes=cpu:1 "
                        "--set placement.trunk=cpu:0");
  ck_assert_msg(r->code == 0, "%s", r->err);
  has(r->out, "pinned by 'strokes'");
  has(r->out, "strokes/segment_reduce");
  has(r->out, "arena over live bytes");
  has(r->out, "predicted step");
  has(r->out, "lower bound");
  const char *line = last_line(r->out);
  ck_assert_msg(strstr(line, "2 devices") != NULL, "the last line is '%s'", line);
}
END_TEST

START_TEST(the_time_objective_never_loses) {
  sennit_ok("plan " FILES "--devices 'cpu*2' --json >\"$T/plan.json\"");
  static char text[1 << 20];
  run_slurp("plan.json", text, sizeof text);
  double step = json_number_at(text, "predicted_step_ms");
  ck_assert_double_le(step, json_number_at(text, "one_device_ms"));
  ck_assert_double_le(json_number_at(text, "lower_bound_ms"), step);
  ck_assert_int_eq(cJSON_GetArraySize(json_at(text, "devices")), 2);
}
END_TEST

static size_t count(const char *text, const char *words) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, words)) != NULL; at += strlen(words))
    n++;
  return n;
}

START_TEST(the_picture_has_every_node_and_copy) {
  sennit_ok("plan " FILES "--devices 'cpu*2' --objective spread --dot \"$T/plan.dot\" --json "
            ">\"$T/plan.json\"");
  static char dot[1 << 20], json[1 << 20];
  run_slurp("plan.dot", dot, sizeof dot);
  run_slurp("plan.json", json, sizeof json);
  const cJSON *node;
  size_t nodes = 0, copies = 0, edges = 0;
  cJSON_ArrayForEach(node, json_at(json, "nodes")) {
    const cJSON *op = cJSON_GetObjectItem(node, "op");
    nodes++;
    copies += strcmp(cJSON_GetStringValue(op), "copy") == 0;
    edges += (size_t)cJSON_GetArraySize(cJSON_GetObjectItem(node, "inputs"));
  }
  ck_assert_uint_gt(copies, 2);
  ck_assert_int_eq(strncmp(dot, "digraph plan {", 14), 0);
  ck_assert_uint_eq(count(dot, "shape=ellipse"), copies);
  ck_assert_uint_eq(count(dot, "tooltip="), nodes);
  ck_assert_uint_eq(count(dot, " -> "), edges);
  ck_assert_uint_eq(count(dot, "{"), count(dot, "}"));
}
END_TEST

/* H3 as a model file is H3. */
START_TEST(h3_files_build_h3) {
  static const struct {
    const char *size;
    double params;
  } sizes[] = {{"S", 40970}, {"M", 466570}};
  for (size_t i = 0; i < 2; i++) {
    sennit_ok("bench h3 --size %s --write \"$T/%s\"", sizes[i].size, sizes[i].size);
    const ran *r = sennit("train --data \"$T/%s/data.h5\" --config \"$T/%s/model.yaml\" --steps 1 "
                          "--valid-fraction 0 --out \"$T/run%s\" --json",
                          sizes[i].size, sizes[i].size, sizes[i].size);
    ck_assert_msg(r->code == 0, "%s", r->err);
    ck_assert(json_number_at(r->out, "params") == sizes[i].params);
  }
}
END_TEST

/* What is recomputed is in the table, in JSON, and in the error where it is the remedy. */
START_TEST(recomputing_is_said) {
  const ran *r = sennit("plan " FILES "--recompute strokes/lstm,pixels+trunk");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_ptr_nonnull(strstr(r->out, "the only device; recomputed"));
  ck_assert_ptr_nonnull(strstr(r->out, "pixels+trunk"));
  ck_assert_ptr_nonnull(strstr(r->out, "ms more a step: as asked for"));
  r = sennit("train " FILES "--set train.recompute=[pixels] --steps 1 --out \"$T/again\" --json");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert(json_number_at(r->out, "recompute.bytes") > 0);
  ck_assert(json_number_at(r->out, "recompute.ms") > 0);
  char hex[65];
  snprintf(hex, sizeof hex, "%s", json_text_at(r->out, "params_sha256"));
  r = sennit("train " FILES "--steps 1 --out \"$T/kept\" --json");
  ck_assert_ptr_null(strstr(r->out, "\"recompute\""));
  ck_assert_str_eq(json_text_at(r->out, "params_sha256"), hex);
  r = sennit("train " FILES "--micro-batches 2 --pipeline 1f1b --batch 8 --recompute pixels "
             "--steps 1 --out \"$T/parts\" --json");
  ck_assert_msg(r->code == 0, "%s", r->err); /* the other options stay */
  sennit_fails(1, "--recompute auto (", "plan " FILES "--devices cpu:0=6300KiB --recompute none");
  sennit_fails(2, "did you mean 'strokes'", "plan " FILES "--recompute stroke");
  sennit_fails(2, "it stands alone", "plan " FILES "--recompute none,strokes");
  sennit_fails(2, "recompute", "plan " FILES "--recompute strokes,,pixels");
  sennit_fails(2, "'pixels+' is empty", "plan " FILES "--recompute strokes,pixels+");
}
END_TEST

START_TEST(mistakes_are_one_line) {
  sennit_fails(2, "did you mean 'strokes'", "plan " FILES "--set placement.stroke=cpu:0");
  sennit_fails(2, "cpu:3", "plan " FILES "--devices 'cpu*2' --set placement.strokes=cpu:3");
  sennit_fails(1, "/nowhere/p.dot: cannot write", "plan " FILES "--dot /nowhere/p.dot");
}
END_TEST

#define NOWHERE "--data /nowhere.h5 --config \"$DIGITS/digits.yaml\" "

/* Nothing is opened for words that cannot do. */
START_TEST(mistakes_come_before_data) {
  sennit_fails(2, "computes nothing",
               "train " NOWHERE "--devices 'cpu:0,null:0' --out \"$T/none\"");
  sennit_fails(2, "computes nothing", "debug " NOWHERE "--devices null:0 --rows 0:1 --out /no");
  sennit_fails(2, "computes nothing", "eval --checkpoint /no --data /no --devices null:0");
  sennit_fails(2, "computes nothing", "bench h3 --size S --devices null:0");
  sennit_fails(2, "computes nothing", "plan " NOWHERE "--devices 'null*2' --profile 5");
  sennit_fails(2, "--micro-batches 4", "train " NOWHERE "--pipeline zb --out \"$T/none\"");
  sennit_fails(2, "3 to 100000 steps", "plan " NOWHERE "--profile 2");
  sennit_fails(2, "without --profile", "plan " NOWHERE "--save-profile \"$T/p.json\"");
  sennit_ok("plan " FILES "--devices 'null*2'");
}
END_TEST

/* What does not fit is said by the plan, of the very batches, and not by a step on its way. */
START_TEST(caps_hold_before_the_first_step) {
  /* A whole batch fits, but not beside the sums of gradients that its parts need. */
  sennit_ok("train " FILES "--micro-batches 4 --steps 1 --devices cpu:0=7200KiB --out \"$T/sums\"");
  sennit_fails(1, "no placement found", "bench h3 --size S --steps 1 --devices cpu:0=1536KiB");
  sennit_fails(1, "plan: cpu:0 has 8.00 MiB",
               "debug " FILES "--rows 0:512 --out \"$T/s.h5\" --devices cpu:0=8MiB");
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("plan");
  TCase *tcase = tcase_create("plan");
  tcase_set_timeout(tcase, 120);
  tcase_add_checked_fixture(tcase, run_begin, run_end);
  tcase_add_test(tcase, tables_say_where_and_why);
  tcase_add_test(tcase, the_time_objective_never_loses);
  tcase_add_test(tcase, the_picture_has_every_node_and_copy);
  tcase_add_test(tcase, h3_files_build_h3);
  tcase_add_test(tcase, recomputing_is_said);
  tcase_add_test(tcase, mistakes_are_one_line);
  tcase_add_test(tcase, mistakes_come_before_data);
  tcase_add_test(tcase, caps_hold_before_the_first_step);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(make_suite)
