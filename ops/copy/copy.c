/* SPDX-License-Identifier: Apache-2.0 */
/* copy: the one op across two devices. */
#include "ops/common.h"

#include <string.h>

static sn_status grad(const sn__grad *c) {
  if (c->need[0]) c->din[0] = c->dout[0];
  return SN_OK;
}

static sn_status cpu(const sn__exec *e) {
  size_t bytes = (size_t)sn__count(&e->in[0]) * sn_dtype_size(e->in[0].dtype);
  if (bytes > 0 && e->out[0].data != e->in[0].data) memcpy(e->out[0].data, e->in[0].data, bytes);
  return SN_OK;
}

const sn_op_def sn__op_copy = {
    .name = "copy",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 1,
    .flags = SN_OP_COPY,
    .infer = sn__infer_like_first,
    .grad = grad,
    .cpu = cpu,
    .doc = "the same tensor on another device",
};

sn_value sn__copy(sn_graph *g, sn_value x) {
  return sn__node_add(g, &sn__op_copy, NULL, &x, 1, NULL, NULL);
}
