/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax cross-entropy, fused; and what all losses share. */
#include "ops/cross_entropy/cross_entropy.h"

/* ---- shared by all losses ------------------------------------------------------------------- */

sn_status sn__need_loss_weights(const sn__infer *c, int w, int64_t rows) {
  if (w >= c->n_in || c->in[w].dtype == SN_DTYPE_NONE) return SN_OK;
  if (c->in[w].dtype != SN_F32)
    return sn__infer_fail(c, "the weights are %s; they must be f32", sn_dtype_name(c->in[w].dtype));
  if (c->in[w].shape.rank == 1 && c->in[w].shape.dims[0] == rows) return SN_OK;
  char ts[160], tr[64];
  return sn__infer_fail(c, "the weights have shape %s; there must be one for each row: [%s]",
                        sn__shape_words(c, &c->in[w].shape, ts, sizeof ts),
                        sn__dim_text(c->graph, rows, tr, sizeof tr));
}

sn_loss sn__loss_finish(sn_graph *g, const sn_loss_options *o, const char *name, sn_value sum,
                        sn_value labels) {
  sn_loss none = {sn__value_at(g, 0), 0};
  if (!sn_value_ok(sum)) return none;
  int64_t rows = sn_value_shape(labels).dims[0];
  if (!sn_dim_is_symbolic(rows) || sn_dim_addend(rows) != 0) {
    sn_graph_fail(g, sn_status_make(SN_CODE_INVALID,
                                    "%s: labels '%s' have %lld rows whatever the batch; a loss is "
                                    "over the rows of an input",
                                    name, sn_value_name(labels), (long long)rows));
    return none;
  }
  double lambda = o->scale == 0 ? 1.0 : o->scale;
  return sn__graph_add_loss(g, o->name != NULL ? o->name : name, sum, o->weights,
                            sn_dim_symbol(rows), lambda);
}

/* ---- the op --------------------------------------------------------------------------------- */

static sn_status check_rows(const sn__infer *c) {
  SN_TRY(sn__need_float(c, 0, "the logits"));
  if (c->in[1].dtype != SN_I32 && c->in[1].dtype != SN_I64)
    return sn__infer_fail(c, "the labels are %s; class numbers are i32 or i64",
                          sn_dtype_name(c->in[1].dtype));
  const sn_shape *x = &c->in[0].shape, *y = &c->in[1].shape;
  char tx[160], ty[160];
  if (x->rank != 2)
    return sn__infer_fail(c, "the logits have shape %s; they must be [rows, classes]",
                          sn__shape_words(c, x, tx, sizeof tx));
  if (y->rank != 1 || y->dims[0] != x->dims[0])
    return sn__infer_fail(c,
                          "the logits have shape %s and the labels %s; each row of logits needs "
                          "one label",
                          sn__shape_words(c, x, tx, sizeof tx),
                          sn__shape_words(c, y, ty, sizeof ty));
  return sn__need_loss_weights(c, 2, x->dims[0]);
}

static sn_status infer(sn__infer *c) {
  SN_TRY(check_rows(c));
  c->out[0] = (sn__type){c->in[0].dtype, SN_SCALAR_SHAPE};
  c->out[1] = (sn__type){c->in[0].dtype, {1, {c->in[0].shape.dims[0]}}};
  return SN_OK;
}

static sn_status grad(const sn__grad *c) {
  if (!c->need[0] || !sn_value_ok(c->dout[0])) return SN_OK;
  sn_value weights = c->n_in > 2 ? c->in[2] : sn__value_at(c->graph, 0);
  sn_value in[] = {c->in[0], c->in[1], weights, c->out[1], c->dout[0]};
  c->din[0] = sn__node_add(c->graph, &sn__op_softmax_cross_entropy_grad, NULL, in, 5, NULL, NULL);
  return SN_OK;
}

static void cost(const sn__exec *e, sn__cost *out) {
  out->flops = 24.0 * (double)sn__count(&e->in[0]);
  out->bytes = sn__cost_bytes(e);
}

const sn_op_def sn__op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 3,
    .n_outputs = 2,
    .infer = infer,
    .grad = grad,
    .saved_inputs = 7,
    .saved_outputs = 2,
    .cost = cost,
    .workspace = sn__softmax_cross_entropy_workspace,
    .cpu = sn__softmax_cross_entropy_cpu,
    .doc = "sum over rows of weight * -log softmax(logits)[label], and each row's log-sum-exp",
};

static sn_status grad_infer(sn__infer *c) {
  SN_TRY(check_rows(c));
  SN_TRY(sn__need_same_dtype(c, 0, "the logits", 4, "the gradient"));
  return sn__infer_like_first(c);
}

const sn_op_def sn__op_softmax_cross_entropy_grad = {
    .name = "softmax_cross_entropy_grad",
    .version = 1,
    /* The third is optional, so the count is told by max_inputs alone. */
    .min_inputs = 2,
    .max_inputs = 5,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    .infer = grad_infer,
    .inplace = {1},
    .cost = cost,
    .cpu = sn__softmax_cross_entropy_grad_cpu,
    .doc = "(softmax(logits) - one-hot(label)) * weight * gradient",
};

sn_loss sn_softmax_cross_entropy_opt(sn_graph *g, sn_value logits, sn_value labels,
                                     const sn_loss_options *options) {
  sn_loss_options o;
  if (!sn_graph_options(g, options, sizeof o, "softmax_cross_entropy", &o))
    return (sn_loss){sn__value_at(g, 0), 0};
  sn_value in[] = {logits, labels, o.weights}, out[2];
  size_t n_in = sn_value_ok(o.weights) ? 3 : 2;
  sn__node_add(g, &sn__op_softmax_cross_entropy, NULL, in, n_in, NULL, out);
  return sn__loss_finish(g, &o, "softmax_cross_entropy", out[0], labels);
}
