/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-batches in one graph, and the order in which a pipeline runs them (internal).
 *
 * sn__micro_unroll() is a graph transform: what depends on a batch's rows is there once for each
 * part of the batch, forward and backward; variables, constants and what depends on them alone are
 * shared. Part 0 keeps the values of the original, so the model's own values name it. Gradients are
 * added up where their variable lives, ((g0 + g1) + g2)..., running statistics follow the parts in
 * order: the very bits of the parts computed one after the other (sn_train_variant FIRST, MIDDLE,
 * LAST). An op that takes what all parts bring (SN_OP_ALL_PARTS: batch norm's sums with sync) is
 * there once, between what it waits for in every part and what waits for it. The parts' symbols are
 * the graph's own; which numbers they have is a matter of the value's part (sn__value_part).
 *
 * sn__micro_order() looks at the placed graph as a pipeline: its stages are what one device
 * computes between two copies (device, number of devices changed on the way there), its tasks each
 * stage's forward, gradient and weight-gradient nodes of a part. A schedule of that pipeline
 * (placement/pipeline.h) becomes the strict order of each device's queue. */
#ifndef SN_PLACEMENT_MICROBATCH_H
#define SN_PLACEMENT_MICROBATCH_H

#include "core/device/desc.h"
#include "core/graph_impl.h"
#include "placement/pipeline.h"
#include "placement/placement.h"

/* `differentiated` (sn__differentiate) for `n_parts` micro-batches, 2 at least. */
SN_MUST_USE sn_status sn__micro_unroll(const sn_graph *differentiated, uint32_t n_parts,
                                       sn_graph **out_graph);
/* A node that needs all micro-batches at once (SN_OP_ALL_PARTS), or 0. */
uint32_t sn__micro_total(const sn_graph *graph);
/* The input of `part` that stands for this one of the original; itself when it is shared. */
uint32_t sn__micro_input(const sn_graph *unrolled, uint32_t value, uint32_t part);

/* What a pipeline's order was made from. Owned by whoever asks. */
typedef struct sn__micro_plan {
  sn__pipe *pipe;
  sn__pipe_schedule *schedule;
  uint32_t *stage_of; /* [n_nodes of the placed graph] UINT32_MAX: of none */
  uint8_t *kind_of;   /* [n_nodes] sn__pipe_kind of those that have a stage */
} sn__micro_plan;

/* Gives the nodes of a placed, unrolled training graph their order. extents: by symbol, of the
 * largest part. INVALID: activations that do not fit a device. */
SN_MUST_USE sn_status sn__micro_order(sn_graph *placed, const sn_topology *topology,
                                      const int64_t *extents, sn__pipe_rule rule, uint64_t seed,
                                      sn__micro_plan *out_plan);
void sn__micro_plan_free(sn__micro_plan *plan);

/* Where stages go when nobody has said: what sn_place() finds for a batch at once, or the model's
 * modules in their order cut into 2, 3... pieces of like work, whichever has the shortest pipelined
 * step; then modules are moved one by one for as long as that gets shorter. `train`: of a whole
 * batch; `unrolled`: the same model's training graph in parts. */
SN_MUST_USE sn_status sn__micro_place(const sn_graph *train, const sn_graph *unrolled,
                                      const sn_topology *topology, const sn_place_options *options,
                                      const int64_t *extents, sn__pipe_rule rule, uint64_t seed,
                                      sn_placement **out_placement);

#endif
