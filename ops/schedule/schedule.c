/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/schedule/schedule.h"

#include <math.h>

#include "ops/update.h"

static double half_cosine(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + cos(3.14159265358979323846 * share));
}

/* Two half cosines: up from rate / 25 over the first 30 %, then down to a ten-thousandth of that.
 * (Smith & Topin 2019, with the two phases that PyTorch takes by default) */
static double one_cycle(const sn__schedule_attrs *a, int64_t total, double step) {
  double start = a->rate / 25, end = start / 1e4;
  double top = 0.3 * (double)total - 1, last = (double)total - 1;
  if (step <= top && top > 0) return half_cosine(start, a->rate, step / top);
  return last > top ? half_cosine(a->rate, end, (step - top) / (last - top)) : end;
}

double sn__schedule_rate(const sn__schedule_attrs *a, int64_t step) {
  if (step < 0) step = 0;
  if (step < a->warmup_steps) return a->rate * (double)(step + 1) / (double)a->warmup_steps;
  step -= a->warmup_steps;
  int64_t total = a->total_steps - a->warmup_steps;
  int64_t drops = a->step_size > 0 ? step / a->step_size : 0;
  double now = (double)(total > 0 && step > total ? total : step);
  switch (a->kind) {
  case SN__RATE_STEP: return a->rate * pow(a->gamma, (double)drops);
  case SN__RATE_EXPONENTIAL: return a->rate * pow(a->gamma, (double)step);
  case SN__RATE_COSINE:
    return total > 0 ? half_cosine(a->rate, a->least, now / (double)total) : a->rate;
  case SN__RATE_ONE_CYCLE:
    return total > 0 ? one_cycle(a, total, now < (double)total ? now : (double)total - 1) : a->rate;
  default: return a->rate;
  }
}

static sn_status schedule_infer(sn__infer *c) {
  const sn__schedule_attrs *a = c->attrs;
  if (c->in[0].dtype != SN_I64 || c->in[0].shape.rank != 0)
    return sn__infer_fail(c, "the step is an i64 scalar");
  if (a->kind < 0 || a->kind >= SN__RATE_KINDS)
    return sn__infer_fail(c, "there is no schedule number %lld", (long long)a->kind);
  c->out[0] = (sn__type){SN_F64, {0, {0}}};
  return SN_OK;
}

static sn_status schedule_cpu(const sn__exec *e) {
  *(double *)e->out[0].data = sn__schedule_rate(e->attrs, *(const int64_t *)e->in[0].data);
  return SN_OK;
}

static const sn__attr_def schedule_attrs[] = {
    SN__INT_FIELD(sn__schedule_attrs, kind),        SN__INT_FIELD(sn__schedule_attrs, warmup_steps),
    SN__INT_FIELD(sn__schedule_attrs, total_steps), SN__INT_FIELD(sn__schedule_attrs, step_size),
    SN__FLOAT_FIELD(sn__schedule_attrs, rate),      SN__FLOAT_FIELD(sn__schedule_attrs, gamma),
    SN__FLOAT_FIELD(sn__schedule_attrs, least)};

const sn_op_def sn__op_schedule = {.name = "schedule",
                                   .version = 1,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .n_outputs = 1,
                                   .flags = SN_OP_NO_GRAD,
                                   .attrs = schedule_attrs,
                                   .n_attrs = sizeof schedule_attrs / sizeof *schedule_attrs,
                                   .attrs_size = sizeof(sn__schedule_attrs),
                                   .infer = schedule_infer,
                                   .cpu = schedule_cpu,
                                   .doc = "the step's number to its learning rate"};
