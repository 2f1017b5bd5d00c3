/* SPDX-License-Identifier: Apache-2.0 */
/* Placements for a pipeline: candidates, then moves of single modules from the best, each judged by
 * the step of its own schedule. */
#include <string.h>

#include "placement/microbatch.h"

typedef struct choice {
  const sn_graph *train, *unrolled;
  const sn_topology *topology;
  const sn_place_options *options;
  const int64_t *extents;
  sn__pipe_rule rule;
  uint64_t seed;
  sn_placement *best;
  int64_t best_ns;
} choice;

/* INT64_MAX when the activations do not fit. */
static sn_status step_of(const choice *x, const sn_placement *placement, int64_t *out_ns) {
  sn_graph *placed = NULL;
  sn__micro_plan plan = {NULL, NULL, NULL, NULL};
  *out_ns = INT64_MAX;
  SN_TRY(sn_placement_apply(placement, x->unrolled, &placed));
  sn_status status = sn__micro_order(placed, x->topology, x->extents, x->rule, x->seed, &plan);
  if (status == SN_OK) *out_ns = plan.schedule->step_ns;
  sn__micro_plan_free(&plan);
  sn_graph_free(placed);
  if (sn_status_code(status) != SN_CODE_INVALID) return status;
  sn_status_free(status);
  return SN_OK;
}

/* cut[i]: the piece that module i belongs to, so that the heaviest of `pieces` is as light as can
 * be: least[k][i] is that of modules 0..i-1 in k + 1 pieces. */
static bool cut_modules(const sn_placement *base, size_t pieces, size_t *cut) {
  size_t n = sn_placement_module_count(base);
  int64_t *work = sn__calloc(n + 1, sizeof *work);
  int64_t *least = sn__calloc(pieces * (n + 1), sizeof *least);
  size_t *from = sn__calloc(pieces * (n + 1), sizeof *from);
  bool ok = work != NULL && least != NULL && from != NULL;
  for (size_t i = 0; ok && i < n; i++)
    work[i + 1] = work[i] + sn_placement_module_at(base, i)->busy_ns;
  for (size_t i = 0; ok && i <= n; i++)
    least[i] = work[i];
  for (size_t k = 1; ok && k < pieces; k++)
    for (size_t i = 0; i <= n; i++) {
      int64_t *best = &least[k * (n + 1) + i];
      *best = INT64_MAX;
      for (size_t j = 0; j <= i; j++) {
        int64_t before = least[(k - 1) * (n + 1) + j], last = work[i] - work[j];
        int64_t heaviest = before > last ? before : last;
        if (heaviest >= *best) continue;
        *best = heaviest;
        from[k * (n + 1) + i] = j;
      }
    }
  for (size_t k = pieces, end = n; ok && k-- > 0;) {
    size_t begin = k == 0 ? 0 : from[k * (n + 1) + end];
    for (size_t i = begin; i < end; i++)
      cut[i] = k;
    end = begin;
  }
  sn__free(work);
  sn__free(least);
  sn__free(from);
  return ok;
}

/* The modules are this function's own doing, not a user's pins: the report says so. */
static void say_why(const sn_placement *placement, const char *cause) {
  for (size_t i = 0; i < sn_placement_module_count(placement); i++)
    ((sn_placement_module *)(uintptr_t)sn_placement_module_at(placement, i))->cause = cause;
}

static sn_status place_pieces(const choice *x, const sn_placement *base, const size_t *cut,
                              sn_placement **out) {
  size_t n = sn_placement_module_count(base), n_pins = 0;
  sn_pin *pins = sn__calloc(n + 1, sizeof *pins);
  if (pins == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const char *path = sn_placement_module_at(base, i)->path;
    if (*path != '\0') pins[n_pins++] = (sn_pin){path, x->topology->devices[cut[i]].name};
  }
  sn_place_options o = *x->options;
  o.pins = pins;
  o.n_pins = n_pins;
  o.evals = 1;
  sn_status status = sn_place(x->train, x->topology, &o, out);
  sn__free(pins);
  if (status == SN_OK) say_why(*out, "pipeline: shortest simulated step of the placements tried");
  return status;
}

