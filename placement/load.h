/* SPDX-License-Identifier: Apache-2.0 */
/* The load objective (internal): the time a device is busy for one sample when many are in flight,
 * so that the largest load is the time between two samples that come out (throughput).
 *
 * A device that pays for copies is busy for the tasks on it, for each tensor made elsewhere that it
 * reads (once) and for each of its own tensors read elsewhere (once). Tensors are nets: sets of
 * classes, maker and readers, with a cost; a device pays for a net exactly when some but not all of
 * the net's classes are on it, so the load is a cut of a hypergraph plus a sum, and moving one
 * class changes the loads of the two devices alone, in time proportional to the class's nets.
 * Devices that do not pay (processors of the host) are busy for their tasks alone.
 *
 * Everything is an integer. */
#ifndef SN_PLACEMENT_LOAD_H
#define SN_PLACEMENT_LOAD_H

#include "placement/flow.h"

enum { SN__LOAD_KINDS_MOST = 32 };

/* Devices alike in every respect. A device that something is pinned to is of a kind of its own. */
typedef struct sn__load_kind {
  int count;
  bool pays;      /* for copies */
  uint64_t bytes; /* of each; 0: no limit */
} sn__load_kind;

typedef struct sn__load {
  int n_devices, n_kinds;
  int *kind_of; /* [n_devices] */
  sn__load_kind kinds[SN__LOAD_KINDS_MOST];
  uint32_t n_classes;
  /* [n_classes * n_kinds] or SN__FLOW_NEVER, which is also how a pin keeps a class elsewhere off.
   */
  int64_t *ns;
  uint64_t *bytes; /* [n_classes] */
  /* Nets of two classes at least; equal sets are one net. */
  uint32_t n_nets;
  int64_t *net_ns;     /* [n_nets] */
  uint32_t *first_end; /* [n_nets + 1] into ends */
  uint32_t *ends;      /* classes, ascending within a net */
  uint32_t *first_net; /* [n_classes + 1] into nets */
  uint32_t *nets;      /* class by class */
  /* What must come before what for a split to be contiguous; between different classes, unique. A
   * training graph's backward tasks follow their class and give no edges, but for classes without
   * forward tasks, which stand in the mirror image of their backward edges. */
  uint32_t n_edges;
  uint32_t *first_after; /* [n_classes + 1] into after */
  uint32_t *after;
} sn__load;

/* What a flow does not say; NULL: all devices pay, no task is backward. */
typedef struct sn__load_facts {
  const bool *device_pays;   /* [n_devices] */
  const bool *task_backward; /* [n_tasks] */
} sn__load_facts;

/* UNSUPPORTED: more than one kind of link, or more kinds of device than SN__LOAD_KINDS_MOST. */
SN_MUST_USE sn_status sn__load_create(const sn__flow *flow, const sn__load_facts *facts,
                                      sn__load **out_load);
/* Classes put together: class c becomes part of block block_of[c] < n_blocks. A block cannot run
 * where one of its classes cannot. */
SN_MUST_USE sn_status sn__load_contract(const sn__load *load, const uint32_t *block_of,
                                        uint32_t n_blocks, sn__load **out_load);
void sn__load_free(sn__load *load);

static inline int64_t sn__load_ns(const sn__load *l, uint32_t class_, int device) {
  return l->ns[(size_t)class_ * (size_t)l->n_kinds + (size_t)l->kind_of[device]];
}

/* ---- an assignment and its loads ------------------------------------------------------------ */

typedef struct sn__load_state {
  const sn__load *load; /* borrowed */
  int *device;          /* [n_classes] -1: nowhere yet */
  int64_t *device_ns;   /* [n_devices] */
  uint64_t *device_bytes;
  uint32_t *count; /* [n_nets * n_devices] classes of the net on the device */
} sn__load_state;

