/* SPDX-License-Identifier: Apache-2.0 */
/* `--help`, from the same rows that parsing reads. */
#include <string.h>

#include "tools/sennit/args.h"

enum { HELP_WIDTH = 80, HELP_INDENT = 26 };

/* Words of `text` from column `indent` on, the first line already `at` columns in. */
static void put_wrapped(FILE *out, const char *text, int at, int indent) {
  while (*text != '\0') {
    int length = (int)strcspn(text, " \n");
    if (at > indent && at + 1 + length > HELP_WIDTH) {
      fprintf(out, "\n%*s", indent, "");
      at = indent;
    } else if (at > indent) {
      fputc(' ', out);
      at++;
    }
    fprintf(out, "%.*s", length, text);
    at += length;
    text += length;
    text += strspn(text, " \n");
  }
  fputc('\n', out);
}

static int put_name(FILE *out, const arg_row *row) {
  int at = 2;
  fputs("  ", out);
  if (row->letter != 0) at += fprintf(out, "-%c, ", row->letter);
  at += fprintf(out, "%s", row->name);
  if (row->name[0] != '-') return at;
  if (row->kind == ARG_CHOICE) {
    for (size_t i = 0; row->choices[i] != NULL; i++) {
      at += fprintf(out, "%c%s", i == 0 ? ' ' : '|', row->choices[i]);
    }
  } else if (row->kind != ARG_FLAG) {
    at += fprintf(out, " %s", row->value);
  }
  return at;
}

static void put_row(FILE *out, const arg_row *row) {
  int at = put_name(out, row);
  if (at > HELP_INDENT - 2) {
    fputc('\n', out);
    at = 0;
  }
  fprintf(out, "%*s", HELP_INDENT - at, "");
  char help[400];
  snprintf(help, sizeof help, "%s%s", row->help, row->repeats ? " (may be given again)" : "");
  put_wrapped(out, help, HELP_INDENT, HELP_INDENT);
}

static void put_usage(FILE *out, const arg_command *command) {
  bool others = false;
  fprintf(out, "Usage: sennit %s", command->name);
  for (size_t i = 0; i < command->row_count; i++) {
    const arg_row *row = &command->rows[i];
    if (row->absent) continue;
    bool place = row->name[0] != '-';
    if (!row->required) {
      if (place) fprintf(out, " [%s]", row->name);
      others = others || !place;
      continue;
    }
    fprintf(out, place ? " %s" : " %s %s", row->name, row->value);
  }
  fprintf(out, others ? " [options]\n" : "\n");
}

void args_help(const arg_command *command, FILE *out) {
  put_usage(out, command);
  fputc('\n', out);
  char summary[200];
  snprintf(summary, sizeof summary, "sennit %s: %s.", command->name, command->summary);
  put_wrapped(out, summary, 0, 0);
  if (command->details != NULL) {
    fputc('\n', out);
    put_wrapped(out, command->details, 0, 0);
  }
  fputc('\n', out);
  for (size_t i = 0; i < command->row_count; i++) {
    if (!command->rows[i].absent) put_row(out, &command->rows[i]);
  }
  static const arg_row help = {.name = "--help", .letter = 'h', .help = "show this"};
  put_row(out, &help);
}

void args_overview(const arg_command *const *commands, size_t count, FILE *out) {
  fputs("Usage: sennit COMMAND ...\n\n"
        "Trains networks braided from vectors, sequences and sets, on one device or several.\n\n",
        out);
  for (size_t i = 0; i < count; i++) {
    if (commands[i]->run != NULL)
      fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
  }
  fputs("\n  --help     show this; sennit COMMAND --help shows the options of a command\n"
        "  --version  show the version\n",
        out);
}
