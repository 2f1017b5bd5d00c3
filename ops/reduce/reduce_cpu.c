/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce/reduce.h"

#include <string.h>

sn__middle sn__middle_of(const sn_shape *s, int64_t axis, bool all) {
  if (all) return (sn__middle){1, sn__shape_size(s), 1};
  int32_t at = sn__axis_of(axis, s->rank);
  return (sn__middle){sn__shape_span(s, 0, at), s->dims[at], sn__shape_span(s, at + 1, s->rank)};
}

static sn__middle middle_of_input(const sn__exec *e) {
  const sn__reduce_attrs *t = e->attrs;
  return sn__middle_of(&e->in[0].shape, t->axis, t->all != 0);
}

size_t sn__reduce_workspace(const sn__exec *e) {
  sn__middle m = middle_of_input(e);
  return sn__sum_middle_workspace(m.outer, m.middle, m.inner);
}

static sn_status sum(const sn__exec *e, bool mean) {
  sn__middle m = middle_of_input(e);
  double scale = mean && m.middle > 0 ? 1.0 / (double)m.middle : 1.0;
  sn__sum_middle(e->team, e->in[0].dtype, e->in[0].data, m.outer, m.middle, m.inner, scale,
                 e->out[0].data, e->workspace);
  return SN_OK;
}

sn_status sn__reduce_sum_cpu(const sn__exec *e) {
  return sum(e, false);
}

sn_status sn__reduce_mean_cpu(const sn__exec *e) {
  return sum(e, true);
}

typedef struct middle_job {
  const sn__exec *e;
  sn__middle m;
} middle_job;

/* The first of equals wins; NaN, once met, stays. */
#define KERNELS(T, S)                                                                              \
  static void max_##S(void *arg, int64_t begin, int64_t end, int worker) {                         \
    (void)worker;                                                                                  \
    const middle_job *job = arg;                                                                   \
    const int64_t middle = job->m.middle, inner = job->m.inner;                                    \
    for (int64_t o = begin; o < end; o++) {                                                        \
      const T *x = (const T *)job->e->in[0].data + o * middle * inner;                             \
      T *best = (T *)job->e->out[0].data + o * inner;                                              \
      int32_t *where = (int32_t *)job->e->out[1].data + o * inner;                                 \
      for (int64_t i = 0; i < inner; i++) {                                                        \
        best[i] = middle > 0 ? x[i] : 0;                                                           \
        where[i] = middle > 0 ? 0 : -1;                                                            \
      }                                                                                            \
      for (int64_t k = 1; k < middle; k++)                                                         \
        for (int64_t i = 0; i < inner; i++) {                                                      \
          T v = x[k * inner + i];                                                                  \
          if (v > best[i] || (v != v && best[i] == best[i])) {                                     \
            best[i] = v;                                                                           \
            where[i] = (int32_t)k;                                                                 \
          }                                                                                        \
        }                                                                                          \
    }                                                                                              \
  }                                                                                                \
  static void spread_##S(void *arg, int64_t begin, int64_t end, int worker) {                      \
    (void)worker;                                                                                  \
    const middle_job *job = arg;                                                                   \
    const int64_t middle = job->m.middle, inner = job->m.inner;                                    \
    const int64_t kind = ((const sn__reduce_grad_attrs *)job->e->attrs)->kind;                     \
    const T scale = kind == SN__REDUCE_MEAN ? (T)(1.0 / (double)middle) : (T)1;                    \
    for (int64_t r = begin; r < end; r++) {                                                        \
      const T *dy = (const T *)job->e->in[0].data + r / middle * inner;                            \
      T *dx = (T *)job->e->out[0].data + r * inner;                                                \
      if (kind == SN__REDUCE_MAX) {                                                                \
        const int32_t *where = (const int32_t *)job->e->in[1].data + r / middle * inner;           \
        for (int64_t i = 0; i < inner; i++)                                                        \
          dx[i] = where[i] == (int32_t)(r % middle) ? dy[i] : 0;                                   \
      } else {                                                                                     \
        for (int64_t i = 0; i < inner; i++)                                                        \
          dx[i] = dy[i] * scale;                                                                   \
      }                                                                                            \
    }                                                                                              \
  }
KERNELS(float, f32)
KERNELS(double, f64)

sn_status sn__reduce_max_cpu(const sn__exec *e) {
  middle_job job = {e, middle_of_input(e)};
  if (job.m.inner == 0) return SN_OK;
  sn__for_range(e->team, job.m.outer, sn__row_grain(job.m.middle * job.m.inner),
                e->in[0].dtype == SN_F64 ? max_f64 : max_f32, &job);
  return SN_OK;
}

sn_status sn__reduce_grad_cpu(const sn__exec *e) {
  const sn__reduce_grad_attrs *t = e->attrs;
  if (sn__count(&e->out[0]) == 0) return SN_OK;
  middle_job job = {e, sn__middle_of(&e->out[0].shape, t->axis, t->all != 0)};
  sn__for_range(e->team, job.m.outer * job.m.middle, sn__row_grain(job.m.inner),
                e->in[0].dtype == SN_F64 ? spread_f64 : spread_f32, &job);
  return SN_OK;
}
