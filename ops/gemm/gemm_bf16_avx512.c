/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding and bf16 products for AVX-512 with BF16: multiply-adds of 16 pairs. */
#include "ops/gemm/gemm_bf16_impl.h"

#if SN__BF16_X86
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,fma"))),  \
                             apply_to = function)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,fma")
#define UNROLLED _Pragma("GCC unroll 32")
#endif
#define ALWAYS static inline __attribute__((always_inline))

enum { SIDE = SN__BF16_SIDE, DEPTH = SN__BF16_DEPTH, TILE = SN__BF16_TILE };

/* ---- rounding ---- */

ALWAYS __mmask16 first_lanes(int n) {
  const unsigned lanes = n >= SIDE ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1u;
  return (__mmask16)lanes;
}

/* 32 numbers from 16 at `low` and 16 at `high`; neither is touched beyond its mask. */
ALWAYS __m512i round_both(const float *low, __mmask16 low_lanes, const float *high,
                          __mmask16 high_lanes) {
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high_lanes, high),
                                      _mm512_maskz_loadu_ps(low_lanes, low));
}

/* Row i: x[i * ld + p] for p < depth. */
ALWAYS void round_rows(const float *x, int64_t ld, int side, int depth, uint16_t *out) {
  if (side == SIDE && depth == DEPTH) {
    for (int i = 0; i < SIDE; i++, x += ld)
      _mm512_store_si512(out + i * DEPTH,
                         (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x)));
    return;
  }
  const __mmask16 low = first_lanes(depth), high = first_lanes(depth - 16);
  for (int i = 0; i < side; i++, x += ld)
    _mm512_store_si512(out + i * DEPTH, round_both(x, low, x + 16, high));
  for (int i = side; i < SIDE; i++)
    _mm512_store_si512(out + i * DEPTH, _mm512_setzero_si512());
}

/* Row p / 2: x[p * ld + i] and x[(p + 1) * ld + i] side by side, for i < side. */
ALWAYS void round_pairs(const float *x, int64_t ld, int side, int depth, uint16_t *out) {
  const __mmask16 lanes = first_lanes(side);
  const __m512i mix = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                                       23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  int p = 0;
  for (; p + 2 <= depth; p += 2, x += 2 * ld, out += DEPTH)
    _mm512_store_si512(out, _mm512_permutexvar_epi16(mix, round_both(x, lanes, x + ld, lanes)));
  if (p < depth) {
    _mm512_store_si512(out, _mm512_permutexvar_epi16(mix, round_both(x, lanes, x, 0)));
    p += 2;
    out += DEPTH;
  }
  for (; p < DEPTH; p += 2, out += DEPTH)
    _mm512_store_si512(out, _mm512_setzero_si512());
}

ALWAYS __m512i quarters(const uint16_t *x) {
  __m512i y = _mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)(const void *)x));
  y = _mm512_mask_broadcast_i32x4(y, 0x00f0,
                                  _mm_load_si128((const __m128i *)(const void *)(x + 4 * DEPTH)));
  y = _mm512_mask_broadcast_i32x4(y, 0x0f00,
                                  _mm_load_si128((const __m128i *)(const void *)(x + 8 * DEPTH)));
  return _mm512_mask_broadcast_i32x4(
      y, 0xf000, _mm_load_si128((const __m128i *)(const void *)(x + 12 * DEPTH)));
}

/* A tile as 16 x 16 pairs, transposed. Quarters of rows are gathered by masked broadcasts, which do
 * not need the one shuffle port; two rounds of shuffles do the rest. */
ALWAYS void transpose_pairs(const uint16_t *x, uint16_t *out) {
  UNROLLED for (int q = 0; q < 4; q++, x += 8, out += 4 * DEPTH) {
    const __m512i x0 = quarters(x), x1 = quarters(x + DEPTH);
    const __m512i x2 = quarters(x + 2 * DEPTH), x3 = quarters(x + 3 * DEPTH);
    const __m512i lo01 = _mm512_unpacklo_epi32(x0, x1), hi01 = _mm512_unpackhi_epi32(x0, x1);
    const __m512i lo23 = _mm512_unpacklo_epi32(x2, x3), hi23 = _mm512_unpackhi_epi32(x2, x3);
    _mm512_store_si512(out, _mm512_unpacklo_epi64(lo01, lo23));
    _mm512_store_si512(out + DEPTH, _mm512_unpackhi_epi64(lo01, lo23));
    _mm512_store_si512(out + 2 * DEPTH, _mm512_unpacklo_epi64(hi01, hi23));
    _mm512_store_si512(out + 3 * DEPTH, _mm512_unpackhi_epi64(hi01, hi23));
  }
}

void sn__bf16_pack_a_rows(const float *x, int64_t ld, int side, int depth, uint16_t *out) {
  round_rows(x, ld, side, depth, out);
}

