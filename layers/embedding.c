/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/layers.h"

sn_value sn_embedding_opt(sn_graph *g, sn_value ids, const sn_embedding_options *options) {
  sn_embedding_options known, *o = &known;
  if (!sn_graph_options(g, options, sizeof known, "embedding", &known)) return (sn_value){g, 0};
  const char *name = o->name != NULL ? o->name : "embedding";
  if (o->count < 1 || o->units < 1)
    return sn_graph_fail(g,
                         sn_status_make(SN_CODE_INVALID,
                                        "%s: count is %lld and units %lld; both must be at least 1",
                                        name, (long long)o->count, (long long)o->units));
  sn_module_begin(g, name);
  sn_init init = o->init != NULL ? *o->init : sn_init_pytorch_embedding();
  sn_value table = sn_variable(g, "weight", SN_F32, SN_SHAPE(o->count, o->units), .init = init,
                               .no_decay = true);
  sn_value y = sn_gather_rows(g, table, ids);
  sn_module_end(g);
  return y;
}

sn_sequence sn_sequence_embedding_opt(sn_graph *g, sn_sequence ids, const sn_embedding_options *o) {
  return (sn_sequence){sn_embedding_opt(g, ids.values, o), ids.offsets};
}
