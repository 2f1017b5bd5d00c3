/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/layer_norm/layer_norm.h"
#include "ops/vecmath.h"

enum { COLS = 16 };
/* One more round of expansion, for S. */
#define ROW_SUM(type, suffix, ...) SN__LANE_SUM(type, suffix, __VA_ARGS__)

typedef struct norm_job {
  const void *x, *dy, *scale, *shift;
  const void *stats;
  void *y, *out_stats; /* of the gradient: y is dx */
  void *dscale, *dshift;
  int64_t rows, features;
  double epsilon;
} norm_job;

#define REAL    float
#define NAME(n) n##_f32
#define S       f32
#include "ops/layer_norm/layer_norm_cpu.inc"
#undef REAL
#undef NAME
#undef S
#define REAL    double
#define NAME(n) n##_f64
#define S       f64
#include "ops/layer_norm/layer_norm_cpu.inc"
#undef REAL
#undef NAME
#undef S

static int64_t last_dim(const sn_shape *s) {
  return s->dims[s->rank - 1];
}

sn_status sn__layer_norm_cpu(const sn__exec *e) {
  const sn_shape *x = &e->in[0].shape;
  norm_job job = {.x = e->in[0].data,
                  .scale = e->n_in > 1 ? e->in[1].data : NULL,
                  .shift = e->n_in > 2 ? e->in[2].data : NULL,
                  .y = e->out[0].data,
                  .out_stats = e->out[1].data,
                  .rows = sn__shape_span(x, 0, x->rank - 1),
                  .features = last_dim(x),
                  .epsilon = ((const sn__layer_norm_attrs *)e->attrs)->epsilon};
  sn__rows_run(e->team, job.rows, 4 * job.features,
               e->in[0].dtype == SN_F32 ? norm_task_f32 : norm_task_f64, &job);
  return SN_OK;
}

sn_status sn__layer_norm_grad_cpu(const sn__exec *e) {
  const sn_shape *x = &e->in[1].shape;
  const bool f32 = e->in[0].dtype == SN_F32;
  norm_job job = {.dy = e->in[0].data,
                  .x = e->in[1].data,
                  .stats = e->in[2].data,
                  .scale = e->n_in > 3 ? e->in[3].data : NULL,
                  .y = e->out[0].data,
                  .dscale = e->out[1].data,
                  .dshift = e->out[2].data,
                  .rows = sn__shape_span(x, 0, x->rank - 1),
                  .features = last_dim(x)};
  sn__rows_run(e->team, job.rows, 4 * job.features, f32 ? dx_task_f32 : dx_task_f64, &job);
  sn__rows_run(e->team, (job.features + COLS - 1) / COLS, job.rows * COLS,
               f32 ? columns_task_f32 : columns_task_f64, &job);
  return SN_OK;
}
