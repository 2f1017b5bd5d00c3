/* SPDX-License-Identifier: Apache-2.0 */
/* The public door to io/graph_json.h, for who writes checkpoints of their own. */
#include "io/checkpoint.h"
#include "io/graph_json.h"

sn_status sn_graph_to_json(const sn_graph *graph, char **out_text) {
  return sn__graph_to_json(graph, out_text);
}

sn_status sn_graph_from_json(const char *text, size_t length, sn_graph **out_graph) {
  return sn__graph_from_json(text, length, out_graph);
}
