/* SPDX-License-Identifier: Apache-2.0 */
/* f32 kernels for AVX-512: 32 registers of 16 floats; blocks of up to 14 x 32, 6 x 64, 3 x 128. */
#include "ops/gemm/gemm_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,fma")
#endif

#define LANES    16
#define ROWS_MAX 14
typedef __m512 vec;
#define vec_zero()              _mm512_setzero_ps()
#define vec_load(p)             _mm512_loadu_ps(p)
#define vec_splat(x)            _mm512_set1_ps(x)
#define vec_fma(x, y, sum)      _mm512_fmadd_ps(x, y, sum)
#define vec_add(x, y)           _mm512_add_ps(x, y)
#define vec_relu(x)             _mm512_max_ps(_mm512_setzero_ps(), x) /* NaN: the second operand */
#define vec_mask(n)             ((__mmask16)((1u << (n)) - 1u))
#define vec_load_part(p, n)     _mm512_maskz_loadu_ps(vec_mask(n), p)
#define vec_store(p, x)         _mm512_storeu_ps(p, x)
#define vec_store_part(p, x, n) _mm512_mask_storeu_ps(p, vec_mask(n), x)

/* out[p * 32 + i] = b[i * ldb + p], 16 x 16. Quarters of rows are gathered by masked broadcasts,
 * which do not need the one shuffle port; two rounds of shuffles do the rest. */
static inline __attribute__((always_inline)) __m512 quarters(const float *b, int64_t step) {
  __m512 x = _mm512_broadcast_f32x4(_mm_loadu_ps(b));
  x = _mm512_mask_broadcast_f32x4(x, 0x00f0, _mm_loadu_ps(b + step));
  x = _mm512_mask_broadcast_f32x4(x, 0x0f00, _mm_loadu_ps(b + 2 * step));
  return _mm512_mask_broadcast_f32x4(x, 0xf000, _mm_loadu_ps(b + 3 * step));
}

static inline void transpose_square(const float *b, int64_t ldb, float *out) {
  for (int q = 0; q < 4; q++, b += 4, out += 4 * 32) {
    /* x_r, quarter s: row 4 s + r of B, columns 4 q .. 4 q + 3 */
    const __m512 x0 = quarters(b, 4 * ldb), x1 = quarters(b + ldb, 4 * ldb);
    const __m512 x2 = quarters(b + 2 * ldb, 4 * ldb), x3 = quarters(b + 3 * ldb, 4 * ldb);
    const __m512d lo01 = _mm512_castps_pd(_mm512_unpacklo_ps(x0, x1));
    const __m512d hi01 = _mm512_castps_pd(_mm512_unpackhi_ps(x0, x1));
    const __m512d lo23 = _mm512_castps_pd(_mm512_unpacklo_ps(x2, x3));
    const __m512d hi23 = _mm512_castps_pd(_mm512_unpackhi_ps(x2, x3));
    _mm512_storeu_ps(out, _mm512_castpd_ps(_mm512_unpacklo_pd(lo01, lo23)));
    _mm512_storeu_ps(out + 32, _mm512_castpd_ps(_mm512_unpackhi_pd(lo01, lo23)));
    _mm512_storeu_ps(out + 64, _mm512_castpd_ps(_mm512_unpacklo_pd(hi01, hi23)));
    _mm512_storeu_ps(out + 96, _mm512_castpd_ps(_mm512_unpackhi_pd(hi01, hi23)));
  }
}

#include "ops/gemm/gemm_kernel.inc"

/* clang-format off */
BLOCKS8(1)
BLOCKS8(2)
BLOCKS8(3)
BLOCKS4(4) BLOCKS4(5) BLOCKS4(6) BLOCKS2(7) BLOCKS2(8) BLOCKS2(9) BLOCKS2(10) BLOCKS2(11)
    BLOCKS2(12) BLOCKS2(13) BLOCKS2(14)
/* clang-format on */

#define TABLE(f)                                                                                   \
  {                                                                                                \
    {NULL}, ROW8(1, f), ROW8(2, f), ROW8(3, f), ROW4(4, f), ROW4(5, f), ROW4(6, f), ROW2(7, f),    \
        ROW2(8, f), ROW2(9, f), ROW2(10, f), ROW2(11, f), ROW2(12, f), ROW2(13, f), ROW2(14, f)    \
  }

        static const sn__gemm_kernels avx512 = {
            .isa = SN__GEMM_ISA_AVX512,
            .lanes = LANES,
            .rows_max = ROWS_MAX,
            .rows_wide = 6,
            .wide = {0, 8, 8, 8, 4, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2},
            .kernel = {TABLE(r), TABLE(c)},
            .pack_panel = pack_panel,
            .pack_a_columns = pack_a_columns,
};
const sn__gemm_kernels *const sn__gemm_kernels_avx512 = &avx512;

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const sn__gemm_kernels *const sn__gemm_kernels_avx512 = NULL;
#endif
