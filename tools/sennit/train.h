/* SPDX-License-Identifier: Apache-2.0 */
/* A training run under way: shared by the parts of cmd_train. */
#ifndef SN_TOOLS_SENNIT_TRAIN_H
#define SN_TOOLS_SENNIT_TRAIN_H

#include "tools/sennit/evaluate.h"
#include "tools/sennit/run_dir.h"
#include "tools/sennit/save.h"
#include "tools/sennit/task.h"
#include "tools/sennit/trace.h"

typedef struct train_run {
  const arg_set *args;
  task task;
  ui_state ui;
  run_dir dir;
  sn_trainer *trainer;
  bind_set bind; /* of the training data */
  save_texts texts;
  run_state state;
  char *monitor;        /* "valid.digit.accuracy" as it applies here; owned */
  evaluation valid;     /* of the latest epoch; no outputs: none was made */
  evaluation best;      /* of the best epoch, when this process found it */
  double *losses;       /* of a step */
  double *step_seconds; /* of each step of this process */
  size_t n_steps, cap_steps;
  int64_t rows;       /* trained on by this process */
  double seconds;     /* that training steps took */
  double loss;        /* total, of the latest step */
  int64_t saved_step; /* of last.h5; -1: not written by this process */
  trace_file trace;
  bool stopped;       /* by a signal */
  bool final_weights; /* the variables are what is to be measured: no averages */
} train_run;

/* Epochs until the horizon, --stop-after, --steps, a signal or lost patience. On failure the last
 * checkpoint stands. */
sn_status train_loop(train_run *run);

/* State and preparation of the run in last.h5, before the data is opened. */
sn_status resume_read(train_run *run, sn_checkpoint *last, sn_preparation **out_preparation);
/* Keeps fingerprints of the data that was opened in the state. A resumed run that had other data is
 * told so, and goes on at the start of its epoch: places in it mean nothing in other data. */
sn_status train_note_data(train_run *run);
/* Weights, slots and step; the model must be the run's. */
sn_status resume_take(train_run *run, sn_checkpoint *last);

/* Whether there are rows to validate on. */
bool train_validates(const train_run *run);
/* With averaged weights where the optimizer keeps them. */
sn_status train_validate(train_run *run, evaluation *out);
sn_status train_test(train_run *run, evaluation *out);
/* At most `most` training rows, evenly spread. */
sn_status train_measure(train_run *run, int64_t most, evaluation *out);
double train_now(void);

#endif
