/* SPDX-License-Identifier: Apache-2.0 */
/* The search: every candidate judged by the simulator, the best single device always among them.
 * List scheduling over modules is HEFT's (Topcuoglu et al. 2002) order and choice, with the whole
 * step simulated in place of its estimate; then moves and swaps until none helps or the budget is
 * spent. */
#include "placement/problem.h"

#include <string.h>
#include "core/rng.h"

typedef struct search {
  const sn__problem *p;
  sn__simulator *simulator;
  bool spread;
  int64_t budget;
  int64_t evals;
  int *current; /* [n_units] */
  int *trial;
  int *best;
  int64_t best_ns;
  uint64_t *peak; /* [n_devices] */
} search;

static bool fits(const search *s) {
  const sn_topology *t = s->p->topology;
  for (int d = 0; d < t->n_devices; d++)
    if (t->devices[d].memory_bytes != 0 && s->peak[d] > t->devices[d].memory_bytes) return false;
  return true;
}

static int used_devices(const search *s, const int *devices) {
  uint64_t mask = 0; /* SN_DEVICES_MOST is 64 */
  for (uint32_t u = 0; u < s->p->n_units; u++)
    mask |= (uint64_t)1 << devices[u];
  return __builtin_popcountll(mask);
}

/* The cost of an assignment: its simulated step. What does not fit, or under `spread` leaves
 * devices idle that could work, is worse than whatever does not. */
static int64_t judge(search *s, const int *devices) {
  sn__simulated out = {.peak_bytes = s->peak};
  sn__simulate(s->simulator, devices, &out);
  s->evals++;
  int64_t cost = out.step_ns;
  if (!fits(s)) cost += INT64_MAX / 4;
  if (s->spread) {
    int idle = s->p->topology->n_devices - used_devices(s, devices);
    cost += (int64_t)idle * (INT64_MAX / 8 / SN_DEVICES_MOST);
  }
  return cost;
}

/* Keeps `devices` when it is better; equal steps keep the earlier candidate. */
static bool consider(search *s, const int *devices, int64_t cost) {
  if (cost >= s->best_ns) return false;
  s->best_ns = cost;
  memcpy(s->best, devices, s->p->n_units * sizeof *s->best);
  return true;
}

static void pin_all(const search *s, int *devices, int device) {
  for (uint32_t u = 0; u < s->p->n_units; u++)
    devices[u] = s->p->units[u].pinned >= 0 ? s->p->units[u].pinned : device;
}

static void try_single_devices(search *s, sn__solution *solution) {
  solution->one_device_ns = INT64_MAX;
  for (int d = 0; d < s->p->topology->n_devices; d++) {
    /* The figure that plans are compared with ignores pins: it is what one device would take. */
    for (uint32_t u = 0; u < s->p->n_units; u++)
      s->trial[u] = d;
    sn__simulated out = {.peak_bytes = s->peak};
    sn__simulate(s->simulator, s->trial, &out);
    s->evals++;
    if (fits(s) && out.step_ns < solution->one_device_ns) {
      solution->one_device_ns = out.step_ns;
      solution->one_device = d;
    }
    pin_all(s, s->trial, d);
    consider(s, s->trial, judge(s, s->trial));
  }
}

/* All of a top-level module's units move as one: branches to devices, every way when there are few.
 */
static uint32_t top_of(const sn_graph *g, uint32_t module) {
  while (module != 0 && g->modules[module].parent != 0)
    module = g->modules[module].parent;
  return module;
}

static sn_status try_branches(search *s) {
  const sn__problem *p = s->p;
  uint32_t *group = sn__calloc(p->n_units + 1, sizeof *group);
  uint32_t *tops = sn__calloc(p->n_units + 1, sizeof *tops);
  uint32_t n = 0;
  if (group == NULL || tops == NULL) {
    sn__free(group);
    sn__free(tops);
    return sn_status_out_of_memory();
  }
  for (uint32_t u = 0; u < p->n_units; u++) {
    uint32_t top = top_of(p->graph, p->units[u].module), i = 0;
    while (i < n && tops[i] != top)
      i++;
    if (i == n) tops[n++] = top;
    group[u] = i;
  }
  uint64_t ways = 1;
  for (uint32_t i = 0; i < n && ways <= (uint64_t)s->budget; i++)
    ways *= (uint64_t)p->topology->n_devices;
  for (uint64_t w = 0; ways <= (uint64_t)s->budget / 2 && w < ways; w++) {
    for (uint32_t u = 0; u < p->n_units; u++) {
      uint64_t digit = w;
      for (uint32_t i = 0; i < group[u]; i++)
        digit /= (uint64_t)p->topology->n_devices;
      s->trial[u] = p->units[u].pinned >= 0 ? p->units[u].pinned
                                            : (int)(digit % (uint64_t)p->topology->n_devices);
    }
    consider(s, s->trial, judge(s, s->trial));
  }
  sn__free(group);
  sn__free(tops);
  return SN_OK;
}

