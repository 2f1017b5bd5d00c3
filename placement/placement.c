/* SPDX-License-Identifier: Apache-2.0 */
/* The placement pass: pins, the search, causes, figures; and putting a decision on a graph. */
#include "placement/placement.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/nearest.h"
#include "core/run/values.h"
#include "placement/copies.h"
#include "placement/flow_simulate.h"
#include "placement/makespan.h"
#include "placement/problem.h"

/* What a node's order is, for the graph that was placed. */
typedef struct node_order {
  const char *name;
  int64_t order;
} node_order;

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
  size_t n_nodes;     /* of the graph that was placed */
  node_order *orders; /* [n_orders] by name; none: longest remaining path first */
  size_t n_orders;
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
      p->flow->class_pin[u] = device;
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

/* The plan being looked at, while its figures and causes are made. */
typedef struct looked_at {
  const sn__problem *p;
  sn__flow_simulator *simulator;
  sn__makespan_result *plan;
  bool spread;
  int64_t host_ns; /* what a step takes beside its nodes, wherever they are */
} looked_at;

/* The step with `unit` moved to its best other device, against the step as it is. */
static int64_t gain_of(const looked_at *l, uint32_t unit) {
  int *devices = l->plan->devices, was = devices[unit];
  int64_t least = INT64_MAX;
  for (int d = 0; d < l->p->topology->n_devices; d++) {
    if (d == was) continue;
    sn__flow_step step = {0};
    devices[unit] = d;
    sn__flow_simulate(l->simulator, devices, l->plan->priorities, &step);
    if (step.makespan < least) least = step.makespan;
  }
  devices[unit] = was;
  return least == INT64_MAX ? 0 : least - l->plan->makespan;
}

static char *unit_cause(sn_placement *pl, const looked_at *l, uint32_t u) {
  const sn__problem *p = l->p;
  if (p->units[u].pinned >= 0) return keep(pl, sn__format("pinned by '%s'", p->units[u].pattern));
  if (p->topology->n_devices == 1) return keep(pl, sn__strdup("the only device"));
  if (l->spread) return keep(pl, sn__strdup("spread: every device has work"));
  if (pl->figures.devices_used == 1)
    return keep(pl,
                sn__strdup("solver: one device is fastest, copies would cost more than they gain"));
  int64_t gain = gain_of(l, u);
  if (gain <= 0) return keep(pl, sn__strdup("solver: no slower here than elsewhere"));
  return keep(pl, sn__format("solver: shortens the step by %.3f ms", (double)gain * 1e-6));
}

static sn_status fill_modules(sn_placement *pl, const looked_at *l) {
  const sn__problem *p = l->p;
  size_t nd = (size_t)p->topology->n_devices;
  pl->modules = sn__calloc(p->n_units + 1, sizeof *pl->modules);
  if (pl->modules == NULL) return sn_status_out_of_memory();
  for (uint32_t u = 0; u < p->n_units; u++) {
    sn_placement_module *m = &pl->modules[u];
    *m = (sn_placement_module){
        .path = sn__arena_strdup(&pl->arena, p->graph->modules[p->units[u].module].path),
        .device = l->plan->devices[u],
        .bytes = p->flow->class_bytes[u],
        .cause = unit_cause(pl, l, u)};
    if (m->path == NULL || m->cause == NULL) return sn_status_out_of_memory();
    pl->n_modules++;
  }
  for (uint32_t t = 0; t < p->n_tasks; t++) {
    sn_placement_module *m = &pl->modules[p->flow->task_class[t]];
    m->busy_ns += p->flow->task_ns[t * nd + (size_t)m->device];
  }
  return SN_OK;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const node_order *)a)->name, ((const node_order *)b)->name);
}

/* Priorities as orders of the graph's nodes: positive, none twice. */
typedef struct ranked {
  int64_t priority;
  uint32_t task;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->priority != y->priority) return x->priority < y->priority ? -1 : 1;
  return x->task > y->task ? -1 : x->task < y->task; /* equals: the earlier one goes first */
}

