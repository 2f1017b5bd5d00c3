/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_TRANSPOSE_TRANSPOSE_H
#define SN_OPS_TRANSPOSE_TRANSPOSE_H

#include "ops/layout.h"

typedef struct sn__transpose_attrs {
  sn__ints axes; /* dimension i of y is dimension axes[i] of x */
} sn__transpose_attrs;

sn_status sn__transpose_cpu(const sn__exec *e);

#endif
