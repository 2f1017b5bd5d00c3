/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of images with strides, padding, bias and activation; dilation and groups are 1. */
#include "ops/conv2d/conv2d.h"

#include "ops/gemm/gemm.h"

/* Far beyond any image, and small enough that no sum of extents overflows. */
#define MOST_EXTENT ((int64_t)1 << 31)

/* ---- shape rules ----------------------------------------------------------------------------- */

static sn_status check_attrs(const sn__infer *c, const sn__conv2d_attrs *a) {
  SN_TRY(sn__need_precision(c, a->precision));
  if (a->stride_h < 1 || a->stride_w < 1 || a->stride_h > MOST_EXTENT || a->stride_w > MOST_EXTENT)
    return sn__infer_fail(c, "stride is %lld x %lld; both must be at least 1",
                          (long long)a->stride_h, (long long)a->stride_w);
  if (a->padding_h < 0 || a->padding_w < 0 || a->padding_h > MOST_EXTENT ||
      a->padding_w > MOST_EXTENT)
    return sn__infer_fail(c, "padding is %lld x %lld; neither may be negative",
                          (long long)a->padding_h, (long long)a->padding_w);
  return SN_OK;
}

/* Input i is an image of four dimensions, all but the first fixed. */
static sn_status check_image(const sn__infer *c, int i, const char *what) {
  const sn_shape *x = &c->in[i].shape;
  bool fixed = x->rank == 4;
  for (int d = 1; fixed && d < 4; d++)
    fixed = !sn_dim_is_symbolic(x->dims[d]) && x->dims[d] <= MOST_EXTENT;
  if (fixed) return SN_OK;
  char words[160];
  return sn__infer_fail(c,
                        "%s has shape %s; it must be [batch, height, width, channels], all but "
                        "the batch of a fixed size",
                        what, sn__input_words(c, i, words, sizeof words));
}

static sn_status check_kernel(const sn__infer *c, int i) {
  const sn_shape *w = &c->in[i].shape;
  bool good = w->rank == 4 && sn_shape_is_fixed(w);
  for (int d = 0; good && d < 4; d++)
    good = w->dims[d] >= (d < 2) && w->dims[d] <= MOST_EXTENT;
  if (good) return SN_OK;
  char words[160];
  return sn__infer_fail(c,
                        "the kernel has shape %s; it must be [height, width, channels in, channels "
                        "out], a pixel or more",
                        sn__input_words(c, i, words, sizeof words));
}

static int64_t pixels_out(int64_t size, int64_t kernel, int64_t padding, int64_t stride) {
  return size + 2 * padding < kernel ? -1 : (size + 2 * padding - kernel) / stride + 1;
}

static sn_status check_bias(const sn__infer *c, int64_t channels) {
  if (c->n_in < 3 || c->in[2].dtype == SN_DTYPE_NONE) return SN_OK;
  SN_TRY(sn__need_same_dtype(c, 0, "x", 2, "the bias"));
  const sn_shape *b = &c->in[2].shape;
  if (b->rank == 1 && b->dims[0] == channels) return SN_OK;
  char words[160];
  return sn__infer_fail(c, "the bias has shape %s; it must be [%lld], one for each channel out",
                        sn__input_words(c, 2, words, sizeof words), (long long)channels);
}

static sn_status conv2d_infer(sn__infer *c) {
  const sn__conv2d_attrs *a = c->attrs;
  const sn_shape *x = &c->in[0].shape, *w = &c->in[1].shape;
  SN_TRY(sn__need_float(c, 0, "x"));
  SN_TRY(sn__need_same_dtype(c, 0, "x", 1, "the kernel"));
  SN_TRY(check_image(c, 0, "x"));
  SN_TRY(check_kernel(c, 1));
  SN_TRY(check_attrs(c, a));
  if (a->activation < 0 || a->activation >= SN_ACTIVATION_COUNT)
    return sn__infer_fail(c, "there is no activation %lld", (long long)a->activation);
  if (x->dims[3] != w->dims[2])
    return sn__infer_fail(c, "x has %lld channels and the kernel reads %lld; they must be equal",
                          (long long)x->dims[3], (long long)w->dims[2]);
  const int64_t h = pixels_out(x->dims[1], w->dims[0], a->padding_h, a->stride_h);
  const int64_t v = pixels_out(x->dims[2], w->dims[1], a->padding_w, a->stride_w);
  if (h < 0 || v < 0)
    return sn__infer_fail(c,
                          "a kernel of %lld x %lld does not fit into an image of %lld x %lld with "
                          "padding %lld x %lld; pad more or use a smaller kernel",
                          (long long)w->dims[0], (long long)w->dims[1], (long long)x->dims[1],
                          (long long)x->dims[2], (long long)a->padding_h, (long long)a->padding_w);
  SN_TRY(check_bias(c, w->dims[3]));
  c->out[0] = (sn__type){c->in[0].dtype, {4, {x->dims[0], h, v, w->dims[3]}}};
  return SN_OK;
}

