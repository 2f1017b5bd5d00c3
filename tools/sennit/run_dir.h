/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a training run: best.h5, last.h5, epoch-NNNN.h5 (the latest few) and
 * metrics.jsonl, one JSON object an epoch. */
#ifndef SN_TOOLS_SENNIT_RUN_DIR_H
#define SN_TOOLS_SENNIT_RUN_DIR_H

#include "core/status.h"

typedef struct run_dir {
  char *path;
  char *best, *last, *metrics; /* whole paths */
} run_dir;

/* Makes the folder. CONFIG: it holds a run and `resume` is false; NOT_FOUND: nothing to resume. */
sn_status run_dir_open(const char *path, bool resume, run_dir *out);
void run_dir_close(run_dir *dir);

/* The path of epoch `epoch`'s checkpoint (sn__free), from 1. */
char *run_dir_epoch(const run_dir *dir, int64_t epoch);
/* Removes all epoch checkpoints but the latest `keep`. */
sn_status run_dir_prune(const run_dir *dir, int64_t keep);

/* A line of metrics.jsonl. */
sn_status run_dir_log(const run_dir *dir, const char *line);
/* Takes lines of later epochs than `epochs` out: they were not in the checkpoint. */
sn_status run_dir_rewind(const run_dir *dir, int64_t epochs);

#endif
