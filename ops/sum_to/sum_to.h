/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_SUM_TO_SUM_TO_H
#define SN_OPS_SUM_TO_SUM_TO_H

#include "ops/common.h"

typedef struct sn__shape_attrs {
  sn__ints shape; /* as sn_shape's dims, symbols included */
} sn__shape_attrs;

size_t sn__sum_to_workspace(const sn__exec *e);
sn_status sn__sum_to_cpu(const sn__exec *e);
sn_status sn__broadcast_to_cpu(const sn__exec *e);

#endif
