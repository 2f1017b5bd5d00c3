/* SPDX-License-Identifier: Apache-2.0 */
/* sennit inspect: a data file or a checkpoint, for whoever has it in hand. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "io/checkpoint.h"
#include "io/inspect.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/inspect_checkpoint.h"

static sn_status inspect_data(const char *path, bool json) {
  char *text = NULL;
  sn_status status = sn_inspect_file(path, json, &text);
  if (text != NULL) fputs(text, stdout);
  if (text != NULL && *text != '\0' && text[strlen(text) - 1] != '\n') fputc('\n', stdout);
  sn__free(text);
  return status;
}

sn_status cmd_inspect(const arg_set *args) {
  const char *path = args_text(args, "FILE");
  bool json = args_given(args, "--json");
  struct stat info;
  if (stat(path, &info) != 0)
    return sn_status_make(errno == ENOENT ? SN_CODE_NOT_FOUND : SN_CODE_IO, "%s: %s", path,
                          strerror(errno));
  bool folder = S_ISDIR(info.st_mode); /* of a run: its best or last checkpoint */
  if (folder || sn_checkpoint_probe(path)) return inspect_checkpoint(path, json);
  return inspect_data(path, json);
}
