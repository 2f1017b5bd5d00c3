/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_REORDER_REORDER_H
#define SN_OPS_REORDER_REORDER_H

#include "ops/layout.h"

typedef struct sn__reorder_attrs {
  int64_t inverse; /* 0: y[j] = x[map[j]]; 1: y[map[j]] = x[j] */
} sn__reorder_attrs;

sn_status sn__reorder_cpu(const sn__exec *e);

#endif
