/* SPDX-License-Identifier: Apache-2.0 */
/* sennit eval: measures of a checkpoint on data with labels. */
#include "tools/sennit/commands.h"
#include "tools/sennit/loaded.h"
#include "tools/sennit/stop.h"

static sn_status print_json(const loaded *l, const evaluation *e) {
  json_report r;
  SN_TRY(json_create(&r));
  json_text(&r, r.root, "checkpoint", l->path);
  json_int(&r, r.root, "rows", e->rows);
  evaluation_json(&r, r.root, e);
  cJSON *devices = json_list(&r, r.root, "devices");
  for (int d = 0; d < l->topology->n_devices; d++)
    json_text(&r, devices, NULL, l->topology->devices[d].name);
  sn_status status = json_print(&r, stdout);
  json_free(&r);
  return status;
}

sn_status cmd_eval(const arg_set *args) {
  ui_state ui;
  loaded l;
  evaluation e = {.outputs = NULL};
  bool json = args_given(args, "--json");
  ui_init(&ui, json);
  sn_status status = loaded_open(args, true, &ui, &l);
  if (status == SN_OK) {
    evaluate_options options = loaded_pass(&l, &ui, "eval");
    status = evaluate_run(&options, &e);
  }
  if (sn_status_code(status) == SN_CODE_INTERRUPTED && stop_signal() != 0) {
    sn_status_free(status);
    status = SN_OK;
    stop_obeyed();
  } else if (status == SN_OK) {
    ui_line(&ui, "%s on %lld rows", l.path, (long long)e.rows);
    for (size_t i = 0; i < e.n_outputs; i++) {
      const evaluated_output *o = &e.outputs[i];
      for (size_t k = 0; k < o->n_values; k++)
        ui_line(&ui, "%s %-18s %.6g", o->name, o->values[k].name, o->values[k].value);
      ui_line(&ui, "%s %-18s %.6g", o->name, "loss", o->loss);
    }
    if (json) status = print_json(&l, &e);
  }
  evaluation_free(&e);
  loaded_free(&l);
  return status;
}
