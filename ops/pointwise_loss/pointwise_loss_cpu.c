/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pointwise_loss/pointwise_loss.h"
#include "ops/vecmath.h"

typedef struct loss_job {
  const sn__exec *e;
  int64_t width;
  int kind;
  double delta;
  double *rows; /* forward: each row's weighted loss */
} loss_job;

static float weight_at(const sn__exec *e, int64_t row) {
  const float *w = e->n_in > 2 ? e->in[2].data : NULL;
  return w == NULL ? 1.0f : w[row];
}

/* A row's elements are added up in f64, in the order of SN__LANE_SUM. */
#define LOSS(T, S, name, expr)                                                                     \
  SN__CLONES static double name##_##S(const T *xs, const T *zs, int64_t n, T delta) {              \
    (void)delta;                                                                                   \
    SN__LANE_SUM(double, f64, sum, i, n, ({                                                        \
                   const T x = xs[i], z = zs[i], d = x - z;                                        \
                   (void)d;                                                                        \
                   (double)(expr);                                                                 \
                 }));                                                                              \
    return sum;                                                                                    \
  }
#define SLOPE(T, S, name, expr)                                                                    \
  SN__CLONES static void name##_grad_##S(const T *xs, const T *zs, T *out, int64_t n, T delta,     \
                                         T factor) {                                               \
    (void)delta;                                                                                   \
    SN__SIMD for (int64_t i = 0; i < n; i++) {                                                     \
      const T x = xs[i], z = zs[i], d = x - z;                                                     \
      (void)d;                                                                                     \
      out[i] = (expr)*factor;                                                                      \
    }                                                                                              \
  }
#define KERNELS(T, S)                                                                              \
  /* The larger parts of log(1 + e^x) - x z are taken together: they cancel for good answers. */   \
  LOSS(T, S, sigmoid_cross_entropy,                                                                \
       (x > 0 ? x - x * z : -x * z) + sn__log1p_unit_##S(sn__exp_##S(-sn__abs_##S(x))))            \
  LOSS(T, S, squared_loss, d *d)                                                                   \
  LOSS(T, S, absolute_loss, sn__abs_##S(d))                                                        \
  LOSS(T, S, huber_loss,                                                                           \
       sn__abs_##S(d) <= delta ? (T)0.5 * d * d : delta * (sn__abs_##S(d) - (T)0.5 * delta))       \
  SLOPE(T, S, sigmoid_cross_entropy, sn__sigmoid_##S(x) - z)                                       \
  SLOPE(T, S, squared_loss, (T)2 * d)                                                              \
  SLOPE(T, S, absolute_loss, d > 0 ? (T)1 : d < 0 ? (T)-1 : d)                                     \
  SLOPE(T, S, huber_loss, d > delta ? delta : d < -delta ? -delta : d)                             \
  static void forward_##S(void *arg, int64_t begin, int64_t end, int worker) {                     \
    (void)worker;                                                                                  \
    static double (*const fns[])(const T *, const T *, int64_t, T) = {                             \
        sigmoid_cross_entropy_##S, squared_loss_##S, absolute_loss_##S, huber_loss_##S};           \
    const loss_job *job = arg;                                                                     \
    const T *x = job->e->in[0].data, *z = job->e->in[1].data;                                      \
    for (int64_t r = begin; r < end; r++) {                                                        \
      double w = (double)weight_at(job->e, r);                                                     \
      int64_t at = r * job->width;                                                                 \
      job->rows[r] = 0;                                                                            \
      if (w != 0)                                                                                  \
        job->rows[r] =                                                                             \
            w * fns[job->kind](x + at, z + at, job->width, (T)job->delta) / (double)job->width;    \
    }                                                                                              \
  }                                                                                                \
  static void backward_##S(void *arg, int64_t begin, int64_t end, int worker) {                    \
    (void)worker;                                                                                  \
    static void (*const fns[])(const T *, const T *, T *, int64_t, T,                              \
                               T) = {sigmoid_cross_entropy_grad_##S, squared_loss_grad_##S,        \
                                     absolute_loss_grad_##S, huber_loss_grad_##S};                 \
    const loss_job *job = arg;                                                                     \
    const T *x = job->e->in[0].data, *z = job->e->in[1].data;                                      \
    const T seed = *(const T *)job->e->in[3].data;                                                 \
    T *out = job->e->out[0].data;                                                                  \
    for (int64_t r = begin; r < end; r++) {                                                        \
      T w = (T)weight_at(job->e, r);                                                               \
      int64_t at = r * job->width;                                                                 \
      if (w == 0)                                                                                  \
        memset(out + at, 0, (size_t)job->width * sizeof(T));                                       \
      else                                                                                         \
        fns[job->kind](x + at, z + at, out + at, job->width, (T)job->delta,                        \
                       w * seed / (T)job->width);                                                  \
    }                                                                                              \
  }
KERNELS(float, f32)
KERNELS(double, f64)

static int64_t width_of(const sn_shape *s) {
  return sn__shape_span(s, 1, s->rank);
}

size_t sn__pointwise_loss_workspace(const sn__exec *e) {
  return (size_t)e->in[0].shape.dims[0] * sizeof(double);
}

sn_status sn__pointwise_loss_cpu(const sn__exec *e) {
  int64_t rows = e->in[0].shape.dims[0];
  loss_job job = {.e = e,
                  .width = width_of(&e->in[0].shape),
                  .delta = ((const sn__pointwise_attrs *)e->attrs)->delta,
                  .rows = e->workspace};
  while (sn__pointwise_defs[job.kind] != e->op)
    job.kind++;
  bool f64 = e->in[0].dtype == SN_F64;
  if (job.width > 0)
    sn__for_range(e->team, rows, sn__row_grain(job.width), f64 ? forward_f64 : forward_f32, &job);
  double sum = 0;
  for (int64_t r = 0; job.width > 0 && r < rows; r++)
    sum += job.rows[r];
  if (f64)
    *(double *)e->out[0].data = sum;
  else
    *(float *)e->out[0].data = (float)sum;
  return SN_OK;
}

sn_status sn__pointwise_loss_grad_cpu(const sn__exec *e) {
  const sn__pointwise_grad_attrs *t = e->attrs;
  loss_job job = {
      .e = e, .width = width_of(&e->in[0].shape), .kind = (int)t->kind, .delta = t->delta};
  if (job.width == 0) return SN_OK;
  sn__for_range(e->team, e->in[0].shape.dims[0], sn__row_grain(job.width),
                e->in[0].dtype == SN_F64 ? backward_f64 : backward_f32, &job);
  return SN_OK;
}
