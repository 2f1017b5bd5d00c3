/* SPDX-License-Identifier: Apache-2.0 */
/* Handwritten digits from three views: ink sums (dense), pen columns (sequence), inked pixels
 * (set). Each view has an encoder and could be on a device of its own; the trunk reads all three.
 */
#include "layers/layers.h"
#include "models/model.h"

static sn_status build(sn_graph *g, const sn_model_facts *facts) {
  (void)facts; /* the digits' sizes are known */
  sn_value profile = sn_input(g, "profile", SN_F32, 16);
  sn_sequence strokes = sn_sequence_input(g, "strokes", SN_F32, 8);
  sn_set pixels = sn_set_input(g, "pixels", SN_F32, 3);
  sn_value digit = sn_input(g, "digit", SN_I64, 0);

  sn_module_begin(g, "profile");
  sn_value p = sn_dense(g, profile, .units = 64, .activation = SN_RELU);
  sn_module_end(g);

  sn_module_begin(g, "strokes");
  sn_value s = sn_sequence_mean(g, sn_lstm(g, strokes, .units = 64, .bidirectional = true));
  sn_module_end(g);

  sn_module_begin(g, "pixels");
  sn_value x =
      sn_deep_set(g, pixels, .phi = SN_UNITS(64, 64), .n_phi = 2, .rho = SN_UNITS(64), .n_rho = 1);
  sn_module_end(g);

  sn_module_begin(g, "trunk");
  sn_value h = sn_concat(g, SN_VALUES(p, s, x), .axis = 1);
  h = sn_dropout(g, sn_dense(g, h, .units = 128, .activation = SN_RELU), 0.1);
  sn_module_end(g);

  sn_module_begin(g, "digit");
  sn_value logits = sn_dense(g, h, .units = 10);
  sn_module_end(g);
  sn_output(g, "digit", logits);
  sn_softmax_cross_entropy(g, logits, digit, .name = "digit");
  return sn_graph_status(g);
}

/* By itself: cc -shared -fPIC -DSN_MODEL_LIBRARY digits.c -o libmine.so */
#ifdef SN_MODEL_LIBRARY
SN_MODEL_EXPORT const sn_model_v1 sn_model = {sizeof(sn_model_v1), SN_MODEL_ABI, "digits", build};
#else
const sn_model_v1 sn_model_digits = {sizeof(sn_model_v1), SN_MODEL_ABI, "digits", build};
#endif
