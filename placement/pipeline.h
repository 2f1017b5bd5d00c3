/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines (internal): micro-batches through a DAG of stages, on a clock.
 *
 * A stage runs on one device and has three tasks for each micro-batch: F forward, B the gradient of
 * its inputs, W the gradients of its variables. F waits for the F of every stage before it, B for
 * its own F and the B of every stage behind it, W for its own B; what crosses devices is copied in
 * between, on the one lane of copies that its destination has. Several sources, edges that skip
 * stages, several stages on a device and times that differ by micro-batch are all the same to it.
 *
 * A schedule is a static order of tasks for each device; whatever made it, its times come from the
 * one evaluation of orders (sn__pipe_run), and it is proved free of deadlock first. All times are
 * whole nanoseconds (or whatever unit the caller counts in), so one seed gives one schedule on any
 * machine. */
#ifndef SN_PLACEMENT_PIPELINE_H
#define SN_PLACEMENT_PIPELINE_H

#include "core/status.h"

typedef enum sn__pipe_kind { SN__PIPE_F = 0, SN__PIPE_B, SN__PIPE_W, SN__PIPE_KINDS } sn__pipe_kind;

typedef enum sn__pipe_rule {
  SN__PIPE_GPIPE = 0,  /* all F, then all B, each with its W: M micro-batches in flight */
  SN__PIPE_1F1B,       /* W glued to B; in flight: a stage's own path to the sink */
  SN__PIPE_ZERO_BUBBLE /* W fills gaps; from F to W in flight: the longest path through a stage,
                          or up to twice that less one where it makes the step shorter */
} sn__pipe_rule;

/* No time, and no sum of a schedule's times, may pass this. */
#define SN__PIPE_TIME_MOST (INT64_MAX / 8)

typedef struct sn__pipe_edge {
  uint32_t from, to; /* stages: `to` reads what `from` makes */
} sn__pipe_edge;

typedef struct sn__pipe {
  int n_devices;
  uint32_t n_stages, n_edges, n_micro;
  int *device;     /* [n_stages] */
  int64_t *ns;     /* [n_stages * n_micro * 3] see sn__pipe_task() */
  uint64_t *bytes; /* [n_stages] kept for one micro-batch from F to W */
  sn__pipe_edge *edges;
  bool *all; /* [n_edges] of every micro-batch: each F of `to` waits for all of `from`, each B of
                `from` for all of `to`; GPipe alone can run it */
  int64_t *copy_ns;       /* [n_edges * n_micro * 2] forward, backward; not read within a device */
  uint64_t *device_bytes; /* [n_devices] for activations; 0: no limit */
  /* Made by sn__pipe_finish(). */
  uint32_t *topological;    /* [n_stages] */
  uint32_t *to_sink;        /* [n_stages] stages on the longest path to a sink, itself included */
  uint32_t *through;        /* [n_stages] stages on the longest path through it */
  uint32_t *first_in, *ins; /* edges into a stage: ins[first_in[s] .. first_in[s + 1]) */
  uint32_t *first_out, *outs;
} sn__pipe;

/* Zeroed arrays for the caller to fill. INVALID: nothing to do, or more than can be counted. */
SN_MUST_USE sn_status sn__pipe_create(int n_devices, uint32_t n_stages, uint32_t n_edges,
                                      uint32_t n_micro, sn__pipe **out_pipe);
/* Checks and links. INVALID: an index out of range, a negative time, times that overflow in sum, a
 * cycle of stages. */
SN_MUST_USE sn_status sn__pipe_finish(sn__pipe *pipe);
void sn__pipe_free(sn__pipe *pipe);

static inline uint32_t sn__pipe_task(const sn__pipe *p, uint32_t stage, uint32_t micro,
                                     sn__pipe_kind kind) {
  return (stage * p->n_micro + micro) * SN__PIPE_KINDS + (uint32_t)kind;
}

static inline uint32_t sn__pipe_task_count(const sn__pipe *p) {
  return p->n_stages * p->n_micro * SN__PIPE_KINDS;
}

static inline uint32_t sn__pipe_stage_of(const sn__pipe *p, uint32_t task) {
  return task / SN__PIPE_KINDS / p->n_micro;
}

static inline uint32_t sn__pipe_micro_of(const sn__pipe *p, uint32_t task) {
  return task / SN__PIPE_KINDS % p->n_micro;
}

/* A static order and what came of it. */
typedef struct sn__pipe_schedule {
  bool glued;      /* the gradient leaves a stage after its W, not after its B */
  uint32_t *first; /* [n_devices + 1] into order */
  uint32_t *order; /* [tasks] device by device */
  int64_t *start;  /* [tasks] by task */
  int64_t *finish; /* [tasks] */
  uint32_t *cap;   /* [n_stages] micro-batches that may be in flight, from F to W */
  uint32_t *peak;  /* [n_stages] the most that were */
  int64_t step_ns;
  int64_t bubble_ns; /* of the busiest device: what it stands idle in the step */
  int64_t bound_ns;  /* no order of these tasks is shorter: heads, work and tails of each device */
  const char *from;  /* which construction it came from */
  uint32_t evals;    /* orders looked at */
} sn__pipe_schedule;

/* `evals`: orders that the search of a zero-bubble schedule may try; 0 means 2000. INVALID: one
 * micro-batch of each stage (for GPipe, all of them) does not fit a device's bytes. */
SN_MUST_USE sn_status sn__pipe_schedule_make(const sn__pipe *pipe, sn__pipe_rule rule,
                                             uint32_t evals, uint64_t seed,
                                             sn__pipe_schedule **out_schedule);
void sn__pipe_schedule_free(sn__pipe_schedule *schedule);

/* Whether the devices' orders and the tasks' needs go together; INVALID names the tasks that wait
 * for each other, or one that is missing, there twice or on another device. */
SN_MUST_USE sn_status sn__pipe_check_order(const sn__pipe *pipe, bool glued, const uint32_t *first,
                                           const uint32_t *order);
/* sn__pipe_check_order(), then times and peaks of s->order by s->first and s->glued. */
SN_MUST_USE sn_status sn__pipe_evaluate(const sn__pipe *pipe, sn__pipe_schedule *s);
/* Of any order with as much in flight as it likes. */
SN_MUST_USE sn_status sn__pipe_bound(const sn__pipe *pipe, bool glued, int64_t *out_ns);

#endif
