/* SPDX-License-Identifier: Apache-2.0 */
/* The built command, run as a user runs it: exit code, and one line where one is promised. */
#include <stdio.h>
#include <sys/wait.h>

#include <cJSON.h>

#include "core/version.h"
#include "tests/check_sn.h"

typedef struct outcome {
  int code;
  char out[16384], err[4096];
} outcome;

static void slurp(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "r");
  ck_assert_ptr_nonnull(file);
  size_t got = fread(text, 1, size - 1, file);
  text[got] = '\0';
  fclose(file);
}

/* Through the shell, so that a test reads like a terminal. */
static outcome run(const char *arguments) {
  static outcome result;
  char folder[] = "/tmp/sn_command_XXXXXX", line[1200], path[64];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(line, sizeof line, "exec >%s/out 2>%s/err; '%s' %s", folder, folder, SN_SENNIT,
           arguments);
  int status = system(line);
  ck_assert_msg(WIFEXITED(status), "%s: status %d", line, status);
  result.code = WEXITSTATUS(status);
  snprintf(path, sizeof path, "%s/out", folder);
  slurp(path, result.out, sizeof result.out);
  remove(path);
  snprintf(path, sizeof path, "%s/err", folder);
  slurp(path, result.err, sizeof result.err);
  remove(path);
  remove(folder);
  return result;
}

static void fails(const char *arguments, int code, const char *start, const char *words) {
  outcome got = run(arguments);
  ck_assert_msg(got.code == code, "sennit %s: exit %d, %s", arguments, got.code, got.err);
  ck_assert_msg(strncmp(got.err, start, strlen(start)) == 0, "sennit %s: %s", arguments, got.err);
  ck_assert_msg(strstr(got.err, words) != NULL, "sennit %s: '%s' lacks '%s'", arguments, got.err,
                words);
  size_t length = strlen(got.err);
  ck_assert_msg(length > 0 && strchr(got.err, '\n') == got.err + length - 1, "not one line: %s",
                got.err);
  ck_assert_msg(got.out[0] == '\0', "sennit %s prints %s", arguments, got.out);
}

START_TEST(usage_mistakes_are_one_line_and_two) {
  fails("", 2, "sennit: ", "see sennit --help");
  fails("devcies", 2, "sennit: ", "did you mean 'devices'?");
  fails("--jsn", 2, "sennit: ", "unknown option '--jsn'");
  fails("place", 2, "sennit place: ", "FILE");
  fails("help devcies", 2, "sennit: ", "did you mean 'devices'?");
  fails("devices --jsn", 2, "sennit devices: ", "did you mean '--json'?");
  fails("devices --threads 0", 2, "sennit devices: ", "--threads is '0'");
  fails("devices --devices", 2, "sennit devices: ", "no value");
  fails("devices --devices cpu:0,cpu:0", 2, "sennit devices: ", "cpu:0");
  fails("devices --devices gpu:0", 2, "sennit devices: ", "unknown kind");
  fails("devices --devices tpu*2", 2, "sennit devices: ", "unknown kind");
  fails("inspect ''", 2, "sennit inspect: ", "FILE is empty; give HDF5 file");
  fails("devices extra", 2, "sennit devices: ", "too many");
  fails("\"$(printf 'a\\nb')\"", 2, "sennit: ", "unknown command 'a");
}
END_TEST

START_TEST(help_and_version_succeed) {
  outcome got = run("--help");
  ck_assert_int_eq(got.code, 0);
  ck_assert_ptr_nonnull(strstr(got.out, "  devices "));
  ck_assert_ptr_nonnull(strstr(got.out, "  place "));
  got = run("--version");
  ck_assert_int_eq(got.code, 0);
  ck_assert_str_eq(got.out, "sennit " SN_VERSION "\n");
  got = run("devices --help");
  ck_assert_int_eq(got.code, 0);
  ck_assert_ptr_nonnull(strstr(got.out, "Usage: sennit devices [options]\n"));
  got = run("help devices");
  ck_assert_int_eq(got.code, 0);
}
END_TEST

START_TEST(devices_as_words_and_as_json) {
  outcome got = run("devices --devices 'cpu*2'");
  ck_assert_int_eq(got.code, 0);
  ck_assert_ptr_nonnull(strstr(got.out, "cpu:1 "));
  ck_assert_ptr_nonnull(strstr(got.out, "cuda  "));
  ck_assert_str_eq(got.err, "");
  got = run("devices --devices 'null*3' --json");
  ck_assert_int_eq(got.code, 0);
  cJSON *root = cJSON_Parse(got.out);
  ck_assert_ptr_nonnull(root);
  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(root, "devices")), 3);
  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(root, "links")), 6);
  cJSON_Delete(root);
}
END_TEST

START_TEST(a_full_disk_is_no_success) {
  outcome got = run("devices --json >/dev/full");
  ck_assert_int_eq(got.code, 1);
  ck_assert_ptr_nonnull(strstr(got.err, "No space left"));
  got = run("--help >/dev/full");
  ck_assert_int_eq(got.code, 1);
}
END_TEST

static Suite *command_suite(void) {
  Suite *suite = suite_create("command");
  TCase *tcase = tcase_create("command");
  tcase_set_timeout(tcase, 60);
  tcase_add_test(tcase, usage_mistakes_are_one_line_and_two);
  tcase_add_test(tcase, help_and_version_succeed);
  tcase_add_test(tcase, devices_as_words_and_as_json);
  tcase_add_test(tcase, a_full_disk_is_no_success);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(command_suite)
