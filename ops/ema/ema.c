/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential moving average of a variable as its update leaves it. (Polyak & Juditsky 1992) */
#include "ops/update.h"
#include "ops/vecmath.h"

#define DEFINE_EMA(name, T)                                                                        \
  SN__CLONES static void name(const sn__update_chunk *c) {                                         \
    const sn__ema_attrs *a = c->attrs;                                                             \
    const T *old = c->in[0], *now = c->gradient;                                                   \
    T *out = c->out[0];                                                                            \
    const T rest = (T)(1 - a->decay);                                                              \
    const int64_t n = c->n;                                                                        \
    SN__SIMD for (int64_t i = 0; i < n; i++) out[i] = old[i] + rest * (now[i] - old[i]);           \
  }
DEFINE_EMA(ema_f32, float)
DEFINE_EMA(ema_f64, double)

static sn_status ema_cpu(const sn__exec *e) {
  return sn__update_run(e, ema_f32, ema_f64);
}

static const sn__attr_def ema_attrs[] = {SN__FLOAT_FIELD(sn__ema_attrs, decay)};

/* Inputs as an update's: the average in the variable's place, the updated variable in the
 * gradient's. */
const sn_op_def sn__op_ema = {.name = "ema",
                              .version = 1,
                              .min_inputs = SN__UPDATE_SLOTS,
                              .max_inputs = SN__UPDATE_SLOTS,
                              .n_outputs = 1,
                              .flags = SN_OP_COMMIT | SN_OP_NO_GRAD,
                              .attrs = ema_attrs,
                              .n_attrs = 1,
                              .attrs_size = sizeof(sn__ema_attrs),
                              .infer = sn__update_infer,
                              .commits = {SN__UPDATE_VARIABLE + 1},
                              .cpu = ema_cpu,
                              .doc = "moving average of a variable: average, variable, control"};
