/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_SLICE_SLICE_H
#define SN_OPS_SLICE_SLICE_H

#include "ops/layout.h"

typedef struct sn__slice_attrs {
  int64_t axis, begin, end;
  int64_t size; /* of the whole axis; slice_grad only */
} sn__slice_attrs;

sn_status sn__slice_cpu(const sn__exec *e);
sn_status sn__slice_grad_cpu(const sn__exec *e);

#endif
