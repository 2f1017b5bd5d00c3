/* SPDX-License-Identifier: Apache-2.0 */
#include "io/h5_convert.h"

#include <math.h>
#include <string.h>

void sn__h5_swap(uint8_t *bytes, size_t count, size_t size) {
  switch (size) {
  case 2:
    for (size_t i = 0; i < count; ++i) {
      uint16_t v;
      memcpy(&v, bytes + 2 * i, 2);
      v = __builtin_bswap16(v);
      memcpy(bytes + 2 * i, &v, 2);
    }
    break;
  case 4:
    for (size_t i = 0; i < count; ++i) {
      uint32_t v;
      memcpy(&v, bytes + 4 * i, 4);
      v = __builtin_bswap32(v);
      memcpy(bytes + 4 * i, &v, 4);
    }
    break;
  case 8:
    for (size_t i = 0; i < count; ++i) {
      uint64_t v;
      memcpy(&v, bytes + 8 * i, 8);
      v = __builtin_bswap64(v);
      memcpy(bytes + 8 * i, &v, 8);
    }
    break;
  default: break;
  }
}

float sn__h5_half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31,
           mantissa = half & 1023;
  uint32_t bits;
  if (exponent == 31) { /* inf, NaN with its payload */
    bits = sign | 0x7f800000u | mantissa << 13;
  } else if (exponent != 0) {
    bits = sign | (exponent + 112) << 23 | mantissa << 13;
  } else { /* zero and subnormals: mantissa x 2^-24, exact in a float */
    float v = (float)mantissa * 0x1p-24f;
    return sign != 0 ? -v : v;
  }
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static float bfloat_to_float(uint16_t bfloat) {
  uint32_t bits = (uint32_t)bfloat << 16;
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* What an element of each kind is as a number in C. */
#define LOAD_PLAIN(v) (v)
#define LOAD_I8       LOAD_PLAIN
#define LOAD_U8       LOAD_PLAIN
#define LOAD_I16      LOAD_PLAIN
#define LOAD_U16      LOAD_PLAIN
#define LOAD_I32      LOAD_PLAIN
#define LOAD_U32      LOAD_PLAIN
#define LOAD_I64      LOAD_PLAIN
#define LOAD_U64      LOAD_PLAIN
#define LOAD_F16      sn__h5_half_to_float
#define LOAD_BF16     bfloat_to_float
#define LOAD_F32      LOAD_PLAIN
#define LOAD_F64      LOAD_PLAIN

double sn__h5_value(sn__h5_kind kind, const void *in, size_t index) {
  switch (kind) {
#define SN__X(ENUM, name, bytes, type)                                                             \
  case SN__H5_##ENUM: return (double)LOAD_##ENUM(((const type *)in)[index]);
    SN__H5_KINDS(SN__X)
#undef SN__X
  default: return NAN;
  }
}

static void to_f32(sn__h5_kind kind, sn__h5_runs r, const uint8_t *in, uint8_t *out) {
  switch (kind) {
#define SN__X(ENUM, name, bytes, type)                                                             \
  case SN__H5_##ENUM:                                                                              \
    for (size_t k = 0; k < r.count; ++k, in += r.from_step, out += r.to_step)                      \
      for (size_t i = 0; i < r.length; ++i)                                                        \
        ((float *)(void *)out)[i] = (float)LOAD_##ENUM(((const type *)(const void *)in)[i]);       \
    break;
    SN__H5_KINDS(SN__X)
#undef SN__X
  default: break;
  }
}

static void to_f64(sn__h5_kind kind, sn__h5_runs r, const uint8_t *in, uint8_t *out) {
  switch (kind) {
#define SN__X(ENUM, name, bytes, type)                                                             \
  case SN__H5_##ENUM:                                                                              \
    for (size_t k = 0; k < r.count; ++k, in += r.from_step, out += r.to_step)                      \
      for (size_t i = 0; i < r.length; ++i)                                                        \
        ((double *)(void *)out)[i] = (double)LOAD_##ENUM(((const type *)(const void *)in)[i]);     \
    break;
    SN__H5_KINDS(SN__X)
#undef SN__X
  default: break;
  }
}

/* One element as i64; false when it is none. */
static bool as_i64(sn__h5_kind kind, const void *in, size_t i, int64_t *out) {
  switch (kind) {
  case SN__H5_I8: /* NOLINTNEXTLINE(bugprone-signed-char-misuse): a number, no character */
    *out = ((const int8_t *)in)[i];
    return true;
  case SN__H5_U8: *out = ((const uint8_t *)in)[i]; return true;
  case SN__H5_I16: *out = ((const int16_t *)in)[i]; return true;
  case SN__H5_U16: *out = ((const uint16_t *)in)[i]; return true;
  case SN__H5_I32: *out = ((const int32_t *)in)[i]; return true;
  case SN__H5_U32: *out = ((const uint32_t *)in)[i]; return true;
  case SN__H5_I64: *out = ((const int64_t *)in)[i]; return true;
  case SN__H5_U64:
    if (((const uint64_t *)in)[i] > INT64_MAX) return false;
    *out = (int64_t)((const uint64_t *)in)[i];
    return true;
  default: {
    double v = sn__h5_value(kind, in, i);
    if (!(v >= -0x1p63 && v < 0x1p63) || v != trunc(v)) return false;
    *out = (int64_t)v;
    return true;
  }
  }
}

static size_t to_integers(sn__h5_kind kind, const void *in, size_t count, sn_dtype dtype,
                          void *out) {
  for (size_t i = 0; i < count; ++i) {
    int64_t v;
    if (!as_i64(kind, in, i, &v)) return i;
    switch (dtype) {
    case SN_I64: ((int64_t *)out)[i] = v; break;
    case SN_I32:
      if (v < INT32_MIN || v > INT32_MAX) return i;
      ((int32_t *)out)[i] = (int32_t)v;
      break;
    case SN_U8:
      if (v < 0 || v > UINT8_MAX) return i;
      ((uint8_t *)out)[i] = (uint8_t)v;
      break;
    default: /* bool */
      if (v < 0 || v > 1) return i;
      ((uint8_t *)out)[i] = (uint8_t)v;
      break;
    }
  }
  return count;
}

bool sn__h5_convertible(sn__h5_kind kind, sn_dtype dtype) {
  return kind != SN__H5_KIND_NONE && (dtype == SN_F32 || dtype == SN_F64 || dtype == SN_I64 ||
                                      dtype == SN_I32 || dtype == SN_U8 || dtype == SN_BOOL);
}

static bool same_bytes(sn__h5_kind kind, sn_dtype dtype) {
  return (kind == SN__H5_F32 && dtype == SN_F32) || (kind == SN__H5_F64 && dtype == SN_F64) ||
         (kind == SN__H5_I64 && dtype == SN_I64) || (kind == SN__H5_I32 && dtype == SN_I32) ||
         (kind == SN__H5_U8 && dtype == SN_U8);
}

/* Short runs of one size: the compiler makes a load and a store of each. */
#define COPY_RUNS(size)                                                                            \
  for (size_t k = 0; k < r.count; ++k, in += r.from_step, out += r.to_step)                        \
  memcpy(out, in, size)

void sn__h5_copy_runs(size_t bytes, sn__h5_runs r, const void *from, void *to) {
  const uint8_t *in = from;
  uint8_t *out = to;
  switch (bytes) {
  case 4: COPY_RUNS(4); break;
  case 8: COPY_RUNS(8); break;
  case 16: COPY_RUNS(16); break;
  case 32: COPY_RUNS(32); break;
  default: COPY_RUNS(bytes); break;
  }
}

bool sn__h5_convert_runs(sn__h5_kind kind, sn__h5_runs r, const void *in, sn_dtype dtype,
                         void *out) {
  if (same_bytes(kind, dtype))
    sn__h5_copy_runs(r.length * sn_dtype_size(dtype), r, in, out);
  else if (dtype == SN_F32)
    to_f32(kind, r, in, out);
  else if (dtype == SN_F64)
    to_f64(kind, r, in, out);
  else
    return false;
  return true;
}

size_t sn__h5_convert(sn__h5_kind kind, const void *in, size_t count, sn_dtype dtype, void *out) {
  if (count == 0) return 0;
  sn__h5_runs one = {.count = 1, .length = count};
  if (sn__h5_convert_runs(kind, one, in, dtype, out)) return count;
  return to_integers(kind, in, count, dtype, out);
}
