/* SPDX-License-Identifier: Apache-2.0 */
/* The placement pass: pins, the search, causes, figures; and putting a decision on a graph. */
#include "placement/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/run/values.h"
#include "placement/copies.h"
#include "placement/placement_impl.h"

/* ---- the pass ------------------------------------------------------------------------------ */

/* Plans that the simulator lets pass and the memory plan does not: so often the limits are lowered
 * by what was over. */
enum { ROUNDS = 4 };

static sn_status begin_request(sn__place_request *r) {
  const sn_place_options *o = r->options;
  const sn_graph *g = r->graph;
  r->extents = sn__calloc(g->n_symbols, sizeof *r->extents);
  r->limits = sn__calloc((size_t)r->topology->n_devices, sizeof *r->limits);
  if (r->extents == NULL || r->limits == NULL) return sn_status_out_of_memory();
  for (size_t s = 0; s < g->n_symbols; s++)
    r->extents[s] =
        o->extents != NULL && s < o->n_extents ? o->extents[s] : sn__usual_extent(&g->symbols[s]);
  for (int d = 0; d < r->topology->n_devices; d++)
    r->limits[d] = r->topology->devices[d].memory_bytes;
  if (o->recompute < SN_RECOMPUTE_AUTO || o->recompute > SN_RECOMPUTE_LISTED)
    return sn_status_make(SN_CODE_INVALID, "sn_place: no way to recompute has number %d",
                          (int)o->recompute);
  if (o->recompute != SN_RECOMPUTE_LISTED) return SN_OK;
  return sn__recompute_check(g, o->recomputed, o->n_recomputed);
}

/* What binds where nothing is recomputed, as the cause of recomputing. */
static sn_status say_what_binds(const sn__place_attempt *plain, char **out_cause) {
  const sn_topology *t = plain->request->topology;
  uint64_t *peak = sn__calloc((size_t)t->n_devices, sizeof *peak);
  if (peak == NULL) return sn_status_out_of_memory();
  sn_status status = sn__place_peaks(plain, peak, NULL);
  int d = sn__place_worst(t, plain->request->limits, peak);
  if (status == SN_OK && d >= 0) {
    char takes[SN__BYTES_SIZE], has[SN__BYTES_SIZE];
    *out_cause = sn__format("no placement found fits without: %s would need %s and has %s",
                            t->devices[d].name, sn__bytes(peak[d], takes),
                            sn__bytes(t->devices[d].memory_bytes, has));
    if (*out_cause == NULL) status = sn_status_out_of_memory();
  }
  sn__free(peak);
  return status;
}

/* `a` does not fit: the attempt with what may help recomputed takes its place. */
static sn_status try_recompute(sn__place_attempt *a, sn__recompute_choice *choice,
                               char **out_cause) {
  const sn__place_request *r = a->request;
  SN_TRY(sn__recompute_choose(a->p, a->plan.devices, r->extents, choice));
  if (choice->n == 0) return SN_OK;
  sn__place_attempt with = {0};
  sn_status status = say_what_binds(a, out_cause);
  if (status == SN_OK) status = sn__place_attempt_make(r, choice->entries, choice->n, &with);
  SN_TRY(status);
  sn__place_attempt_free(a);
  *a = with;
  return SN_OK;
}

/* One round: `bytes` [n_devices] is what the plan needs. A placement comes out unless memory lacks.
 */
static sn_status place_once(const sn__place_request *r, bool last, uint64_t *bytes,
                            sn_placement **out) {
  const sn_place_options *o = r->options;
  sn__place_attempt a = {0};
  sn__recompute_choice choice = {0};
  char *cause = NULL;
  bool listed = o->recompute == SN_RECOMPUTE_LISTED;
  SN_TRY(
      sn__place_attempt_make(r, listed ? o->recomputed : NULL, listed ? o->n_recomputed : 0, &a));
  sn_status status = SN_OK;
  if (!a.plan.fits && o->recompute == SN_RECOMPUTE_AUTO)
    status = try_recompute(&a, &choice, &cause);
  bool near = false; /* a limit: what is far from all of them fits in any case */
  if (status == SN_OK) status = sn__place_peaks(&a, bytes, NULL);
  for (int d = 0; status == SN_OK && d < r->topology->n_devices; d++) {
    near |= r->limits[d] != 0 && bytes[d] > r->limits[d] / 4;
    bytes[d] += r->topology->devices[d].memory_bytes - r->limits[d]; /* what the plan adds to it */
  }
  if (status == SN_OK && !a.plan.fits) status = sn__place_refuse(&a, bytes);
  sn_placement *pl = status == SN_OK ? sn__calloc(1, sizeof *pl) : NULL;
  if (status == SN_OK)
    status = pl == NULL ? sn_status_out_of_memory() : sn_topology_copy(r->topology, &pl->topology);
  if (status == SN_OK)
    status = sn__placement_describe(pl, &a, cause != NULL ? cause : "as asked for");
  if (status == SN_OK && near) {
    status = sn__placement_plan_bytes(pl, r, bytes);
    bool over = false;
    for (int d = 0; status == SN_OK && d < r->topology->n_devices; d++) {
      uint64_t has = r->topology->devices[d].memory_bytes;
      if (has == 0 || bytes[d] <= has) continue;
      over = true;
      uint64_t less = bytes[d] - has + 64;
      r->limits[d] = r->limits[d] > less ? r->limits[d] - less : 1;
    }
    if (status == SN_OK && over && last) status = sn__place_refuse(&a, bytes);
    if (status == SN_OK && over) {
      sn_placement_free(pl);
      pl = NULL;
    }
  }
  if (status == SN_OK)
    *out = pl;
  else
    sn_placement_free(pl);
  sn__recompute_choice_free(&choice);
  sn__place_attempt_free(&a);
  sn__free(cause);
  return status;
}

