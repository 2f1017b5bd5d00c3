/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules, building and costs that LSTM and GRU share. */
#include "ops/recurrent/recurrent.h"

/* Input i must be a [rows, cols] matrix, or a [rows] vector when cols is 0. */
static sn_status want_weight(const sn__infer *c, int i, int64_t rows, int64_t cols,
                             const char *what) {
  const sn_shape *s = &c->in[i].shape;
  char text[160];
  if (c->in[i].dtype != c->in[0].dtype)
    return sn__infer_fail(c, "%s is %s but x is %s", what, sn_dtype_name(c->in[i].dtype),
                          sn_dtype_name(c->in[0].dtype));
  if (s->dims[0] == rows && (cols == 0 ? s->rank == 1 : s->rank == 2 && s->dims[1] == cols))
    return SN_OK;
  sn__input_words(c, i, text, sizeof text);
  if (cols == 0) return sn__infer_fail(c, "%s must be [%lld], not %s", what, (long long)rows, text);
  return sn__infer_fail(c, "%s must be [%lld, %lld], not %s", what, (long long)rows,
                        (long long)cols, text);
}

static sn_status want_direction(const sn__infer *c, int d, int64_t count, int64_t features,
                                int64_t *units) {
  const int w_hh = sn__rnn_input(d, SN__RNN_W_HH), w_ih = sn__rnn_input(d, SN__RNN_W_IH);
  if (c->in[w_hh].dtype == SN_DTYPE_NONE || c->in[w_ih].dtype == SN_DTYPE_NONE)
    return sn__infer_fail(c, "direction %d lacks its input or recurrent kernel", d);
  SN_TRY(sn__want_rank(c, w_hh, 2, 2, "the recurrent kernel"));
  if (*units == 0) *units = c->in[w_hh].shape.dims[1];
  if (*units < 1) return sn__infer_fail(c, "the recurrent kernel needs a fixed number of units");
  SN_TRY(want_weight(c, w_hh, count * *units, *units, "the recurrent kernel"));
  SN_TRY(want_weight(c, w_ih, count * *units, features, "the input kernel"));
  for (int b = SN__RNN_B_IH; b <= SN__RNN_B_HH; b++) {
    const int i = sn__rnn_input(d, b);
    if (c->in[i].dtype != SN_DTYPE_NONE)
      SN_TRY(want_weight(c, i, count * *units, 0,
                         b == SN__RNN_B_IH ? "the input bias" : "the recurrent bias"));
  }
  return SN_OK;
}

sn_status sn__recurrent_infer(sn__infer *c, int64_t count) {
  const sn__recurrent_attrs *a = c->attrs;
  SN_TRY(sn__need_precision(c, a->precision));
  SN_TRY(sn__want_real(c, SN__RNN_X, "x"));
  SN_TRY(sn__want_rank(c, SN__RNN_X, 2, 2, "x"));
  SN_TRY(sn__want_index(c, SN__RNN_STEPS, SN__OFFSETS, "steps"));
  if (a->directions != 1 && a->directions != 2)
    return sn__infer_fail(c, "there are 1 or 2 directions, not %lld", (long long)a->directions);
  if (c->n_in != sn__rnn_input((int)a->directions, 0))
    return sn__infer_fail(c, "%d inputs do not make %lld directions", c->n_in,
                          (long long)a->directions);
  const int64_t features = c->in[SN__RNN_X].shape.dims[1];
  if (sn_dim_is_symbolic(features)) return sn__infer_fail(c, "x needs a fixed number of features");
  int64_t units = 0;
  for (int d = 0; d < (int)a->directions; d++)
    SN_TRY(want_direction(c, d, count, features, &units));
  const int64_t n = c->in[SN__RNN_X].shape.dims[0];
  c->out[0] = (sn__type){c->in[0].dtype, {2, {n, a->directions * units}}};
  c->out[1] = (sn__type){c->in[0].dtype, {2, {n, a->directions * SN__RNN_TAPE * units}}};
  return SN_OK;
}

/* Tried on one core, against products of the same device: a unit's gates take the time of so many
 * operations of a product, forward and backward, and a step of one direction, however few its rows,
 * that of so many more. */
#define GATE_FLOPS      350.0
#define GATE_GRAD_FLOPS 120.0
#define STEP_FLOPS      80000.0

static double step_flops(const sn__exec *e, int64_t steps_dim) {
  const sn__recurrent_attrs *a = e->attrs;
  return steps_dim > 1 ? STEP_FLOPS * (double)((steps_dim - 1) * a->directions) : 0;
}

