/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_REDUCE_REDUCE_H
#define SN_OPS_REDUCE_REDUCE_H

#include "ops/common.h"

typedef enum sn__reduce_kind { SN__REDUCE_SUM, SN__REDUCE_MEAN, SN__REDUCE_MAX } sn__reduce_kind;

typedef struct sn__reduce_attrs {
  int64_t axis, all, keep_dim;
} sn__reduce_attrs;

typedef struct sn__reduce_grad_attrs {
  sn__ints shape; /* of the forward input */
  int64_t axis, all;
  int64_t kind;
} sn__reduce_grad_attrs;

/* A shape seen as [outer, middle, inner], middle being reduced. */
typedef struct sn__middle {
  int64_t outer, middle, inner;
} sn__middle;

sn__middle sn__middle_of(const sn_shape *shape, int64_t axis, bool all);
size_t sn__reduce_workspace(const sn__exec *e);
sn_status sn__reduce_sum_cpu(const sn__exec *e);
sn_status sn__reduce_mean_cpu(const sn__exec *e);
sn_status sn__reduce_max_cpu(const sn__exec *e);
sn_status sn__reduce_grad_cpu(const sn__exec *e);

#endif
