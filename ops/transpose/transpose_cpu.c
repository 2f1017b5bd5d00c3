/* SPDX-License-Identifier: Apache-2.0 */
/* The two innermost places matter: y's last dimension, and whichever of x's is innermost. They are
 * walked in squares that fit the first cache; the dimensions around them are counted through. */
#include "ops/transpose/transpose.h"

#include <string.h>

enum { SIDE = 16 };

typedef struct transpose_job {
  const char *x;
  char *y;
  size_t size;
  int32_t rank;
  int64_t dims[SN_MAX_RANK];  /* of y */
  int64_t steps[SN_MAX_RANK]; /* in x, elements */
} transpose_job;

/* Where row r of y begins in x. */
static int64_t place(const transpose_job *job, int64_t r) {
  int64_t at = 0;
  for (int32_t i = job->rank - 2; i >= 0; i--) {
    at += r % job->dims[i] * job->steps[i];
    r /= job->dims[i];
  }
  return at;
}

#define SQUARE(T)                                                                                  \
  do {                                                                                             \
    const T *x = (const T *)(const void *)job->x;                                                  \
    T *y = (T *)(void *)job->y;                                                                    \
    for (int64_t j = 0; j < cols; j += SIDE) {                                                     \
      const int64_t high = cols - j < SIDE ? cols - j : SIDE;                                      \
      for (int64_t r = 0; r < n; r++)                                                              \
        for (int64_t k = j; k < j + high; k++)                                                     \
          y[(begin + r) * cols + k] = x[from[r] + k * step];                                       \
    }                                                                                              \
  } while (0)

static void transpose_rows(const transpose_job *job, int64_t begin, int64_t n) {
  const int64_t cols = job->dims[job->rank - 1], step = job->steps[job->rank - 1];
  int64_t from[SIDE];
  for (int64_t r = 0; r < n; r++)
    from[r] = place(job, begin + r);
  if (step == 1) {
    for (int64_t r = 0; r < n; r++)
      memcpy(job->y + (size_t)((begin + r) * cols) * job->size,
             job->x + (size_t)from[r] * job->size, (size_t)cols * job->size);
    return;
  }
  switch (job->size) {
  case 1: SQUARE(uint8_t); break;
  case 2: SQUARE(uint16_t); break;
  case 4: SQUARE(uint32_t); break;
  default: SQUARE(uint64_t); break;
  }
}

static void transpose_task(void *arg, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; r += SIDE)
    transpose_rows(arg, r, end - r < SIDE ? end - r : SIDE);
}

sn_status sn__transpose_cpu(const sn__exec *e) {
  const sn__transpose_attrs *a = e->attrs;
  const sn_shape *x = &e->in[0].shape, *y = &e->out[0].shape;
  if (sn__shape_size(y) == 0) return SN_OK;
  transpose_job job = {.x = e->in[0].data,
                       .y = e->out[0].data,
                       .size = sn_dtype_size(e->in[0].dtype),
                       .rank = y->rank};
  if (y->rank == 0) {
    memcpy(job.y, job.x, job.size);
    return SN_OK;
  }
  for (int32_t i = 0; i < y->rank; i++) {
    job.dims[i] = y->dims[i];
    job.steps[i] = sn__shape_span(x, (int32_t)a->axes.v[i] + 1, x->rank);
  }
  sn__rows_run(e->team, sn__shape_span(y, 0, y->rank - 1), job.dims[y->rank - 1], transpose_task,
               &job);
  return SN_OK;
}
