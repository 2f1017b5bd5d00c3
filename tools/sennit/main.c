/* SPDX-License-Identifier: Apache-2.0 */
/* The sennit command: finds the command, reads its options, runs it, and turns what went wrong into
 * one line and an exit code. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/version.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/stop.h"

/* One line whatever the message holds: options come from anyone. */
static int complain(const char *command, sn_status status) {
  fprintf(stderr, "sennit%s%s: ", command != NULL ? " " : "", command != NULL ? command : "");
  for (const char *c = sn_status_message(status); *c != '\0'; c++) {
    unsigned char byte = (unsigned char)*c;
    fputc(byte < 0x20 || byte == 0x7f ? '?' : byte, stderr);
  }
  fputc('\n', stderr);
  int code = sn_code_exit(sn_status_code(status));
  sn_status_free(status);
  return code;
}

/* What was printed has to have got there: a full disk is no success. */
static int finish(const char *command, int code) {
  bool lost = fflush(stdout) != 0 || ferror(stdout) != 0;
  if (code == 0 && lost)
    return complain(command, sn_status_make(SN_CODE_IO, "cannot write to standard output: %s",
                                            strerror(errno)));
  return stop_exit_code(code);
}

static int run(const arg_command *command, int argc, char **argv) {
  arg_set args;
  sn_status status = args_parse(command, argc, argv, &args);
  if (status != SN_OK) return complain(command->name, status);
  if (args.help) {
    args_help(command, stdout);
    return finish(command->name, 0);
  }
  status = args_check_files(&args);
  if (status == SN_OK) status = command->run(&args);
  args_free(&args);
  if (status != SN_OK) {
    fflush(stdout);
    return complain(command->name, status);
  }
  return finish(command->name, 0);
}

int main(int argc, char **argv) {
  stop_install();
  if (argc < 2)
    return complain(NULL, sn_status_make(SN_CODE_CONFIG, "no command is given; see sennit --help"));
  const char *first = argv[1];
  bool asks =
      strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0;
  if (asks && argc == 2) {
    args_overview(sn__commands, sn__command_count, stdout);
    return finish(NULL, 0);
  }
  if (strcmp(first, "--version") == 0) {
    printf("sennit %s\n", SN_VERSION);
    return finish(NULL, 0);
  }
  if (first[0] == '-' && !asks)
    return complain(
        NULL, sn_status_make(SN_CODE_CONFIG,
                             "unknown option '%.64s' before a command; see sennit --help", first));
  const arg_command *command = NULL;
  const char *name = asks ? argv[2] : first;
  sn_status status = args_find_command(sn__commands, sn__command_count, name, &command);
  if (status != SN_OK) return complain(NULL, status);
  if (asks) {
    args_help(command, stdout);
    return finish(command->name, 0);
  }
  return run(command, argc - 2, argv + 2);
}
