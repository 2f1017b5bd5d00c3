/* SPDX-License-Identifier: Apache-2.0 */
/* The makespan search: candidates, then annealing from the best, in rounds. */
#include "placement/makespan.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "placement/makespan_impl.h"

/* ---- judging -------------------------------------------------------------------------------- */

/* Costs, from the lightest: steps; with idle devices that spread wants; with bytes that lack. */
#define IDLE      (SN__FLOW_TIME_MOST + 1)
#define IDLE_EACH (SN__FLOW_TIME_MOST / 512)
#define LACKING   (2 * IDLE)

bool sn__trace_create(uint32_t n, sn__trace *out) {
  *out = (sn__trace){sn__calloc((size_t)n + 1, sizeof *out->start),
                     sn__calloc((size_t)n + 1, sizeof *out->end),
                     sn__calloc((size_t)n + 1, sizeof *out->previous)};
  return out->start != NULL && out->end != NULL && out->previous != NULL;
}

void sn__trace_free(sn__trace *trace) {
  sn__free(trace->start);
  sn__free(trace->end);
  sn__free(trace->previous);
}

/* Bytes over the limits, all devices together. */
static uint64_t lacking(const sn__flow *f, const uint64_t *bytes) {
  uint64_t sum = 0;
  for (int d = 0; d < f->n_devices; d++)
    if (f->device_bytes[d] > 0 && bytes[d] > f->device_bytes[d])
      sum += bytes[d] - f->device_bytes[d];
  return sum;
}

static uint64_t lacking_before(sn__search *s, const int *devices) {
  const sn__flow *f = s->flow;
  if (!s->limits) return 0;
  memset(s->held, 0, (size_t)f->n_devices * sizeof *s->held);
  for (uint32_t c = 0; c < f->n_classes; c++)
    s->held[devices[c]] += f->class_bytes[c];
  return lacking(f, s->held);
}

static int idle_devices(const sn__search *s, const int *devices) {
  const sn__flow *f = s->flow;
  uint64_t used[4] = {0};
  int n = 0;
  for (uint32_t c = 0; c < f->n_classes; c++)
    used[devices[c] >> 6] |= (uint64_t)1 << (devices[c] & 63);
  for (int w = 0; w < 4; w++)
    n += __builtin_popcountll(used[w]);
  return n < s->most_used ? s->most_used - n : 0;
}

int64_t sn__judge_change(sn__search *s, sn__flow_history *history, const int *devices,
                         const int64_t *priorities, const sn__flow_changes *changes, int64_t cutoff,
                         const sn__trace *trace) {
  sn__flow_step step = {.cutoff = cutoff};
  uint64_t lack = lacking_before(s, devices);
  int64_t base = 0;
  s->evals++;
  if (s->options->spread) {
    int idle = idle_devices(s, devices);
    base = idle > 0 ? IDLE + (int64_t)idle * IDLE_EACH : 0;
  }
  if (lack > 0) base = LACKING + (lack < IDLE ? (int64_t)lack : IDLE);
  if (cutoff > 0 && base > cutoff) return INT64_MAX;
  if (!sn__plain_cost(cutoff)) step.cutoff = 0;
  if (trace != NULL) {
    step.start = trace->start;
    step.end = trace->end;
    step.previous = trace->previous;
  }
  if (s->over_time) step.peak_bytes = s->peak;
  if (history != NULL)
    sn__flow_history_simulate(history, devices, priorities, changes, &step);
  else
    sn__flow_simulate(s->simulator, devices, priorities, &step);
  if (step.makespan == INT64_MAX) return INT64_MAX;
  s->last_step = step.makespan;
  if (s->over_time && base < LACKING) {
    lack = lacking(s->flow, s->peak);
    if (lack > 0) base = LACKING + (lack < IDLE ? (int64_t)lack : IDLE);
  }
  if (base >= LACKING) return base;
  if (base > 0) return base + (step.makespan < IDLE_EACH ? step.makespan : IDLE_EACH - 1);
  return step.makespan;
}

