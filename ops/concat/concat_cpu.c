/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/concat/concat.h"

sn_status sn__concat_cpu(const sn__exec *e) {
  const sn__concat_attrs *a = e->attrs;
  const int32_t axis = (int32_t)a->axis;
  const sn__tensor *y = &e->out[0];
  const size_t size = sn_dtype_size(y->dtype);
  const int64_t outer = sn__shape_span(&y->shape, 0, axis);
  const size_t step = (size_t)sn__shape_span(&y->shape, axis, y->shape.rank) * size;
  char *to = y->data;
  for (int i = 0; i < e->n_in; i++) {
    const size_t bytes = (size_t)sn__shape_span(&e->in[i].shape, axis, y->shape.rank) * size;
    sn__copy_rows(e->team, to, step, e->in[i].data, bytes, outer, bytes);
    to += bytes;
  }
  return SN_OK;
}
