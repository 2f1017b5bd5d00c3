/* SPDX-License-Identifier: Apache-2.0 */
/* The placement pass from inside (internal): what was asked, what was tried, what is kept of it. */
#ifndef SN_PLACEMENT_PLACEMENT_IMPL_H
#define SN_PLACEMENT_PLACEMENT_IMPL_H

#include "placement/makespan.h"
#include "placement/placement.h"
#include "placement/problem.h"
#include "placement/recompute_choice.h"

/* What a node's order is, for the graph that was placed. */
typedef struct sn__node_order {
  const char *name;
  int64_t order;
} sn__node_order;

struct sn_placement {
  sn__arena arena;
  sn_topology *topology;
  sn_placement_module *modules;
  size_t n_modules;
  sn_placement_figures figures;
  int64_t *busy_ns;
  uint64_t *peak_bytes;
  int loss_device; /* where what belongs to no known module goes */
  char *sentence;
  size_t n_nodes;         /* of the graph that was placed, with what is recomputed */
  sn__node_order *orders; /* [n_orders] by name; none: longest remaining path first */
  size_t n_orders;
  sn_placement_recomputed *recomputed;
  size_t n_recomputed;
  const char *recompute_cause; /* NULL where nothing is */
};

/* What sn_place() was asked. */
typedef struct sn__place_request {
  const sn_graph *graph; /* as given: nothing is recomputed in it */
  const sn_topology *topology;
  const sn_place_options *options;
  int64_t *extents; /* by symbol */
  uint64_t *limits; /* [n_devices] what the search may use; 0: no limit */
} sn__place_request;

/* A search for a graph with something recomputed, or nothing. */
typedef struct sn__place_attempt {
  const sn__place_request *request;
  const char *const *entries; /* borrowed */
  size_t n_entries;
  sn_graph *graph; /* its own */
  sn__problem *p;  /* of that graph, pins and limits in it */
  sn__makespan_result plan;
} sn__place_attempt;

/* ---- placement_attempt.c --------------------------------------------------------------------- */

SN_MUST_USE sn_status sn__place_attempt_make(const sn__place_request *request,
                                             const char *const *entries, size_t n,
                                             sn__place_attempt *out_attempt);
void sn__place_attempt_free(sn__place_attempt *attempt);

/* ---- placement_describe.c -------------------------------------------------------------------- */

/* Figures, modules and their causes, order and sentence of a plan. recompute_cause: kept; NULL
 * where nothing is recomputed. */
SN_MUST_USE sn_status sn__placement_describe(sn_placement *placement,
                                             const sn__place_attempt *attempt,
                                             const char *recompute_cause);

/* ---- placement_fit.c ------------------------------------------------------------------------- */

/* The most bytes on each device at once, by the simulator: out_peak [n_devices]. out_makespan may
 * be NULL. */
SN_MUST_USE sn_status sn__place_peaks(const sn__place_attempt *attempt, uint64_t *out_peak,
                                      int64_t *out_makespan);
/* The device that lacks most with these peaks, or -1. */
int sn__place_worst(const sn_topology *topology, const uint64_t *limits, const uint64_t *peak);
/* OUT_OF_MEMORY for an attempt that does not fit: what, where, and the nearest remedies. peak: by
 * device, what it would need. */
SN_MUST_USE sn_status sn__place_refuse(const sn__place_attempt *attempt, const uint64_t *peak);
/* What the memory plan of the very schedule that would run needs on each device: out_bytes
 * [n_devices]. */
SN_MUST_USE sn_status sn__placement_plan_bytes(const sn_placement *placement,
                                               const sn__place_request *request,
                                               uint64_t *out_bytes);

#endif
