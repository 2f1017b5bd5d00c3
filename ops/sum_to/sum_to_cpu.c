/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/sum_to/sum_to.h"

#include <string.h>

/* The dimensions of x merged into runs that are all kept or all summed. */
typedef struct runs {
  int n;
  int64_t size[SN_MAX_RANK];
  bool summed[SN_MAX_RANK];
} runs;

static runs merge(const sn_shape *x, const sn_shape *to) {
  runs r = {0};
  for (int32_t i = 0; i < x->rank; i++) {
    int32_t own = i - (x->rank - to->rank);
    if (x->dims[i] == 1) continue;
    bool summed = own < 0 || to->dims[own] == 1;
    if (r.n > 0 && r.summed[r.n - 1] == summed) {
      r.size[r.n - 1] *= x->dims[i];
    } else {
      r.size[r.n] = x->dims[i];
      r.summed[r.n++] = summed;
    }
  }
  return r;
}

/* outer, middle, inner around summed run `at`, runs behind it not yet summed. */
static void around(const runs *r, int at, int64_t *outer, int64_t *inner) {
  *outer = *inner = 1;
  for (int i = 0; i < at; i++)
    *outer *= r->size[i];
  for (int i = at + 1; i < r->n; i++)
    *inner *= r->summed[i] ? 1 : r->size[i];
}

/* The last summed run is summed first, then the one before it..: each pass but the last writes to
 * the workspace, in halves by turns, behind the room that a pass itself needs. */
size_t sn__sum_to_workspace(const sn__exec *e) {
  runs r = merge(&e->in[0].shape, &e->out[0].shape);
  size_t pass = 0, between = 0;
  for (int i = r.n - 1; i >= 0; i--) {
    if (!r.summed[i]) continue;
    int64_t outer, inner;
    around(&r, i, &outer, &inner);
    size_t own = sn__sum_middle_workspace(outer, r.size[i], inner);
    size_t left = (size_t)(outer * inner) * sn_dtype_size(e->in[0].dtype);
    pass = own > pass ? own : pass;
    between = left > between ? left : between;
  }
  return pass + 2 * between + 3 * 64;
}

sn_status sn__sum_to_cpu(const sn__exec *e) {
  const sn__tensor *x = &e->in[0], *out = &e->out[0];
  size_t size = sn_dtype_size(x->dtype);
  if (sn__count(out) == 0) return SN_OK;
  if (sn__count(x) == 0) {
    memset(out->data, 0, (size_t)sn__count(out) * size);
    return SN_OK;
  }
  runs r = merge(&x->shape, &out->shape);
  int last = -1;
  size_t between = 0;
  for (int i = r.n - 1; i >= 0; i--) {
    if (!r.summed[i]) continue;
    int64_t outer, inner;
    around(&r, i, &outer, &inner);
    size_t left = (size_t)(outer * inner) * size;
    between = left > between ? left : between;
    last = i;
  }
  if (last < 0) {
    memcpy(out->data, x->data, (size_t)sn__count(out) * size);
    return SN_OK;
  }
  between = (between + 63) / 64 * 64;
  char *half[2] = {e->workspace, (char *)e->workspace + between};
  void *room = half[1] + between;
  const void *from = x->data;
  for (int i = r.n - 1, turn = 0; i >= last; i--) {
    if (!r.summed[i]) continue;
    int64_t outer, inner;
    around(&r, i, &outer, &inner);
    void *to = i == last ? out->data : half[turn];
    sn__sum_middle(e->team, x->dtype, from, outer, r.size[i], inner, 1.0, to, room);
    from = to;
    turn = 1 - turn;
  }
  return SN_OK;
}

typedef struct fill_job {
  const sn__exec *e;
  size_t size;
} fill_job;

static void stretch(void *arg, int64_t at, const int64_t *first, const int64_t *step, int64_t n) {
  const fill_job *job = arg;
  const char *x = (const char *)job->e->in[0].data + (size_t)first[0] * job->size;
  char *out = (char *)job->e->out[0].data + (size_t)at * job->size;
  if (step[0] != 0) {
    memcpy(out, x, (size_t)n * job->size);
  } else if (job->size == sizeof(float)) {
    float v = *(const float *)x;
    for (int64_t i = 0; i < n; i++)
      ((float *)out)[i] = v;
  } else {
    double v = *(const double *)x;
    for (int64_t i = 0; i < n; i++)
      ((double *)out)[i] = v;
  }
}

sn_status sn__broadcast_to_cpu(const sn__exec *e) {
  if (sn__count(&e->out[0]) == 0) return SN_OK;
  const sn_shape *in[] = {&e->in[0].shape};
  sn__broadcast plan = sn__broadcast_plan(&e->out[0].shape, in, 1);
  fill_job job = {e, sn_dtype_size(e->out[0].dtype)};
  sn__broadcast_run(e, &plan, 1, stretch, &job);
  return SN_OK;
}
