/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions for kernels, written so that a loop over them vectorises (internal).
 *
 * Each f32 function is straight-line arithmetic without fused multiply-adds or calls, so the bits
 * of an element do not depend on the vector width, on the tail of a loop, or on the compiler's
 * choice to vectorise at all. NaN goes in, NaN comes out; infinities and denormals are right. The
 * f64 ones, which serve to check gradients, are the C library's.
 *
 * A kernel's loop is
 *   SN__CLONES static void f(..) { SN__SIMD for (..) y[i] = sn__exp_f32(x[i]); }
 * which is compiled for the plain machine, AVX2 and AVX-512; the best one is bound when the
 * program starts. */
#ifndef SN_OPS_VECMATH_H
#define SN_OPS_VECMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "core/api.h"

#define SN__INLINE static inline __attribute__((always_inline))
#define SN__SIMD   _Pragma("omp simd")

/* Binding happens through an ifunc, which runs before TSan is ready; clang 14 gives the resolvers
 * of static functions global names, so that two files collide; elsewhere the machine has no such
 * variants. The bits are the same without. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) &&                  \
    !defined(__clang__)
#define SN__CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SN__CLONES
#endif

/* ---- f32 ---- */

SN__INLINE float sn__float_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

SN__INLINE uint32_t sn__float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* e^x = 2^n (1 + r + r^2 P(r)), |r| <= ln 2 / 2. The power of two is applied in two halves, so
 * overflow to infinity and gradual underflow come out by themselves. */
SN__INLINE float sn__exp_f32(float x) {
  const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  float shifted = x * 1.44269504f + to_integer;
  int32_t n = (int32_t)(sn__float_bits(shifted) - 0x4B400000u);
  float whole = shifted - to_integer;
  float r = x - whole * 0.693359375f;
  r = r - whole * -2.12194440e-4f;
  float p = 1.990756936e-04f;
  p = p * r + 1.393364325e-03f;
  p = p * r + 8.333286029e-03f;
  p = p * r + 4.166646498e-02f;
  p = p * r + 1.666666676e-01f;
  p = p * r + 5.000000013e-01f;
  p = (p * r * r + r) + 1.0f;
  int32_t half = n >> 1;
  float s1 = sn__float_from_bits((uint32_t)(half + 127) << 23);
  float s2 = sn__float_from_bits((uint32_t)(n - half + 127) << 23);
  return p * s1 * s2;
}

