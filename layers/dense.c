/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/layers.h"

static int64_t features_of(sn_graph *g, sn_value x, const char *layer) {
  sn_shape shape = sn_value_shape(x);
  if (!sn_value_ok(x)) return 0;
  if (shape.rank < 2 || sn_dim_is_symbolic(shape.dims[shape.rank - 1])) {
    char text[160];
    sn_graph_fail(g,
                  sn_status_make(
                      SN_CODE_INVALID,
                      "%s: '%s' has shape %s; it needs a last dimension of a fixed size (features)",
                      layer, sn_value_name(x), sn_shape_text(g, &shape, text, sizeof text)));
    return 0;
  }
  return shape.dims[shape.rank - 1];
}

sn_value sn_dense_opt(sn_graph *g, sn_value x, const sn_dense_options *options) {
  sn_dense_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "dense", &known)) return (sn_value){g, 0};
  const char *name = o->name != NULL ? o->name : "dense";
  int64_t features = features_of(g, x, name);
  if (features == 0) return (sn_value){g, 0};
  if (o->units < 1)
    return sn_graph_fail(g,
                         sn_status_make(SN_CODE_INVALID, "%s: units is %lld; it must be at least 1",
                                        name, (long long)o->units));
  sn_init standard = sn_init_pytorch_linear(features), zeros = {.kind = SN_INIT_ZEROS};
  sn_init kernel = o->kernel_init != NULL ? *o->kernel_init : standard;
  sn_init bias = o->bias_init != NULL ? *o->bias_init : o->kernel_init != NULL ? zeros : standard;
  sn_module_begin(g, name);
  sn_value w =
      sn_variable(g, "weight", sn_value_dtype(x), SN_SHAPE(o->units, features), .init = kernel);
  sn_value b = {g, 0};
  if (!o->no_bias)
    b = sn_variable(g, "bias", sn_value_dtype(x), SN_SHAPE(o->units), .init = bias,
                    .no_decay = true);
  sn_value y = sn_matmul(g, x, w, .transpose_b = true, .bias = b, .activation = o->activation);
  sn_module_end(g);
  return y;
}

sn_sequence sn_sequence_dense_opt(sn_graph *g, sn_sequence x, const sn_dense_options *o) {
  return (sn_sequence){sn_dense_opt(g, x.values, o), x.offsets};
}

sn_set sn_set_dense_opt(sn_graph *g, sn_set x, const sn_dense_options *o) {
  return (sn_set){sn_dense_opt(g, x.values, o), x.offsets};
}
