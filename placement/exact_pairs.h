/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a placement has any schedule below a step (internal): queues may wait on purpose, and
 * copies may go in any order. Branches on which of two jobs of a queue goes first. */
#ifndef SN_PLACEMENT_EXACT_PAIRS_H
#define SN_PLACEMENT_EXACT_PAIRS_H

#include "placement/exact_bound.h"

typedef enum sn__pairs_answer {
  SN__PAIRS_NOTHING, /* no schedule is below */
  SN__PAIRS_FOUND,   /* one is: the jobs' heads are its starts */
  SN__PAIRS_SPENT    /* not found out; *out_bound says what is known */
} sn__pairs_answer;

/* Of jobs that have been through sn__bound_deep() with the same cutoff, which gave `bound`. Takes
 * what it needs of *budget (jobs looked at). out_bound: no schedule is below it. Edges that were
 * tried are gone afterwards, unless the answer is FOUND; heads and tails mean nothing. */
sn__pairs_answer sn__pairs_search(sn__bounder *bounder, int64_t bound, int64_t cutoff,
                                  int64_t *budget, int64_t *out_bound);

#endif
