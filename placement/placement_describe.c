/* SPDX-License-Identifier: Apache-2.0 */
/* Causes and figures of a placement. */
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/run/values.h"
#include "placement/flow_simulate.h"
#include "placement/placement_impl.h"

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
  const sn__makespan_result *plan;
  bool spread;
  const char *only_cause; /* NULL: more than one device was free to take */
  int64_t host_ns;        /* what a step takes beside its nodes, wherever they are */
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
  if (l->only_cause != NULL) return keep(pl, sn__strdup(l->only_cause));
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
  return strcmp(((const sn__node_order *)a)->name, ((const sn__node_order *)b)->name);
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
    pl->orders[i] = (sn__node_order){sn__arena_strdup(&pl->arena, n->name), (int64_t)i + 1};
    if (pl->orders[i].name == NULL) status = sn_status_out_of_memory();
    pl->n_orders = i + 1;
  }
  sn__free(all);
  if (status == SN_OK) qsort(pl->orders, pl->n_orders, sizeof *pl->orders, compare_names);
  return status;
}

static sn_status write_sentence(sn_placement *pl, const char *only_cause) {
  const sn_placement_figures *f = &pl->figures;
  double step = (double)f->predicted_step_ns * 1e-6, one = (double)f->one_device_ns * 1e-6;
  const char *name = f->one_device < 0 ? "" : pl->topology->devices[f->one_device].name;
  char copied[SN__BYTES_SIZE];
  sn__bytes(f->copy_bytes, copied);
  if (f->one_device < 0)
    pl->sentence = sn__format("No device alone has the memory; on %d the step takes %.3f ms with "
                              "%.3f ms of copies (%s).",
                              f->devices_used, step, (double)f->copy_ns * 1e-6, copied);
  else if (pl->topology->n_devices == 1)
    pl->sentence = sn__format("One device: a step is predicted to take %.3f ms on %s.", step, name);
  else if (f->devices_used == 1 && only_cause != NULL)
    pl->sentence = sn__format("One device of %d does it all: %.3f ms a step; %s.",
                              pl->topology->n_devices, step, only_cause);
  else if (f->devices_used == 1)
    pl->sentence = sn__format("One device of %d does it all: %.3f ms a step; spreading would cost "
                              "more in copies than it gains.",
                              pl->topology->n_devices, step);
  else if (f->predicted_step_ns <= f->one_device_ns)
    pl->sentence = sn__format("Copies of %s take %.3f ms a step, and %d devices shorten it "
                              "from %.3f ms on %s to %.3f ms.",
                              copied, (double)f->copy_ns * 1e-6, f->devices_used, one, name, step);
  else
    pl->sentence = sn__format("As asked for, %d devices take %.3f ms a step with %.3f ms of copies "
                              "(%s); %s alone would take %.3f ms.",
                              f->devices_used, step, (double)f->copy_ns * 1e-6, copied, name, one);
  return pl->sentence == NULL ? sn_status_out_of_memory() : SN_OK;
}

/* What each entry keeps less and costs, beside those before it. */
static sn_status keep_recomputed(sn_placement *pl, const sn__place_attempt *a) {
  const sn__place_request *r = a->request;
  uint64_t kept = 0;
  int64_t ns = 0;
  pl->recomputed = sn__calloc(a->n_entries + 1, sizeof *pl->recomputed);
  if (pl->recomputed == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i <= a->n_entries; i++) {
    sn_graph *g = NULL;
    sn__problem *p = NULL;
    uint64_t now = 0;
    SN_TRY(sn__recompute_placed(r->graph, a->entries, i, a->p, a->plan.devices, &g));
    sn_status status = sn__recompute_kept(g, r->extents, &now);
    if (status == SN_OK) status = sn__problem_create(g, r->topology, r->extents, g->n_symbols, &p);
    int64_t cost = status == SN_OK ? sn__recompute_ns(p, a->plan.devices) : 0;
    sn__problem_free(p);
    sn_graph_free(g);
    SN_TRY(status);
    if (i > 0) {
      sn_placement_recomputed *at = &pl->recomputed[i - 1];
      at->modules = sn__arena_strdup(&pl->arena, a->entries[i - 1]);
      at->bytes = kept > now ? kept - now : 0;
      at->ns = cost > ns ? cost - ns : 0;
      if (at->modules == NULL) return sn_status_out_of_memory();
      pl->n_recomputed = i;
    }
    kept = now;
    ns = cost;
  }
  return SN_OK;
}

static sn_status mark_recomputed(sn_placement *pl, const sn__place_attempt *a) {
  const sn_graph *g = a->p->graph;
  bool *taken = sn__calloc(g->n_modules, sizeof *taken);
  if (taken == NULL) return sn_status_out_of_memory();
  sn_status status = sn__recompute_taken(g, a->entries, a->n_entries, taken);
  for (uint32_t u = 0; status == SN_OK && u < a->p->n_units; u++) {
    sn_placement_module *m = &pl->modules[u];
    m->recomputed = taken[a->p->units[u].module];
    if (!m->recomputed) continue;
    m->cause = keep(pl, sn__format("%s; recomputed", m->cause));
    if (m->cause == NULL) status = sn_status_out_of_memory();
  }
  sn__free(taken);
  return status;
}

static sn_status fill_recomputed(sn_placement *pl, const sn__place_attempt *a, const char *cause) {
  if (a->n_entries == 0) return SN_OK;
  pl->recompute_cause = sn__arena_strdup(&pl->arena, cause);
  if (pl->recompute_cause == NULL) return sn_status_out_of_memory();
  SN_TRY(keep_recomputed(pl, a));
  return mark_recomputed(pl, a);
}

static sn_status fill_figures(sn_placement *pl, const looked_at *l) {
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
      .memory_fits = r->fits,
      .certified = r->certified && l->only_cause == NULL,
      .any_schedule = r->any_schedule,
      .super_nodes = (int)l->p->n_units,
      .bound = r->bound,
      .found = r->found,
      .annealed = r->annealed,
      .ordered = r->priorities != NULL};
  const sn_graph *g = l->p->graph;
  if (g->n_losses > 0)
    pl->loss_device = r->devices[l->p->unit_of_node[g->values[g->losses[0].sum].node]];
  return SN_OK;
}

static const char *only_cause(const sn_place_options *o) {
  if (o->only_device == NULL) return NULL;
  return o->only_cause != NULL ? o->only_cause : "the only device asked for";
}

sn_status sn__placement_describe(sn_placement *pl, const sn__place_attempt *a,
                                 const char *recompute_cause) {
  looked_at l = {.p = a->p,
                 .plan = &a->plan,
                 .spread = a->request->options->objective == SN_OBJECTIVE_SPREAD,
                 .only_cause = only_cause(a->request->options),
                 .host_ns = sn__step_cost_ns(a->p->topology)};
  SN_TRY(sn__flow_simulator_create(a->p->flow, &l.simulator));
  sn_status status = fill_figures(pl, &l);
  if (status == SN_OK) status = fill_modules(pl, &l);
  if (status == SN_OK) status = fill_recomputed(pl, a, recompute_cause);
  if (status == SN_OK) status = keep_orders(pl, &l);
  if (status == SN_OK) status = write_sentence(pl, l.only_cause);
  sn__flow_simulator_free(l.simulator);
  return status;
}
