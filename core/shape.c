/* SPDX-License-Identifier: Apache-2.0 */
#include "core/shape.h"

#include <assert.h>
#include <string.h>

sn_shape sn_shape_make(int32_t rank, const int64_t *dims) {
  sn_shape shape = {0, {0}};
  if (rank < 0 || rank > SN_MAX_RANK) {
    shape.rank = -1;
    return shape;
  }
  shape.rank = rank;
  for (int32_t i = 0; i < rank; i++)
    shape.dims[i] = dims[i];
  return shape;
}

bool sn_shape_equal(const sn_shape *a, const sn_shape *b) {
  if (a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

bool sn_shape_is_fixed(const sn_shape *shape) {
  for (int32_t i = 0; i < shape->rank; i++)
    if (sn_dim_is_symbolic(shape->dims[i])) return false;
  return true;
}

sn_shape sn__shape_resolve(const sn_shape *shape, const int64_t *extents) {
  sn_shape out = *shape;
  for (int32_t i = 0; i < out.rank; i++)
    if (sn_dim_is_symbolic(out.dims[i]))
      out.dims[i] = extents[sn_dim_symbol(out.dims[i])] + sn_dim_addend(out.dims[i]);
  return out;
}

bool sn__shape_count(const sn_shape *shape, int64_t *out_count) {
  int64_t count = 1;
  for (int32_t i = 0; i < shape->rank; i++) {
    assert(shape->dims[i] >= 0);
    if (__builtin_mul_overflow(count, shape->dims[i], &count)) return false;
  }
  *out_count = count;
  return true;
}

int64_t sn__shape_size(const sn_shape *shape) {
  return sn__shape_span(shape, 0, shape->rank);
}

int64_t sn__shape_span(const sn_shape *shape, int32_t from, int32_t to) {
  int64_t count = 1;
  for (int32_t i = from; i < to; i++)
    count *= shape->dims[i];
  return count;
}