int64_t sn__judge(sn__search *s, const int *devices, const int64_t *priorities, int64_t cutoff,
                  const sn__trace *trace) {
  return sn__judge_change(s, NULL, devices, priorities, NULL, cutoff, trace);
}

bool sn__consider(sn__search *s, const int *devices, const int64_t *priorities, int64_t cost) {
  if (cost >= s->cost) return false;
  s->cost = cost;
  memcpy(s->devices, devices, (size_t)s->flow->n_classes * sizeof *devices);
  s->prioritised = priorities != NULL;
  s->annealed = s->trying == NULL;
  if (s->trying != NULL) s->found = s->trying;
  if (priorities != NULL)
    memcpy(s->priorities, priorities, (size_t)s->flow->n_tasks * sizeof *priorities);
  return true;
}

/* ---- candidates ----------------------------------------------------------------------------- */

typedef struct plan {
  int *devices;
  int64_t *priorities;
} plan;

static bool plan_create(const sn__flow *f, plan *out) {
  *out = (plan){sn__calloc((size_t)f->n_classes + 1, sizeof *out->devices),
                sn__calloc((size_t)f->n_tasks + 1, sizeof *out->priorities)};
  return out->devices != NULL && out->priorities != NULL;
}

static void plan_free(plan *p) {
  sn__free(p->devices);
  sn__free(p->priorities);
}

/* All classes on `device`, but for pins and for what cannot run there. */
static void all_on(const sn__flow *f, int device, int *devices) {
  for (uint32_t c = 0; c < f->n_classes; c++) {
    devices[c] = device;
    for (int d = 0; d < f->n_devices && !sn__allowed(f, c, devices[c]); d++)
      devices[c] = d;
  }
}

static void try_one_device(sn__search *s, plan *p, sn__makespan_result *out) {
  const sn__flow *f = s->flow;
  s->trying = "one device";
  out->one_device = -1;
  out->one_device_makespan = INT64_MAX;
  for (int d = 0; d < f->n_devices; d++) {
    bool runs = true;
    for (uint32_t t = 0; runs && t < f->n_tasks; t++)
      runs = f->task_ns[(size_t)t * (size_t)f->n_devices + (size_t)d] != SN__FLOW_NEVER;
    bool pinned = false;
    for (uint32_t c = 0; c < f->n_classes; c++) {
      p->devices[c] = d;
      pinned |= f->class_pin[c] >= 0 && f->class_pin[c] != d;
    }
    if (runs) {
      int64_t cost = sn__judge(s, p->devices, NULL, 0, NULL);
      if (cost < LACKING && s->last_step < out->one_device_makespan) {
        out->one_device_makespan = s->last_step;
        out->one_device = d;
      }
      if (!pinned) sn__consider(s, p->devices, NULL, cost);
    }
    if (runs && !pinned) continue;
    all_on(f, d, p->devices);
    sn__consider(s, p->devices, NULL, sn__judge(s, p->devices, NULL, 0, NULL));
  }
}

/* A plan as it is and by its longest paths; either may be the best. */
static void try_plan(sn__search *s, const plan *p) {
  sn__consider(s, p->devices, NULL, sn__judge(s, p->devices, NULL, 0, NULL));
  sn__consider(s, p->devices, p->priorities, sn__judge(s, p->devices, p->priorities, 0, NULL));
}

static sn_status try_lists(sn__search *s, plan *p) {
  static const sn__list_rule rules[] = {SN__LIST_HEFT, SN__LIST_PEFT, SN__LIST_ETF};
  static const char *const names[] = {"HEFT", "PEFT", "earliest task first"};
  for (size_t i = 0; i < sizeof rules / sizeof *rules && s->evals < s->budget; i++) {
    s->trying = names[i];
    SN_TRY(sn__list_schedule(s, rules[i], NULL, p->devices, p->priorities));
    for (uint32_t t = 0; t < s->flow->n_tasks; t++)
      p->priorities[t] = -p->priorities[t]; /* who starts first */
    try_plan(s, p);
  }
  return SN_OK;
}

