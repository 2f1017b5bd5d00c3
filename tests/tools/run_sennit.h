/* SPDX-License-Identifier: Apache-2.0 */
/* The built command, run as a user runs it, in a folder of the test's own. */
#ifndef SN_TESTS_TOOLS_RUN_SENNIT_H
#define SN_TESTS_TOOLS_RUN_SENNIT_H

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cJSON.h>

#include "tests/check_sn.h"

typedef struct ran {
  int code; /* 128 + signal as a shell has it */
  char out[32768], err[16384];
} ran;

static char run_folder[64]; /* removed by run_end() */

static inline void run_begin(void) {
  snprintf(run_folder, sizeof run_folder, "/tmp/sn_tools_XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(run_folder));
  setenv("T", run_folder, 1); /* "$T" in command lines */
  setenv("DIGITS", SN_DIGITS, 1);
}

static inline void run_end(void) {
  char line[128];
  if (strncmp(run_folder, "/tmp/sn_tools_", strlen("/tmp/sn_tools_")) != 0) return;
  snprintf(line, sizeof line, "rm -rf %s", run_folder);
  ck_assert_int_eq(system(line), 0);
}

static inline void run_slurp(const char *name, char *text, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", run_folder, name);
  FILE *file = fopen(path, "r");
  ck_assert_msg(file != NULL, "cannot read %s", path);
  size_t got = fread(text, 1, size - 1, file);
  text[got] = '\0';
  fclose(file);
}

/* A file of that name in the folder. */
static inline void run_write(const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", run_folder, name);
  FILE *file = fopen(path, "w");
  ck_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Through the shell, so that a test reads like a terminal: "$T" is the folder, "$DIGITS" the
 * digits'. */
static ran *sennit(const char *format, ...) SN_PRINTF(1, 2);
static ran *sennit(const char *format, ...) {
  static ran result;
  char arguments[2048], line[2600];
  va_list list;
  va_start(list, format);
  vsnprintf(arguments, sizeof arguments, format, list);
  va_end(list);
  snprintf(line, sizeof line, "exec >\"$T/out\" 2>\"$T/err\"; '%s' %s", SN_SENNIT, arguments);
  int status = system(line);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run_slurp("out", result.out, sizeof result.out);
  run_slurp("err", result.err, sizeof result.err);
  return &result;
}

/* Runs and succeeds. */
#define sennit_ok(...)                                                                             \
  do {                                                                                             \
    const ran *ok_ = sennit(__VA_ARGS__);                                                          \
    ck_assert_msg(ok_->code == 0, "exit %d: %s", ok_->code, ok_->err);                             \
  } while (0)

/* Fails with `code` and one line that holds `words`. */
#define sennit_fails(code_, words, ...)                                                            \
  do {                                                                                             \
    const ran *no_ = sennit(__VA_ARGS__);                                                          \
    const char *line_ = last_line(no_->err);                                                       \
    ck_assert_msg(no_->code == (code_), "exit %d: %s", no_->code, no_->err);                       \
    ck_assert_msg(strstr(line_, (words)) != NULL, "'%s' lacks '%s'", line_, (words));              \
    ck_assert_msg(strncmp(line_, "sennit ", 7) == 0, "'%s'", no_->err);                            \
    const char *first_ = no_->err;                                                                 \
    while (strncmp(first_, "warning: ", 9) == 0)                                                   \
      first_ = strchr(first_, '\n') + 1;                                                           \
    ck_assert_msg(first_ == line_, "more than one line: %s", no_->err);                            \
  } while (0)

static inline const char *last_line(const char *text) {
  size_t end = strlen(text);
  ck_assert_msg(end > 0 && text[end - 1] == '\n', "no line: '%s'", text);
  size_t at = end - 1;
  while (at > 0 && text[at - 1] != '\n')
    at--;
  return text + at;
}

/* A value of the JSON that a command printed: "valid.digit.accuracy". The tree is kept until the
 * test ends, which is a process. */
static inline const cJSON *json_at(const char *text, const char *path) {
  static cJSON *kept[256]; /* reachable, so no leak */
  static size_t n_kept;
  ck_assert_uint_lt(n_kept, sizeof kept / sizeof *kept);
  const cJSON *at = kept[n_kept++] = cJSON_Parse(text);
  ck_assert_msg(at != NULL, "not JSON: %s", text);
  char key[64];
  while (*path != '\0') {
    size_t n = strcspn(path, ".");
    snprintf(key, sizeof key, "%.*s", (int)n, path);
    at = cJSON_GetObjectItemCaseSensitive(at, key);
    ck_assert_msg(at != NULL, "no '%s' in %s", key, text);
    path += n + (path[n] == '.');
  }
  return at;
}

static inline double json_number_at(const char *text, const char *path) {
  const cJSON *at = json_at(text, path);
  ck_assert_msg(cJSON_IsNumber(at), "'%s' is no number in %s", path, text);
  return at->valuedouble;
}

static inline const char *json_text_at(const char *text, const char *path) {
  const cJSON *at = json_at(text, path);
  ck_assert_msg(cJSON_IsString(at), "'%s' is no text in %s", path, text);
  return at->valuestring;
}

#endif
