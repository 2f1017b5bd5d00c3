/* SPDX-License-Identifier: Apache-2.0 */
/* Copy insertion (internal). */
#ifndef SN_PLACEMENT_COPIES_H
#define SN_PLACEMENT_COPIES_H

#include "core/device/desc.h"
#include "core/graph_impl.h"

/* Every node of `placed` has a device. Value indices are kept; copies' values come behind them. */
SN_MUST_USE sn_status sn__insert_copies(const sn_graph *placed, const sn_topology *topology,
                                        sn_graph **out_graph);

#endif
