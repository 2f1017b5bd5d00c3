/* SPDX-License-Identifier: Apache-2.0 */
/* The front door: defaults, empty extents, element types, and which kernels the machine has. */
#include "ops/gemm/gemm.h"

#include <assert.h>
#include <stdatomic.h>
#include "ops/gemm/gemm_bf16_impl.h"

static _Atomic(const sn__gemm_kernels *) kernels_now;

/* NULL where the compiler or the machine lacks it. */
static const sn__gemm_kernels *kernels_of(sn__gemm_isa isa) {
  switch (isa) {
  case SN__GEMM_ISA_BASE: return sn__gemm_kernels_base;
#if defined(__x86_64__)
  case SN__GEMM_ISA_AVX2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? sn__gemm_kernels_avx2
                                                                           : NULL;
  case SN__GEMM_ISA_AVX512:
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma")
               ? sn__gemm_kernels_avx512
               : NULL;
#endif
  default: return NULL;
  }
}

const sn__gemm_kernels *sn__gemm_kernels_now(void) {
  const sn__gemm_kernels *now = atomic_load_explicit(&kernels_now, memory_order_acquire);
  if (now != NULL) return now;
  for (int isa = SN__GEMM_ISA_AVX512; now == NULL; isa--)
    now = kernels_of((sn__gemm_isa)isa);
  atomic_store_explicit(&kernels_now, now, memory_order_release);
  return now;
}

sn__gemm_isa sn__gemm_get_isa(void) {
  return sn__gemm_kernels_now()->isa;
}

bool sn__gemm_set_isa(sn__gemm_isa isa) {
  const sn__gemm_kernels *wanted = kernels_of(isa);
  if (wanted != NULL) atomic_store_explicit(&kernels_now, wanted, memory_order_release);
  return wanted != NULL;
}

const char *sn__gemm_isa_name(sn__gemm_isa isa) {
  switch (isa) {
  case SN__GEMM_ISA_BASE: return "base";
  case SN__GEMM_ISA_AVX2: return "avx2";
  case SN__GEMM_ISA_AVX512: return "avx512";
  }
  return "unknown";
}

void sn__gemm_empty_f32(const sn__gemm_args *g) {
  const float *bias = g->bias;
  for (int64_t batch = 0; batch < g->batch; batch++) {
    for (int64_t i = 0; i < g->m; i++) {
      float *c = (float *)g->c + batch * g->c_stride + i * g->ldc;
      for (int64_t j = 0; j < g->n; j++) {
        float x = g->accumulate ? c[j] : 0;
        if (bias != NULL) x += bias[j];
        c[j] = g->act == SN__GEMM_ACT_RELU && x < 0 ? 0 : x;
      }
      if (g->epilogue != NULL) g->epilogue(g->user, batch, i, 0, g->n, c);
    }
  }
}

static void fill_defaults(sn__gemm_args *g) {
  if (g->dtype == SN_DTYPE_NONE) g->dtype = SN_F32;
  if (g->compute != SN_BF16 || !sn__gemm_rounds(g->n, g->k)) g->compute = g->dtype;
  if (g->batch == 0) g->batch = 1;
  if (g->lda == 0) g->lda = g->trans_a ? g->m : g->k;
  if (g->ldb == 0) g->ldb = g->trans_b ? g->k : g->n;
  if (g->ldc == 0) g->ldc = g->n;
}

static void check(const sn__gemm_args *g) {
  (void)g;
  assert(g->dtype == SN_F32 || g->dtype == SN_F64);
  assert(g->compute == g->dtype || g->dtype == SN_F32);
  assert(g->m >= 0 && g->n >= 0 && g->k >= 0 && g->batch >= 0);
  assert(g->lda >= (g->trans_a ? g->m : g->k) && g->ldc >= g->n);
  assert(g->packed_b != NULL || g->ldb >= (g->trans_b ? g->k : g->n));
  assert(g->packed_b == NULL ||
         (g->packed_b->dtype == g->dtype && g->packed_b->compute == g->compute &&
          g->packed_b->n == g->n && g->packed_b->k == g->k && g->b_stride == 0));
  assert(g->batch <= 1 || g->c_stride != 0 || g->m == 0 || g->n == 0);
}

sn_status sn__gemm(const sn__gemm_args *args, sn__team *team) {
  sn__gemm_args g = *args;
  fill_defaults(&g);
  check(&g);
  if (g.m == 0 || g.n == 0) return SN_OK;
  if (g.dtype == SN_F64) {
    if (g.packed_b != NULL) {
      g.b = g.packed_b->data;
      g.ldb = g.n;
      g.trans_b = false;
    }
    sn__gemm_plain_f64(&g, team);
    return SN_OK;
  }
  if (g.k == 0) {
    sn__gemm_empty_f32(&g);
    return SN_OK;
  }
  return g.compute == SN_BF16 ? sn__gemm_tiles_bf16(&g, team) : sn__gemm_tiles_f32(&g, team);
}
