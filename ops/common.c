/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/common.h"

#include <stdio.h>
#include <string.h>

/* ---- chunks of work ------------------------------------------------------------------------- */

typedef struct range_job {
  sn__range_fn fn;
  void *arg;
  int64_t n, grain;
} range_job;

static void range_task(void *arg, int64_t index, int worker) {
  const range_job *job = arg;
  int64_t begin = index * job->grain, end = begin + job->grain;
  job->fn(job->arg, begin, end < job->n ? end : job->n, worker);
}

void sn__for_range(sn__team *team, int64_t n, int64_t grain, sn__range_fn fn, void *arg) {
  if (n <= 0) return;
  range_job job = {fn, arg, n, grain};
  int64_t chunks = (n + grain - 1) / grain;
  if (chunks == 1)
    fn(arg, 0, n, 0);
  else
    sn__team_run(team, chunks, range_task, &job);
}

int64_t sn__row_grain(int64_t width) {
  int64_t rows = SN__GRAIN / (width > 0 ? width : 1);
  return rows > 0 ? rows : 1;
}

/* ---- broadcasting --------------------------------------------------------------------------- */

const char *sn__dim_text(const sn_graph *g, int64_t dim, char *buffer, size_t size) {
  sn_shape one = {1, {dim}};
  char text[160];
  sn_shape_text(g, &one, text, sizeof text);
  size_t n = strlen(text);
  if (n >= 2) snprintf(buffer, size, "%.*s", (int)(n - 2), text + 1);
  return buffer;
}

const char *sn__shape_words(const sn__infer *c, const sn_shape *shape, char *buffer, size_t size) {
  return sn_shape_text(c->graph, shape, buffer, size);
}

sn_status sn__infer_broadcast(const sn__infer *c, const sn_shape *a, const sn_shape *b,
                              sn_shape *out) {
  const sn_shape *longer = a->rank >= b->rank ? a : b;
  sn_shape shape = *longer;
  for (int32_t i = 1; i <= shape.rank; i++) {
    int64_t da = i <= a->rank ? a->dims[a->rank - i] : 1;
    int64_t db = i <= b->rank ? b->dims[b->rank - i] : 1;
    if (da != db && da != 1 && db != 1) {
      char ta[160], tb[160], sa[64], sb[64];
      return sn__infer_fail(
          c,
          "shapes %s and %s do not go together: at dimension %d from the end one has %s and the "
          "other %s; they must be equal or 1",
          sn__shape_words(c, a, ta, sizeof ta), sn__shape_words(c, b, tb, sizeof tb), i,
          sn__dim_text(c->graph, da, sa, sizeof sa), sn__dim_text(c->graph, db, sb, sizeof sb));
    }
    shape.dims[shape.rank - i] = da == 1 ? db : da;
  }
  *out = shape;
  return SN_OK;
}

/* Stride of operand `s` at output dimension i (of `rank`), 0 where it is stretched. */
static int64_t stride_at(const sn_shape *s, int32_t rank, int32_t i) {
  int32_t own = i - (rank - s->rank);
  if (own < 0 || s->dims[own] == 1) return 0;
  return sn__shape_span(s, own + 1, s->rank);
}

sn__broadcast sn__broadcast_plan(const sn_shape *out, const sn_shape *const *in, int n_in) {
  sn__broadcast p = {.rank = 0};
  for (int32_t i = 0; i < out->rank; i++) {
    if (out->dims[i] == 1) continue;
    bool merge = p.rank > 0;
    for (int k = 0; k < n_in; k++) {
      int64_t stride = stride_at(in[k], out->rank, i);
      if (merge && p.strides[k][p.rank - 1] != stride * out->dims[i]) merge = false;
      p.strides[k][p.rank] = stride;
    }
    p.dims[p.rank] = out->dims[i];
    if (merge) {
      p.dims[p.rank - 1] *= out->dims[i];
      for (int k = 0; k < n_in; k++)
        p.strides[k][p.rank - 1] = p.strides[k][p.rank];
    } else {
      p.rank++;
    }
  }
  if (p.rank == 0) {
    p.rank = 1;
    p.dims[0] = 1;
    for (int k = 0; k < n_in; k++)
      p.strides[k][0] = 0;
  }
  return p;
}

typedef struct broadcast_job {
  const sn__broadcast *plan;
  int n_in;
  sn__stretch_fn fn;
  void *arg;
} broadcast_job;

