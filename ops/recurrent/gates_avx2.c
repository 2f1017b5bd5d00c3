/* SPDX-License-Identifier: Apache-2.0 */
/* The gates for AVX2 with FMA. */
#include "ops/recurrent/gates.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define LANES 8
typedef __m256 vec;
#define vec_splat(x)    _mm256_set1_ps(x)
#define vec_load(p)     _mm256_loadu_ps(p)
#define vec_store(p, x) _mm256_storeu_ps(p, x)
#define vec_mask(n)                                                                                \
  _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define vec_load_part(p, n)     _mm256_maskload_ps(p, vec_mask(n))
#define vec_store_part(p, x, n) _mm256_maskstore_ps(p, vec_mask(n), x)
#define vec_fma(x, y, sum)      _mm256_fmadd_ps(x, y, sum)
#define vec_fnma(x, y, sum)     _mm256_fnmadd_ps(x, y, sum)
#define vec_add(x, y)           _mm256_add_ps(x, y)
#define vec_sub(x, y)           _mm256_sub_ps(x, y)
#define vec_mul(x, y)           _mm256_mul_ps(x, y)
#define vec_div(x, y)           _mm256_div_ps(x, y)
#define vec_max(x, y)           _mm256_max_ps(x, y) /* NaN: the second operand */
#define vec_min(x, y)           _mm256_min_ps(x, y)
#define vec_power(t)                                                                               \
  _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(t), 23),              \
                                       _mm256_set1_epi32(0x3F800000)))

#include "ops/recurrent/gates_kernel.inc"

const sn__gates *const sn__gates_avx2 = &kernels;

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const sn__gates *const sn__gates_avx2 = NULL;
#endif
