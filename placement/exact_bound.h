/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds on the step of a placement or of a part of one (internal). They hold for every
 * schedule, whatever order queues take and wherever they wait on purpose. */
#ifndef SN_PLACEMENT_EXACT_BOUND_H
#define SN_PLACEMENT_EXACT_BOUND_H

#include "placement/exact_alike.h"

/* Work of one queue: not before head, then ns, then tail more until the end. */
typedef struct sn__piece {
  int64_t head, ns, tail;
} sn__piece;

/* When the last of the pieces and its tail is over at the earliest, if the queue may interrupt
 * them: the longest tail first is then the best order. Sorts the pieces. heap: room for n. */
int64_t sn__one_queue(sn__piece *pieces, uint32_t n, sn__piece *heap);

typedef struct sn__bounder {
  sn__jobs *jobs;
  sn__piece *pieces, *heap; /* [jobs->most], the heap n_queues more */
  int64_t *apart;           /* [apart_most * apart_most] see sn__bound_deep() */
  uint32_t apart_most;
  sn__alike *alike;
  bool no_waiting; /* sn__bound_deep() asks only for schedules in which no device waits while it
                    * could work */
  bool exchange; /* sn__bound_deep() orders what is alike: only one of the schedules that differ by
                  * an exchange is asked for */
} sn__bounder;

SN_MUST_USE sn_status sn__bounder_create(sn__jobs *jobs, sn__bounder **out_bounder);
void sn__bounder_free(sn__bounder *bounder);

/* Of jobs that are linked: paths, each queue by itself, and the work shared out. Gives jobs heads
 * and tails. */
int64_t sn__bound_quick(sn__bounder *bounder);
/* The same with heads and tails that know how long queues take over what comes before and behind,
 * and with the orders of pairs that no step below `cutoff` can have the other way round, which
 * become edges. Below `cutoff` the answer is a bound; at or above it, no step is below `cutoff`. */
int64_t sn__bound_deep(sn__bounder *bounder, int64_t cutoff);

/* What it takes, in jobs looked at, as a rule of thumb. */
static inline int64_t sn__bound_deep_jobs(const sn__jobs *jobs) {
  return (int64_t)jobs->n * (int64_t)jobs->n;
}

#endif
