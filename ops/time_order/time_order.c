/* SPDX-License-Identifier: Apache-2.0 */
/* The time-major sorted order of a ragged structure. */
#include "ops/time_order/time_order.h"

static const sn__attr_def time_order_attrs[] = {SN__INT_ATTR(sn__time_order_attrs, elements),
                                                SN__INT_ATTR(sn__time_order_attrs, longest)};

static sn_status time_order_infer(sn__infer *c) {
  const sn__time_order_attrs *a = c->attrs;
  SN_TRY(sn__want_index(c, 0, SN__OFFSETS, "offsets"));
  const int64_t rows = sn__rows_of_offsets(c->in[0].shape.dims[0]);
  const int64_t steps = sn_dim_is_symbolic(a->longest)
                            ? SN_DIM_SYMBOL_PLUS_ONE(sn_dim_symbol(a->longest))
                            : a->longest + 1;
  c->out[0] = (sn__type){SN_I32, {1, {a->elements}}};
  c->out[1] = (sn__type){SN_I32, {1, {steps}}};
  c->out[2] = (sn__type){SN_I32, {1, {rows}}};
  return SN_OK;
}

static size_t time_order_workspace(const sn__exec *e) {
  return (size_t)e->out[1].shape.dims[0] * sizeof(int32_t);
}

const sn_op_def sn__op_time_order = {
    .name = "time_order",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 3,
    .flags = SN_OP_NO_GRAD,
    SN__ATTRS(sn__time_order_attrs, time_order_attrs),
    .infer = time_order_infer,
    .workspace = time_order_workspace,
    .cpu = sn__time_order_cpu,
    .doc = "time-major order of ragged rows: element map, steps, and rows sorted by length"};

void sn_time_order(sn_graph *g, sn_value offsets, sn_value *out_map, sn_value *out_steps,
                   sn_value *out_order) {
  sn_value out[SN_MAX_OUTPUTS] = {sn__value_at(g, 0), sn__value_at(g, 0), sn__value_at(g, 0)};
  const int32_t ragged = g->status == SN_OK ? sn__offsets_ragged(g, offsets) : -1;
  if (g->status == SN_OK && ragged < 0) {
    sn_graph_fail(g, sn_status_make(SN_CODE_INVALID,
                                    "time_order: '%s' are not the offsets of a sequence input",
                                    sn_value_name(offsets)));
  } else if (ragged >= 0) {
    const sn__ragged *r = &g->raggeds[ragged];
    sn__time_order_attrs a = {SN_DIM_SYMBOL(r->elements_symbol), SN_DIM_SYMBOL(r->longest_symbol)};
    sn_value made = sn__graph_find_node(g, &sn__op_time_order, &a, &offsets, 1);
    if (sn_value_ok(made))
      for (int i = 0; i < 3; i++)
        out[i] = sn__value_at(g, sn__producer(g, made.index)->out[i]);
    else
      sn__node_add(g, &sn__op_time_order, &a, &offsets, 1, NULL, out);
  }
  if (out_map != NULL) *out_map = out[0];
  if (out_steps != NULL) *out_steps = out[1];
  if (out_order != NULL) *out_order = out[2];
}
