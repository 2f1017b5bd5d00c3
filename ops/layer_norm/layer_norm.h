/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_LAYER_NORM_LAYER_NORM_H
#define SN_OPS_LAYER_NORM_LAYER_NORM_H

#include "ops/layout.h"

typedef struct sn__layer_norm_attrs {
  double epsilon;
} sn__layer_norm_attrs;

sn_status sn__layer_norm_cpu(const sn__exec *e);
sn_status sn__layer_norm_grad_cpu(const sn__exec *e);

#endif
