/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tools/sennit/plan_report.h"

enum { WIDEST = 44 };

static int wider(int width, const char *text) {
  int length = (int)strlen(text);
  if (length > WIDEST) length = WIDEST;
  return length > width ? length : width;
}

static double ms(int64_t ns) {
  return 1e-6 * (double)ns;
}

static void show_modules(ui_state *ui, const sn_placement *placement) {
  const sn_topology *topology = sn_placement_topology(placement);
  size_t n = sn_placement_module_count(placement);
  int width = 6;
  for (size_t i = 0; i < n; i++)
    width = wider(width, sn_placement_module_at(placement, i)->path);
  ui_line(ui, "%-*s  %-9s %10s  %-10s  %s", width, "module", "device", "time", "memory", "cause");
  for (size_t i = 0; i < n; i++) {
    const sn_placement_module *m = sn_placement_module_at(placement, i);
    char bytes[UI_WORDS];
    if (*m->path == '\0' && m->busy_ns == 0 && m->bytes == 0) continue;
    ui_line(ui, "%-*s  %-9s %7.3f ms  %-10s  %s", width, *m->path == '\0' ? "-" : m->path,
            topology->devices[m->device].name, ms(m->busy_ns), ui_bytes((double)m->bytes, bytes),
            m->cause);
  }
}

static void show_copies(ui_state *ui, const sn_plan *plan) {
  size_t n = sn_plan_copy_count(plan);
  int width = 4;
  for (size_t i = 0; i < n; i++)
    width = wider(width, sn_plan_copy_at(plan, i).value);
  if (n == 0) return;
  ui_line(ui, "%s", "");
  ui_line(ui, "%-*s  %-9s %-9s %-10s %10s  %-7s %s", width, "copy", "from", "to", "size", "time",
          "path", "phase");
  for (size_t i = 0; i < n; i++) {
    sn_plan_copy c = sn_plan_copy_at(plan, i);
    char bytes[UI_WORDS];
    ui_line(ui, "%-*s  %-9s %-9s %-10s %7.3f ms  %-7s %s", width, c.value,
            sn_plan_device_at(plan, (size_t)c.from).name,
            sn_plan_device_at(plan, (size_t)c.to).name, ui_bytes((double)c.bytes, bytes), ms(c.ns),
            c.path == SN_LINK_DIRECT ? "direct" : "staged", c.phase);
  }
}

static void show_devices(ui_state *ui, const sn_plan *plan) {
  size_t arena = 0, live = 0;
  ui_line(ui, "%s", "");
  ui_line(ui, "%-9s %6s %10s  %-10s  %-10s  %s", "device", "nodes", "busy", "variables", "arena",
          "arena over live bytes of the largest batch");
  for (size_t i = 0; i < sn_plan_device_count(plan); i++) {
    sn_plan_device d = sn_plan_device_at(plan, i);
    char variables[UI_WORDS], bytes[UI_WORDS], needed[UI_WORDS];
    arena += d.arena_bytes;
    live += d.live_bytes;
    double ratio = d.live_bytes > 0 ? (double)d.arena_bytes / (double)d.live_bytes : 1;
    ui_line(ui, "%-9s %6zu %7.3f ms  %-10s  %-10s  %.3f (%s live)", d.name, d.nodes, ms(d.busy_ns),
            ui_bytes((double)d.variable_bytes, variables), ui_bytes((double)d.arena_bytes, bytes),
            ratio, ui_bytes((double)d.live_bytes, needed));
  }
  if (sn_plan_device_count(plan) > 1 && live > 0)
    ui_line(ui, "all devices: arena over live bytes %.3f", (double)arena / (double)live);
}

static const char *show_proof(const sn_placement_figures *f) {
  if (!f->certified) return "";
  return f->any_schedule ? ", proved: no placement and order are better"
                         : ", proved: no placement and order without waiting are better";
}

void plan_show(ui_state *ui, const sn_placement *placement, const sn_plan *plan,
               const costs_figures *costs, const plan_insight *insight) {
  const sn_placement_figures *f = sn_placement_figures_of(placement);
  const sn_topology *topology = sn_placement_topology(placement);
  show_modules(ui, placement);
  show_copies(ui, plan);
  show_devices(ui, plan);
  recompute_show(ui, placement);
  ui_line(ui, "%s", "");
  char one[SN_DEVICE_NAME_SIZE + 48] = "no device alone holds the model";
  if (f->one_device >= 0)
    snprintf(one, sizeof one, "on one device %.3f ms (%s)", ms(f->one_device_ns),
             topology->devices[f->one_device].name);
  ui_line(ui, "predicted step %.3f ms, lower bound %.3f ms (ratio %.4f, %d super-nodes%s), %s",
          ms(f->predicted_step_ns), ms(f->lower_bound_ns),
          f->lower_bound_ns > 0 ? (double)f->predicted_step_ns / (double)f->lower_bound_ns : 1,
          f->super_nodes, show_proof(f), one);
  ui_line(ui, "found by: %s%s", f->found, f->annealed ? ", then annealing" : "");
  ui_line(ui, "what limits it: %s", insight->limit);
  ui_line(ui, "one more device: %s", insight->more);
  costs_show(ui, plan, costs);
  ui_line(ui, "%s", sn_placement_sentence(placement));
}
