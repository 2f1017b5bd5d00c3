/* SPDX-License-Identifier: Apache-2.0 */
/* The schedules: one event-driven rule, B before F before W under caps, and its settings.
 *
 * GraphPipe (Jeon et al., ASPLOS 2025) gave the DAG of stages and the cap of a stage by its own
 * path to the sink; GPipe (Huang et al., 2019) and 1F1B (PipeDream, Narayanan et al., 2019 and
 * 2021) are settings of it; zero-bubble (Qi et al., ICLR 2024) splits W off and tries several rules
 * by hand before the search. */
#include <string.h>

#include "core/alloc.h"
#include "placement/pipeline_impl.h"

/* How a device chooses. */
typedef struct rules {
  const char *name;
  sn__pipe_kind first, second, third; /* of the kinds that are ready */
  bool all_f_first;                   /* no B before every F of the device */
  bool wait;                          /* rather idle than make a B wait that is about to arrive */
  bool glue;                          /* W right behind its B */
  uint32_t extra; /* micro-batches between F and B beyond the path to the sink */
} rules;

typedef struct chooser {
  const sn__pipe *p;
  const rules *r;
  const uint32_t *cap; /* [n_stages] from F to W */
  uint32_t *glue;      /* [n_devices] the W that has to come next, or NONE */
} chooser;

static bool may_start_f(const chooser *x, const sn__pipe_clock *c, uint32_t s) {
  const sn__pipe *p = x->p;
  uint32_t f = c->started[SN__PIPE_F][s];
  if (f - c->ended[SN__PIPE_W][s] >= x->cap[s]) return false;
  return x->r->all_f_first || f - c->ended[SN__PIPE_B][s] < p->to_sink[s] + x->r->extra;
}

static bool may_start_b(const chooser *x, const sn__pipe_clock *c, int device) {
  for (uint32_t s = 0; x->r->all_f_first && s < x->p->n_stages; s++)
    if (x->p->device[s] == device && c->started[SN__PIPE_F][s] < x->p->n_micro) return false;
  return true;
}

/* Whether stage s of this device is the better one to serve: the older micro-batch, then for F the
 * stage nearer to the sink, for B the one farther from it: both have come the longer way. */
static bool better(const sn__pipe *p, sn__pipe_kind kind, uint32_t m, uint32_t s, uint32_t than_m,
                   uint32_t than) {
  if (than == SN__PIPE_NONE) return true;
  if (m != than_m) return m < than_m;
  return kind == SN__PIPE_F ? p->to_sink[s] < p->to_sink[than] : p->to_sink[s] > p->to_sink[than];
}

static uint32_t ready_task(const chooser *x, const sn__pipe_clock *c, int device,
                           sn__pipe_kind kind) {
  const sn__pipe *p = x->p;
  uint32_t stage = SN__PIPE_NONE, micro = 0;
  if (kind == SN__PIPE_B && !may_start_b(x, c, device)) return SN__PIPE_NONE;
  for (uint32_t s = 0; s < p->n_stages; s++) {
    uint32_t m = c->started[kind][s];
    if (p->device[s] != device || m == p->n_micro) continue;
    if (c->left[sn__pipe_task(p, s, m, kind)] > 0) continue;
    if (kind == SN__PIPE_F && !may_start_f(x, c, s)) continue;
    if (!better(p, kind, m, s, micro, stage)) continue;
    stage = s;
    micro = m;
  }
  return stage == SN__PIPE_NONE ? SN__PIPE_NONE : sn__pipe_task(p, stage, micro, kind);
}

/* When stage s's next B can start, if everything it waits for is on its way; else INT64_MAX. */
static int64_t next_b(const sn__pipe_clock *c, uint32_t s) {
  const sn__pipe *p = c->pipe;
  uint32_t m = c->started[SN__PIPE_B][s];
  if (m == p->n_micro || c->ended[SN__PIPE_F][s] <= m) return INT64_MAX;
  int64_t at = c->now;
  for (uint32_t k = p->first_out[s]; k < p->first_out[s + 1]; k++) {
    uint32_t e = p->outs[k];
    uint32_t t = sn__pipe_task(p, p->edges[e].to, m, c->glued ? SN__PIPE_W : SN__PIPE_B);
    if (c->finish[t] < 0) return INT64_MAX;
    int64_t there = c->finish[t];
    if (p->device[p->edges[e].to] != p->device[s])
      there += p->copy_ns[((size_t)e * p->n_micro + m) * 2 + 1];
    if (there > at) at = there;
  }
  return at;
}

