/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 products for AMX: tiles of 16 x 32 by 32 x 16 in one instruction. Tiles 0 to 3 hold sums, 4
 * and 5 strips of A, 6 and 7 panels of B. */
#include "ops/gemm/gemm_bf16_impl.h"

#if SN__BF16_X86 && defined(__linux__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("amx-tile,amx-bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")
#endif

enum { SIDE = SN__BF16_SIDE, TILE = SN__BF16_TILE, ROW_BYTES = 64 };

/* What LDTILECFG reads. */
typedef struct tile_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "the size that the instruction reads");

static const tile_config whole
    __attribute__((aligned(64))) = {.palette = 1,
                                    .row_bytes = {ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES,
                                                  ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES},
                                    .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};

/* Compilers do not know that loads of tiles read memory. */
#define SETTLED() __asm__ volatile("" ::: "memory")

static void begin(void) {
  _tile_loadconfig(&whole);
}

static void end(void) {
  _tile_release();
}

#define STORE(tile, out, pitch) _tile_stored(tile, out, (pitch) * (int64_t)sizeof(float))

static void sums_2x2(const sn__bf16_block *t) {
  const uint16_t *a = t->a, *b = t->b;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = t->tiles; k > 0; k--, a += TILE, b += TILE) {
    _tile_loadd(4, a, ROW_BYTES);
    _tile_loadd(6, b, ROW_BYTES);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + t->b_panel, ROW_BYTES);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + t->a_strip, ROW_BYTES);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  STORE(0, t->out, 2 * SIDE);
  STORE(1, t->out + SIDE, 2 * SIDE);
  STORE(2, t->out + 2 * SIDE * SIDE, 2 * SIDE);
  STORE(3, t->out + 2 * SIDE * SIDE + SIDE, 2 * SIDE);
}

static void sums_1x4(const sn__bf16_block *t) {
  const uint16_t *a = t->a, *b = t->b;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = t->tiles; k > 0; k--, a += TILE, b += TILE) {
    _tile_loadd(4, a, ROW_BYTES);
    _tile_loadd(6, b, ROW_BYTES);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + t->b_panel, ROW_BYTES);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(6, b + 2 * t->b_panel, ROW_BYTES);
    _tile_dpbf16ps(2, 4, 6);
    _tile_loadd(7, b + 3 * t->b_panel, ROW_BYTES);
    _tile_dpbf16ps(3, 4, 7);
  }
  STORE(0, t->out, 4 * SIDE);
  STORE(1, t->out + SIDE, 4 * SIDE);
  STORE(2, t->out + 2 * SIDE, 4 * SIDE);
  STORE(3, t->out + 3 * SIDE, 4 * SIDE);
}

static void sums_4x1(const sn__bf16_block *t) {
  const uint16_t *a = t->a, *b = t->b;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = t->tiles; k > 0; k--, a += TILE, b += TILE) {
    _tile_loadd(6, b, ROW_BYTES);
    _tile_loadd(4, a, ROW_BYTES);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, a + t->a_strip, ROW_BYTES);
    _tile_dpbf16ps(1, 5, 6);
    _tile_loadd(4, a + 2 * t->a_strip, ROW_BYTES);
    _tile_dpbf16ps(2, 4, 6);
    _tile_loadd(5, a + 3 * t->a_strip, ROW_BYTES);
    _tile_dpbf16ps(3, 5, 6);
  }
  STORE(0, t->out, SIDE);
  STORE(1, t->out + SIDE * SIDE, SIDE);
  STORE(2, t->out + 2 * SIDE * SIDE, SIDE);
  STORE(3, t->out + 3 * SIDE * SIDE, SIDE);
}

/* One strip or one panel, two of the other. */
static void sums_two(const sn__bf16_block *t) {
  const uint16_t *a = t->a, *b = t->b;
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t k = t->tiles; k > 0; k--, a += TILE, b += TILE) {
    _tile_loadd(4, a, ROW_BYTES);
    _tile_loadd(6, b, ROW_BYTES);
    _tile_dpbf16ps(0, 4, 6);
    if (t->panels == 2) {
      _tile_loadd(7, b + t->b_panel, ROW_BYTES);
      _tile_dpbf16ps(1, 4, 7);
    } else {
      _tile_loadd(5, a + t->a_strip, ROW_BYTES);
      _tile_dpbf16ps(1, 5, 6);
    }
  }
  const int64_t pitch = (int64_t)t->panels * SIDE;
  STORE(0, t->out, pitch);
  STORE(1, t->out + (t->panels == 2 ? SIDE : SIDE * SIDE), pitch);
}

static void sums_one(const sn__bf16_block *t) {
  const uint16_t *a = t->a, *b = t->b;
  _tile_zero(0);
  for (int64_t k = t->tiles; k > 0; k--, a += TILE, b += TILE) {
    _tile_loadd(4, a, ROW_BYTES);
    _tile_loadd(6, b, ROW_BYTES);
    _tile_dpbf16ps(0, 4, 6);
  }
  STORE(0, t->out, SIDE);
}

static void sums(const sn__bf16_block *t) {
  SETTLED();
  if (t->strips == 2 && t->panels == 2)
    sums_2x2(t);
  else if (t->panels == 4)
    sums_1x4(t);
  else if (t->strips == 4)
    sums_4x1(t);
  else if (t->strips * t->panels == 2)
    sums_two(t);
  else
    sums_one(t);
  SETTLED();
}

static const sn__bf16_kernels amx = {
    .unit = SN__GEMM_BF16_AMX,
    .pack = {sn__bf16_pack_a_rows, sn__bf16_pack_a_columns, sn__bf16_pack_b_rows,
             sn__bf16_pack_b_columns},
    .sums = sums,
    .finish = sn__bf16_finish_avx512,
    .begin = begin,
    .end = end,
};
const sn__bf16_kernels *const sn__bf16_kernels_amx = &amx;

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const sn__bf16_kernels *const sn__bf16_kernels_amx = NULL;
#endif
