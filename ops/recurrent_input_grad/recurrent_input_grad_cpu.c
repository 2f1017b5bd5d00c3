/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/recurrent.h"

sn_status sn__recurrent_input_grad_cpu(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const sn_dtype dtype = e->in[0].dtype;
  const size_t size = sn_dtype_size(dtype);
  const int64_t n = e->in[0].shape.dims[0], features = e->out[0].shape.dims[1];
  const int64_t pitch = e->in[0].shape.dims[1] / a->directions, units = pitch / SN__RNN_TAPE;
  /* GRU: r and z, then n, whose gradient lies behind that of W_hn h. */
  const bool gru = a->kind == SN__GRU;
  for (int d = 0; d < (int)a->directions; d++) {
    const char *dgates = (const char *)e->in[0].data + (size_t)(d * n * pitch) * size;
    const char *kernel = e->in[1 + d].data;
    sn__gemm_args g = {.dtype = dtype,
                       .compute = sn__rnn_compute(e),
                       .m = n,
                       .n = features,
                       .k = gru ? 2 * units : 4 * units,
                       .a = dgates,
                       .lda = pitch,
                       .b = kernel,
                       .c = e->out[0].data,
                       .accumulate = d > 0};
    SN_TRY(sn__gemm(&g, e->team));
    if (!gru) continue;
    g.k = units;
    g.a = dgates + (size_t)(3 * units) * size;
    g.b = kernel + (size_t)(2 * units * features) * size;
    g.accumulate = true;
    SN_TRY(sn__gemm(&g, e->team));
  }
  return SN_OK;
}
