/* SPDX-License-Identifier: Apache-2.0 */
/* Each task owns a range of the output's rows and looks through all indices for its own, so every
 * row's sum runs in rising order of x whatever the number of tasks. */
#include "ops/scatter_add_rows/scatter_add_rows.h"

#include <string.h>

typedef struct scatter_job {
  const sn__tensor *x, *indices;
  const sn__tensor *out;
  int64_t n, features;
} scatter_job;

static void scatter_task(void *arg, int64_t begin, int64_t end) {
  const scatter_job *job = arg;
  const int64_t features = job->features;
  const size_t size = sn_dtype_size(job->out->dtype);
  memset((char *)job->out->data + (size_t)(begin * features) * size, 0,
         (size_t)((end - begin) * features) * size);
  for (int64_t i = 0; i < job->n; i++) {
    const int64_t row = sn__index_at(job->indices, i);
    if (row < begin || row >= end) continue;
    if (job->out->dtype == SN_F32) {
      const float *x = (const float *)job->x->data + i * features;
      float *out = (float *)job->out->data + row * features;
      for (int64_t j = 0; j < features; j++)
        out[j] += x[j];
    } else {
      const double *x = (const double *)job->x->data + i * features;
      double *out = (double *)job->out->data + row * features;
      for (int64_t j = 0; j < features; j++)
        out[j] += x[j];
    }
  }
}

sn_status sn__scatter_add_rows_cpu(const sn__exec *e) {
  const sn_shape *out = &e->out[0].shape;
  SN_TRY(sn__check_indices(e, &e->in[1], out->dims[0]));
  scatter_job job = {.x = &e->in[0],
                     .indices = &e->in[1],
                     .out = &e->out[0],
                     .n = sn__shape_size(&e->in[1].shape),
                     .features = sn__shape_span(out, 1, out->rank)};
  const int64_t rows = out->dims[0];
  if (rows == 0 || job.features == 0) return SN_OK;
  sn__rows_run(e->team, rows, job.features + job.n * job.features / rows, scatter_task, &job);
  return SN_OK;
}