void sn__bf16_pack_a_columns(const float *x, int64_t ld, int side, int depth, uint16_t *out) {
  uint16_t square[TILE] __attribute__((aligned(64)));
  round_pairs(x, ld, side, depth, square);
  transpose_pairs(square, out);
}

void sn__bf16_pack_b_rows(const float *x, int64_t ld, int side, int depth, uint16_t *out) {
  round_pairs(x, ld, side, depth, out);
}

void sn__bf16_pack_b_columns(const float *x, int64_t ld, int side, int depth, uint16_t *out) {
  uint16_t square[TILE] __attribute__((aligned(64)));
  round_rows(x, ld, side, depth, square);
  transpose_pairs(square, out);
}

/* ---- sums ---- */

/* `rows` rows of a strip against `panels` panels: one chain of pairs for each element. */
ALWAYS void some_sums(const sn__bf16_block *t, const uint16_t *a, const uint16_t *b, const int rows,
                      const int panels, float *out) {
  __m512 acc[16];
  UNROLLED for (int i = 0; i < rows * panels; i++) acc[i] = _mm512_setzero_ps();
  for (int64_t k = t->tiles; k > 0; k--, a += TILE, b += TILE) {
    for (int p = 0; p < DEPTH; p += 2) {
      __m512bh y[4];
      UNROLLED for (int j = 0; j < panels; j++) y[j] =
          (__m512bh)_mm512_load_si512(b + j * t->b_panel + p / 2 * DEPTH);
      UNROLLED for (int i = 0; i < rows; i++) {
        int pair;
        memcpy(&pair, a + i * DEPTH + p, sizeof pair);
        const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
        UNROLLED for (int j = 0; j < panels; j++) acc[i * panels + j] =
            _mm512_dpbf16_ps(acc[i * panels + j], x, y[j]);
      }
    }
  }
  const int pitch = t->panels * SIDE;
  UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < panels; j++)
      _mm512_store_ps(out + i * pitch + j * SIDE, acc[i * panels + j]);
}

ALWAYS int rows_sums(const sn__bf16_block *t, int row, const int rows) {
  const uint16_t *a = t->a + row / SIDE * t->a_strip + row % SIDE * DEPTH;
  float *out = t->out + (int64_t)row * t->panels * SIDE;
  int j = 0;
  if (rows <= 4)
    for (; j + 4 <= t->panels; j += 4)
      some_sums(t, a, t->b + j * t->b_panel, rows, rows <= 4 ? 4 : 1, out + j * SIDE);
  for (; j + 2 <= t->panels; j += 2)
    some_sums(t, a, t->b + j * t->b_panel, rows, 2, out + j * SIDE);
  if (j < t->panels) some_sums(t, a, t->b + j * t->b_panel, rows, 1, out + j * SIDE);
  return row + rows;
}

static void sums(const sn__bf16_block *t) {
  int i = 0;
  while (i + 8 <= t->rows)
    i = rows_sums(t, i, 8);
  if (i + 4 <= t->rows) i = rows_sums(t, i, 4);
  if (i + 2 <= t->rows) i = rows_sums(t, i, 2);
  if (i < t->rows) rows_sums(t, i, 1);
}

/* ---- what follows ---- */

ALWAYS void finish_row(const sn__bf16_finish *f, const float *s, float *c, const bool add,
                       const bool bias, const bool relu) {
  for (int j = 0; j < f->cols; j += 16) {
    const __mmask16 lanes = first_lanes(f->cols - j);
    __m512 x = _mm512_load_ps(s + j);
    if (add) x = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, c + j), x);
    if (bias) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(lanes, f->bias + j));
    if (relu) x = _mm512_max_ps(_mm512_setzero_ps(), x); /* NaN: the second operand */
    if (lanes == 0xffff)
      _mm512_storeu_ps(c + j, x);
    else
      _mm512_mask_storeu_ps(c + j, lanes, x);
  }
}

void sn__bf16_finish_avx512(const sn__bf16_finish *f) {
  const float *s = f->sums;
  float *c = f->c;
  const bool bias = f->bias != NULL;
  for (int i = 0; i < f->rows; i++, s += f->pitch, c += f->ldc) {
    if (f->relu)
      finish_row(f, s, c, f->add, bias, true);
    else if (bias)
      finish_row(f, s, c, f->add, true, false);
    else if (f->add)
      finish_row(f, s, c, true, false, false);
    else
      finish_row(f, s, c, false, false, false);
  }
}

static const sn__bf16_kernels avx512 = {
    .unit = SN__GEMM_BF16_AVX512,
    .pack = {sn__bf16_pack_a_rows, sn__bf16_pack_a_columns, sn__bf16_pack_b_rows,
             sn__bf16_pack_b_columns},
    .sums = sums,
    .finish = sn__bf16_finish_avx512,
};
const sn__bf16_kernels *const sn__bf16_kernels_avx512 = &avx512;

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const sn__bf16_kernels *const sn__bf16_kernels_avx512 = NULL;
#endif
