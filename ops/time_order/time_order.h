/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_TIME_ORDER_TIME_ORDER_H
#define SN_OPS_TIME_ORDER_TIME_ORDER_H

#include "ops/layout.h"

typedef struct sn__time_order_attrs {
  int64_t elements; /* the structure's dimensions: fixed, or symbols of the graph */
  int64_t longest;
} sn__time_order_attrs;

sn_status sn__time_order_cpu(const sn__exec *e);

#endif
