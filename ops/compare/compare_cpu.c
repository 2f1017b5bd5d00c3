/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/compare/compare.h"

#define LOOP(op)                                                                                   \
  for (int64_t i = 0; i < n; i++)                                                                  \
    out[i] = a[i * step[0]] op b[i * step[1]];                                                     \
  break

#define KERNEL(T)                                                                                  \
  static void stretch_##T(void *arg, int64_t at, const int64_t *first, const int64_t *step,        \
                          int64_t n) {                                                             \
    const sn__exec *e = arg;                                                                       \
    const T *a = (const T *)e->in[0].data + first[0], *b = (const T *)e->in[1].data + first[1];    \
    uint8_t *out = (uint8_t *)e->out[0].data + at;                                                 \
    switch ((sn_comparison)((const sn__compare_attrs *)e->attrs)->comparison) {                    \
    case SN_EQ: LOOP(==);                                                                          \
    case SN_NE: LOOP(!=);                                                                          \
    case SN_LT: LOOP(<);                                                                           \
    case SN_LE: LOOP(<=);                                                                          \
    case SN_GT: LOOP(>);                                                                           \
    case SN_GE: LOOP(>=);                                                                          \
    }                                                                                              \
  }
KERNEL(float)
KERNEL(double)
KERNEL(int32_t)
KERNEL(int64_t)
KERNEL(uint8_t)

sn_status sn__compare_cpu(const sn__exec *e) {
  if (sn__count(&e->out[0]) == 0) return SN_OK;
  const sn_shape *in[] = {&e->in[0].shape, &e->in[1].shape};
  sn__broadcast plan = sn__broadcast_plan(&e->out[0].shape, in, 2);
  sn__stretch_fn fn = stretch_uint8_t;
  switch (e->in[0].dtype) {
  case SN_F32: fn = stretch_float; break;
  case SN_F64: fn = stretch_double; break;
  case SN_I32: fn = stretch_int32_t; break;
  case SN_I64: fn = stretch_int64_t; break;
  default: break;
  }
  sn__broadcast_run(e, &plan, 2, fn, (void *)(uintptr_t)e);
  return SN_OK;
}
