/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: what a placed graph becomes before it runs. Immutable, and anyone's to share.
 *
 * Making one verifies the graph, orders its work, plans its memory and proves that no two accesses
 * race; each of these can refuse. Nothing here touches a device. */
#ifndef SN_CORE_RUN_PLAN_H
#define SN_CORE_RUN_PLAN_H

#include "core/device/desc.h"
#include "core/graph.h"

SN_BEGIN_DECLS

typedef struct sn_plan sn_plan;

/* A number for a symbolic dimension: {"batch", 64}, {"visits.elements", 5000},
 * {"visits.longest", 300}. */
typedef struct sn_extent {
  const char *symbol;
  int64_t count;
} sn_extent;

typedef struct sn_plan_options {
  SN_OPTIONS_HEAD;
  /* Values that steps may fetch, beside the graph's outputs and the losses' sums. */
  const sn_value *fetches;
  size_t n_fetches;
  bool training;   /* variables are written, dropout drops, batch statistics are used */
  bool no_outputs; /* do not compute the outputs for their own sake */
  bool no_losses;  /* do not compute the losses for their own sake; labels need not be fed */
  /* The largest extents to expect. With one for every symbol in use, memory is planned now. */
  const sn_extent *extents;
  size_t n_extents;
} sn_plan_options;

/* Every node of `graph` is placed on a device of `topology`; both are copied. CONFIG: an op that
 * its device cannot run; OUT_OF_MEMORY: more than a device's memory_bytes, where memory is planned
 * now; INTERNAL: the verifier or the race checker refuses. */
SN_API SN_MUST_USE sn_status sn_plan_create(const sn_graph *graph, const sn_topology *topology,
                                            const sn_plan_options *options, sn_plan **out_plan);
/* No session may use it any more. */
SN_API void sn_plan_free(sn_plan *plan);

/* ---- looking ------------------------------------------------------------------------------- */

/* Numbers past the end give an empty struct: no texts, devices -1. Times in ns, sizes in bytes;
 * texts are borrowed from the plan. */

typedef struct sn_plan_device {
  const char *name;
  size_t arena_bytes;    /* of both lanes; 0 unless memory was planned with the plan */
  size_t copy_bytes;     /* of these, the copies' lane */
  size_t live_bytes;     /* the most that must be there at one moment: no arena could be smaller */
  size_t variable_bytes; /* variables and slots that live here */
  int64_t busy_ns;       /* predicted, a step */
  size_t nodes;          /* that run here */
} sn_plan_device;

typedef struct sn_plan_node {
  uint32_t node; /* its number in the graph */
  const char *name, *op, *module;
  const char *phase; /* "forward", "backward", "update" */
  int device;
  const char *cause;           /* NULL when the placement gave none */
  bool copy;                   /* runs on the device's copy queue */
  size_t order;                /* in its queue, from 0 */
  size_t n_waits;              /* see sn_plan_wait() */
  int64_t start_ns, finish_ns; /* predicted */
} sn_plan_node;

/* The devices of the topology, in its order. */
SN_API size_t sn_plan_device_count(const sn_plan *plan);
SN_API sn_plan_device sn_plan_device_at(const sn_plan *plan, size_t i);
/* What runs, in order of predicted start. */
SN_API size_t sn_plan_node_count(const sn_plan *plan);
SN_API sn_plan_node sn_plan_node_at(const sn_plan *plan, size_t i);
/* The node (as numbered by sn_plan_node_at) whose end node i waits for beside its queue's order;
 * sn_plan_node_count() when it has no such wait. */
SN_API size_t sn_plan_wait(const sn_plan *plan, size_t i, size_t wait);
SN_API int64_t sn_plan_step_ns(const sn_plan *plan); /* predicted */

typedef struct sn_node_time {
  int64_t start_ns, finish_ns;
} sn_node_time;

/* The step of this plan on another batch: its order is kept, costs are of `extents` (by symbol;
 * NULL: those that the plan was made for). out_times (may be NULL): each node's, as numbered by
 * sn_plan_node_at(), from the step's begin. */
SN_API SN_MUST_USE sn_status sn_plan_predict(const sn_plan *plan, const int64_t *extents,
                                             sn_node_time *out_times, int64_t *out_step_ns);

/* Of how many nodes the cost comes from where: [SN_COST_SOURCE_COUNT]. */
SN_API SN_MUST_USE sn_status sn_plan_cost_sources(const sn_plan *plan, size_t *out_counts);
/* What a step takes on the host, beside its nodes: in sn_plan_step_ns(); 0 unless measured. */
SN_API int64_t sn_plan_host_ns(const sn_plan *plan);

SN_API bool sn_plan_is_training(const sn_plan *plan); /* as its options said */
/* The symbols of the graph: "batch" first. */
SN_API size_t sn_plan_symbol_count(const sn_plan *plan);
SN_API const char *sn_plan_symbol(const sn_plan *plan, size_t i);

/* ---- the placed graph ---------------------------------------------------------------------- */

/* Every node of it, whether or not it does work: inputs, variables and views are here, too. Values
 * are numbered from 1; a value keeps its number from the model's graph to this one. Borrowed. */
typedef struct sn_plan_placed {
  uint32_t node;
  const char *name, *op, *module;
  const char *phase;
  int device;
  const char *cause;
  bool copy;
  bool runs; /* one of sn_plan_node_at() */
  size_t n_inputs, n_outputs;
  const uint32_t *inputs; /* values; 0: absent */
  const uint32_t *outputs;
  uint32_t origin; /* of a backward node: the forward node that it goes with; 0: none */
} sn_plan_placed;
SN_API size_t sn_plan_placed_count(const sn_plan *plan);
SN_API sn_plan_placed sn_plan_placed_at(const sn_plan *plan, size_t i);
/* NULL when there is no such value. */
SN_API const char *sn_plan_value_name(const sn_plan *plan, uint32_t value);
/* Bytes of a value in the largest batch expected (a usual one where nothing was said). */
SN_API uint64_t sn_plan_value_bytes(const sn_plan *plan, uint32_t value);

/* The bytes of a device's arenas that are in use from a moment on, until the next point. */
typedef struct sn_plan_memory_point {
  int64_t ns;
  int64_t bytes;
} sn_plan_memory_point;
/* By growing time, over the predicted step; variables are not in it. Returns how many points; with
 * `out` NULL, how many there may be. 0: memory is not planned yet. */
SN_API size_t sn_plan_memory_over(const sn_plan *plan, size_t device, sn_plan_memory_point *out);

/* A copy that runs, in order of predicted start. */
typedef struct sn_plan_copy {
  uint32_t node;
  const char *value; /* what is copied */
  int from, to;
  uint64_t bytes;
  int64_t ns; /* predicted, alone on its link */
  sn_link_path path;
  const char *phase;
} sn_plan_copy;
SN_API size_t sn_plan_copy_count(const sn_plan *plan);
SN_API sn_plan_copy sn_plan_copy_at(const sn_plan *plan, size_t i);

/* A variable of the model and what belongs to it. Devices are -1 where there is no such thing. */
typedef struct sn_plan_variable {
  const char *name;
  int device;
  int gradient_device; /* where its gradient is summed */
  int update_device;   /* of the node that writes it */
  size_t n_slots;
} sn_plan_variable;
SN_API size_t sn_plan_variable_count(const sn_plan *plan);
SN_API sn_plan_variable sn_plan_variable_at(const sn_plan *plan, size_t i);
SN_API int sn_plan_slot_device(const sn_plan *plan, size_t variable, size_t slot);

SN_END_DECLS

#endif
