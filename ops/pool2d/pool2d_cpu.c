/* SPDX-License-Identifier: Apache-2.0 */
/* A task is a row of windows (forward) or a block of channels of one image (backward), which no
 * other task writes to; windows and pixels are walked in rising order, whatever the threads. */
#include "ops/pool2d/pool2d.h"

#include <string.h>

#include "ops/vecmath.h"

enum { BLOCK = 64 /* channels done at a time backward */ };

typedef struct pool_job {
  const sn__pool2d_attrs *a;
  const void *x, *y, *dy;
  void *out;
  int64_t h, w, channels; /* of x */
  int64_t oh, ow;         /* of y */
} pool_job;

/* The pixels of a window that the image has: rows [top, bottom), columns [left, right). */
typedef struct window {
  int64_t top, bottom, left, right;
} window;

static int64_t clip(int64_t x, int64_t most) {
  return x < 0 ? 0 : x > most ? most : x;
}

static window window_at(const pool_job *job, int64_t i, int64_t j) {
  const sn__pool2d_attrs *a = job->a;
  const int64_t y = i * a->stride_h - a->padding_h, x = j * a->stride_w - a->padding_w;
  return (window){clip(y, job->h), clip(y + a->kernel_h, job->h), clip(x, job->w),
                  clip(x + a->kernel_w, job->w)};
}

/* What a mean is divided by; 0 where there is nothing to add up. */
static int64_t divisor(const pool_job *job, const window *v) {
  if (v->bottom <= v->top || v->right <= v->left) return 0;
  return job->a->count_include_pad != 0 ? job->a->kernel_h * job->a->kernel_w
                                        : (v->bottom - v->top) * (v->right - v->left);
}

#define REAL    float
#define NAME(n) n##_f32
#include "ops/pool2d/pool2d_cpu.inc"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(n) n##_f64
#include "ops/pool2d/pool2d_cpu.inc"
#undef REAL
#undef NAME

static pool_job job_of(const sn__exec *e, const sn__tensor *x, const sn__tensor *y) {
  const int64_t *d = x->shape.dims, *o = y->shape.dims;
  return (pool_job){.a = e->attrs,
                    .out = e->out[0].data,
                    .h = d[1],
                    .w = d[2],
                    .channels = d[3],
                    .oh = o[1],
                    .ow = o[2]};
}

/* Pixels of a window that an image can have. */
static int64_t taps(const pool_job *job) {
  return clip(job->a->kernel_h, job->h) * clip(job->a->kernel_w, job->w);
}

static void forward(const sn__exec *e, sn__rows_fn f32, sn__rows_fn f64) {
  const sn__tensor *x = &e->in[0], *y = &e->out[0];
  pool_job job = job_of(e, x, y);
  job.x = x->data;
  if (sn__count(y) == 0) return;
  sn__rows_run(e->team, y->shape.dims[0] * job.oh, job.ow * job.channels * taps(&job),
               x->dtype == SN_F32 ? f32 : f64, &job);
}

static void backward(const sn__exec *e, pool_job *job, sn__rows_fn f32, sn__rows_fn f64) {
  const sn__tensor *dx = &e->out[0];
  job->dy = e->in[0].data;
  if (sn__count(dx) == 0) return;
  const int64_t blocks = (job->channels + BLOCK - 1) / BLOCK;
  sn__rows_run(e->team, dx->shape.dims[0] * blocks, job->oh * job->ow * BLOCK * taps(job),
               dx->dtype == SN_F32 ? f32 : f64, job);
}

sn_status sn__max_pool2d_cpu(const sn__exec *e) {
  forward(e, max_task_f32, max_task_f64);
  return SN_OK;
}

sn_status sn__avg_pool2d_cpu(const sn__exec *e) {
  forward(e, avg_task_f32, avg_task_f64);
  return SN_OK;
}

sn_status sn__max_pool2d_grad_cpu(const sn__exec *e) {
  pool_job job = job_of(e, &e->in[1], &e->in[2]);
  job.x = e->in[1].data;
  job.y = e->in[2].data;
  backward(e, &job, max_grad_task_f32, max_grad_task_f64);
  return SN_OK;
}

sn_status sn__avg_pool2d_grad_cpu(const sn__exec *e) {
  pool_job job = job_of(e, &e->out[0], &e->in[0]);
  backward(e, &job, avg_grad_task_f32, avg_grad_task_f64);
  return SN_OK;
}
