/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/segment_reduce/segment_reduce.h"

#include <string.h>

#include "ops/vecmath.h"

typedef struct segment_job {
  const void *x, *y; /* y: in the gradient of max */
  const void *dy;
  void *out;
  const int32_t *offsets;
  int64_t features;
  sn_segment_reduction how;
} segment_job;

#define REAL    float
#define NAME(n) n##_f32
#define DTYPE   SN_F32
#include "ops/segment_reduce/segment_reduce_cpu.inc"
#undef REAL
#undef NAME
#undef DTYPE
#define REAL    double
#define NAME(n) n##_f64
#define DTYPE   SN_F64
#include "ops/segment_reduce/segment_reduce_cpu.inc"
#undef REAL
#undef NAME
#undef DTYPE

static void run(const sn__exec *e, segment_job *job, const sn__tensor *packed,
                const sn__tensor *rows_of, sn__rows_fn f32, sn__rows_fn f64) {
  const int64_t rows = rows_of->shape.dims[0];
  job->offsets = e->in[1].data;
  job->how = (sn_segment_reduction)((const sn__segment_attrs *)e->attrs)->how;
  job->features = sn__shape_span(&packed->shape, 1, packed->shape.rank);
  if (rows == 0 || job->features == 0) return;
  sn__rows_run(e->team, rows, sn__shape_size(&packed->shape) / rows + 1,
               packed->dtype == SN_F32 ? f32 : f64, job);
}

sn_status sn__segment_reduce_cpu(const sn__exec *e) {
  segment_job job = {.x = e->in[0].data, .out = e->out[0].data};
  run(e, &job, &e->in[0], &e->out[0], reduce_task_f32, reduce_task_f64);
  return SN_OK;
}

sn_status sn__segment_reduce_grad_cpu(const sn__exec *e) {
  segment_job job = {.dy = e->in[0].data, .out = e->out[0].data};
  if (e->n_in == 4) {
    job.x = e->in[2].data;
    job.y = e->in[3].data;
  }
  run(e, &job, &e->out[0], &e->in[0], grad_task_f32, grad_task_f64);
  return SN_OK;
}
