/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers, learning-rate schedules, clipping, gradient accumulation and averaged weights, built
 * as nodes of the training graph.
 *
 * Semantics and defaults are PyTorch's; a zero takes the default, so a number that shall really be
 * zero is given as a tiny one. In a step: gradients are multiplied by the factor that brings their
 * norm over the whole graph down to clip_norm (partial sums are added in variable order), then
 * clamped to clip_value, then weight decay, then the rule. When any gradient of the graph is not
 * finite, no variable and no slot is written. */
#ifndef SN_OPTIM_OPTIM_H
#define SN_OPTIM_OPTIM_H

#include "core/graph.h"

SN_BEGIN_DECLS

typedef enum sn_optimizer_kind {
  SN_SGD = 0, /* learning rate 0.001 */
  SN_ADAM,    /* 0.001, beta1 0.9, beta2 0.999, epsilon 1e-8   (Kingma & Ba 2015) */
  SN_ADAMW,   /* the same, weight decay 0.01   (Loshchilov & Hutter 2019) */
  SN_RMSPROP, /* 0.01, alpha 0.99, epsilon 1e-8 */
  SN_ADAGRAD, /* 0.01, epsilon 1e-10   (Duchi et al. 2011) */
  SN_OPTIMIZER_COUNT
} sn_optimizer_kind;
SN_API const char *sn_optimizer_name(sn_optimizer_kind kind); /* "adamw"; "unknown" */
/* False, and nothing written, when there is none of that name. */
SN_API bool sn_optimizer_from_name(const char *name, sn_optimizer_kind *out);

typedef enum sn_schedule_kind {
  SN_SCHEDULE_CONSTANT = 0,
  SN_SCHEDULE_STEP,        /* times gamma (0.1) every step_size steps */
  SN_SCHEDULE_COSINE,      /* from the rate to min_rate over total_steps, then min_rate */
  SN_SCHEDULE_EXPONENTIAL, /* times gamma (no default) every step */
  SN_SCHEDULE_ONE_CYCLE,   /* from rate / 25 up to the rate over 30 % of total_steps, down to
                              rate / 250000   (Smith & Topin 2019) */
  SN_SCHEDULE_COUNT
} sn_schedule_kind;
SN_API const char *sn_schedule_name(sn_schedule_kind kind); /* "one_cycle"; "unknown" */
/* False, and nothing written, when there is none of that name. */
SN_API bool sn_schedule_from_name(const char *name, sn_schedule_kind *out);

typedef struct sn_schedule_options {
  sn_schedule_kind kind;
  int64_t warmup_steps; /* the rate rises from rate / warmup_steps; the schedule begins behind it */
  int64_t total_steps;  /* warm-up included; needed by cosine and one-cycle */
  int64_t step_size;    /* needed by step */
  double gamma;
  double min_rate;
} sn_schedule_options;

typedef struct sn_optimizer_options {
  SN_OPTIONS_HEAD;
  sn_optimizer_kind kind;
  double learning_rate;
  double momentum; /* SGD, RMSProp */
  bool nesterov;   /* SGD with momentum */
  /* L2 (added to the gradient), with AdamW decoupled (the variable shrinks by rate * decay).
   * Variables marked no_decay are left alone unless decay_all. */
  double weight_decay;
  bool decay_all;
  double beta1, beta2, epsilon, alpha;
  double clip_value; /* each element into [-clip_value, clip_value]; 0: no clipping */
  double clip_norm;  /* norm of all gradients together; 0: no clipping */
  /* Keeps, as slot "ema" of every trained variable, decay * average + (1 - decay) * variable after
   * each step, from the variable's start on; 0: none. */
  double ema_decay;
  sn_schedule_options schedule;
} sn_optimizer_options;

/* The learning rate of step `step`, counted from 0; learning_rate is the options' own number (or
 * default). */
SN_API double sn_schedule_rate(const sn_schedule_options *schedule, double learning_rate,
                               int64_t step);
/* The learning rate with the default in place of zero; 0 when struct_size is not set. */
SN_API double sn_optimizer_rate(const sn_optimizer_options *options);
/* INVALID, naming the option, its number and what it must be. */
SN_API SN_MUST_USE sn_status sn_optimizer_check(const sn_optimizer_options *options);

/* A batch in k micro-batches is FIRST, MIDDLE (k - 2 times), LAST; a whole batch is WHOLE. All
 * work on one store: WHOLE's variables are the first of the others', which have slot "accumulator"
 * behind them. Only LAST and WHOLE have the step's scalars and write variables. (Running statistics
 * of batch norm are written in every micro-batch, in order.) */
typedef enum sn_train_variant {
  SN_TRAIN_WHOLE = 0,
  SN_TRAIN_FIRST,
  SN_TRAIN_MIDDLE,
  SN_TRAIN_LAST
} sn_train_variant;

/* Differentiates `forward` and adds the optimizer: the graph of one training step. The caller owns
 * it; `forward` may be freed. */
SN_API SN_MUST_USE sn_status sn_training_graph(const sn_graph *forward,
                                               const sn_optimizer_options *options,
                                               sn_train_variant variant, sn_graph **out_train);

SN_END_DECLS

#endif
