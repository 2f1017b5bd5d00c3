/* SPDX-License-Identifier: Apache-2.0 */
/* f32 kernels for AVX2 with FMA: 16 registers of 8 floats; blocks of up to 6 x 16, 3 x 32, 1 x 64.
 */
#include "ops/gemm/gemm_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define LANES    8
#define ROWS_MAX 6
typedef __m256 vec;
#define vec_zero()              _mm256_setzero_ps()
#define vec_load(p)             _mm256_loadu_ps(p)
#define vec_splat(x)            _mm256_set1_ps(x)
#define vec_fma(x, y, sum)      _mm256_fmadd_ps(x, y, sum)
#define vec_add(x, y)           _mm256_add_ps(x, y)
#define vec_relu(x)             _mm256_max_ps(_mm256_setzero_ps(), x) /* NaN: the second operand */
#define vec_load_part(p, n)     _mm256_maskload_ps(p, lanes_below(n))
#define vec_store(p, x)         _mm256_storeu_ps(p, x)
#define vec_store_part(p, x, n) _mm256_maskstore_ps(p, lanes_below(n), x)

static inline __m256i lanes_below(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Rows r and r + 4 of B, columns p .. p + 3, side by side. */
static inline __m256 halves(const float *b, int64_t step) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(b)), _mm_loadu_ps(b + step), 1);
}

/* out[p * 16 + i] = b[i * ldb + p], 8 x 8 */
static inline void transpose_square(const float *b, int64_t ldb, float *out) {
  for (int q = 0; q < 2; q++, b += 4, out += 4 * 16) {
    const __m256 x0 = halves(b, 4 * ldb), x1 = halves(b + ldb, 4 * ldb);
    const __m256 x2 = halves(b + 2 * ldb, 4 * ldb), x3 = halves(b + 3 * ldb, 4 * ldb);
    const __m256d lo01 = _mm256_castps_pd(_mm256_unpacklo_ps(x0, x1));
    const __m256d hi01 = _mm256_castps_pd(_mm256_unpackhi_ps(x0, x1));
    const __m256d lo23 = _mm256_castps_pd(_mm256_unpacklo_ps(x2, x3));
    const __m256d hi23 = _mm256_castps_pd(_mm256_unpackhi_ps(x2, x3));
    _mm256_storeu_ps(out, _mm256_castpd_ps(_mm256_unpacklo_pd(lo01, lo23)));
    _mm256_storeu_ps(out + 16, _mm256_castpd_ps(_mm256_unpackhi_pd(lo01, lo23)));
    _mm256_storeu_ps(out + 32, _mm256_castpd_ps(_mm256_unpacklo_pd(hi01, hi23)));
    _mm256_storeu_ps(out + 48, _mm256_castpd_ps(_mm256_unpackhi_pd(hi01, hi23)));
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

    static const sn__gemm_kernels avx2 = {
        .isa = SN__GEMM_ISA_AVX2,
        .lanes = LANES,
        .rows_max = ROWS_MAX,
        .rows_wide = 6,
        .wide = {0, 8, 4, 4, 2, 2, 2},
        .kernel = {TABLE(r), TABLE(c)},
        .pack_panel = pack_panel,
        .pack_a_columns = pack_a_columns,
};
const sn__gemm_kernels *const sn__gemm_kernels_avx2 = &avx2;

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const sn__gemm_kernels *const sn__gemm_kernels_avx2 = NULL;
#endif
