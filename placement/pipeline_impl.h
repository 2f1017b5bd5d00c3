/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that pipelines run on (internal to placement/pipeline*.c). */
#ifndef SN_PLACEMENT_PIPELINE_IMPL_H
#define SN_PLACEMENT_PIPELINE_IMPL_H

#include "placement/pipeline.h"

#define SN__PIPE_NONE UINT32_MAX

/* A copy is edge * n_micro * 2 + micro * 2 + (0 forward, 1 backward). */
typedef struct sn__pipe_lane {
  uint32_t *waiting; /* copies in the order in which they became ready */
  uint32_t head, tail;
  uint32_t running;
  int64_t until;
} sn__pipe_lane;

/* Scratch for runs of one pipe; no run allocates. */
typedef struct sn__pipe_clock {
  const sn__pipe *pipe;
  bool glued;
  int64_t now;
  uint32_t *left;    /* [tasks] what each still waits for */
  uint32_t *running; /* [n_devices] task, or NONE */
  int64_t *until;
  sn__pipe_lane *lanes;              /* [n_devices] */
  int64_t *start, *finish;           /* [tasks]; finish -1: has not started */
  uint32_t *started[SN__PIPE_KINDS]; /* [n_stages] how many of each kind */
  uint32_t *ended[SN__PIPE_KINDS];
  uint32_t *peak; /* [n_stages] */
  uint32_t n_started;
  void *memory;
} sn__pipe_clock;

/* The next task of an idle device, or NONE to wait. */
typedef uint32_t (*sn__pipe_choose)(void *arg, const sn__pipe_clock *clock, int device);

SN_MUST_USE sn_status sn__pipe_clock_create(const sn__pipe *pipe, sn__pipe_clock *out);
void sn__pipe_clock_free(sn__pipe_clock *clock);
/* False when it stops before every task has run. The step's time is clock->now then. */
bool sn__pipe_run(sn__pipe_clock *clock, bool glued, sn__pipe_choose choose, void *arg);

typedef struct sn__pipe_orders {
  const uint32_t *first, *order;
  uint32_t *at; /* [n_devices] scratch */
} sn__pipe_orders;
/* sn__pipe_run() by static orders. */
bool sn__pipe_run_orders(sn__pipe_clock *clock, bool glued, sn__pipe_orders *orders);

/* How many micro-batches of each stage fit: caps are lowered, the highest first, until the devices
 * hold them all. INVALID when not even one each does. */
SN_MUST_USE sn_status sn__pipe_cut_caps(const sn__pipe *pipe, uint32_t *caps);

/* Improves s->order within s->cap by trying others, at most `evals` of them. */
SN_MUST_USE sn_status sn__pipe_search(const sn__pipe *pipe, sn__pipe_clock *clock, uint32_t evals,
                                      uint64_t seed, sn__pipe_schedule *s);

#endif
