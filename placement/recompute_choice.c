/* SPDX-License-Identifier: Apache-2.0 */
/* Which modules are recomputed so that a step fits: greedily, by bytes over the limit that go for
 * the time they cost, each step judged by the simulator; then without what turned out needless. */
#include "placement/recompute_choice.h"

#include <stdlib.h>
#include <string.h>

#include "placement/flow_simulate.h"

enum { CANDIDATES_MOST = 160 };
/* Nodes that all graphs made on the way may have: keeps the choice to a second or two. */
static const int64_t nodes_most = 4000000;

/* Modules that may be recomputed, alone or as one. */
typedef struct candidate {
  const char *entry;
  bool *taken;    /* [n_modules] */
  uint64_t bytes; /* that it no longer keeps, alone */
  int64_t ns;
  uint32_t family; /* runs of one length among the children of one module; 0: a module alone */
  bool chosen;
} candidate;

typedef struct chooser {
  const sn__problem *base;
  const int *devices;
  const int64_t *extents;
  sn__recompute_choice *out;
  sn__arena scratch;
  candidate *list;
  size_t n, capacity;
  uint32_t family, n_families; /* that candidates are being made for; how many there are */
  const char **entries;        /* [CANDIDATES_MOST + 1] scratch: those of a trial */
  uint64_t kept;               /* bytes, with nothing recomputed */
  int64_t nodes_left;
} chooser;

/* What some entries do. */
typedef struct trial {
  uint64_t lacks, kept;
  int64_t ns;
} trial;

/* ---- judging ------------------------------------------------------------------------------- */

static sn_status simulate(const chooser *c, const sn__problem *p, trial *out) {
  const sn__flow *f = p->flow;
  sn__flow_simulator *s = NULL;
  uint64_t *peak = sn__calloc((size_t)f->n_devices, sizeof *peak);
  if (peak == NULL) return sn_status_out_of_memory();
  sn_status status = sn__flow_simulator_create(f, &s);
  if (status == SN_OK) {
    sn__flow_step step = {.peak_bytes = peak};
    sn__flow_simulate(s, c->devices, NULL, &step);
    out->lacks = 0;
    for (int d = 0; d < f->n_devices; d++) {
      uint64_t limit = c->base->flow->device_bytes[d];
      if (limit != 0 && peak[d] > limit) out->lacks += peak[d] - limit;
    }
    out->ns = sn__recompute_ns(p, c->devices);
  }
  sn__flow_simulator_free(s);
  sn__free(peak);
  return status;
}

static sn_status try_entries(chooser *c, const char *const *entries, size_t n, trial *out) {
  sn_graph *g = NULL;
  sn__problem *p = NULL;
  *out = (trial){.lacks = UINT64_MAX};
  SN_TRY(sn__recompute_placed(c->base->graph, entries, n, c->base, c->devices, &g));
  c->nodes_left -= (int64_t)g->n_nodes;
  sn_status status = sn__recompute_kept(g, c->extents, &out->kept);
  if (status == SN_OK)
    status = sn__problem_create(g, c->base->topology, c->extents, g->n_symbols, &p);
  if (status == SN_OK && p->n_units != c->base->n_units)
    status = sn_status_make(SN_CODE_INTERNAL, "recompute: clones in modules of their own");
  if (status == SN_OK) status = simulate(c, p, out);
  sn__problem_free(p);
  sn_graph_free(g);
  return status;
}

/* Those chosen, without `out` (NULL: none left out) and with `in` (NULL: none added). */
static sn_status try_chosen(chooser *c, const candidate *leave, const candidate *in, trial *out) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++)
    if ((c->list[i].chosen && &c->list[i] != leave) || &c->list[i] == in)
      c->entries[n++] = c->list[i].entry;
  return try_entries(c, c->entries, n, out);
}

/* ---- candidates ---------------------------------------------------------------------------- */

static int by_worth(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  double left = (double)x->bytes * (double)(y->ns + 1),
         right = (double)y->bytes * (double)(x->ns + 1);
  if (left > right || left < right) return left > right ? -1 : 1;
  return strcmp(x->entry, y->entry);
}

/* Keeps an entry that saves something; takes ownership of nothing. */
static sn_status add_candidate(chooser *c, const char *entry) {
  trial t;
  if (c->nodes_left < 0) return SN_OK;
  SN_TRY(try_entries(c, &entry, 1, &t));
  if (t.kept >= c->kept) return SN_OK;
  candidate new = {.entry = sn__arena_strdup(&c->scratch, entry),
                   .taken = sn__arena_alloc(&c->scratch, c->base->graph->n_modules + 1),
                   .bytes = c->kept - t.kept,
                   .ns = t.ns,
                   .family = c->family};
  if (new.entry == NULL || new.taken == NULL ||
      !sn__grow((void **)&c->list, &c->capacity, c->n + 1, sizeof *c->list))
    return sn_status_out_of_memory();
  SN_TRY(sn__recompute_taken(c->base->graph, &entry, 1, new.taken));
  c->list[c->n++] = new;
  return SN_OK;
}

