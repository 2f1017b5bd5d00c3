/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/batch_norm/batch_norm.h"

#include <string.h>

#include "ops/update.h"
#include "ops/vecmath.h"

enum { COLS = 16 };

typedef struct norm_job {
  const void *x, *dy, *scale, *shift, *running_mean, *running_variance;
  const void *stats;
  const double *whole; /* statistics of all micro-batches, or NULL: of these rows alone */
  const double *own_sums, *whole_sums; /* of the gradient, likewise; [2 F] shift, scale */
  double *sums;
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

/* The running variance takes the unbiased one, which a single element does not have. */
#define COMMIT(name, REAL, STAT)                                                                   \
  static void name(const sn__batch_norm_attrs *a, const void *old, const void *of, void *to,       \
                   int64_t n) {                                                                    \
    const REAL *running = old;                                                                     \
    const STAT *stats = of, count = stats[2 * n];                                                  \
    REAL *out = to;                                                                                \
    const REAL momentum = (REAL)a->momentum;                                                       \
    const bool leave = count < 1 || (a->variance != 0 && count < 2);                               \
    const REAL unbias = a->variance != 0 && !leave ? (REAL)(count / (count - 1)) : 1;              \
    const STAT *fresh = stats + (a->variance != 0 ? n : 0);                                        \
    /* One NaN or inf in a batch must not stay in the statistics for good. */                      \
    for (int64_t j = 0; j < n; j++) {                                                              \
      const REAL moved = (1 - momentum) * running[j] + momentum * (REAL)fresh[j] * unbias;         \
      out[j] = leave || !isfinite(moved) ? running[j] : moved;                                     \
    }                                                                                              \
  }
COMMIT(commit_f32, float, float)
COMMIT(commit_f32_wide, float, double)
COMMIT(commit_f64, double, double)
#undef COMMIT

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
                  .whole = e->n_in > 5 ? e->in[5].data : NULL,
                  .y = e->out[0].data,
                  .stats = e->out[1].data,
                  .out_stats = e->out[1].data,
                  .rows = sn__shape_span(x, 0, x->rank - 1),
                  .features = last_dim(x)};
  const int64_t n = job.features;
  const bool training = e->step != NULL && e->step->training;
  const double count = !training ? 0 : job.whole != NULL ? job.whole[2 * n] : (double)job.rows;
  if (e->in[0].dtype == SN_F32) {
    ((float *)job.out_stats)[2 * n] = (float)count;
    return run(e, &job, stats_task_f32, norm_task_f32);
  }
  ((double *)job.out_stats)[2 * n] = count;
  return run(e, &job, stats_task_f64, norm_task_f64);
}

sn_status sn__batch_norm_grad_cpu(const sn__exec *e) {
  const sn_shape *x = &e->in[1].shape;
  norm_job job = {.dy = e->in[0].data,
                  .x = e->in[1].data,
                  .stats = e->in[2].data,
                  .scale = e->n_in > 3 ? e->in[3].data : NULL,
                  .own_sums = e->n_in > 5 ? e->in[4].data : NULL,
                  .whole_sums = e->n_in > 5 ? e->in[5].data : NULL,
                  .y = e->out[0].data,
                  .dscale = e->out[1].data,
                  .dshift = e->out[2].data,
                  .factors = e->workspace,
                  .rows = sn__shape_span(x, 0, x->rank - 1),
                  .features = last_dim(x)};
  return e->in[0].dtype == SN_F32 ? run(e, &job, columns_task_f32, dx_task_f32)
                                  : run(e, &job, columns_task_f64, dx_task_f64);
}

sn_status sn__batch_moments_cpu(const sn__exec *e) {
  const sn_shape *x = &e->in[0].shape;
  norm_job job = {.x = e->in[0].data,
                  .sums = e->out[0].data,
                  .rows = sn__shape_span(x, 0, x->rank - 1),
                  .features = last_dim(x)};
  if (e->step == NULL || !e->step->training) { /* nobody reads them */
    memset(e->out[0].data, 0, (size_t)(2 * job.features + 1) * sizeof(double));
    return SN_OK;
  }
  job.sums[2 * job.features] = (double)job.rows;
  sn__rows_run(e->team, (job.features + COLS - 1) / COLS, 2 * job.rows * COLS,
               e->in[0].dtype == SN_F32 ? moments_task_f32 : moments_task_f64, &job);
  return SN_OK;
}

sn_status sn__batch_norm_grad_sums_cpu(const sn__exec *e) {
  const sn__batch_norm_attrs *a = e->attrs;
  const sn_shape *x = &e->in[1].shape;
  norm_job job = {.dy = e->in[0].data,
                  .x = e->in[1].data,
                  .stats = e->in[2].data,
                  .sums = e->out[0].data,
                  .rows = sn__shape_span(x, 0, x->rank - 1),
                  .features = last_dim(x),
                  .epsilon = a->epsilon};
  sn__rows_run(e->team, (job.features + COLS - 1) / COLS, 2 * job.rows * COLS,
               e->in[0].dtype == SN_F32 ? sums_task_f32 : sums_task_f64, &job);
  return SN_OK;
}

/* Chan, Golub & LeVeque's rule for two sets, part by part: nothing large is subtracted from
 * something large, however far the mean is from zero. */
static void add_moments(double *total, const double *part, int64_t n) {
  const double have = total[2 * n], more = part[2 * n], count = have + more;
  if (more <= 0) return;
  for (int64_t j = 0; j < n; j++) {
    const double apart = part[j] - total[j];
    total[j] += apart * (more / count);
    total[n + j] =
        (total[n + j] * have + part[n + j] * more + apart * apart * have * more / count) / count;
  }
  total[2 * n] = count;
}

sn_status sn__batch_total_cpu(const sn__exec *e) {
  const sn__batch_total_attrs *a = e->attrs;
  const int64_t size = e->out[0].shape.dims[0];
  double *total = e->out[0].data;
  memcpy(total, e->in[0].data, (size_t)size * sizeof *total);
  for (int i = 1; i < e->n_in; i++) {
    const double *part = e->in[i].data;
    if (a->moments != 0)
      add_moments(total, part, size / 2);
    else
      for (int64_t j = 0; j < size; j++)
        total[j] += part[j];
  }
  return SN_OK;
}

sn_status sn__batch_norm_commit_cpu(const sn__exec *e) {
  const sn__batch_norm_attrs *a = e->attrs;
  const double *control = e->in[SN__COMMIT_CONTROL].data;
  const void *running = e->in[SN__COMMIT_RUNNING].data;
  const bool f32 = e->in[SN__COMMIT_RUNNING].dtype == SN_F32;
  const int64_t n = e->out[0].shape.dims[0];
  if (control != NULL && control[SN__CONTROL_FINITE] == 0) {
    sn__copy_rows(e->team, e->out[0].data, 0, running, 0, 1,
                  (size_t)n * sn_dtype_size(e->out[0].dtype));
    return SN_OK;
  }
  for (int i = SN__COMMIT_STATS; i < e->n_in; i++) {
    const bool wide = e->in[i].dtype == SN_F64;
    (f32 ? wide ? commit_f32_wide : commit_f32 : commit_f64)(a, running, e->in[i].data,
                                                             e->out[0].data, n);
    running = e->out[0].data;
  }
  return SN_OK;
}