/* Keeps the placement, whose owner it becomes, when its pipeline is the shortest so far. */
static sn_status consider(choice *x, sn_placement *placement) {
  int64_t ns = 0;
  sn_status status = step_of(x, placement, &ns);
  bool better = status == SN_OK && ns < x->best_ns;
  sn_placement_free(better ? x->best : placement);
  if (better) x->best = placement;
  if (better) x->best_ns = ns;
  return status;
}

/* The placement with module i on device at[i]; one that does not fit is none. */
static sn_status try_at(choice *x, const sn_placement *base, const size_t *at) {
  sn_placement *placement = NULL;
  sn_status status = place_pieces(x, base, at, &placement);
  if (status == SN_OK) return consider(x, placement);
  if (sn_status_code(status) != SN_CODE_OUT_OF_MEMORY) return status;
  sn_status_free(status);
  return SN_OK;
}

static sn_status try_pieces(choice *x, const sn_placement *base) {
  size_t n = sn_placement_module_count(base), most = (size_t)x->topology->n_devices;
  size_t *cut = sn__calloc(n + 1, sizeof *cut);
  sn_status status = cut == NULL ? sn_status_out_of_memory() : SN_OK;
  for (size_t pieces = 2; status == SN_OK && pieces <= most && pieces <= n; pieces++) {
    status = cut_modules(base, pieces, cut) ? try_at(x, base, cut) : sn_status_out_of_memory();
  }
  sn__free(cut);
  return status;
}

/* Each move is a schedule of its own, with its search: so many at most. */
enum { MOVES_MOST = 48 };

/* Modules one by one to other devices, as long as the pipelined step gets shorter. */
static sn_status climb(choice *x, const sn_placement *base) {
  size_t n = sn_placement_module_count(base), nd = (size_t)x->topology->n_devices;
  size_t *at = sn__calloc(n + 1, sizeof *at), tried = 0, since = 0;
  sn_status status = at == NULL ? sn_status_out_of_memory() : SN_OK;
  for (size_t i = 0; at != NULL && i < n; i++)
    at[i] = (size_t)sn_placement_module_at(x->best != NULL ? x->best : base, i)->device;
  /* `since` modules in a row had nothing better. */
  for (size_t i = 0; status == SN_OK && n > 0 && since < n && tried < MOVES_MOST; i = (i + 1) % n) {
    since++;
    if (*sn_placement_module_at(base, i)->path == '\0') continue;
    for (size_t d = 0; status == SN_OK && d < nd && tried < MOVES_MOST; d++) {
      size_t was = at[i];
      int64_t before = x->best_ns;
      if (d == was) continue;
      at[i] = d;
      tried++;
      status = try_at(x, base, at);
      if (x->best_ns < before)
        since = 0;
      else
        at[i] = was;
    }
  }
  sn__free(at);
  return status;
}

sn_status sn__micro_place(const sn_graph *train, const sn_graph *unrolled,
                          const sn_topology *topology, const sn_place_options *options,
                          const int64_t *extents, sn__pipe_rule rule, uint64_t seed,
                          sn_placement **out_placement) {
  choice x = {.train = train,
              .unrolled = unrolled,
              .topology = topology,
              .options = options,
              .extents = extents,
              .rule = rule,
              .seed = seed,
              .best_ns = INT64_MAX};
  sn_placement *base = NULL;
  SN_TRY(sn_place(train, topology, options, &base));
  bool free_to_choose = options->n_pins == 0 && options->only_device == NULL &&
                        options->objective == SN_OBJECTIVE_TIME;
  sn_status status = SN_OK;
  if (free_to_choose && topology->n_devices > 1) {
    status = step_of(&x, base, &x.best_ns);
    if (status == SN_OK) status = try_pieces(&x, base);
    if (status == SN_OK) status = climb(&x, base);
  }
  /* Where nothing fits, the first one's order says what and where. */
  bool split = status == SN_OK && x.best != NULL;
  sn_placement_free(split ? base : x.best);
  if (status != SN_OK) sn_placement_free(base);
  if (status == SN_OK) *out_placement = split ? x.best : base;
  return status;
}
