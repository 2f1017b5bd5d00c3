/* SPDX-License-Identifier: Apache-2.0 */
/* One search: pins, groups, budget. */
#include <stdio.h>
#include <string.h>

#include "placement/makespan_impl.h"
#include "placement/match.h"
#include "placement/placement_impl.h"

/* ---- pins ---------------------------------------------------------------------------------- */

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

static sn_status apply_only(sn__problem *p, const sn_place_options *options) {
  if (options->only_device == NULL) return SN_OK;
  int device = sn_topology_find(p->topology, options->only_device);
  if (device < 0)
    return sn_status_make(SN_CODE_CONFIG, "placement: only_device '%s' is not in the topology",
                          options->only_device);
  for (uint32_t u = 0; u < p->n_units; u++)
    if (p->units[u].pinned < 0) p->flow->class_pin[u] = device;
  return SN_OK;
}

static sn_status apply_pins(sn__problem *p, const sn_place_options *options) {
  for (size_t i = 0; i < options->n_pins; i++) {
    const sn_pin *pin = &options->pins[i];
    int device = sn_topology_find(p->topology, pin->device);
    if (device < 0) return fail_pin_device(p->topology, pin);
    bool any = false;
    for (size_t m = 1; !any && m < p->graph->n_modules; m++)
      any = sn__module_matches(pin->module, p->graph->modules[m].path);
    if (!any) return sn_status_context(sn__fail_module(p->graph, pin->module), "placement");
    for (uint32_t u = 0; u < p->n_units; u++) {
      sn__unit *unit = &p->units[u];
      if (!sn__module_matches(pin->module, p->graph->modules[unit->module].path)) continue;
      if (unit->pattern != NULL && strlen(unit->pattern) > strlen(pin->module)) continue;
      unit->pinned = device;
      unit->pattern = pin->module;
      p->flow->class_pin[u] = device;
    }
  }
  return apply_only(p, options);
}

/* ---- the search ---------------------------------------------------------------------------- */

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

/* Up to here it pays to try. */
enum { CERTIFY_UNITS = 24 };

/* What takes less than a second. */
static int64_t default_evals(const sn__flow *f) {
  int64_t evals = 1500000 / ((int64_t)f->n_tasks + 1);
  return evals < 2000 ? 2000 : evals > 20000 ? 20000 : evals;
}

static sn_status search(sn__place_attempt *a) {
  const sn_place_options *options = a->request->options;
  uint32_t *groups = sn__calloc((size_t)a->p->n_units + 1, sizeof *groups);
  sn_status status = groups == NULL ? sn_status_out_of_memory() : find_groups(a->p, groups);
  if (status == SN_OK) {
    sn__makespan_options o = {.evals =
                                  options->evals != 0 ? options->evals : default_evals(a->p->flow),
                              .seed = options->seed,
                              .spread = options->objective == SN_OBJECTIVE_SPREAD,
                              .certify = a->p->n_units <= CERTIFY_UNITS,
                              .groups = groups};
    status = sn__makespan_solve(a->p->flow, &o, &a->plan);
  }
  sn__free(groups);
  return status;
}

/* Pins and limits of what was asked, for the attempt's graph. */
static sn_status make_problem(sn__place_attempt *a) {
  const sn__place_request *r = a->request;
  const sn_graph *g = a->graph != NULL ? a->graph : r->graph;
  SN_TRY(sn__problem_create(g, r->topology, r->extents, r->graph->n_symbols, &a->p));
  for (int d = 0; d < r->topology->n_devices; d++)
    a->p->flow->device_bytes[d] = r->limits[d];
  return apply_pins(a->p, r->options);
}

/* Units where `devices` (the attempt's own list) has them, with what is recomputed cut where
 * devices change, by longest paths. */
static sn_status look_again(sn__place_attempt *a) {
  const sn__place_request *r = a->request;
  sn_graph *g = NULL;
  SN_TRY(sn__recompute_placed(r->graph, a->entries, a->n_entries, a->p, a->plan.devices, &g));
  sn__problem_free(a->p);
  a->p = NULL;
  sn_graph_free(a->graph);
  a->graph = g;
  uint64_t *peak = sn__calloc((size_t)r->topology->n_devices, sizeof *peak);
  sn_status status = peak == NULL ? sn_status_out_of_memory() : make_problem(a);
  if (status == SN_OK) status = sn__place_peaks(a, peak, &a->plan.makespan);
  a->plan.fits = status == SN_OK && sn__place_worst(r->topology, r->limits, peak) < 0;
  sn__free(peak);
  return status;
}

