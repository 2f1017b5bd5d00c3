/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: each command is a table of rows; parsing, `--help` and the message for a
 * mistake all come from it. Every mistake is SN_CODE_CONFIG, in one line, before anything is
 * opened. */
#ifndef SN_TOOLS_SENNIT_ARGS_H
#define SN_TOOLS_SENNIT_ARGS_H

#include <stdio.h>

#include "core/status.h"

typedef enum arg_kind {
  ARG_FLAG,   /* no value */
  ARG_TEXT,   /* any text but the empty one */
  ARG_INT,    /* a whole number from min to max */
  ARG_NUMBER, /* a number from min to less than max */
  ARG_CHOICE, /* one of `choices` */
  ARG_RANGE   /* A:B, rows A to before B */
} arg_kind;

/* What a command does with the file that a TEXT names. */
typedef enum arg_writes {
  ARG_READS,
  ARG_OPENS,   /* opens it and writes: /dev/stdout is fine */
  ARG_REPLACES /* renames a finished file to it */
} arg_writes;

typedef struct arg_row {
  const char *name; /* "--data"; without dashes it is a place: "FILE" */
  char letter;      /* 'o' for -o; 0: none */
  arg_kind kind;
  const char *value; /* what the value is called in the help: "FILE" */
  const char *help;
  double min, max;
  const char *const *choices; /* NULL at the end */
  const char *const *later;   /* choices that this version does not have yet */
  bool required;              /* unless the option `unless` is given */
  const char *unless;
  const char *excludes; /* the option it cannot stand beside */
  bool repeats;
  arg_writes writes;
  bool absent; /* this version does not have it yet: not in the help, a mistake when given */
} arg_row;

enum { ARG_ROWS_MOST = 40 };

struct arg_set;

typedef struct arg_command {
  const char *name;
  const char *summary; /* one line, for the list of commands */
  const char *details; /* below the usage; may be NULL */
  const arg_row *rows;
  size_t row_count;
  /* NULL: this version does not have the command yet, and the list leaves it out. */
  sn_status (*run)(const struct arg_set *args);
} arg_command;

typedef struct arg_value {
  size_t count;
  const char **texts; /* as given, borrowed from argv */
  double number;      /* INT, NUMBER */
  int64_t from, to;   /* INT: from; RANGE: both */
  int choice;         /* CHOICE */
} arg_value;

typedef struct arg_set {
  const arg_command *command;
  bool help; /* --help was given: nothing else was checked */
  arg_value values[ARG_ROWS_MOST];
} arg_set;

/* `argv` begins after the command's name and must outlive `out_args`. */
sn_status args_parse(const arg_command *command, int argc, char **argv, arg_set *out_args);
void args_free(arg_set *args);
/* CONFIG: a file to be written is one that is read, a folder, or a device that cannot be replaced.
 */
sn_status args_check_files(const arg_set *args);

/* By the row's name, which must be in the table. */
bool args_given(const arg_set *args, const char *name);
const char *args_text(const arg_set *args, const char *name); /* NULL when not given */
size_t args_texts(const arg_set *args, const char *name, const char *const **out_texts);
int64_t args_int(const arg_set *args, const char *name, int64_t otherwise);
double args_number(const arg_set *args, const char *name, double otherwise);
int args_choice(const arg_set *args, const char *name, int otherwise); /* index into `choices` */
bool args_range(const arg_set *args, const char *name, int64_t *out_from, int64_t *out_to);

void args_help(const arg_command *command, FILE *out);
/* The list of commands. */
void args_overview(const arg_command *const *commands, size_t count, FILE *out);

/* The command called `name`; a mistake names the nearest. */
sn_status args_find_command(const arg_command *const *commands, size_t count, const char *name,
                            const arg_command **out_command);

#endif
