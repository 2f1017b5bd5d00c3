/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of one direction's weights: dgates, x, y, steps -> dW_ih, dW_hh, db_ih, db_hh. */
#include "ops/recurrent/recurrent.h"

static const sn__attr_def recurrent_attrs[] = SN__RECURRENT_ATTR_ROWS;

static sn_status weight_grad_infer(sn__infer *c) {
  const sn__recurrent_attrs *a = c->attrs;
  const int64_t units = c->in[2].shape.dims[1] / a->directions;
  const int64_t rows = units * (a->kind == SN__GRU ? 3 : 4), features = c->in[1].shape.dims[1];
  const sn_dtype dtype = c->in[0].dtype;
  c->out[SN__RNN_W_IH] = (sn__type){dtype, {2, {rows, features}}};
  c->out[SN__RNN_W_HH] = (sn__type){dtype, {2, {rows, units}}};
  c->out[SN__RNN_B_IH] = (sn__type){dtype, {1, {rows}}};
  c->out[SN__RNN_B_HH] = (sn__type){dtype, {1, {rows}}};
  return SN_OK;
}

static void weight_grad_cost(const sn__exec *e, sn__cost *out) {
  const double weights = (double)sn__shape_size(&e->out[SN__RNN_W_IH].shape) +
                         (double)sn__shape_size(&e->out[SN__RNN_W_HH].shape);
  out->flops = 2.0 * (double)e->in[0].shape.dims[0] * weights;
  out->bf16_flops =
      sn__rnn_bf16_flops(e, e->out[SN__RNN_W_HH].shape.dims[1], e->in[0].shape.dims[0], out->flops);
  out->bytes = sn__tensor_bytes(e);
}

static size_t weight_grad_workspace(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const int64_t n = e->in[0].shape.dims[0], pitch = e->in[0].shape.dims[1] / a->directions;
  const int64_t beside = sn__rnn_beside(a, e->in[1].shape.dims[1]);
  const int64_t piece = sn__rnn_piece(pitch), width = e->out[SN__RNN_W_HH].shape.dims[1] + beside;
  const size_t size = sn_dtype_size(e->in[0].dtype);
  return sn__lines((size_t)pitch * sizeof(double)) +
         sn__lines((size_t)((n < piece ? n : piece) * width) * size) +
         (beside > 0 ? (size_t)(pitch * width) * size : 0);
}

const sn_op_def sn__op_recurrent_weight_grad = {
    .name = "recurrent_weight_grad",
    .version = 1,
    .min_inputs = 4,
    .max_inputs = 4,
    .n_outputs = 4,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__recurrent_attrs, recurrent_attrs),
    .infer = weight_grad_infer,
    .cost = weight_grad_cost,
    .workspace = weight_grad_workspace,
    .cpu = sn__recurrent_weight_grad_cpu,
    .doc = "gradients of one direction's kernels and biases of an LSTM or GRU"};
