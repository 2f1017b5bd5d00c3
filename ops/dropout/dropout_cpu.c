/* SPDX-License-Identifier: Apache-2.0 */
/* An element's draw is one 32-bit word of Philox for the counter (feature / 4, position in the row,
 * row of the global batch), keyed by seed, step and the node: the same whatever else is in the
 * batch, however it is cut into micro-batches, and when computed again. */
#include "ops/dropout/dropout.h"
#include "core/rng.h"

#include <string.h>

typedef struct dropout_job {
  const void *x;
  void *y;
  const int32_t *offsets; /* or NULL: every row is one element */
  int64_t features, row_base;
  sn_dtype dtype;
  sn__rng rng;
  uint32_t below; /* draws under this are dropped */
  double scale;
} dropout_job;

enum { GROUP = 8 }; /* counters drawn at a time */

/* 4 * GROUP draws for features from 4 * first on; laid out so that the rounds vectorise. */
static void draw(const dropout_job *job, uint32_t first, int64_t position, int64_t row,
                 uint32_t out[4 * GROUP]) {
  uint32_t c0[GROUP], c1[GROUP], c2[GROUP], c3[GROUP];
  uint32_t k0 = job->rng.key[0], k1 = job->rng.key[1];
  for (uint32_t i = 0; i < GROUP; i++) {
    c0[i] = first + i;
    c1[i] = (uint32_t)position;
    c2[i] = (uint32_t)(uint64_t)row;
    c3[i] = (uint32_t)((uint64_t)row >> 32);
  }
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < GROUP; i++) {
      const uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
      c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
      c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = (uint32_t)p1;
      c3[i] = (uint32_t)p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < GROUP; i++) {
    out[4 * i] = c0[i];
    out[4 * i + 1] = c1[i];
    out[4 * i + 2] = c2[i];
    out[4 * i + 3] = c3[i];
  }
}

static void drop_element(const dropout_job *job, int64_t element, int64_t position, int64_t row) {
  uint32_t draws[4 * GROUP];
  for (int64_t j = 0; j < job->features; j += 4 * GROUP) {
    const int64_t at = element * job->features + j;
    const int64_t n = job->features - j < 4 * GROUP ? job->features - j : 4 * GROUP;
    draw(job, (uint32_t)(j / 4), position, row, draws);
    if (job->dtype == SN_F32) {
      const float *x = (const float *)job->x + at, scale = (float)job->scale;
      float *y = (float *)job->y + at;
      for (int64_t k = 0; k < n; k++)
        y[k] = draws[k] < job->below ? 0 : x[k] * scale;
    } else {
      const double *x = (const double *)job->x + at;
      double *y = (double *)job->y + at;
      for (int64_t k = 0; k < n; k++)
        y[k] = draws[k] < job->below ? 0 : x[k] * job->scale;
    }
  }
}

static void dropout_task(void *arg, int64_t begin, int64_t end) {
  const dropout_job *job = arg;
  for (int64_t r = begin; r < end; r++) {
    const int64_t first = job->offsets != NULL ? job->offsets[r] : r;
    const int64_t last = job->offsets != NULL ? job->offsets[r + 1] : r + 1;
    for (int64_t i = first; i < last; i++)
      drop_element(job, i, i - first, job->row_base + r);
  }
}

sn_status sn__dropout_cpu(const sn__exec *e) {
  const sn__dropout_attrs *a = e->attrs;
  const sn__step *step = e->step;
  const sn_shape *x = &e->in[0].shape;
  const int64_t n = sn__shape_size(x);
  if (n == 0) return SN_OK;
  const size_t size = sn_dtype_size(e->in[0].dtype);
  if (step == NULL || !step->training || a->rate <= 0) {
    sn__copy_rows(e->team, e->out[0].data, size, e->in[0].data, size, n, size);
    return SN_OK;
  }
  const bool ragged = e->n_in > 1 && e->in[1].data != NULL;
  dropout_job job = {
      .x = e->in[0].data,
      .y = e->out[0].data,
      .offsets = ragged ? e->in[1].data : NULL,
      .features = sn__shape_span(x, 1, x->rank),
      .row_base = step->row_base,
      .dtype = e->in[0].dtype,
      .rng = sn__rng_make(step->seed, e->rng_key ^ sn__mix64((uint64_t)step->step)),
      .below = (uint32_t)(a->rate * 0x1p32),
      .scale = 1 / (1 - a->rate),
  };
  const int64_t rows = ragged ? e->in[1].shape.dims[0] - 1 : x->dims[0];
  if (rows > 0) sn__rows_run(e->team, rows, 8 * (n / rows + 1), dropout_task, &job);
  return SN_OK;
}
