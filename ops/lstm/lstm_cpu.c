/* SPDX-License-Identifier: Apache-2.0 */
/* The scans: the input's products for a few steps at once, then step by step a product with the
 * recurrent kernel and the gates. */
#include "ops/lstm/lstm.h"

#include <string.h>

/* ---- forward ---- */

typedef struct forward {
  const sn__gemm_packed *input_kernel[2], *kernel[2];
  const void *bias[2]; /* [4H], of both kernels */
  const char *zeros;   /* [H] */
} forward;

/* Elements whose input products are taken at a time. They are few, so that the steps find them in
 * the cache. */
enum { AHEAD = 256 };

static int64_t units_of(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  return e->out[0].shape.dims[1] / a->directions;
}

static size_t packed_bytes(const sn__exec *e, int64_t k) {
  return sn__lines(sn__gemm_packed_size(e->in[0].dtype, sn__rnn_compute(e), 4 * units_of(e), k));
}

static size_t bias_bytes(const sn__exec *e) {
  return sn__lines((size_t)(4 * units_of(e)) * sn_dtype_size(e->in[0].dtype));
}

size_t sn__lstm_workspace(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  return (size_t)a->directions * (packed_bytes(e, units_of(e)) +
                                  packed_bytes(e, e->in[0].shape.dims[1]) + bias_bytes(e)) +
         sn__lines((size_t)units_of(e) * sn_dtype_size(e->in[0].dtype));
}

/* Input products of `rows` elements from `element` on. */
static sn_status input_products(const sn__scan *s, int d, int64_t element, int64_t rows) {
  const forward *f = s->user;
  const int64_t features = s->e->in[0].shape.dims[1], width = 4 * s->units;
  char *gates = (char *)s->e->out[1].data + (size_t)((d * s->n + element) * width) * s->size;
  const sn__gemm_args g = {.dtype = s->dtype,
                           .compute = s->compute,
                           .m = rows,
                           .n = width,
                           .k = features,
                           .a = (const char *)s->e->in[0].data +
                                (size_t)(element * features) * s->size,
                           .packed_b = f->input_kernel[d],
                           .bias = f->bias[d],
                           .c = gates};
  return sn__gemm(&g, NULL);
}

/* Makes the input products of the i-th step of the direction's time, and, where elements of several
 * steps lie side by side, of those behind it. Returns the first step left. */
static sn_status look_ahead(const sn__scan *s, int d, int64_t i, int64_t row, int64_t rows,
                            int64_t *out_next) {
  int64_t element = 0, count = 0;
  do {
    const sn__scan_step at = sn__scan_at(s, d, d == 0 ? i : s->length - 1 - i, row, rows);
    if (count > 0 && count + at.rows > AHEAD) break;
    if (count == 0 || d == 1) element = at.element;
    count += at.rows;
    i++;
  } while (i < s->length && rows == s->rows);
  *out_next = i;
  return input_products(s, d, element, count);
}

static sn_status forward_rows(const sn__scan *s, int d, int64_t row, int64_t rows) {
  const forward *f = s->user;
  const sn__exec *e = s->e;
  const int64_t h = s->units, ld = h * s->directions;
  char *y = (char *)e->out[0].data + (size_t)(d * h) * s->size;
  char *gates = (char *)e->out[1].data + (size_t)(d * s->n * 4 * h) * s->size;
  char *cells = (char *)e->out[2].data + (size_t)(d * s->n * h) * s->size;
  sn__gemm_args g = {.dtype = s->dtype,
                     .compute = s->compute,
                     .n = 4 * h,
                     .k = h,
                     .lda = ld,
                     .packed_b = f->kernel[d],
                     .ldb = 4 * h,
                     .accumulate = true};
  int64_t ahead = 0;
  for (int64_t i = 0; i < s->length; i++) {
    if (i == ahead) SN_TRY(look_ahead(s, d, i, row, rows, &ahead));
    const sn__scan_step at = sn__scan_at(s, d, d == 0 ? i : s->length - 1 - i, row, rows);
    if (at.rows == 0) continue;
    sn__lstm_rows r = {.units = h, .h_ld = ld, .rows = at.prev_rows, .c_prev_ld = h};
    r.gates = gates + (size_t)(at.element * 4 * h) * s->size;
    r.c = cells + (size_t)(at.element * h) * s->size;
    r.h = y + (size_t)(at.element * ld) * s->size;
    if (at.prev_rows > 0) {
      g.m = at.prev_rows;
      g.a = y + (size_t)(at.prev * ld) * s->size;
      g.c = r.gates;
      SN_TRY(sn__gemm(&g, NULL));
      r.c_prev = cells + (size_t)(at.prev * h) * s->size;
      sn__lstm_rows_run(s->dtype, &r);
    }
    if (at.rows > at.prev_rows) {
      const size_t skip = (size_t)at.prev_rows * s->size;
      r.rows = at.rows - at.prev_rows;
      r.gates = (char *)r.gates + skip * (size_t)(4 * h);
      r.c = (char *)r.c + skip * (size_t)h;
      r.h = (char *)r.h + skip * (size_t)ld;
      r.c_prev = f->zeros;
      r.c_prev_ld = 0;
      sn__lstm_rows_run(s->dtype, &r);
    }
  }
  return SN_OK;
}

