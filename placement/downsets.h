/* SPDX-License-Identifier: Apache-2.0 */
/* The downsets of an acyclic graph (internal): sets of blocks that hold, with each block, all that
 * come before it. What runs on one device of a contiguous split is the difference of two of them.
 *
 * Numbered so that a set stands behind all its subsets; 0 is the empty set, the last the full one.
 * A chain (a given order's prefixes) has the same form, so what walks a lattice slices an order. */
#ifndef SN_PLACEMENT_DOWNSETS_H
#define SN_PLACEMENT_DOWNSETS_H

#include "core/status.h"

/* Adding `block` makes the set `to`. */
typedef struct sn__downset_step {
  uint32_t block, to;
} sn__downset_step;

typedef struct sn__downsets {
  uint32_t n_blocks, count;
  uint32_t *first_step;    /* [count + 1] into steps */
  sn__downset_step *steps; /* of one set: by block, ascending by rank */
  uint32_t *rank;          /* [n_blocks] position in a topological order */
} sn__downsets;

/* `after` from first_after[b] on are the blocks that come after block b; the graph has no cycle.
 * More sets than `most`: SN_OK with *out_sets NULL. */
SN_MUST_USE sn_status sn__downsets_create(uint32_t n_blocks, const uint32_t *first_after,
                                          const uint32_t *after, uint32_t most,
                                          sn__downsets **out_sets);
/* The prefixes of `order` [n_blocks]. */
SN_MUST_USE sn_status sn__downsets_chain(uint32_t n_blocks, const uint32_t *order,
                                         sn__downsets **out_sets);
void sn__downsets_free(sn__downsets *sets);

#endif
