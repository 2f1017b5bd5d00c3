/* SPDX-License-Identifier: Apache-2.0 */
/* The placement pass: pins, the search, causes, figures; and putting a decision on a graph. */
#include "placement/placement.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include "core/nearest.h"
#include "core/run/values.h"
#include "placement/copies.h"
#include "placement/problem.h"

struct sn_placement {
  sn__arena arena;
  sn_topology *topology;
  sn_placement_module *modules;
  size_t n_modules;
  sn_placement_figures figures;
  int64_t *busy_ns;
  uint64_t *peak_bytes;
  int loss_device; /* where what belongs to no known module goes */
  char *sentence;
};

/* ---- pins ---------------------------------------------------------------------------------- */

static bool pin_matches(const char *pattern, const char *path) {
  size_t n = strlen(pattern);
  if (strcmp(pattern, path) == 0 || (strncmp(path, pattern, n) == 0 && path[n] == '/')) return true;
  if (strpbrk(pattern, "*?[") == NULL) return false;
  if (fnmatch(pattern, path, FNM_PATHNAME) == 0) return true;
  /* A pattern takes what is beneath the modules it matches, too. */
  for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    char head[512];
    size_t length = (size_t)(slash - path);
    if (length >= sizeof head) break;
    memcpy(head, path, length);
    head[length] = '\0';
    if (fnmatch(pattern, head, FNM_PATHNAME) == 0) return true;
  }
  return false;
}

static sn_status fail_pin(const sn_graph *g, const char *pattern) {
  const char **names = sn__calloc(g->n_modules + 1, sizeof *names);
  if (names == NULL) return sn_status_out_of_memory();
  size_t n = 0;
  for (size_t i = 1; i < g->n_modules; i++)
    names[n++] = g->modules[i].path;
  const char *near = sn__nearest(pattern, names, n);
  sn_status status =
      near != NULL
          ? sn_status_make(SN_CODE_CONFIG, "placement: no module '%s'; did you mean '%s'?", pattern,
                           near)
          : sn_status_make(SN_CODE_CONFIG, "placement: no module '%s'; the model's first is '%s'",
                           pattern, n > 0 ? names[0] : "(none)");
  sn__free(names);
  return status;
}

static sn_status fail_pin_device(const sn_topology *t, const sn_pin *pin) {
  char list[512];
  size_t used = 0;
  list[0] = '\0';
  for (int d = 0; d < t->n_devices && used < sizeof list - SN_DEVICE_NAME_SIZE; d++) {
    int n =
        snprintf(list + used, sizeof list - used, "%s%s", d > 0 ? ", " : "", t->devices[d].name);
    used += n > 0 ? (size_t)n : 0;
  }
  return sn_status_make(SN_CODE_CONFIG,
                        "placement: '%s' is pinned to '%s', which is not in --devices (%s)",
                        pin->module, pin->device, list);
}

static sn_status apply_pins(sn__problem *p, const sn_place_options *options) {
  for (size_t i = 0; i < options->n_pins; i++) {
    const sn_pin *pin = &options->pins[i];
    int device = sn_topology_find(p->topology, pin->device);
    if (device < 0) return fail_pin_device(p->topology, pin);
    bool any = false;
    for (size_t m = 1; !any && m < p->graph->n_modules; m++)
      any = pin_matches(pin->module, p->graph->modules[m].path);
    if (!any) return fail_pin(p->graph, pin->module);
    for (uint32_t u = 0; u < p->n_units; u++) {
      sn__unit *unit = &p->units[u];
      if (!pin_matches(pin->module, p->graph->modules[unit->module].path)) continue;
      if (unit->pattern != NULL && strlen(unit->pattern) > strlen(pin->module)) continue;
      unit->pinned = device;
      unit->pattern = pin->module;
    }
  }
  return SN_OK;
}

/* ---- causes and figures -------------------------------------------------------------------- */

static char *keep(sn_placement *pl, char *text) {
  char *kept = text == NULL ? NULL : sn__arena_strdup(&pl->arena, text);
  sn__free(text);
  return kept;
}

