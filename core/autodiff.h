/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation (internal): a pure function from a graph to its training graph.
 *
 * The gradient of a value with several uses is ONE add_n at its producer's home (home = the value),
 * its terms in forward-use order: by consumer, then by the consumer's input. A term belongs to its
 * consumer's module. So the order of every sum, and with it every bit, is the graph's alone and not
 * the placement's. A variable's gradient is always made at the variable's home: a lone term from
 * another module passes an add_n of one, so that it cannot end on another module's device.
 * The backward pass starts at each loss's seed (lambda / weight, fed); nothing is divided later. */
#ifndef SN_CORE_AUTODIFF_H
#define SN_CORE_AUTODIFF_H

#include "core/graph_impl.h"

SN_BEGIN_DECLS

/* The training graph: a clone of `forward` (same indices) with backward nodes behind it, gradients
 * found by variables[].gradient and sn__gradient_of(). INVALID: no loss, or a loss that no
 * trainable variable reaches. UNSUPPORTED: an op on the way that has no gradient. INTERNAL: an op's
 * gradient of the wrong shape or type, or one that reads what its row does not say it saves. */
SN_API SN_MUST_USE sn_status sn__differentiate(const sn_graph *forward, sn_graph **out_train);

/* The gradient of a forward value in a training graph; invalid when none flows. */
SN_API sn_value sn__gradient_of(const sn_graph *train, sn_value value);

/* Trainable variables that no loss reaches, which training will leave as they start: how many, and
 * the i-th one's name (NULL past the end). */
SN_API size_t sn__unused_variable_count(const sn_graph *train);
SN_API const char *sn__unused_variable(const sn_graph *train, size_t i);

SN_END_DECLS

#endif
