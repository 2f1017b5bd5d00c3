/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a command writes must not be one that it reads: a slip of the hand would cost the
 * data, the checkpoint or the model file. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "tools/sennit/args.h"

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A folder that train wrote stands for the checkpoints in it. */
static bool is_or_holds(const char *path, const struct stat *written) {
  static const char *const checkpoints[] = {"best.h5", "last.h5"};
  struct stat info;
  if (stat(path, &info) != 0) return false;
  if (same_file(&info, written)) return true;
  for (size_t i = 0; i < 2 && S_ISDIR(info.st_mode); i++) {
    struct stat inside;
    char *name = sn__format("%s/%s", path, checkpoints[i]);
    bool same = name != NULL && stat(name, &inside) == 0 && same_file(&inside, written);
    sn__free(name);
    if (same) return true;
  }
  return false;
}

static sn_status check_written(const arg_set *args, const arg_row *row, const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) return SN_OK; /* new, or for whoever writes it to complain of */
  if (S_ISDIR(info.st_mode))
    return sn_status_make(SN_CODE_CONFIG, "%s %s is a folder; give a file in it", row->name, path);
  if (row->writes == ARG_REPLACES && !S_ISREG(info.st_mode))
    return sn_status_make(SN_CODE_CONFIG, "%s %s is a device or pipe; give the path of a file",
                          row->name, path);
  for (size_t i = 0; i < args->command->row_count; i++) {
    const arg_row *read = &args->command->rows[i];
    /* A placement may be written over the one that was read. */
    if (read->kind != ARG_TEXT || read->writes != ARG_READS || !S_ISREG(info.st_mode) ||
        strcmp(read->name, "--placement") == 0 || strcmp(read->name, "--set") == 0)
      continue;
    for (size_t k = 0; k < args->values[i].count; k++) {
      if (is_or_holds(args->values[i].texts[k], &info))
        return sn_status_make(SN_CODE_CONFIG,
                              "%s %s would write over %s %s; give a path of its own", row->name,
                              path, read->name, args->values[i].texts[k]);
    }
  }
  return SN_OK;
}

sn_status args_check_files(const arg_set *args) {
  for (size_t i = 0; i < args->command->row_count; i++) {
    const arg_row *row = &args->command->rows[i];
    if (row->writes != ARG_READS && args->values[i].count > 0)
      SN_TRY(check_written(args, row, args->values[i].texts[0]));
  }
  return SN_OK;
}
