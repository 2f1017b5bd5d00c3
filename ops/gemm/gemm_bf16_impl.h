/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of ops/gemm that make bf16 products.
 *
 * Operands are rounded into tiles of 1 KiB: 16 rows of op(A), or 16 columns of op(B), by 32 of k.
 *   A  [16 rows][32 of k]
 *   B  [16 pairs of k][16 columns][2]: what one multiply-add of pairs reads lies side by side
 * A strip is the tiles of 16 rows, a panel those of 16 columns, k rising; what lies beyond the
 * operand is zeros. */
#ifndef SN_OPS_GEMM_GEMM_BF16_IMPL_H
#define SN_OPS_GEMM_GEMM_BF16_IMPL_H

#include "core/device/bf16.h"
#include "ops/gemm/gemm_impl.h"

enum {
  SN__BF16_SIDE = 16,                             /* rows or columns of a tile */
  SN__BF16_DEPTH = 32,                            /* of k in a tile */
  SN__BF16_TILE = SN__BF16_SIDE * SN__BF16_DEPTH, /* numbers of a tile */
  SN__BF16_BLOCK = 4                              /* most tiles of C in a block */
};

/* Which operand a tile is of, and whether k runs along the rows that it is stored in. */
typedef enum sn__bf16_form {
  SN__BF16_A_ROWS,    /* x[side * ld + k] */
  SN__BF16_A_COLUMNS, /* x[k * ld + side] */
  SN__BF16_B_ROWS,    /* x[k * ld + side]: op(B) as it lies */
  SN__BF16_B_COLUMNS, /* x[side * ld + k] */
  SN__BF16_FORMS
} sn__bf16_form;

/* Sums of one cut of k for a block of C: strips x panels tiles, one of 2 x 2, 1 x 4, 4 x 1, 1 x 2,
 * 2 x 1, 1 x 1. */
typedef struct sn__bf16_block {
  const uint16_t *a, *b;
  int64_t a_strip, b_panel; /* numbers from one strip or panel to the next */
  int64_t tiles;            /* of k, at least 1 */
  int strips, panels;
  int rows;   /* rows that will be read; the kernel may leave the others out */
  float *out; /* [strips * 16][panels * 16], aligned to 64 bytes */
} sn__bf16_block;

/* C = act((C +) sums (+ bias)) of a block's part that exists. */
typedef struct sn__bf16_finish {
  const float *sums;
  int64_t pitch; /* of sums */
  float *c;
  int64_t ldc;
  int rows, cols;
  const float *bias; /* of the first column, or NULL */
  bool add, relu;
} sn__bf16_finish;

typedef struct sn__bf16_kernels {
  sn__gemm_bf16 unit;
  /* `side` rows or columns and `depth` of k, at most a tile; writes the whole tile. */
  void (*pack[SN__BF16_FORMS])(const float *x, int64_t ld, int side, int depth, uint16_t *out);
  void (*sums)(const sn__bf16_block *block);
  void (*finish)(const sn__bf16_finish *f);
  /* What sums() needs set up in its thread, and undone; NULL: nothing. */
  void (*begin)(void);
  void (*end)(void);
} sn__bf16_kernels;

/* NULL where the compiler cannot build them. */
extern const sn__bf16_kernels *const sn__bf16_kernels_plain;
extern const sn__bf16_kernels *const sn__bf16_kernels_avx512;
extern const sn__bf16_kernels *const sn__bf16_kernels_amx;

/* Of AVX-512, which AMX shares. */
void sn__bf16_pack_a_rows(const float *x, int64_t ld, int side, int depth, uint16_t *out);
void sn__bf16_pack_a_columns(const float *x, int64_t ld, int side, int depth, uint16_t *out);
void sn__bf16_pack_b_rows(const float *x, int64_t ld, int side, int depth, uint16_t *out);
void sn__bf16_pack_b_columns(const float *x, int64_t ld, int side, int depth, uint16_t *out);
void sn__bf16_finish_avx512(const sn__bf16_finish *f);

const sn__bf16_kernels *sn__bf16_kernels_now(void);

static inline int64_t sn__bf16_tiles(int64_t k) {
  return (k + SN__BF16_DEPTH - 1) / SN__BF16_DEPTH;
}
static inline int64_t sn__bf16_sides(int64_t n) {
  return (n + SN__BF16_SIDE - 1) / SN__BF16_SIDE;
}

/* Around a thread's use of sums(). */
void sn__bf16_begin(const sn__bf16_kernels *kernels);
void sn__bf16_end(void);

/* Panels of op(B), one after another. */
void sn__bf16_pack_panels(const sn__bf16_kernels *kernels, int64_t n, int64_t k, const float *b,
                          int64_t ldb, bool trans, uint16_t *out, sn__team *team);
/* Like sn__gemm_tiles_f32(). */
sn_status sn__gemm_tiles_bf16(const sn__gemm_args *args, sn__team *team);

#endif
