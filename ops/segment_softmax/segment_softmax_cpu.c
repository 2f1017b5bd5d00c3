/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/segment_softmax/segment_softmax.h"
#include "ops/vecmath.h"

enum { COLS = 16 };

typedef struct softmax_job {
  const void *in, *y;
  void *out;
  const int32_t *offsets;
  int64_t features;
} softmax_job;

#define REAL    float
#define NAME(n) n##_f32
#define LOOP    SN__SIMD
#include "ops/segment_softmax/segment_softmax_cpu.inc"
#undef REAL
#undef NAME
#undef LOOP
#define REAL    double
#define NAME(n) n##_f64
#define LOOP    /* calls the C library */
#include "ops/segment_softmax/segment_softmax_cpu.inc"
#undef REAL
#undef NAME

static sn_status run(const sn__exec *e, const void *y, sn__rows_fn f32, sn__rows_fn f64) {
  const sn_shape *shape = &e->in[0].shape;
  const int64_t rows = e->in[1].shape.dims[0] - 1, n = sn__shape_size(shape);
  softmax_job job = {e->in[0].data, y, e->out[0].data, e->in[1].data,
                     sn__shape_span(shape, 1, shape->rank)};
  if (n > 0 && rows > 0)
    sn__rows_run(e->team, rows, 8 * n / rows + 1, e->in[0].dtype == SN_F32 ? f32 : f64, &job);
  return SN_OK;
}

sn_status sn__segment_softmax_cpu(const sn__exec *e) {
  return run(e, NULL, softmax_task_f32, softmax_task_f64);
}

sn_status sn__segment_softmax_grad_cpu(const sn__exec *e) {
  return run(e, e->in[2].data, grad_task_f32, grad_task_f64);
}
