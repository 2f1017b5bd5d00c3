/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "core/version.h"
#include "tests/check_sn.h"
#include "tests/fail_alloc.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/json.h"
#include "tools/sennit/ui.h"

static const arg_command *table(const char *name) {
  for (size_t i = 0; i < sn__command_count; i++) {
    if (strcmp(sn__commands[i]->name, name) == 0) return sn__commands[i];
  }
  ck_abort_msg("no command %s", name);
  return NULL;
}

/* Parses words separated by blanks, which must stay while the result is used. */
static sn_status parse(const char *name, char *line, arg_set *out) {
  static char *argv[64];
  int argc = 0;
  for (char *word = strtok(line, " "); word != NULL && argc < 64; word = strtok(NULL, " ")) {
    argv[argc++] = word;
  }
  return args_parse(table(name), argc, argv, out);
}

static void refuses(const char *name, const char *line, const char *words) {
  char copy[400];
  arg_set args;
  snprintf(copy, sizeof copy, "%s", line);
  sn_status status = parse(name, copy, &args);
  ck_assert_msg(sn_status_code(status) == SN_CODE_CONFIG, "%s %s gives %s", name, line,
                sn_status_message(status));
  ck_assert_msg(strstr(sn_status_message(status), words) != NULL, "%s %s: '%s' lacks '%s'", name,
                line, sn_status_message(status), words);
  ck_assert_ptr_null(strchr(sn_status_message(status), '\n'));
  sn_status_free(status);
}

START_TEST(reads_a_full_line) {
  char line[] =
      "--data a.h5 --data=b.h5 --data c.h5 --config m.yaml --out run --devices cpu*2 --seed 7 "
      "--valid-fraction 0.25 --objective spread --set train.batch=3 --set trunk.dropout=0 --json";
  arg_set args;
  const char *const *texts;
  ck_sn_ok(parse("train", line, &args));
  ck_assert_uint_eq(args_texts(&args, "--data", &texts), 3);
  ck_assert_str_eq(texts[1], "b.h5");
  ck_assert_str_eq(texts[2], "c.h5");
  ck_assert_uint_eq(args_texts(&args, "--set", &texts), 2);
  ck_assert_str_eq(texts[0], "train.batch=3");
  ck_assert_int_eq(args_int(&args, "--seed", 0), 7);
  ck_assert_int_eq(args_int(&args, "--steps", -1), -1);
  ck_assert_double_eq(args_number(&args, "--valid-fraction", 0), 0.25);
  ck_assert_int_eq(args_choice(&args, "--objective", 0), 1);
  ck_assert_int_eq(args_choice(&args, "--precision", 5), 5);
  ck_assert(args_given(&args, "--json") && !args_given(&args, "--resume"));
  ck_assert_str_eq(args_text(&args, "--devices"), "cpu*2");
  ck_assert_ptr_null(args_text(&args, "--init"));
  args_free(&args);
}
END_TEST

START_TEST(reads_places_letters_and_ranges) {
  arg_set args;
  int64_t from = 0, to = 0;
  char init[] = "data.h5 -o model.yaml", dashes[] = "-- --odd.h5",
       debug[] = "--data d --config m --out o --rows 3:10",
       c_model[] = "--data d --model ./m.so --out o";
  ck_sn_ok(parse("init", init, &args));
  ck_assert_str_eq(args_text(&args, "FILE"), "data.h5");
  ck_assert_str_eq(args_text(&args, "--output"), "model.yaml");
  args_free(&args);
  ck_sn_ok(parse("inspect", dashes, &args));
  ck_assert_str_eq(args_text(&args, "FILE"), "--odd.h5");
  args_free(&args);
  ck_sn_ok(parse("debug", debug, &args));
  ck_assert(args_range(&args, "--rows", &from, &to));
  ck_assert_int_eq(from, 3);
  ck_assert_int_eq(to, 10);
  args_free(&args);
  ck_sn_ok(parse("train", c_model, &args));
  args_free(&args);
}
END_TEST

START_TEST(names_each_mistake) {
  refuses("train", "--dta a", "unknown option '--dta'; did you mean '--data'?");
  refuses("train", "--zzzzzzzz", "unknown option '--zzzzzzzz'; see sennit train --help");
  refuses("train", "-x", "unknown option '-x'");
  refuses("train", "--data", "--data has no value; give --data FILE");
  refuses("train", "--data --out", "--data has no value");
  refuses("train", "--config m --out o", "--data is missing; give --data FILE");
  refuses("train", "--data d --out o", "--config is missing");
  refuses("train", "--batch 0", "--batch is '0'; give a whole number from 1");
  refuses("train", "--batch 1e3", "--batch is '1e3'");
  refuses("train", "--seed -1", "--seed is '-1'; give a whole number from 0");
  refuses("train", "--batch 99999999999999999999", "whole number");
  refuses("train", "--valid-fraction 1", "from 0 to less than 1");
  refuses("train", "--valid-fraction nan", "from 0 to less than 1");
  refuses("train", "--objective tme", "use time or spread (did you mean 'time'?)");
  refuses("train", "--seed 1 --seed 2", "--seed is given twice");
  refuses("train", "--json=yes", "--json takes no value");
  refuses("train", "--data=", "--data is empty");
  refuses("train", "--data d --config m --out o --valid v --valid-fraction 0.1", "keep one");
  refuses("train", "extra", "'extra' is one argument too many");
  refuses("inspect", "", "FILE is missing");
  refuses("debug", "--rows 5:5", "give A:B");
  refuses("debug", "--rows -1:5", "give A:B");
  refuses("bench", "h4 --size S", "WORK is 'h4'; use h3 or inception");
}
END_TEST