/* All classes nowhere; loads of what is placed so far treat the rest as elsewhere. */
SN_MUST_USE sn_status sn__load_state_create(const sn__load *load, sn__load_state *out_state);
void sn__load_state_free(sn__load_state *state);
/* From where it is to `to` (either may be -1), where it can run. */
void sn__load_move(sn__load_state *state, uint32_t class_, int to);
/* What sn__load_move() would make of the two loads; nothing changes. */
void sn__load_try(const sn__load_state *state, uint32_t class_, int to, int64_t *out_from_ns,
                  int64_t *out_to_ns);
void sn__load_assign(sn__load_state *state, const int *device);
int64_t sn__load_largest(const sn__load_state *state);
/* Whether the class may be there: it can run there, and its bytes still fit. */
bool sn__load_fits(const sn__load_state *state, uint32_t class_, int to);

/* ---- blocks for contiguous splits ----------------------------------------------------------- */

/* Which classes must stay together in any contiguous split: those on a cycle of the edges; and
 * those that lose nothing by it: a class that takes no time and no room, all whose nets hold the
 * one class before it (or the one after it), goes with that. */
SN_MUST_USE sn_status sn__load_blocks(const sn__load *load, uint32_t *out_block_of,
                                      uint32_t *out_n_blocks);

/* ---- slices ---------------------------------------------------------------------------------- */

struct sn__downsets;

/* The best of all ways to cut a lattice (or an order) of the load's classes into slices, one a
 * device at most, by dynamic programming over sets and devices used; only ways with no load above
 * `bound` are looked at. `device` [n_classes] is written when there is one, and *out_ns is its
 * largest load; else *out_ns is SN__FLOW_NEVER. *evals counts loads worked out.
 * UNSUPPORTED: so many kinds and devices that the table of devices used has over 1024 rows. */
SN_MUST_USE sn_status sn__load_slice(const sn__load *load, const struct sn__downsets *sets,
                                     int64_t bound, int *device, int64_t *out_ns, uint64_t *evals);

/* ---- orders ---------------------------------------------------------------------------------- */

typedef enum sn__load_order {
  SN__ORDER_DEPTH,   /* down each branch to its end, longest remaining work first */
  SN__ORDER_BREADTH, /* all branches abreast */
  SN__ORDER_BACK,    /* depth first from the ends, backwards */
  SN__ORDER_WORK,    /* by the work on the longest way from a source */
  SN__ORDER_RANDOM   /* by random keys of `seed` */
} sn__load_order;

/* A topological order of an acyclic load's classes into `order` [n_classes]. */
SN_MUST_USE sn_status sn__load_order_by(const sn__load *load, sn__load_order kind, uint64_t seed,
                                        uint32_t *order);

/* ---- exactly ----------------------------------------------------------------------------------
 */

/* Looks at every placement with a largest load below *ns, at most `steps` classes put somewhere:
 * `device` [n_classes] and *ns become the least if there is one. *out_proved: all were looked at.
 */
SN_MUST_USE sn_status sn__load_exact(const sn__load *load, uint64_t steps, int *device, int64_t *ns,
                                     uint64_t *evals, bool *out_proved);

/* ---- solving --------------------------------------------------------------------------------- */

typedef struct sn__load_options {
  bool contiguous, certify;
  uint64_t evals; /* 0: the default */
  uint64_t seed;
} sn__load_options;

typedef struct sn__load_result {
  int *device; /* [n_classes of the flow] sn__free() */
  int64_t ns, bound_ns;
  int64_t one_device_ns; /* SN__FLOW_NEVER: no device can hold all */
  uint64_t evals;
  bool certified;
  char bound[80]; /* which bound it is */
  char found[160];
} sn__load_result;

/* OUT_OF_MEMORY: nothing fits, and what would. UNSUPPORTED: too many branches for `contiguous`, or
 * `certify` and the plan found does not meet its bound. */
SN_MUST_USE sn_status sn__load_solve(const sn__load *load, const sn__load_options *options,
                                     sn__load_result *out_result);

#endif
