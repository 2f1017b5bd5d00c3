/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_RESHAPE_RESHAPE_H
#define SN_OPS_RESHAPE_RESHAPE_H

#include "ops/layout.h"

typedef struct sn__reshape_attrs {
  sn__ints dims; /* 0 or more, SN_DIM_KEEP(i), or a symbol of the graph */
} sn__reshape_attrs;

#endif
