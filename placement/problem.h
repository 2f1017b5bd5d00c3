/* SPDX-License-Identifier: Apache-2.0 */
/* A model's graph as a placement problem (internal): the flow, and the way back from it. */
#ifndef SN_PLACEMENT_PROBLEM_H
#define SN_PLACEMENT_PROBLEM_H

#include "core/device/desc.h"
#include "core/graph_impl.h"
#include "placement/flow.h"

/* One module with everything that has its home there. */
typedef struct sn__unit {
  uint32_t module;
  int pinned;          /* device, or -1 */
  const char *pattern; /* the pin's, when pinned; borrowed */
} sn__unit;

/* Units are the flow's classes, by number. Its tasks are the needed nodes that are no sources
 * (those are there when the step begins), its values what needed nodes make, both in the graph's
 * order. A variable is written when all who read its old bytes have them: the flow's orders. */
typedef struct sn__problem {
  const sn_graph *graph;
  const sn_topology *topology;
  sn__unit *units;
  uint32_t n_units;
  uint32_t *unit_of_node; /* [n_nodes] */
  uint32_t n_tasks, n_values;
  uint32_t *task_of_node; /* [n_nodes]; UINT32_MAX: none */
  uint32_t *node_of_task; /* [n_tasks] */
  uint32_t *value_number; /* [graph->n_values] its number in the flow; UINT32_MAX: none */
  uint32_t *value_of;     /* [n_values] */
  sn__flow *flow;
} sn__problem;

/* Which module every node of `graph` goes with: [n_nodes], caller frees. */
SN_MUST_USE sn_status sn__home_modules(const sn_graph *graph, uint32_t **out_modules);

/* The step that a plan of this graph runs: updates and losses of a training graph, outputs and
 * losses of a forward graph. extents: by symbol; NULL or fewer than there are: a usual batch.
 * INVALID: a negative extent, or a value too large for memory. */
SN_MUST_USE sn_status sn__problem_create(const sn_graph *graph, const sn_topology *topology,
                                         const int64_t *extents, size_t n_extents,
                                         sn__problem **out_problem);
void sn__problem_free(sn__problem *problem);

#endif
