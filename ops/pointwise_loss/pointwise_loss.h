/* SPDX-License-Identifier: Apache-2.0 */
/* Losses that are a mean over the features of a row: one family of kernels (internal). */
#ifndef SN_OPS_POINTWISE_LOSS_POINTWISE_LOSS_H
#define SN_OPS_POINTWISE_LOSS_POINTWISE_LOSS_H

#include "ops/common.h"

/* X(name, doc of one element's loss); x is the prediction, z the target. */
#define SN__POINTWISE_LOSSES(X)                                                                    \
  X(sigmoid_cross_entropy, "log(1 + e^x) - x z")                                                   \
  X(squared_loss, "(x - z)^2")                                                                     \
  X(absolute_loss, "|x - z|")                                                                      \
  X(huber_loss, "(x - z)^2 / 2 within delta, else delta (|x - z| - delta / 2)")

typedef enum sn__pointwise {
#define SN_X(name, doc) SN__POINTWISE_##name,
  SN__POINTWISE_LOSSES(SN_X)
#undef SN_X
      SN__POINTWISE_COUNT
} sn__pointwise;

typedef struct sn__pointwise_attrs {
  double delta; /* Huber's */
} sn__pointwise_attrs;

typedef struct sn__pointwise_grad_attrs {
  int64_t kind; /* sn__pointwise */
  double delta;
} sn__pointwise_grad_attrs;

extern const sn_op_def *const sn__pointwise_defs[SN__POINTWISE_COUNT];

/* Inputs: prediction, target, weights or absent. Output: sum []. */
size_t sn__pointwise_loss_workspace(const sn__exec *e);
sn_status sn__pointwise_loss_cpu(const sn__exec *e);
/* Inputs: those three and the gradient of the sum. Output: gradient of the prediction. */
sn_status sn__pointwise_loss_grad_cpu(const sn__exec *e);

#endif
