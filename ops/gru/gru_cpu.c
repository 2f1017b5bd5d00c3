/* SPDX-License-Identifier: Apache-2.0 */
/* The scans: the input's products for all steps at once, then step by step a product with the
 * recurrent kernel and the gates. */
#include "ops/gru/gru.h"

#include <string.h>

/* ---- forward ---- */

typedef struct forward {
  const sn__gemm_packed *kernel[2];
  const char *zeros; /* [H] */
} forward;

static size_t direction_bytes(sn_dtype dtype, sn_dtype compute, int64_t units) {
  return sn__lines(sn__gemm_packed_size(dtype, compute, 3 * units, units)) +
         sn__lines((size_t)(2 * units) * sn_dtype_size(dtype));
}

size_t sn__gru_workspace(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const int64_t units = e->out[0].shape.dims[1] / a->directions;
  return (size_t)a->directions * direction_bytes(e->in[0].dtype, sn__rnn_compute(e), units) +
         sn__lines((size_t)units * sn_dtype_size(e->in[0].dtype));
}

static sn_status forward_rows(const sn__scan *s, int d, int64_t row, int64_t rows) {
  const forward *f = s->user;
  const sn__exec *e = s->e;
  const int64_t h = s->units, ld = h * s->directions;
  char *y = (char *)e->out[0].data + (size_t)(d * h) * s->size;
  char *gates = (char *)e->out[1].data + (size_t)(d * s->n * 4 * h) * s->size;
  sn__gemm_args g = {.dtype = s->dtype,
                     .compute = s->compute,
                     .n = 3 * h,
                     .k = h,
                     .lda = ld,
                     .packed_b = f->kernel[d],
                     .ldc = 4 * h,
                     .accumulate = true};
  for (int64_t i = 0; i < s->length; i++) {
    const sn__scan_step at = sn__scan_at(s, d, d == 0 ? i : s->length - 1 - i, row, rows);
    if (at.rows == 0) continue;
    sn__gru_rows r = {.units = h, .h_ld = ld, .rows = at.prev_rows, .h_prev_ld = ld};
    r.gates = gates + (size_t)(at.element * 4 * h) * s->size;
    r.h = y + (size_t)(at.element * ld) * s->size;
    if (at.prev_rows > 0) {
      r.h_prev = y + (size_t)(at.prev * ld) * s->size;
      g.m = at.prev_rows;
      g.a = r.h_prev;
      g.c = r.gates;
      SN_TRY(sn__gemm(&g, NULL));
      sn__gru_rows_run(s->dtype, &r);
    }
    if (at.rows > at.prev_rows) {
      const size_t skip = (size_t)at.prev_rows * s->size;
      r.rows = at.rows - at.prev_rows;
      r.gates = (char *)r.gates + skip * (size_t)(4 * h);
      r.h = (char *)r.h + skip * (size_t)ld;
      r.h_prev = f->zeros;
      r.h_prev_ld = 0;
      sn__gru_rows_run(s->dtype, &r);
    }
  }
  return SN_OK;
}

typedef struct fill_job {
  char *to;
  const void *bias; /* [H], or NULL for zeros */
  size_t step, bytes;
} fill_job;

static void fill_task(void *arg, int64_t begin, int64_t end) {
  const fill_job *job = arg;
  for (int64_t i = begin; i < end; i++) {
    if (job->bias != NULL)
      memcpy(job->to + (size_t)i * job->step, job->bias, job->bytes);
    else
      memset(job->to + (size_t)i * job->step, 0, job->bytes);
  }
}

/* What does not depend on the state: r and z get both biases, W_hn h starts as b_hn. */
static sn_status input_products(const sn__scan *s, int d, char *bias) {
  const sn__exec *e = s->e;
  const sn__tensor *in = &e->in[sn__rnn_input(d, 0)];
  const int64_t h = s->units, features = e->in[0].shape.dims[1];
  char *gates = (char *)e->out[1].data + (size_t)(d * s->n * 4 * h) * s->size;
  const char *b_ih = in[SN__RNN_B_IH].data, *b_hh = in[SN__RNN_B_HH].data;
  const size_t two = (size_t)(2 * h) * s->size;
  sn__add_biases(s->dtype, b_ih, b_hh, 2 * h, bias);
  sn__gemm_args g = {.dtype = s->dtype,
                     .compute = s->compute,
                     .m = s->n,
                     .n = 2 * h,
                     .k = features,
                     .a = e->in[0].data,
                     .b = in[SN__RNN_W_IH].data,
                     .trans_b = true,
                     .bias = bias,
                     .c = gates,
                     .ldc = 4 * h};
  SN_TRY(sn__gemm(&g, e->team));
  g.n = h;
  g.b = (const char *)in[SN__RNN_W_IH].data + two * (size_t)features;
  g.bias = b_ih == NULL ? NULL : b_ih + two;
  g.c = gates + (size_t)(3 * h) * s->size;
  SN_TRY(sn__gemm(&g, e->team));
  fill_job job = {gates + two, b_hh == NULL ? NULL : b_hh + two, 2 * two, two / 2};
  sn__rows_run(e->team, s->n, h, fill_task, &job);
  return SN_OK;
}

