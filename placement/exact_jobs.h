/* SPDX-License-Identifier: Apache-2.0 */
/* What one placement, or a part of one, has to do (internal): tasks and copies as jobs on queues,
 * with who waits for whom, and how early and how late each can be. */
#ifndef SN_PLACEMENT_EXACT_JOBS_H
#define SN_PLACEMENT_EXACT_JOBS_H

#include "placement/flow.h"

typedef struct sn__job {
  int64_t ns;
  int64_t head;   /* it does not start before */
  int64_t tail;   /* from its end to the end of the step at least */
  int queue;      /* device; n_devices + device for copies that queue; -1: none */
  uint32_t task;  /* or SN__FLOW_NONE: a copy */
  uint32_t value; /* of a copy */
} sn__job;

typedef struct sn__job_edge {
  uint32_t before, after;
} sn__job_edge;

typedef struct sn__jobs {
  const sn__flow *flow;
  int n_queues;
  uint32_t n, most;
  sn__job *jobs; /* [most] tasks by number, then copies */
  uint32_t n_edges, most_edges;
  sn__job_edge *edges;
  uint32_t n_real; /* edges of the problem; behind them those that a bound added */
  /* Made by sn__jobs_link(). */
  uint32_t *first_after, *after;   /* [n + 1], [n_edges] */
  uint32_t *first_before, *before; /* [n + 1], [n_edges] */
  uint32_t *order;                 /* [n] each behind all it waits for */
  uint32_t *first_on, *on;         /* [n_queues + 1], jobs by queue */
  uint32_t *scratch;               /* [most + 1] */
  uint32_t *copy_job;              /* [n_values * n_devices] + 1 */
  int64_t *least_ns;               /* [n_tasks] on the device of its class that is fastest for it */
} sn__jobs;

SN_MUST_USE sn_status sn__jobs_create(const sn__flow *flow, sn__jobs **out_jobs);
void sn__jobs_free(sn__jobs *jobs);

/* devices: by class; -1: nowhere yet. What is nowhere takes its least time and no queue, and
 * nothing is copied to it or from it. Heads and tails are not yet worked out. */
void sn__jobs_make(sn__jobs *jobs, const int *devices);
/* Adds an edge; sn__jobs_link() before anything else is asked. False: no room for one more. */
bool sn__jobs_join(sn__jobs *jobs, uint32_t before, uint32_t after);
/* False when the edges make a cycle. */
bool sn__jobs_link(sn__jobs *jobs);
/* Heads and tails by longest paths; what they were before, where that is more, stays. The longest
 * path of all. */
int64_t sn__jobs_paths(sn__jobs *jobs);

#endif
