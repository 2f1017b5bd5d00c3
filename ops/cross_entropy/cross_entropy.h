/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_CROSS_ENTROPY_CROSS_ENTROPY_H
#define SN_OPS_CROSS_ENTROPY_CROSS_ENTROPY_H

#include "ops/common.h"

/* Inputs: logits [R, K], labels [R], weights [R] or absent. Outputs: sum [], log-sum-exp [R]. */
size_t sn__softmax_cross_entropy_workspace(const sn__exec *e);
sn_status sn__softmax_cross_entropy_cpu(const sn__exec *e);
/* Inputs: those three, log-sum-exp [R], gradient of the sum []. Output: gradient of logits. */
sn_status sn__softmax_cross_entropy_grad_cpu(const sn__exec *e);

/* Shared by all losses: checks weights (input w, may be absent) against rows; fixed dtype f32. */
SN_MUST_USE sn_status sn__need_loss_weights(const sn__infer *c, int w, int64_t rows);
/* Registers the loss whose sum is `sum`; the first dimension of `labels` counts its rows. */
sn_loss sn__loss_finish(sn_graph *g, const sn_loss_options *o, const char *name, sn_value sum,
                        sn_value labels);

#endif