static sn_status keep_orders(sn_placement *pl, const looked_at *l) {
  const sn__problem *p = l->p;
  pl->n_nodes = p->graph->n_nodes;
  if (l->plan->priorities == NULL) return SN_OK;
  ranked *all = sn__calloc((size_t)p->n_tasks + 1, sizeof *all);
  pl->orders = sn__calloc((size_t)p->n_tasks + 1, sizeof *pl->orders);
  sn_status status = all == NULL || pl->orders == NULL ? sn_status_out_of_memory() : SN_OK;
  for (uint32_t t = 0; status == SN_OK && t < p->n_tasks; t++)
    all[t] = (ranked){l->plan->priorities[t], t};
  if (status == SN_OK) qsort(all, p->n_tasks, sizeof *all, compare_ranked);
  for (uint32_t i = 0; status == SN_OK && i < p->n_tasks; i++) {
    const sn__node *n = &p->graph->nodes[p->node_of_task[all[i].task]];
    pl->orders[i] = (node_order){sn__arena_strdup(&pl->arena, n->name), (int64_t)i + 1};
    if (pl->orders[i].name == NULL) status = sn_status_out_of_memory();
    pl->n_orders = i + 1;
  }
  sn__free(all);
  if (status == SN_OK) qsort(pl->orders, pl->n_orders, sizeof *pl->orders, compare_names);
  return status;
}

