/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing the rows and directions of a recurrent op out to the team. */
#include "ops/recurrent/recurrent.h"

#include <stdatomic.h>

enum { MOST_STRETCHES = 64, LEAST_ROWS = 8 };
/* Bytes of a stretch's gates in one step that stay in a level-2 cache beside the packed kernels. */
#define STEP_BYTES ((int64_t)256 << 10)
/* Multiplications of the recurrent product below which one thread is faster. */
#define SCAN_WORK  100000

sn_status sn__scan_init(sn__scan *s, const sn__exec *e, const sn__tensor *steps,
                        const sn__tensor *x, int64_t units, int directions) {
  *s = (sn__scan){.e = e,
                  .dtype = x->dtype,
                  .compute = sn__rnn_compute(e),
                  .size = sn_dtype_size(x->dtype),
                  .n = x->shape.dims[0],
                  .length = steps->shape.dims[0] - 1,
                  .units = units,
                  .directions = directions,
                  .steps = steps->data,
                  .workspace = e->workspace};
  /* Trailing empty steps are legal: the longest row may be shorter than the extent says. */
  bool ok = s->length >= 0 && s->steps[0] == 0 && s->steps[s->length] == s->n;
  for (int64_t t = 0; ok && t < s->length; t++)
    ok = sn__scan_rows(s, t) >= 0 && (t == 0 || sn__scan_rows(s, t) <= sn__scan_rows(s, t - 1));
  if (!ok)
    return sn_status_make(
        SN_CODE_DATA, "%s: steps are not the rows left at each step, adding up to %lld elements",
        e->op != NULL ? e->op->name : "recurrent", (long long)s->n);
  while (s->length > 0 && sn__scan_rows(s, s->length - 1) == 0)
    s->length--;
  s->rows = s->length > 0 ? sn__scan_rows(s, 0) : 0;
  return SN_OK;
}

sn_status sn__scan_fits(const sn__scan *s) {
  const int64_t room = s->e->out[1].shape.dims[0];
  if (s->rows <= room) return SN_OK;
  return sn_status_make(
      SN_CODE_DATA, "%s: the first step has %lld rows, more than the batch's %lld",
      s->e->op != NULL ? s->e->op->name : "recurrent", (long long)s->rows, (long long)room);
}

static int64_t clamp(int64_t x, int64_t high) {
  return x < 0 ? 0 : x > high ? high : x;
}

sn__scan_step sn__scan_at(const sn__scan *s, int direction, int64_t t, int64_t row, int64_t rows) {
  sn__scan_step step = {0};
  step.rows = clamp(sn__scan_rows(s, t) - row, rows);
  step.element = s->steps[t] + row;
  const int64_t before = direction == 0 ? t - 1 : t + 1;
  if (before >= 0 && before < s->length) {
    step.prev_rows = clamp(sn__scan_rows(s, before) - row, step.rows);
    step.prev = s->steps[before] + row;
  }
  return step;
}

typedef struct scan_job {
  const sn__scan *scan;
  sn__scan_fn fn;
  int stretches; /* of each direction */
  int64_t bounds[MOST_STRETCHES + 1];
  _Atomic(sn_status) status;
} scan_job;

static void scan_task(void *arg, int64_t index, int worker) {
  (void)worker;
  scan_job *job = arg;
  const int direction = (int)(index % job->scan->directions);
  const int64_t i = index / job->scan->directions;
  /* Each step is a small product. */
  const bool hold = job->scan->compute == SN_BF16;
  if (hold) sn__gemm_hold();
  sn_status status =
      job->fn(job->scan, direction, job->bounds[i], job->bounds[i + 1] - job->bounds[i]);
  if (hold) sn__gemm_let_go();
  if (status != SN_OK) sn_status_free(atomic_exchange(&job->status, status));
}

/* Elements of rows [0, row). */
static int64_t elements_before(const sn__scan *s, int64_t row) {
  int64_t sum = 0;
  for (int64_t t = 0; t < s->length; t++)
    sum += clamp(sn__scan_rows(s, t), row);
  return sum;
}

/* Stretches of rows with about equally many elements: the first rows are the longest. */
static void cut_rows(scan_job *job, int stretches) {
  const sn__scan *s = job->scan;
  job->bounds[0] = 0;
  for (int i = 1; i < stretches; i++) {
    int64_t low = job->bounds[i - 1], high = s->rows;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (elements_before(s, middle) * stretches < s->n * i)
        low = middle + 1;
      else
        high = middle;
    }
    job->bounds[i] = low;
  }
  job->bounds[stretches] = s->rows;
  job->stretches = stretches;
}

sn_status sn__scan_run(const sn__scan *s, sn__scan_fn fn) {
  if (s->rows == 0 || s->units == 0) return SN_OK;
  sn__team *team = s->e->team;
  const int threads = sn__team_threads(team);
  if (s->n * s->units * s->units < SCAN_WORK) team = NULL;
  int64_t stretches = team == NULL ? 1 : (threads + s->directions - 1) / s->directions;
  if (stretches > 1 && threads % s->directions != 0) stretches *= 2;
  const int64_t step = s->rows * SN__RNN_TAPE * s->units * (int64_t)s->size;
  if (stretches * STEP_BYTES < step) stretches = step / STEP_BYTES;
  const int64_t most = s->rows / LEAST_ROWS;
  if (stretches > most) stretches = most;
  if (stretches > MOST_STRETCHES) stretches = MOST_STRETCHES;
  if (stretches < 1) stretches = 1;
  scan_job job = {.scan = s, .fn = fn};
  cut_rows(&job, (int)stretches);
  sn__team_run(team, stretches * s->directions, scan_task, &job);
  return atomic_load(&job.status);
}

void sn__add_biases(sn_dtype dtype, const void *a, const void *b, int64_t n, void *out) {
  for (int64_t i = 0; i < n; i++) {
    if (dtype == SN_F32)
      ((float *)out)[i] =
          (a != NULL ? ((const float *)a)[i] : 0) + (b != NULL ? ((const float *)b)[i] : 0);
    else
      ((double *)out)[i] =
          (a != NULL ? ((const double *)a)[i] : 0) + (b != NULL ? ((const double *)b)[i] : 0);
  }
}