static sn_status add_run(chooser *c, const uint32_t *modules, size_t n) {
  const sn_graph *g = c->base->graph;
  char *text = sn__strdup(g->modules[modules[0]].path);
  for (size_t i = 1; text != NULL && i < n; i++) {
    char *longer = sn__format("%s+%s", text, g->modules[modules[i]].path);
    sn__free(text);
    text = longer;
  }
  sn_status status = text == NULL ? sn_status_out_of_memory() : add_candidate(c, text);
  sn__free(text);
  return status;
}

/* Neighbours among the children of a module, 2, 3, 4, half and about the square root of them as one
 * (a chain of n keeps least in about as many pieces). */
static sn_status add_runs(chooser *c, uint32_t parent, uint32_t *children) {
  const sn_graph *g = c->base->graph;
  size_t n = 0, root = 1;
  for (uint32_t m = 1; m < g->n_modules; m++)
    if (g->modules[m].parent == parent) children[n++] = m;
  while (root * root < n)
    root++;
  const size_t lengths[] = {2, 3, 4, root, n / 2};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    bool again = lengths[i] < 2 || lengths[i] >= n;
    for (size_t k = 0; k < i; k++)
      again |= lengths[k] == lengths[i];
    if (again) continue;
    c->family = ++c->n_families;
    for (size_t at = 0; at + 1 < n; at += lengths[i])
      SN_TRY(add_run(c, children + at, at + lengths[i] <= n ? lengths[i] : n - at));
  }
  c->family = 0;
  return SN_OK;
}

static sn_status find_candidates(chooser *c) {
  const sn_graph *g = c->base->graph;
  uint32_t *children = sn__calloc(g->n_modules, sizeof *children);
  if (children == NULL) return sn_status_out_of_memory();
  int64_t all = c->nodes_left;
  c->nodes_left = all / 2; /* the other half is for choosing */
  sn_status status = SN_OK;
  for (uint32_t m = 1; status == SN_OK && m < g->n_modules; m++)
    status = add_candidate(c, g->modules[m].path);
  for (uint32_t m = 0; status == SN_OK && m < g->n_modules; m++)
    status = add_runs(c, m, children);
  sn__free(children);
  if (c->n > 0) qsort(c->list, c->n, sizeof *c->list, by_worth);
  if (c->n > CANDIDATES_MOST) c->n = CANDIDATES_MOST;
  c->nodes_left += all / 2;
  return status;
}

/* ---- choosing ------------------------------------------------------------------------------ */

static bool overlaps(const chooser *c, const candidate *x) {
  for (size_t i = 0; i < c->n; i++)
    for (size_t m = 0; c->list[i].chosen && m < c->base->graph->n_modules; m++)
      if (c->list[i].taken[m] && x->taken[m]) return true;
  return false;
}

/* Of two ways on from `before`: what fits is better than what does not, then the least time; else
 * the most bytes over the limits for the time. */
static bool better(const trial *a, const trial *b, const trial *before) {
  if ((a->lacks == 0) != (b->lacks == 0)) return a->lacks == 0;
  if (a->lacks == 0) return a->ns < b->ns;
  double x = a->lacks < before->lacks ? (double)(before->lacks - a->lacks) : 0;
  double y = b->lacks < before->lacks ? (double)(before->lacks - b->lacks) : 0;
  return x * (double)(b->ns - before->ns + 1) > y * (double)(a->ns - before->ns + 1);
}

/* One more; false when nothing is left. Where no candidate alone helps (two moments are as full as
 * each other), the one that keeps least for its time is taken. */
static sn_status choose_one(chooser *c, trial *now, bool *out_more) {
  candidate *best = NULL;
  trial found = {.lacks = UINT64_MAX};
  *out_more = false;
  for (size_t i = 0; i < c->n && c->nodes_left > 0; i++) {
    candidate *x = &c->list[i];
    if (x->chosen || overlaps(c, x)) continue;
    trial t;
    SN_TRY(try_chosen(c, NULL, x, &t));
    if (best == NULL || better(&t, &found, now)) {
      best = x;
      found = t;
    }
  }
  if (best == NULL) return SN_OK;
  best->chosen = true;
  *now = found;
  *out_more = true;
  return SN_OK;
}