static sn_status place(sn__place_request *r, sn_placement **out) {
  SN_TRY(begin_request(r));
  uint64_t *bytes = sn__calloc((size_t)r->topology->n_devices, sizeof *bytes);
  if (bytes == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  for (int round = 0; status == SN_OK && *out == NULL && round < ROUNDS; round++)
    status = place_once(r, round == ROUNDS - 1, bytes, out);
  sn__free(bytes);
  return status;
}

sn_status sn_place(const sn_graph *graph, const sn_topology *topology,
                   const sn_place_options *options, sn_placement **out_placement) {
  sn_place_options o;
  SN_TRY(sn_options_read(options, sizeof o, "sn_place", &o));
  SN_TRY(sn_graph_status(graph));
  if (graph->n_nodes <= 1) return sn_status_make(SN_CODE_INVALID, "placement: the graph is empty");
  sn__place_request r = {.graph = graph, .topology = topology, .options = &o};
  sn_placement *pl = NULL;
  sn_status status = place(&r, &pl);
  sn__free(r.extents);
  sn__free(r.limits);
  if (status == SN_OK) *out_placement = pl;
  return status;
}

void sn_placement_free(sn_placement *pl) {
  if (pl == NULL) return;
  sn_topology_free(pl->topology);
  sn__free(pl->modules);
  sn__free(pl->busy_ns);
  sn__free(pl->peak_bytes);
  sn__free(pl->sentence);
  sn__free(pl->orders);
  sn__free(pl->recomputed);
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

size_t sn_placement_recomputed_count(const sn_placement *pl) {
  return pl->n_recomputed;
}

sn_placement_recomputed sn_placement_recomputed_at(const sn_placement *pl, size_t i) {
  return i < pl->n_recomputed ? pl->recomputed[i] : (sn_placement_recomputed){0};
}

const char *sn_placement_recompute_cause(const sn_placement *pl) {
  return pl->recompute_cause;
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
  if (n->recomputed)
    text = sn__format("recomputed, with its forward node '%s'", g->nodes[n->origin].name);
  else if (n->home != 0)
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

static int compare_names(const void *a, const void *b) {
  return strcmp(((const sn__node_order *)a)->name, ((const sn__node_order *)b)->name);
}

/* The order found is for the graph that was placed; another variant goes by longest paths. */
static void order_nodes(const sn_placement *pl, sn_graph *g) {
  if (pl->n_orders == 0 || g->n_nodes != pl->n_nodes) return;
  size_t found = 0;
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node_order key = {.name = g->nodes[i].name}, *order;
    order = bsearch(&key, pl->orders, pl->n_orders, sizeof key, compare_names);
    g->nodes[i].order = order == NULL ? 0 : order->order;
    found += order != NULL;
  }
  g->order_rule = found == pl->n_orders ? SN_ORDER_PRIORITY : SN_ORDER_LONGEST;
}

/* A clone with what is recomputed in it. */
static sn_status recompute(const sn_placement *pl, const sn_graph *graph, sn_graph **out) {
  if (pl->n_recomputed == 0) return sn__graph_clone(graph, out);
  const char **entries = sn__calloc(pl->n_recomputed, sizeof *entries);
  int *devices = sn__calloc(graph->n_modules, sizeof *devices);
  sn_status status = entries == NULL || devices == NULL ? sn_status_out_of_memory() : SN_OK;
  for (size_t i = 0; status == SN_OK && i < pl->n_recomputed; i++)
    entries[i] = pl->recomputed[i].modules;
  for (uint32_t m = 0; status == SN_OK && m < graph->n_modules; m++) {
    const sn_placement_module *at = module_of(pl, graph, m);
    devices[m] = at == NULL ? pl->loss_device : at->device;
  }
  if (status == SN_OK) status = sn__recompute_apply(graph, entries, pl->n_recomputed, devices, out);
  sn__free(entries);
  sn__free(devices);
  return status;
}

sn_status sn_placement_apply(const sn_placement *pl, const sn_graph *graph, sn_graph **out_placed) {
  sn_graph *g = NULL;
  uint32_t *modules = NULL;
  SN_TRY(recompute(pl, graph, &g));
  sn_status status = sn__home_modules(g, &modules);
  if (status == SN_OK) status = place_nodes(pl, g, modules);
  if (status == SN_OK) order_nodes(pl, g);
  if (status == SN_OK) status = sn__insert_copies(g, pl->topology, out_placed);
  sn__free(modules);
  sn_graph_free(g);
  return status;
}