/* Units one by one, heaviest first, each to the device where the whole step then ends first. */
static sn_status try_list(search *s) {
  const sn__problem *p = s->p;
  int nd = p->topology->n_devices;
  int64_t *work = sn__calloc(p->n_units + 1, sizeof *work);
  uint32_t *order = sn__calloc(p->n_units + 1, sizeof *order);
  if (work == NULL || order == NULL) {
    sn__free(work);
    sn__free(order);
    return sn_status_out_of_memory();
  }
  for (uint32_t t = 0; t < p->n_tasks; t++)
    work[p->tasks[t].unit] += p->task_ns[(size_t)t * (size_t)nd];
  for (uint32_t u = 0; u < p->n_units; u++) {
    uint32_t i = u;
    for (; i > 0 && work[order[i - 1]] < work[u]; i--)
      order[i] = order[i - 1];
    order[i] = u;
  }
  pin_all(s, s->current, 0);
  for (uint32_t i = 0; i < p->n_units && s->evals < s->budget; i++) {
    uint32_t u = order[i];
    if (p->units[u].pinned >= 0) continue;
    int64_t least = INT64_MAX;
    int choice = 0;
    for (int d = 0; d < nd; d++) {
      s->current[u] = d;
      int64_t cost = judge(s, s->current);
      if (cost < least) {
        least = cost;
        choice = d;
      }
    }
    s->current[u] = choice;
  }
  consider(s, s->current, judge(s, s->current));
  sn__free(work);
  sn__free(order);
  return SN_OK;
}

static bool improve_moves(search *s, int64_t *cost) {
  const sn__problem *p = s->p;
  bool better = false;
  for (uint32_t u = 0; u < p->n_units; u++) {
    if (p->units[u].pinned >= 0) continue;
    for (int d = 0; d < p->topology->n_devices && s->evals < s->budget; d++) {
      int was = s->current[u];
      if (d == was) continue;
      s->current[u] = d;
      int64_t c = judge(s, s->current);
      if (c < *cost) {
        *cost = c;
        better = true;
      } else {
        s->current[u] = was;
      }
    }
  }
  return better;
}

static bool improve_swaps(search *s, int64_t *cost) {
  const sn__problem *p = s->p;
  for (uint32_t a = 0; a < p->n_units; a++)
    for (uint32_t b = a + 1; b < p->n_units && s->evals < s->budget; b++) {
      int da = s->current[a], db = s->current[b];
      if (da == db || p->units[a].pinned >= 0 || p->units[b].pinned >= 0) continue;
      s->current[a] = db;
      s->current[b] = da;
      int64_t c = judge(s, s->current);
      if (c < *cost) {
        *cost = c;
        return true;
      }
      s->current[a] = da;
      s->current[b] = db;
    }
  return false;
}

static void descend(search *s) {
  int64_t cost = judge(s, s->current);
  while (s->evals < s->budget && (improve_moves(s, &cost) || improve_swaps(s, &cost)))
    ;
  consider(s, s->current, cost);
}

static void kick(search *s, uint64_t seed, uint64_t round) {
  const sn__problem *p = s->p;
  memcpy(s->current, s->best, p->n_units * sizeof *s->current);
  for (uint64_t k = 0; k < 1 + p->n_units / 4; k++) {
    uint32_t u = (uint32_t)sn__rng_below(seed, round, k * 2, p->n_units);
    if (p->units[u].pinned < 0)
      s->current[u] = (int)sn__rng_below(seed, round, k * 2 + 1, (uint64_t)p->topology->n_devices);
  }
}

sn_status sn__solve(const sn__problem *p, sn__simulator *simulator, bool spread, int64_t evals,
                    uint64_t seed, sn__solution *solution) {
  search s = {.p = p,
              .simulator = simulator,
              .spread = spread,
              .budget = evals,
              .best_ns = INT64_MAX,
              .best = solution->devices};
  s.current = sn__calloc(p->n_units + 1, sizeof *s.current);
  s.trial = sn__calloc(p->n_units + 1, sizeof *s.trial);
  s.peak = sn__calloc((size_t)p->topology->n_devices, sizeof *s.peak);
  sn_status status =
      s.current == NULL || s.trial == NULL || s.peak == NULL ? sn_status_out_of_memory() : SN_OK;
  uint32_t free_units = 0;
  for (uint32_t u = 0; u < p->n_units; u++)
    free_units += p->units[u].pinned < 0;
  if (status == SN_OK) {
    memset(s.best, 0, p->n_units * sizeof *s.best);
    try_single_devices(&s, solution);
    if (free_units > 0 && p->topology->n_devices > 1) {
      status = try_branches(&s);
      if (status == SN_OK) status = try_list(&s);
      memcpy(s.current, s.best, p->n_units * sizeof *s.current);
      if (status == SN_OK) descend(&s);
      for (uint64_t round = 0; status == SN_OK && s.evals < s.budget && round < 64; round++) {
        kick(&s, seed, round);
        descend(&s);
      }
    }
  }
  if (status == SN_OK) {
    sn__simulated out = {0};
    sn__simulate(simulator, s.best, &out);
    solution->step_ns = out.step_ns;
    solution->evals = s.evals;
  }
  sn__free(s.current);
  sn__free(s.trial);
  sn__free(s.peak);
  return status;
}
