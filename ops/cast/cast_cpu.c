/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cast/cast.h"
#include "ops/vecmath.h"

/* bf16 is the upper half of an f32. */
typedef uint16_t bf16;

SN__INLINE float from_bf16(bf16 x) {
  return sn__float_from_bits((uint32_t)x << 16);
}

SN__INLINE bf16 to_bf16(float x) {
  uint32_t bits = sn__float_bits(x);
  if (x != x) return (bf16)((bits >> 16) | 0x40u); /* keep it a NaN */
  return (bf16)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/* Towards zero, within [low, high]; high is the first number beyond, exact as a double. */
#define DEFINE_TO_WHOLE(T, low, beyond, highest)                                                   \
  SN__INLINE T real_to_##T(double x) {                                                             \
    if (x != x) return 0;                                                                          \
    return x <= (low) ? (T)(low) : x >= (beyond) ? (T)(highest) : (T)x;                            \
  }
DEFINE_TO_WHOLE(int32_t, -0x1p31, 0x1p31, INT32_MAX)
DEFINE_TO_WHOLE(int64_t, -0x1p63, 0x1p63, INT64_MAX)
DEFINE_TO_WHOLE(uint8_t, 0.0, 0x1p8, UINT8_MAX)

SN__INLINE int32_t whole_to_int32_t(int64_t x) {
  return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}
SN__INLINE int64_t whole_to_int64_t(int64_t x) {
  return x;
}
SN__INLINE uint8_t whole_to_uint8_t(int64_t x) {
  return x < 0 ? 0 : x > UINT8_MAX ? UINT8_MAX : (uint8_t)x;
}

typedef void (*cast_fn)(const void *from, void *to, int64_t n);

#define LOOP(NAME, F, T, expr)                                                                     \
  static void NAME(const void *vf, void *vt, int64_t n) {                                          \
    const F *from = vf;                                                                            \
    T *to = vt;                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                              \
      const F x = from[i];                                                                         \
      to[i] = (expr);                                                                              \
    }                                                                                              \
  }

/* value: x as a number; kind: real or whole. */
#define FROM(NAME, F, value, kind)                                                                 \
  LOOP(NAME##_F32, F, float, (float)(value))                                                       \
  LOOP(NAME##_F64, F, double, (double)(value))                                                     \
  LOOP(NAME##_BF16, F, bf16, to_bf16((float)(value)))                                              \
  LOOP(NAME##_I32, F, int32_t, kind##_to_int32_t(value))                                           \
  LOOP(NAME##_I64, F, int64_t, kind##_to_int64_t(value))                                           \
  LOOP(NAME##_U8, F, uint8_t, kind##_to_uint8_t(value))                                            \
  LOOP(NAME##_BOOL, F, uint8_t, (value) != 0)
FROM(F32, float, x, real)
FROM(F64, double, x, real)
FROM(BF16, bf16, from_bf16(x), real)
FROM(I32, int32_t, x, whole)
FROM(I64, int64_t, x, whole)
FROM(U8, uint8_t, x, whole)

#define ROW(NAME)                                                                                  \
  {                                                                                                \
    [SN_F32] = NAME##_F32, [SN_F64] = NAME##_F64, [SN_BF16] = NAME##_BF16, [SN_I32] = NAME##_I32,  \
    [SN_I64] = NAME##_I64, [SN_U8] = NAME##_U8, [SN_BOOL] = NAME##_BOOL                            \
  }
static const cast_fn casts[SN_DTYPE_COUNT][SN_DTYPE_COUNT] = {
    [SN_F32] = ROW(F32), [SN_F64] = ROW(F64), [SN_BF16] = ROW(BF16), [SN_I32] = ROW(I32),
    [SN_I64] = ROW(I64), [SN_U8] = ROW(U8),   [SN_BOOL] = ROW(U8)};

static void cast_range(void *arg, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const sn__exec *e = arg;
  sn_dtype from = e->in[0].dtype, to = e->out[0].dtype;
  casts[from][to]((const char *)e->in[0].data + (size_t)begin * sn_dtype_size(from),
                  (char *)e->out[0].data + (size_t)begin * sn_dtype_size(to), end - begin);
}

sn_status sn__cast_cpu(const sn__exec *e) {
  sn__for_range(e->team, sn__count(&e->out[0]), SN__GRAIN, cast_range, (void *)(uintptr_t)e);
  return SN_OK;
}
