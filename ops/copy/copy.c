/* SPDX-License-Identifier: Apache-2.0 */
/* copy: the same bytes on another device; the one op whose input and output are on two. Placement inserts
 * it; it has no builder. */
#include "core/op.h"

#include <string.h>

static sn_status copy_infer(sn__infer *c) {
  c->out[0] = c->in[0];
  return SN_OK;
}

/* Differentiation comes before placement; a copy made by hand passes its gradient through. */
static sn_status copy_grad(const sn__grad *c) {
  if (c->need[0]) c->din[0] = c->dout[0];
  return SN_OK;
}

static sn_status copy_cpu(const sn__exec *e) {
  size_t bytes = (size_t)sn__shape_size(&e->in[0].shape) * sn_dtype_size(e->in[0].dtype);
  if (bytes > 0) memcpy(e->out[0].data, e->in[0].data, bytes);
  return SN_OK;
}

const sn_op_def sn__op_copy = {
    .name = "copy",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 1,
    .flags = SN_OP_COPY,
    .infer = copy_infer,
    .grad = copy_grad,
    .cpu = copy_cpu,
    .doc = "the same bytes on another device",
};
