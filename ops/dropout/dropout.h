/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_DROPOUT_DROPOUT_H
#define SN_OPS_DROPOUT_DROPOUT_H

#include "ops/layout.h"

typedef struct sn__dropout_attrs {
  double rate;
} sn__dropout_attrs;

sn_status sn__dropout_cpu(const sn__exec *e);

#endif
