/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_CAST_CAST_H
#define SN_OPS_CAST_CAST_H

#include "ops/common.h"

typedef struct sn__cast_attrs {
  int64_t dtype; /* sn_dtype */
} sn__cast_attrs;

sn_status sn__cast_cpu(const sn__exec *e);

#endif
