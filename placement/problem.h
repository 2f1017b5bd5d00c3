/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as the solver sees it (internal): units that move as one, tasks with costs, edges with
 * bytes. */
#ifndef SN_PLACEMENT_PROBLEM_H
#define SN_PLACEMENT_PROBLEM_H

#include "core/device/desc.h"
#include "core/graph_impl.h"

/* One module with everything that has its home there. */
typedef struct sn__unit {
  uint32_t module;
  int pinned;          /* device, or -1 */
  const char *pattern; /* the pin's, when pinned; borrowed */
} sn__unit;

/* A needed node that is no source: it runs, or it is a view, which takes no time and no queue.
 * Sources are no tasks: they are there when the step begins. */
typedef struct sn__problem_task {
  uint32_t node;
  uint32_t unit;
  bool view;
} sn__problem_task;

/* Task `to` reads `value`; from is its producing task, or UINT32_MAX for a source, which lives with
 * from_unit. With `order`, `to` writes the variable whose storage `from` reads as `value`: it comes
 * after that reading, by `from` itself or by the copy that `from` has. */
typedef struct sn__problem_edge {
  uint32_t from, to;
  uint32_t value;
  uint32_t from_unit;
  bool order;
} sn__problem_edge;

typedef struct sn__problem {
  const sn_graph *graph;
  const sn_topology *topology;
  sn__unit *units;
  uint32_t n_units;
  uint32_t *unit_of_node;  /* [n_nodes] */
  sn__problem_task *tasks; /* in the graph's order */
  uint32_t n_tasks;
  uint32_t *task_of_node; /* [n_nodes]; UINT32_MAX: none */
  uint32_t *backwards;    /* [n_tasks] every task behind all that comes after it, order edges too */
  sn__problem_edge *edges; /* sorted by `to`; no two alike */
  uint32_t n_edges;
  uint32_t *first_edge;  /* [n_tasks + 1]: edges into each task */
  int64_t *task_ns;      /* [n_tasks * n_devices] */
  uint64_t *value_bytes; /* [n_values] */
  uint64_t *unit_bytes;  /* [n_units]: variables, slots, constants */
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

/* What a simulated step gives. */
typedef struct sn__simulated {
  int64_t step_ns;
  int64_t copy_ns;
  uint64_t copy_bytes;
  int64_t *busy_ns;     /* [n_devices], the caller's, or NULL */
  uint64_t *peak_bytes; /* [n_devices], the caller's, or NULL */
} sn__simulated;

/* Scratch for simulations of one problem: none of them allocates. */
typedef struct sn__simulator sn__simulator;
SN_MUST_USE sn_status sn__simulator_create(const sn__problem *problem,
                                           sn__simulator **out_simulator);
void sn__simulator_free(sn__simulator *simulator);

/* The executor's rules on a clock: per device one compute queue and one copy queue for what
 * arrives, each doing the ready task with the longest remaining path first; a value is copied once
 * to a device that needs it. The step's time is to the nanosecond that of the schedule which
 * sn_plan_create() makes of the placed graph (tests compare them). `devices` is by unit. */
void sn__simulate(sn__simulator *simulator, const int *devices, sn__simulated *out);

/* max(critical path on the fastest devices with free copies, all work shared out perfectly). */
int64_t sn__lower_bound_ns(const sn__problem *problem);

typedef struct sn__solution {
  int *devices; /* by unit; the caller's array */
  int64_t step_ns;
  int64_t one_device_ns;
  int one_device;
  int64_t evals;
} sn__solution;

SN_MUST_USE sn_status sn__solve(const sn__problem *problem, sn__simulator *simulator, bool spread,
                                int64_t evals, uint64_t seed, sn__solution *solution);

#endif
