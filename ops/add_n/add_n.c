/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/add_n/add_n.h"

#include <stdio.h>

static sn_status infer(sn__infer *c) {
  SN_TRY(sn__need_float(c, 0, "term 0"));
  for (int i = 1; i < c->n_in; i++) {
    char name[32];
    snprintf(name, sizeof name, "term %d", i);
    SN_TRY(sn__need_same_dtype(c, 0, "term 0", i, name));
    SN_TRY(sn__need_same_shape(c, 0, "term 0", i, name));
  }
  return sn__infer_like_first(c);
}

static sn_status grad(const sn__grad *c) {
  for (int i = 0; i < c->n_in; i++)
    if (c->need[i]) c->din[i] = c->dout[0];
  return SN_OK;
}

static void cost(const sn__exec *e, sn__cost *out) {
  sn__cost_elements(e, e->n_in - 1, out);
}

const sn_op_def sn__op_add_n = {
    .name = "add_n",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = -1,
    .n_outputs = 1,
    .infer = infer,
    .grad = grad,
    .inplace = {1},
    .cost = cost,
    .cpu = sn__add_n_cpu,
    .doc = "the sum of equal shapes, added in the order given",
};

sn_value sn_add_n(sn_graph *g, sn_values values) {
  return sn__node_add(g, &sn__op_add_n, NULL, values.items, values.count, NULL, NULL);
}
