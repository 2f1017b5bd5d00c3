/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/where/where.h"

/* Elements are moved as they are, so a type is but its size. */
#define KERNEL(T)                                                                                  \
  static void stretch_##T(void *arg, int64_t at, const int64_t *first, const int64_t *step,        \
                          int64_t n) {                                                             \
    const sn__exec *e = arg;                                                                       \
    const uint8_t *c = (const uint8_t *)e->in[0].data + first[0];                                  \
    const T *a = (const T *)e->in[1].data + first[1], *b = (const T *)e->in[2].data + first[2];    \
    T *out = (T *)e->out[0].data + at;                                                             \
    for (int64_t i = 0; i < n; i++)                                                                \
      out[i] = c[i * step[0]] != 0 ? a[i * step[1]] : b[i * step[2]];                              \
  }
KERNEL(uint8_t)
KERNEL(uint16_t)
KERNEL(uint32_t)
KERNEL(uint64_t)

sn_status sn__where_cpu(const sn__exec *e) {
  if (sn__count(&e->out[0]) == 0) return SN_OK;
  const sn_shape *in[] = {&e->in[0].shape, &e->in[1].shape, &e->in[2].shape};
  sn__broadcast plan = sn__broadcast_plan(&e->out[0].shape, in, 3);
  sn__stretch_fn fn = stretch_uint8_t;
  switch (sn_dtype_size(e->out[0].dtype)) {
  case 2: fn = stretch_uint16_t; break;
  case 4: fn = stretch_uint32_t; break;
  case 8: fn = stretch_uint64_t; break;
  default: break;
  }
  sn__broadcast_run(e, &plan, 3, fn, (void *)(uintptr_t)e);
  return SN_OK;
}
