/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/segment_expand/segment_expand.h"

#include <string.h>

typedef struct expand_job {
  const char *x;
  char *y;
  const int32_t *offsets;
  size_t bytes;
} expand_job;

static void expand_task(void *arg, int64_t begin, int64_t end) {
  const expand_job *job = arg;
  for (int64_t r = begin; r < end; r++)
    for (int32_t i = job->offsets[r]; i < job->offsets[r + 1]; i++)
      memcpy(job->y + (size_t)i * job->bytes, job->x + (size_t)r * job->bytes, job->bytes);
}

sn_status sn__segment_expand_cpu(const sn__exec *e) {
  const sn_shape *x = &e->in[0].shape;
  expand_job job = {e->in[0].data, e->out[0].data, e->in[1].data,
                    (size_t)sn__shape_span(x, 1, x->rank) * sn_dtype_size(e->in[0].dtype)};
  const int64_t rows = x->dims[0], size = sn__shape_size(&e->out[0].shape);
  if (rows > 0 && size > 0) sn__rows_run(e->team, rows, size / rows + 1, expand_task, &job);
  return SN_OK;
}
