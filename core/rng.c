/* SPDX-License-Identifier: Apache-2.0 */
#include "core/rng.h"

#include <math.h>

static uint64_t draw64(uint64_t seed, uint64_t key, uint64_t counter, uint32_t lane) {
  sn__rng rng = sn__rng_make(seed, key);
  uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), lane, 0};
  sn__philox(&rng, c);
  return (uint64_t)c[0] << 32 | c[1];
}

uint64_t sn__rng_below(uint64_t seed, uint64_t key, uint64_t counter, uint64_t n) {
  /* Multiply-shift: the bias is below n / 2^64. */
  return (uint64_t)(((unsigned __int128)draw64(seed, key, counter, 1) * n) >> 64);
}

void sn__rng_permutation(uint64_t seed, uint64_t key, int64_t n, int64_t *out) {
  for (int64_t i = 0; i < n; i++)
    out[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = (int64_t)sn__rng_below(seed, key, (uint64_t)i, (uint64_t)i + 1);
    int64_t t = out[i];
    out[i] = out[j];
    out[j] = t;
  }
}

void sn__rng_normal2(uint64_t seed, uint64_t key, uint64_t counter, double out[2]) {
  /* u in (0, 1], so the logarithm is finite. */
  double u = ((double)(draw64(seed, key, counter, 2) >> 11) + 1) * 0x1p-53;
  double v = (double)(draw64(seed, key, counter, 3) >> 11) * 0x1p-53;
  double r = sqrt(-2 * log(u)), a = 6.283185307179586476925 * v;
  out[0] = r * cos(a);
  out[1] = r * sin(a);
}
