/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, the block of four paths, and from pixels to one vector a row. */
#include "layers/layers.h"

static bool is_image(sn_graph *g, sn_value x, const char *layer) {
  if (!sn_value_ok(x)) return false;
  sn_shape shape = sn_value_shape(x);
  bool good = shape.rank == 4;
  for (int d = 1; good && d < 4; d++)
    good = !sn_dim_is_symbolic(shape.dims[d]);
  if (good) return true;
  char text[160];
  sn_graph_fail(
      g, sn_status_make(SN_CODE_INVALID,
                        "%s: '%s' has shape %s; it needs [batch, height, width, channels], "
                        "all but the batch of a fixed size",
                        layer, sn_value_name(x), sn_shape_text(g, &shape, text, sizeof text)));
  return false;
}

/* The size of a kernel, and the padding that goes with it. */
static sn_status read_sizes(const char *name, sn_conv2d_options *o) {
  if (o->filters < 1)
    return sn_status_make(SN_CODE_INVALID, "%s: filters is %lld; it must be at least 1", name,
                          (long long)o->filters);
  if (o->kernel[1] == 0) o->kernel[1] = o->kernel[0];
  if (o->stride[1] == 0) o->stride[1] = o->stride[0];
  if (o->kernel[0] < 1 || o->kernel[1] < 1)
    return sn_status_make(SN_CODE_INVALID, "%s: the kernel is %lld x %lld; both must be at least 1",
                          name, (long long)o->kernel[0], (long long)o->kernel[1]);
  if (!o->same) return SN_OK;
  if (o->kernel[0] % 2 == 0 || o->kernel[1] % 2 == 0 || o->padding[0] != 0 || o->padding[1] != 0)
    return sn_status_make(
        SN_CODE_INVALID,
        "%s: same is for odd kernels and instead of padding; the kernel is %lld x "
        "%lld, the padding %lld x %lld",
        name, (long long)o->kernel[0], (long long)o->kernel[1], (long long)o->padding[0],
        (long long)o->padding[1]);
  for (int i = 0; i < 2; i++)
    o->padding[i] = (o->kernel[i] - 1) / 2;
  return SN_OK;
}

sn_value sn_conv2d_opt(sn_graph *g, sn_value x, const sn_conv2d_options *options) {
  sn_conv2d_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "conv2d", &known)) return (sn_value){g, 0};
  const char *name = o->name != NULL ? o->name : "conv2d";
  if (!is_image(g, x, name)) return (sn_value){g, 0};
  sn_status status = read_sizes(name, o);
  if (status != SN_OK) return sn_graph_fail(g, status);
  const int64_t channels = sn_value_shape(x).dims[3], taps = o->kernel[0] * o->kernel[1];
  sn_init standard = sn_init_pytorch_linear(taps * channels), zeros = {.kind = SN_INIT_ZEROS};
  sn_init kernel = o->kernel_init != NULL ? *o->kernel_init : standard;
  sn_init bias = o->bias_init != NULL ? *o->bias_init : o->kernel_init != NULL ? zeros : standard;
  if (kernel.fan_in == 0) kernel.fan_in = taps * channels;
  if (kernel.fan_out == 0) kernel.fan_out = taps * o->filters;
  const sn_dtype dtype = sn_value_dtype(x);
  sn_module_begin(g, name);
  sn_value w =
      sn_variable(g, "weight", dtype, SN_SHAPE(o->kernel[0], o->kernel[1], channels, o->filters),
                  .init = kernel);
  sn_value b = {g, 0};
  if (!o->no_bias)
    b = sn_variable(g, "bias", dtype, SN_SHAPE(o->filters), .init = bias, .no_decay = true);
  sn_value y = sn_conv2d_op(g, x, w, .stride = {o->stride[0], o->stride[1]},
                            .padding = {o->padding[0], o->padding[1]}, .bias = b,
                            .activation = o->activation);
  sn_module_end(g);
  return y;
}

typedef struct path {
  const char *name;
  int64_t filters, side, reduce;
} path;

/* One path, behind its own 1 x 1 or pooling where it has one. */
static sn_value path_of(sn_graph *g, sn_value x, const path *p, sn_activation activation) {
  sn_module_begin(g, p->name);
  if (p->side == 0) x = sn_max_pool2d(g, x, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1});
  if (p->reduce > 0)
    x = sn_conv2d(g, x, .filters = p->reduce, .kernel = {1}, .activation = activation,
                  .name = "reduce");
  x = sn_conv2d(g, x, .filters = p->filters, .kernel = {p->side > 0 ? p->side : 1}, .same = true,
                .activation = activation);
  sn_module_end(g);
  return x;
}

sn_value sn_inception_opt(sn_graph *g, sn_value x, const sn_inception_options *options) {
  sn_inception_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "inception", &known)) return (sn_value){g, 0};
  const char *name = o->name != NULL ? o->name : "inception";
  if (!is_image(g, x, name)) return (sn_value){g, 0};
  const path paths[] = {{"1x1", o->point, 1, 0},
                        {"3x3", o->three, 3, o->reduce_three},
                        {"5x5", o->five, 5, o->reduce_five},
                        {"pool", o->pool, 0, 0}};
  const sn_activation activation = o->activation == SN_LINEAR ? SN_RELU : o->activation;
  sn_value y[4];
  sn_module_begin(g, name);
  for (int i = 0; i < 4; i++) {
    if (paths[i].filters < 1 || paths[i].reduce < 0)
      return sn_graph_fail(g, sn_status_make(SN_CODE_INVALID,
                                             "%s: path %s has %lld channels out and %lld before; "
                                             "it must have at least 1 out",
                                             name, paths[i].name, (long long)paths[i].filters,
                                             (long long)paths[i].reduce));
    y[i] = path_of(g, x, &paths[i], activation);
  }
  sn_value joined = sn_concat(g, ((sn_values){y, 4}), .axis = 3);
  sn_module_end(g);
  return joined;
}

/* [N, H, W, C] as rows of pixels. */
static sn_value pixels(sn_graph *g, sn_value x, const char *layer) {
  if (!is_image(g, x, layer)) return (sn_value){g, 0};
  const sn_shape s = sn_value_shape(x);
  return sn_reshape(g, x, SN_SHAPE(SN_DIM_KEEP(0), s.dims[1] * s.dims[2], s.dims[3]));
}

sn_value sn_global_average_pool(sn_graph *g, sn_value x) {
  return sn_reduce_mean(g, pixels(g, x, "global_average_pool"), .axis = 1);
}

sn_value sn_global_max_pool(sn_graph *g, sn_value x) {
  return sn_reduce_max(g, pixels(g, x, "global_max_pool"), .axis = 1);
}

sn_value sn_flatten(sn_graph *g, sn_value x) {
  if (!is_image(g, x, "flatten")) return (sn_value){g, 0};
  const sn_shape s = sn_value_shape(x);
  return sn_reshape(g, x, SN_SHAPE(SN_DIM_KEEP(0), s.dims[1] * s.dims[2] * s.dims[3]));
}
