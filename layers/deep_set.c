/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/layers.h"

static sn_value pool(sn_graph *g, sn_set x, sn_pool how) {
  switch (how) {
  case SN_POOL_MEAN: return sn_set_mean(g, x);
  case SN_POOL_SUM: return sn_set_sum(g, x);
  case SN_POOL_MAX: return sn_set_max(g, x);
  case SN_POOL_ATTENTION: return sn_set_attention(g, x);
  case SN_POOL_LAST: break;
  }
  return sn_graph_fail(
      g, sn_status_make(SN_CODE_INVALID,
                        "a set is pooled by mean, sum, max or attention; it has no last element"));
}

sn_value sn_deep_set_opt(sn_graph *g, sn_set x, const sn_deep_set_options *options) {
  sn_deep_set_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "deep_set", &known)) return (sn_value){g, 0};
  sn_activation activation = o->activation == SN_LINEAR ? SN_RELU : o->activation;
  sn_module_begin(g, o->name != NULL ? o->name : "deep_set");
  for (size_t i = 0; i < o->n_phi; i++)
    x = sn_set_dense(g, x, .units = o->phi[i], .activation = activation, .name = "phi");
  sn_value y = pool(g, x, o->pool);
  for (size_t i = 0; i < o->n_rho; i++) {
    y = sn_dense(g, y, .units = o->rho[i], .activation = activation, .name = "rho");
    if (o->dropout > 0) y = sn_dropout(g, y, o->dropout);
  }
  sn_module_end(g);
  return y;
}
