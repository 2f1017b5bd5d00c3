/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a placement fits, and what to say when none does. */
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "core/run/plan.h"
#include "placement/flow_simulate.h"
#include "placement/placement_impl.h"

static uint64_t limit_of(const sn__place_attempt *a, int device) {
  return a->request->topology->devices[device].memory_bytes;
}

/* What stays for the whole step does not fit, whatever the batch: which, and how much more is
 * needed. OK: it could fit. */
static sn_status fail_persistent(const sn__place_attempt *a) {
  const sn__flow *f = a->p->flow;
  uint64_t all = 0, room = 0, most_room = 0;
  uint32_t largest = 0;
  char takes[SN__BYTES_SIZE], has[SN__BYTES_SIZE], enough[SN__BYTES_SIZE];
  for (uint32_t u = 0; u < f->n_classes; u++) {
    all += f->class_bytes[u];
    if (f->class_bytes[u] > f->class_bytes[largest]) largest = u;
  }
  for (int d = 0; d < f->n_devices; d++) {
    if (limit_of(a, d) == 0) return SN_OK;
    room += limit_of(a, d);
    if (limit_of(a, d) > most_room) most_room = limit_of(a, d);
  }
  if (f->class_bytes[largest] > most_room)
    return sn_status_make(
        SN_CODE_OUT_OF_MEMORY,
        "placement: variables and slots of module '%s' alone take %s and the largest device has "
        "%s; give it a device of %s at least, or make the module smaller",
        a->p->graph->modules[a->p->units[largest].module].path,
        sn__bytes(f->class_bytes[largest], takes), sn__bytes(most_room, has),
        sn__bytes_enough(f->class_bytes[largest], enough));
  if (all > room)
    return sn_status_make(SN_CODE_OUT_OF_MEMORY,
                          "placement: variables and slots alone take %s and all devices together "
                          "have %s; add a device of %s at least",
                          sn__bytes(all, takes), sn__bytes(room, has),
                          sn__bytes_enough(all - room, enough));
  return SN_OK;
}

sn_status sn__place_peaks(const sn__place_attempt *a, uint64_t *out_peak, int64_t *out_makespan) {
  sn__flow_simulator *s = NULL;
  SN_TRY(sn__flow_simulator_create(a->p->flow, &s));
  sn__flow_step step = {.peak_bytes = out_peak};
  sn__flow_simulate(s, a->plan.devices, a->plan.priorities, &step);
  if (out_makespan != NULL) *out_makespan = step.makespan;
  sn__flow_simulator_free(s);
  return SN_OK;
}

int sn__place_worst(const sn_topology *t, const uint64_t *limits, const uint64_t *peak) {
  uint64_t lacks = 0;
  int worst = -1;
  for (int d = 0; d < t->n_devices; d++) {
    if (limits[d] == 0 || peak[d] <= limits[d] || peak[d] - limits[d] <= lacks) continue;
    lacks = peak[d] - limits[d];
    worst = d;
  }
  return worst;
}

/* ---- remedies ------------------------------------------------------------------------------ */

/* What `count` of a whole batch is in one of fewer rows. */
static int64_t part_of(const sn__symbol *symbol, int64_t count, int64_t rows, int64_t all) {
  if (symbol->kind == SN_SYMBOL_LONGEST || all <= 0) return count;
  return (int64_t)((double)count * (double)rows / (double)all + 0.999);
}

/* Whether a batch of so many rows fits where everything is now. */
static sn_status fits_with(const sn__place_attempt *a, int64_t rows, bool *out_fits) {
  const sn_graph *g = a->p->graph;
  const sn__place_request *r = a->request;
  size_t nd = (size_t)r->topology->n_devices;
  int64_t *extents = sn__calloc(g->n_symbols, sizeof *extents);
  uint64_t *peak = sn__calloc(nd, sizeof *peak);
  sn__place_attempt fewer = *a;
  fewer.p = NULL;
  sn_status status = extents == NULL || peak == NULL ? sn_status_out_of_memory() : SN_OK;
  for (size_t s = 0; status == SN_OK && s < g->n_symbols; s++)
    extents[s] = part_of(&g->symbols[s], r->extents[s], rows, r->extents[SN_SYMBOL_BATCH]);
  if (status == SN_OK) status = sn__problem_create(g, r->topology, extents, g->n_symbols, &fewer.p);
  if (status == SN_OK) status = sn__place_peaks(&fewer, peak, NULL);
  *out_fits = status == SN_OK && sn__place_worst(r->topology, r->limits, peak) < 0;
  sn__problem_free(fewer.p);
  sn__free(extents);
  sn__free(peak);
  return status;
}

/* The most rows that fit where everything is now; 0: none do. */
static sn_status find_rows(const sn__place_attempt *a, int64_t *out_rows) {
  int64_t most = a->request->extents[SN_SYMBOL_BATCH], least = 0;
  while (most - least > 1) {
    int64_t rows = least + (most - least) / 2;
    bool fits = false;
    SN_TRY(fits_with(a, rows, &fits));
    if (fits)
      least = rows;
    else
      most = rows;
  }
  *out_rows = least;
  return SN_OK;
}

