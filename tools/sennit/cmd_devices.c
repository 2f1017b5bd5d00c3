/* SPDX-License-Identifier: Apache-2.0 */
/* sennit devices: what plans know about the devices of this machine, or of a list. */
#include "core/device/desc.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/json.h"
#include "tools/sennit/ui.h"

static const char *const kind_words[] = {
#define SN_X(ENUM, name, words) words,
    SN_DEVICE_KINDS(SN_X)
#undef SN_X
};

static const char *path_name(sn_link_path path) {
  return path == SN_LINK_DIRECT ? "direct" : "through host memory";
}

static void show_devices(ui_state *ui, const sn_topology *topology) {
  char memory[UI_WORDS], flops[UI_WORDS], bf16[UI_WORDS], bandwidth[UI_WORDS], launch[UI_WORDS];
  ui_line(ui, "%-10s %7s  %-10s %-14s %-14s %-11s %s", "device", "threads", "memory", "f32", "bf16",
          "bandwidth", "one operation costs");
  for (int i = 0; i < topology->n_devices; i++) {
    const sn_device_desc *d = &topology->devices[i];
    ui_line(ui, "%-10s %7d  %-10s %-14s %-14s %-11s %s", d->name, d->threads,
            d->memory_bytes == 0 ? "no limit" : ui_bytes((double)d->memory_bytes, memory),
            ui_rate(d->flops_per_s, "FLOP/s", flops),
            d->bf16_flops_per_s > 0 ? ui_rate(d->bf16_flops_per_s, "FLOP/s", bf16) : "as f32",
            ui_rate(d->bytes_per_s, "B/s", bandwidth),
            ui_seconds(1e-9 * (double)d->launch_ns, launch));
  }
}

static void show_links(ui_state *ui, const sn_topology *topology) {
  char rate[UI_WORDS], latency[UI_WORDS];
  if (topology->n_devices < 2) return;
  ui_line(ui, "%s", "");
  ui_line(ui, "%-10s %-10s %-12s %-10s %s", "from", "to", "rate", "latency", "path");
  for (int from = 0; from < topology->n_devices; from++) {
    for (int to = 0; to < topology->n_devices; to++) {
      if (from == to) continue;
      const sn_link_desc *link = sn_topology_link(topology, from, to);
      ui_line(ui, "%-10s %-10s %-12s %-10s %s", topology->devices[from].name,
              topology->devices[to].name, ui_rate(link->bytes_per_s, "B/s", rate),
              ui_seconds(1e-9 * (double)link->latency_ns, latency), path_name(link->path));
    }
  }
}

static void show_kinds(ui_state *ui) {
  ui_line(ui, "%s", "");
  for (int k = 0; k < SN_DEVICE_KIND_COUNT; k++) {
    const char *why = sn_device_kind_absent((sn_device_kind)k);
    ui_line(ui, "%-5s %s: %s", sn_device_kind_name((sn_device_kind)k),
            why == NULL ? "here" : "absent", why == NULL ? kind_words[k] : why);
  }
}

static sn_status print_json(const sn_topology *topology) {
  json_report report;
  SN_TRY(json_create(&report));
  cJSON *devices = json_list(&report, report.root, "devices");
  for (int i = 0; i < topology->n_devices; i++) {
    const sn_device_desc *d = &topology->devices[i];
    cJSON *device = json_object(&report, devices, NULL);
    json_text(&report, device, "name", d->name);
    json_text(&report, device, "kind", sn_device_kind_name(d->kind));
    json_int(&report, device, "threads", d->threads);
    json_int(&report, device, "memory_bytes", (int64_t)d->memory_bytes);
    json_number(&report, device, "flops_per_s", d->flops_per_s);
    json_number(&report, device, "bf16_flops_per_s", d->bf16_flops_per_s);
    json_number(&report, device, "bytes_per_s", d->bytes_per_s);
    json_int(&report, device, "launch_ns", d->launch_ns);
  }
  cJSON *links = json_list(&report, report.root, "links");
  for (int i = 0; i < topology->n_devices * topology->n_devices; i++) {
    const sn_link_desc *l = &topology->links[i];
    if (l->from == l->to) continue;
    cJSON *link = json_object(&report, links, NULL);
    json_text(&report, link, "from", topology->devices[l->from].name);
    json_text(&report, link, "to", topology->devices[l->to].name);
    json_number(&report, link, "bytes_per_s", l->bytes_per_s);
    json_int(&report, link, "latency_ns", l->latency_ns);
    json_text(&report, link, "path", path_name(l->path));
  }
  cJSON *kinds = json_list(&report, report.root, "kinds");
  for (int k = 0; k < SN_DEVICE_KIND_COUNT; k++) {
    const char *why = sn_device_kind_absent((sn_device_kind)k);
    cJSON *kind = json_object(&report, kinds, NULL);
    json_text(&report, kind, "name", sn_device_kind_name((sn_device_kind)k));
    json_bool(&report, kind, "here", why == NULL);
    json_text(&report, kind, "reason", why);
  }
  sn_status status = json_print(&report, stdout);
  json_free(&report);
  return status;
}

sn_status cmd_devices(const arg_set *args) {
  const char *list = args_text(args, "--devices");
  sn_topology *topology = NULL;
  SN_TRY(sn_topology_parse(list != NULL ? list : "cpu:0", (int)args_int(args, "--threads", 0),
                           &topology));
  sn_status status = SN_OK;
  if (args_given(args, "--json")) {
    status = print_json(topology);
  } else {
    ui_state ui;
    ui_init(&ui, false);
    show_devices(&ui, topology);
    show_links(&ui, topology);
    show_kinds(&ui);
  }
  sn_topology_free(topology);
  return status;
}
