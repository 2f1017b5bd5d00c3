/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/args.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/nearest.h"
#include "core/version.h"

static bool is_option(const arg_row *row) {
  return row->name[0] == '-';
}

static size_t row_of(const arg_command *command, const char *name) {
  for (size_t i = 0; i < command->row_count; i++) {
    if (strcmp(command->rows[i].name, name) == 0) return i;
  }
  return SIZE_MAX;
}

/* ---- values --------------------------------------------------------------------------------- */

static bool parse_whole(const char *text, const char *end, int64_t *out) {
  size_t length = (size_t)(end - text), digits = length;
  bool minus = length > 0 && text[0] == '-';
  if (minus) digits--;
  if (digits == 0 || digits > 18) return false;
  int64_t value = 0;
  for (const char *c = text + minus; c < end; c++) {
    if (*c < '0' || *c > '9') return false;
    value = 10 * value + (*c - '0');
  }
  *out = minus ? -value : value;
  return true;
}

static void join(const char *const *words, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; words[i] != NULL && used < size; i++) {
    const char *between = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
    used += (size_t)snprintf(out + used, size - used, "%s%s", between, words[i]);
  }
}

static size_t word_count(const char *const *words) {
  size_t count = 0;
  while (words != NULL && words[count] != NULL) {
    count++;
  }
  return count;
}

static sn_status parse_choice(const arg_row *row, const char *text, arg_value *value) {
  for (int i = 0; row->choices[i] != NULL; i++) {
    if (strcmp(text, row->choices[i]) != 0) continue;
    value->choice = i;
    return SN_OK;
  }
  char words[200];
  join(row->choices, words, sizeof words);
  for (size_t i = 0; i < word_count(row->later); i++) {
    if (strcmp(text, row->later[i]) == 0)
      return sn_status_make(SN_CODE_CONFIG, "%s %s is not in version %s; use %s", row->name, text,
                            SN_VERSION, words);
  }
  const char *near = sn__nearest(text, row->choices, word_count(row->choices));
  return sn_status_make(SN_CODE_CONFIG, "%s is '%.64s'; use %s%s%s%s", row->name, text, words,
                        near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                        near != NULL ? "'?)" : "");
}

static sn_status parse_value(const arg_row *row, const char *text, arg_value *value) {
  char *end = NULL;
  const char *colon;
  switch (row->kind) {
  case ARG_FLAG: return SN_OK;
  case ARG_TEXT:
    if (*text != '\0') return SN_OK;
    return sn_status_make(SN_CODE_CONFIG, "%s is empty; give %s", row->name,
                          row->value != NULL ? row->value : row->help);
  case ARG_INT:
    if (!parse_whole(text, text + strlen(text), &value->from) || (double)value->from < row->min ||
        value->from > (int64_t)row->max)
      return sn_status_make(SN_CODE_CONFIG, "%s is '%.64s'; give a whole number from %.0f to %.0f",
                            row->name, text, row->min, row->max);
    value->number = (double)value->from;
    return SN_OK;
  case ARG_NUMBER:
    value->number = strtod(text, &end);
    if (end == text || *end != '\0' || !(value->number >= row->min && value->number < row->max))
      return sn_status_make(SN_CODE_CONFIG, "%s is '%.64s'; give a number from %g to less than %g",
                            row->name, text, row->min, row->max);
    return SN_OK;
  case ARG_CHOICE: return parse_choice(row, text, value);
  case ARG_RANGE: break;
  }
  colon = strchr(text, ':');
  if (colon == NULL || !parse_whole(text, colon, &value->from) ||
      !parse_whole(colon + 1, text + strlen(text), &value->to) || value->from < 0 ||
      value->to <= value->from)
    return sn_status_make(SN_CODE_CONFIG, "%s is '%.64s'; give A:B, rows A to before B, B above A",
                          row->name, text);
  return SN_OK;
}

/* ---- parsing -------------------------------------------------------------------------------- */

