/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: which device does what, and why.
 *
 * Decisions are made for modules. What has a home goes with it: a variable's gradient sum, slots
 * and update with the variable; a backward node with its forward node; a gradient's n-ary sum with
 * the value's producer; the scalars of a step with the first loss. Inputs and constants go with
 * their first use. The objective is the step (forward, backward, update) as a simulator of the
 * executor's own rules predicts it. Decisions are integers with a budget of evaluations, so one
 * seed gives one plan on any machine. "All on the best single device" is always a candidate, so a
 * plan is never worse than it. */
#ifndef SN_PLACEMENT_PLACEMENT_H
#define SN_PLACEMENT_PLACEMENT_H

#include "core/device/desc.h"
#include "core/graph.h"

SN_BEGIN_DECLS

typedef struct sn_pin {
  const char *module; /* a module's path, which takes all beneath it, or a pattern with * and ? */
  const char *device; /* a device of the topology, "cpu:1" */
} sn_pin;

typedef enum sn_objective {
  SN_OBJECTIVE_TIME = 0, /* the shortest predicted step; as many devices as pay */
  SN_OBJECTIVE_SPREAD    /* use every device: for tests and for looking */
} sn_objective;

/* Values of the forward pass that the backward pass reads are kept in between, or computed again
 * there: time for memory, the same bits. */
typedef enum sn_recompute {
  SN_RECOMPUTE_AUTO = 0, /* nothing, unless no placement fits; then what is found to be enough */
  SN_RECOMPUTE_NONE,     /* nothing */
  SN_RECOMPUTE_LISTED    /* sn_place_options.recomputed, and nothing else */
} sn_recompute;

typedef struct sn_place_options {
  SN_OPTIONS_HEAD;
  sn_objective objective;
  const sn_pin *pins; /* the longest match wins; a pin that matches nothing is a mistake */
  size_t n_pins;
  const int64_t *extents; /* by symbol: the batch that costs are taken for; NULL: a typical one */
  size_t n_extents;
  int64_t evals; /* simulated steps the search may take; 0: what a second is enough for */
  uint64_t seed;
  sn_recompute recompute;
  /* Modules by path or pattern, as in pins, each recomputed by itself: what leaves it is kept.
   * "a+b" takes several as one: what goes from a to b is not kept either. A name that matches
   * nothing is a mistake. */
  const char *const *recomputed;
  size_t n_recomputed;
  /* A device's name: all that is not pinned goes there, for a reason that the search cannot see and
   * that modules then give as their cause. NULL: any. */
  const char *only_device, *only_cause;
} sn_place_options;

/* The decision and its figures; immutable. Applies to every variant of the same model's graph. */
typedef struct sn_placement sn_placement;

typedef struct sn_placement_module {
  const char *path;  /* "" is what stands in no module */
  int device;        /* index in the topology */
  const char *cause; /* "pinned by 'visits'", "solver: shortens the step by 0.812 ms" */
  int64_t busy_ns;   /* its work on that device, forward and backward and update */
  uint64_t bytes;    /* of its variables and slots */
  bool recomputed;   /* its forward values are computed again for the backward pass */
} sn_placement_module;

/* What is recomputed as one. */
typedef struct sn_placement_recomputed {
  const char *modules; /* "trunk", "trunk/dense+trunk/dense_1" */
  uint64_t bytes;      /* of the forward pass that need no longer be kept for the backward pass */
  int64_t ns;          /* what computing them again takes a step */
} sn_placement_recomputed;

typedef struct sn_placement_figures {
  int64_t predicted_step_ns;
  int64_t lower_bound_ns; /* no plan of this graph on these devices takes less */
  int64_t one_device_ns;  /* the step on the best single device; 0: none holds the model */
  int one_device;         /* which that is; -1: none */
  int64_t evals;
  int devices_used;
  int64_t copy_ns; /* all copies of the step, added up */
  uint64_t copy_bytes;
  bool memory_fits; /* on the simulated peak; the memory plan decides */
  bool certified;   /* proved: no placement and order take less than predicted_step_ns */
  /* Nor less than lower_bound_ns, where devices wait on purpose while they could work, which ours
   * never do. */
  bool any_schedule;
  int super_nodes;   /* what is placed as one: modules with all that follows them */
  const char *found; /* the candidate that the plan is or comes from: "HEFT"; static */
  bool annealed;     /* it is that candidate improved on */
  const char *bound; /* which bound lower_bound_ns is, in words: "critical path"; static */
  bool ordered;      /* an order was found that beats longest remaining path first */
} sn_placement_figures;

/* `graph` is a forward or a training graph. CONFIG: a pin that matches no module or names no
 * device. OUT_OF_MEMORY: no placement was found that fits; says where, how much, and what would. */
SN_API SN_MUST_USE sn_status sn_place(const sn_graph *graph, const sn_topology *topology,
                                      const sn_place_options *options,
                                      sn_placement **out_placement);
SN_API void sn_placement_free(sn_placement *placement);

SN_API const sn_topology *sn_placement_topology(const sn_placement *placement); /* borrowed */
/* Borrowed. */
SN_API const sn_placement_figures *sn_placement_figures_of(const sn_placement *placement);
/* Modules with their devices and causes, in the graph's order; NULL past the end. */
SN_API size_t sn_placement_module_count(const sn_placement *placement);
SN_API const sn_placement_module *sn_placement_module_at(const sn_placement *placement, size_t i);
/* Predicted for a device by its index: the work of a step, and the most bytes there at once. */
SN_API int64_t sn_placement_busy_ns(const sn_placement *placement, int device);
SN_API uint64_t sn_placement_peak_bytes(const sn_placement *placement, int device);
/* What is recomputed, and why: NULL where nothing is. Borrowed. */
SN_API size_t sn_placement_recomputed_count(const sn_placement *placement);
SN_API sn_placement_recomputed sn_placement_recomputed_at(const sn_placement *placement, size_t i);
SN_API const char *sn_placement_recompute_cause(const sn_placement *placement);
/* What the copies cost and what the devices gain, in one sentence; borrowed. */
SN_API const char *sn_placement_sentence(const sn_placement *placement);

/* A placed graph: nodes for what is recomputed, a device and a cause for every node, a copy node
 * for each (value, destination) that needs one. The graph may be any variant of the model (another
 * optimizer variant, the forward graph): modules are found by path. Value indices are kept, node
 * indices are not. */
SN_API SN_MUST_USE sn_status sn_placement_apply(const sn_placement *placement,
                                                const sn_graph *graph, sn_graph **out_placed);

SN_END_DECLS

#endif