void sn__recurrent_cost(const sn__exec *e, int64_t count, sn__cost *out) {
  const sn__recurrent_attrs *a = e->attrs;
  const int64_t features = e->in[0].shape.dims[1];
  const int64_t outputs = e->out[0].shape.dims[1], units = outputs / a->directions;
  const double gates = (double)e->in[0].shape.dims[0] * (double)outputs;
  const double input = gates * 2.0 * (double)(count * features);
  const double recurrent = gates * 2.0 * (double)(count * units);
  out->flops =
      input + recurrent + gates * GATE_FLOPS + step_flops(e, e->in[SN__RNN_STEPS].shape.dims[0]);
  out->bf16_flops = sn__rnn_bf16_flops(e, count * units, features, input) +
                    sn__rnn_bf16_flops(e, count * units, units, recurrent);
  out->bytes = sn__tensor_bytes(e);
}

void sn__recurrent_grad_cost(const sn__exec *e, sn__cost *out) {
  const double n = (double)e->in[0].shape.dims[0];
  out->flops = GATE_GRAD_FLOPS * (double)sn__shape_size(&e->in[0].shape) +
               step_flops(e, e->in[1].shape.dims[0]);
  out->bf16_flops = 0;
  for (int i = 4; i < e->n_in; i++) {
    const sn_shape *kernel = &e->in[i].shape;
    const double product = 2.0 * n * (double)sn__shape_size(kernel);
    out->flops += product;
    out->bf16_flops += sn__rnn_bf16_flops(e, kernel->dims[1], kernel->dims[0], product);
  }
  out->bytes = sn__tensor_bytes(e);
}

sn_value sn__recurrent_add(sn_graph *g, const sn_op_def *op, sn_value x, sn_value steps,
                           const sn_recurrent_weights *weights, int directions) {
  sn_value in[SN__RNN_WEIGHTS + 2 * SN__RNN_PER_DIRECTION] = {x, steps};
  if (directions != 1 && directions != 2)
    return sn_graph_fail(
        g, sn_status_make(SN_CODE_INVALID, "%s: 1 or 2 directions, not %d", op->name, directions));
  for (int d = 0; d < directions; d++) {
    in[sn__rnn_input(d, SN__RNN_W_IH)] = weights[d].input_kernel;
    in[sn__rnn_input(d, SN__RNN_W_HH)] = weights[d].recurrent_kernel;
    in[sn__rnn_input(d, SN__RNN_B_IH)] = weights[d].input_bias;
    in[sn__rnn_input(d, SN__RNN_B_HH)] = weights[d].recurrent_bias;
  }
  sn__recurrent_attrs a = {.directions = directions};
  return sn__node_add(g, op, &a, in, (size_t)sn__rnn_input(directions, 0), NULL, NULL);
}

sn__recurrent_attrs sn__recurrent_grad_attrs(const sn__grad *c) {
  sn__recurrent_attrs a = *(const sn__recurrent_attrs *)c->attrs;
  a.rows = sn_value_shape(c->in[SN__RNN_X]).dims[0];
  if (sn_dim_is_symbolic(a.rows)) a.rows = SN_DIM_BATCH;
  return a;
}

void sn__recurrent_grads(const sn__grad *c, sn__recurrent_kind kind, sn_value dgates) {
  const sn__recurrent_attrs *forward = c->attrs;
  sn__recurrent_attrs a = {
      .directions = forward->directions, .kind = kind, .precision = forward->precision};
  if (c->need[SN__RNN_X]) {
    sn_value in[3] = {dgates};
    for (int d = 0; d < (int)a.directions; d++)
      in[1 + d] = c->in[sn__rnn_input(d, SN__RNN_W_IH)];
    c->din[SN__RNN_X] = sn__node_add(c->graph, &sn__op_recurrent_input_grad, &a, in,
                                     (size_t)(1 + a.directions), NULL, NULL);
  }
  for (int d = 0; d < (int)a.directions; d++) {
    const int first = sn__rnn_input(d, 0);
    bool any = false;
    for (int i = 0; i < SN__RNN_PER_DIRECTION; i++)
      any = any || c->need[first + i];
    if (!any) continue;
    a.direction = d;
    const sn_value in[] = {dgates, c->in[SN__RNN_X], c->out[0], c->in[SN__RNN_STEPS]};
    sn_value out[SN_MAX_OUTPUTS];
    sn__node_add(c->graph, &sn__op_recurrent_weight_grad, &a, in, 4, NULL, out);
    for (int i = 0; i < SN__RNN_PER_DIRECTION; i++)
      if (c->need[first + i]) c->din[first + i] = out[i];
  }
}