sn_status sn__lstm_cpu(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const int64_t units = units_of(e), features = e->in[0].shape.dims[1];
  sn__scan s;
  SN_TRY(sn__scan_init(&s, e, &e->in[SN__RNN_STEPS], &e->in[0], units, (int)a->directions));
  if (s.n == 0) return SN_OK;
  forward f;
  char *memory = s.workspace;
  for (int d = 0; d < s.directions; d++) {
    const sn__tensor *in = &e->in[sn__rnn_input(d, 0)];
    f.kernel[d] = sn__gemm_pack_b(s.dtype, s.compute, 4 * units, units, in[SN__RNN_W_HH].data, 0,
                                  true, memory, e->team);
    memory += packed_bytes(e, units);
    f.input_kernel[d] = sn__gemm_pack_b(s.dtype, s.compute, 4 * units, features,
                                        in[SN__RNN_W_IH].data, 0, true, memory, e->team);
    memory += packed_bytes(e, features);
    sn__add_biases(s.dtype, in[SN__RNN_B_IH].data, in[SN__RNN_B_HH].data, 4 * units, memory);
    f.bias[d] = memory;
    memory += bias_bytes(e);
  }
  memset(memory, 0, (size_t)units * s.size);
  f.zeros = memory;
  s.user = &f;
  return sn__scan_run(&s, forward_rows);
}

/* ---- backward ---- */

typedef struct backward {
  const sn__gemm_packed *kernel[2];
  char *dh[2], *dc[2]; /* [rows, H], in out[1] */
  const char *zeros;
} backward;

size_t sn__lstm_grad_workspace(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const size_t size = sn_dtype_size(e->in[0].dtype);
  const int64_t units = e->in[0].shape.dims[1] / a->directions;
  return (size_t)a->directions *
             sn__lines(sn__gemm_packed_size(e->in[0].dtype, sn__rnn_compute(e), units, 4 * units)) +
         sn__lines((size_t)units * size);
}

static sn_status backward_rows(const sn__scan *s, int d, int64_t row, int64_t rows) {
  const backward *b = s->user;
  const sn__exec *e = s->e;
  const int64_t h = s->units, ld = h * s->directions;
  const char *dy = (const char *)e->in[0].data + (size_t)(d * h) * s->size;
  const char *gates = (const char *)e->in[2].data + (size_t)(d * s->n * 4 * h) * s->size;
  const char *cells = (const char *)e->in[3].data + (size_t)(d * s->n * h) * s->size;
  char *dgates = (char *)e->out[0].data + (size_t)(d * s->n * 4 * h) * s->size;
  char *dh = b->dh[d] + (size_t)(row * h) * s->size, *dc = b->dc[d] + (size_t)(row * h) * s->size;
  sn__gemm_args g = {.dtype = s->dtype,
                     .compute = s->compute,
                     .n = h,
                     .k = 4 * h,
                     .packed_b = b->kernel[d],
                     .c = dh};
  for (int64_t i = s->length - 1; i >= 0; i--) {
    const sn__scan_step at = sn__scan_at(s, d, d == 0 ? i : s->length - 1 - i, row, rows);
    if (at.rows == 0) continue;
    sn__lstm_grad_rows r = {.units = h, .dy_ld = ld, .rows = at.prev_rows, .c_prev_ld = h};
    r.gates = gates + (size_t)(at.element * 4 * h) * s->size;
    r.dgates = dgates + (size_t)(at.element * 4 * h) * s->size;
    r.c = cells + (size_t)(at.element * h) * s->size;
    r.dy = dy + (size_t)(at.element * ld) * s->size;
    r.dh = dh;
    r.dc = dc;
    g.a = r.dgates;
    if (at.prev_rows > 0) {
      r.c_prev = cells + (size_t)(at.prev * h) * s->size;
      sn__lstm_grad_rows_run(s->dtype, &r);
    }
    if (at.rows > at.prev_rows) {
      const size_t skip = (size_t)at.prev_rows * s->size;
      r.rows = at.rows - at.prev_rows;
      r.gates = (const char *)r.gates + skip * (size_t)(4 * h);
      r.dgates = (char *)r.dgates + skip * (size_t)(4 * h);
      r.c = (const char *)r.c + skip * (size_t)h;
      r.dy = (const char *)r.dy + skip * (size_t)ld;
      r.dh = dh + skip * (size_t)h;
      r.dc = dc + skip * (size_t)h;
      r.c_prev = b->zeros;
      r.c_prev_ld = 0;
      sn__lstm_grad_rows_run(s->dtype, &r);
    }
    g.m = at.prev_rows;
    SN_TRY(sn__gemm(&g, NULL));
  }
  return SN_OK;
}

sn_status sn__lstm_grad_cpu(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const int64_t units = e->in[0].shape.dims[1] / a->directions;
  sn__scan s;
  SN_TRY(sn__scan_init(&s, e, &e->in[1], &e->in[0], units, (int)a->directions));
  SN_TRY(sn__scan_fits(&s));
  backward b;
  char *memory = s.workspace, *states = e->out[1].data;
  const size_t state = (size_t)(e->out[1].shape.dims[0] * units) * s.size;
  if (state > 0) memset(states, 0, 2 * (size_t)s.directions * state);
  if (s.n == 0) return SN_OK;
  for (int d = 0; d < s.directions; d++) {
    b.kernel[d] = sn__gemm_pack_b(s.dtype, s.compute, units, 4 * units, e->in[4 + d].data, 0, false,
                                  memory, e->team);
    memory += sn__lines(sn__gemm_packed_size(s.dtype, s.compute, units, 4 * units));
    b.dh[d] = states + (size_t)(2 * d) * state;
    b.dc[d] = states + (size_t)(2 * d + 1) * state;
  }
  memset(memory, 0, (size_t)units * s.size);
  b.zeros = memory;
  s.user = &b;
  return sn__scan_run(&s, backward_rows);
}
