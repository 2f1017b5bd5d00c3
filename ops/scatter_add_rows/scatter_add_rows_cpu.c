/* SPDX-License-Identifier: Apache-2.0 */
/* An embedding's gradient adds up every use of a row in a batch. Each row's terms are added in f64,
 * in rising order of x, and rounded once; rows are independent, so threads change no bits. */
#include <string.h>

#include "ops/scatter_add_rows/scatter_add_rows.h"
#include "ops/vecmath.h"

typedef struct scatter_job {
  const sn__tensor *x, *out;
  const int64_t *ends, *uses; /* row r is added to by uses[ends[r - 1]] .. uses[ends[r] - 1] */
  int64_t features;
} scatter_job;

static int64_t uses_of(const sn__exec *e) {
  return sn__shape_size(&e->in[1].shape);
}

/* Where each row's uses end, behind a 0 that stands for the row before the first; then the uses. */
size_t sn__scatter_add_rows_workspace(const sn__exec *e) {
  return (size_t)(e->out[0].shape.dims[0] + 1 + uses_of(e)) * sizeof(int64_t);
}

/* Sorts uses by row, keeping their order. Counting leaves in ends[r] where row r begins; placing
 * its uses moves that to where it ends. */
static void sort_uses(const sn__tensor *indices, int64_t n, int64_t rows, int64_t *ends,
                      int64_t *uses) {
  memset(ends, 0, (size_t)(rows + 1) * sizeof *ends);
  for (int64_t i = 0; i < n; i++)
    ends[sn__index_at(indices, i) + 1]++;
  for (int64_t r = 0; r < rows; r++)
    ends[r + 1] += ends[r];
  for (int64_t i = 0; i < n; i++)
    uses[ends[sn__index_at(indices, i)]++] = i;
}

#define DEFINE_ADD(T, S)                                                                           \
  SN__CLONES static void add_##S(const T *restrict x, int64_t n, double *restrict sums) {          \
    SN__SIMD for (int64_t j = 0; j < n; j++) sums[j] += (double)x[j];                              \
  }
DEFINE_ADD(float, f32)
DEFINE_ADD(double, f64)

static void scatter_task(void *arg, int64_t begin, int64_t end) {
  const scatter_job *job = arg;
  const int64_t features = job->features;
  const sn_dtype dtype = job->out->dtype;
  const size_t size = sn_dtype_size(dtype);
  double sums[SN__SUM_COLS];
  for (int64_t row = begin; row < end; row++) {
    const int64_t first = row > 0 ? job->ends[row - 1] : 0, last = job->ends[row];
    char *out = (char *)job->out->data + (size_t)(row * features) * size;
    if (first == last) { /* most rows of a large table */
      memset(out, 0, (size_t)features * size);
      continue;
    }
    for (int64_t j = 0; j < features; j += SN__SUM_COLS) {
      const int64_t cols = features - j < SN__SUM_COLS ? features - j : SN__SUM_COLS;
      memset(sums, 0, (size_t)cols * sizeof *sums);
      for (int64_t u = first; u < last; u++) {
        const int64_t at = job->uses[u] * features + j;
        if (dtype == SN_F32)
          add_f32((const float *)job->x->data + at, cols, sums);
        else
          add_f64((const double *)job->x->data + at, cols, sums);
      }
      sn__round_sums(dtype, sums, 1, cols, out + (size_t)j * size);
    }
  }
}

sn_status sn__scatter_add_rows_cpu(const sn__exec *e) {
  const sn_shape *out = &e->out[0].shape;
  const int64_t rows = out->dims[0], n = uses_of(e);
  SN_TRY(sn__check_indices(e, &e->in[1], rows));
  int64_t *ends = e->workspace, *uses = ends + rows + 1;
  scatter_job job = {.x = &e->in[0],
                     .out = &e->out[0],
                     .ends = ends,
                     .uses = uses,
                     .features = sn__shape_span(out, 1, out->rank)};
  if (rows == 0 || job.features == 0) return SN_OK;
  sort_uses(&e->in[1], n, rows, ends, uses);
  sn__rows_run(e->team, rows, job.features + n * job.features / rows, scatter_task, &job);
  return SN_OK;
}
