/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/slice/slice.h"

#include <string.h>

/* Bytes of one index of the axis, and how many rows lie before it. */
static size_t unit_bytes(const sn__tensor *t, int64_t axis, int64_t *outer) {
  *outer = sn__shape_span(&t->shape, 0, (int32_t)axis);
  return (size_t)sn__shape_span(&t->shape, (int32_t)axis + 1, t->shape.rank) *
         sn_dtype_size(t->dtype);
}

sn_status sn__slice_cpu(const sn__exec *e) {
  const sn__slice_attrs *a = e->attrs;
  int64_t outer;
  const size_t unit = unit_bytes(&e->in[0], a->axis, &outer);
  const size_t bytes = (size_t)(a->end - a->begin) * unit;
  const char *from = e->in[0].data;
  if (bytes == 0) return SN_OK;
  sn__copy_rows(e->team, e->out[0].data, bytes, from + (size_t)a->begin * unit,
                (size_t)e->in[0].shape.dims[a->axis] * unit, outer, bytes);
  return SN_OK;
}

typedef struct pad_job {
  const char *from;
  char *to;
  size_t before, bytes, after;
} pad_job;

static void pad_task(void *arg, int64_t begin, int64_t end) {
  const pad_job *job = arg;
  const size_t row = job->before + job->bytes + job->after;
  for (int64_t i = begin; i < end; i++) {
    char *to = job->to + (size_t)i * row;
    memset(to, 0, job->before);
    if (job->bytes > 0) memcpy(to + job->before, job->from + (size_t)i * job->bytes, job->bytes);
    memset(to + job->before + job->bytes, 0, job->after);
  }
}

sn_status sn__slice_grad_cpu(const sn__exec *e) {
  const sn__slice_attrs *a = e->attrs;
  int64_t outer;
  const size_t unit = unit_bytes(&e->out[0], a->axis, &outer);
  pad_job job = {e->in[0].data, e->out[0].data, (size_t)a->begin * unit,
                 (size_t)(a->end - a->begin) * unit, (size_t)(a->size - a->end) * unit};
  const size_t row = job.before + job.bytes + job.after;
  if (row > 0) sn__rows_run(e->team, outer, (int64_t)(row / sizeof(float)), pad_task, &job);
  return SN_OK;
}
