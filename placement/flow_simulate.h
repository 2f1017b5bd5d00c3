/* SPDX-License-Identifier: Apache-2.0 */
/* The one simulator (internal): a step of a placement problem on a clock.
 *
 * Per device one compute queue doing the ready task of the highest priority, equals by number. A
 * value goes once to each device that needs it, from the moment it is made; with copies_queue the
 * copies to one device follow one another, the one with the longest remaining path first; without
 * priorities that holds for the compute queues too. These are the rules,
 * ties and times of core/run/schedule.c, and tests compare the two to the nanosecond. A step is
 * O((tasks + reads) log tasks) and allocates nothing. */
#ifndef SN_PLACEMENT_FLOW_SIMULATE_H
#define SN_PLACEMENT_FLOW_SIMULATE_H

#include "placement/flow.h"

typedef struct sn__flow_simulator sn__flow_simulator;

/* What is asked of a simulation, and what it gives. All arrays are the caller's, or NULL. */
typedef struct sn__flow_step {
  int64_t cutoff;    /* give up once the step is seen to take longer; 0: never */
  int64_t makespan;  /* INT64_MAX when given up; then the rest means nothing */
  int64_t copy_time; /* of all copies, added up */
  uint64_t copy_bytes;
  int64_t *busy;        /* [n_devices] */
  uint64_t *peak_bytes; /* [n_devices] class_bytes and, over time, the values that are live */
  int64_t *start;       /* [n_tasks] views: when what they look at is there */
  int64_t *end;         /* [n_tasks] */
  uint32_t *previous;   /* [n_tasks] what its device did before, or SN__FLOW_NONE; views': unset */
} sn__flow_step;

/* `flow` is finished and outlives the simulator. */
SN_MUST_USE sn_status sn__flow_simulator_create(const sn__flow *flow,
                                                sn__flow_simulator **out_simulator);
void sn__flow_simulator_free(sn__flow_simulator *simulator);

/* devices: by class. priorities: by task (a view's is not read), or NULL. */
void sn__flow_simulate(sn__flow_simulator *simulator, const int *devices, const int64_t *priorities,
                       sn__flow_step *step);

/* By task: the time from its start to the end of the step at least, wherever things are, with free
 * copies. Borrowed. */
const int64_t *sn__flow_tails(const sn__flow_simulator *simulator);

/* The longest remaining path of each task under this assignment, copies included: what is scheduled
 * by without priorities. */
void sn__flow_ranks(const sn__flow *flow, const int *devices, int64_t *out_ranks);

/* The copy that brings what `order`->before reads of `order`->after's bytes: false when `before`
 * reads them itself, else the value copied and its destination. */
bool sn__flow_order_copy(const sn__flow *flow, const sn__flow_order *order, const int *devices,
                         uint32_t *out_value, int *out_to);

#endif