static bool would_delay_b(const chooser *x, const sn__pipe_clock *c, int device, uint32_t task) {
  for (uint32_t s = 0; s < x->p->n_stages; s++)
    if (x->p->device[s] == device) {
      int64_t at = next_b(c, s);
      if (at != INT64_MAX && at > c->now && at < c->now + x->p->ns[task]) return true;
    }
  return false;
}

static uint32_t choose_by_rules(void *arg, const sn__pipe_clock *c, int device) {
  chooser *x = arg;
  if (x->glue[device] != SN__PIPE_NONE) {
    uint32_t w = x->glue[device];
    if (c->left[w] > 0) return SN__PIPE_NONE;
    x->glue[device] = SN__PIPE_NONE;
    return w;
  }
  const sn__pipe_kind kinds[] = {x->r->first, x->r->second, x->r->third};
  for (int k = 0; k < 3; k++) {
    if (x->r->glue && kinds[k] == SN__PIPE_W) continue;
    uint32_t t = ready_task(x, c, device, kinds[k]);
    if (t == SN__PIPE_NONE) continue;
    if (x->r->wait && kinds[k] != SN__PIPE_B && would_delay_b(x, c, device, t)) continue;
    if (x->r->glue && kinds[k] == SN__PIPE_B) x->glue[device] = t + 1;
    return t;
  }
  return SN__PIPE_NONE;
}

/* ---- keeping ------------------------------------------------------------------------------- */

static void keep_times(const sn__pipe *p, const sn__pipe_clock *c, sn__pipe_schedule *s) {
  uint32_t n = sn__pipe_task_count(p);
  memcpy(s->start, c->start, n * sizeof *s->start);
  memcpy(s->finish, c->finish, n * sizeof *s->finish);
  memcpy(s->peak, c->peak, p->n_stages * sizeof *s->peak);
  s->step_ns = c->now;
  int64_t most = 0;
  for (int d = 0; d < p->n_devices; d++) {
    int64_t busy = 0;
    for (uint32_t i = s->first[d]; i < s->first[d + 1]; i++)
      busy += p->ns[s->order[i]];
    if (busy > most) most = busy;
  }
  s->bubble_ns = s->step_ns - most;
}

/* A run by rules gives each device's order: its tasks by start, equals as they were started. */
static void keep_order(const sn__pipe *p, const uint32_t *sequence, sn__pipe_schedule *s) {
  uint32_t n = sn__pipe_task_count(p);
  memset(s->first, 0, ((size_t)p->n_devices + 1) * sizeof *s->first);
  for (uint32_t t = 0; t < n; t++)
    s->first[p->device[sn__pipe_stage_of(p, t)] + 1]++;
  for (int d = 0; d < p->n_devices; d++)
    s->first[d + 1] += s->first[d];
  for (uint32_t i = n; i-- > 0;) {
    uint32_t t = sequence[i];
    s->order[--s->first[p->device[sn__pipe_stage_of(p, t)] + 1]] = t;
  }
  for (int d = 0; d < p->n_devices; d++)
    s->first[d] = s->first[d + 1];
  s->first[p->n_devices] = n;
}

static sn_status new_schedule(const sn__pipe *p, sn__pipe_schedule **out) {
  size_t n = sn__pipe_task_count(p);
  sn__pipe_schedule *s = sn__calloc(1, sizeof *s);
  if (s == NULL) return sn_status_out_of_memory();
  s->first = sn__calloc((size_t)p->n_devices + 1, sizeof *s->first);
  s->order = sn__calloc(n, sizeof *s->order);
  s->start = sn__calloc(n, sizeof *s->start);
  s->finish = sn__calloc(n, sizeof *s->finish);
  s->cap = sn__calloc(p->n_stages, sizeof *s->cap);
  s->peak = sn__calloc(p->n_stages, sizeof *s->peak);
  if (s->first == NULL || s->order == NULL || s->start == NULL || s->finish == NULL ||
      s->cap == NULL || s->peak == NULL) {
    sn__pipe_schedule_free(s);
    return sn_status_out_of_memory();
  }
  *out = s;
  return SN_OK;
}

void sn__pipe_schedule_free(sn__pipe_schedule *s) {
  if (s == NULL) return;
  sn__free(s->first);
  sn__free(s->order);
  sn__free(s->start);
  sn__free(s->finish);
  sn__free(s->cap);
  sn__free(s->peak);
  sn__free(s);
}

