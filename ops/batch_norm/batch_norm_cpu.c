/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/batch_norm/batch_norm.h"
#include "ops/update.h"
#include "ops/vecmath.h"

enum { COLS = 16 };

typedef struct norm_job {
  const void *x, *dy, *scale, *shift, *running_mean, *running_variance;
  const void *stats;
  void *y, *out_stats; /* of the gradient: y is dx */
  void *dscale, *dshift;
  void *factors; /* [2 F] */
  int64_t rows, features;
  double epsilon;
  bool training;
} norm_job;

#define REAL    float
#define NAME(n) n##_f32
#include "ops/batch_norm/batch_norm_cpu.inc"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(n) n##_f64
#include "ops/batch_norm/batch_norm_cpu.inc"
#undef REAL
#undef NAME

static int64_t last_dim(const sn_shape *s) {
  return s->dims[s->rank - 1];
}

/* A step of the columns, then one of the rows. */
static sn_status run(const sn__exec *e, norm_job *job, sn__rows_fn columns, sn__rows_fn rows) {
  const sn__batch_norm_attrs *a = e->attrs;
  job->epsilon = a->epsilon;
  job->training = e->step != NULL && e->step->training;
  sn__rows_run(e->team, (job->features + COLS - 1) / COLS, 2 * job->rows * COLS, columns, job);
  sn__rows_run(e->team, job->rows, 2 * job->features, rows, job);
  return SN_OK;
}

sn_status sn__batch_norm_cpu(const sn__exec *e) {
  const sn_shape *x = &e->in[0].shape;
  norm_job job = {.x = e->in[0].data,
                  .scale = e->in[1].data,
                  .shift = e->in[2].data,
                  .running_mean = e->in[3].data,
                  .running_variance = e->in[4].data,
                  .y = e->out[0].data,
                  .stats = e->out[1].data,
                  .out_stats = e->out[1].data,
                  .rows = sn__shape_span(x, 0, x->rank - 1),
                  .features = last_dim(x)};
  const int64_t n = job.features;
  const bool training = e->step != NULL && e->step->training;
  if (e->in[0].dtype == SN_F32) {
    ((float *)job.out_stats)[2 * n] = training ? (float)job.rows : 0;
    return run(e, &job, stats_task_f32, norm_task_f32);
  }
  ((double *)job.out_stats)[2 * n] = training ? (double)job.rows : 0;
  return run(e, &job, stats_task_f64, norm_task_f64);
}

sn_status sn__batch_norm_grad_cpu(const sn__exec *e) {
  const sn_shape *x = &e->in[1].shape;
  norm_job job = {.dy = e->in[0].data,
                  .x = e->in[1].data,
                  .stats = e->in[2].data,
                  .scale = e->n_in > 3 ? e->in[3].data : NULL,
                  .y = e->out[0].data,
                  .dscale = e->out[1].data,
                  .dshift = e->out[2].data,
                  .factors = e->workspace,
                  .rows = sn__shape_span(x, 0, x->rank - 1),
                  .features = last_dim(x)};
  return e->in[0].dtype == SN_F32 ? run(e, &job, columns_task_f32, dx_task_f32)
                                  : run(e, &job, columns_task_f64, dx_task_f64);
}

sn_status sn__batch_norm_commit_cpu(const sn__exec *e) {
  const sn__batch_norm_attrs *a = e->attrs;
  const int n = a->held != 0 ? e->n_in - 1 : e->n_in;
  if (a->held != 0 && ((const double *)e->in[n].data)[SN__CONTROL_FINITE] == 0) {
    sn__copy_rows(e->team, e->out[0].data, 0, e->in[0].data, 0, 1,
                  (size_t)e->out[0].shape.dims[0] * sn_dtype_size(e->out[0].dtype));
    return SN_OK;
  }
  for (int i = 1; i < n; i++) {
    const void *running = i == 1 ? e->in[0].data : e->out[0].data;
    if (e->in[0].dtype == SN_F32)
      commit_f32(a, running, e->in[i].data, e->out[0].data, e->out[0].shape.dims[0]);
    else
      commit_f64(a, running, e->in[i].data, e->out[0].data, e->out[0].shape.dims[0]);
  }
  return SN_OK;
}
