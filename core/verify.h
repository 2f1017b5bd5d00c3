/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier (internal): refuses what the passes must never make. It runs in release builds too,
 * trusts no pass, and names the broken rule, the nodes and the devices in an INTERNAL status:
 *
 *   V1 an op whose inputs or outputs are not on the op's device (copies excepted)
 *   V2 a gradient sum, slot or update off its variable's device
 *   V3 an unplaced node, or a device that is not in the topology
 *   V4 two copies of one (value, destination, live range); a copy's phase is its live range
 *   V5 an in-place or aliased write that a copy, or anything else, could see
 *   V6 a copy with no producer to wait for, or a consumer that does not wait for its input
 */
#ifndef SN_CORE_VERIFY_H
#define SN_CORE_VERIFY_H

#include "core/device/desc.h"
#include "core/graph_impl.h"

SN_BEGIN_DECLS

/* Structure only, of a graph at any stage: indices in range, nodes in an order that computes,
 * values that know their producers, types that the ops' own rules give. */
SN_API SN_MUST_USE sn_status sn__verify_structure(const sn_graph *graph);

/* A placed graph with its copies: structure, V1 to V4, and of V5 what needs no schedule (only
 * variables are written, each by one node, and no reader of the old bytes comes after it). */
SN_API SN_MUST_USE sn_status sn__verify(const sn_graph *placed, const sn_topology *topology);

/* A schedule as the verifier sees it. Queues run in order; a node starts when the one before it in
 * its queue and all that it waits for have ended. */
#define SN__NOT_SCHEDULED UINT32_MAX
typedef struct sn__wait_edge {
  uint32_t node; /* this node starts after */
  uint32_t on;   /* that one has ended */
} sn__wait_edge;
typedef struct sn__schedule_view {
  uint32_t n_queues;
  const uint32_t *queue;    /* [n_nodes]; SN__NOT_SCHEDULED for sources, views, unneeded nodes */
  const uint32_t *position; /* [n_nodes] in its queue; unique there */
  const sn__wait_edge *waits;
  size_t n_waits;
  /* [n_values] the value whose bytes this one takes over (in place), 0: none but what views and
   * commits say; NULL: nothing is in place. */
  const uint32_t *storage;
} sn__schedule_view;

/* V5 and V6 of a placed graph under a schedule: every input's producer has ended when its reader
 * starts; every reader of bytes has ended when they are overwritten; nothing waits in a circle. */
SN_API SN_MUST_USE sn_status sn__verify_schedule(const sn_graph *placed,
                                                 const sn_topology *topology,
                                                 const sn__schedule_view *view);

SN_END_DECLS

#endif
