/* SPDX-License-Identifier: Apache-2.0 */
/* f32 kernels in the compiler's own vectors of 4: SSE2 on x86-64, whatever there is elsewhere.
 * Multiply, then add: without a fused instruction, other bits than AVX2 and AVX-512. */
#include "ops/gemm/gemm_impl.h"

#define LANES    4
#define ROWS_MAX 6
typedef float vec __attribute__((vector_size(16)));
typedef float loose __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(16)));
#define vec_zero()         ((vec){0})
#define vec_load(p)        ((vec) * (const loose *)(p))
#define vec_splat(x)       ((vec){x, x, x, x})
#define vec_fma(x, y, sum) ((x) * (y) + (sum))
#define vec_add(x, y)      ((x) + (y))
#define vec_store(p, x)    (*(loose *)(p) = (loose)(x))

static inline vec vec_relu(vec x) {
  const ints negative = (ints)(x < (vec){0});
  return (vec)((ints)x & ~negative);
}

static inline vec vec_load_part(const float *p, int n) {
  vec x = {0};
  for (int i = 0; i < n; i++)
    x[i] = p[i];
  return x;
}

static inline void vec_store_part(float *p, vec x, int n) {
  for (int i = 0; i < n; i++)
    p[i] = x[i];
}

static inline void transpose_square(const float *b, int64_t ldb, float *out) {
  for (int i = 0; i < 4; i++, b += ldb, out++) {
    out[0] = b[0];
    out[8] = b[1];
    out[16] = b[2];
    out[24] = b[3];
  }
}

#include "ops/gemm/gemm_kernel.inc"

/* clang-format off */
BLOCKS8(1)
BLOCKS4(2)
BLOCKS4(3)
BLOCKS2(4) BLOCKS2(5) BLOCKS2(6)
/* clang-format on */

#define TABLE(f)                                                                                   \
  { {NULL}, ROW8(1, f), ROW4(2, f), ROW4(3, f), ROW2(4, f), ROW2(5, f), ROW2(6, f) }

    static const sn__gemm_kernels base = {
        .isa = SN__GEMM_ISA_BASE,
        .lanes = LANES,
        .rows_max = ROWS_MAX,
        .rows_wide = 6,
        .wide = {0, 8, 4, 4, 2, 2, 2},
        .kernel = {TABLE(r), TABLE(c)},
        .pack_panel = pack_panel,
        .pack_a_columns = pack_a_columns,
};
const sn__gemm_kernels *const sn__gemm_kernels_base = &base;