/* The step with `unit` moved to its best other device, against the step as it is. */
static int64_t gain_of(const sn__problem *p, sn__simulator *simulator, int *devices, uint32_t unit,
                       int64_t step_ns) {
  int was = devices[unit];
  int64_t least = INT64_MAX;
  for (int d = 0; d < p->topology->n_devices; d++) {
    if (d == was) continue;
    sn__simulated out = {0};
    devices[unit] = d;
    sn__simulate(simulator, devices, &out);
    if (out.step_ns < least) least = out.step_ns;
  }
  devices[unit] = was;
  return least == INT64_MAX ? 0 : least - step_ns;
}

static char *unit_cause(sn_placement *pl, const sn__problem *p, sn__simulator *simulator,
                        int *devices, uint32_t u, bool spread) {
  if (p->units[u].pinned >= 0) return keep(pl, sn__format("pinned by '%s'", p->units[u].pattern));
  if (p->topology->n_devices == 1) return keep(pl, sn__strdup("the only device"));
  if (spread) return keep(pl, sn__strdup("spread: every device has work"));
  if (pl->figures.devices_used == 1)
    return keep(pl,
                sn__strdup("solver: one device is fastest, copies would cost more than they gain"));
  int64_t gain = gain_of(p, simulator, devices, u,
                         pl->figures.predicted_step_ns - sn__step_cost_ns(p->topology));
  if (gain <= 0) return keep(pl, sn__strdup("solver: no slower here than elsewhere"));
  return keep(pl, sn__format("solver: shortens the step by %.3f ms", (double)gain * 1e-6));
}

static sn_status fill_modules(sn_placement *pl, const sn__problem *p, sn__simulator *simulator,
                              int *devices, bool spread) {
  int nd = p->topology->n_devices;
  pl->modules = sn__calloc(p->n_units + 1, sizeof *pl->modules);
  if (pl->modules == NULL) return sn_status_out_of_memory();
  for (uint32_t u = 0; u < p->n_units; u++) {
    sn_placement_module *m = &pl->modules[u];
    *m = (sn_placement_module){
        .path = sn__arena_strdup(&pl->arena, p->graph->modules[p->units[u].module].path),
        .device = devices[u],
        .bytes = p->unit_bytes[u],
        .cause = unit_cause(pl, p, simulator, devices, u, spread)};
    if (m->path == NULL || m->cause == NULL) return sn_status_out_of_memory();
    pl->n_modules++;
  }
  for (uint32_t t = 0; t < p->n_tasks; t++) {
    sn_placement_module *m = &pl->modules[p->tasks[t].unit];
    m->busy_ns += p->task_ns[(size_t)t * (size_t)nd + (size_t)m->device];
  }
  return SN_OK;
}

static sn_status write_sentence(sn_placement *pl) {
  const sn_placement_figures *f = &pl->figures;
  double step = (double)f->predicted_step_ns * 1e-6, one = (double)f->one_device_ns * 1e-6;
  const char *name = pl->topology->devices[f->one_device].name;
  if (pl->topology->n_devices == 1)
    pl->sentence = sn__format("One device: a step is predicted to take %.3f ms on %s.", step, name);
  else if (f->devices_used == 1)
    pl->sentence = sn__format("One device of %d does it all: %.3f ms a step; spreading would cost "
                              "more in copies than it gains.",
                              pl->topology->n_devices, step);
  else if (f->predicted_step_ns <= f->one_device_ns)
    pl->sentence = sn__format("Copies of %.1f KiB take %.3f ms a step, and %d devices shorten it "
                              "from %.3f ms on %s to %.3f ms.",
                              (double)f->copy_bytes / 1024, (double)f->copy_ns * 1e-6,
                              f->devices_used, one, name, step);
  else
    pl->sentence = sn__format("As asked for, %d devices take %.3f ms a step with %.3f ms of copies "
                              "(%.1f KiB); %s alone would take %.3f ms.",
                              f->devices_used, step, (double)f->copy_ns * 1e-6,
                              (double)f->copy_bytes / 1024, name, one);
  return pl->sentence == NULL ? sn_status_out_of_memory() : SN_OK;
}

