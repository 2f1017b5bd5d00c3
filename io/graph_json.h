/* SPDX-License-Identifier: Apache-2.0 */
/* The forward graph as text, for checkpoints (internal).
 *
 * JSON, one node a line: modules, symbols and ragged structures, then every node in order (inputs,
 * variables and constants are nodes too), outputs and losses. Nodes name their inputs by the index
 * of the value; values are numbered in the order of nodes and their outputs from 1. Reading builds
 * the graph anew through the ops' own rules, so indices, names and the keys of random draws are
 * those of the graph that was written. How variables start is not written: a store has them. */
#ifndef SN_IO_GRAPH_JSON_H
#define SN_IO_GRAPH_JSON_H

#include "core/graph_impl.h"

enum { SN__GRAPH_FORMAT = 1 /* raised when older readers would misread */ };

SN_BEGIN_DECLS

/* A text of the caller's own, ended by NUL (sn__free). INVALID: not a sound forward graph. */
SN_API SN_MUST_USE sn_status sn__graph_to_json(const sn_graph *graph, char **out_text);

/* Trusts nothing in the text. CORRUPT: not what sn__graph_to_json writes, and where. UNSUPPORTED: a
 * newer format, an unknown op or attribute, a newer version of an op, by name. */
SN_API SN_MUST_USE sn_status sn__graph_from_json(const char *text, size_t length,
                                                 sn_graph **out_graph);

SN_END_DECLS

#endif
