/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/pipeline_show.h"

void pipeline_show(ui_state *ui, const sn_trainer *t) {
  sn_pipeline_figures f = sn_trainer_pipeline(t);
  const sn_topology *topology = sn_trainer_topology(t);
  char step[UI_WORDS], idle[UI_WORDS], bytes[UI_WORDS], forward[UI_WORDS], backward[UI_WORDS],
      weights[UI_WORDS];
  if (f.stages == 0) return;
  ui_line(ui, "%s", "");
  ui_line(ui,
          "pipeline of %zu stages: %s forward and backward, simulated, %s of it idle on the "
          "busiest device%s",
          f.stages, ui_seconds(1e-9 * (double)f.step_ns, step),
          ui_seconds(1e-9 * (double)f.bubble_ns, idle),
          f.step_ns == f.bound_ns ? "; no order is shorter" : "");
  ui_line(ui, "%5s  %-8s  %10s  %10s  %10s  %9s  %s", "stage", "device", "forward", "backward",
          "weights", "in flight", "keeps of each");
  for (size_t i = 0; i < f.stages; i++) {
    sn_pipeline_stage s = sn_trainer_pipeline_stage(t, i);
    ui_line(ui, "%5zu  %-8s  %10s  %10s  %10s  %9u  %s", i, topology->devices[s.device].name,
            ui_seconds(1e-9 * (double)s.forward_ns, forward),
            ui_seconds(1e-9 * (double)s.backward_ns, backward),
            ui_seconds(1e-9 * (double)s.weight_ns, weights), s.in_flight,
            ui_bytes((double)s.bytes, bytes));
  }
  for (int d = 0; d < topology->n_devices; d++)
    ui_line(ui, "at most %s at once on %s beside variables",
            ui_bytes((double)sn_trainer_memory_on(t, (size_t)d).arena_bytes, bytes),
            topology->devices[d].name);
}

void pipeline_json(json_report *r, cJSON *parent, const sn_trainer *t) {
  sn_pipeline_figures f = sn_trainer_pipeline(t);
  const sn_topology *topology = sn_trainer_topology(t);
  if (f.stages == 0) return;
  cJSON *pipeline = json_object(r, parent, "pipeline");
  json_number(r, pipeline, "simulated_ms",
              1e-6 * (double)sn_plan_step_ns(sn_trainer_pipeline_plan(t)));
  json_number(r, pipeline, "schedule_ms", 1e-6 * (double)f.step_ns);
  json_number(r, pipeline, "bound_ms", 1e-6 * (double)f.bound_ns);
  json_number(r, pipeline, "bubble_ms", 1e-6 * (double)f.bubble_ns);
  cJSON *stages = json_list(r, pipeline, "stages");
  for (size_t i = 0; i < f.stages; i++) {
    sn_pipeline_stage s = sn_trainer_pipeline_stage(t, i);
    cJSON *stage = json_object(r, stages, NULL);
    json_text(r, stage, "device", topology->devices[s.device].name);
    json_number(r, stage, "forward_ms", 1e-6 * (double)s.forward_ns);
    json_number(r, stage, "backward_ms", 1e-6 * (double)s.backward_ns);
    json_number(r, stage, "weights_ms", 1e-6 * (double)s.weight_ns);
    json_int(r, stage, "in_flight", s.in_flight);
    json_int(r, stage, "kept_bytes", (int64_t)s.bytes);
  }
  cJSON *arenas = json_list(r, pipeline, "arena_bytes");
  for (int d = 0; d < topology->n_devices; d++)
    json_int(r, arenas, NULL, (int64_t)sn_trainer_memory_on(t, (size_t)d).arena_bytes);
}