static sn_status check_memory(sn_placement *pl) {
  pl->figures.memory_fits = true;
  for (int d = 0; d < pl->topology->n_devices; d++) {
    const sn_device_desc *desc = &pl->topology->devices[d];
    if (desc->memory_bytes == 0 || pl->peak_bytes[d] <= desc->memory_bytes) continue;
    return sn_status_make(SN_CODE_OUT_OF_MEMORY,
                          "placement: no placement found that fits: %s would need %.1f MiB and has "
                          "%.1f MiB; use a smaller batch, or add a device",
                          desc->name, (double)pl->peak_bytes[d] / 1048576,
                          (double)desc->memory_bytes / 1048576);
  }
  return SN_OK;
}

/* ---- the pass ------------------------------------------------------------------------------ */

static sn_status decide(sn_placement *pl, sn__problem *p, sn__simulator *simulator,
                        const sn_place_options *options, int *devices) {
  int nd = p->topology->n_devices;
  bool spread = options->objective == SN_OBJECTIVE_SPREAD;
  sn__solution solution = {.devices = devices};
  SN_TRY(sn__solve(p, simulator, spread, options->evals > 0 ? options->evals : 2000, options->seed,
                   &solution));
  pl->busy_ns = sn__calloc((size_t)nd, sizeof *pl->busy_ns);
  pl->peak_bytes = sn__calloc((size_t)nd, sizeof *pl->peak_bytes);
  if (pl->busy_ns == NULL || pl->peak_bytes == NULL) return sn_status_out_of_memory();
  sn__simulated out = {.busy_ns = pl->busy_ns, .peak_bytes = pl->peak_bytes};
  sn__simulate(simulator, devices, &out);
  uint64_t used = 0;
  int64_t host = sn__step_cost_ns(p->topology); /* the same wherever modules are */
  for (uint32_t u = 0; u < p->n_units; u++)
    used |= (uint64_t)1 << devices[u];
  pl->figures = (sn_placement_figures){
      .predicted_step_ns = out.step_ns + host,
      .lower_bound_ns = sn__lower_bound_ns(p) + host,
      .one_device_ns =
          (solution.one_device_ns == INT64_MAX ? out.step_ns : solution.one_device_ns) + host,
      .one_device = solution.one_device,
      .evals = solution.evals,
      .devices_used = __builtin_popcountll(used),
      .copy_ns = out.copy_ns,
      .copy_bytes = out.copy_bytes};
  SN_TRY(check_memory(pl));
  const sn_graph *g = p->graph;
  if (g->n_losses > 0) pl->loss_device = devices[p->unit_of_node[g->values[g->losses[0].sum].node]];
  SN_TRY(fill_modules(pl, p, simulator, devices, spread));
  return write_sentence(pl);
}

sn_status sn_place(const sn_graph *graph, const sn_topology *topology,
                   const sn_place_options *options, sn_placement **out_placement) {
  sn_place_options o;
  SN_TRY(sn_options_read(options, sizeof o, "sn_place", &o));
  SN_TRY(sn_graph_status(graph));
  if (graph->n_nodes <= 1) return sn_status_make(SN_CODE_INVALID, "placement: the graph is empty");
  sn__problem *p = NULL;
  sn__simulator *simulator = NULL;
  int *devices = NULL;
  sn_placement *pl = sn__calloc(1, sizeof *pl);
  if (pl == NULL) return sn_status_out_of_memory();
  sn_status status = sn_topology_copy(topology, &pl->topology);
  if (status == SN_OK) status = sn__problem_create(graph, pl->topology, o.extents, o.n_extents, &p);
  if (status == SN_OK) status = apply_pins(p, &o);
  if (status == SN_OK) status = sn__simulator_create(p, &simulator);
  if (status == SN_OK) {
    devices = sn__calloc(p->n_units + 1, sizeof *devices);
    status = devices == NULL ? sn_status_out_of_memory() : decide(pl, p, simulator, &o, devices);
  }
  sn__free(devices);
  sn__simulator_free(simulator);
  sn__problem_free(p);
  if (status != SN_OK) {
    sn_placement_free(pl);
    return status;
  }
  *out_placement = pl;
  return SN_OK;
}

