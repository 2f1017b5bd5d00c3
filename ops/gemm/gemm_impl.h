/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of ops/gemm: the kernels of an instruction set, as gemm.c sees them. */
#ifndef SN_OPS_GEMM_GEMM_IMPL_H
#define SN_OPS_GEMM_GEMM_IMPL_H

#include <string.h>
#include "ops/gemm/gemm.h"

/* One block of C, at most `rows_max` high and `vectors` registers wide, over one cut of k.
 * B is read in vectors: vector v of row p is at b + p * b_row + (v / 2) * b_panel + (v % 2) *
 * lanes. A is read at a + i * a_row + p (row form) or a + p * a_row + i (column form). */
typedef struct sn__gemm_block {
  const float *a, *b;
  float *c;
  const float *bias; /* of the first column; NULL but in the last cut */
  int64_t a_row, b_row, b_panel, c_row;
  int64_t k;      /* 1..SN__GEMM_KC */
  int lanes_last; /* columns of C in the last vector; B is readable past them */
  bool add;       /* C holds a sum to add to */
  bool relu;
} sn__gemm_block;

typedef void (*sn__gemm_kernel)(const sn__gemm_block *block);

#define SN__GEMM_ROWS_MAX 14
#define SN__GEMM_A_PITCH  8

typedef struct sn__gemm_kernels {
  sn__gemm_isa isa;
  int lanes;                       /* floats in a vector; a panel of packed B is two vectors wide */
  int rows_max;                    /* rows of the highest block, for C of one to three vectors */
  int rows_wide;                   /* of the highest block where C is wider; at most 8 */
  int wide[SN__GEMM_ROWS_MAX + 1]; /* vectors of the widest block of that many rows: 2, 4 or 8 */
  /* [column form][rows][0: 1 vector, 1: 2, 2: 4, 3: 8] */
  sn__gemm_kernel kernel[2][SN__GEMM_ROWS_MAX + 1][4];
  /* Packs rows [0, k) of a panel: out[p * 2 * lanes + q] = op(B)[p, q], zero for q >= cols. */
  void (*pack_panel)(const float *b, int64_t ldb, bool trans, int64_t cols, int64_t k, float *out);
  /* Packs for the column form: out[p * SN__GEMM_A_PITCH + i] = a[p * lda + i], i < rows <= 8. */
  void (*pack_a_columns)(const float *a, int64_t lda, int64_t rows, int64_t k, float *out);
} sn__gemm_kernels;

/* NULL where the compiler cannot build them. */
extern const sn__gemm_kernels *const sn__gemm_kernels_base;
extern const sn__gemm_kernels *const sn__gemm_kernels_avx2;
extern const sn__gemm_kernels *const sn__gemm_kernels_avx512;

const sn__gemm_kernels *sn__gemm_kernels_now(void);

/* op(B) as panels of two vectors: panel j holds columns [j * 2 * lanes, ...) of all k rows, one row
 * after another, the last panel padded with zeros. f64: op(B) itself, [k, n]. */
struct sn__gemm_packed {
  sn_dtype dtype;
  sn_dtype compute;   /* SN_BF16, or the same as dtype */
  sn__gemm_isa isa;   /* of f32 alone */
  sn__gemm_bf16 unit; /* of bf16 alone */
  int64_t n, k;
  const void *data;
};

/* m * n * k below which waking the team costs more than it gives. */
#define SN__GEMM_TEAM_WORK 500000

/* All of these take `args` with every default filled in, and no zero extent but k. */
void sn__gemm_plain_f64(const sn__gemm_args *args, sn__team *team);
sn_status sn__gemm_tiles_f32(const sn__gemm_args *args, sn__team *team);
void sn__gemm_empty_f32(const sn__gemm_args *args); /* k is 0 */

/* Fills `out`, panels of op(B) one after another. */
void sn__gemm_pack_panels(const sn__gemm_kernels *kernels, int64_t n, int64_t k, const float *b,
                          int64_t ldb, bool trans, float *out, sn__team *team);

/* The calling thread's scratch. Aligned to 64 bytes; NULL when out of memory; valid until the next
 * call for the same part or sn__gemm_release(). */
float *sn__gemm_scratch_shared(size_t bytes); /* at most SN__GEMM_SCRATCH_SHARED */
float *sn__gemm_scratch_threads(int threads); /* SN__GEMM_SCRATCH_THREAD bytes for each */

#endif
