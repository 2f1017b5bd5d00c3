/* SPDX-License-Identifier: Apache-2.0 */
/* What the ops that write variables share (internal). An update reads its variable, the gradient,
 * the step's control scalars and its slots, and writes variable and slots in place, in one pass,
 * by chunks of a fixed size that the team shares out. It writes nothing at all when the control
 * says that some gradient of the graph is not finite. */
#ifndef SN_OPS_UPDATE_H
#define SN_OPS_UPDATE_H

#include "core/op.h"

/* The four f64 of global_norm's control output: one value to copy to each device. */
enum { SN__CONTROL_RATE, SN__CONTROL_SCALE, SN__CONTROL_FINITE, SN__CONTROL_STEP, SN__CONTROLS };

/* Inputs of an update; slots follow. */
enum { SN__UPDATE_VARIABLE, SN__UPDATE_GRADIENT, SN__UPDATE_CONTROL, SN__UPDATE_SLOTS };

enum { SN__CHUNK = 16384 /* elements; part of the order of sum_squares */ };

/* Elements [0, n) of one chunk. `state` holds variable then slots: read `in`, write `out` (the same
 * storage, or apart in tests). */
typedef struct sn__update_chunk {
  int64_t n;
  const void *gradient;
  const void *in[3];
  void *out[3];
  const void *attrs;
  const double *control;
} sn__update_chunk;

typedef void (*sn__update_fn)(const sn__update_chunk *c);

/* Shape rule: variable and gradient alike (f32 or f64), control f64 [4], slots like the variable;
 * output i is the storage of the variable or slot i. */
SN_MUST_USE sn_status sn__update_infer(sn__infer *c);
SN_MUST_USE sn_status sn__update_run(const sn__exec *e, sn__update_fn f32, sn__update_fn f64);

#define SN__FLOAT_FIELD(type, field)                                                               \
  { .name = #field, .kind = SN_ATTR_FLOAT, .offset = offsetof(type, field) }
#define SN__INT_FIELD(type, field)                                                                 \
  { .name = #field, .kind = SN_ATTR_INT, .offset = offsetof(type, field) }

/* ---- attributes ---------------------------------------------------------------------------- */

typedef struct sn__sgd_attrs {
  double momentum, weight_decay, clip_value;
  int64_t nesterov;
} sn__sgd_attrs;

typedef struct sn__adam_attrs {
  double beta1, beta2, epsilon, weight_decay, clip_value;
  int64_t decoupled; /* AdamW: decay shrinks the variable, not the gradient */
} sn__adam_attrs;

typedef struct sn__rmsprop_attrs {
  double alpha, epsilon, momentum, weight_decay, clip_value;
} sn__rmsprop_attrs;

typedef struct sn__adagrad_attrs {
  double epsilon, weight_decay, clip_value;
} sn__adagrad_attrs;

typedef struct sn__ema_attrs {
  double decay;
} sn__ema_attrs;

typedef struct sn__accumulate_attrs {
  int64_t first; /* the accumulator's old content is not read */
} sn__accumulate_attrs;

typedef struct sn__global_norm_attrs {
  double clip_norm; /* 0: no clipping */
} sn__global_norm_attrs;

extern const sn_op_def sn__op_sgd, sn__op_adam, sn__op_rmsprop, sn__op_adagrad, sn__op_ema,
    sn__op_accumulate, sn__op_sum_squares, sn__op_global_norm, sn__op_schedule;

#endif
