/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizer as a pass (internal): a pure function on a differentiated graph.
 *
 * For every variable that has a gradient: slots and update node at home = the variable, in its
 * module; sum_squares of its gradient likewise. Scalars of the step (graph->scalars) have home =
 * the first loss. Nodes are made in variable order: slots, sums of squares, scalars, updates. */
#ifndef SN_OPTIM_OPTIMIZE_H
#define SN_OPTIM_OPTIMIZE_H

#include "core/graph_impl.h"
#include "optim/optim.h"

SN_BEGIN_DECLS
SN_API SN_MUST_USE sn_status sn__optimize(const sn_graph *differentiated,
                                          const sn_optimizer_options *options,
                                          sn_train_variant variant, sn_graph **out_train);
/* `options` with defaults in place of zeros. */
SN_API sn_optimizer_options sn__optimizer_defaults(const sn_optimizer_options *options);
SN_END_DECLS

#endif
