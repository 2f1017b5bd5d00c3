/* SPDX-License-Identifier: Apache-2.0 */
/* Adagrad. (Duchi et al. 2011) */
#include "ops/update.h"
#include "ops/vecmath.h"

#define T      float
#define SQRT   sqrtf
#define KERNEL adagrad_f32
#include "ops/adagrad/adagrad_kernel.inc"
#define T      double
#define SQRT   sqrt
#define KERNEL adagrad_f64
#include "ops/adagrad/adagrad_kernel.inc"

static sn_status adagrad_cpu(const sn__exec *e) {
  return sn__update_run(e, adagrad_f32, adagrad_f64);
}

static void adagrad_cost(const sn__exec *e, sn__cost *out) {
  double n = (double)sn__shape_size(&e->in[0].shape);
  *out = (sn__cost){.flops = 9 * n, .bytes = 5 * n * (double)sn_dtype_size(e->in[0].dtype)};
}

static const sn__attr_def adagrad_attrs[] = {SN__FLOAT_FIELD(sn__adagrad_attrs, epsilon),
                                             SN__FLOAT_FIELD(sn__adagrad_attrs, weight_decay),
                                             SN__FLOAT_FIELD(sn__adagrad_attrs, clip_value)};

const sn_op_def sn__op_adagrad = {.name = "adagrad",
                                  .version = 1,
                                  .min_inputs = SN__UPDATE_SLOTS + 1,
                                  .max_inputs = SN__UPDATE_SLOTS + 1,
                                  .n_outputs = 2,
                                  .flags = SN_OP_COMMIT | SN_OP_NO_GRAD,
                                  .attrs = adagrad_attrs,
                                  .n_attrs = sizeof adagrad_attrs / sizeof *adagrad_attrs,
                                  .attrs_size = sizeof(sn__adagrad_attrs),
                                  .infer = sn__update_infer,
                                  .commits = {SN__UPDATE_VARIABLE + 1, SN__UPDATE_SLOTS + 1},
                                  .cost = adagrad_cost,
                                  .cpu = adagrad_cpu,
                                  .doc = "Adagrad: variable, gradient, control, sum of squares"};
