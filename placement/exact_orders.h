/* SPDX-License-Identifier: Apache-2.0 */
/* Every order in which a placement's queues can be worked off (internal), as priorities can ask for
 * it: who runs first of what is ready; no device waits while it could work; copies go by the
 * simulator's rule. What cannot be below the best plan so far is left out. */
#ifndef SN_PLACEMENT_EXACT_ORDERS_H
#define SN_PLACEMENT_EXACT_ORDERS_H

#include "placement/exact_jobs.h"
#include "placement/exact_bound.h"
#include "placement/makespan_impl.h"

typedef struct sn__orders sn__orders;

SN_MUST_USE sn_status sn__orders_create(sn__search *search, sn__bounder *bounder,
                                        sn__orders **out_orders);
void sn__orders_free(sn__orders *orders);

/* Of a placement whose jobs have been through sn__bound_deep(). Better orders are considered as
 * they are found. Takes what it needs of *budget (jobs looked at). True: nothing better is left;
 * false: the budget is spent, or the jobs are too many. */
bool sn__orders_search(sn__orders *orders, const int *devices, int64_t *budget);

/* The simulator, of which this is a second account, did not agree: nothing is proved. */
bool sn__orders_disagree(const sn__orders *orders);

#endif
