/* SPDX-License-Identifier: Apache-2.0 */
/* Times the convolution and its two gradients, and the pools, on the shapes that image models meet.
 *
 *   bench_conv [--threads N] [--runs N] [--only SHAPE] [--json]
 *
 * Medians; with one thread of the processor's time, which other work on the machine does not count
 * into, else of the wall clock's. tools/bench_conv_torch.py times PyTorch on the same shapes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/alloc.h"
#include "ops/conv2d/conv2d.h"
#include "ops/pool2d/pool2d.h"

typedef struct shape {
  int64_t images, side, in, out, kernel, stride; /* out 0: a pool */
} shape;

/* As in bench_conv_torch.py. */
static const shape shapes[] = {
    {32, 28, 64, 96, 3, 1},  {32, 28, 192, 64, 1, 1}, {32, 28, 16, 32, 5, 1},
    {32, 28, 96, 128, 3, 1}, {32, 56, 64, 64, 3, 2},  {64, 8, 1, 32, 3, 1},
    {32, 28, 64, 0, 3, 1},
};

enum { MOST_RUNS = 501 };

static clockid_t timer = CLOCK_PROCESS_CPUTIME_ID;

static double now(void) {
  struct timespec t;
  clock_gettime(timer, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static sn__tensor tensor(int64_t a, int64_t b, int64_t c, int64_t d) {
  sn__tensor t = {NULL, SN_F32, SN_SHAPE(a, b, c, d)};
  const int64_t n = sn__shape_size(&t.shape);
  float *x = sn__alloc_aligned((size_t)n * sizeof *x + 64, 64);
  if (x == NULL) abort();
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)(i * 7919 % 1000) * 0.001f - 0.5f;
  t.data = x;
  return t;
}

/* Seconds of the median run. */
static double time_op(const sn_op_def *op, const void *attrs, const sn__tensor *in, int n_in,
                      const sn__tensor *out, sn__team *team, int runs) {
  sn__exec e = {
      .op = op, .attrs = attrs, .in = in, .n_in = n_in, .out = out, .n_out = 1, .team = team};
  const size_t bytes = op->workspace == NULL ? 0 : op->workspace(&e);
  e.workspace = sn__alloc_aligned(bytes + 64, 64);
  if (e.workspace == NULL) abort();
  static double times[MOST_RUNS];
  for (int r = -2; r < runs; r++) {
    const double began = now();
    if (op->cpu(&e) != SN_OK) abort();
    if (r >= 0) times[r] = now() - began;
  }
  sn__free(e.workspace);
  qsort(times, (size_t)runs, sizeof *times, by_size);
  return times[runs / 2];
}

static void say(const shape *s, const char *what, double seconds, double flops, bool json) {
  char name[80];
  if (s->out > 0)
    snprintf(name, sizeof name, "%dx%dx%dx%d %dx%d/%d to %d", (int)s->images, (int)s->side,
             (int)s->side, (int)s->in, (int)s->kernel, (int)s->kernel, (int)s->stride, (int)s->out);
  else
    snprintf(name, sizeof name, "%dx%dx%dx%d pool %dx%d/%d", (int)s->images, (int)s->side,
             (int)s->side, (int)s->in, (int)s->kernel, (int)s->kernel, (int)s->stride);
  if (json)
    printf("{\"shape\": \"%s\", \"what\": \"%s\", \"ms\": %.4f, \"gflops\": %.2f}\n", name, what,
           seconds * 1e3, flops / seconds * 1e-9);
  else
    printf("%-32s %-12s %9.3f ms %8.1f GFLOP/s\n", name, what, seconds * 1e3,
           flops / seconds * 1e-9);
  fflush(stdout);
}

static void time_conv(const shape *s, sn__team *team, int runs, bool json) {
  const int64_t pad = s->kernel / 2, out = (s->side + 2 * pad - s->kernel) / s->stride + 1;
  sn__tensor x = tensor(s->images, s->side, s->side, s->in);
  sn__tensor w = tensor(s->kernel, s->kernel, s->in, s->out);
  sn__tensor y = tensor(s->images, out, out, s->out);
  sn__conv2d_attrs a = {
      .stride_h = s->stride, .stride_w = s->stride, .padding_h = pad, .padding_w = pad};
  const double flops = 2.0 * (double)(s->images * out * out) * (double)sn__shape_size(&w.shape);
  const sn__tensor forward[] = {x, w}, input[] = {y, w}, weight[] = {x, y};
  say(s, "forward", time_op(&sn__op_conv2d, &a, forward, 2, &y, team, runs), flops, json);
  a.height = a.width = s->side;
  say(s, "input grad", time_op(&sn__op_conv2d_input_grad, &a, input, 2, &x, team, runs), flops,
      json);
  a.height = a.width = s->kernel;
  say(s, "weight grad", time_op(&sn__op_conv2d_weight_grad, &a, weight, 2, &w, team, runs), flops,
      json);
  sn__free(x.data);
  sn__free(w.data);
  sn__free(y.data);
}

static void time_pool(const shape *s, sn__team *team, int runs, bool json) {
  const int64_t pad = s->kernel / 2, out = (s->side + 2 * pad - s->kernel) / s->stride + 1;
  sn__tensor x = tensor(s->images, s->side, s->side, s->in), dx = x;
  sn__tensor y = tensor(s->images, out, out, s->in), dy = tensor(s->images, out, out, s->in);
  dx.data = tensor(s->images, s->side, s->side, s->in).data;
  sn__pool2d_attrs a = {s->kernel, s->kernel, s->stride, s->stride, pad, pad, 0, s->side, s->side};
  const double flops = (double)(s->kernel * s->kernel) * (double)sn__shape_size(&y.shape);
  const sn__tensor back[] = {dy, x, y};
  say(s, "max", time_op(&sn__op_max_pool2d, &a, &x, 1, &y, team, runs), flops, json);
  say(s, "max grad", time_op(&sn__op_max_pool2d_grad, &a, back, 3, &dx, team, runs), flops, json);
  say(s, "avg", time_op(&sn__op_avg_pool2d, &a, &x, 1, &y, team, runs), flops, json);
  say(s, "avg grad", time_op(&sn__op_avg_pool2d_grad, &a, &dy, 1, &dx, team, runs), flops, json);
  sn__free(x.data);
  sn__free(dx.data);
  sn__free(y.data);
  sn__free(dy.data);
}

int main(int argc, char **argv) {
  int threads = 1, runs = 21, only = -1;
  bool json = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0)
      json = true;
    else if (i + 1 < argc && strcmp(argv[i], "--threads") == 0)
      threads = atoi(argv[++i]);
    else if (i + 1 < argc && strcmp(argv[i], "--runs") == 0)
      runs = atoi(argv[++i]);
    else if (i + 1 < argc && strcmp(argv[i], "--only") == 0)
      only = atoi(argv[++i]);
    else
      threads = 0;
  }
  if (threads > 1) timer = CLOCK_MONOTONIC;
  if (threads < 1 || runs < 1 || runs > MOST_RUNS) {
    fprintf(stderr, "usage: bench_conv [--threads N] [--runs N] [--only SHAPE] [--json]\n");
    return 2;
  }
  sn__team *team = NULL;
  sn_status status = sn__team_create(threads, &team);
  if (status != SN_OK) return 1;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (only < 0 || (size_t)only == i)
      (shapes[i].out > 0 ? time_conv : time_pool)(&shapes[i], team, runs, json);
  sn__team_free(team);
  return 0;
}
