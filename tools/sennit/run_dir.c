/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"

static bool exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

/* With its parents, as mkdir -p. */
static sn_status make_folder(const char *path) {
  char *copy = sn__strdup(path);
  if (copy == NULL) return sn_status_out_of_memory();
  int failed = 0;
  for (char *c = copy + 1; failed == 0; c++) {
    if (*c != '/' && *c != '\0') continue;
    char end = *c;
    *c = '\0';
    if (mkdir(copy, 0777) != 0 && errno != EEXIST) failed = errno;
    *c = end;
    if (end == '\0') break;
  }
  sn__free(copy);
  struct stat info;
  if (failed == 0 && stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) failed = ENOTDIR;
  if (failed == 0) return SN_OK;
  return sn_status_make(
      SN_CODE_IO,
      "cannot make folder %s: %s (errno %d); give a folder that can be made and written", path,
      strerror(failed), failed);
}

static sn_status check_use(const run_dir *dir, bool resume) {
  if (resume && !exists(dir->last))
    return sn_status_make(SN_CODE_NOT_FOUND,
                          "%s has no last.h5 to go on from; leave --resume out to start there",
                          dir->path);
  if (!resume && (exists(dir->last) || exists(dir->best) || exists(dir->metrics)))
    return sn_status_make(
        SN_CODE_CONFIG, "%s already holds a run; give --resume to go on with it, or another --out",
        dir->path);
  return resume ? SN_OK : make_folder(dir->path);
}

sn_status run_dir_open(const char *path, bool resume, run_dir *out) {
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/')
    length--;
  char *folder = sn__strndup(path, length);
  if (folder == NULL) return sn_status_out_of_memory();
  *out = (run_dir){.path = folder,
                   .best = sn__format("%s/best.h5", folder),
                   .last = sn__format("%s/last.h5", folder),
                   .metrics = sn__format("%s/metrics.jsonl", folder)};
  sn_status status = out->best == NULL || out->last == NULL || out->metrics == NULL
                         ? sn_status_out_of_memory()
                         : check_use(out, resume);
  if (status != SN_OK) run_dir_close(out);
  return status;
}

void run_dir_close(run_dir *dir) {
  sn__free(dir->path);
  sn__free(dir->best);
  sn__free(dir->last);
  sn__free(dir->metrics);
  *dir = (run_dir){.path = NULL};
}

/* ---- epochs -------------------------------------------------------------------------------- */

char *run_dir_epoch(const run_dir *dir, int64_t epoch) {
  return sn__format("%s/epoch-%04lld.h5", dir->path, (long long)epoch);
}

/* The epoch of "epoch-0012.h5", or -1. */
static int64_t epoch_of(const char *name) {
  char *end;
  if (strncmp(name, "epoch-", strlen("epoch-")) != 0) return -1;
  const char *digits = name + strlen("epoch-");
  if (*digits < '0' || *digits > '9') return -1;
  long long epoch = strtoll(digits, &end, 10);
  return strcmp(end, ".h5") == 0 ? epoch : -1;
}

static int larger_first(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x < y) - (x > y);
}

sn_status run_dir_prune(const run_dir *dir, int64_t keep) {
  DIR *folder = opendir(dir->path);
  if (folder == NULL)
    return sn_status_make(SN_CODE_IO, "cannot read folder %s: %s", dir->path, strerror(errno));
  int64_t *epochs = NULL;
  size_t n = 0, capacity = 0;
  sn_status status = SN_OK;
  for (struct dirent *e = readdir(folder); e != NULL && status == SN_OK; e = readdir(folder)) {
    int64_t epoch = epoch_of(e->d_name);
    if (epoch < 0) continue;
    if (sn__grow((void **)&epochs, &capacity, n + 1, sizeof *epochs))
      epochs[n++] = epoch;
    else
      status = sn_status_out_of_memory();
  }
  closedir(folder);
  if (n > 0) qsort(epochs, n, sizeof *epochs, larger_first);
  for (size_t i = (size_t)keep; status == SN_OK && i < n; i++) {
    char *path = run_dir_epoch(dir, epochs[i]);
    if (path == NULL)
      status = sn_status_out_of_memory();
    else if (unlink(path) != 0 && errno != ENOENT)
      status = sn_status_make(SN_CODE_IO, "cannot remove %s: %s", path, strerror(errno));
    sn__free(path);
  }
  sn__free(epochs);
  return status;
}

/* ---- metrics.jsonl ------------------------------------------------------------------------- */

sn_status run_dir_log(const run_dir *dir, const char *line) {
  FILE *file = fopen(dir->metrics, "ab");
  bool bad = file == NULL || fprintf(file, "%s\n", line) < 0;
  if (file != NULL && fclose(file) != 0) bad = true;
  if (!bad) return SN_OK;
  return sn_status_make(SN_CODE_IO, "cannot write %s: %s", dir->metrics, strerror(errno));
}

/* Lines begin {"epoch":12, as we write them; a line cut short by a crash is no such line. */
static bool keep_line(const char *line, int64_t epochs) {
  long long epoch;
  return sscanf(line, "{\"epoch\":%lld,", &epoch) == 1 && epoch <= epochs &&
         line[strlen(line) - 1] == '\n';
}

static sn_status copy_lines(const run_dir *dir, const char *to, int64_t epochs) {
  FILE *in = fopen(dir->metrics, "rb");
  if (in == NULL) return SN_OK; /* a run may have ended within its first epoch */
  FILE *out = fopen(to, "wb");
  char *line = NULL;
  size_t size = 0;
  bool bad = out == NULL;
  while (!bad && getline(&line, &size, in) > 0)
    if (keep_line(line, epochs)) bad = fputs(line, out) < 0;
  free(line);
  fclose(in);
  if (out != NULL && fclose(out) != 0) bad = true;
  if (!bad && rename(to, dir->metrics) == 0) return SN_OK;
  sn_status status =
      sn_status_make(SN_CODE_IO, "cannot write %s: %s", dir->metrics, strerror(errno));
  unlink(to);
  return status;
}

sn_status run_dir_rewind(const run_dir *dir, int64_t epochs) {
  char *to = sn__format("%s.new", dir->metrics);
  if (to == NULL) return sn_status_out_of_memory();
  sn_status status = copy_lines(dir, to, epochs);
  sn__free(to);
  return status;
}
