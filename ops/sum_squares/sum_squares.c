/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of squares of a tensor in double: chunks of a fixed size, lanes of a fixed number in
 * each, both added in rising order, so the bits are those of one thread. */
#include "ops/update.h"
#include "ops/vecmath.h"

enum { LANES = 16 };

/* Not-finite elements make the sum not finite, which is how they are found. */
#define DEFINE_CHUNK(name, T)                                                                      \
  SN__CLONES static double name(const T *x, int64_t n) {                                           \
    double lane[LANES] = {0};                                                                      \
    int64_t whole = n / LANES * LANES;                                                             \
    for (int64_t i = 0; i < whole; i += LANES)                                                     \
      SN__SIMD for (int k = 0; k < LANES; k++) lane[k] += (double)x[i + k] * (double)x[i + k];     \
    for (int64_t i = whole; i < n; i++)                                                            \
      lane[i - whole] += (double)x[i] * (double)x[i];                                              \
    double sum = 0;                                                                                \
    for (int k = 0; k < LANES; k++)                                                                \
      sum += lane[k];                                                                              \
    return sum;                                                                                    \
  }
DEFINE_CHUNK(squares_f32, float)
DEFINE_CHUNK(squares_f64, double)

static sn_status sum_squares_infer(sn__infer *c) {
  if (c->in[0].dtype != SN_F32 && c->in[0].dtype != SN_F64)
    return sn__infer_fail(c, "a sum of squares needs f32 or f64");
  c->out[0] = (sn__type){SN_F64, {0, {0}}};
  return SN_OK;
}

static int64_t chunks_of(const sn__exec *e) {
  return (sn__shape_size(&e->in[0].shape) + SN__CHUNK - 1) / SN__CHUNK;
}

static size_t sum_squares_workspace(const sn__exec *e) {
  return (size_t)chunks_of(e) * sizeof(double);
}

static void sum_squares_chunk(void *arg, int64_t index, int worker) {
  (void)worker;
  const sn__exec *e = arg;
  int64_t begin = index * SN__CHUNK, left = sn__shape_size(&e->in[0].shape) - begin;
  int64_t n = left < SN__CHUNK ? left : SN__CHUNK;
  double *partial = e->workspace;
  partial[index] = e->in[0].dtype == SN_F64 ? squares_f64((const double *)e->in[0].data + begin, n)
                                            : squares_f32((const float *)e->in[0].data + begin, n);
}

static sn_status sum_squares_cpu(const sn__exec *e) {
  int64_t chunks = chunks_of(e);
  sn__exec copy = *e;
  sn__team_run(e->team, chunks, sum_squares_chunk, &copy);
  const double *partial = e->workspace;
  double sum = 0;
  for (int64_t i = 0; i < chunks; i++)
    sum += partial[i];
  *(double *)e->out[0].data = sum;
  return SN_OK;
}

static void sum_squares_cost(const sn__exec *e, sn__cost *out) {
  double n = (double)sn__shape_size(&e->in[0].shape);
  *out = (sn__cost){.flops = 2 * n, .bytes = n * (double)sn_dtype_size(e->in[0].dtype)};
}

const sn_op_def sn__op_sum_squares = {.name = "sum_squares",
                                      .version = 1,
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .n_outputs = 1,
                                      .flags = SN_OP_NO_GRAD,
                                      .infer = sum_squares_infer,
                                      .cost = sum_squares_cost,
                                      .workspace = sum_squares_workspace,
                                      .cpu = sum_squares_cpu,
                                      .doc = "sum of squares of all elements, f64"};
