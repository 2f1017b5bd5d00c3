/* SPDX-License-Identifier: Apache-2.0 */
/* Adam and AdamW. (Kingma & Ba 2015; Loshchilov & Hutter 2019) */
#include "ops/update.h"
#include "ops/vecmath.h"

#define T      float
#define SQRT   sqrtf
#define KERNEL adam_f32
#include "ops/adam/adam_kernel.inc"
#define T      double
#define SQRT   sqrt
#define KERNEL adam_f64
#include "ops/adam/adam_kernel.inc"

static sn_status adam_cpu(const sn__exec *e) {
  return sn__update_run(e, adam_f32, adam_f64);
}

static void adam_cost(const sn__exec *e, sn__cost *out) {
  double n = (double)sn__shape_size(&e->in[0].shape);
  *out = (sn__cost){.flops = 14 * n, .bytes = 7 * n * (double)sn_dtype_size(e->in[0].dtype)};
}

static const sn__attr_def adam_attrs[] = {
    SN__FLOAT_FIELD(sn__adam_attrs, beta1),      SN__FLOAT_FIELD(sn__adam_attrs, beta2),
    SN__FLOAT_FIELD(sn__adam_attrs, epsilon),    SN__FLOAT_FIELD(sn__adam_attrs, weight_decay),
    SN__FLOAT_FIELD(sn__adam_attrs, clip_value), SN__INT_FIELD(sn__adam_attrs, decoupled)};

const sn_op_def sn__op_adam = {
    .name = "adam",
    .version = 1,
    .min_inputs = SN__UPDATE_SLOTS + 2,
    .max_inputs = SN__UPDATE_SLOTS + 2,
    .n_outputs = 3,
    .flags = SN_OP_COMMIT | SN_OP_NO_GRAD,
    .attrs = adam_attrs,
    .n_attrs = sizeof adam_attrs / sizeof *adam_attrs,
    .attrs_size = sizeof(sn__adam_attrs),
    .infer = sn__update_infer,
    .commits = {SN__UPDATE_VARIABLE + 1, SN__UPDATE_SLOTS + 1, SN__UPDATE_SLOTS + 2},
    .cost = adam_cost,
    .cpu = adam_cpu,
    .doc = "Adam or AdamW: variable, gradient, control, first and second moment"};
