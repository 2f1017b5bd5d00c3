/* SPDX-License-Identifier: Apache-2.0 */
/* The element types that we decode ourselves, as they lie in a file: one table. */
#ifndef SN_IO_H5_KIND_H
#define SN_IO_H5_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(ENUM, name, bytes, C type in memory once in native byte order) */
#define SN__H5_KINDS(X)                                                                            \
  X(I8, "i8", 1, int8_t)                                                                           \
  X(U8, "u8", 1, uint8_t)                                                                          \
  X(I16, "i16", 2, int16_t)                                                                        \
  X(U16, "u16", 2, uint16_t)                                                                       \
  X(I32, "i32", 4, int32_t)                                                                        \
  X(U32, "u32", 4, uint32_t)                                                                       \
  X(I64, "i64", 8, int64_t)                                                                        \
  X(U64, "u64", 8, uint64_t)                                                                       \
  X(F16, "f16", 2, uint16_t)                                                                       \
  X(BF16, "bf16", 2, uint16_t)                                                                     \
  X(F32, "f32", 4, float)                                                                          \
  X(F64, "f64", 8, double)

typedef enum sn__h5_kind {
  SN__H5_KIND_NONE = 0, /* only libhdf5 can convert it, or nobody */
#define SN__X(ENUM, name, bytes, type) SN__H5_##ENUM,
  SN__H5_KINDS(SN__X)
#undef SN__X
      SN__H5_KIND_COUNT
} sn__h5_kind;

static inline size_t sn__h5_kind_size(sn__h5_kind kind) {
  static const uint8_t sizes[SN__H5_KIND_COUNT] = {0,
#define SN__X(ENUM, name, bytes, type) bytes,
                                                   SN__H5_KINDS(SN__X)
#undef SN__X
  };
  return kind < SN__H5_KIND_COUNT ? sizes[kind] : 0;
}

static inline const char *sn__h5_kind_name(sn__h5_kind kind) {
  static const char *const names[SN__H5_KIND_COUNT] = {"none",
#define SN__X(ENUM, name, bytes, type) name,
                                                       SN__H5_KINDS(SN__X)
#undef SN__X
  };
  return kind < SN__H5_KIND_COUNT ? names[kind] : "none";
}

static inline bool sn__h5_kind_is_float(sn__h5_kind kind) {
  return kind >= SN__H5_F16;
}

#endif