sn_status sn__pipe_evaluate(const sn__pipe *p, sn__pipe_schedule *s) {
  SN_TRY(sn__pipe_check_order(p, s->glued, s->first, s->order));
  sn__pipe_clock clock = {0};
  uint32_t *at = sn__calloc((size_t)p->n_devices, sizeof *at);
  sn_status status = at == NULL ? sn_status_out_of_memory() : sn__pipe_clock_create(p, &clock);
  if (status == SN_OK) {
    sn__pipe_orders orders = {s->first, s->order, at};
    if (sn__pipe_run_orders(&clock, s->glued, &orders))
      keep_times(p, &clock, s);
    else
      status = sn_status_make(SN_CODE_INTERNAL, "a pipeline order that was proved stands still");
  }
  sn__pipe_clock_free(&clock);
  sn__free(at);
  return status;
}

/* ---- constructions ------------------------------------------------------------------------- */

typedef struct recorder {
  chooser x;
  uint32_t *sequence, n;
} recorder;

static uint32_t choose_and_record(void *arg, const sn__pipe_clock *c, int device) {
  recorder *r = arg;
  uint32_t t = choose_by_rules(&r->x, c, device);
  if (t != SN__PIPE_NONE) r->sequence[r->n++] = t;
  return t;
}

/* One run by rules; kept when it is shorter than what there is (or needs less where equal). */
static void try_rules(const sn__pipe *p, sn__pipe_clock *clock, const rules *rule, recorder *rec,
                      sn__pipe_schedule *s) {
  rec->x.r = rule;
  rec->n = 0;
  for (int d = 0; d < p->n_devices; d++)
    rec->x.glue[d] = SN__PIPE_NONE;
  s->evals++;
  if (!sn__pipe_run(clock, s->glued, choose_and_record, rec)) return;
  if (s->from != NULL) {
    uint64_t flying = 0, kept = 0;
    for (uint32_t i = 0; i < p->n_stages; i++) {
      flying += clock->peak[i];
      kept += s->peak[i];
    }
    if (clock->now > s->step_ns || (clock->now == s->step_ns && flying >= kept)) return;
  }
  keep_order(p, rec->sequence, s);
  keep_times(p, clock, s);
  s->from = rule->name;
}

#define FULL (UINT32_MAX / 2)
#define F    SN__PIPE_F
#define B    SN__PIPE_B
#define W    SN__PIPE_W
static const rules gpipe_rules[] = {{"all F, then all B", F, B, W, true, false, true, 0}};
static const rules one_f_one_b_rules[] = {{"B before F", B, F, W, false, false, true, 0}};
/* The hand-made combinations of Qi et al.: whether more F than the path to the sink fill the bubble
 * before the first B, whether a B that is about to come is waited for, whether W or F goes first.
 * The last is 1F1B, so that nothing is longer than it. */
static const rules zero_bubble_rules[] = {
    {"B, F, W", B, F, W, false, false, false, 0},
    {"B, F, W; waits for B", B, F, W, false, true, false, 0},
    {"B, W, F", B, W, F, false, false, false, 0},
    {"B, W, F; waits for B", B, W, F, false, true, false, 0},
    {"F, B, W", F, B, W, false, false, false, 0},
    {"B, F, W; a full warm-up", B, F, W, false, false, false, FULL},
    {"B, F, W; a full warm-up, waits for B", B, F, W, false, true, false, FULL},
    {"B, W, F; a full warm-up", B, W, F, false, false, false, FULL},
    {"F, B, W; a full warm-up", F, B, W, false, false, false, FULL},
    {"B, F, W; one more", B, F, W, false, false, false, 1},
    {"1F1B", B, F, W, false, false, true, 0},
};
#undef FULL
#undef F
#undef B
#undef W

static sn_status set_caps(const sn__pipe *p, sn__pipe_rule rule, bool wide, sn__pipe_schedule *s) {
  for (uint32_t i = 0; i < p->n_stages; i++) {
    uint32_t cap = rule == SN__PIPE_GPIPE  ? p->n_micro
                   : rule == SN__PIPE_1F1B ? p->to_sink[i]
                   : wide                  ? 2 * p->through[i] - 1
                                           : p->through[i];
    s->cap[i] = cap < p->n_micro ? cap : p->n_micro;
  }
  SN_TRY(sn__pipe_cut_caps(p, s->cap));
  for (uint32_t i = 0; rule == SN__PIPE_GPIPE && i < p->n_stages; i++)
    if (s->cap[i] < p->n_micro)
      return sn_status_make(
          SN_CODE_INVALID,
          "GPipe keeps the activations of all %u micro-batches: stage %u has room "
          "for %u of %llu bytes each; 1F1B keeps %u",
          p->n_micro, i, s->cap[i], (unsigned long long)p->bytes[i], p->to_sink[i]);
  return SN_OK;
}

