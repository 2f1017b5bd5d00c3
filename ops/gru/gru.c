/* SPDX-License-Identifier: Apache-2.0 */
/* Gated recurrent units over time-major sorted packed rows, one or two directions, as PyTorch has
 * them: n = tanh(W_in x + b_in + r * (W_hn h + b_hn)), h = (1 - z) n + z h. Outputs: y, and for the
 * backward pass the gates [N, 4 D H] (see recurrent.h). */
#include "ops/gru/gru.h"

static const sn__attr_def recurrent_attrs[] = SN__RECURRENT_ATTR_ROWS;

static sn_status gru_infer(sn__infer *c) {
  return sn__recurrent_infer(c, 3);
}

static void gru_cost(const sn__exec *e, sn__cost *out) {
  sn__recurrent_cost(e, 3, out);
}

/* dy, steps, gates, y, then the recurrent kernel of each direction -> dgates, and the gradient of
 * the states at the start of every (sorted) row, which is where the scan keeps it. */
static sn_status gru_grad_infer(sn__infer *c) {
  const sn__recurrent_attrs *a = c->attrs;
  c->out[0] = c->in[2];
  c->out[1] = (sn__type){c->in[0].dtype, {2, {a->rows, c->in[0].shape.dims[1]}}};
  return SN_OK;
}

static sn_status gru_grad(const sn__grad *c) {
  const sn__recurrent_attrs a = sn__recurrent_grad_attrs(c);
  if (!sn_value_ok(c->dout[0])) return SN_OK;
  sn_value in[6] = {c->dout[0], c->in[SN__RNN_STEPS], c->out[1], c->out[0]};
  for (int d = 0; d < (int)a.directions; d++)
    in[4 + d] = c->in[sn__rnn_input(d, SN__RNN_W_HH)];
  sn_value dgates =
      sn__node_add(c->graph, &sn__op_gru_grad, &a, in, (size_t)(4 + a.directions), NULL, NULL);
  sn__recurrent_grads(c, SN__GRU, dgates);
  return SN_OK;
}

const sn_op_def sn__op_gru = {.name = "gru",
                              .version = 1,
                              .min_inputs = 4,
                              .max_inputs = 10,
                              .n_outputs = 2,
                              SN__ATTRS(sn__recurrent_attrs, recurrent_attrs),
                              .infer = gru_infer,
                              .grad = gru_grad,
                              .saved_inputs = SN__RNN_SAVED_INPUTS,
                              .saved_outputs = 1u << 0 | 1u << 1,
                              .cost = gru_cost,
                              .workspace = sn__gru_workspace,
                              .cpu = sn__gru_cpu,
                              .doc = "GRU over time-major packed rows: y, gates"};

const sn_op_def sn__op_gru_grad = {.name = "gru_grad",
                                   .version = 1,
                                   .min_inputs = 5,
                                   .max_inputs = 6,
                                   .n_outputs = 2,
                                   .flags = SN_OP_GRAD,
                                   SN__ATTRS(sn__recurrent_attrs, recurrent_attrs),
                                   .infer = gru_grad_infer,
                                   .inplace = {3},
                                   .cost = sn__recurrent_grad_cost,
                                   .workspace = sn__gru_grad_workspace,
                                   .cpu = sn__gru_grad_cpu,
                                   .doc = "gradients of a GRU's gates before activation; scratch"};

sn_value sn_gru_op(sn_graph *g, sn_value x, sn_value steps, const sn_recurrent_weights *weights,
                   int directions) {
  return sn__recurrent_add(g, &sn__op_gru, x, steps, weights, directions);
}