static sn_status take(arg_set *out, size_t row_index, const char *text) {
  const arg_row *row = &out->command->rows[row_index];
  arg_value *value = &out->values[row_index];
  if (row->absent)
    return sn_status_make(SN_CODE_CONFIG, "%s is not in version %s; leave it out", row->name,
                          SN_VERSION);
  if (value->count > 0 && !row->repeats)
    return sn_status_make(SN_CODE_CONFIG, "%s is given twice; keep one", row->name);
  SN_TRY(parse_value(row, text, value));
  if (value->count > 0 && (value->count & (value->count - 1)) != 0) {
    value->texts[value->count++] = text;
    return SN_OK;
  }
  size_t room = value->count == 0 ? 1 : 2 * value->count; /* full at powers of two */
  const char **grown = sn__realloc(value->texts, room * sizeof *grown);
  if (grown == NULL) return sn_status_out_of_memory();
  value->texts = grown;
  value->texts[value->count++] = text;
  return SN_OK;
}

static sn_status unknown_option(const arg_command *command, const char *given) {
  const char *known[ARG_ROWS_MOST + 1];
  size_t count = 0, length = strcspn(given, "=");
  char word[80];
  snprintf(word, sizeof word, "%.*s", (int)(length < 64 ? length : 64), given);
  for (size_t i = 0; i < command->row_count; i++) {
    if (is_option(&command->rows[i]) && !command->rows[i].absent)
      known[count++] = command->rows[i].name;
  }
  known[count++] = "--help";
  const char *near = sn__nearest(word, known, count);
  if (near != NULL)
    return sn_status_make(SN_CODE_CONFIG, "unknown option '%s'; did you mean '%s'?", word, near);
  return sn_status_make(SN_CODE_CONFIG, "unknown option '%s'; see sennit %s --help", word,
                        command->name);
}

/* The row that an option names; `*out_value` is what stands after '=', or NULL. */
static sn_status find_option(const arg_command *command, const char *given, size_t *out_row,
                             const char **out_value) {
  bool is_long = given[1] == '-';
  const char *equals = is_long ? strchr(given, '=') : NULL;
  size_t length = equals != NULL ? (size_t)(equals - given) : strlen(given);
  for (size_t i = 0; i < command->row_count; i++) {
    const arg_row *row = &command->rows[i];
    bool same = is_long ? is_option(row) && strlen(row->name) == length &&
                              strncmp(row->name, given, length) == 0
                        : row->letter != 0 && row->letter == given[1] && given[2] == '\0';
    if (!same) continue;
    *out_row = i;
    *out_value = equals != NULL ? equals + 1 : NULL;
    return SN_OK;
  }
  return unknown_option(command, given);
}

static sn_status take_option(arg_set *out, int argc, char **argv, int *at) {
  size_t row_index = 0;
  const char *value = NULL;
  const char *given = argv[(*at)++];
  SN_TRY(find_option(out->command, given, &row_index, &value));
  const arg_row *row = &out->command->rows[row_index];
  if (row->absent) return take(out, row_index, "");
  if (row->kind == ARG_FLAG) {
    if (value != NULL)
      return sn_status_make(SN_CODE_CONFIG, "%s takes no value; leave out '=%.64s'", row->name,
                            value);
    return take(out, row_index, "");
  }
  if (value == NULL) {
    if (*at >= argc || strncmp(argv[*at], "--", 2) == 0)
      return sn_status_make(SN_CODE_CONFIG, "%s has no value; give %s %s", row->name, row->name,
                            row->value);
    value = argv[(*at)++];
  }
  return take(out, row_index, value);
}

static sn_status take_place(arg_set *out, const char *text) {
  const arg_command *command = out->command;
  for (size_t i = 0; i < command->row_count; i++) {
    const arg_row *row = &command->rows[i];
    if (!is_option(row) && (out->values[i].count == 0 || row->repeats)) return take(out, i, text);
  }
  return sn_status_make(SN_CODE_CONFIG, "'%.64s' is one argument too many; see sennit %s --help",
                        text, command->name);
}

