/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm/gemm.h"
#include "ops/matmul/matmul.h"

sn__matmul_plan sn__matmul_plan_of(const sn__exec *e) {
  const sn__matmul_attrs *t = e->attrs;
  const sn_shape *a = &e->in[0].shape, *b = &e->in[1].shape;
  int64_t a0 = a->dims[a->rank - 2], a1 = a->dims[a->rank - 1];
  int64_t b0 = b->dims[b->rank - 2], b1 = b->dims[b->rank - 1];
  int64_t batch_a = sn__shape_span(a, 0, a->rank - 2), batch_b = sn__shape_span(b, 0, b->rank - 2);
  sn__matmul_plan p = {.m = t->transpose_a ? a1 : a0,
                       .k = t->transpose_a ? a0 : a1,
                       .n = t->transpose_b ? b0 : b1,
                       .batch = 1};
  if (t->sum_batch) {
    p.k *= batch_a;
  } else if (b->rank == 2 && !t->transpose_a) {
    p.m *= batch_a; /* one b for all: the batch is but more rows */
  } else {
    p.batch = a->rank > 2 ? batch_a : batch_b;
    p.a_stride = a->rank > 2 ? a0 * a1 : 0;
    p.b_stride = b->rank > 2 ? b0 * b1 : 0;
  }
  return p;
}

/* The activation over a stretch of a row, as sn__gemm finishes it. */
typedef struct finish {
  sn__unary_fn fn;
  sn__unary_attrs attrs;
} finish;

static void epilogue(void *user, int64_t batch, int64_t row, int64_t col, int64_t cols, void *c) {
  (void)batch;
  (void)row;
  (void)col;
  const finish *f = user;
  f->fn(c, c, cols, &f->attrs);
}

sn_status sn__matmul_cpu(const sn__exec *e) {
  const sn__matmul_attrs *t = e->attrs;
  if (sn__count(&e->out[0]) == 0) return SN_OK;
  sn__matmul_plan p = sn__matmul_plan_of(e);
  sn__gemm_args args = {.dtype = e->out[0].dtype,
                        .compute = sn__compute(e->out[0].dtype, t->precision),
                        .m = p.m,
                        .n = p.n,
                        .k = p.k,
                        .trans_a = t->transpose_a != 0,
                        .trans_b = t->transpose_b != 0,
                        .a = e->in[0].data,
                        .b = e->in[1].data,
                        .c = e->out[0].data,
                        .bias = e->n_in > 2 ? e->in[2].data : NULL,
                        .batch = p.batch,
                        .a_stride = p.a_stride,
                        .b_stride = p.b_stride,
                        .c_stride = p.m * p.n};
  finish f;
  sn__unary kind = sn__unary_of_activation((sn_activation)t->activation, &f.attrs);
  if (kind == SN__UNARY_relu) {
    args.act = SN__GEMM_ACT_RELU;
  } else if (kind != SN__UNARY_COUNT) {
    f.fn = args.dtype == SN_F64 ? sn__unary_f64[kind] : sn__unary_f32[kind];
    args.epilogue = epilogue;
    args.user = &f;
  }
  return sn__gemm(&args, e->team);
}
