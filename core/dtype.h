/* SPDX-License-Identifier: Apache-2.0 */
/* Element types. One table gives the enum, the names, the sizes and what each is. */
#ifndef SN_CORE_DTYPE_H
#define SN_CORE_DTYPE_H

#include "core/status.h"

SN_BEGIN_DECLS

/* X(ENUM, name, bytes, is floating point) */
#define SN_DTYPES(X)                                                                               \
  X(F32, "f32", 4, true)                                                                           \
  X(F64, "f64", 8, true) /* for checking gradients */                                              \
  X(BF16, "bf16", 2, true)                                                                         \
  X(I32, "i32", 4, false)                                                                          \
  X(I64, "i64", 8, false)                                                                          \
  X(U8, "u8", 1, false)                                                                            \
  X(BOOL, "bool", 1, false)

typedef enum sn_dtype {
  SN_DTYPE_NONE = 0,
#define SN_X(ENUM, name, bytes, is_float) SN_##ENUM,
  SN_DTYPES(SN_X)
#undef SN_X
      SN_DTYPE_COUNT
} sn_dtype;

SN_API const char *sn_dtype_name(sn_dtype dtype);     /* "f32"; "none" for SN_DTYPE_NONE */
SN_API size_t sn_dtype_size(sn_dtype dtype);          /* bytes of one element; 0 for none */
SN_API bool sn_dtype_is_float(sn_dtype dtype);        /* f32, f64, bf16 */
SN_API sn_dtype sn_dtype_from_name(const char *name); /* SN_DTYPE_NONE when unknown */

SN_END_DECLS

#endif