void sn_placement_free(sn_placement *pl) {
  if (pl == NULL) return;
  sn_topology_free(pl->topology);
  sn__free(pl->modules);
  sn__free(pl->busy_ns);
  sn__free(pl->peak_bytes);
  sn__free(pl->sentence);
  sn__arena_free(&pl->arena);
  sn__free(pl);
}

const sn_topology *sn_placement_topology(const sn_placement *pl) {
  return pl->topology;
}

const sn_placement_figures *sn_placement_figures_of(const sn_placement *pl) {
  return &pl->figures;
}

size_t sn_placement_module_count(const sn_placement *pl) {
  return pl->n_modules;
}

const sn_placement_module *sn_placement_module_at(const sn_placement *pl, size_t i) {
  return i < pl->n_modules ? &pl->modules[i] : NULL;
}

int64_t sn_placement_busy_ns(const sn_placement *pl, int device) {
  return device >= 0 && device < pl->topology->n_devices ? pl->busy_ns[device] : 0;
}

uint64_t sn_placement_peak_bytes(const sn_placement *pl, int device) {
  return device >= 0 && device < pl->topology->n_devices ? pl->peak_bytes[device] : 0;
}

const char *sn_placement_sentence(const sn_placement *pl) {
  return pl->sentence;
}

/* ---- putting it on a graph ------------------------------------------------------------------ */

static const sn_placement_module *module_of(const sn_placement *pl, const sn_graph *g,
                                            uint32_t module) {
  for (;;) {
    for (size_t i = 0; i < pl->n_modules; i++)
      if (strcmp(pl->modules[i].path, g->modules[module].path) == 0) return &pl->modules[i];
    if (module == 0) return NULL;
    module = g->modules[module].parent;
  }
}

static const char *node_cause(sn_graph *g, size_t i, const sn_placement_module *m) {
  const sn__node *n = &g->nodes[i];
  char *text = NULL;
  if (n->home != 0)
    text = sn__format("with %s '%s'",
                      g->values[n->home].kind == SN_VALUE_VARIABLE ? "variable" : "value",
                      g->values[n->home].name);
  else if (n->origin != 0)
    text = sn__format("with its forward node '%s'", g->nodes[n->origin].name);
  else if (n->op == &sn__op_input || n->op == &sn__op_constant)
    text = sn__format("with its first use, module '%s'", m == NULL ? "" : m->path);
  else
    text = sn__strdup(m == NULL ? "with the first loss" : m->cause);
  const char *kept = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
  sn__free(text);
  return kept;
}

static sn_status place_nodes(const sn_placement *pl, sn_graph *g, const uint32_t *modules) {
  const sn_placement_module **by_module = sn__calloc(g->n_modules, sizeof *by_module);
  if (by_module == NULL) return sn_status_out_of_memory();
  for (uint32_t m = 0; m < g->n_modules; m++)
    by_module[m] = module_of(pl, g, m);
  sn_status status = SN_OK;
  for (size_t i = 1; status == SN_OK && i < g->n_nodes; i++) {
    const sn_placement_module *m = by_module[modules[i]];
    g->nodes[i].device = m == NULL ? pl->loss_device : m->device;
    g->nodes[i].cause = node_cause(g, i, m);
    if (g->nodes[i].cause == NULL) status = sn_status_out_of_memory();
  }
  sn__free(by_module);
  return status;
}

sn_status sn_placement_apply(const sn_placement *pl, const sn_graph *graph, sn_graph **out_placed) {
  sn_graph *g = NULL;
  uint32_t *modules = NULL;
  SN_TRY(sn__graph_clone(graph, &g));
  sn_status status = sn__home_modules(g, &modules);
  if (status == SN_OK) status = place_nodes(pl, g, modules);
  if (status == SN_OK) status = sn__insert_copies(g, pl->topology, out_placed);
  sn__free(modules);
  sn_graph_free(g);
  return status;
}