/* True where y [.., OH, OW, Cout] is what the kernel makes of x [.., H, W, ..]. */
static sn_status check_match(const sn__infer *c, const sn__conv2d_attrs *a, const int64_t *x_hw,
                             const int64_t *k_hw, const sn_shape *y) {
  if (x_hw[0] >= 0 && x_hw[1] >= 0 && x_hw[0] <= MOST_EXTENT && x_hw[1] <= MOST_EXTENT &&
      k_hw[0] >= 1 && k_hw[1] >= 1 && k_hw[0] <= MOST_EXTENT && k_hw[1] <= MOST_EXTENT &&
      pixels_out(x_hw[0], k_hw[0], a->padding_h, a->stride_h) == y->dims[1] &&
      pixels_out(x_hw[1], k_hw[1], a->padding_w, a->stride_w) == y->dims[2])
    return SN_OK;
  return sn__infer_fail(c, "the gradient does not have the pixels of the output");
}

/* dy, kernel -> dx */
static sn_status input_grad_infer(sn__infer *c) {
  const sn__conv2d_attrs *a = c->attrs;
  SN_TRY(sn__need_float(c, 0, "dy"));
  SN_TRY(sn__need_same_dtype(c, 0, "dy", 1, "the kernel"));
  SN_TRY(check_image(c, 0, "dy"));
  SN_TRY(check_kernel(c, 1));
  SN_TRY(check_attrs(c, a));
  const sn_shape *y = &c->in[0].shape, *w = &c->in[1].shape;
  if (y->dims[3] != w->dims[3])
    return sn__infer_fail(c, "dy has %lld channels and the kernel makes %lld; they must be equal",
                          (long long)y->dims[3], (long long)w->dims[3]);
  SN_TRY(check_match(c, a, (const int64_t[]){a->height, a->width}, w->dims, y));
  c->out[0] = (sn__type){c->in[0].dtype, {4, {y->dims[0], a->height, a->width, w->dims[2]}}};
  return SN_OK;
}

/* x, dy -> dkernel */
static sn_status weight_grad_infer(sn__infer *c) {
  const sn__conv2d_attrs *a = c->attrs;
  SN_TRY(sn__need_float(c, 0, "x"));
  SN_TRY(sn__need_same_dtype(c, 0, "x", 1, "dy"));
  SN_TRY(check_image(c, 0, "x"));
  SN_TRY(check_image(c, 1, "dy"));
  SN_TRY(check_attrs(c, a));
  const sn_shape *x = &c->in[0].shape, *y = &c->in[1].shape;
  if (x->dims[0] != y->dims[0]) return sn__infer_fail(c, "x and dy must have the same images");
  SN_TRY(check_match(c, a, &x->dims[1], (const int64_t[]){a->height, a->width}, y));
  c->out[0] = (sn__type){c->in[0].dtype, {4, {a->height, a->width, x->dims[3], y->dims[3]}}};
  return SN_OK;
}

/* ---- gradient -------------------------------------------------------------------------------- */