/* All units on one device; false when a pin or an op forbids it. */
static bool all_on(sn__place_attempt *a, int device) {
  const sn__flow *f = a->p->flow;
  for (uint32_t u = 0; u < f->n_classes; u++) {
    if (f->class_pin[u] >= 0 && f->class_pin[u] != device) return false;
    if (sn__flow_class_ns(f, u, device) == SN__FLOW_NEVER) return false;
  }
  for (uint32_t u = 0; u < f->n_classes; u++)
    a->plan.devices[u] = device;
  return true;
}

/* The search does not know where devices will cut what is recomputed as one. Where they do, the
 * plan is looked at again as it will be; where that does not fit, one device alone may. */
static sn_status settle(sn__place_attempt *a) {
  size_t units = a->p->n_units;
  int n_devices = a->request->topology->n_devices;
  size_t nodes = a->graph->n_nodes;
  int *found = sn__calloc(units + 1, sizeof *found);
  if (found == NULL) return sn_status_out_of_memory();
  memcpy(found, a->plan.devices, units * sizeof *found);
  sn_graph *cut = NULL;
  sn_status status = sn__recompute_placed(a->request->graph, a->entries, a->n_entries, a->p,
                                          a->plan.devices, &cut);
  bool same = status == SN_OK && cut->n_nodes == nodes; /* cuts only leave clones out */
  sn_graph_free(cut);
  if (status == SN_OK && !same) {
    sn__free(a->plan.priorities);
    a->plan.priorities = NULL;
    status = look_again(a);
    int64_t best = INT64_MAX;
    bool fits = a->plan.fits;
    for (int d = 0; status == SN_OK && !fits && d < n_devices; d++) {
      if (!all_on(a, d)) continue;
      status = look_again(a);
      if (status != SN_OK || !a->plan.fits || a->plan.makespan >= best) continue;
      best = a->plan.makespan;
      memcpy(found, a->plan.devices, units * sizeof *found);
    }
    memcpy(a->plan.devices, found, units * sizeof *found);
    if (status == SN_OK && !fits) status = look_again(a);
  }
  sn__free(found);
  return status;
}

static bool limits_lowered(const sn__place_request *r) {
  bool lowered = false;
  for (int d = 0; d < r->topology->n_devices; d++)
    lowered |= r->limits[d] != r->topology->devices[d].memory_bytes;
  return lowered;
}

/* What the search proved of its own problem, where that is stricter than what was asked: with
 * limits that were lowered, with clones that were chosen by what is no proof, or that other places
 * would not have. What holds of every plan is the bound of the graph as given under the limits as
 * given. */
static sn_status claim_less(sn__place_attempt *a) {
  const sn__place_request *r = a->request;
  sn__place_attempt asked = {.request = r};
  sn_status status = make_problem(&asked);
  for (int d = 0; status == SN_OK && d < r->topology->n_devices; d++)
    asked.p->flow->device_bytes[d] = r->topology->devices[d].memory_bytes;
  if (status == SN_OK)
    status = sn__makespan_bound(asked.p->flow, &a->plan.lower_bound, &a->plan.bound);
  a->plan.any_schedule = true;
  a->plan.certified = a->plan.fits && a->plan.makespan == a->plan.lower_bound;
  sn__problem_free(asked.p);
  return status;
}

sn_status sn__place_attempt_make(const sn__place_request *r, const char *const *entries, size_t n,
                                 sn__place_attempt *out) {
  *out = (sn__place_attempt){.request = r, .entries = entries, .n_entries = n};
  sn_status status = n > 0 ? sn__recompute_apply(r->graph, entries, n, NULL, &out->graph) : SN_OK;
  if (status == SN_OK) status = make_problem(out);
  if (status == SN_OK) status = search(out);
  bool cut = n > 0 && r->topology->n_devices > 1;
  bool chosen = n > 0 && r->options->recompute == SN_RECOMPUTE_AUTO;
  if (status == SN_OK && cut) status = settle(out);
  if (status == SN_OK && (cut || chosen || limits_lowered(r))) status = claim_less(out);
  if (status != SN_OK) sn__place_attempt_free(out);
  return status;
}

void sn__place_attempt_free(sn__place_attempt *a) {
  sn__makespan_free(&a->plan);
  sn__problem_free(a->p);
  sn_graph_free(a->graph);
  *a = (sn__place_attempt){0};
}
