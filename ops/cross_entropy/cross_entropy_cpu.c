/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cross_entropy/cross_entropy.h"
#include "ops/vecmath.h"

typedef struct ce_job {
  const sn__exec *e;
  int64_t classes;
  double *rows; /* forward: each row's weighted loss */
} ce_job;

static int64_t label_at(const sn__exec *e, int64_t row) {
  return e->in[1].dtype == SN_I64 ? ((const int64_t *)e->in[1].data)[row]
                                  : ((const int32_t *)e->in[1].data)[row];
}

static float weight_at(const sn__exec *e, int64_t row) {
  const float *w = e->n_in > 2 ? e->in[2].data : NULL;
  return w == NULL ? 1.0f : w[row];
}

/* A label of a row that counts must name a class. */
static sn_status check_labels(const sn__exec *e, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; r++) {
    if (weight_at(e, r) == 0.0f) continue;
    int64_t label = label_at(e, r);
    if (label < 0 || label >= classes)
      return sn_status_make(SN_CODE_DATA,
                            "softmax_cross_entropy: row %lld has label %lld; with %lld classes a "
                            "label is 0 to %lld, or give the row weight 0",
                            (long long)r, (long long)label, (long long)classes,
                            (long long)(classes - 1));
  }
  return SN_OK;
}

SN__DEFINE_ROW_MAX(float, f32)
SN__DEFINE_ROW_MAX(double, f64)

#define KERNELS(T, S)                                                                              \
  SN__CLONES static T exp_sum_##S(const T *x, T most, int64_t n) {                                 \
    SN__LANE_SUM(T, S, sum, i, n, sn__exp_##S(x[i] - most));                                       \
    return sum;                                                                                    \
  }                                                                                                \
  SN__CLONES static void softmax_##S(const T *x, T lse, T factor, T *out, int64_t n) {             \
    SN__SIMD for (int64_t i = 0; i < n; i++) out[i] = sn__exp_##S(x[i] - lse) * factor;            \
  }                                                                                                \
  static void forward_##S(void *arg, int64_t begin, int64_t end, int worker) {                     \
    (void)worker;                                                                                  \
    const ce_job *job = arg;                                                                       \
    const sn__exec *e = job->e;                                                                    \
    T *lse = e->out[1].data;                                                                       \
    for (int64_t r = begin; r < end; r++) {                                                        \
      float w = weight_at(e, r);                                                                   \
      lse[r] = 0;                                                                                  \
      job->rows[r] = 0;                                                                            \
      if (w == 0.0f) continue;                                                                     \
      const T *x = (const T *)e->in[0].data + r * job->classes;                                    \
      T most = row_max_##S(x, job->classes);                                                       \
      T log_sum = sn__log_##S(exp_sum_##S(x, most, job->classes));                                 \
      lse[r] = most + log_sum;                                                                     \
      /* most and x[label] are subtracted first: both may be large, the result small */            \
      job->rows[r] = (double)w * ((double)log_sum + ((double)most - (double)x[label_at(e, r)]));   \
    }                                                                                              \
  }                                                                                                \
  static void backward_##S(void *arg, int64_t begin, int64_t end, int worker) {                    \
    (void)worker;                                                                                  \
    const ce_job *job = arg;                                                                       \
    const sn__exec *e = job->e;                                                                    \
    const T *lse = e->in[3].data, seed = *(const T *)e->in[4].data;                                \
    for (int64_t r = begin; r < end; r++) {                                                        \
      T *out = (T *)e->out[0].data + r * job->classes, factor = (T)weight_at(e, r) * seed;         \
      const T *x = (const T *)e->in[0].data + r * job->classes;                                    \
      if (weight_at(e, r) == 0.0f) {                                                               \
        memset(out, 0, (size_t)job->classes * sizeof(T));                                          \
        continue;                                                                                  \
      }                                                                                            \
      softmax_##S(x, lse[r], factor, out, job->classes);                                           \
      out[label_at(e, r)] -= factor;                                                               \
    }                                                                                              \
  }
KERNELS(float, f32)
KERNELS(double, f64)

size_t sn__softmax_cross_entropy_workspace(const sn__exec *e) {
  return (size_t)e->in[0].shape.dims[0] * sizeof(double);
}

sn_status sn__softmax_cross_entropy_cpu(const sn__exec *e) {
  int64_t rows = e->in[0].shape.dims[0], classes = e->in[0].shape.dims[1];
  SN_TRY(check_labels(e, rows, classes));
  ce_job job = {e, classes, e->workspace};
  bool f64 = e->in[0].dtype == SN_F64;
  sn__for_range(e->team, rows, sn__row_grain(4 * classes), f64 ? forward_f64 : forward_f32, &job);
  double sum = 0;
  for (int64_t r = 0; r < rows; r++)
    sum += job.rows[r];
  if (f64)
    *(double *)e->out[0].data = sum;
  else
    *(float *)e->out[0].data = (float)sum;
  return SN_OK;
}

sn_status sn__softmax_cross_entropy_grad_cpu(const sn__exec *e) {
  int64_t rows = e->in[0].shape.dims[0], classes = e->in[0].shape.dims[1];
  SN_TRY(check_labels(e, rows, classes));
  ce_job job = {e, classes, NULL};
  sn__for_range(e->team, rows, sn__row_grain(4 * classes),
                e->in[0].dtype == SN_F64 ? backward_f64 : backward_f32, &job);
  return SN_OK;
}
