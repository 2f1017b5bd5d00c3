/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 products in plain C, for machines without instructions for them. No multiply-add is fused
 * (-ffp-contract=off), so that every clone gives the same bits. It would matter only where a
 * product of two bf16 numbers leaves f32's range: elsewhere it is exact in f32. */
#include "ops/gemm/gemm_bf16_impl.h"
#include "ops/vecmath.h"

enum { SIDE = SN__BF16_SIDE, DEPTH = SN__BF16_DEPTH };

/* To the nearest, ties to even. NaN stays NaN (quiet, sign and upper bits kept); what is smaller
 * than the smallest normal number becomes zero, as the instructions have it. */
SN__INLINE uint16_t round_bf16(float x) {
  const uint32_t bits = sn__float_bits(x), size = bits & 0x7fffffffu;
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40u, zero = bits >> 16 & 0x8000u;
  return (uint16_t)(size > 0x7f800000u ? nan : size < 0x00800000u ? zero : rounded);
}

/* Number (side, k) of A's tile is out[side * 32 + k]; of B's, out[k / 2 * 32 + side * 2 + k % 2].
 */
#define PACK(name, from, to)                                                                       \
  SN__CLONES static void name(const float *x, int64_t ld, int side, int depth, uint16_t *out) {    \
    if (side < SIDE || depth < DEPTH) memset(out, 0, SN__BF16_TILE * sizeof *out);                 \
    for (int64_t i = 0; i < side; i++)                                                             \
      for (int64_t p = 0; p < depth; p++)                                                          \
        out[to] = round_bf16(x[from]);                                                             \
  }
PACK(pack_a_rows, i *ld + p, i *DEPTH + p)
PACK(pack_a_columns, p *ld + i, i *DEPTH + p)
PACK(pack_b_rows, p *ld + i, p / 2 * DEPTH + i * 2 + p % 2)
PACK(pack_b_columns, i *ld + p, p / 2 * DEPTH + i * 2 + p % 2)

typedef float floats __attribute__((vector_size(64)));
typedef uint32_t words __attribute__((vector_size(64)));
/* The halves of pairs as f32. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FIRST(x)  ((x) << 16)
#define SECOND(x) ((x)&0xffff0000u)
#else
#define FIRST(x)  ((x)&0xffff0000u)
#define SECOND(x) ((x) << 16)
#endif
enum { ROWS = 8 }; /* independent chains that a block of rows keeps going */

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

/* Up to eight rows of A against one panel: a chain for each element, k rising. */
SN__INLINE void rows_sums(const uint16_t *a, const uint16_t *b, int64_t tiles, const int rows,
                          float *out, int64_t pitch) {
  floats sum[ROWS];
  UNROLLED for (int i = 0; i < rows; i++) sum[i] = (floats){0};
  for (int64_t t = 0; t < tiles; t++, a += SN__BF16_TILE, b += SN__BF16_TILE) {
    for (int p = 0; p < DEPTH; p += 2) {
      words y;
      memcpy(&y, b + p / 2 * DEPTH, sizeof y);
      UNROLLED for (int i = 0; i < rows; i++) {
        uint32_t pair;
        memcpy(&pair, a + i * DEPTH + p, sizeof pair);
        const words x = (words){0} | pair;
        sum[i] += (floats)FIRST(x) * (floats)FIRST(y);
        sum[i] += (floats)SECOND(x) * (floats)SECOND(y);
      }
    }
  }
  UNROLLED for (int i = 0; i < rows; i++) memcpy(out + i * pitch, &sum[i], sizeof sum[i]);
}

SN__CLONES static void sums(const sn__bf16_block *t) {
  const int64_t pitch = (int64_t)t->panels * SIDE;
  for (int j = 0; j < t->panels; j++) {
    const uint16_t *b = t->b + j * t->b_panel;
    float *out = t->out + j * SIDE;
    int i = 0;
    for (; i + ROWS <= t->rows; i += ROWS)
      rows_sums(t->a + i / SIDE * t->a_strip + i % SIDE * DEPTH, b, t->tiles, ROWS, out + i * pitch,
                pitch);
    for (; i < t->rows; i++)
      rows_sums(t->a + i / SIDE * t->a_strip + i % SIDE * DEPTH, b, t->tiles, 1, out + i * pitch,
                pitch);
  }
}

SN__CLONES static void finish(const sn__bf16_finish *f) {
  for (int64_t i = 0; i < f->rows; i++) {
    float *c = f->c + i * f->ldc;
    const float *s = f->sums + i * f->pitch;
    for (int64_t j = 0; j < f->cols; j++) {
      float x = f->add ? c[j] + s[j] : s[j];
      if (f->bias != NULL) x += f->bias[j];
      c[j] = f->relu && x < 0 ? 0 : x;
    }
  }
}

static const sn__bf16_kernels plain = {
    .unit = SN__GEMM_BF16_PLAIN,
    .pack = {pack_a_rows, pack_a_columns, pack_b_rows, pack_b_columns},
    .sums = sums,
    .finish = finish,
};
const sn__bf16_kernels *const sn__bf16_kernels_plain = &plain;
