/* SPDX-License-Identifier: Apache-2.0 */
/* Rematerialisation (internal): values that the backward pass reads are computed again there in
 * place of being kept since the forward pass. Memory for time; the bits do not change.
 *
 * A segment is a set of forward nodes. What leaves it forward (read by a forward node outside, by
 * an update, by the caller), what comes into it, and values of a fixed shape are kept. Every other
 * value that a backward node reads is made once more by clones of the forward nodes it comes from,
 * right before its first backward reader; all backward readers then read the clone's, so that the
 * original dies in the forward pass. Clones belong to the backward phase, their origin is the
 * forward node: same device, same random draws, same micro-batch. They commit nothing: running
 * statistics are moved by what the forward pass found. */
#ifndef SN_CORE_RECOMPUTE_H
#define SN_CORE_RECOMPUTE_H

#include "core/graph_impl.h"

SN_BEGIN_DECLS

/* `train`: a training graph without copies (differentiated, unrolled or with its optimizer).
 * segments: [train->n_nodes] the number of each forward node's segment, 0: none; parts of a batch
 * never share one. Values keep their
 * numbers; nodes do not. A forward graph comes back as it is. */
SN_API SN_MUST_USE sn_status sn__recompute(const sn_graph *train, const uint32_t *segments,
                                           sn_graph **out_graph);

SN_END_DECLS

#endif
