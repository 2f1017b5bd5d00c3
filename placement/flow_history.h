/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that differ a little (internal): a plan is simulated once, states of it are kept, and a
 * changed plan is simulated from the last of them that the change cannot have touched. The result
 * is that of sn__flow_simulate(), to the last bit. */
#ifndef SN_PLACEMENT_FLOW_HISTORY_H
#define SN_PLACEMENT_FLOW_HISTORY_H

#include "placement/flow_simulate.h"

typedef struct sn__flow_history sn__flow_history;

/* What a plan has that the kept one has not. */
typedef struct sn__flow_changes {
  const uint32_t *classes; /* that are elsewhere */
  uint32_t n_classes;
  const uint32_t *tasks; /* with another priority */
  uint32_t n_tasks;
} sn__flow_changes;

SN_MUST_USE sn_status sn__flow_history_create(sn__flow_simulator *simulator,
                                              sn__flow_history **out_history);
void sn__flow_history_free(sn__flow_history *history);

/* Simulates a plan. priorities: not NULL. changes: from the plan that is kept; NULL: everything.
 * step: with start, end and previous, which stay as they are for as long as the plan is kept; the
 * other arrays are asked for always or never. */
void sn__flow_history_simulate(sn__flow_history *history, const int *devices,
                               const int64_t *priorities, const sn__flow_changes *changes,
                               sn__flow_step *step);
/* Keeps the plan simulated last, to its end, in place of the one kept so far. */
void sn__flow_history_keep(sn__flow_history *history);

#endif
