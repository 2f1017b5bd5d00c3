/* SPDX-License-Identifier: Apache-2.0 */
/* H3: a dense, a sequence and a set encoder that share nothing, a concatenation and a trunk. */
#include "layers/layers.h"
#include "models/model.h"

static const sn_h3_sizes sizes[] = {
    {.name = "S",
     .batch = 32,
     .dense_in = 32,
     .dense_hidden = 64,
     .sequence_in = 16,
     .sequence_units = 32,
     .sequence_longest = 32,
     .set_in = 8,
     .set_hidden = 64,
     .set_largest = 32,
     .trunk = 64,
     .classes = 10},
    {.name = "M",
     .batch = 128,
     .dense_in = 128,
     .dense_hidden = 256,
     .sequence_in = 32,
     .sequence_units = 128,
     .sequence_longest = 64,
     .set_in = 16,
     .set_hidden = 128,
     .set_largest = 64,
     .trunk = 256,
     .classes = 10},
    {.name = "L",
     .batch = 256,
     .dense_in = 512,
     .dense_hidden = 1024,
     .sequence_in = 64,
     .sequence_units = 256,
     .sequence_longest = 128,
     .set_in = 32,
     .set_hidden = 512,
     .set_largest = 128,
     .trunk = 1024,
     .classes = 100},
};

const sn_h3_sizes *sn_h3_sizes_of(sn_h3_size size) {
  return size >= SN_H3_S && size <= SN_H3_L ? &sizes[size] : NULL;
}

sn_status sn_h3_build(sn_graph *g, const sn_h3_sizes *s) {
  sn_value dense = sn_input(g, "dense", SN_F32, s->dense_in);
  sn_sequence sequence = sn_sequence_input(g, "sequence", SN_F32, s->sequence_in);
  sn_set set = sn_set_input(g, "set", SN_F32, s->set_in);
  sn_value outcome = sn_input(g, "outcome", SN_I64, 0);

  sn_module_begin(g, "dense");
  sn_value d = sn_dense(g, dense, .units = s->dense_hidden, .activation = SN_RELU);
  d = sn_dense(g, d, .units = s->dense_hidden, .activation = SN_RELU);
  sn_module_end(g);

  sn_module_begin(g, "sequence");
  sn_sequence h = sn_lstm(g, sequence, .units = s->sequence_units, .bidirectional = true);
  sn_value q = sn_sequence_mean(g, h);
  sn_module_end(g);

  sn_module_begin(g, "set");
  const int64_t phi[] = {s->set_hidden, s->set_hidden};
  sn_value e =
      sn_deep_set(g, set, .phi = phi, .n_phi = 2, .pool = SN_POOL_MEAN, .rho = phi, .n_rho = 1);
  sn_module_end(g);

  sn_module_begin(g, "trunk");
  sn_value z = sn_concat(g, SN_VALUES(d, q, e), .axis = 1);
  z = sn_dense(g, z, .units = s->trunk, .activation = SN_RELU);
  z = sn_dense(g, z, .units = s->classes);
  sn_output(g, "outcome", z);
  sn_softmax_cross_entropy(g, z, outcome, .name = "outcome");
  sn_module_end(g);
  return sn_graph_status(g);
}