sn_status sn__gru_cpu(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const int64_t units = e->out[0].shape.dims[1] / a->directions;
  sn__scan s;
  SN_TRY(sn__scan_init(&s, e, &e->in[SN__RNN_STEPS], &e->in[0], units, (int)a->directions));
  if (s.n == 0) return SN_OK;
  forward f;
  char *memory = s.workspace;
  for (int d = 0; d < s.directions; d++) {
    f.kernel[d] =
        sn__gemm_pack_b(s.dtype, s.compute, 3 * units, units,
                        e->in[sn__rnn_input(d, SN__RNN_W_HH)].data, 0, true, memory, e->team);
    SN_TRY(input_products(
        &s, d, memory + sn__lines(sn__gemm_packed_size(s.dtype, s.compute, 3 * units, units))));
    memory += direction_bytes(s.dtype, s.compute, units);
  }
  memset(memory, 0, (size_t)units * s.size);
  f.zeros = memory;
  s.user = &f;
  return sn__scan_run(&s, forward_rows);
}

/* ---- backward ---- */

typedef struct backward {
  const sn__gemm_packed *kernel[2];
  char *dh[2]; /* [rows, H], in out[1] */
  const char *zeros;
} backward;

size_t sn__gru_grad_workspace(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const sn_dtype dtype = e->in[0].dtype;
  const int64_t units = e->in[0].shape.dims[1] / a->directions;
  return (size_t)a->directions *
             sn__lines(sn__gemm_packed_size(dtype, sn__rnn_compute(e), units, 3 * units)) +
         sn__lines((size_t)units * sn_dtype_size(dtype));
}

static sn_status backward_rows(const sn__scan *s, int d, int64_t row, int64_t rows) {
  const backward *b = s->user;
  const sn__exec *e = s->e;
  const int64_t h = s->units, ld = h * s->directions;
  const char *dy = (const char *)e->in[0].data + (size_t)(d * h) * s->size;
  const char *gates = (const char *)e->in[2].data + (size_t)(d * s->n * 4 * h) * s->size;
  const char *y = (const char *)e->in[3].data + (size_t)(d * h) * s->size;
  char *dgates = (char *)e->out[0].data + (size_t)(d * s->n * 4 * h) * s->size;
  char *dh = b->dh[d] + (size_t)(row * h) * s->size;
  sn__gemm_args g = {.dtype = s->dtype,
                     .compute = s->compute,
                     .n = h,
                     .k = 3 * h,
                     .lda = 4 * h,
                     .packed_b = b->kernel[d],
                     .c = dh,
                     .accumulate = true};
  for (int64_t i = s->length - 1; i >= 0; i--) {
    const sn__scan_step at = sn__scan_at(s, d, d == 0 ? i : s->length - 1 - i, row, rows);
    if (at.rows == 0) continue;
    sn__gru_grad_rows r = {.units = h, .dy_ld = ld, .rows = at.prev_rows, .h_prev_ld = ld};
    r.gates = gates + (size_t)(at.element * 4 * h) * s->size;
    r.dgates = dgates + (size_t)(at.element * 4 * h) * s->size;
    r.dy = dy + (size_t)(at.element * ld) * s->size;
    r.dh = dh;
    g.a = r.dgates;
    if (at.prev_rows > 0) {
      r.h_prev = y + (size_t)(at.prev * ld) * s->size;
      sn__gru_grad_rows_run(s->dtype, &r);
    }
    if (at.rows > at.prev_rows) {
      const size_t skip = (size_t)at.prev_rows * s->size;
      r.rows = at.rows - at.prev_rows;
      r.gates = (const char *)r.gates + skip * (size_t)(4 * h);
      r.dgates = (char *)r.dgates + skip * (size_t)(4 * h);
      r.dy = (const char *)r.dy + skip * (size_t)ld;
      r.dh = dh + skip * (size_t)h;
      r.h_prev = b->zeros;
      r.h_prev_ld = 0;
      sn__gru_grad_rows_run(s->dtype, &r);
    }
    g.m = at.prev_rows;
    SN_TRY(sn__gemm(&g, NULL));
  }
  return SN_OK;
}

sn_status sn__gru_grad_cpu(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const int64_t units = e->in[0].shape.dims[1] / a->directions;
  sn__scan s;
  SN_TRY(sn__scan_init(&s, e, &e->in[1], &e->in[0], units, (int)a->directions));
  SN_TRY(sn__scan_fits(&s));
  backward b;
  char *memory = s.workspace, *states = e->out[1].data;
  const size_t state = (size_t)(e->out[1].shape.dims[0] * units) * s.size;
  if (state > 0) memset(states, 0, (size_t)s.directions * state);
  if (s.n == 0) return SN_OK;
  for (int d = 0; d < s.directions; d++) {
    b.kernel[d] = sn__gemm_pack_b(s.dtype, s.compute, units, 3 * units, e->in[4 + d].data, 0, false,
                                  memory, e->team);
    memory += sn__lines(sn__gemm_packed_size(s.dtype, s.compute, units, 3 * units));
    b.dh[d] = states + (size_t)d * state;
  }
  memset(memory, 0, (size_t)units * s.size);
  b.zeros = memory;
  s.user = &b;
  return sn__scan_run(&s, backward_rows);
}
