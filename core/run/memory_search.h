/* SPDX-License-Identifier: Apache-2.0 */
/* A search for packings that heuristics do not find (internal): which offsets let blocks that live
 * at different times share the fewest bytes.
 *
 * Depth-first over canonical packings. A packing in which no block can slide down is built in one
 * order alone, that of its offsets, each block as low as those before it let it; so a node of the
 * search places one block, never below the one before. Cut: what could not end below the limit in
 * some set of blocks that all conflict (their lowest floor and their bytes), and a block that
 * leaves room for a whole other one beneath it. What falls into independent parts is searched part
 * by part. Canonical packings, the inference over sections of time and the dominance are the ideas
 * of MiniMalloc (M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
 * Hardware-Accelerated Machine Learning", ASPLOS 2023), here for any conflicts, not only those of
 * intervals.
 *
 * Budgets are counted in blocks looked at (a node looks at all that it has to place), so a search
 * ends the same way on any machine. */
#ifndef SN_CORE_RUN_MEMORY_SEARCH_H
#define SN_CORE_RUN_MEMORY_SEARCH_H

#include "core/run/memory.h"

enum { SN__PACK_BUDGET = 60000000 }; /* some seconds on one core */

SN_BEGIN_DECLS

/* Lowers *bytes, the end of the packing in pack->offsets, as far as the budget allows; the packing
 * stays as it is where nothing better is found. *lower_bound, at least pack->live_bytes, is raised
 * to what the search proves; equal to *bytes, the packing is a smallest one. */
SN_API SN_MUST_USE sn_status sn__pack_search(sn__pack *pack, uint64_t budget, size_t *bytes,
                                             size_t *lower_bound, uint64_t *out_used);

/* Blocks with lifetimes on one clock. */
typedef struct sn__intervals {
  uint32_t n;
  const int64_t *lower, *upper; /* it lives from lower to just before upper */
  const int64_t *sizes;         /* at least 0 */
  uint64_t budget;              /* 0: SN__PACK_BUDGET */
  int64_t *offsets;             /* out [n], the caller's */
  int64_t bytes;                /* out: the end of the highest block */
  int64_t live_bytes;           /* out: the most that lives at one moment */
  int64_t lower_bound;          /* out: no packing needs less; == bytes: optimal */
  int64_t first_bytes;          /* out: what best fit and the search over orders found */
  uint64_t used;                /* out: of the budget */
} sn__intervals;

/* INVALID: a negative size, a lifetime that ends before it begins, sizes that add up to more than
 * 2^60 bytes. */
SN_API SN_MUST_USE sn_status sn__pack_intervals(sn__intervals *intervals);

SN_END_DECLS

#endif
