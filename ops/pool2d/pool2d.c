/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest and the mean of windows over an image, channel by channel. Padding is never a
 * maximum; it counts in a mean only where count_include_pad says so. */
#include "ops/pool2d/pool2d.h"

/* Far beyond any image, and small enough that no sum of extents overflows. */
#define MOST_EXTENT ((int64_t)1 << 31)

static bool in_range(int64_t x, int64_t low) {
  return x >= low && x <= MOST_EXTENT;
}

static sn_status check_attrs(const sn__infer *c, const sn__pool2d_attrs *a) {
  if (!in_range(a->kernel_h, 1) || !in_range(a->kernel_w, 1))
    return sn__infer_fail(c, "the window is %lld x %lld; both must be at least 1",
                          (long long)a->kernel_h, (long long)a->kernel_w);
  if (!in_range(a->stride_h, 1) || !in_range(a->stride_w, 1))
    return sn__infer_fail(c, "stride is %lld x %lld; both must be at least 1",
                          (long long)a->stride_h, (long long)a->stride_w);
  if (a->padding_h < 0 || a->padding_w < 0 || a->padding_h > a->kernel_h / 2 ||
      a->padding_w > a->kernel_w / 2)
    return sn__infer_fail(c,
                          "padding is %lld x %lld; it must be from 0 to half the window of %lld x "
                          "%lld, so that every window sees a pixel",
                          (long long)a->padding_h, (long long)a->padding_w, (long long)a->kernel_h,
                          (long long)a->kernel_w);
  return SN_OK;
}

static sn_status check_image(const sn__infer *c, const char *what) {
  const sn_shape *x = &c->in[0].shape;
  bool fixed = x->rank == 4;
  for (int d = 1; fixed && d < 4; d++)
    fixed = !sn_dim_is_symbolic(x->dims[d]) && x->dims[d] <= MOST_EXTENT;
  if (fixed) return SN_OK;
  char words[160];
  return sn__infer_fail(c,
                        "%s has shape %s; it must be [batch, height, width, channels], all but "
                        "the batch of a fixed size",
                        what, sn__input_words(c, 0, words, sizeof words));
}

static int64_t windows(int64_t size, int64_t kernel, int64_t padding, int64_t stride) {
  return size + 2 * padding < kernel ? -1 : (size + 2 * padding - kernel) / stride + 1;
}

static sn_status pool2d_infer(sn__infer *c) {
  const sn__pool2d_attrs *a = c->attrs;
  SN_TRY(sn__need_float(c, 0, "x"));
  SN_TRY(check_image(c, "x"));
  SN_TRY(check_attrs(c, a));
  c->out[0] = c->in[0];
  int64_t *y = c->out[0].shape.dims;
  const int64_t *x = c->in[0].shape.dims;
  y[1] = windows(x[1], a->kernel_h, a->padding_h, a->stride_h);
  y[2] = windows(x[2], a->kernel_w, a->padding_w, a->stride_w);
  if (y[1] >= 0 && y[2] >= 0) return SN_OK;
  return sn__infer_fail(c,
                        "a window of %lld x %lld does not fit into an image of %lld x %lld with "
                        "padding %lld x %lld; use a smaller one",
                        (long long)a->kernel_h, (long long)a->kernel_w, (long long)x[1],
                        (long long)x[2], (long long)a->padding_h, (long long)a->padding_w);
}

/* dy, x, y -> dx */
static sn_status max_grad_infer(sn__infer *c) {
  SN_TRY(sn__need_float(c, 0, "dy"));
  SN_TRY(sn__need_same_dtype(c, 0, "dy", 1, "x"));
  SN_TRY(sn__need_same_dtype(c, 0, "dy", 2, "y"));
  SN_TRY(sn__need_same_shape(c, 0, "dy", 2, "y"));
  sn__infer forward = {
      .graph = c->graph, .op = c->op, .attrs = c->attrs, .in = c->in + 1, .n_in = 1, .n_out = 1};
  SN_TRY(pool2d_infer(&forward));
  if (!sn_shape_equal(&forward.out[0].shape, &c->in[0].shape))
    return sn__infer_fail(c, "the gradient does not have the pixels of the output");
  c->out[0] = c->in[1];
  return SN_OK;
}

/* dy -> dx */
static sn_status avg_grad_infer(sn__infer *c) {
  const sn__pool2d_attrs *a = c->attrs;
  SN_TRY(sn__need_float(c, 0, "dy"));
  SN_TRY(check_image(c, "dy"));
  SN_TRY(check_attrs(c, a));
  c->out[0] = c->in[0];
  const int64_t *y = c->in[0].shape.dims;
  if (!in_range(a->height, 0) || !in_range(a->width, 0) ||
      windows(a->height, a->kernel_h, a->padding_h, a->stride_h) != y[1] ||
      windows(a->width, a->kernel_w, a->padding_w, a->stride_w) != y[2])
    return sn__infer_fail(c, "the gradient does not have the pixels of the output");
  c->out[0].shape.dims[1] = a->height;
  c->out[0].shape.dims[2] = a->width;
  return SN_OK;
}

