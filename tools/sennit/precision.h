/* SPDX-License-Identifier: Apache-2.0 */
/* --precision: what the products of a command's graph compute in. */
#ifndef SN_TOOLS_SENNIT_PRECISION_H
#define SN_TOOLS_SENNIT_PRECISION_H

#include "core/device/desc.h"
#include "core/graph.h"
#include "models/config.h"

extern const char *const precision_words[]; /* by sn_config_precision; ends with NULL */

/* CONFIG for what no device here computes. */
SN_MUST_USE sn_status precision_check(sn_config_precision precision);
void precision_set(sn_graph *graph, sn_config_precision precision);
/* Says on standard error, once, that a device makes bf16 products slower than f32 ones. */
void precision_note(const sn_graph *graph, const sn_topology *topology);

#endif
