/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/binary/binary.h"
#include "ops/vecmath.h"

typedef void (*binary_fn)(const void *a, const void *b, void *out, int64_t n, int64_t step_a,
                          int64_t step_b);

#define KERNEL(T, S, name, op)                                                                     \
  SN__CLONES static void name##_##S(const void *va, const void *vb, void *vo, int64_t n,           \
                                    int64_t step_a, int64_t step_b) {                              \
    const T *a = va, *b = vb;                                                                      \
    T *out = vo;                                                                                   \
    if (step_a != 0 && step_b != 0) {                                                              \
      SN__SIMD for (int64_t i = 0; i < n; i++) out[i] = a[i] op b[i];                              \
    } else if (step_a != 0) {                                                                      \
      const T y = *b;                                                                              \
      SN__SIMD for (int64_t i = 0; i < n; i++) out[i] = a[i] op y;                                 \
    } else {                                                                                       \
      const T x = *a;                                                                              \
      for (int64_t i = 0; i < n; i++)                                                              \
        out[i] = x op b[i * step_b];                                                               \
    }                                                                                              \
  }
#define KERNELS(T, S)                                                                              \
  KERNEL(T, S, add, +)                                                                             \
  KERNEL(T, S, sub, -)                                                                             \
  KERNEL(T, S, mul, *)                                                                             \
  KERNEL(T, S, div, /)
KERNELS(float, f32)
KERNELS(double, f64)

typedef struct binary_job {
  binary_fn fn;
  const char *a, *b;
  char *out;
  size_t size;
} binary_job;

static void stretch(void *arg, int64_t at, const int64_t *first, const int64_t *step, int64_t n) {
  const binary_job *job = arg;
  job->fn(job->a + (size_t)first[0] * job->size, job->b + (size_t)first[1] * job->size,
          job->out + (size_t)at * job->size, n, step[0], step[1]);
}

static sn_status run(const sn__exec *e, binary_fn f32, binary_fn f64) {
  if (sn__count(&e->out[0]) == 0) return SN_OK;
  const sn_shape *in[] = {&e->in[0].shape, &e->in[1].shape};
  sn__broadcast plan = sn__broadcast_plan(&e->out[0].shape, in, 2);
  binary_job job = {.fn = e->out[0].dtype == SN_F64 ? f64 : f32,
                    .a = e->in[0].data,
                    .b = e->in[1].data,
                    .out = e->out[0].data,
                    .size = sn_dtype_size(e->out[0].dtype)};
  sn__broadcast_run(e, &plan, 2, stretch, &job);
  return SN_OK;
}

#define ENTRY(name)                                                                                \
  sn_status sn__##name##_cpu(const sn__exec *e) {                                                  \
    return run(e, name##_f32, name##_f64);                                                         \
  }
ENTRY(add)
ENTRY(sub)
ENTRY(mul)
ENTRY(div)
