/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_SPLIT_SPLIT_H
#define SN_OPS_SPLIT_SPLIT_H

#include "ops/layout.h"

typedef struct sn__split_attrs {
  int64_t axis;
  int64_t parts;
  int64_t size[SN_MAX_OUTPUTS];
} sn__split_attrs;

sn_status sn__split_cpu(const sn__exec *e);
sn_status sn__split_grad_cpu(const sn__exec *e);

#endif
