/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/recurrent.h"

#include <string.h>

typedef struct gather_job {
  const sn__scan *scan;
  int direction;
  int64_t first; /* element */
  const char *y;
  char *out;
  size_t step, bytes;
} gather_job;

/* The step that holds element i. */
static int64_t step_of(const sn__scan *s, int64_t i) {
  int64_t low = 0, high = s->length - 1;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (s->steps[middle] <= i)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* The state before each element: zeros where there is none. */
static void gather_task(void *arg, int64_t begin, int64_t end) {
  const gather_job *job = arg;
  const sn__scan *s = job->scan;
  int64_t i = job->first + begin;
  char *out = job->out + (size_t)begin * job->bytes;
  for (int64_t t = step_of(s, i); i < job->first + end; t++) {
    const sn__scan_step step = sn__scan_at(s, job->direction, t, 0, s->rows);
    for (; i < s->steps[t + 1] && i < job->first + end; i++, out += job->bytes) {
      const int64_t row = i - step.element;
      if (row < step.prev_rows)
        memcpy(out, job->y + (size_t)(step.prev + row) * job->step, job->bytes);
      else
        memset(out, 0, job->bytes);
    }
  }
}

static sn_status recurrent_kernel(const sn__exec *e, const sn__scan *s, const char *dgates,
                                  int64_t pitch) {
  const sn__recurrent_attrs *a = e->attrs;
  const size_t units = (size_t)s->units;
  sn__gemm_args g = {.dtype = s->dtype,
                     .m = e->out[SN__RNN_W_HH].shape.dims[0],
                     .n = s->units,
                     .trans_a = true,
                     .lda = pitch,
                     .b = e->workspace,
                     .c = e->out[SN__RNN_W_HH].data};
  int64_t i = 0;
  do {
    g.k = s->n - i < SN__RNN_GATHER ? s->n - i : SN__RNN_GATHER;
    gather_job job = {.scan = s,
                      .direction = (int)a->direction,
                      .first = i,
                      .y = (const char *)e->in[2].data + (size_t)a->direction * units * s->size,
                      .out = e->workspace,
                      .step = (size_t)s->directions * units * s->size,
                      .bytes = units * s->size};
    sn__rows_run(e->team, g.k, s->units, gather_task, &job);
    g.a = dgates + (size_t)(i * pitch) * s->size;
    g.accumulate = i > 0;
    SN_TRY(sn__gemm(&g, e->team));
    i += g.k;
  } while (i < s->n);
  return SN_OK;
}

/* Rows [0, cut) of the input kernel meet columns [0, cut) of dgates, the rest columns [4H - rest,
 * 4H): one piece for LSTM, two for GRU. */
static sn_status input_kernel(const sn__exec *e, const sn__scan *s, const char *dgates,
                              int64_t pitch) {
  const sn__tensor *x = &e->in[1];
  const int64_t rows = e->out[SN__RNN_W_IH].shape.dims[0], features = x->shape.dims[1];
  const int64_t cut = rows == pitch ? rows : 2 * s->units, rest = rows - cut;
  sn__gemm_args g = {.dtype = s->dtype,
                     .m = cut,
                     .n = features,
                     .k = s->n,
                     .trans_a = true,
                     .a = dgates,
                     .lda = pitch,
                     .b = x->data,
                     .c = e->out[SN__RNN_W_IH].data};
  SN_TRY(sn__gemm(&g, e->team));
  if (rest == 0) return SN_OK;
  g.m = rest;
  g.a = dgates + (size_t)(pitch - rest) * s->size;
  g.c = (char *)e->out[SN__RNN_W_IH].data + (size_t)(cut * features) * s->size;
  return sn__gemm(&g, e->team);
}

sn_status sn__recurrent_weight_grad_cpu(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const int64_t pitch = e->in[0].shape.dims[1] / a->directions, units = pitch / SN__RNN_TAPE;
  sn__scan s;
  SN_TRY(sn__scan_init(&s, e, &e->in[3], &e->in[0], units, (int)a->directions));
  const char *dgates = (const char *)e->in[0].data + (size_t)(a->direction * s.n * pitch) * s.size;
  SN_TRY(recurrent_kernel(e, &s, dgates, pitch));
  SN_TRY(input_kernel(e, &s, dgates, pitch));
  /* The biases stand where their kernels' gates do. */
  char *b_ih = e->out[SN__RNN_B_IH].data, *b_hh = e->out[SN__RNN_B_HH].data;
  const int64_t rows = e->out[SN__RNN_B_IH].shape.dims[0];
  sn__column_sums(s.dtype, dgates, s.n, rows, pitch, b_hh, e->team);
  memcpy(b_ih, b_hh, (size_t)rows * s.size);
  if (a->kind == SN__GRU)
    sn__column_sums(s.dtype, dgates + (size_t)(3 * units) * s.size, s.n, units, pitch,
                    b_ih + (size_t)(2 * units) * s.size, e->team);
  return SN_OK;
}
