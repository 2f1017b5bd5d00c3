/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine's bf16 instructions can do, in registers alone. */
#include <string.h>

#include "core/device/bf16.h"
#include "tools/sennit/roofline.h"

#if SN__BF16_X86
#include <immintrin.h>

enum { CHAINS = 12, ROUNDS = 200000, TILE_ROUNDS = 50000 };

__attribute__((target("avx512f,avx512bf16"))) static double run_avx512(float *kept) {
  __m512 x[CHAINS];
  const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f803f80), b = (__m512bh)_mm512_set1_epi32(1);
  float flat[16];
  for (int c = 0; c < CHAINS; c++)
    x[c] = _mm512_set1_ps((float)(c + 1));
  for (int i = 0; i < ROUNDS; i++)
    _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) x[c] = _mm512_dpbf16_ps(x[c], a, b);
  for (int c = 0; c < CHAINS; c++) {
    _mm512_storeu_ps(flat, x[c]);
    *kept += flat[c];
  }
  return 2.0 * 32 * CHAINS * ROUNDS;
}

/* Four tiles of sums, as a product's kernel has them. */
__attribute__((target("amx-tile,amx-bf16"))) static double run_amx(float *kept) {
  static const unsigned char config[64] __attribute__((aligned(64))) = {
      1,         [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64,
      [26] = 64, [28] = 64, [30] = 64, [48] = 16, 16,        16,
      16,        16,        16,        16,        16};
  unsigned short ones[512] __attribute__((aligned(64)));
  float sums[256] __attribute__((aligned(64)));
  for (int i = 0; i < 512; i++)
    ones[i] = 0x3f80;
  __asm__ volatile("" ::: "memory");
  _tile_loadconfig(config);
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int i = 0; i < TILE_ROUNDS; i++) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_release();
  *kept += sums[0];
  return 2.0 * 16 * 16 * 32 * 4 * TILE_ROUNDS;
}

double roofline_bf16_gflops(int threads) {
  switch (sn__cpu_bf16_now()) {
  case SN__CPU_BF16_AMX: return roofline_of(run_amx, threads);
  case SN__CPU_BF16_AVX512: return roofline_of(run_avx512, threads);
  default: return roofline_gflops(threads);
  }
}
#else
double roofline_bf16_gflops(int threads) {
  return roofline_gflops(threads);
}
#endif
