/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes make products, and in what (internal). sn_graph_set_precision() is the pass. */
#ifndef SN_CORE_PRECISION_H
#define SN_CORE_PRECISION_H

#include "core/graph_impl.h"

/* A node's attribute called "precision", which ops that make products have; NULL without one. */
int64_t *sn__node_precision(const sn__node *node);

#endif
