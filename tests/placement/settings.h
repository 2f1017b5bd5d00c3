/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to run one model that must not change its bits. */
#ifndef SN_TESTS_PLACEMENT_SETTINGS_H
#define SN_TESTS_PLACEMENT_SETTINGS_H

#include "placement/trainer.h"

typedef struct setting {
  const char *devices;
  sn_pipeline pipeline;
  int64_t micro_batches;
  const sn_pin *pins;
  size_t n_pins;
} setting;

static inline sn_status make_trainer(const sn_graph *g, const setting *s,
                                     const sn_optimizer_options *optimizer, sn_trainer **out) {
  sn_trainer_options o = {
      .struct_size = sizeof o,
      .devices = s->devices,
      .threads = 2,
      .optimizer = *optimizer,
      .micro_batches = s->micro_batches,
      .pipeline = s->pipeline,
      .seed = 7,
      .placement = {.struct_size = sizeof o.placement,
                    .objective = s->n_pins > 0 ? SN_OBJECTIVE_TIME : SN_OBJECTIVE_SPREAD,
                    .evals = 20,
                    .pins = s->pins,
                    .n_pins = s->n_pins}};
  return sn_trainer_create(g, &o, out);
}

#endif
