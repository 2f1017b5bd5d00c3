/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tools/sennit/json.h"
#include "tools/sennit/plan_report.h"

static double ms(int64_t ns) {
  return 1e-6 * (double)ns;
}

static void put_devices(json_report *r, const sn_plan *plan) {
  cJSON *list = json_list(r, r->root, "devices");
  for (size_t i = 0; i < sn_plan_device_count(plan); i++) {
    sn_plan_device d = sn_plan_device_at(plan, i);
    cJSON *o = json_object(r, list, NULL);
    json_text(r, o, "name", d.name);
    json_int(r, o, "peak_bytes", (int64_t)(d.arena_bytes + d.variable_bytes));
    json_number(r, o, "busy_ms", ms(d.busy_ns));
    json_int(r, o, "nodes", (int64_t)d.nodes);
    json_int(r, o, "arena_bytes", (int64_t)d.arena_bytes);
    json_int(r, o, "copy_bytes", (int64_t)d.copy_bytes);
    json_int(r, o, "live_bytes", (int64_t)d.live_bytes);
    json_int(r, o, "variable_bytes", (int64_t)d.variable_bytes);
  }
}

static void put_modules(json_report *r, const sn_placement *placement) {
  const sn_topology *topology = sn_placement_topology(placement);
  cJSON *list = json_list(r, r->root, "modules");
  for (size_t i = 0; i < sn_placement_module_count(placement); i++) {
    const sn_placement_module *m = sn_placement_module_at(placement, i);
    cJSON *o = json_object(r, list, NULL);
    json_text(r, o, "path", m->path);
    json_text(r, o, "device", topology->devices[m->device].name);
    json_text(r, o, "cause", m->cause);
    json_number(r, o, "busy_ms", ms(m->busy_ns));
    json_int(r, o, "variable_bytes", (int64_t)m->bytes);
    json_bool(r, o, "recomputed", m->recomputed);
  }
}

static const char *device_name(const sn_plan *plan, int device) {
  return device < 0 ? NULL : sn_plan_device_at(plan, (size_t)device).name;
}

static void put_values(json_report *r, cJSON *into, const char *key, const uint32_t *values,
                       size_t n) {
  cJSON *list = json_list(r, into, key);
  for (size_t i = 0; i < n; i++)
    if (values[i] != 0) json_int(r, list, NULL, values[i]);
}

static void put_nodes(json_report *r, const sn_plan *plan) {
  cJSON *list = json_list(r, r->root, "nodes");
  for (size_t i = 0; i < sn_plan_placed_count(plan); i++) {
    sn_plan_placed n = sn_plan_placed_at(plan, i);
    cJSON *o = json_object(r, list, NULL);
    json_int(r, o, "id", n.node);
    json_text(r, o, "op", n.op);
    json_text(r, o, "name", n.name);
    json_text(r, o, "module", n.module);
    json_text(r, o, "device", device_name(plan, n.device));
    json_text(r, o, "cause", n.cause);
    json_text(r, o, "phase", n.phase);
    json_bool(r, o, "runs", n.runs);
    put_values(r, o, "inputs", n.inputs, n.n_inputs);
    put_values(r, o, "outputs", n.outputs, n.n_outputs);
  }
}

static void put_copies(json_report *r, const sn_plan *plan) {
  cJSON *list = json_list(r, r->root, "copies");
  for (size_t i = 0; i < sn_plan_copy_count(plan); i++) {
    sn_plan_copy c = sn_plan_copy_at(plan, i);
    cJSON *o = json_object(r, list, NULL);
    json_int(r, o, "id", c.node);
    json_text(r, o, "value", c.value);
    json_text(r, o, "from", device_name(plan, c.from));
    json_text(r, o, "to", device_name(plan, c.to));
    json_int(r, o, "bytes", (int64_t)c.bytes);
    json_number(r, o, "ms", ms(c.ns));
    json_text(r, o, "path", c.path == SN_LINK_DIRECT ? "direct" : "staged");
    json_text(r, o, "phase", c.phase);
  }
}

static void put_variables(json_report *r, const sn_plan *plan) {
  cJSON *list = json_list(r, r->root, "variables");
  for (size_t i = 0; i < sn_plan_variable_count(plan); i++) {
    sn_plan_variable v = sn_plan_variable_at(plan, i);
    cJSON *o = json_object(r, list, NULL);
    json_text(r, o, "name", v.name);
    json_text(r, o, "device", device_name(plan, v.device));
    json_text(r, o, "gradient_device", device_name(plan, v.gradient_device));
    cJSON *slots = json_list(r, o, "slot_devices");
    for (size_t s = 0; s < v.n_slots; s++)
      json_text(r, slots, NULL, device_name(plan, sn_plan_slot_device(plan, i, s)));
    json_text(r, o, "update_device", device_name(plan, v.update_device));
  }
}

static void put_insight(json_report *r, const sn_plan *plan, const plan_insight *in) {
  cJSON *chain = json_object(r, r->root, "chain");
  json_number(r, chain, "ms", ms(in->chain_ns));
  json_number(r, chain, "copies_ms", ms(in->chain_copies_ns));
  cJSON *on = json_object(r, chain, "devices_ms");
  for (size_t d = 0; d < sn_plan_device_count(plan); d++)
    json_number(r, on, sn_plan_device_at(plan, d).name, ms(in->chain_on[d]));
  json_text(r, r->root, "limit", in->limit);
  if (in->more_known) json_number(r, r->root, "one_more_device_ms", ms(in->more_step_ns));
}

sn_status plan_print_json(FILE *out, const sn_placement *placement, const sn_plan *plan,
                          const costs_figures *costs, const plan_insight *insight) {
  const sn_placement_figures *f = sn_placement_figures_of(placement);
  json_report r;
  SN_TRY(json_create(&r));
  put_devices(&r, plan);
  put_modules(&r, placement);
  put_nodes(&r, plan);
  put_copies(&r, plan);
  put_variables(&r, plan);
  json_number(&r, r.root, "predicted_step_ms", ms(f->predicted_step_ns));
  json_number(&r, r.root, "lower_bound_ms", ms(f->lower_bound_ns));
  json_number(&r, r.root, "one_device_ms", f->one_device < 0 ? NAN : ms(f->one_device_ns));
  if (f->one_device >= 0) json_text(&r, r.root, "one_device", device_name(plan, f->one_device));
  json_text(&r, r.root, "bound", f->bound);
  json_number(&r, r.root, "bound_ratio",
              f->lower_bound_ns > 0 ? (double)f->predicted_step_ns / (double)f->lower_bound_ns : 1);
  json_text(&r, r.root, "found", f->found);
  json_bool(&r, r.root, "annealed", f->annealed);
  json_int(&r, r.root, "super_nodes", f->super_nodes);
  json_bool(&r, r.root, "certified", f->certified);
  json_bool(&r, r.root, "bound_holds_for_waiting", f->any_schedule);
  json_int(&r, r.root, "devices_used", f->devices_used);
  json_text(&r, r.root, "sentence", sn_placement_sentence(placement));
  recompute_json(&r, r.root, placement);
  put_insight(&r, plan, insight);
  sn_status status = costs_json(&r, r.root, plan, costs);
  if (status == SN_OK) status = json_print(&r, out);
  json_free(&r);
  return status;
}