/* x = 2^e (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1); log(1 + f) = f - f^2/2 + f^3 Q(f). */
SN__INLINE float sn__log_f32(float x) {
  float scaled = x < 0x1p-126f ? x * 0x1p25f : x;
  float extra = x < 0x1p-126f ? -25.0f : 0.0f;
  uint32_t bits = sn__float_bits(scaled) - 0x3F3504F3u;
  int32_t exponent = (int32_t)bits >> 23;
  float f = sn__float_from_bits((bits & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  float e = (float)exponent + extra;
  float q = 7.332437122e-02f;
  q = q * f - 1.165988718e-01f;
  q = q * f + 1.163467725e-01f;
  q = q * f - 1.239670730e-01f;
  q = q * f + 1.425115485e-01f;
  q = q * f - 1.666915068e-01f;
  q = q * f + 2.000068810e-01f;
  q = q * f - 2.499998119e-01f;
  q = q * f + 3.333333126e-01f;
  float ff = f * f;
  float y = f * ff * q + e * -2.12194440e-4f;
  y = (f + (y - 0.5f * ff)) + e * 0.693359375f;
  y = x == 0.0f ? -INFINITY : y;
  y = x < 0.0f ? NAN : y;
  y = x == INFINITY ? INFINITY : y;
  return x != x ? x : y;
}

/* log(1 + x) for x in [0, 1]; the correction makes up for what 1 + x rounds away. */
SN__INLINE float sn__log1p_unit_f32(float x) {
  float u = 1.0f + x;
  return sn__log_f32(u) + (x - (u - 1.0f)) / u;
}

SN__INLINE float sn__sigmoid_f32(float x) {
  return 1.0f / (1.0f + sn__exp_f32(-x));
}

SN__INLINE float sn__tanh_f32(float x) {
  float a = fabsf(x), t = x * x;
  float p = -5.942243464e-03f;
  p = p * t + 2.088914628e-02f;
  p = p * t - 5.382791532e-02f;
  p = p * t + 1.333261901e-01f;
  p = p * t - 3.333332749e-01f;
  float small = x + x * t * p;
  float big = 1.0f - 2.0f / (sn__exp_f32(2.0f * a) + 1.0f);
  big = copysignf(big, x);
  return a < 0.65f ? small : big;
}

/* |x| < 1: x P(x^2); else 1 - exp(-x^2) R(1 / (1 + x/2)). */
SN__INLINE float sn__erf_f32(float x) {
  float a = fabsf(x), t = x * x;
  float p = 7.853854329e-05f;
  p = p * t - 8.010191498e-04f;
  p = p * t + 5.188327444e-03f;
  p = p * t - 2.685381181e-02f;
  p = p * t + 1.128358515e-01f;
  p = p * t - 3.761262582e-01f;
  p = p * t + 1.128379166e+00f;
  float s = 1.0f / (1.0f + 0.5f * (a > 4.2f ? 4.2f : a));
  float r = -8.640480357e-02f;
  r = r * s + 4.017716185e-01f;
  r = r * s - 7.037830399e-01f;
  r = r * s + 5.038298131e-01f;
  r = r * s - 1.725110465e-01f;
  r = r * s + 2.631613991e-01f;
  r = r * s + 2.270403110e-01f;
  r = r * s + 2.850124564e-01f;
  r = r * s + 2.818431303e-01f;
  r = r * s + 9.644085550e-06f;
  float big = 1.0f - sn__exp_f32(-t) * r;
  big = copysignf(big, x);
  float y = a < 1.0f ? x * p : big;
  return x != x ? x : y;
}

SN__INLINE float sn__softplus_f32(float x) {
  float y = (x > 0.0f ? x : 0.0f) + sn__log1p_unit_f32(sn__exp_f32(-fabsf(x)));
  return x != x ? x : y;
}

SN__INLINE float sn__abs_f32(float x) {
  return fabsf(x);
}
SN__INLINE float sn__sqrt_f32(float x) {
  return sqrtf(x);
}

/* ---- f64 ---- */

SN__INLINE double sn__exp_f64(double x) {
  return exp(x);
}
SN__INLINE double sn__log_f64(double x) {
  return log(x);
}
SN__INLINE double sn__log1p_unit_f64(double x) {
  return log1p(x);
}
SN__INLINE double sn__sigmoid_f64(double x) {
  return 1.0 / (1.0 + exp(-x));
}
SN__INLINE double sn__tanh_f64(double x) {
  return tanh(x);
}
SN__INLINE double sn__erf_f64(double x) {
  return erf(x);
}
SN__INLINE double sn__softplus_f64(double x) {
  return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}
SN__INLINE double sn__abs_f64(double x) {
  return fabs(x);
}
SN__INLINE double sn__sqrt_f64(double x) {
  return sqrt(x);
}

/* ---- sums over a stretch, in one fixed order ----
 * Sixteen lanes (element i into lane i mod 16), then the lanes as a tree of halves: the order
 * depends on n alone. */

typedef float sn__f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef double sn__f64x8 __attribute__((vector_size(64), aligned(8), may_alias));

#define SN__LANES 16

#define SN__DEFINE_LANES(T, S)                                                                     \
  SN__INLINE T sn__lanes_sum_##S(T *lane) {                                                        \
    for (int h = SN__LANES / 2; h > 0; h /= 2)                                                     \
      for (int l = 0; l < h; l++)                                                                  \
        lane[l] += lane[l + h];                                                                    \
    return lane[0];                                                                                \
  }                                                                                                \
  SN__INLINE T sn__lanes_max_##S(T *lane) {                                                        \
    for (int h = SN__LANES / 2; h > 0; h /= 2)                                                     \
      for (int l = 0; l < h; l++)                                                                  \
        lane[l] = lane[l] > lane[l + h] ? lane[l] : lane[l + h];                                   \
    return lane[0];                                                                                \
  }
SN__DEFINE_LANES(float, f32)
SN__DEFINE_LANES(double, f64)

/* The largest of n >= 1 numbers; where some are NaN, any of them or the largest of the rest. */
#define SN__DEFINE_ROW_MAX(T, S)                                                                   \
  SN__CLONES static T row_max_##S(const T *x, int64_t n) {                                         \
    T lane[SN__LANES];                                                                             \
    for (int l = 0; l < SN__LANES; l++)                                                            \
      lane[l] = x[0];                                                                              \
    int64_t i = 0;                                                                                 \
    for (; i + SN__LANES <= n; i += SN__LANES) {                                                   \
      SN__SIMD for (int l = 0; l < SN__LANES; l++) lane[l] =                                       \
          lane[l] > x[i + l] ? lane[l] : x[i + l];                                                 \
    }                                                                                              \
    for (int l = 0; i < n; i++, l++)                                                               \
      lane[l] = lane[l] > x[i] ? lane[l] : x[i];                                                   \
    return sn__lanes_max_##S(lane);                                                                \
  }

/* Declares `T result` = the sum over i in [0, n) of `term`, an expression in i. */
#define SN__LANE_SUM(T, S, result, i, n, term)                                                     \
  T result;                                                                                        \
  do {                                                                                             \
    T lane_[SN__LANES] = {0};                                                                      \
    const int64_t n_ = (n), whole_ = n_ - n_ % SN__LANES;                                          \
    for (int64_t base_ = 0; base_ < whole_; base_ += SN__LANES) {                                  \
      SN__SIMD for (int l_ = 0; l_ < SN__LANES; l_++) {                                            \
        const int64_t i = base_ + l_;                                                              \
        lane_[l_] += (term);                                                                       \
      }                                                                                            \
    }                                                                                              \
    for (int64_t i = whole_; i < n_; i++)                                                          \
      lane_[i - whole_] += (term);                                                                 \
    result = sn__lanes_sum_##S(lane_);                                                             \
  } while (0)

#endif