static sn_status construct(const sn__pipe *p, sn__pipe_rule rule, sn__pipe_clock *clock,
                           sn__pipe_schedule *s) {
  recorder rec = {.x = {.p = p, .cap = s->cap}};
  rec.sequence = sn__calloc(sn__pipe_task_count(p), sizeof *rec.sequence);
  rec.x.glue = sn__calloc((size_t)p->n_devices, sizeof *rec.x.glue);
  if (rec.sequence != NULL && rec.x.glue != NULL) {
    const rules *list = rule == SN__PIPE_GPIPE  ? gpipe_rules
                        : rule == SN__PIPE_1F1B ? one_f_one_b_rules
                                                : zero_bubble_rules;
    size_t n = rule == SN__PIPE_ZERO_BUBBLE ? sizeof zero_bubble_rules / sizeof *list : 1;
    for (size_t i = 0; i < n && (s->from == NULL || s->step_ns > s->bound_ns); i++)
      try_rules(p, clock, &list[i], &rec, s);
  }
  bool lost = rec.sequence == NULL || rec.x.glue == NULL;
  sn__free(rec.sequence);
  sn__free(rec.x.glue);
  if (lost) return sn_status_out_of_memory();
  if (s->from == NULL)
    return sn_status_make(SN_CODE_INTERNAL, "no rule of pipelines gets to the end of a step");
  return SN_OK;
}

static sn_status make(const sn__pipe *p, sn__pipe_rule rule, bool wide, uint32_t evals,
                      uint64_t seed, sn__pipe_schedule *s) {
  for (uint32_t e = 0; rule != SN__PIPE_GPIPE && e < p->n_edges; e++)
    if (p->all[e])
      return sn_status_make(SN_CODE_INVALID,
                            "stage %u needs all %u micro-batches of stage %u at once, so none goes "
                            "back before the last has come: use GPipe",
                            p->edges[e].to, p->n_micro, p->edges[e].from);
  s->glued = rule != SN__PIPE_ZERO_BUBBLE;
  SN_TRY(set_caps(p, rule, wide, s));
  SN_TRY(sn__pipe_bound(p, s->glued, &s->bound_ns));
  sn__pipe_clock clock = {0};
  SN_TRY(sn__pipe_clock_create(p, &clock));
  sn_status status = construct(p, rule, &clock, s);
  if (status == SN_OK && rule == SN__PIPE_ZERO_BUBBLE && s->step_ns > s->bound_ns)
    status = sn__pipe_search(p, &clock, evals, seed, s);
  sn__pipe_clock_free(&clock);
  return status == SN_OK ? sn__pipe_evaluate(p, s) : status;
}

static sn_status make_new(const sn__pipe *p, sn__pipe_rule rule, bool wide, uint32_t evals,
                          uint64_t seed, sn__pipe_schedule **out) {
  SN_TRY(new_schedule(p, out));
  sn_status status = make(p, rule, wide, evals, seed, *out);
  if (status == SN_OK) return SN_OK;
  sn__pipe_schedule_free(*out);
  *out = NULL;
  return sn_status_context(status, "pipeline");
}

sn_status sn__pipe_schedule_make(const sn__pipe *p, sn__pipe_rule rule, uint32_t evals,
                                 uint64_t seed, sn__pipe_schedule **out_schedule) {
  sn__pipe_schedule *s = NULL, *wide = NULL;
  if (evals == 0) evals = 2000;
  SN_TRY(make_new(p, rule, false, evals, seed, &s));
  /* What 1F1B's memory cannot give, nearly twice as much may (ZB-H2), where there is room. */
  if (rule == SN__PIPE_ZERO_BUBBLE && s->step_ns > s->bound_ns) {
    sn_status status = make_new(p, rule, true, evals, seed, &wide);
    if (status != SN_OK) {
      sn__pipe_schedule_free(s);
      return status;
    }
    sn__pipe_schedule *worse = wide->step_ns < s->step_ns ? s : wide;
    s = worse == s ? wide : s;
    sn__pipe_schedule_free(worse);
  }
  *out_schedule = s;
  return SN_OK;
}
