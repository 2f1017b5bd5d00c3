/* SPDX-License-Identifier: Apache-2.0 */
/* Learning-rate schedules as a pure function of the step (internal; optim/optim.h explains). */
#ifndef SN_OPS_SCHEDULE_SCHEDULE_H
#define SN_OPS_SCHEDULE_SCHEDULE_H

#include "core/op.h"

enum {
  SN__RATE_CONSTANT,
  SN__RATE_STEP,
  SN__RATE_COSINE,
  SN__RATE_EXPONENTIAL,
  SN__RATE_ONE_CYCLE,
  SN__RATE_KINDS
};

typedef struct sn__schedule_attrs {
  int64_t kind, warmup_steps, total_steps, step_size;
  double rate, gamma, least;
} sn__schedule_attrs;

/* The learning rate of step `step`, from 0. */
double sn__schedule_rate(const sn__schedule_attrs *a, int64_t step);

#endif