START_TEST(says_what_this_version_lacks) {
  refuses("export", "--format onnx",
          "--format onnx is not in version " SN_VERSION "; use safetensors");
  const arg_command *found;
  ck_sn_fails(args_find_command(sn__commands, sn__command_count, "devcies", &found), SN_CODE_CONFIG,
              "did you mean 'devices'?");
  ck_sn_ok(args_find_command(sn__commands, sn__command_count, "devices", &found));
}
END_TEST

static char *help_of(const arg_command *command) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  args_help(command, out);
  fclose(out);
  return text;
}

START_TEST(help_shows_every_option_that_is_here) {
  for (size_t i = 0; i < sn__command_count; i++) {
    const arg_command *command = sn__commands[i];
    char *text = help_of(command);
    for (size_t r = 0; r < command->row_count; r++) {
      bool shown = strstr(text, command->rows[r].name) != NULL;
      ck_assert_msg(shown != command->rows[r].absent, "%s %s:\n%s", command->name,
                    command->rows[r].name, text);
    }
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
      ck_assert_msg(strlen(line) <= 80 || strncmp(line, "Usage", 5) == 0, "long line: %s", line);
    }
    free(text);
  }
  char help[] = "--batch 0 --help";
  arg_set args;
  ck_sn_ok(parse("train", help, &args));
  ck_assert(args.help);
  args_free(&args);
}
END_TEST

static sn_status parse_and_free(void *arg) {
  (void)arg;
  char line[] = "--data a --data b --data c --data d --data e --config m --out o --json";
  arg_set args;
  SN_TRY(parse("train", line, &args));
  args_free(&args);
  return SN_OK;
}

static sn_status build_json(void *arg) {
  json_report report;
  SN_TRY(json_create(&report));
  cJSON *list = json_list(&report, report.root, "list");
  cJSON *item = json_object(&report, list, NULL);
  json_text(&report, item, "name", "a \"quoted\" one");
  json_text(&report, item, "none", NULL);
  json_number(&report, item, "pi", 3.25);
  json_number(&report, item, "nan", (double)NAN);
  json_int(&report, item, "big", INT64_C(9007199254740993));
  json_bool(&report, item, "yes", true);
  sn_status status = json_print(&report, arg);
  json_free(&report);
  return status;
}

START_TEST(survives_every_failing_allocation) {
  ck_assert_int_gt(sn_fail_alloc_every_call(parse_and_free, NULL), 3);
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  ck_assert_int_gt(sn_fail_alloc_every_call(build_json, out), 10);
  fclose(out);
  ck_assert_str_eq(text, "{\"list\":[{\"name\":\"a \\\"quoted\\\" one\",\"none\":null,\"pi\":3.25,"
                         "\"nan\":null,\"big\":9007199254740993,\"yes\":true}]}\n");
  free(text);
}
END_TEST

START_TEST(words_of_figures) {
  char out[UI_WORDS];
  ck_assert_str_eq(ui_bytes(0, out), "0 B");
  ck_assert_str_eq(ui_bytes(1536, out), "1.5 KiB");
  ck_assert_str_eq(ui_bytes(200.0 * 1024 * 1024, out), "200 MiB");
  ck_assert_str_eq(ui_seconds(0.0123, out), "12.30 ms");
  ck_assert_str_eq(ui_seconds(0, out), "0 ns");
  ck_assert_str_eq(ui_clock(65, out), "1:05");
  ck_assert_str_eq(ui_clock(3909, out), "1:05:09");
  ck_assert_str_eq(ui_clock(1.0 / 0.0, out), "0:00");
  ck_assert_str_eq(ui_rate(1.5e9, "FLOP/s", out), "1.5 GFLOP/s");
  ck_assert_str_eq(ui_rate(12, "", out), "12");
}
END_TEST

static Suite *args_suite(void) {
  Suite *suite = suite_create("args");
  TCase *tcase = tcase_create("args");
  tcase_add_test(tcase, reads_a_full_line);
  tcase_add_test(tcase, reads_places_letters_and_ranges);
  tcase_add_test(tcase, names_each_mistake);
  tcase_add_test(tcase, says_what_this_version_lacks);
  tcase_add_test(tcase, help_shows_every_option_that_is_here);
  tcase_add_test(tcase, survives_every_failing_allocation);
  tcase_add_test(tcase, words_of_figures);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(args_suite)
