/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_SEGMENT_REDUCE_SEGMENT_REDUCE_H
#define SN_OPS_SEGMENT_REDUCE_SEGMENT_REDUCE_H

#include "ops/layout.h"

typedef struct sn__segment_attrs {
  int64_t how;      /* sn_segment_reduction */
  int64_t elements; /* segment_reduce_grad: the first dimension of x */
} sn__segment_attrs;

sn_status sn__segment_reduce_cpu(const sn__exec *e);
sn_status sn__segment_reduce_grad_cpu(const sn__exec *e);

#endif
