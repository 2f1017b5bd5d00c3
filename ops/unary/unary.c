/* SPDX-License-Identifier: Apache-2.0 */
/* The rows and builders of the elementwise functions of one input, and the activations' names. */
#include "ops/unary/unary.h"

#include <string.h>

static sn_status unary_grad(const sn__grad *c);

#define ATTR(word, field)                                                                          \
  { .name = word, .kind = SN_ATTR_FLOAT, .offset = offsetof(sn__unary_attrs, field) }
/* Only these three have parameters to save; the others carry zeros. */
static const sn__attr_def slope_attrs[] = {ATTR("slope", alpha)};
static const sn__attr_def affine_attrs[] = {ATTR("alpha", alpha), ATTR("beta", beta)};
static const sn__attr_def clamp_attrs[] = {ATTR("low", alpha), ATTR("high", beta)};

#define TABLE(kind)                                                                                \
  ((kind) == SN__UNARY_leaky_relu ? slope_attrs                                                    \
   : (kind) == SN__UNARY_affine   ? affine_attrs                                                   \
   : (kind) == SN__UNARY_clamp    ? clamp_attrs                                                    \
                                  : NULL)
#define TABLE_LENGTH(kind)                                                                         \
  ((kind) == SN__UNARY_leaky_relu                            ? 1                                   \
   : (kind) == SN__UNARY_affine || (kind) == SN__UNARY_clamp ? 2                                   \
                                                             : 0)

#define SN_X(NAME, saves, flops_each, words)                                                       \
  static void NAME##_cost(const sn__exec *e, sn__cost *out) {                                      \
    sn__cost_elements(e, flops_each, out);                                                         \
  }                                                                                                \
  const sn_op_def sn__op_##NAME = {                                                                \
      .name = #NAME,                                                                               \
      .version = 1,                                                                                \
      .min_inputs = 1,                                                                             \
      .max_inputs = 1,                                                                             \
      .n_outputs = 1,                                                                              \
      .attrs = TABLE(SN__UNARY_##NAME),                                                            \
      .n_attrs = TABLE_LENGTH(SN__UNARY_##NAME),                                                   \
      .attrs_size = sizeof(sn__unary_attrs),                                                       \
      .infer = sn__infer_float_like_first,                                                         \
      .grad = unary_grad,                                                                          \
      .saved_inputs = SN__SAVES_##saves == SN__SAVES_IN,                                           \
      .saved_outputs = SN__SAVES_##saves == SN__SAVES_OUT,                                         \
      .inplace = {1},                                                                              \
      .cost = NAME##_cost,                                                                         \
      .cpu = sn__unary_cpu,                                                                        \
      .doc = words,                                                                                \
  };
SN__UNARIES(SN_X)
#undef SN_X

#define SN_X(NAME, saves, flops, doc) &sn__op_##NAME,
const sn_op_def *const sn__unary_defs[SN__UNARY_COUNT] = {SN__UNARIES(SN_X)};
#undef SN_X

sn__unary_saves sn__unary_saved(sn__unary kind) {
  if (sn__unary_defs[kind]->saved_inputs != 0) return SN__SAVES_IN;
  return sn__unary_defs[kind]->saved_outputs != 0 ? SN__SAVES_OUT : SN__SAVES_NONE;
}

/* ---- gradient ------------------------------------------------------------------------------- */

static sn_status grad_infer(sn__infer *c) {
  SN_TRY(sn__need_float(c, 1, "the gradient"));
  SN_TRY(sn__need_same_shape(c, 0, "what was saved", 1, "the gradient"));
  SN_TRY(sn__need_same_dtype(c, 0, "what was saved", 1, "the gradient"));
  return sn__infer_like_first(c);
}

static void grad_cost(const sn__exec *e, sn__cost *out) {
  sn__cost_elements(e, 10, out);
}

static const sn__attr_def grad_attrs[] = {
    {.name = "kind", .kind = SN_ATTR_INT, .offset = offsetof(sn__unary_grad_attrs, kind)},
    {.name = "alpha", .kind = SN_ATTR_FLOAT, .offset = offsetof(sn__unary_grad_attrs, alpha)},
    {.name = "beta", .kind = SN_ATTR_FLOAT, .offset = offsetof(sn__unary_grad_attrs, beta)}};

const sn_op_def sn__op_unary_grad = {
    .name = "unary_grad",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__unary_grad_attrs, grad_attrs),
    .infer = grad_infer,
    .inplace = {2},
    .cost = grad_cost,
    .cpu = sn__unary_grad_cpu,
    .doc = "the incoming gradient times the slope at the saved input or output",
};

sn_value sn__unary_grad_add(sn_graph *g, sn__unary kind, const sn__unary_attrs *attrs,
                            sn_value saved, sn_value dy) {
  if (kind == SN__UNARY_neg) return sn_neg(g, dy);
  if (kind == SN__UNARY_affine) return sn_affine(g, dy, attrs->alpha, 0);
  sn__unary_grad_attrs a = {.kind = kind, .alpha = attrs->alpha, .beta = attrs->beta};
  return sn__node_add(g, &sn__op_unary_grad, &a, (sn_value[]){saved, dy}, 2, NULL, NULL);
}

