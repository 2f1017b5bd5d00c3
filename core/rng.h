/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers (internal): Philox4x32-10 (Salmon et al., "Parallel random numbers:
 * as easy as 1, 2, 3", SC 2011). A draw depends on its key and counter alone, so it is the same on
 * any device, in any order, and when it is computed a second time. */
#ifndef SN_CORE_RNG_H
#define SN_CORE_RNG_H

#include "core/api.h"

typedef struct sn__rng {
  uint32_t key[2];
} sn__rng;

static inline void sn__philox_round(uint32_t c[4], const uint32_t k[2]) {
  uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
  uint32_t c0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k[0], c2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k[1];
  c[1] = (uint32_t)p1;
  c[3] = (uint32_t)p0;
  c[0] = c0;
  c[2] = c2;
}

/* Four draws for the 128-bit counter in `c`, written over it. */
static inline void sn__philox(const sn__rng *rng, uint32_t c[4]) {
  uint32_t k[2] = {rng->key[0], rng->key[1]};
  for (int i = 0; i < 10; i++) {
    sn__philox_round(c, k);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
}

/* A 64-bit mix (splitmix64's finaliser), for making keys. */
static inline uint64_t sn__mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static inline sn__rng sn__rng_make(uint64_t seed, uint64_t key) {
  uint64_t m = sn__mix64(sn__mix64(seed) ^ key);
  sn__rng rng = {{(uint32_t)m, (uint32_t)(m >> 32)}};
  return rng;
}

/* [0, 1) with 24 bits: the same float on every machine. */
static inline float sn__u01(uint32_t draw) {
  return (float)(draw >> 8) * 0x1p-24f;
}

SN_BEGIN_DECLS
/* A permutation of 0..n-1 by the key (Fisher-Yates over Philox draws). */
SN_API void sn__rng_permutation(uint64_t seed, uint64_t key, int64_t n, int64_t *out);
/* One draw in [0, n) for `counter`. */
SN_API uint64_t sn__rng_below(uint64_t seed, uint64_t key, uint64_t counter, uint64_t n);
/* Two independent standard normals for `counter` (Box-Muller in double). */
SN_API void sn__rng_normal2(uint64_t seed, uint64_t key, uint64_t counter, double out[2]);
SN_END_DECLS

#endif
