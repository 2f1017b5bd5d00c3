/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest step (internal): where each class goes and in which order tasks run, for one step
 * of a placement problem as sn__flow_simulate() judges it; with a lower bound, and a certificate
 * where the search was exhaustive.
 *
 * Candidates (each device alone, every way to place a few classes, contiguous pieces of linear
 * orders, list schedules, a beam search over them) are improved by annealing over places and
 * priorities. Decisions are integers and what is spent is counted in simulated steps, so one seed
 * gives one plan anywhere. */
#ifndef SN_PLACEMENT_MAKESPAN_H
#define SN_PLACEMENT_MAKESPAN_H

#include "placement/flow.h"

typedef struct sn__makespan_options {
  int64_t evals; /* simulated steps that may be spent; 0: as many as suit the size */
  uint64_t seed;
  bool certify; /* spend the budget on proving the plan optimal first; small problems only */
  bool spread;  /* every device works, if there are classes enough, whatever it costs */
  /* [n_classes] classes with one number go together in the candidates that try every way to place
   * groups (branches of a model); NULL: every class for itself. */
  const uint32_t *groups;
} sn__makespan_options;

typedef struct sn__makespan_result {
  int *devices;        /* [n_classes] owned */
  int64_t *priorities; /* [n_tasks] owned; NULL: the longest remaining path first is as good */
  int64_t makespan;
  int64_t lower_bound; /* of any plan that fits */
  const char *bound;   /* which bound that is: "critical path", "work", ... static */
  /* No placement and priorities give less. Priorities never let a device wait while it could work,
   * as the executor does not; a strict order that waits on purpose might be shorter still. */
  bool certified;
  bool any_schedule;           /* no such order is below lower_bound either */
  bool fits;                   /* within every device's bytes; else the plan that lacks fewest */
  int one_device;              /* the best single device that fits; -1: none does */
  int64_t one_device_makespan; /* on it; pins are not looked at */
  int64_t evals;               /* spent */
  const char *found;           /* the candidate that the plan is or comes from, in words; static */
  bool annealed;               /* it was improved on */
} sn__makespan_result;

/* `flow` is finished. INVALID: negative evals. OUT_OF_MEMORY: of the host's. A problem that does
 * not fit its devices is no error here: see `fits`. */
SN_MUST_USE sn_status sn__makespan_solve(const sn__flow *flow, const sn__makespan_options *options,
                                         sn__makespan_result *out_result);
void sn__makespan_free(sn__makespan_result *result);

#endif
