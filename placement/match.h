/* SPDX-License-Identifier: Apache-2.0 */
/* How modules are named by a path or a pattern (internal): in pins, and for what is recomputed. */
#ifndef SN_PLACEMENT_MATCH_H
#define SN_PLACEMENT_MATCH_H

#include "core/graph_impl.h"

/* A path takes the module and all beneath it; a pattern with * ? [ likewise, level by level. */
bool sn__module_matches(const char *pattern, const char *path);
/* CONFIG: there is no such module; names the nearest. */
SN_MUST_USE sn_status sn__fail_module(const sn_graph *graph, const char *pattern);

#endif