/* Stretches of the last dimension, rows [begin, end) of all the others. */
static void broadcast_rows(void *arg, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const broadcast_job *job = arg;
  const sn__broadcast *p = job->plan;
  int64_t at[SN_MAX_RANK] = {0}, step[SN__BROADCAST_MOST] = {0}, rest = begin;
  for (int32_t i = p->rank - 2; i >= 0; i--) {
    at[i] = rest % p->dims[i];
    rest /= p->dims[i];
  }
  int64_t width = p->dims[p->rank - 1];
  for (int k = 0; k < job->n_in; k++)
    step[k] = p->strides[k][p->rank - 1];
  for (int64_t row = begin; row < end; row++) {
    int64_t first[SN__BROADCAST_MOST] = {0};
    for (int k = 0; k < job->n_in; k++)
      for (int32_t i = 0; i < p->rank - 1; i++)
        first[k] += at[i] * p->strides[k][i];
    job->fn(job->arg, row * width, first, step, width);
    for (int32_t i = p->rank - 2; i >= 0 && ++at[i] == p->dims[i]; i--)
      at[i] = 0;
  }
}

static void broadcast_flat(void *arg, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const broadcast_job *job = arg;
  int64_t first[SN__BROADCAST_MOST] = {0}, step[SN__BROADCAST_MOST] = {0};
  for (int k = 0; k < job->n_in; k++) {
    step[k] = job->plan->strides[k][0];
    first[k] = begin * step[k];
  }
  job->fn(job->arg, begin, first, step, end - begin);
}

void sn__broadcast_run(const sn__exec *e, const sn__broadcast *plan, int n_in, sn__stretch_fn fn,
                       void *arg) {
  broadcast_job job = {plan, n_in, fn, arg};
  if (plan->rank == 1) {
    sn__for_range(e->team, plan->dims[0], SN__GRAIN, broadcast_flat, &job);
    return;
  }
  int64_t rows = 1;
  for (int32_t i = 0; i < plan->rank - 1; i++)
    rows *= plan->dims[i];
  if (plan->dims[plan->rank - 1] == 0) return;
  sn__for_range(e->team, rows, sn__row_grain(plan->dims[plan->rank - 1]), broadcast_rows, &job);
}

/* ---- checks --------------------------------------------------------------------------------- */

sn_status sn__need_precision(const sn__infer *c, int64_t precision) {
  if (precision == SN_PRECISION_F32 || precision == SN_PRECISION_BF16) return SN_OK;
  return sn__infer_fail(c, "precision %lld is unknown here", (long long)precision);
}

sn_status sn__need_float(const sn__infer *c, int input, const char *what) {
  sn_dtype t = c->in[input].dtype;
  if (t == SN_F32 || t == SN_F64) return SN_OK;
  return sn__infer_fail(c, "%s is %s; it must be f32 (or f64 for checking): cast it first", what,
                        sn_dtype_name(t));
}

sn_status sn__need_same_dtype(const sn__infer *c, int a, const char *what_a, int b,
                              const char *what_b) {
  if (c->in[a].dtype == c->in[b].dtype) return SN_OK;
  return sn__infer_fail(c, "%s is %s and %s is %s; they must be the same: cast one of them", what_a,
                        sn_dtype_name(c->in[a].dtype), what_b, sn_dtype_name(c->in[b].dtype));
}

sn_status sn__need_same_shape(const sn__infer *c, int a, const char *what_a, int b,
                              const char *what_b) {
  if (sn_shape_equal(&c->in[a].shape, &c->in[b].shape)) return SN_OK;
  char ta[160], tb[160];
  return sn__infer_fail(c, "%s has shape %s and %s has %s; they must be equal", what_a,
                        sn__shape_words(c, &c->in[a].shape, ta, sizeof ta), what_b,
                        sn__shape_words(c, &c->in[b].shape, tb, sizeof tb));
}

sn_status sn__infer_like_first(sn__infer *c) {
  for (int o = 0; o < c->n_out; o++)
    c->out[o] = c->in[0];
  return SN_OK;
}

sn_status sn__infer_float_like_first(sn__infer *c) {
  SN_TRY(sn__need_float(c, 0, "the input"));
  return sn__infer_like_first(c);
}

/* ---- costs ---------------------------------------------------------------------------------- */

double sn__cost_bytes(const sn__exec *e) {
  double bytes = 0;
  for (int i = 0; i < e->n_in; i++)
    if (e->in[i].dtype != SN_DTYPE_NONE)
      bytes += (double)sn__count(&e->in[i]) * (double)sn_dtype_size(e->in[i].dtype);
  for (int i = 0; i < e->n_out; i++)
    bytes += (double)sn__count(&e->out[i]) * (double)sn_dtype_size(e->out[i].dtype);
  return bytes;
}

void sn__cost_elements(const sn__exec *e, double flops, sn__cost *out) {
  out->flops = flops * (double)sn__count(&e->out[0]);
  out->bytes = sn__cost_bytes(e);
}
