/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over the pixels of channels-last images [N, H, W, C] (internal). */
#ifndef SN_OPS_POOL2D_POOL2D_H
#define SN_OPS_POOL2D_POOL2D_H

#include "ops/common.h"

typedef struct sn__pool2d_attrs {
  int64_t kernel_h, kernel_w;
  int64_t stride_h, stride_w;
  int64_t padding_h, padding_w;
  int64_t count_include_pad; /* avg_pool2d: divide by the whole window, its padding included */
  int64_t height, width;     /* avg_pool2d_grad: of x */
} sn__pool2d_attrs;

sn_status sn__max_pool2d_cpu(const sn__exec *e);
sn_status sn__max_pool2d_grad_cpu(const sn__exec *e);
sn_status sn__avg_pool2d_cpu(const sn__exec *e);
sn_status sn__avg_pool2d_grad_cpu(const sn__exec *e);

#endif
