/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/unary/unary.h"
#include "ops/vecmath.h"

/* F(f): the f32 or f64 form of an elementary function; C(number): a constant of the type. */
#define FORWARD(T, S, name, expr)                                                                  \
  SN__CLONES static void name##_##S(const void *vx, void *vy, int64_t n,                           \
                                    const sn__unary_attrs *attrs) {                                \
    const T *xs = vx;                                                                              \
    T *ys = vy;                                                                                    \
    const T alpha = (T)attrs->alpha, beta = (T)attrs->beta;                                        \
    (void)alpha;                                                                                   \
    (void)beta;                                                                                    \
    SN__SIMD for (int64_t i = 0; i < n; i++) {                                                     \
      const T x = xs[i];                                                                           \
      ys[i] = (expr);                                                                              \
    }                                                                                              \
  }

/* s: the saved input or output; d: the incoming gradient. */
#define BACKWARD(T, S, name, expr)                                                                 \
  SN__CLONES static void name##_grad_##S(const void *vs, const void *vd, void *vo, int64_t n,      \
                                         double alpha_, double beta_) {                            \
    const T *ss = vs, *ds = vd;                                                                    \
    T *out = vo;                                                                                   \
    const T alpha = (T)alpha_, beta = (T)beta_;                                                    \
    (void)alpha;                                                                                   \
    (void)beta;                                                                                    \
    SN__SIMD for (int64_t i = 0; i < n; i++) {                                                     \
      const T s = ss[i], d = ds[i];                                                                \
      (void)s;                                                                                     \
      out[i] = (expr);                                                                             \
    }                                                                                              \
  }

