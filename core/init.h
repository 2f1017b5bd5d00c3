/* SPDX-License-Identifier: Apache-2.0 */
/* How variables start (internal). Every draw is keyed by (seed, variable's name, position), so a
 * variable starts the same whatever the placement and whichever variables were made before it. */
#ifndef SN_CORE_INIT_H
#define SN_CORE_INIT_H

#include "core/graph_impl.h"

SN_BEGIN_DECLS

/* Fills `out` (every element of the fixed `shape`, of `dtype`). Fans that are 0 come from the
 * shape: [out, in, receptive field...]; one dimension is both. INVALID: numbers that make no sense,
 * or a random start of integers. */
SN_API SN_MUST_USE sn_status sn__init_fill(const sn_init *init, const sn_shape *shape,
                                           sn_dtype dtype, uint64_t seed, const char *variable_name,
                                           void *out);

/* The same for variable `i` of a graph, slots included: one marked copy_owner starts as its owner
 * does. */
SN_API SN_MUST_USE sn_status sn__init_variable(const sn_graph *graph, size_t i, uint64_t seed,
                                               void *out);

SN_END_DECLS

#endif
