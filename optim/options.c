/* SPDX-License-Identifier: Apache-2.0 */
/* Names, defaults and checks of the options; schedules as numbers. */
#include "optim/optimize.h"

#include <math.h>
#include <string.h>

#include "ops/schedule/schedule.h"

static const char *const optimizer_names[] = {"sgd", "adam", "adamw", "rmsprop", "adagrad"};
static const char *const schedule_names[] = {"constant", "step", "cosine", "exponential",
                                             "one_cycle"};
_Static_assert(sizeof optimizer_names / sizeof *optimizer_names == SN_OPTIMIZER_COUNT,
               "a name each");
_Static_assert(sizeof schedule_names / sizeof *schedule_names == SN_SCHEDULE_COUNT, "a name each");
_Static_assert((int)SN_SCHEDULE_STEP == (int)SN__RATE_STEP &&
                   (int)SN_SCHEDULE_COSINE == (int)SN__RATE_COSINE &&
                   (int)SN_SCHEDULE_EXPONENTIAL == (int)SN__RATE_EXPONENTIAL &&
                   (int)SN_SCHEDULE_ONE_CYCLE == (int)SN__RATE_ONE_CYCLE,
               "the op's numbers are the options'");

static int find(const char *const *names, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return i;
  return -1;
}

const char *sn_optimizer_name(sn_optimizer_kind kind) {
  return (int)kind >= 0 && kind < SN_OPTIMIZER_COUNT ? optimizer_names[kind] : "unknown";
}

bool sn_optimizer_from_name(const char *name, sn_optimizer_kind *out) {
  int i = find(optimizer_names, SN_OPTIMIZER_COUNT, name);
  if (i >= 0) *out = (sn_optimizer_kind)i;
  return i >= 0;
}

const char *sn_schedule_name(sn_schedule_kind kind) {
  return (int)kind >= 0 && kind < SN_SCHEDULE_COUNT ? schedule_names[kind] : "unknown";
}

bool sn_schedule_from_name(const char *name, sn_schedule_kind *out) {
  int i = find(schedule_names, SN_SCHEDULE_COUNT, name);
  if (i >= 0) *out = (sn_schedule_kind)i;
  return i >= 0;
}

static void set(double *number, double otherwise) {
  if (*number == 0) *number = otherwise;
}

sn_optimizer_options sn__optimizer_defaults(const sn_optimizer_options *options) {
  sn_optimizer_options o = *options;
  bool per_element = o.kind == SN_RMSPROP || o.kind == SN_ADAGRAD;
  set(&o.learning_rate, per_element ? 0.01 : 0.001);
  if (o.kind == SN_ADAMW) set(&o.weight_decay, 0.01);
  set(&o.beta1, 0.9);
  set(&o.beta2, 0.999);
  set(&o.alpha, 0.99);
  set(&o.epsilon, o.kind == SN_ADAGRAD ? 1e-10 : 1e-8);
  if (o.schedule.kind == SN_SCHEDULE_STEP) set(&o.schedule.gamma, 0.1);
  return o;
}

double sn_optimizer_rate(const sn_optimizer_options *options) {
  sn_optimizer_options known;
  sn_status status = sn_options_read(options, sizeof known, "optimizer", &known);
  if (status == SN_OK) return sn__optimizer_defaults(&known).learning_rate;
  sn_status_free(status);
  return 0;
}

double sn_schedule_rate(const sn_schedule_options *s, double learning_rate, int64_t step) {
  sn__schedule_attrs a = {.kind = (int64_t)s->kind,
                          .warmup_steps = s->warmup_steps,
                          .total_steps = s->total_steps,
                          .step_size = s->step_size,
                          .rate = learning_rate,
                          .gamma = s->gamma,
                          .least = s->min_rate};
  if (s->kind == SN_SCHEDULE_STEP) set(&a.gamma, 0.1);
  return sn__schedule_rate(&a, step);
}

/* ---- checks -------------------------------------------------------------------------------- */

typedef struct range {
  const char *name;
  double number, low, high; /* low <= number < high */
} range;

static sn_status check_schedule(const sn_schedule_options *s, double rate) {
  if ((int)s->kind < 0 || s->kind >= SN_SCHEDULE_COUNT)
    return sn_status_make(SN_CODE_INVALID, "schedule: there is no kind number %d", (int)s->kind);
  const char *name = schedule_names[s->kind];
  if (s->warmup_steps < 0 || s->total_steps < 0 || s->step_size < 0)
    return sn_status_make(SN_CODE_INVALID,
                          "schedule '%s': warmup_steps, total_steps and step_size cannot be "
                          "negative",
                          name);
  bool horizon = s->kind == SN_SCHEDULE_COSINE || s->kind == SN_SCHEDULE_ONE_CYCLE;
  if (horizon && s->total_steps <= s->warmup_steps)
    return sn_status_make(
        SN_CODE_INVALID,
        "schedule '%s' needs total_steps (%lld) above warmup_steps (%lld): shorten the "
        "warm-up, or train for longer",
        name, (long long)s->total_steps, (long long)s->warmup_steps);
  if (s->kind == SN_SCHEDULE_STEP && s->step_size == 0)
    return sn_status_make(SN_CODE_INVALID, "schedule 'step' needs a step_size");
  bool factor = s->kind == SN_SCHEDULE_STEP || s->kind == SN_SCHEDULE_EXPONENTIAL;
  if (factor && !(s->gamma > 0 && isfinite(s->gamma)))
    return sn_status_make(SN_CODE_INVALID, "schedule '%s': gamma is %g; it must be above 0", name,
                          s->gamma);
  if (!(s->min_rate >= 0 && s->min_rate <= rate))
    return sn_status_make(SN_CODE_INVALID,
                          "schedule '%s': min_rate is %g; it must be from 0 to the learning rate "
                          "(%g)",
                          name, s->min_rate, rate);
  return SN_OK;
}

sn_status sn_optimizer_check(const sn_optimizer_options *options) {
  sn_optimizer_options known;
  SN_TRY(sn_options_read(options, sizeof known, "optimizer", &known));
  if ((int)known.kind < 0 || known.kind >= SN_OPTIMIZER_COUNT)
    return sn_status_make(SN_CODE_INVALID, "optimizer: there is no kind number %d",
                          (int)known.kind);
  sn_optimizer_options o = sn__optimizer_defaults(&known);
  const double most = 1.7e308;
  const range ranges[] = {{"learning_rate", o.learning_rate, 0, most},
                          {"momentum", o.momentum, 0, most},
                          {"weight_decay", o.weight_decay, 0, most},
                          {"beta1", o.beta1, 0, 1},
                          {"beta2", o.beta2, 0, 1},
                          {"alpha", o.alpha, 0, 1},
                          {"epsilon", o.epsilon, 0, most},
                          {"clip_value", o.clip_value, 0, most},
                          {"clip_norm", o.clip_norm, 0, most},
                          {"ema_decay", o.ema_decay, 0, 1}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    const range *r = &ranges[i];
    if (r->number >= r->low && r->number < r->high) continue;
    return sn_status_make(SN_CODE_INVALID, "optimizer '%s': %s is %g; it must be %s",
                          optimizer_names[o.kind], r->name, r->number,
                          r->high > 1 ? "a number from 0 up" : "from 0 to below 1");
  }
  if (o.nesterov && o.momentum == 0)
    return sn_status_make(SN_CODE_INVALID, "optimizer '%s': nesterov needs a momentum above 0",
                          optimizer_names[o.kind]);
  return check_schedule(&o.schedule, o.learning_rate);
}
