/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_BATCH_NORM_BATCH_NORM_H
#define SN_OPS_BATCH_NORM_BATCH_NORM_H

#include "ops/layout.h"

typedef struct sn__batch_norm_attrs {
  double momentum;
  double epsilon;
  int64_t variance; /* batch_norm_commit: 0 the running mean, 1 the running variance */
} sn__batch_norm_attrs;

typedef struct sn__batch_total_attrs {
  int64_t moments; /* 0: plain sums; 1: inputs laid out as `stats` */
} sn__batch_total_attrs;

/* `stats` [2 F + 1]: mean, biased variance, count. In evaluation: the running ones and 0.
 *
 * With sync the statistics are those of all micro-batches: batch_moments has one part's in f64,
 * batch_total puts the parts' together, one node for all of them, and batch_norm takes that as its
 * last input. The gradient goes the same way: batch_norm_grad_sums, batch_total, batch_norm_grad.
 * No gradient is asked of the moments themselves: batch_norm's own covers them. */

/* Inputs of batch_norm_commit: statistics of each micro-batch in order follow. */
enum { SN__COMMIT_RUNNING, SN__COMMIT_CONTROL, SN__COMMIT_STATS };

sn_status sn__batch_norm_cpu(const sn__exec *e);
sn_status sn__batch_norm_grad_cpu(const sn__exec *e);
sn_status sn__batch_norm_commit_cpu(const sn__exec *e);
sn_status sn__batch_moments_cpu(const sn__exec *e);
sn_status sn__batch_norm_grad_sums_cpu(const sn__exec *e);
sn_status sn__batch_total_cpu(const sn__exec *e);

#endif