static sn_status unary_grad(const sn__grad *c) {
  if (!c->need[0] || !sn_value_ok(c->dout[0])) return SN_OK;
  const sn_op_def *op = sn__producer(c->graph, c->out[0].index)->op;
  int kind = 0;
  while (sn__unary_defs[kind] != op)
    kind++;
  sn_value saved = op->saved_outputs != 0 ? c->out[0] : c->in[0];
  c->din[0] = sn__unary_grad_add(c->graph, (sn__unary)kind, c->attrs, saved, c->dout[0]);
  return SN_OK;
}

/* ---- builders ------------------------------------------------------------------------------- */

static sn_value add_unary(sn_graph *g, sn__unary kind, sn_value x, double alpha, double beta) {
  sn__unary_attrs a = {alpha, beta};
  return sn__node_add(g, sn__unary_defs[kind], &a, &x, 1, NULL, NULL);
}

sn_value sn_neg(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_neg, x, 0, 0);
}

sn_value sn_exp(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_exp, x, 0, 0);
}

sn_value sn_log(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_log, x, 0, 0);
}

sn_value sn_sqrt(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_sqrt, x, 0, 0);
}

sn_value sn_tanh(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_tanh, x, 0, 0);
}

sn_value sn_sigmoid(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_sigmoid, x, 0, 0);
}

sn_value sn_relu(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_relu, x, 0, 0);
}

sn_value sn_silu(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_silu, x, 0, 0);
}

sn_value sn_softplus(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_softplus, x, 0, 0);
}

sn_value sn_softsign(sn_graph *g, sn_value x) {
  return add_unary(g, SN__UNARY_softsign, x, 0, 0);
}

sn_value sn_leaky_relu(sn_graph *g, sn_value x, double slope) {
  /* The gradient reads the output's sign, which tells the input's only then. */
  if (!(slope >= 0))
    return sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID, "leaky_relu: slope %g must not be negative", slope));
  return add_unary(g, SN__UNARY_leaky_relu, x, slope, 0);
}

sn_value sn_gelu(sn_graph *g, sn_value x, bool tanh_form) {
  return add_unary(g, tanh_form ? SN__UNARY_gelu_tanh : SN__UNARY_gelu, x, 0, 0);
}

sn_value sn_affine(sn_graph *g, sn_value x, double alpha, double beta) {
  return add_unary(g, SN__UNARY_affine, x, alpha, beta);
}

sn_value sn_clamp(sn_graph *g, sn_value x, double low, double high) {
  if (!(low <= high))
    return sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID, "clamp: low %g must not be above high %g", low, high));
  return add_unary(g, SN__UNARY_clamp, x, low, high);
}

/* ---- activations ---------------------------------------------------------------------------- */

static const struct {
  const char *name;
  sn__unary unary;
  double alpha;
} activations[SN_ACTIVATION_COUNT] = {
    [SN_LINEAR] = {"linear", SN__UNARY_COUNT, 0},
    [SN_RELU] = {"relu", SN__UNARY_relu, 0},
    [SN_TANH] = {"tanh", SN__UNARY_tanh, 0},
    [SN_SIGMOID] = {"sigmoid", SN__UNARY_sigmoid, 0},
    [SN_GELU] = {"gelu", SN__UNARY_gelu, 0},
    [SN_GELU_TANH] = {"gelu_tanh", SN__UNARY_gelu_tanh, 0},
    [SN_SILU] = {"silu", SN__UNARY_silu, 0},
    [SN_LEAKY_RELU] = {"leaky_relu", SN__UNARY_leaky_relu, 0.01},
    [SN_SOFTPLUS] = {"softplus", SN__UNARY_softplus, 0},
};

const char *sn_activation_name(sn_activation activation) {
  if ((int)activation < 0 || activation >= SN_ACTIVATION_COUNT) return "unknown";
  return activations[activation].name;
}

bool sn_activation_from_name(const char *name, sn_activation *out) {
  for (int i = 0; name != NULL && i < SN_ACTIVATION_COUNT; i++)
    if (strcmp(activations[i].name, name) == 0) {
      *out = (sn_activation)i;
      return true;
    }
  return false;
}

sn__unary sn__unary_of_activation(sn_activation activation, sn__unary_attrs *out_attrs) {
  *out_attrs = (sn__unary_attrs){activations[activation].alpha, 0};
  return activations[activation].unary;
}

sn_value sn_activate(sn_graph *g, sn_value x, sn_activation activation) {
  if ((int)activation < 0 || activation >= SN_ACTIVATION_COUNT)
    return sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID, "there is no activation number %d", (int)activation));
  sn__unary_attrs a;
  sn__unary kind = sn__unary_of_activation(activation, &a);
  return kind == SN__UNARY_COUNT ? x : add_unary(g, kind, x, a.alpha, a.beta);
}
