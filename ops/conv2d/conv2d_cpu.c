/* SPDX-License-Identifier: Apache-2.0 */
/* The three products: patches x kernel, patches of dy x the kernel turned round, and patches^T x
 * dy. Chunks of patches follow one another; the team shares out each chunk's rows and tiles. */
#include <string.h>
#include "ops/conv2d/conv2d.h"
#include "ops/gemm/gemm.h"

static size_t lines(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

static int64_t least(int64_t x, int64_t y) {
  return x < y ? x : y;
}

static sn_dtype compute_of(const sn__exec *e) {
  return sn__compute(e->in[0].dtype, ((const sn__conv2d_attrs *)e->attrs)->precision);
}

static size_t bytes_of(sn_dtype dtype, int64_t rows, int64_t cols) {
  return lines((size_t)rows * (size_t)cols * sn_dtype_size(dtype));
}

/* Rows of the largest chunk that will be made. */
static int64_t chunk_rows(const sn__patches *p, sn_dtype dtype) {
  return least(sn__patch_chunk(p, dtype), sn__patch_rows(p));
}

/* ---- forward --------------------------------------------------------------------------------- */

static sn__patches forward_patches(const sn__tensor *x, const sn_shape *kernel_hw,
                                   const sn_shape *y, const sn__conv2d_attrs *a) {
  const int64_t *d = x->shape.dims;
  return (sn__patches){.source = x->data,
                       .images = d[0],
                       .source_h = d[1],
                       .source_w = d[2],
                       .channels = d[3],
                       .grid_h = y->dims[1],
                       .grid_w = y->dims[2],
                       .step_h = a->stride_h,
                       .step_w = a->stride_w,
                       .offset_h = -a->padding_h,
                       .offset_w = -a->padding_w,
                       .taps_h = kernel_hw->dims[0],
                       .taps_w = kernel_hw->dims[1]};
}

/* The activation over a stretch of a row, as sn__gemm finishes it. */
typedef struct finish {
  sn__unary_fn fn;
  sn__unary_attrs attrs;
} finish;

static void epilogue(void *user, int64_t batch, int64_t row, int64_t col, int64_t cols, void *c) {
  (void)batch;
  (void)row;
  (void)col;
  const finish *f = user;
  f->fn(c, c, cols, &f->attrs);
}

static void set_activation(sn__gemm_args *g, int64_t activation, finish *f) {
  sn__unary kind = sn__unary_of_activation((sn_activation)activation, &f->attrs);
  if (kind == SN__UNARY_relu) {
    g->act = SN__GEMM_ACT_RELU;
  } else if (kind != SN__UNARY_COUNT) {
    f->fn = g->dtype == SN_F64 ? sn__unary_f64[kind] : sn__unary_f32[kind];
    g->epilogue = epilogue;
    g->user = f;
  }
}

size_t sn__conv2d_workspace(const sn__exec *e) {
  const sn_dtype dtype = e->in[0].dtype;
  const sn_shape *w = &e->in[1].shape;
  const sn__patches p = forward_patches(&e->in[0], w, &e->out[0].shape, e->attrs);
  if (sn__patches_are_source(&p)) return 0;
  return bytes_of(dtype, chunk_rows(&p, dtype), sn__patch_width(&p)) +
         sn__gemm_packed_size(dtype, compute_of(e), w->dims[3], sn__patch_width(&p));
}

sn_status sn__conv2d_cpu(const sn__exec *e) {
  const sn__conv2d_attrs *a = e->attrs;
  const sn__tensor *x = &e->in[0], *w = &e->in[1], *y = &e->out[0];
  if (sn__count(y) == 0) return SN_OK;
  const sn__patches p = forward_patches(x, &w->shape, &y->shape, a);
  const int64_t width = sn__patch_width(&p), rows = sn__patch_rows(&p), out = w->shape.dims[3];
  sn__gemm_args g = {.dtype = x->dtype,
                     .compute = compute_of(e),
                     .m = rows,
                     .n = out,
                     .k = width,
                     .a = x->data,
                     .b = w->data,
                     .c = y->data,
                     .bias = e->n_in > 2 ? e->in[2].data : NULL};
  finish f;
  set_activation(&g, a->activation, &f);
  if (sn__patches_are_source(&p) || width == 0) return sn__gemm(&g, e->team);
  const int64_t chunk = chunk_rows(&p, x->dtype);
  char *patches = e->workspace, *packed = patches + bytes_of(x->dtype, chunk, width);
  if (rows > chunk)
    g.packed_b =
        sn__gemm_pack_b(x->dtype, g.compute, out, width, w->data, 0, false, packed, e->team);
  g.a = patches;
  for (int64_t first = 0; first < rows; first += chunk) {
    g.m = least(chunk, rows - first);
    g.c = (char *)y->data + (size_t)(first * out) * sn_dtype_size(x->dtype);
    sn__patches_gather(&p, x->dtype, first, g.m, patches, e->team);
    SN_TRY(sn__gemm(&g, e->team));
  }
  return SN_OK;
}

/* ---- gradient of the kernel ------------------------------------------------------------------ */

size_t sn__conv2d_weight_grad_workspace(const sn__exec *e) {
  const sn__patches p = forward_patches(&e->in[0], &e->out[0].shape, &e->in[1].shape, e->attrs);
  if (sn__patches_are_source(&p)) return 0;
  return bytes_of(e->in[0].dtype, chunk_rows(&p, e->in[0].dtype), sn__patch_width(&p));
}

sn_status sn__conv2d_weight_grad_cpu(const sn__exec *e) {
  const sn__tensor *x = &e->in[0], *dy = &e->in[1], *dw = &e->out[0];
  const sn__patches p = forward_patches(x, &dw->shape, &dy->shape, e->attrs);
  const int64_t rows = sn__patch_rows(&p), out = dy->shape.dims[3];
  sn__gemm_args g = {.dtype = x->dtype,
                     .compute = compute_of(e),
                     .m = sn__patch_width(&p),
                     .n = out,
                     .k = rows,
                     .trans_a = true,
                     .a = x->data,
                     .b = dy->data,
                     .c = dw->data};
  if (sn__patches_are_source(&p) || rows == 0 || g.m == 0) return sn__gemm(&g, e->team);
  const int64_t chunk = chunk_rows(&p, x->dtype);
  g.a = e->workspace;
  for (int64_t first = 0; first < rows; first += chunk) {
    g.k = least(chunk, rows - first);
    g.b = (const char *)dy->data + (size_t)(first * out) * sn_dtype_size(x->dtype);
    g.accumulate = first > 0;
    sn__patches_gather(&p, x->dtype, first, g.k, e->workspace, e->team);
    SN_TRY(sn__gemm(&g, e->team));
  }
  return SN_OK;
}

/* ---- gradient of the input ------------------------------------------------------------------- */

/* A pixel of x at row i * stride + phase is met by every stride-th row of the kernel, from `first`
 * on. Read backwards, these are `taps` neighbouring rows of dy, the top one at i + offset. */
typedef struct side {
  int64_t first, taps, pixels, offset;
} side;

static side side_of(int64_t phase, int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  side s = {.first = (phase + padding) % stride,
            .pixels = phase < size ? (size - phase - 1) / stride + 1 : 0};
  s.taps = s.first < kernel ? (kernel - 1 - s.first) / stride + 1 : 0;
  s.offset = (phase + padding) / stride - (s.taps - 1);
  return s;
}

typedef struct phase {
  side h, w;
  sn__patches patches; /* of dy */
} phase;

static phase phase_of(const sn__exec *e, int64_t i, int64_t j) {
  const sn__conv2d_attrs *a = e->attrs;
  const int64_t *y = e->in[0].shape.dims, *w = e->in[1].shape.dims, *x = e->out[0].shape.dims;
  phase p = {side_of(i, x[1], w[0], a->stride_h, a->padding_h),
             side_of(j, x[2], w[1], a->stride_w, a->padding_w),
             {.source = e->in[0].data,
              .images = y[0],
              .source_h = y[1],
              .source_w = y[2],
              .channels = y[3],
              .step_h = 1,
              .step_w = 1}};
  p.patches.grid_h = p.h.pixels;
  p.patches.grid_w = p.w.pixels;
  p.patches.offset_h = p.h.offset;
  p.patches.offset_w = p.w.offset;
  p.patches.taps_h = p.h.taps;
  p.patches.taps_w = p.w.taps;
  return p;
}

/* Phases that have pixels: no more than these strides. */
static int64_t phases_h(const sn__exec *e) {
  return least(((const sn__conv2d_attrs *)e->attrs)->stride_h, e->out[0].shape.dims[1]);
}
static int64_t phases_w(const sn__exec *e) {
  return least(((const sn__conv2d_attrs *)e->attrs)->stride_w, e->out[0].shape.dims[2]);
}

typedef struct input_grad_parts {
  size_t patches, turned, packed, product; /* bytes of the largest phase */
} input_grad_parts;

static size_t larger(size_t x, size_t y) {
  return x > y ? x : y;
}

static input_grad_parts parts_of(const sn__exec *e) {
  const sn_dtype dtype = e->in[0].dtype;
  const int64_t in = e->out[0].shape.dims[3];
  const int64_t rows_h = phases_h(e), rows_w = phases_w(e);
  input_grad_parts m = {0, 0, 0, 0};
  for (int64_t i = 0; i < rows_h; i++) {
    for (int64_t j = 0; j < rows_w; j++) {
      const phase p = phase_of(e, i, j);
      const int64_t chunk = chunk_rows(&p.patches, dtype), width = sn__patch_width(&p.patches);
      m.patches = larger(m.patches, bytes_of(dtype, chunk, width));
      m.turned = larger(m.turned, bytes_of(dtype, width, in));
      m.packed = larger(m.packed, lines(sn__gemm_packed_size(dtype, compute_of(e), in, width)));
      if (rows_h * rows_w > 1) m.product = larger(m.product, bytes_of(dtype, chunk, in));
    }
  }
  return m;
}

static bool is_plain_product(const sn__exec *e) {
  const phase p = phase_of(e, 0, 0);
  const sn__conv2d_attrs *a = e->attrs;
  return a->stride_h == 1 && a->stride_w == 1 && sn__patches_are_source(&p.patches);
}

size_t sn__conv2d_input_grad_workspace(const sn__exec *e) {
  if (is_plain_product(e)) return 0;
  const input_grad_parts m = parts_of(e);
  return m.patches + m.turned + m.packed + m.product;
}

typedef struct turn_job {
  const sn__exec *e;
  const phase *p;
  char *out;
} turn_job;

#define TURN(type)                                                                                 \
  do {                                                                                             \
    const type *w = (const type *)e->in[1].data + tap * in * out;                                  \
    type *to = (type *)(void *)job->out + index * out * in;                                        \
    for (int64_t c = 0; c < in; c += 16)                                                           \
      for (int64_t o = 0; o < out; o++)                                                            \
        for (int64_t k = c; k < c + 16 && k < in; k++)                                             \
          to[o * in + k] = w[k * out + o];                                                         \
  } while (0)

/* Taps in the order in which the patches hold them, each [Cout, Cin]. */
static void turn_task(void *arg, int64_t begin, int64_t end) {
  const turn_job *job = arg;
  const sn__exec *e = job->e;
  const sn__conv2d_attrs *a = e->attrs;
  const side *h = &job->p->h, *v = &job->p->w;
  const int64_t in = e->in[1].shape.dims[2], out = e->in[1].shape.dims[3];
  for (int64_t index = begin; index < end; index++) {
    const int64_t row = h->first + a->stride_h * (h->taps - 1 - index / v->taps);
    const int64_t col = v->first + a->stride_w * (v->taps - 1 - index % v->taps);
    const int64_t tap = row * e->in[1].shape.dims[1] + col;
    if (e->in[1].dtype == SN_F32)
      TURN(float);
    else
      TURN(double);
  }
}

typedef struct spread_job {
  const sn__exec *e;
  const phase *p;
  int64_t i, j, first;
  size_t pixel;
  const char *from;
} spread_job;

/* Pixels of one phase to where they belong in dx. Without `from`, zeros. */
static void spread_task(void *arg, int64_t begin, int64_t end) {
  const spread_job *job = arg;
  const sn__conv2d_attrs *a = job->e->attrs;
  const int64_t *x = job->e->out[0].shape.dims,
                *grid = (int64_t[]){job->p->h.pixels, job->p->w.pixels};
  for (int64_t row = begin; row < end; row++) {
    const int64_t at = job->first + row, n = at / grid[1] / grid[0];
    const int64_t y = at / grid[1] % grid[0] * a->stride_h + job->i;
    const int64_t z = at % grid[1] * a->stride_w + job->j;
    char *to = (char *)job->e->out[0].data + (size_t)((n * x[1] + y) * x[2] + z) * job->pixel;
    if (job->from == NULL)
      memset(to, 0, job->pixel);
    else
      memcpy(to, job->from + (size_t)row * job->pixel, job->pixel);
  }
}

static sn_status run_phase(const sn__exec *e, const input_grad_parts *m, int64_t i, int64_t j) {
  const sn__tensor *dx = &e->out[0];
  const sn_dtype dtype = dx->dtype;
  const phase p = phase_of(e, i, j);
  const int64_t width = sn__patch_width(&p.patches), rows = sn__patch_rows(&p.patches);
  const int64_t in = dx->shape.dims[3], chunk = chunk_rows(&p.patches, dtype);
  const bool spread = m->product > 0;
  char *patches = e->workspace, *turned = patches + m->patches, *packed = turned + m->turned;
  spread_job to = {e, &p, i, j, 0, (size_t)in * sn_dtype_size(dtype), NULL};
  if (width == 0) {
    sn__rows_run(e->team, rows, in, spread_task, &to);
    return SN_OK;
  }
  turn_job turn = {e, &p, turned};
  sn__rows_run(e->team, p.h.taps * p.w.taps, in * e->in[1].shape.dims[3], turn_task, &turn);
  sn__gemm_args g = {
      .dtype = dtype, .compute = compute_of(e), .n = in, .k = width, .a = patches, .b = turned};
  if (rows > chunk)
    g.packed_b = sn__gemm_pack_b(dtype, g.compute, in, width, turned, 0, false, packed, e->team);
  char *product = packed + m->packed;
  for (int64_t first = 0; first < rows; first += chunk) {
    g.m = least(chunk, rows - first);
    g.c = spread ? product : (char *)dx->data + (size_t)first * to.pixel;
    sn__patches_gather(&p.patches, dtype, first, g.m, patches, e->team);
    SN_TRY(sn__gemm(&g, e->team));
    to.first = first;
    to.from = product;
    if (spread) sn__rows_run(e->team, g.m, in, spread_task, &to);
  }
  return SN_OK;
}

sn_status sn__conv2d_input_grad_cpu(const sn__exec *e) {
  const sn__tensor *dy = &e->in[0], *w = &e->in[1], *dx = &e->out[0];
  if (sn__count(dx) == 0) return SN_OK;
  if (is_plain_product(e)) {
    const sn__gemm_args g = {.dtype = dy->dtype,
                             .compute = compute_of(e),
                             .m = sn__shape_span(&dy->shape, 0, 3),
                             .n = w->shape.dims[2],
                             .k = w->shape.dims[3],
                             .trans_b = true,
                             .a = dy->data,
                             .b = w->data,
                             .c = dx->data};
    return sn__gemm(&g, e->team);
  }
  const input_grad_parts m = parts_of(e);
  const int64_t rows_h = phases_h(e), rows_w = phases_w(e);
  for (int64_t i = 0; i < rows_h; i++)
    for (int64_t j = 0; j < rows_w; j++)
      SN_TRY(run_phase(e, &m, i, j));
  return SN_OK;
}