/* What recomputing could do that was not allowed: "--recompute auto, which ..."; NULL: nothing. */
static sn_status find_recompute(const sn__place_attempt *a, char **out_text) {
  const sn__place_request *r = a->request;
  *out_text = NULL;
  if (r->options->recompute == SN_RECOMPUTE_AUTO) return SN_OK;
  sn__place_attempt plain = {0};
  sn__recompute_choice choice = {0};
  SN_TRY(sn__place_attempt_make(r, NULL, 0, &plain));
  sn_status status = sn__recompute_choose(plain.p, plain.plan.devices, r->extents, &choice);
  if (status == SN_OK && choice.lacks == 0 && choice.n > 0) {
    *out_text = sn__format("--recompute auto (computing again %s%s makes it fit), or ",
                           choice.entries[0], choice.n > 1 ? " and others" : "");
    if (*out_text == NULL) status = sn_status_out_of_memory();
  }
  sn__recompute_choice_free(&choice);
  sn__place_attempt_free(&plain);
  return status;
}

sn_status sn__place_refuse(const sn__place_attempt *a, const uint64_t *peak) {
  const sn__flow *f = a->p->flow;
  const sn_topology *t = a->request->topology;
  SN_TRY(fail_persistent(a));
  uint64_t *limits = sn__calloc((size_t)t->n_devices, sizeof *limits), stays = 0;
  if (limits == NULL) return sn_status_out_of_memory();
  for (int d = 0; d < t->n_devices; d++)
    limits[d] = t->devices[d].memory_bytes;
  int worst = sn__place_worst(t, limits, peak);
  sn__free(limits);
  if (worst < 0) return sn_status_make(SN_CODE_INTERNAL, "placement: a plan that fits does not");
  for (uint32_t u = 0; u < f->n_classes; u++)
    if (a->plan.devices[u] == worst) stays += f->class_bytes[u];
  int64_t rows = 0, all = a->request->extents[SN_SYMBOL_BATCH];
  char *recompute = NULL, batch[96] = "";
  SN_TRY(find_rows(a, &rows));
  SN_TRY(find_recompute(a, &recompute));
  if (rows > 0)
    snprintf(batch, sizeof batch, "a batch of %lld rows instead of %lld (they fit), or ",
             (long long)rows, (long long)all);
  const sn_device_desc *desc = &t->devices[worst];
  char takes[SN__BYTES_SIZE], held[SN__BYTES_SIZE], has[SN__BYTES_SIZE], more[SN__BYTES_SIZE];
  sn_status status = sn_status_make(
      SN_CODE_OUT_OF_MEMORY,
      "placement: no placement found that fits%s: %s would need %s (%s of it variables and "
      "slots) and has %s; use %s%sa device with %s more, or one more device",
      a->n_entries > 0 ? ", with all recomputed that helps" : "", desc->name,
      sn__bytes(peak[worst], takes), sn__bytes(stays, held), sn__bytes(desc->memory_bytes, has),
      batch, recompute == NULL ? "" : recompute,
      sn__bytes_enough(peak[worst] - desc->memory_bytes, more));
  sn__free(recompute);
  return status;
}

/* ---- the memory plan ----------------------------------------------------------------------- */

static sn_status plan_without_limits(const sn_graph *placed, const sn__place_request *r,
                                     bool training, sn_plan **out_plan) {
  sn_topology *topology = NULL;
  sn_extent *extents = sn__calloc(placed->n_symbols, sizeof *extents);
  sn_status status =
      extents == NULL ? sn_status_out_of_memory() : sn_topology_copy(r->topology, &topology);
  for (int d = 0; status == SN_OK && d < topology->n_devices; d++)
    topology->devices[d].memory_bytes = 0;
  for (size_t s = 0; status == SN_OK && s < placed->n_symbols; s++)
    extents[s] = (sn_extent){placed->symbols[s].name, r->extents[s]};
  if (status == SN_OK) {
    sn_plan_options options = {.struct_size = sizeof options,
                               .training = training,
                               .no_outputs = training,
                               .extents = extents,
                               .n_extents = placed->n_symbols};
    status = sn_plan_create(placed, topology, &options, out_plan);
  }
  sn_topology_free(topology);
  sn__free(extents);
  return status;
}

sn_status sn__placement_plan_bytes(const sn_placement *pl, const sn__place_request *r,
                                   uint64_t *out_bytes) {
  sn_graph *placed = NULL;
  sn_plan *plan = NULL;
  bool training = false;
  SN_TRY(sn_placement_apply(pl, r->graph, &placed));
  for (size_t i = 1; !training && i < placed->n_nodes; i++)
    training = (placed->nodes[i].op->flags & SN_OP_COMMIT) != 0;
  sn_status status = plan_without_limits(placed, r, training, &plan);
  for (size_t d = 0; status == SN_OK && d < sn_plan_device_count(plan); d++) {
    sn_plan_device at = sn_plan_device_at(plan, d);
    out_bytes[d] = (uint64_t)at.arena_bytes + at.variable_bytes;
  }
  sn_plan_free(plan);
  sn_graph_free(placed);
  return status;
}
