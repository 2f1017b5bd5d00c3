/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products with transposes, batches, bias and activation. */
#include "ops/matmul/matmul.h"

#include "ops/gemm/gemm.h"

/* ---- shape rule ----------------------------------------------------------------------------- */

typedef struct sides {
  int64_t m, ka, kb, n; /* symbolic or fixed */
} sides;

static sides sides_of(const sn__infer *c, const sn__matmul_attrs *t) {
  const sn_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
  int64_t a0 = a->dims[a->rank - 2], a1 = a->dims[a->rank - 1];
  int64_t b0 = b->dims[b->rank - 2], b1 = b->dims[b->rank - 1];
  sides s = {t->transpose_a ? a1 : a0, t->transpose_a ? a0 : a1, t->transpose_b ? b1 : b0,
             t->transpose_b ? b0 : b1};
  return s;
}

static sn_status check_batch(const sn__infer *c) {
  const sn_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
  if (a->rank == 2 || b->rank == 2) return SN_OK;
  sn_shape la = *a, lb = *b;
  la.rank -= 2;
  lb.rank -= 2;
  if (sn_shape_equal(&la, &lb)) return SN_OK;
  char ta[160], tb[160];
  return sn__infer_fail(
      c, "a has leading dimensions %s and b has %s; they must be equal, or one side has rank 2",
      sn__shape_words(c, &la, ta, sizeof ta), sn__shape_words(c, &lb, tb, sizeof tb));
}

static sn_status check_bias(const sn__infer *c, int64_t n) {
  if (c->n_in < 3 || c->in[2].dtype == SN_DTYPE_NONE) return SN_OK;
  SN_TRY(sn__need_same_dtype(c, 0, "a", 2, "the bias"));
  const sn_shape *b = &c->in[2].shape;
  if (b->rank == 1 && b->dims[0] == n) return SN_OK;
  char tb[160], tn[64];
  return sn__infer_fail(c, "the bias has shape %s; it must be [%s], one for each column",
                        sn__shape_words(c, b, tb, sizeof tb),
                        sn__dim_text(c->graph, n, tn, sizeof tn));
}

static sn_status infer(sn__infer *c) {
  const sn__matmul_attrs *t = c->attrs;
  const sn_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
  SN_TRY(sn__need_precision(c, t->precision));
  SN_TRY(sn__need_float(c, 0, "a"));
  SN_TRY(sn__need_same_dtype(c, 0, "a", 1, "b"));
  if (a->rank < 2 || b->rank < 2)
    return sn__infer_fail(c, "a has %d dimensions and b has %d; both need at least 2", a->rank,
                          b->rank);
  SN_TRY(check_batch(c));
  sides s = sides_of(c, t);
  if (s.ka != s.kb) {
    char ta[64], tb[64];
    return sn__infer_fail(
        c, "a has %s %s%s and b has %s %s%s; they must be equal",
        sn__dim_text(c->graph, s.ka, ta, sizeof ta), t->transpose_a ? "rows" : "columns",
        t->transpose_a ? " (transposed)" : "", sn__dim_text(c->graph, s.kb, tb, sizeof tb),
        t->transpose_b ? "columns" : "rows", t->transpose_b ? " (transposed)" : "");
  }
  SN_TRY(check_bias(c, s.n));
  sn_shape out = a->rank >= b->rank ? *a : *b;
  if (t->sum_batch) {
    if (!t->transpose_a || t->transpose_b || a->rank != b->rank)
      return sn__infer_fail(c, "a sum over the batch needs equal ranks and a transposed");
    out.rank = 2;
  }
  out.dims[out.rank - 2] = s.m;
  out.dims[out.rank - 1] = s.n;
  c->out[0] = (sn__type){c->in[0].dtype, out};
  return SN_OK;
}

/* ---- gradient ------------------------------------------------------------------------------- */

static sn_value product(const sn__grad *c, sn_value a, bool ta, sn_value b, bool tb,
                        bool sum_batch) {
  const sn__matmul_attrs *forward = c->attrs;
  sn__matmul_attrs t = {.transpose_a = ta,
                        .transpose_b = tb,
                        .sum_batch = sum_batch,
                        .precision = forward->precision};
  return sn__node_add(c->graph, &sn__op_matmul, &t, (sn_value[]){a, b}, 2, NULL, NULL);
}

/* dA = dZ B^T, or its transpose when A is stored transposed. */
static sn_value grad_a(const sn__grad *c, const sn__matmul_attrs *t, sn_value dz) {
  sn_value b = c->in[1];
  sn_value da = t->transpose_a ? product(c, b, t->transpose_b, dz, true, false)
                               : product(c, dz, false, b, !t->transpose_b, false);
  return sn__sum_to_shape(c->graph, da, sn_value_shape(c->in[0]));
}

