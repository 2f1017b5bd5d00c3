/* SPDX-License-Identifier: Apache-2.0 */
/* The norm of all gradients from the sums of squares of each, in variable order; whether it is
 * finite; and the step's control: what every update reads, as one tensor. */
#include "ops/update.h"

#include <math.h>

enum { RATE, STEP, PARTIALS };

static bool is_scalar(const sn__type *t, sn_dtype dtype) {
  return t->dtype == dtype && t->shape.rank == 0;
}

static sn_status global_norm_infer(sn__infer *c) {
  if (!is_scalar(&c->in[RATE], SN_F64) || !is_scalar(&c->in[STEP], SN_I64))
    return sn__infer_fail(c, "needs the learning rate (f64) and the step (i64) as scalars");
  for (int i = PARTIALS; i < c->n_in; i++)
    if (!is_scalar(&c->in[i], SN_F64))
      return sn__infer_fail(c, "input %d must be a sum of squares, an f64 scalar", i);
  c->out[0] = (sn__type){SN_F64, {0, {0}}};
  c->out[1] = (sn__type){SN_U8, {0, {0}}};
  c->out[2] = (sn__type){SN_F64, {1, {SN__CONTROLS}}};
  return SN_OK;
}

static sn_status global_norm_cpu(const sn__exec *e) {
  const sn__global_norm_attrs *a = e->attrs;
  double sum = 0;
  for (int i = PARTIALS; i < e->n_in; i++)
    sum += *(const double *)e->in[i].data;
  double norm = sqrt(sum), rate = *(const double *)e->in[RATE].data;
  bool finite = isfinite(norm);
  /* As torch.nn.utils.clip_grad_norm_: a little is added so that a norm at the limit is not
   * divided by less than itself. */
  double scale = a->clip_norm > 0 && finite ? a->clip_norm / (norm + 1e-6) : 1;
  double *control = e->out[2].data;
  *(double *)e->out[0].data = norm;
  *(uint8_t *)e->out[1].data = finite;
  control[SN__CONTROL_RATE] = rate;
  control[SN__CONTROL_SCALE] = scale < 1 ? scale : 1;
  control[SN__CONTROL_FINITE] = finite ? 1 : 0;
  control[SN__CONTROL_STEP] = (double)*(const int64_t *)e->in[STEP].data;
  return SN_OK;
}

static const sn__attr_def global_norm_attrs[] = {SN__FLOAT_FIELD(sn__global_norm_attrs, clip_norm)};

const sn_op_def sn__op_global_norm = {
    .name = "global_norm",
    .version = 1,
    .min_inputs = PARTIALS,
    .max_inputs = -1,
    .n_outputs = 3,
    .flags = SN_OP_NO_GRAD,
    .attrs = global_norm_attrs,
    .n_attrs = 1,
    .attrs_size = sizeof(sn__global_norm_attrs),
    .infer = global_norm_infer,
    .cpu = global_norm_cpu,
    .doc = "learning rate, step and sums of squares to norm, finite flag and the step's control"};
