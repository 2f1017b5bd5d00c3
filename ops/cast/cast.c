/* SPDX-License-Identifier: Apache-2.0 */
/* cast: between all element types. */
#include "ops/cast/cast.h"

static sn_status infer(sn__infer *c) {
  int64_t to = ((const sn__cast_attrs *)c->attrs)->dtype;
  if (to <= SN_DTYPE_NONE || to >= SN_DTYPE_COUNT)
    return sn__infer_fail(c, "there is no element type number %lld", (long long)to);
  c->out[0] = (sn__type){(sn_dtype)to, c->in[0].shape};
  return SN_OK;
}

/* Whole numbers carry no gradient. */
static sn_status grad(const sn__grad *c) {
  sn_dtype from = sn_value_dtype(c->in[0]);
  if (c->need[0] && sn_value_ok(c->dout[0]) && sn_dtype_is_float(from))
    c->din[0] = sn_cast(c->graph, c->dout[0], from);
  return SN_OK;
}

static void cost(const sn__exec *e, sn__cost *out) {
  sn__cost_elements(e, 1, out);
}

static const sn__attr_def attrs[] = {SN__INT_ATTR(sn__cast_attrs, dtype)};

const sn_op_def sn__op_cast = {
    .name = "cast",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 1,
    SN__ATTRS(sn__cast_attrs, attrs),
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .cpu = sn__cast_cpu,
    .doc = "the same numbers in another type: bf16 rounds to nearest even, whole numbers are "
           "truncated towards zero and kept within their range, NaN becomes 0 there, bool is != 0",
};

sn_value sn_cast(sn_graph *g, sn_value x, sn_dtype dtype) {
  if (sn_value_ok(x) && sn_value_dtype(x) == dtype) return x;
  sn__cast_attrs t = {dtype};
  return sn__node_add(g, &sn__op_cast, &t, &x, 1, NULL, NULL);
}