static sn_status max_grad(const sn__grad *c) {
  if (!c->need[0]) return SN_OK;
  const sn_value in[] = {c->dout[0], c->in[0], c->out[0]};
  c->din[0] = sn__node_add(c->graph, &sn__op_max_pool2d_grad, c->attrs, in, 3, NULL, NULL);
  return SN_OK;
}

static sn_status avg_grad(const sn__grad *c) {
  if (!c->need[0]) return SN_OK;
  sn__pool2d_attrs a = *(const sn__pool2d_attrs *)c->attrs;
  const sn_shape x = sn_value_shape(c->in[0]);
  a.height = x.dims[1];
  a.width = x.dims[2];
  c->din[0] = sn__node_add(c->graph, &sn__op_avg_pool2d_grad, &a, c->dout, 1, NULL, NULL);
  return SN_OK;
}

/* ---- the rows -------------------------------------------------------------------------------- */

static void cost_of(const sn__exec *e, const sn__tensor *y, double each, sn__cost *out) {
  const sn__pool2d_attrs *a = e->attrs;
  out->flops = each * (double)a->kernel_h * (double)a->kernel_w * (double)sn__count(y);
  out->bytes = sn__cost_bytes(e);
}
static void forward_cost(const sn__exec *e, sn__cost *out) {
  cost_of(e, &e->out[0], 1, out);
}
static void max_grad_cost(const sn__exec *e, sn__cost *out) {
  cost_of(e, &e->in[0], 2, out);
}
static void avg_grad_cost(const sn__exec *e, sn__cost *out) {
  cost_of(e, &e->in[0], 1, out);
}

static const sn__attr_def attrs[] = {SN__INT_ATTR(sn__pool2d_attrs, kernel_h),
                                     SN__INT_ATTR(sn__pool2d_attrs, kernel_w),
                                     SN__INT_ATTR(sn__pool2d_attrs, stride_h),
                                     SN__INT_ATTR(sn__pool2d_attrs, stride_w),
                                     SN__INT_ATTR(sn__pool2d_attrs, padding_h),
                                     SN__INT_ATTR(sn__pool2d_attrs, padding_w),
                                     SN__INT_ATTR(sn__pool2d_attrs, count_include_pad),
                                     SN__INT_ATTR(sn__pool2d_attrs, height),
                                     SN__INT_ATTR(sn__pool2d_attrs, width)};

const sn_op_def sn__op_max_pool2d = {
    .name = "max_pool2d",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 1,
    SN__ATTRS(sn__pool2d_attrs, attrs),
    .infer = pool2d_infer,
    .grad = max_grad,
    .saved_inputs = 1,
    .saved_outputs = 1,
    .cost = forward_cost,
    .cpu = sn__max_pool2d_cpu,
    .doc = "the greatest pixel of each window, channel by channel",
};

const sn_op_def sn__op_max_pool2d_grad = {
    .name = "max_pool2d_grad",
    .version = 1,
    .min_inputs = 3,
    .max_inputs = 3,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__pool2d_attrs, attrs),
    .infer = max_grad_infer,
    .cost = max_grad_cost,
    .cpu = sn__max_pool2d_grad_cpu,
    .doc = "gradient of max_pool2d: dy, x, y to dx; the first of equals gets it",
};

const sn_op_def sn__op_avg_pool2d = {
    .name = "avg_pool2d",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 1,
    SN__ATTRS(sn__pool2d_attrs, attrs),
    .infer = pool2d_infer,
    .grad = avg_grad,
    .cost = forward_cost,
    .cpu = sn__avg_pool2d_cpu,
    .doc = "the mean of each window's pixels, channel by channel",
};

const sn_op_def sn__op_avg_pool2d_grad = {
    .name = "avg_pool2d_grad",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__pool2d_attrs, attrs),
    .infer = avg_grad_infer,
    .cost = avg_grad_cost,
    .cpu = sn__avg_pool2d_grad_cpu,
    .doc = "gradient of avg_pool2d: dy to dx",
};

static sn_value pool2d(sn_graph *g, const sn_op_def *op, sn_value x,
                       const sn_pool2d_options *options) {
  sn_pool2d_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, op->name, &known)) return (sn_value){g, 0};
  if (o->count_include_pad && op == &sn__op_max_pool2d)
    return sn_graph_fail(g, sn_status_make(SN_CODE_INVALID,
                                           "max_pool2d: count_include_pad is for means alone; "
                                           "padding is never a maximum"));
  sn__pool2d_attrs a = {.kernel_h = o->kernel[0],
                        .kernel_w = o->kernel[1],
                        .stride_h = o->stride[0] == 0 ? o->kernel[0] : o->stride[0],
                        .stride_w = o->stride[1] == 0 ? o->kernel[1] : o->stride[1],
                        .padding_h = o->padding[0],
                        .padding_w = o->padding[1],
                        .count_include_pad = o->count_include_pad};
  return sn__node_add(g, op, &a, &x, 1, o->name, NULL);
}

sn_value sn_max_pool2d_opt(sn_graph *g, sn_value x, const sn_pool2d_options *options) {
  return pool2d(g, &sn__op_max_pool2d, x, options);
}

sn_value sn_avg_pool2d_opt(sn_graph *g, sn_value x, const sn_pool2d_options *options) {
  return pool2d(g, &sn__op_avg_pool2d, x, options);
}
