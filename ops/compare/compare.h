/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_COMPARE_COMPARE_H
#define SN_OPS_COMPARE_COMPARE_H

#include "ops/common.h"

typedef struct sn__compare_attrs {
  int64_t comparison; /* sn_comparison */
} sn__compare_attrs;

sn_status sn__compare_cpu(const sn__exec *e);

#endif
