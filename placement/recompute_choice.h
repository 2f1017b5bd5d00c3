/* SPDX-License-Identifier: Apache-2.0 */
/* What is recomputed (internal): from names of modules to the pass in core/recompute.h, and the
 * choice of modules where a device's memory binds.
 *
 * An entry names modules as pins do. Each module that it matches (with all beneath it) is
 * recomputed by itself: what leaves it is kept. "a+b" takes several as one, so that what goes from
 * the one to the other is not kept either, whatever their common parent does to it in between. */
#ifndef SN_PLACEMENT_RECOMPUTE_CHOICE_H
#define SN_PLACEMENT_RECOMPUTE_CHOICE_H

#include "placement/placement.h"
#include "placement/problem.h"

/* CONFIG: an entry, or a part of one, that matches no module of the graph. */
SN_MUST_USE sn_status sn__recompute_check(const sn_graph *graph, const char *const *entries,
                                          size_t n);
/* The graph with these recomputed; where nothing is (a forward graph), a copy. Entries that match
 * nothing are skipped: variants of a model have their own modules. devices (may be NULL): of each
 * module [n_modules]; what one device recomputes ends where another goes on, so that nothing is
 * copied a second time and no pipeline turns back. */
SN_MUST_USE sn_status sn__recompute_apply(const sn_graph *graph, const char *const *entries,
                                          size_t n, const int *devices, sn_graph **out_graph);
/* The same with units where a problem of the graph (with or without clones) has them. */
SN_MUST_USE sn_status sn__recompute_placed(const sn_graph *graph, const char *const *entries,
                                           size_t n, const sn__problem *problem, const int *devices,
                                           sn_graph **out_graph);
/* Which modules entries take: out_taken [n_modules]. */
SN_MUST_USE sn_status sn__recompute_taken(const sn_graph *graph, const char *const *entries,
                                          size_t n, bool *out_taken);

/* Bytes that the forward pass leaves for the backward pass. */
SN_MUST_USE sn_status sn__recompute_kept(const sn_graph *train, const int64_t *extents,
                                         uint64_t *out_bytes);
/* What the recomputed nodes cost, on the devices of the problem's units. */
int64_t sn__recompute_ns(const sn__problem *problem, const int *devices);

/* Entries chosen for a problem. */
typedef struct sn__recompute_choice {
  sn__arena arena;
  const char **entries;
  size_t n, capacity;
  uint64_t lacks; /* bytes over the limits that are left, on the devices asked about */
} sn__recompute_choice;

/* Entries that bring every device under its limit (problem->flow->device_bytes), with as little
 * time as it finds; all that helps when nothing is enough. devices: [n_units] where units are.
 * extents: by symbol, what `problem` was made for. */
SN_MUST_USE sn_status sn__recompute_choose(const sn__problem *problem, const int *devices,
                                           const int64_t *extents,
                                           sn__recompute_choice *out_choice);
void sn__recompute_choice_free(sn__recompute_choice *choice);

#endif
