/* SPDX-License-Identifier: Apache-2.0 */
/* Stochastic gradient descent, with momentum (Polyak 1964) or Nesterov's. (Sutskever et al. 2013)
 */
#include "ops/update.h"
#include "ops/vecmath.h"

#define T               float
#define KERNEL_PLAIN    sgd_f32
#define KERNEL_MOMENTUM sgd_momentum_f32
#include "ops/sgd/sgd_kernel.inc"
#define T               double
#define KERNEL_PLAIN    sgd_f64
#define KERNEL_MOMENTUM sgd_momentum_f64
#include "ops/sgd/sgd_kernel.inc"

static sn_status sgd_cpu(const sn__exec *e) {
  if (e->n_out == 1) return sn__update_run(e, sgd_f32, sgd_f64);
  return sn__update_run(e, sgd_momentum_f32, sgd_momentum_f64);
}

static void sgd_cost(const sn__exec *e, sn__cost *out) {
  double n = (double)sn__shape_size(&e->in[0].shape), arrays = e->n_out == 1 ? 3 : 5;
  *out = (sn__cost){.flops = 2 * arrays * n,
                    .bytes = arrays * n * (double)sn_dtype_size(e->in[0].dtype)};
}

static const sn__attr_def sgd_attrs[] = {
    SN__FLOAT_FIELD(sn__sgd_attrs, momentum), SN__FLOAT_FIELD(sn__sgd_attrs, weight_decay),
    SN__FLOAT_FIELD(sn__sgd_attrs, clip_value), SN__INT_FIELD(sn__sgd_attrs, nesterov)};

const sn_op_def sn__op_sgd = {
    .name = "sgd",
    .version = 1,
    .min_inputs = SN__UPDATE_SLOTS,
    .max_inputs = SN__UPDATE_SLOTS + 1,
    .n_outputs = 2,
    .flags = SN_OP_COMMIT | SN_OP_NO_GRAD,
    .attrs = sgd_attrs,
    .n_attrs = sizeof sgd_attrs / sizeof *sgd_attrs,
    .attrs_size = sizeof(sn__sgd_attrs),
    .infer = sn__update_infer,
    .commits = {SN__UPDATE_VARIABLE + 1, SN__UPDATE_SLOTS + 1},
    .cost = sgd_cost,
    .cpu = sgd_cpu,
    .doc = "gradient descent: variable, gradient, control, and the momentum's slot if any"};
