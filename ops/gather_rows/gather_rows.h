/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_GATHER_ROWS_GATHER_ROWS_H
#define SN_OPS_GATHER_ROWS_GATHER_ROWS_H

#include "ops/layout.h"

/* Index i of an i32 or i64 tensor. */
static inline int64_t sn__index_at(const sn__tensor *t, int64_t i) {
  return t->dtype == SN_I32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}
/* A DATA status that names the first index outside [0, rows). */
SN_MUST_USE sn_status sn__check_indices(const sn__exec *e, const sn__tensor *indices, int64_t rows);

sn_status sn__gather_rows_cpu(const sn__exec *e);

#endif