/* dB = A^T dZ, or its transpose. A b shared by a batch gets the sum over the batch: one product
 * with the batch's rows as rows, where a is stored that way. */
static sn_value grad_b(const sn__grad *c, const sn__matmul_attrs *t, sn_value dz) {
  sn_value a = c->in[0];
  sn_shape sa = sn_value_shape(a), sb = sn_value_shape(c->in[1]);
  bool flat = sb.rank == 2 && sa.rank > 2 && !t->transpose_a;
  sn_value db = t->transpose_b ? product(c, dz, true, a, t->transpose_a, flat)
                               : product(c, a, !t->transpose_a, dz, false, flat);
  return sn__sum_to_shape(c->graph, db, sb);
}

/* [m, n] = sum over rows of a [.., k, m] times b [.., k, n]: da = b dz^T, db = a dz. */
static void grad_summed(const sn__grad *c, sn_value dz) {
  if (c->need[0]) c->din[0] = product(c, c->in[1], false, dz, true, false);
  if (c->need[1]) c->din[1] = product(c, c->in[0], false, dz, false, false);
}

static sn_status grad(const sn__grad *c) {
  const sn__matmul_attrs *t = c->attrs;
  sn_value dz = c->dout[0];
  if (t->activation != SN_LINEAR) {
    sn__unary_attrs a;
    sn__unary kind = sn__unary_of_activation((sn_activation)t->activation, &a);
    dz = sn__unary_grad_add(c->graph, kind, &a, c->out[0], dz);
  }
  if (t->sum_batch) {
    grad_summed(c, dz);
  } else {
    if (c->need[0]) c->din[0] = grad_a(c, t, dz);
    if (c->need[1]) c->din[1] = grad_b(c, t, dz);
  }
  if (c->n_in > 2 && c->need[2])
    c->din[2] = sn__sum_to_shape(c->graph, dz, sn_value_shape(c->in[2]));
  return SN_OK;
}

/* ---- the row -------------------------------------------------------------------------------- */

static void cost(const sn__exec *e, sn__cost *out) {
  sn__matmul_plan p = sn__matmul_plan_of(e);
  out->flops = 2.0 * (double)p.batch * (double)p.m * (double)p.n * (double)p.k;
  out->bytes = sn__cost_bytes(e);
  const bool bf16 = sn__is_bf16(e->out[0].dtype, ((const sn__matmul_attrs *)e->attrs)->precision);
  out->bf16_flops = bf16 && sn__gemm_rounds(p.n, p.k) ? out->flops : 0;
}

static const sn__attr_def attrs[] = {
    SN__INT_ATTR(sn__matmul_attrs, transpose_a), SN__INT_ATTR(sn__matmul_attrs, transpose_b),
    SN__INT_ATTR(sn__matmul_attrs, activation), SN__INT_ATTR(sn__matmul_attrs, sum_batch),
    SN__PRECISION_ATTR(sn__matmul_attrs)};

const sn_op_def sn__op_matmul = {
    .name = "matmul",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 3,
    .n_outputs = 1,
    SN__ATTRS(sn__matmul_attrs, attrs),
    .infer = infer,
    .grad = grad,
    .saved_inputs = 3,
    .saved_outputs = 1,
    .cost = cost,
    .cpu = sn__matmul_cpu,
    .doc = "activation(a x b + bias), either side transposed, batched over leading dimensions",
};

/* An activation whose slope can be told from its output is fused; the others need what goes into
 * them kept, so they follow as a node of their own. */
sn_value sn_matmul_opt(sn_graph *g, sn_value a, sn_value b, const sn_matmul_options *options) {
  sn_matmul_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "matmul", &known)) return (sn_value){g, 0};
  if ((int)o->activation < 0 || o->activation >= SN_ACTIVATION_COUNT)
    return sn_graph_fail(g, sn_status_make(SN_CODE_INVALID, "matmul: there is no activation %d",
                                           (int)o->activation));
  sn__unary_attrs ua;
  sn__unary kind = sn__unary_of_activation(o->activation, &ua);
  bool fuse = kind == SN__UNARY_COUNT || sn__unary_saved(kind) == SN__SAVES_OUT;
  sn__matmul_attrs t = {.transpose_a = o->transpose_a,
                        .transpose_b = o->transpose_b,
                        .activation = fuse ? (int64_t)o->activation : SN_LINEAR};
  sn_value in[] = {a, b, o->bias};
  size_t n_in = o->bias.graph != NULL ? 3 : 2;
  sn_value y = sn__node_add(g, &sn__op_matmul, &t, in, n_in, o->name, NULL);
  return fuse || !sn_value_ok(y) ? y : sn_activate(g, y, o->activation);
}