enum { BEAM_MOST = 1024 }; /* evaluations for each of two */

static sn_status try_beams(sn__search *s, plan *p) {
  int64_t *ranks = sn__calloc((size_t)s->flow->n_tasks + 1, sizeof *ranks);
  int64_t evals = (s->budget - s->evals) / 8;
  if (evals > BEAM_MOST) evals = BEAM_MOST;
  sn_status status = ranks == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) sn__list_ranks(s, ranks);
  for (int copies = 0; status == SN_OK && copies < 2; copies++) {
    bool found = false;
    s->trying = copies == 0 ? "beam search" : "beam search by HEFT's ranks";
    status =
        sn__beam_schedule(s, copies == 0 ? NULL : ranks, evals, p->devices, p->priorities, &found);
    for (uint32_t t = 0; t < s->flow->n_tasks; t++)
      p->priorities[t] = -p->priorities[t];
    if (status == SN_OK && found) try_plan(s, p);
  }
  sn__free(ranks);
  return status;
}

/* Classes in the order of their first tasks, cut into pieces of about equal work, one a device. */
static void cut(const sn__flow *f, const uint32_t *order, const int64_t *work, int64_t total,
                int pieces, int *devices) {
  int64_t done = 0;
  for (uint32_t i = 0; i < f->n_classes; i++) {
    uint32_t c = order[i];
    int64_t middle = done + work[c] / 2;
    int d = (int)(middle / (total / pieces + 1));
    devices[c] = d < pieces ? d : pieces - 1;
    for (int e = 0; e < f->n_devices && !sn__allowed(f, c, devices[c]); e++)
      devices[c] = e;
    done += work[c];
  }
}

/* Depth first: what a task feeds comes right behind it, as far as it is ready. */
static uint32_t walk_deep(const sn__flow *f, uint32_t *waits, uint32_t *stack, uint32_t *out) {
  uint32_t n = 0, top = 0;
  for (uint32_t i = 0; i < f->n_tasks; i++)
    waits[i] = 0;
  for (uint32_t i = 0; i < f->n_reads; i++)
    if (f->value_task[f->reads[i].value] != SN__FLOW_NONE) waits[f->reads[i].task]++;
  for (uint32_t t = f->n_tasks; t-- > 0;)
    if (waits[t] == 0) stack[top++] = t;
  while (top > 0) {
    uint32_t t = stack[--top];
    out[n++] = t;
    for (uint32_t o = f->first_output[t]; o < f->first_output[t + 1]; o++)
      for (uint32_t r = f->first_reader[f->outputs[o]]; r < f->first_reader[f->outputs[o] + 1]; r++)
        if (--waits[f->reads[r].task] == 0) stack[top++] = f->reads[r].task;
  }
  return n;
}

/* Tasks' classes, each where its first task stands; then those without tasks. */
static void order_classes(const sn__flow *f, const uint32_t *tasks, bool *seen, uint32_t *order) {
  uint32_t n = 0;
  memset(seen, 0, f->n_classes * sizeof *seen);
  for (uint32_t i = 0; i < f->n_tasks + f->n_classes; i++) {
    uint32_t c = i < f->n_tasks ? f->task_class[tasks[i]] : i - f->n_tasks;
    if (!seen[c]) order[n++] = c;
    seen[c] = true;
  }
}

/* Contiguous pieces of two linear orders. With as many classes as devices or more, and work in
 * each, every device has some: what `spread` begins with. */
