/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of a CPU device: C = act(op(A) x op(B) [+ C] [+ bias]), all row-major.
 *
 * Promise on bits: an element of C depends only on its row of op(A), its column of op(B), its bias,
 * its old value (with `accumulate`), k and the instruction set. It does not depend on m, n, the
 * element's position, the tile it fell in, the number of threads, or on whether operands were
 * packed. The order is fixed: k is cut at multiples of SN__GEMM_KC; within a cut, one chain of
 * multiply-adds (fused where the instruction set has them) from zero in rising k; the cuts' sums
 * are added to C in rising order; then the bias; then the activation. Every kernel here keeps that
 * order, so the choice among them is free.
 *
 * With `compute` SN_BF16 the same holds, where k is cut at multiples of SN__GEMM_KC_BF16, with the
 * unit that makes these products in place of the instruction set. A and B are rounded to the
 * nearest bf16, ties to even (NaN stays NaN, what is less than the smallest normal number is zero);
 * products of these are exact in f32 and added up in f32. The order within a cut is the unit's own:
 *   plain        one chain in rising k
 *   AVX512_BF16  one chain of pairs of neighbours in k, added as VDPBF16PS does
 *   AMX          one chain of dots of 32 neighbours in k, added as TDPBF16PS does
 * so that these three differ in the last places from each other; one unit gives the same bits on
 * every machine that has it. Sums less than the smallest normal number may become zero. */
#ifndef SN_OPS_GEMM_GEMM_H
#define SN_OPS_GEMM_GEMM_H

#include "core/dtype.h"
#include "core/device/team.h"

/* Where k is cut. Part of the bits: changing it changes results in the last place. */
#define SN__GEMM_KC      256
/* The same for bf16 products. */
#define SN__GEMM_KC_BF16 512

typedef enum sn__gemm_act {
  SN__GEMM_ACT_NONE = 0,
  SN__GEMM_ACT_RELU, /* NaN stays NaN */
} sn__gemm_act;

/* Called once for every stretch of a row of C when it is finished (bias and activation included),
 * on the thread that made it: `c` is the address of C[row, col], `cols` elements long. Stretches of
 * one row may be cut anywhere, so what it does to an element must not depend on the cut. */
typedef void (*sn__gemm_epilogue)(void *user, int64_t batch, int64_t row, int64_t col, int64_t cols,
                                  void *c);

/* op(B) laid out for the kernels; see sn__gemm_pack_b(). */
typedef struct sn__gemm_packed sn__gemm_packed;

/* Zero is the default of every field. */
typedef struct sn__gemm_args {
  sn_dtype dtype;   /* of A, B, C and bias: SN_F32 (also SN_DTYPE_NONE) or SN_F64 */
  sn_dtype compute; /* SN_BF16: A and B of SN_F32 are rounded; SN_DTYPE_NONE, dtype: they are not */
  int64_t m, n, k;  /* C is [m, n], k is summed over; any may be zero */
  bool trans_a;     /* A is [m, k], or [k, m] when set */
  bool trans_b;     /* B is [k, n], or [n, k] when set (dense weights are [out, in]: set it) */
  bool accumulate;  /* add to what C holds (beta 1); otherwise C is written without being read */
  sn__gemm_act act;
  const void *a;
  const void *b;                   /* unused when packed_b is given */
  void *c;                         /* may not overlap A, B or bias */
  int64_t lda, ldb, ldc;           /* elements from one stored row to the next; 0 means no gap */
  const void *bias;                /* [n], added to every row, or NULL */
  const sn__gemm_packed *packed_b; /* same dtype, compute, n and k; the same bits as without */
  int64_t batch;                   /* products of this shape; 0 means 1 */
  int64_t a_stride, b_stride, c_stride; /* elements between batches; 0 shares A or B (never C) */
  sn__gemm_epilogue epilogue;           /* or NULL */
  void *user;                           /* for epilogue */
} sn__gemm_args;

SN_BEGIN_DECLS
/* Runs the product on the team (NULL: on the caller), returns when C is complete. Fails only when
 * scratch memory runs out: then C is untouched. Scratch is kept by the calling thread, at most
 * SN__GEMM_SCRATCH_SHARED + threads * SN__GEMM_SCRATCH_THREAD bytes, until it ends or releases it.
 */
SN_API SN_MUST_USE sn_status sn__gemm(const sn__gemm_args *args, sn__team *team);

/* Whether a product asked for in bf16 is made in it: a matter of n and k alone. Where k is small,
 * rounding costs more than it gives, and the product is f32's. */
SN_API bool sn__gemm_rounds(int64_t n, int64_t k);

/* A weight that serves many products is packed once. The packed form lives in the caller's memory:
 * sn__gemm_packed_size() bytes at any address, used until the caller reuses it. SN_F32 and SN_F64.
 */
SN_API size_t sn__gemm_packed_size(sn_dtype dtype, sn_dtype compute, int64_t n, int64_t k);
SN_API const sn__gemm_packed *sn__gemm_pack_b(sn_dtype dtype, sn_dtype compute, int64_t n,
                                              int64_t k, const void *b, int64_t ldb, bool trans_b,
                                              void *memory, sn__team *team);

/* Between the two a thread's bf16 products leave set up what they need (AMX's tiles: it costs as
 * much as a small product). They nest; the thread runs nothing else meanwhile that uses tiles. */
SN_API void sn__gemm_hold(void);
SN_API void sn__gemm_let_go(void);

/* Frees the calling thread's scratch. */
SN_API void sn__gemm_release(void);

/* The instruction sets that kernels exist for; the best one that the machine has is used. */
typedef enum sn__gemm_isa {
  SN__GEMM_ISA_BASE = 0, /* x86-64's SSE2, or plain C elsewhere: multiply, then add */
  SN__GEMM_ISA_AVX2,     /* with FMA; AVX-512 gives the same bits */
  SN__GEMM_ISA_AVX512,
} sn__gemm_isa;

SN_API sn__gemm_isa sn__gemm_get_isa(void);
/* For tests, while no product runs: false, and nothing changes, where the machine lacks it. What
 * was packed before cannot be used after. */
SN_API bool sn__gemm_set_isa(sn__gemm_isa isa);
SN_API const char *sn__gemm_isa_name(sn__gemm_isa isa);

/* What makes bf16 products; the last one that the machine has is used. */
typedef enum sn__gemm_bf16 {
  SN__GEMM_BF16_PLAIN = 0, /* f32 instructions after rounding: no faster than f32 */
  SN__GEMM_BF16_AVX512,    /* AVX512_BF16 */
  SN__GEMM_BF16_AMX,       /* AMX_BF16, where the kernel lets the process have its registers */
} sn__gemm_bf16;

SN_API sn__gemm_bf16 sn__gemm_get_bf16(void);
SN_API bool sn__gemm_set_bf16(sn__gemm_bf16 unit); /* as sn__gemm_set_isa() */
SN_API const char *sn__gemm_bf16_name(sn__gemm_bf16 unit);
SN_END_DECLS

#define SN__GEMM_SCRATCH_SHARED ((size_t)8 << 20)
#define SN__GEMM_SCRATCH_THREAD ((size_t)1 << 20)

#endif
