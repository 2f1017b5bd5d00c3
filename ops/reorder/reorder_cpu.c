/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reorder/reorder.h"

#include <string.h>

typedef struct reorder_job {
  const char *x;
  char *y;
  const int32_t *map;
  size_t bytes;
  bool inverse;
} reorder_job;

static void reorder_task(void *arg, int64_t begin, int64_t end) {
  const reorder_job *job = arg;
  const size_t bytes = job->bytes;
  for (int64_t j = begin; j < end; j++) {
    const size_t near = (size_t)j * bytes, far = (size_t)job->map[j] * bytes;
    memcpy(job->y + (job->inverse ? far : near), job->x + (job->inverse ? near : far), bytes);
  }
}

sn_status sn__reorder_cpu(const sn__exec *e) {
  const sn__reorder_attrs *a = e->attrs;
  const sn_shape *shape = &e->in[0].shape;
  const size_t bytes =
      (size_t)sn__shape_span(shape, 1, shape->rank) * sn_dtype_size(e->in[0].dtype);
  reorder_job job = {e->in[0].data, e->out[0].data, e->in[1].data, bytes, a->inverse != 0};
  if (bytes == 0) return SN_OK;
  sn__rows_run(e->team, shape->dims[0], (int64_t)(bytes / sizeof(float)), reorder_task, &job);
  return SN_OK;
}