#define DEFINE(T, S)                                                                               \
  /* 0.7978.. = sqrt(2 / pi), 0.3989.. = 1 / sqrt(2 pi), 0.7071.. = 1 / sqrt(2). The tanh form's   \
   * (1 + tanh u) / 2 is sigmoid(2 u), which keeps its digits where tanh is near -1. */            \
  SN__INLINE T gelu_inner_##S(T x) {                                                               \
    return (T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x);                              \
  }                                                                                                \
  SN__INLINE T phi_##S(T x) {                                                                      \
    return (T)0.5 * ((T)1 + sn__erf_##S(x * (T)0.70710678118654752440));                           \
  }                                                                                                \
  SN__INLINE T gelu_slope_##S(T x) {                                                               \
    T dens = sn__exp_##S((T)-0.5 * x * x) * (T)0.39894228040143267794;                             \
    return phi_##S(x) + x * dens;                                                                  \
  }                                                                                                \
  SN__INLINE T gelu_tanh_slope_##S(T x) {                                                          \
    T q = sn__sigmoid_##S((T)2 * gelu_inner_##S(x));                                               \
    T du = (T)(2 * 0.79788456080286535588) * ((T)1 + (T)(3 * 0.044715) * x * x);                   \
    return q + x * q * ((T)1 - q) * du;                                                            \
  }                                                                                                \
  SN__INLINE T silu_slope_##S(T x) {                                                               \
    T q = sn__sigmoid_##S(x);                                                                      \
    return q * ((T)1 + x * ((T)1 - q));                                                            \
  }                                                                                                \
  SN__INLINE T softsign_slope_##S(T x) {                                                           \
    T q = (T)1 / ((T)1 + sn__abs_##S(x));                                                          \
    return q * q;                                                                                  \
  }                                                                                                \
  FORWARD(T, S, neg, -x)                                                                           \
  FORWARD(T, S, exp, sn__exp_##S(x))                                                               \
  FORWARD(T, S, log, sn__log_##S(x))                                                               \
  FORWARD(T, S, sqrt, sn__sqrt_##S(x))                                                             \
  FORWARD(T, S, tanh, sn__tanh_##S(x))                                                             \
  FORWARD(T, S, sigmoid, sn__sigmoid_##S(x))                                                       \
  FORWARD(T, S, relu, x < 0 ? (T)0 : x)                                                            \
  FORWARD(T, S, leaky_relu, x < 0 ? x * alpha : x)                                                 \
  FORWARD(T, S, gelu, x *phi_##S(x))                                                               \
  FORWARD(T, S, gelu_tanh, x *sn__sigmoid_##S((T)2 * gelu_inner_##S(x)))                           \
  FORWARD(T, S, silu, x *sn__sigmoid_##S(x))                                                       \
  FORWARD(T, S, softplus, sn__softplus_##S(x))                                                     \
  FORWARD(T, S, softsign, x / ((T)1 + sn__abs_##S(x)))                                             \
  FORWARD(T, S, affine, alpha *x + beta)                                                           \
  FORWARD(T, S, clamp, x<alpha ? alpha : x> beta ? beta : x)                                       \
  BACKWARD(T, S, neg, -d)                                                                          \
  BACKWARD(T, S, exp, d *s)                                                                        \
  BACKWARD(T, S, log, d / s)                                                                       \
  BACKWARD(T, S, sqrt, d *(T)0.5 / s)                                                              \
  BACKWARD(T, S, tanh, d *((T)1 - s * s))                                                          \
  BACKWARD(T, S, sigmoid, d *s *((T)1 - s))                                                        \
  BACKWARD(T, S, relu, s > 0 ? d : (T)0)                                                           \
  BACKWARD(T, S, leaky_relu, s > 0 ? d : d * alpha)                                                \
  BACKWARD(T, S, gelu, d *gelu_slope_##S(s))                                                       \
  BACKWARD(T, S, gelu_tanh, d *gelu_tanh_slope_##S(s))                                             \
  BACKWARD(T, S, silu, d *silu_slope_##S(s))                                                       \
  BACKWARD(T, S, softplus, d *sn__sigmoid_##S(s))                                                  \
  BACKWARD(T, S, softsign, d *softsign_slope_##S(s))                                               \
  BACKWARD(T, S, affine, d *alpha)                                                                 \
  BACKWARD(T, S, clamp, s<alpha || s> beta ? (T)0 : d)

DEFINE(float, f32)
DEFINE(double, f64)

#define SN_X(name, saves, flops, doc) name##_f32,
const sn__unary_fn sn__unary_f32[] = {SN__UNARIES(SN_X)};
#undef SN_X
#define SN_X(name, saves, flops, doc) name##_f64,
const sn__unary_fn sn__unary_f64[] = {SN__UNARIES(SN_X)};
#undef SN_X
#define SN_X(name, saves, flops, doc) name##_grad_f32,
const sn__unary_grad_fn sn__unary_grad_f32[] = {SN__UNARIES(SN_X)};
#undef SN_X
#define SN_X(name, saves, flops, doc) name##_grad_f64,
const sn__unary_grad_fn sn__unary_grad_f64[] = {SN__UNARIES(SN_X)};
#undef SN_X

typedef struct unary_job {
  sn__unary_fn forward;
  sn__unary_grad_fn backward;
  const sn__exec *e;
  size_t size;
} unary_job;

static void forward_range(void *arg, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const unary_job *job = arg;
  size_t at = (size_t)begin * job->size;
  job->forward((const char *)job->e->in[0].data + at, (char *)job->e->out[0].data + at, end - begin,
               job->e->attrs);
}

sn_status sn__unary_cpu(const sn__exec *e) {
  int kind = 0;
  while (sn__unary_defs[kind] != e->op)
    kind++;
  bool f64 = e->in[0].dtype == SN_F64;
  unary_job job = {.forward = f64 ? sn__unary_f64[kind] : sn__unary_f32[kind],
                   .e = e,
                   .size = sn_dtype_size(e->in[0].dtype)};
  sn__for_range(e->team, sn__count(&e->in[0]), SN__GRAIN, forward_range, &job);
  return SN_OK;
}

static void backward_range(void *arg, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const unary_job *job = arg;
  const sn__unary_grad_attrs *a = job->e->attrs;
  size_t at = (size_t)begin * job->size;
  job->backward((const char *)job->e->in[0].data + at, (const char *)job->e->in[1].data + at,
                (char *)job->e->out[0].data + at, end - begin, a->alpha, a->beta);
}

sn_status sn__unary_grad_cpu(const sn__exec *e) {
  const sn__unary_grad_attrs *a = e->attrs;
  bool f64 = e->in[1].dtype == SN_F64;
  unary_job job = {.backward = f64 ? sn__unary_grad_f64[a->kind] : sn__unary_grad_f32[a->kind],
                   .e = e,
                   .size = sn_dtype_size(e->in[1].dtype)};
  sn__for_range(e->team, sn__count(&e->in[1]), SN__GRAIN, backward_range, &job);
  return SN_OK;
}