static sn_status try_slices(sn__search *s, plan *p) {
  const sn__flow *f = s->flow;
  s->trying = "pieces of an order";
  size_t nt = (size_t)f->n_tasks + 1, nc = (size_t)f->n_classes + 1;
  uint32_t *tasks = sn__calloc(3 * nt, sizeof *tasks), *order = sn__calloc(nc, sizeof *order);
  int64_t *work = sn__calloc(nc, sizeof *work), total = 0;
  bool *seen = sn__calloc(nc, sizeof *seen);
  sn_status status = tasks == NULL || order == NULL || work == NULL || seen == NULL
                         ? sn_status_out_of_memory()
                         : SN_OK;
  for (uint32_t c = 0; status == SN_OK && c < f->n_classes; c++) {
    for (int d = 0; d < f->n_devices && work[c] == 0; d++)
      if (sn__allowed(f, c, d)) work[c] = sn__flow_class_ns(f, c, d) + 1;
    total += work[c];
  }
  for (int deep = 0; status == SN_OK && deep < 2; deep++) {
    if (deep == 0)
      memcpy(tasks, f->topological, (size_t)f->n_tasks * sizeof *tasks);
    else
      walk_deep(f, tasks + nt, tasks + 2 * nt, tasks);
    order_classes(f, tasks, seen, order);
    for (int k = 2; k <= f->n_devices && s->evals < s->budget;
         k = k < 4 || 2 * k > f->n_devices ? k + 1 : 2 * k) {
      cut(f, order, work, total, k, p->devices);
      sn__consider(s, p->devices, NULL, sn__judge(s, p->devices, NULL, s->cost, NULL));
    }
    for (uint32_t i = 0; s->options->spread && i < f->n_classes; i++) {
      p->devices[order[i]] = (int)(i % (uint32_t)f->n_devices);
      for (int e = 0; e < f->n_devices && !sn__allowed(f, order[i], p->devices[order[i]]); e++)
        p->devices[order[i]] = e;
    }
    if (s->options->spread)
      sn__consider(s, p->devices, NULL, sn__judge(s, p->devices, NULL, s->cost, NULL));
  }
  sn__free(tasks);
  sn__free(order);
  sn__free(work);
  sn__free(seen);
  return status;
}

/* Every way to put groups on devices, where there are few. */
static void try_groups(sn__search *s, plan *p) {
  const sn__flow *f = s->flow;
  const uint32_t *groups = s->options->groups;
  uint32_t n = 0;
  int64_t ways = 1;
  s->trying = "every way to place groups";
  for (uint32_t c = 0; c < f->n_classes; c++) {
    uint32_t g = groups == NULL ? c : groups[c];
    if (g >= n) n = g + 1;
  }
  for (uint32_t g = 0; g < n; g++) {
    ways *= f->n_devices;
    if (ways > (s->budget - s->evals) / 4) return;
  }
  for (int64_t w = 0; w < ways; w++) {
    bool allowed = true;
    for (uint32_t c = 0; allowed && c < f->n_classes; c++) {
      int64_t digit = w;
      for (uint32_t g = groups == NULL ? c : groups[c]; g > 0; g--)
        digit /= f->n_devices;
      int d = (int)(digit % f->n_devices);
      p->devices[c] = f->class_pin[c] >= 0 ? f->class_pin[c] : d;
      allowed = sn__allowed(f, c, p->devices[c]);
    }
    if (allowed) sn__consider(s, p->devices, NULL, sn__judge(s, p->devices, NULL, s->cost, NULL));
  }
}

/* ---- from the best onwards ------------------------------------------------------------------- */

/* The best plan so far, its priorities its starts where it has none. */
static sn_status load_best(sn__search *s, plan *p) {
  const sn__flow *f = s->flow;
  memcpy(p->devices, s->devices, (size_t)f->n_classes * sizeof *p->devices);
  if (s->prioritised) {
    memcpy(p->priorities, s->priorities, (size_t)f->n_tasks * sizeof *p->priorities);
    return SN_OK;
  }
  sn__trace trace;
  bool ok = sn__trace_create(f->n_tasks, &trace);
  if (ok) {
    sn__flow_step step = {.start = trace.start, .end = trace.end};
    sn__flow_simulate(s->simulator, s->devices, NULL, &step);
    for (uint32_t t = 0; t < f->n_tasks; t++)
      p->priorities[t] = -trace.start[t];
  }
  sn__trace_free(&trace);
  return ok ? SN_OK : sn_status_out_of_memory();
}

