/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/concat/concat.h"

#include <string.h>

enum { SHORT = 4096, /* bytes of a row of y that is written in one go */ MANY = 64 };

typedef struct join_job {
  const sn__exec *e;
  int32_t axis;
  size_t size;
  size_t step; /* bytes of a row of y */
} join_job;

/* Whole rows of y, one after another: short parts written one input at a time would leave every
 * line of memory to be fetched again for the next. */
static void join_task(void *arg, int64_t begin, int64_t end) {
  const join_job *job = arg;
  const sn__exec *e = job->e;
  char *to = (char *)e->out[0].data + (size_t)begin * job->step;
  for (int64_t row = begin; row < end; row++)
    for (int i = 0; i < e->n_in; i++) {
      const sn_shape *x = &e->in[i].shape;
      const size_t bytes = (size_t)sn__shape_span(x, job->axis, x->rank) * job->size;
      if (bytes > 0) memcpy(to, (const char *)e->in[i].data + (size_t)row * bytes, bytes);
      to += bytes;
    }
}

sn_status sn__concat_cpu(const sn__exec *e) {
  const sn__concat_attrs *a = e->attrs;
  const int32_t axis = (int32_t)a->axis;
  const sn__tensor *y = &e->out[0];
  const size_t size = sn_dtype_size(y->dtype);
  const int64_t outer = sn__shape_span(&y->shape, 0, axis);
  const size_t step = (size_t)sn__shape_span(&y->shape, axis, y->shape.rank) * size;
  if (outer >= MANY && step <= SHORT) {
    join_job job = {e, axis, size, step};
    sn__rows_run(e->team, outer, (int64_t)(step / sizeof(float)), join_task, &job);
    return SN_OK;
  }
  char *to = y->data;
  for (int i = 0; i < e->n_in; i++) {
    const size_t bytes = (size_t)sn__shape_span(&e->in[i].shape, axis, y->shape.rank) * size;
    sn__copy_rows(e->team, to, step, e->in[i].data, bytes, outer, bytes);
    to += bytes;
  }
  return SN_OK;
}
