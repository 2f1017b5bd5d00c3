/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that can be exchanged (internal): of schedules that differ only in which of them goes first,
 * one is enough. Holds where queues may wait and go in any order; a rule that breaks ties by number
 * does not exchange them. */
#ifndef SN_PLACEMENT_EXACT_ALIKE_H
#define SN_PLACEMENT_EXACT_ALIKE_H

#include "placement/exact_jobs.h"

typedef struct sn__alike {
  sn__jobs *jobs;
  uint32_t *first_before, *before; /* by the problem's own edges */
  bool *last;                      /* [n] nothing waits for it */
  uint32_t n_pairs, most_pairs;
  sn__job_edge *pairs; /* of a queue, equally long, with the same jobs behind them */
} sn__alike;

SN_MUST_USE sn_status sn__alike_create(sn__jobs *jobs, sn__alike **out_alike);
void sn__alike_free(sn__alike *alike);

/* Of jobs that are linked without added edges: finds what is alike, and adds an edge from the first
 * to the second of two jobs that wait for the same and that have the same behind them, up to
 * exchange. Link again. */
void sn__alike_find(sn__alike *alike);
/* Adds edges to pairs of which one is there whenever the other is, by the paths in `apart` (see
 * sn__bounder). How many; link again if any. */
int sn__alike_order(sn__alike *alike, const int64_t *apart);

#endif
