/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/softmax/softmax.h"
#include "ops/vecmath.h"

SN__DEFINE_ROW_MAX(float, f32)
SN__DEFINE_ROW_MAX(double, f64)

/* One row each; `out` may be what is read. */
#define KERNELS(T, S)                                                                              \
  SN__CLONES static void softmax_row_##S(const T *x, T most, T *out, int64_t n) {                  \
    SN__SIMD for (int64_t i = 0; i < n; i++) out[i] = sn__exp_##S(x[i] - most);                    \
    SN__LANE_SUM(T, S, sum, i, n, out[i]);                                                         \
    const T factor = (T)1 / sum;                                                                   \
    SN__SIMD for (int64_t i = 0; i < n; i++) out[i] *= factor;                                     \
  }                                                                                                \
  SN__CLONES static void log_softmax_row_##S(const T *x, T most, T *out, int64_t n) {              \
    SN__LANE_SUM(T, S, sum, i, n, sn__exp_##S(x[i] - most));                                       \
    const T log_sum = sn__log_##S(sum);                                                            \
    SN__SIMD for (int64_t i = 0; i < n; i++) out[i] = (x[i] - most) - log_sum;                     \
  }                                                                                                \
  SN__CLONES static void softmax_back_##S(const T *y, const T *dy, T *out, int64_t n) {            \
    SN__LANE_SUM(T, S, dot, i, n, y[i] * dy[i]);                                                   \
    SN__SIMD for (int64_t i = 0; i < n; i++) out[i] = y[i] * (dy[i] - dot);                        \
  }                                                                                                \
  SN__CLONES static void log_softmax_back_##S(const T *y, const T *dy, T *out, int64_t n) {        \
    SN__LANE_SUM(T, S, sum, i, n, dy[i]);                                                          \
    SN__SIMD for (int64_t i = 0; i < n; i++) out[i] = dy[i] - sn__exp_##S(y[i]) * sum;             \
  }                                                                                                \
  static void softmax_##S(const sn__exec *e, int64_t at, int64_t n) {                              \
    const T *x = (const T *)e->in[0].data + at;                                                    \
    softmax_row_##S(x, row_max_##S(x, n), (T *)e->out[0].data + at, n);                            \
  }                                                                                                \
  static void log_softmax_##S(const sn__exec *e, int64_t at, int64_t n) {                          \
    const T *x = (const T *)e->in[0].data + at;                                                    \
    log_softmax_row_##S(x, row_max_##S(x, n), (T *)e->out[0].data + at, n);                        \
  }                                                                                                \
  static void softmax_grad_##S(const sn__exec *e, int64_t at, int64_t n) {                         \
    softmax_back_##S((const T *)e->in[0].data + at, (const T *)e->in[1].data + at,                 \
                     (T *)e->out[0].data + at, n);                                                 \
  }                                                                                                \
  static void log_softmax_grad_##S(const sn__exec *e, int64_t at, int64_t n) {                     \
    log_softmax_back_##S((const T *)e->in[0].data + at, (const T *)e->in[1].data + at,             \
                         (T *)e->out[0].data + at, n);                                             \
  }
KERNELS(float, f32)
KERNELS(double, f64)

typedef void (*row_fn)(const sn__exec *e, int64_t at, int64_t n);

typedef struct rows_job {
  const sn__exec *e;
  row_fn fn;
  int64_t width;
} rows_job;

static void rows_range(void *arg, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const rows_job *job = arg;
  for (int64_t r = begin; r < end; r++)
    job->fn(job->e, r * job->width, job->width);
}

static sn_status run(const sn__exec *e, row_fn f32, row_fn f64) {
  int64_t count = sn__count(&e->out[0]), width = sn__last_dim(&e->out[0].shape);
  if (count == 0) return SN_OK;
  rows_job job = {e, e->out[0].dtype == SN_F64 ? f64 : f32, width};
  sn__for_range(e->team, count / width, sn__row_grain(4 * width), rows_range, &job);
  return SN_OK;
}

#define ENTRY(name)                                                                                \
  sn_status sn__##name##_cpu(const sn__exec *e) {                                                  \
    return run(e, name##_f32, name##_f64);                                                         \
  }
ENTRY(softmax)
ENTRY(log_softmax)
ENTRY(softmax_grad)
ENTRY(log_softmax_grad)
