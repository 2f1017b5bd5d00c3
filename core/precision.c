/* SPDX-License-Identifier: Apache-2.0 */
/* The pass that marks products with what they compute in: ops that make products have an attribute
 * called "precision". */
#include "core/precision.h"

#include <string.h>

int64_t *sn__node_precision(const sn__node *n) {
  for (int i = 0; i < n->op->n_attrs; i++)
    if (n->op->attrs[i].kind == SN_ATTR_INT && strcmp(n->op->attrs[i].name, "precision") == 0)
      return (int64_t *)(void *)((char *)n->attrs + n->op->attrs[i].offset);
  return NULL;
}

void sn_graph_set_precision(sn_graph *g, sn_precision precision) {
  if (precision != SN_PRECISION_F32 && precision != SN_PRECISION_BF16) {
    sn_graph_fail(g, sn_status_make(SN_CODE_INVALID, "there is no precision %d", (int)precision));
    return;
  }
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    int64_t *to = sn__node_precision(n);
    if (to != NULL && g->values[n->out[0]].dtype == SN_F32) *to = precision;
  }
}

sn_precision sn_graph_precision(const sn_graph *g) {
  for (size_t i = 1; i < g->n_nodes; i++) {
    const int64_t *now = sn__node_precision(&g->nodes[i]);
    if (now != NULL && *now != SN_PRECISION_F32) return (sn_precision)*now;
  }
  return SN_PRECISION_F32;
}
