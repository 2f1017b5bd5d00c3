/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_CONCAT_CONCAT_H
#define SN_OPS_CONCAT_CONCAT_H

#include "ops/layout.h"

typedef struct sn__concat_attrs {
  int64_t axis; /* 0 or more */
} sn__concat_attrs;

sn_status sn__concat_cpu(const sn__exec *e);

#endif
