/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_BATCH_NORM_BATCH_NORM_H
#define SN_OPS_BATCH_NORM_BATCH_NORM_H

#include "ops/layout.h"

typedef struct sn__batch_norm_attrs {
  double momentum;
  double epsilon;
  int64_t variance; /* batch_norm_commit: 0 the running mean, 1 the running variance */
  int64_t held;     /* batch_norm_commit: the last input is the step's control (ops/update.h), which
                       says whether to write at all */
} sn__batch_norm_attrs;

/* `stats` [2 F + 1]: mean, biased variance, count. In evaluation: the running ones and 0. */

sn_status sn__batch_norm_cpu(const sn__exec *e);
sn_status sn__batch_norm_grad_cpu(const sn__exec *e);
sn_status sn__batch_norm_commit_cpu(const sn__exec *e);

#endif
