/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/add_n/add_n.h"
#include "ops/vecmath.h"

#include <string.h>

/* A block is summed beside the output and then written, so that the output may be the storage of
 * any input. */
enum { BLOCK = 1024 };

#define KERNEL(T, S)                                                                               \
  SN__CLONES static void add_##S(T *acc, const T *x, int64_t n) {                                  \
    SN__SIMD for (int64_t i = 0; i < n; i++) acc[i] += x[i];                                       \
  }                                                                                                \
  static void range_##S(void *arg, int64_t begin, int64_t end, int worker) {                       \
    (void)worker;                                                                                  \
    const sn__exec *e = arg;                                                                       \
    T acc[BLOCK];                                                                                  \
    for (int64_t at = begin; at < end; at += BLOCK) {                                              \
      int64_t n = end - at < BLOCK ? end - at : BLOCK;                                             \
      memcpy(acc, (const T *)e->in[0].data + at, (size_t)n * sizeof(T));                           \
      for (int k = 1; k < e->n_in; k++)                                                            \
        add_##S(acc, (const T *)e->in[k].data + at, n);                                            \
      memcpy((T *)e->out[0].data + at, acc, (size_t)n * sizeof(T));                                \
    }                                                                                              \
  }
KERNEL(float, f32)
KERNEL(double, f64)

sn_status sn__add_n_cpu(const sn__exec *e) {
  sn__for_range(e->team, sn__count(&e->out[0]), SN__GRAIN,
                e->out[0].dtype == SN_F64 ? range_f64 : range_f32, (void *)(uintptr_t)e);
  return SN_OK;
}
