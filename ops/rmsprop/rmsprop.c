/* SPDX-License-Identifier: Apache-2.0 */
/* RMSProp. (Tieleman & Hinton 2012) */
#include "ops/update.h"
#include "ops/vecmath.h"

#define T               float
#define SQRT            sqrtf
#define KERNEL_PLAIN    rmsprop_f32
#define KERNEL_MOMENTUM rmsprop_momentum_f32
#include "ops/rmsprop/rmsprop_kernel.inc"
#define T               double
#define SQRT            sqrt
#define KERNEL_PLAIN    rmsprop_f64
#define KERNEL_MOMENTUM rmsprop_momentum_f64
#include "ops/rmsprop/rmsprop_kernel.inc"

static sn_status rmsprop_cpu(const sn__exec *e) {
  if (e->n_out == 2) return sn__update_run(e, rmsprop_f32, rmsprop_f64);
  return sn__update_run(e, rmsprop_momentum_f32, rmsprop_momentum_f64);
}

static void rmsprop_cost(const sn__exec *e, sn__cost *out) {
  double n = (double)sn__shape_size(&e->in[0].shape), arrays = e->n_out == 2 ? 5 : 7;
  *out = (sn__cost){.flops = 10 * n, .bytes = arrays * n * (double)sn_dtype_size(e->in[0].dtype)};
}

static const sn__attr_def rmsprop_attrs[] = {
    SN__FLOAT_FIELD(sn__rmsprop_attrs, alpha), SN__FLOAT_FIELD(sn__rmsprop_attrs, epsilon),
    SN__FLOAT_FIELD(sn__rmsprop_attrs, momentum), SN__FLOAT_FIELD(sn__rmsprop_attrs, weight_decay),
    SN__FLOAT_FIELD(sn__rmsprop_attrs, clip_value)};

const sn_op_def sn__op_rmsprop = {
    .name = "rmsprop",
    .version = 1,
    .min_inputs = SN__UPDATE_SLOTS + 1,
    .max_inputs = SN__UPDATE_SLOTS + 2,
    .n_outputs = 3,
    .flags = SN_OP_COMMIT | SN_OP_NO_GRAD,
    .attrs = rmsprop_attrs,
    .n_attrs = sizeof rmsprop_attrs / sizeof *rmsprop_attrs,
    .attrs_size = sizeof(sn__rmsprop_attrs),
    .infer = sn__update_infer,
    .commits = {SN__UPDATE_VARIABLE + 1, SN__UPDATE_SLOTS + 1, SN__UPDATE_SLOTS + 2},
    .cost = rmsprop_cost,
    .cpu = rmsprop_cpu,
    .doc = "RMSProp: variable, gradient, control, mean square, and the momentum's slot if any"};
