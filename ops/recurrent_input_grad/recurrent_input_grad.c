/* SPDX-License-Identifier: Apache-2.0 */
/* dx of a recurrent op: dgates, then the input kernel of each direction -> dx. */
#include "ops/recurrent/recurrent.h"

static const sn__attr_def recurrent_attrs[] = SN__RECURRENT_ATTR_ROWS;

static sn_status input_grad_infer(sn__infer *c) {
  c->out[0] = c->in[0];
  c->out[0].shape.dims[1] = c->in[1].shape.dims[1];
  return SN_OK;
}

static void input_grad_cost(const sn__exec *e, sn__cost *out) {
  out->flops = 0;
  out->bf16_flops = 0;
  for (int i = 1; i < e->n_in; i++) {
    const sn_shape *kernel = &e->in[i].shape;
    const double product = 2.0 * (double)e->in[0].shape.dims[0] * (double)sn__shape_size(kernel);
    out->flops += product;
    out->bf16_flops += sn__rnn_bf16_flops(e, kernel->dims[1], kernel->dims[0], product);
  }
  out->bytes = sn__tensor_bytes(e);
}

const sn_op_def sn__op_recurrent_input_grad = {.name = "recurrent_input_grad",
                                               .version = 1,
                                               .min_inputs = 2,
                                               .max_inputs = 3,
                                               .n_outputs = 1,
                                               .flags = SN_OP_GRAD,
                                               SN__ATTRS(sn__recurrent_attrs, recurrent_attrs),
                                               .infer = input_grad_infer,
                                               .cost = input_grad_cost,
                                               .cpu = sn__recurrent_input_grad_cpu,
                                               .doc = "gradient of the input of an LSTM or GRU"};