static sn_status conv2d_grad(const sn__grad *c) {
  sn__conv2d_attrs a = *(const sn__conv2d_attrs *)c->attrs;
  sn_value dz = c->dout[0];
  if (a.activation != SN_LINEAR) {
    sn__unary_attrs ua;
    sn__unary kind = sn__unary_of_activation((sn_activation)a.activation, &ua);
    dz = sn__unary_grad_add(c->graph, kind, &ua, c->out[0], dz);
  }
  a.activation = SN_LINEAR;
  const sn_shape x = sn_value_shape(c->in[0]), w = sn_value_shape(c->in[1]);
  if (c->need[0]) {
    a.height = x.dims[1];
    a.width = x.dims[2];
    const sn_value in[] = {dz, c->in[1]};
    c->din[0] = sn__node_add(c->graph, &sn__op_conv2d_input_grad, &a, in, 2, NULL, NULL);
  }
  if (c->need[1]) {
    a.height = w.dims[0];
    a.width = w.dims[1];
    const sn_value in[] = {c->in[0], dz};
    c->din[1] = sn__node_add(c->graph, &sn__op_conv2d_weight_grad, &a, in, 2, NULL, NULL);
  }
  if (c->n_in > 2 && c->need[2])
    c->din[2] = sn__sum_to_shape(c->graph, dz, sn_value_shape(c->in[2]));
  return SN_OK;
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* Each pixel of y meets the whole kernel once, forward and in both gradients. The product is `n`
 * wide and `k` deep. */
static void products(const sn__exec *e, const sn_shape *y, const sn_shape *kernel, int64_t n,
                     int64_t k, sn__cost *out) {
  const int64_t precision = ((const sn__conv2d_attrs *)e->attrs)->precision;
  out->flops = 2.0 * (double)sn__shape_span(y, 0, 3) * (double)sn__shape_size(kernel);
  out->bytes = sn__cost_bytes(e);
  out->bf16_flops =
      sn__is_bf16(e->in[0].dtype, precision) && sn__gemm_rounds(n, k) ? out->flops : 0;
}

static void conv2d_cost(const sn__exec *e, sn__cost *out) {
  const sn_shape *kernel = &e->in[1].shape;
  products(e, &e->out[0].shape, kernel, kernel->dims[3], sn__shape_span(kernel, 0, 3), out);
}
/* With strides, as deep as the deepest of the phases. */
static void input_grad_cost(const sn__exec *e, sn__cost *out) {
  const sn__conv2d_attrs *a = e->attrs;
  const sn_shape *kernel = &e->in[1].shape;
  const int64_t taps_h = (kernel->dims[0] + a->stride_h - 1) / a->stride_h;
  const int64_t taps_w = (kernel->dims[1] + a->stride_w - 1) / a->stride_w;
  products(e, &e->in[0].shape, kernel, kernel->dims[2], taps_h * taps_w * kernel->dims[3], out);
}
static void weight_grad_cost(const sn__exec *e, sn__cost *out) {
  const sn_shape *y = &e->in[1].shape;
  products(e, y, &e->out[0].shape, y->dims[3], sn__shape_span(y, 0, 3), out);
}

static const sn__attr_def attrs[] = {
    SN__INT_ATTR(sn__conv2d_attrs, stride_h),   SN__INT_ATTR(sn__conv2d_attrs, stride_w),
    SN__INT_ATTR(sn__conv2d_attrs, padding_h),  SN__INT_ATTR(sn__conv2d_attrs, padding_w),
    SN__INT_ATTR(sn__conv2d_attrs, activation), SN__INT_ATTR(sn__conv2d_attrs, height),
    SN__INT_ATTR(sn__conv2d_attrs, width),      SN__PRECISION_ATTR(sn__conv2d_attrs)};

const sn_op_def sn__op_conv2d = {
    .name = "conv2d",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 3,
    .n_outputs = 1,
    SN__ATTRS(sn__conv2d_attrs, attrs),
    .infer = conv2d_infer,
    .grad = conv2d_grad,
    .saved_inputs = 3,
    .saved_outputs = 1,
    .cost = conv2d_cost,
    .workspace = sn__conv2d_workspace,
    .cpu = sn__conv2d_cpu,
    .doc = "activation(x convolved with a kernel + bias), channels last",
};

const sn_op_def sn__op_conv2d_input_grad = {
    .name = "conv2d_input_grad",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__conv2d_attrs, attrs),
    .infer = input_grad_infer,
    .cost = input_grad_cost,
    .workspace = sn__conv2d_input_grad_workspace,
    .cpu = sn__conv2d_input_grad_cpu,
    .doc = "gradient of conv2d with respect to x: dy, kernel to dx",
};

const sn_op_def sn__op_conv2d_weight_grad = {
    .name = "conv2d_weight_grad",
    .version = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__conv2d_attrs, attrs),
    .infer = weight_grad_infer,
    .cost = weight_grad_cost,
    .workspace = sn__conv2d_weight_grad_workspace,
    .cpu = sn__conv2d_weight_grad_cpu,
    .doc = "gradient of conv2d with respect to the kernel: x, dy to dkernel",
};

/* Fused as matmul does: an activation whose slope its output does not tell is a node of its own. */
sn_value sn_conv2d_op_opt(sn_graph *g, sn_value x, sn_value kernel,
                          const sn_conv2d_op_options *options) {
  sn_conv2d_op_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "conv2d", &known)) return (sn_value){g, 0};
  if ((int)o->activation < 0 || o->activation >= SN_ACTIVATION_COUNT)
    return sn_graph_fail(g, sn_status_make(SN_CODE_INVALID, "conv2d: there is no activation %d",
                                           (int)o->activation));
  sn__unary_attrs ua;
  sn__unary kind = sn__unary_of_activation(o->activation, &ua);
  bool fuse = kind == SN__UNARY_COUNT || sn__unary_saved(kind) == SN__SAVES_OUT;
  sn__conv2d_attrs a = {.stride_h = o->stride[0] == 0 ? 1 : o->stride[0],
                        .stride_w = o->stride[1] == 0 ? 1 : o->stride[1],
                        .padding_h = o->padding[0],
                        .padding_w = o->padding[1],
                        .activation = fuse ? (int64_t)o->activation : SN_LINEAR};
  sn_value in[] = {x, kernel, o->bias};
  size_t n_in = o->bias.graph != NULL ? 3 : 2;
  sn_value y = sn__node_add(g, &sn__op_conv2d, &a, in, n_in, o->name, NULL);
  return fuse || !sn_value_ok(y) ? y : sn_activate(g, y, o->activation);
}