static sn_status check_together(const arg_set *out) {
  const arg_command *command = out->command;
  for (size_t i = 0; i < command->row_count; i++) {
    const arg_row *row = &command->rows[i];
    bool given = out->values[i].count > 0;
    if (given && row->excludes != NULL && args_given(out, row->excludes))
      return sn_status_make(SN_CODE_CONFIG, "%s and %s are both given; keep one", row->name,
                            row->excludes);
    if (given || !row->required || (row->unless != NULL && args_given(out, row->unless))) continue;
    if (is_option(row))
      return sn_status_make(SN_CODE_CONFIG, "%s is missing; give %s %s (%s)", row->name, row->name,
                            row->value, row->help);
    return sn_status_make(SN_CODE_CONFIG, "%s is missing; give it after sennit %s (%s)", row->name,
                          command->name, row->help);
  }
  return SN_OK;
}

static bool wants_help(int argc, char **argv) {
  for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
  }
  return false;
}

sn_status args_parse(const arg_command *command, int argc, char **argv, arg_set *out_args) {
  assert(command->row_count <= ARG_ROWS_MOST);
  *out_args = (arg_set){.command = command, .help = wants_help(argc, argv)};
  if (out_args->help) return SN_OK;
  bool only_places = false;
  sn_status status = SN_OK;
  for (int at = 0; at < argc && status == SN_OK;) {
    if (!only_places && strcmp(argv[at], "--") == 0) {
      only_places = true;
      at++;
    } else if (!only_places && argv[at][0] == '-' && argv[at][1] != '\0') {
      status = take_option(out_args, argc, argv, &at);
    } else {
      status = take_place(out_args, argv[at++]);
    }
  }
  if (status == SN_OK) status = check_together(out_args);
  if (status != SN_OK) args_free(out_args);
  return status;
}

void args_free(arg_set *args) {
  for (size_t i = 0; i < ARG_ROWS_MOST; i++) {
    sn__free(args->values[i].texts);
    args->values[i] = (arg_value){0};
  }
}

/* ---- reading -------------------------------------------------------------------------------- */

static const arg_value *value_of(const arg_set *args, const char *name) {
  size_t row = row_of(args->command, name);
  assert(row != SIZE_MAX && "the command's table has no such row");
  return &args->values[row];
}

bool args_given(const arg_set *args, const char *name) {
  return value_of(args, name)->count > 0;
}

const char *args_text(const arg_set *args, const char *name) {
  const arg_value *value = value_of(args, name);
  return value->count > 0 ? value->texts[0] : NULL;
}

size_t args_texts(const arg_set *args, const char *name, const char *const **out_texts) {
  const arg_value *value = value_of(args, name);
  *out_texts = value->texts;
  return value->count;
}

int64_t args_int(const arg_set *args, const char *name, int64_t otherwise) {
  const arg_value *value = value_of(args, name);
  return value->count > 0 ? value->from : otherwise;
}

double args_number(const arg_set *args, const char *name, double otherwise) {
  const arg_value *value = value_of(args, name);
  return value->count > 0 ? value->number : otherwise;
}

int args_choice(const arg_set *args, const char *name, int otherwise) {
  const arg_value *value = value_of(args, name);
  return value->count > 0 ? value->choice : otherwise;
}

bool args_range(const arg_set *args, const char *name, int64_t *out_from, int64_t *out_to) {
  const arg_value *value = value_of(args, name);
  if (value->count == 0) return false;
  *out_from = value->from;
  *out_to = value->to;
  return true;
}

sn_status args_find_command(const arg_command *const *commands, size_t count, const char *name,
                            const arg_command **out_command) {
  const char *known[64];
  size_t known_count = 0;
  for (size_t i = 0; i < count; i++) {
    bool here = commands[i]->run != NULL;
    if (strcmp(commands[i]->name, name) == 0) {
      if (!here)
        return sn_status_make(SN_CODE_CONFIG,
                              "command '%s' is not in version %s; see sennit --help", name,
                              SN_VERSION);
      *out_command = commands[i];
      return SN_OK;
    }
    if (here && known_count < 64) known[known_count++] = commands[i]->name;
  }
  const char *near = sn__nearest(name, known, known_count);
  if (near != NULL)
    return sn_status_make(SN_CODE_CONFIG, "unknown command '%.64s'; did you mean '%s'?", name,
                          near);
  return sn_status_make(SN_CODE_CONFIG, "unknown command '%.64s'; see sennit --help", name);
}
