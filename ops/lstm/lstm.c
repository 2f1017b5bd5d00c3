/* SPDX-License-Identifier: Apache-2.0 */
/* Long short-term memory over time-major sorted packed rows, one or two directions. Outputs: y,
 * and for the backward pass the activated gates [N, 4 D H] and cell states [N, D H] (see
 * recurrent.h). */
#include "ops/lstm/lstm.h"

static const sn__attr_def recurrent_attrs[] = SN__RECURRENT_ATTR_ROWS;

static sn_status lstm_infer(sn__infer *c) {
  SN_TRY(sn__recurrent_infer(c, 4));
  c->out[2] = c->out[0];
  return SN_OK;
}

static void lstm_cost(const sn__exec *e, sn__cost *out) {
  sn__recurrent_cost(e, 4, out);
}

/* dy, steps, gates, cells, then the recurrent kernel of each direction -> dgates, and scratch
 * [batch, ..] in which the scan carries the gradients of every row's state. */
static sn_status lstm_grad_infer(sn__infer *c) {
  const sn__recurrent_attrs *a = c->attrs;
  c->out[0] = c->in[2];
  c->out[1] = (sn__type){c->in[0].dtype, {2, {a->rows, 2 * c->in[0].shape.dims[1]}}};
  return SN_OK;
}

static sn_status lstm_grad(const sn__grad *c) {
  const sn__recurrent_attrs a = sn__recurrent_grad_attrs(c);
  if (!sn_value_ok(c->dout[0])) return SN_OK;
  sn_value in[6] = {c->dout[0], c->in[SN__RNN_STEPS], c->out[1], c->out[2]};
  for (int d = 0; d < (int)a.directions; d++)
    in[4 + d] = c->in[sn__rnn_input(d, SN__RNN_W_HH)];
  sn_value dgates =
      sn__node_add(c->graph, &sn__op_lstm_grad, &a, in, (size_t)(4 + a.directions), NULL, NULL);
  sn__recurrent_grads(c, SN__LSTM, dgates);
  return SN_OK;
}

const sn_op_def sn__op_lstm = {
    .name = "lstm",
    .version = 1,
    .min_inputs = 4,
    .max_inputs = 10,
    .n_outputs = 3,
    SN__ATTRS(sn__recurrent_attrs, recurrent_attrs),
    .infer = lstm_infer,
    .grad = lstm_grad,
    .saved_inputs = SN__RNN_SAVED_INPUTS,
    .saved_outputs = 1u << 0 | 1u << 1 | 1u << 2,
    .cost = lstm_cost,
    .workspace = sn__lstm_workspace,
    .cpu = sn__lstm_cpu,
    .doc = "LSTM over time-major packed rows: y, activated gates, cell states"};

const sn_op_def sn__op_lstm_grad = {.name = "lstm_grad",
                                    .version = 1,
                                    .min_inputs = 5,
                                    .max_inputs = 6,
                                    .n_outputs = 2,
                                    .flags = SN_OP_GRAD,
                                    SN__ATTRS(sn__recurrent_attrs, recurrent_attrs),
                                    .infer = lstm_grad_infer,
                                    .inplace = {3},
                                    .cost = sn__recurrent_grad_cost,
                                    .workspace = sn__lstm_grad_workspace,
                                    .cpu = sn__lstm_grad_cpu,
                                    .doc =
                                        "gradients of an LSTM's gates before activation; scratch"};

sn_value sn_lstm_op(sn_graph *g, sn_value x, sn_value steps, const sn_recurrent_weights *weights,
                    int directions) {
  return sn__recurrent_add(g, &sn__op_lstm, x, steps, weights, directions);
}
