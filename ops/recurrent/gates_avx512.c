/* SPDX-License-Identifier: Apache-2.0 */
/* The gates for AVX-512. */
#include "ops/recurrent/gates.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,fma")
#endif

#define LANES 16
typedef __m512 vec;
#define vec_splat(x)            _mm512_set1_ps(x)
#define vec_load(p)             _mm512_loadu_ps(p)
#define vec_store(p, x)         _mm512_storeu_ps(p, x)
#define vec_mask(n)             ((__mmask16)((1u << (n)) - 1u))
#define vec_load_part(p, n)     _mm512_maskz_loadu_ps(vec_mask(n), p)
#define vec_store_part(p, x, n) _mm512_mask_storeu_ps(p, vec_mask(n), x)
#define vec_fma(x, y, sum)      _mm512_fmadd_ps(x, y, sum)
#define vec_fnma(x, y, sum)     _mm512_fnmadd_ps(x, y, sum)
#define vec_add(x, y)           _mm512_add_ps(x, y)
#define vec_sub(x, y)           _mm512_sub_ps(x, y)
#define vec_mul(x, y)           _mm512_mul_ps(x, y)
#define vec_div(x, y)           _mm512_div_ps(x, y)
#define vec_max(x, y)           _mm512_max_ps(x, y) /* NaN: the second operand */
#define vec_min(x, y)           _mm512_min_ps(x, y)
#define vec_power(t)                                                                               \
  _mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(t), 23),              \
                                       _mm512_set1_epi32(0x3F800000)))

#include "ops/recurrent/gates_kernel.inc"

const sn__gates *const sn__gates_avx512 = &kernels;

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const sn__gates *const sn__gates_avx512 = NULL;
#endif