static sn_status write_sentence(sn_placement *pl) {
  const sn_placement_figures *f = &pl->figures;
  double step = (double)f->predicted_step_ns * 1e-6, one = (double)f->one_device_ns * 1e-6;
  const char *name = f->one_device < 0 ? "" : pl->topology->devices[f->one_device].name;
  if (f->one_device < 0)
    pl->sentence =
        sn__format("No device alone has the memory; on %d the step takes %.3f ms with "
                   "%.3f ms of copies (%.1f KiB).",
                   f->devices_used, step, (double)f->copy_ns * 1e-6, (double)f->copy_bytes / 1024);
  else if (pl->topology->n_devices == 1)
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

static double mib(uint64_t bytes) {
  return (double)bytes / 1048576;
}

/* What stays for the whole step does not fit, whatever the batch: which, and how much more is
 * needed. NULL: it could fit. */
static sn_status fail_persistent(const looked_at *l) {
  const sn__flow *f = l->p->flow;
  uint64_t all = 0, room = 0, most_room = 0;
  uint32_t largest = 0;
  for (uint32_t u = 0; u < f->n_classes; u++) {
    all += f->class_bytes[u];
    if (f->class_bytes[u] > f->class_bytes[largest]) largest = u;
  }
  for (int d = 0; d < f->n_devices; d++) {
    if (f->device_bytes[d] == 0) return SN_OK;
    room += f->device_bytes[d];
    if (f->device_bytes[d] > most_room) most_room = f->device_bytes[d];
  }
  if (f->class_bytes[largest] > most_room)
    return sn_status_make(
        SN_CODE_OUT_OF_MEMORY,
        "placement: variables and slots of module '%s' alone take %.1f MiB and the largest device "
        "has %.1f MiB; give it a device of %.1f MiB at least, or make the module smaller",
        l->p->graph->modules[l->p->units[largest].module].path, mib(f->class_bytes[largest]),
        mib(most_room), mib(f->class_bytes[largest]));
  if (all > room)
    return sn_status_make(SN_CODE_OUT_OF_MEMORY,
                          "placement: variables and slots alone take %.1f MiB and all devices "
                          "together have %.1f MiB; add a device of %.1f MiB at least",
                          mib(all), mib(room), mib(all - room));
  return SN_OK;
}

/* Refuses what does not fit, with the device that lacks most and what would help. */
static sn_status check_memory(sn_placement *pl, const looked_at *l, int64_t rows) {
  pl->figures.memory_fits = l->plan->fits;
  if (l->plan->fits) return SN_OK;
  const sn__flow *f = l->p->flow;
  int worst = -1;
  uint64_t lacks = 0, stays = 0;
  SN_TRY(fail_persistent(l));
  for (int d = 0; d < f->n_devices; d++) {
    uint64_t limit = f->device_bytes[d];
    if (limit == 0 || pl->peak_bytes[d] <= limit || pl->peak_bytes[d] - limit <= lacks) continue;
    lacks = pl->peak_bytes[d] - limit;
    worst = d;
  }
  if (worst < 0) return sn_status_make(SN_CODE_INTERNAL, "placement: a plan that fits does not");
  for (uint32_t u = 0; u < f->n_classes; u++)
    if (l->plan->devices[u] == worst) stays += f->class_bytes[u];
  const sn_device_desc *desc = &pl->topology->devices[worst];
  /* What is live for a while grows with the batch. */
  double share = (double)(pl->peak_bytes[worst] - stays);
  int64_t fewer = stays >= desc->memory_bytes || share <= 0
                      ? 0
                      : (int64_t)((double)rows * (double)(desc->memory_bytes - stays) / share);
  char batch[96] = "more memory there";
  if (fewer > 0)
    snprintf(batch, sizeof batch, "a batch of about %lld rows instead of %lld", (long long)fewer,
             (long long)rows);
  return sn_status_make(SN_CODE_OUT_OF_MEMORY,
                        "placement: no placement found that fits: %s would need %.1f MiB (%.1f MiB "
                        "of it variables and slots) and has %.1f MiB; use %s, or add a device",
                        desc->name, mib(pl->peak_bytes[worst]), mib(stays), mib(desc->memory_bytes),
                        batch);
}

/* ---- the pass ------------------------------------------------------------------------------ */

/* Units by top-level module: branches of the model, numbered. */
static sn_status find_groups(const sn__problem *p, uint32_t *groups) {
  const sn_graph *g = p->graph;
  uint32_t *number = sn__calloc(g->n_modules, sizeof *number), n = 0;
  if (number == NULL) return sn_status_out_of_memory();
  for (uint32_t u = 0; u < p->n_units; u++) {
    uint32_t top = p->units[u].module;
    while (top != 0 && g->modules[top].parent != 0)
      top = g->modules[top].parent;
    if (number[top] == 0) number[top] = ++n;
    groups[u] = number[top] - 1;
  }
  sn__free(number);
  return SN_OK;
}

static sn_status describe(sn_placement *pl, const looked_at *l, int64_t rows) {
  const sn__makespan_result *r = l->plan;
  size_t nd = (size_t)pl->topology->n_devices;
  pl->busy_ns = sn__calloc(nd, sizeof *pl->busy_ns);
  pl->peak_bytes = sn__calloc(nd, sizeof *pl->peak_bytes);
  if (pl->busy_ns == NULL || pl->peak_bytes == NULL) return sn_status_out_of_memory();
  sn__flow_step step = {.busy = pl->busy_ns, .peak_bytes = pl->peak_bytes};
  sn__flow_simulate(l->simulator, r->devices, r->priorities, &step);
  uint64_t used = 0;
  for (uint32_t u = 0; u < l->p->n_units; u++)
    used |= (uint64_t)1 << r->devices[u];
  pl->figures = (sn_placement_figures){
      .predicted_step_ns = step.makespan + l->host_ns,
      .lower_bound_ns = r->lower_bound + l->host_ns,
      .one_device_ns = r->one_device < 0 ? 0 : r->one_device_makespan + l->host_ns,
      .one_device = r->one_device,
      .evals = r->evals,
      .devices_used = __builtin_popcountll(used),
      .copy_ns = step.copy_time,
      .copy_bytes = step.copy_bytes,
      .certified = r->certified,
      .bound = r->bound,
      .ordered = r->priorities != NULL};
  SN_TRY(check_memory(pl, l, rows));
  const sn_graph *g = l->p->graph;
  if (g->n_losses > 0)
    pl->loss_device = r->devices[l->p->unit_of_node[g->values[g->losses[0].sum].node]];
  SN_TRY(fill_modules(pl, l));
  SN_TRY(keep_orders(pl, l));
  return write_sentence(pl);
}

/* What takes less than a second. */
static int64_t default_evals(const sn__flow *f) {
  int64_t evals = 1500000 / ((int64_t)f->n_tasks + 1);
  return evals < 2000 ? 2000 : evals > 20000 ? 20000 : evals;
}

static sn_status decide(sn_placement *pl, const sn__problem *p, const sn_place_options *options) {
  looked_at l = {.p = p,
                 .spread = options->objective == SN_OBJECTIVE_SPREAD,
                 .host_ns = sn__step_cost_ns(p->topology)};
  sn__makespan_result plan = {0};
  uint32_t *groups = sn__calloc((size_t)p->n_units + 1, sizeof *groups);
  sn_status status = groups == NULL ? sn_status_out_of_memory() : find_groups(p, groups);
  if (status == SN_OK) {
    sn__makespan_options o = {.evals =
                                  options->evals != 0 ? options->evals : default_evals(p->flow),
                              .seed = options->seed,
                              .spread = l.spread,
                              .certify = p->n_units <= 12,
                              .groups = groups};
    status = sn__makespan_solve(p->flow, &o, &plan);
  }
  if (status == SN_OK) status = sn__flow_simulator_create(p->flow, &l.simulator);
  if (status == SN_OK) {
    int64_t rows = options->n_extents > SN_SYMBOL_BATCH && options->extents != NULL
                       ? options->extents[SN_SYMBOL_BATCH]
                       : sn__usual_extent(&p->graph->symbols[SN_SYMBOL_BATCH]);
    l.plan = &plan;
    status = describe(pl, &l, rows);
  }
  sn__flow_simulator_free(l.simulator);
  sn__makespan_free(&plan);
  sn__free(groups);
  return status;
}

sn_status sn_place(const sn_graph *graph, const sn_topology *topology,
                   const sn_place_options *options, sn_placement **out_placement) {
  sn_place_options o;
  SN_TRY(sn_options_read(options, sizeof o, "sn_place", &o));
  SN_TRY(sn_graph_status(graph));
  if (graph->n_nodes <= 1) return sn_status_make(SN_CODE_INVALID, "placement: the graph is empty");
  sn__problem *p = NULL;
  sn_placement *pl = sn__calloc(1, sizeof *pl);
  if (pl == NULL) return sn_status_out_of_memory();
  sn_status status = sn_topology_copy(topology, &pl->topology);
  if (status == SN_OK) status = sn__problem_create(graph, pl->topology, o.extents, o.n_extents, &p);
  if (status == SN_OK) status = apply_pins(p, &o);
  if (status == SN_OK) status = decide(pl, p, &o);
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
  sn__free(pl->orders);
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

/* The order found is for the graph that was placed; another variant goes by longest paths. */
static void order_nodes(const sn_placement *pl, sn_graph *g) {
  if (pl->n_orders == 0 || g->n_nodes != pl->n_nodes) return;
  size_t found = 0;
  for (size_t i = 1; i < g->n_nodes; i++) {
    const node_order key = {.name = g->nodes[i].name}, *order;
    order = bsearch(&key, pl->orders, pl->n_orders, sizeof key, compare_names);
    g->nodes[i].order = order == NULL ? 0 : order->order;
    found += order != NULL;
  }
  g->order_rule = found == pl->n_orders ? SN_ORDER_PRIORITY : SN_ORDER_LONGEST;
}

sn_status sn_placement_apply(const sn_placement *pl, const sn_graph *graph, sn_graph **out_placed) {
  sn_graph *g = NULL;
  uint32_t *modules = NULL;
  SN_TRY(sn__graph_clone(graph, &g));
  sn_status status = sn__home_modules(g, &modules);
  if (status == SN_OK) status = place_nodes(pl, g, modules);
  if (status == SN_OK) order_nodes(pl, g);
  if (status == SN_OK) status = sn__insert_copies(g, pl->topology, out_placed);
  sn__free(modules);
  sn_graph_free(g);
  return status;
}
