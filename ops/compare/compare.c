/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/compare/compare.h"

static sn_status infer(sn__infer *c) {
  int64_t how = ((const sn__compare_attrs *)c->attrs)->comparison;
  if (how < SN_EQ || how > SN_GE)
    return sn__infer_fail(c, "there is no comparison number %lld", (long long)how);
  if (c->in[0].dtype == SN_BF16) return sn__infer_fail(c, "a is bf16; cast it to f32 to compare");
  SN_TRY(sn__need_same_dtype(c, 0, "a", 1, "b"));
  c->out[0].dtype = SN_BOOL;
  return sn__infer_broadcast(c, &c->in[0].shape, &c->in[1].shape, &c->out[0].shape);
}

static void cost(const sn__exec *e, sn__cost *out) {
  sn__cost_elements(e, 1, out);
}

static const sn__attr_def attrs[] = {SN__INT_ATTR(sn__compare_attrs, comparison)};

const sn_op_def sn__op_compare = {
    .name = "compare",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .n_outputs = 1,
    .flags = SN_OP_NO_GRAD,
    SN__ATTRS(sn__compare_attrs, attrs),
    .infer = infer,
    .cost = cost,
    .cpu = sn__compare_cpu,
    .doc = "a compared with b, broadcast; NaN is unequal to everything",
};

sn_value sn_compare(sn_graph *g, sn_value a, sn_value b, sn_comparison comparison) {
  sn__compare_attrs t = {comparison};
  return sn__node_add(g, &sn__op_compare, &t, (sn_value[]){a, b}, 2, NULL, NULL);
}
