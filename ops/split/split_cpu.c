/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/split/split.h"

#include <string.h>

/* Bytes of one index of the axis, and how many rows lie before it. */
static size_t unit_bytes(const sn__tensor *t, int64_t axis, int64_t *outer) {
  *outer = sn__shape_span(&t->shape, 0, (int32_t)axis);
  return (size_t)sn__shape_span(&t->shape, (int32_t)axis + 1, t->shape.rank) *
         sn_dtype_size(t->dtype);
}

sn_status sn__split_cpu(const sn__exec *e) {
  const sn__split_attrs *a = e->attrs;
  int64_t outer;
  const size_t unit = unit_bytes(&e->in[0], a->axis, &outer);
  const size_t step = (size_t)e->in[0].shape.dims[a->axis] * unit;
  const char *from = e->in[0].data;
  for (int i = 0; i < e->n_out && i < (int)a->parts; i++) {
    const size_t bytes = (size_t)a->size[i] * unit;
    if (bytes == 0) continue;
    sn__copy_rows(e->team, e->out[i].data, bytes, from, step, outer, bytes);
    from += bytes;
  }
  return SN_OK;
}

sn_status sn__split_grad_cpu(const sn__exec *e) {
  const sn__split_attrs *a = e->attrs;
  int64_t outer;
  const size_t unit = unit_bytes(&e->out[0], a->axis, &outer);
  const size_t step = (size_t)e->out[0].shape.dims[a->axis] * unit;
  char *to = e->out[0].data;
  for (int i = 0; i < e->n_in && i < (int)a->parts; i++) {
    const size_t bytes = (size_t)a->size[i] * unit;
    if (bytes == 0) continue;
    if (e->in[i].data != NULL)
      sn__copy_rows(e->team, to, step, e->in[i].data, bytes, outer, bytes);
    else
      for (int64_t r = 0; r < outer; r++)
        memset(to + (size_t)r * step, 0, bytes);
    to += bytes;
  }
  return SN_OK;
}