/* A round: annealing from the best plan there is. Rounds begin less and less hot. */
static sn_status improve(sn__search *s, plan *p, int64_t bound) {
  static const int heats[] = {60, 30, 15, 8};
  int64_t round = (s->budget - s->evals) / 8 + 1;
  s->trying = NULL;
  for (uint32_t i = 0; s->evals < s->budget && s->cost > bound; i++) {
    int64_t before = s->evals;
    SN_TRY(load_best(s, p));
    SN_TRY(sn__anneal(s, p->devices, p->priorities, round, heats[i % 4], 0));
    if (s->evals == before) break; /* nothing can be moved */
  }
  return SN_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int compare_pairs(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
  return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* Which classes exchange values. */
static sn_status find_neighbours(sn__search *s) {
  const sn__flow *f = s->flow;
  uint32_t(*pairs)[2] = sn__calloc(2 * (size_t)f->n_reads + 1, sizeof *pairs);
  s->first_neighbour = sn__calloc((size_t)f->n_classes + 1, sizeof *s->first_neighbour);
  s->neighbours = sn__calloc(2 * (size_t)f->n_reads + 1, sizeof *s->neighbours);
  if (pairs == NULL || s->first_neighbour == NULL || s->neighbours == NULL) {
    sn__free(pairs);
    return sn_status_out_of_memory();
  }
  size_t n = 0;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < f->n_reads; i++) {
    uint32_t a = f->value_class[f->reads[i].value], b = f->task_class[f->reads[i].task];
    if (a == b) continue;
    pairs[n][0] = pairs[n + 1][1] = a;
    pairs[n][1] = pairs[n + 1][0] = b;
    n += 2;
  }
  qsort(pairs, n, sizeof *pairs, compare_pairs);
  for (size_t i = 0; i < n; i++) {
    if (i > 0 && compare_pairs(pairs[i - 1], pairs[i]) == 0) continue;
    s->first_neighbour[pairs[i][0] + 1]++;
    s->neighbours[kept++] = pairs[i][1];
  }
  for (uint32_t c = 0; c < f->n_classes; c++)
    s->first_neighbour[c + 1] += s->first_neighbour[c];
  sn__free(pairs);
  return SN_OK;
}

/* Whether limits can matter at all, and whether values count towards them. */
static void look_at_memory(sn__search *s) {
  const sn__flow *f = s->flow;
  uint64_t classes = 0, values = 0;
  for (uint32_t c = 0; c < f->n_classes; c++)
    classes += f->class_bytes[c];
  for (uint32_t v = 0; v < f->n_values; v++)
    values += f->value_bytes[v];
  for (int d = 0; d < f->n_devices; d++) {
    if (f->device_bytes[d] == 0) continue;
    s->limits |= classes > f->device_bytes[d];
    s->over_time |= values > 0 && classes + values > f->device_bytes[d];
  }
}

static sn_status search_create(sn__search *s) {
  const sn__flow *f = s->flow;
  s->devices = sn__calloc((size_t)f->n_classes + 1, sizeof *s->devices);
  s->priorities = sn__calloc((size_t)f->n_tasks + 1, sizeof *s->priorities);
  s->held = sn__calloc((size_t)f->n_devices, sizeof *s->held);
  s->peak = sn__calloc((size_t)f->n_devices, sizeof *s->peak);
  if (s->devices == NULL || s->priorities == NULL || s->held == NULL || s->peak == NULL)
    return sn_status_out_of_memory();
  s->cost = INT64_MAX;
  s->most_used = f->n_classes < (uint32_t)f->n_devices ? (int)f->n_classes : f->n_devices;
  look_at_memory(s);
  SN_TRY(find_neighbours(s));
  return sn__flow_simulator_create(f, &s->simulator);
}

static void search_free(sn__search *s) {
  sn__flow_simulator_free(s->simulator);
  sn__free(s->devices);
  sn__free(s->priorities);
  sn__free(s->held);
  sn__free(s->peak);
  sn__free(s->first_neighbour);
  sn__free(s->neighbours);
}

/* Of an enumeration, for one simulated step: they take about as long. */
enum { STEPS_PER_EVAL = 16 };

/* More than anyone can wait for, and far from what int64_t holds of its multiples. */
#define EVALS_MOST ((int64_t)1 << 40)

static sn_status find_plan(sn__search *s, sn__makespan_result *out) {
  plan p;
  bool ok = plan_create(s->flow, &p);
  sn_status status = ok ? SN_OK : sn_status_out_of_memory();
  if (status == SN_OK) status = sn__makespan_bound(s->flow, &out->lower_bound, &out->bound);
  out->any_schedule = true;
  if (status == SN_OK) {
    try_one_device(s, &p, out);
    if (s->flow->n_devices > 1 && s->cost > out->lower_bound) {
      try_groups(s, &p);
      status = try_slices(s, &p);
      if (status == SN_OK) status = try_lists(s, &p);
      if (status == SN_OK && s->cost > out->lower_bound) status = try_beams(s, &p);
      /* A little of the budget makes a good plan to beat; what is small enough is proved. */
      if (status == SN_OK && s->options->certify) {
        int64_t budget = s->budget;
        int64_t some = 100 * ((int64_t)s->flow->n_tasks + 1);
        s->budget = s->evals + ((budget - s->evals) / 4 < some ? (budget - s->evals) / 4 : some);
        status = improve(s, &p, out->lower_bound);
        sn__proof proof = {0};
        s->trying = "every placement bounded";
        if (status == SN_OK) status = sn__exact(s, STEPS_PER_EVAL * (budget - s->evals), &proof);
        s->proved = proof.proved;
        if (sn__plain_cost(s->cost) && proof.bound > out->lower_bound) {
          out->lower_bound = proof.bound;
          out->any_schedule = proof.any_schedule;
          out->bound = "every placement bounded";
        }
        s->budget = s->proved ? s->evals : budget;
      }
      if (status == SN_OK) status = improve(s, &p, out->lower_bound);
    }
  }
  plan_free(&p);
  return status;
}

/* The default: some seconds, of large problems a quarter of a minute. */
static int64_t default_evals(const sn__flow *f) {
  int64_t evals = 160000000 / ((int64_t)f->n_tasks + f->n_reads + 1);
  return evals < 400 ? 400 : evals > 500000 ? 500000 : evals;
}

static sn_status hand_over(sn__search *s, sn__makespan_result *out) {
  const sn__flow *f = s->flow;
  sn__flow_step step = {.peak_bytes = s->peak};
  /* An order of its own only where it is of use. */
  if (s->prioritised && sn__judge(s, s->devices, NULL, 0, NULL) <= s->cost) s->prioritised = false;
  sn__flow_simulate(s->simulator, s->devices, s->prioritised ? s->priorities : NULL, &step);
  out->makespan = step.makespan;
  out->fits = lacking(f, s->peak) == 0;
  out->certified = out->fits && (s->proved || s->cost == out->lower_bound);
  out->evals = s->evals;
  out->found = s->found;
  out->annealed = s->annealed;
  out->devices = s->devices;
  s->devices = NULL;
  if (s->prioritised) {
    out->priorities = s->priorities;
    s->priorities = NULL;
  }
  return SN_OK;
}

sn_status sn__makespan_solve(const sn__flow *flow, const sn__makespan_options *options,
                             sn__makespan_result *out) {
  if (options->evals < 0)
    return sn_status_make(SN_CODE_INVALID,
                          "placement: %lld simulated steps; the budget is 0 at least",
                          (long long)options->evals);
  sn__search s = {.flow = flow,
                  .options = options,
                  .budget = options->evals > 0 ? options->evals : default_evals(flow),
                  .random = options->seed};
  if (s.budget > EVALS_MOST) s.budget = EVALS_MOST;
  *out = (sn__makespan_result){0};
  sn_status status = search_create(&s);
  if (status == SN_OK) status = find_plan(&s, out);
  if (status == SN_OK) status = hand_over(&s, out);
  search_free(&s);
  return status;
}

void sn__makespan_free(sn__makespan_result *r) {
  sn__free(r->devices);
  sn__free(r->priorities);
  *r = (sn__makespan_result){0};
}
