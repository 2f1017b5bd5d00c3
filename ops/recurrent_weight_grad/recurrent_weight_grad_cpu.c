/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/recurrent.h"

#include <string.h>

typedef struct gather_job {
  const sn__scan *scan;
  int direction;
  int64_t first; /* element */
  const char *y, *x;
  char *out;
  size_t step, bytes, x_bytes; /* x_bytes 0: x is left out */
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

/* The state before each element, zeros where there is none, and x beside it. */
static void gather_task(void *arg, int64_t begin, int64_t end) {
  const gather_job *job = arg;
  const sn__scan *s = job->scan;
  int64_t i = job->first + begin;
  char *out = job->out + (size_t)begin * (job->bytes + job->x_bytes);
  for (int64_t t = step_of(s, i); i < job->first + end; t++) {
    const sn__scan_step step = sn__scan_at(s, job->direction, t, 0, s->rows);
    for (; i < s->steps[t + 1] && i < job->first + end; i++) {
      const int64_t row = i - step.element;
      if (row < step.prev_rows)
        memcpy(out, job->y + (size_t)(step.prev + row) * job->step, job->bytes);
      else
        memset(out, 0, job->bytes);
      out += job->bytes;
      if (job->x_bytes > 0) memcpy(out, job->x + (size_t)i * job->x_bytes, job->x_bytes);
      out += job->x_bytes;
    }
  }
}

/* One piece of the elements. */
typedef struct piece {
  const sn__exec *e;
  const sn__scan *scan;
  int64_t direction;
  const char *dgates;
  int64_t pitch, first, count;
  int64_t beside; /* columns of x in the workspace's right-hand side */
  /* In the workspace: sums of the columns of dgates so far; the states before the piece's elements
   * with x beside them; the gradient of both kernels side by side. */
  double *biases;
  char *states, *joint;
} piece;

/* Biases stand where their kernels' gates do; GRU's input bias differs in the last H, whose columns
 * of dgates come fourth. */
static void biases(const piece *p, int64_t kind) {
  const sn__exec *e = p->e;
  const sn__scan *s = p->scan;
  const int64_t rows = e->out[SN__RNN_B_IH].shape.dims[0];
  char *b_ih = e->out[SN__RNN_B_IH].data;
  sn__round_sums(s->dtype, p->biases, 1, rows, e->out[SN__RNN_B_HH].data);
  sn__round_sums(s->dtype, p->biases, 1, rows, b_ih);
  if (kind == SN__GRU)
    sn__round_sums(s->dtype, p->biases + 3 * s->units, 1, s->units,
                   b_ih + (size_t)(2 * s->units) * s->size);
}

/* Of the recurrent kernel alone, or of both kernels side by side. */
static sn_status recurrent_kernel(const piece *p) {
  const sn__exec *e = p->e;
  const sn__scan *s = p->scan;
  const size_t units = (size_t)s->units;
  gather_job job = {.scan = s,
                    .direction = (int)p->direction,
                    .first = p->first,
                    .y = (const char *)e->in[2].data + (size_t)p->direction * units * s->size,
                    .x = e->in[1].data,
                    .out = p->states,
                    .step = (size_t)s->directions * units * s->size,
                    .bytes = units * s->size,
                    .x_bytes = (size_t)p->beside * s->size};
  sn__rows_run(e->team, p->count, s->units + p->beside, gather_task, &job);
  const sn__gemm_args g = {.dtype = s->dtype,
                           .compute = s->compute,
                           .m = e->out[SN__RNN_W_HH].shape.dims[0],
                           .n = s->units + p->beside,
                           .k = p->count,
                           .trans_a = true,
                           .a = p->dgates,
                           .lda = p->pitch,
                           .b = p->states,
                           .c = p->beside > 0 ? p->joint : e->out[SN__RNN_W_HH].data,
                           .accumulate = p->first > 0};
  return sn__gemm(&g, e->team);
}

/* GRU: rows [0, 2H) of the input kernel meet columns [0, 2H) of dgates, the rest the last H. */
static sn_status input_kernel(const piece *p) {
  const sn__scan *s = p->scan;
  const sn__tensor *x = &p->e->in[1];
  const int64_t features = x->shape.dims[1];
  char *out = p->e->out[SN__RNN_W_IH].data;
  sn__gemm_args g = {.dtype = s->dtype,
                     .compute = s->compute,
                     .m = 2 * s->units,
                     .n = features,
                     .k = p->count,
                     .trans_a = true,
                     .a = p->dgates,
                     .lda = p->pitch,
                     .b = (const char *)x->data + (size_t)(p->first * features) * s->size,
                     .c = out,
                     .accumulate = p->first > 0};
  SN_TRY(sn__gemm(&g, p->e->team));
  g.m = s->units;
  g.a = p->dgates + (size_t)(3 * s->units) * s->size;
  g.c = out + (size_t)(2 * s->units * features) * s->size;
  return sn__gemm(&g, p->e->team);
}

sn_status sn__recurrent_weight_grad_cpu(const sn__exec *e) {
  const sn__recurrent_attrs *a = e->attrs;
  const int64_t pitch = e->in[0].shape.dims[1] / a->directions, units = pitch / SN__RNN_TAPE;
  const int64_t features = e->in[1].shape.dims[1], most = sn__rnn_piece(pitch);
  sn__scan s;
  SN_TRY(sn__scan_init(&s, e, &e->in[3], &e->in[0], units, (int)a->directions));
  const char *dgates = (const char *)e->in[0].data + (size_t)(a->direction * s.n * pitch) * s.size;
  piece p = {.e = e,
             .scan = &s,
             .direction = a->direction,
             .pitch = pitch,
             .beside = sn__rnn_beside(a, features)};
  p.biases = e->workspace;
  p.states = (char *)e->workspace + sn__lines((size_t)pitch * sizeof *p.biases);
  p.joint = p.states + sn__lines((size_t)((s.n < most ? s.n : most) * (units + p.beside)) * s.size);
  memset(p.biases, 0, (size_t)pitch * sizeof *p.biases);
  do {
    p.dgates = dgates + (size_t)(p.first * pitch) * s.size;
    p.count = s.n - p.first < most ? s.n - p.first : most;
    /* First: it reads the piece's dgates as they lie, and leaves them in the cache. */
    sn__add_columns(s.dtype, p.dgates, p.count, pitch, pitch, p.biases, e->team);
    SN_TRY(recurrent_kernel(&p));
    if (p.beside == 0) SN_TRY(input_kernel(&p));
    p.first += p.count;
  } while (p.first < s.n);
  if (p.beside > 0) {
    const size_t h = (size_t)units * s.size, f = (size_t)features * s.size;
    sn__copy_rows(e->team, e->out[SN__RNN_W_HH].data, h, p.joint, h + f, pitch, h);
    sn__copy_rows(e->team, e->out[SN__RNN_W_IH].data, f, p.joint + h, h + f, pitch, f);
  }
  biases(&p, a->kind);
  return SN_OK;
}