/* Leaves out what is not needed, the dearest first; for a quarter more than choosing may take. */
static sn_status prune(chooser *c, trial *now) {
  for (bool again = true; again && c->nodes_left > -nodes_most / 4;) {
    candidate *dearest = NULL;
    trial found = *now;
    for (size_t i = 0; i < c->n && c->nodes_left > -nodes_most / 4; i++) {
      if (!c->list[i].chosen) continue;
      trial t;
      SN_TRY(try_chosen(c, &c->list[i], NULL, &t));
      if (t.lacks > now->lacks || (dearest != NULL && t.ns >= found.ns)) continue;
      dearest = &c->list[i];
      found = t;
    }
    again = dearest != NULL;
    if (again) dearest->chosen = false;
    *now = found;
  }
  return SN_OK;
}

static sn_status hand_over(chooser *c, const trial *now) {
  sn__recompute_choice *out = c->out;
  out->lacks = now->lacks;
  for (size_t i = 0; i < c->n; i++) {
    if (!c->list[i].chosen) continue;
    const char *entry = sn__arena_strdup(&out->arena, c->list[i].entry);
    if (entry == NULL ||
        !sn__grow((void **)&out->entries, &out->capacity, out->n + 1, sizeof *out->entries))
      return sn_status_out_of_memory();
    out->entries[out->n++] = entry;
  }
  return SN_OK;
}

/* From what is chosen, more until it fits, then less. Keeps the outcome where it is better than
 * `best`: [CANDIDATES_MOST] and its trial. */
static sn_status improve(chooser *c, bool *best, trial *best_trial) {
  trial now;
  SN_TRY(try_chosen(c, NULL, NULL, &now));
  for (bool more = true; more && now.lacks > 0;)
    SN_TRY(choose_one(c, &now, &more));
  SN_TRY(prune(c, &now));
  bool fits = now.lacks == 0 && best_trial->lacks == 0;
  if (fits ? now.ns >= best_trial->ns : now.lacks >= best_trial->lacks) return SN_OK;
  *best_trial = now;
  for (size_t i = 0; i < c->n; i++)
    best[i] = c->list[i].chosen;
  return SN_OK;
}

/* Nothing but that family (0: nothing at all). Whether any of it is left. */
static bool choose_family(chooser *c, uint32_t family) {
  bool any = false;
  for (size_t i = 0; i < c->n; i++) {
    c->list[i].chosen = family != 0 && c->list[i].family == family;
    any |= c->list[i].chosen;
  }
  return any;
}

/* Greed takes small pieces and then has no room for runs, which a chain needs: so it begins with
 * nothing, and with the runs that alone are best. */
static sn_status choose(chooser *c) {
  trial none, best_family = {.lacks = UINT64_MAX}, best_trial = {.lacks = UINT64_MAX};
  bool best[CANDIDATES_MOST] = {false};
  uint32_t family = 0;
  c->entries = sn__calloc(CANDIDATES_MOST + 1, sizeof *c->entries);
  if (c->entries == NULL) return sn_status_out_of_memory();
  SN_TRY(try_entries(c, c->entries, 0, &none));
  c->kept = none.kept;
  SN_TRY(find_candidates(c));
  for (uint32_t f = 1; f <= c->n_families && c->nodes_left > 0; f++) {
    trial t;
    if (!choose_family(c, f)) continue;
    SN_TRY(try_chosen(c, NULL, NULL, &t));
    bool fits = t.lacks == 0 && best_family.lacks == 0;
    if (fits ? t.ns >= best_family.ns : t.lacks >= best_family.lacks) continue;
    family = f;
    best_family = t;
  }
  if (family != 0) {
    (void)choose_family(c, family);
    SN_TRY(improve(c, best, &best_trial));
  }
  (void)choose_family(c, 0);
  SN_TRY(improve(c, best, &best_trial));
  for (size_t i = 0; i < c->n; i++)
    c->list[i].chosen = best[i];
  return hand_over(c, &best_trial);
}

sn_status sn__recompute_choose(const sn__problem *problem, const int *devices,
                               const int64_t *extents, sn__recompute_choice *out) {
  chooser c = {.base = problem,
               .devices = devices,
               .extents = extents,
               .out = out,
               .nodes_left = nodes_most};
  *out = (sn__recompute_choice){0};
  sn_status status = choose(&c);
  sn__free(c.list);
  sn__free(c.entries);
  sn__arena_free(&c.scratch);
  if (status != SN_OK) sn__recompute_choice_free(out);
  return status;
}

void sn__recompute_choice_free(sn__recompute_choice *choice) {
  sn__free(choice->entries);
  sn__arena_free(&choice->arena);
  *choice = (sn__recompute_choice){0};
}
