/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_SEGMENT_EXPAND_SEGMENT_EXPAND_H
#define SN_OPS_SEGMENT_EXPAND_SEGMENT_EXPAND_H

#include "ops/layout.h"

typedef struct sn__segment_expand_attrs {
  int64_t elements; /* the structure's dimension: fixed, or a symbol of the graph */
} sn__segment_expand_attrs;

sn_status sn__segment_expand_cpu(const sn__exec *e);

#endif
