/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_MATMUL_MATMUL_H
#define SN_OPS_MATMUL_MATMUL_H

#include "ops/unary/unary.h"

typedef struct sn__matmul_attrs {
  int64_t transpose_a, transpose_b;
  int64_t activation; /* sn_activation */
  /* Leading dimensions are rows to sum over too: [.., k, m] x [.., k, n] -> [m, n]. Made by the
   * gradient of a shared b; with transpose_a only. */
  int64_t sum_batch;
  int64_t precision; /* sn_precision */
} sn__matmul_attrs;

/* What sn__gemm is to do, from fixed shapes. */
typedef struct sn__matmul_plan {
  int64_t m, n, k, batch;
  int64_t a_stride, b_stride;
} sn__matmul_plan;

sn__matmul_plan sn__matmul_plan_of(const sn__exec *e);
sn_status sn__matmul_cpu(const sn__exec *e);

#endif
