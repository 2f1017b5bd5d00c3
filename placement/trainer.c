/* SPDX-License-Identifier: Apache-2.0 */
/* From a model to steps: the passes in their order, once; then feeds in, losses out. */
#include "placement/trainer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "core/autodiff.h"
#include "core/graph_impl.h"
#include "core/run/session_impl.h"
#include "core/run/values.h"
#include "core/sha256.h"
#include "optim/optimize.h"
#include "placement/microbatch.h"

enum {
  N_VARIANTS = SN_TRAIN_LAST + 1,
  EVAL = N_VARIANTS,
  EVAL_WITH_LOSSES,
  PIPELINE, /* a step of all micro-batches at once */
  CHECK,    /* looks at whole batches that never run as one: takes no memory */
  N_PROGRAMS
};

/* A graph of more of them than this is no longer made and planned in no time. */
enum { MOST_PARTS = 256 };

typedef struct program {
  sn_plan *plan;
  sn_session *session;
} program;

struct sn_trainer {
  sn_graph *model;
  sn_topology *topology;
  sn_placement *placement;
  sn_machine *machine;
  sn_store *store;
  sn_optimizer_options optimizer;
  int64_t micro_batches;
  sn_pipeline pipeline;
  sn__micro_plan micro;  /* of the pipeline's program */
  uint32_t *part_inputs; /* [micro_batches * n_inputs] values in it, by the model's inputs */
  uint64_t seed;
  bool check;
  bool in_parts; /* whole batches do not fit: memory is for micro-batches one after the other */
  bool joined;   /* some node needs all micro-batches at once (sn__micro_total) */
  program programs[N_PROGRAMS];
  sn_extent *largest;      /* by symbol of the model: what was reserved so far; 0: nothing */
  sn_extent *largest_part; /* the same of micro-batches in a pipeline */
  size_t n_symbols;
  float *sums;          /* [n_losses], of a pipeline [micro_batches * n_losses] */
  double *weights;      /* [n_losses] */
  double *part_weights; /* [micro_batches * n_losses] the same numbers for each part */
  sn_fetch *fetches;    /* [n_losses] and the caller's */
  size_t cap_fetches;
  sn_feed *feeds; /* of one micro-batch, or of all */
  size_t cap_feeds;
  int64_t *offsets; /* of all their ragged feeds */
  size_t cap_offsets;
  sn_step_watcher watcher;
  void *watcher_user;
};

/* ---- making -------------------------------------------------------------------------------- */

static bool is_training(int which) {
  return which < N_VARIANTS || which == PIPELINE;
}

static sn__pipe_rule rule_of(const sn_trainer *t) {
  static const sn__pipe_rule rules[] = {[SN_PIPELINE_GPIPE] = SN__PIPE_GPIPE,
                                        [SN_PIPELINE_1F1B] = SN__PIPE_1F1B,
                                        [SN_PIPELINE_ZERO_BUBBLE] = SN__PIPE_ZERO_BUBBLE};
  return rules[t->pipeline];
}

/* All micro-batches in one training graph. */
static sn_status unrolled_graph(const sn_trainer *t, sn_graph **out_train) {
  sn_graph *one = NULL, *all = NULL;
  SN_TRY(sn__differentiate(t->model, &one));
  sn_status status = sn__micro_unroll(one, (uint32_t)t->micro_batches, &all);
  if (status == SN_OK) status = sn__optimize(all, &t->optimizer, SN_TRAIN_WHOLE, out_train);
  sn_graph_free(one);
  sn_graph_free(all);
  return status;
}

/* The same placed, in the order of the pipeline's schedule. */
static sn_status pipeline_graph(sn_trainer *t, sn_graph **out_placed) {
  sn_graph *train = NULL, *placed = NULL;
  int64_t *extents = sn__calloc(t->n_symbols + 1, sizeof *extents);
  sn_status status = extents == NULL ? sn_status_out_of_memory() : SN_OK;
  for (size_t s = 0; status == SN_OK && s < t->n_symbols; s++)
    extents[s] = t->largest_part[s].count;
  if (status == SN_OK) status = unrolled_graph(t, &train);
  if (status == SN_OK) status = sn_placement_apply(t->placement, train, &placed);
  if (status == SN_OK)
    status = sn__micro_order(placed, t->topology, extents, rule_of(t), t->seed, &t->micro);
  sn__free(extents);
  sn_graph_free(train);
  if (status == SN_OK)
    *out_placed = placed;
  else
    sn_graph_free(placed);
  return status;
}

static sn_status program_graph(sn_trainer *t, int which, sn_graph **out_placed) {
  if (which == PIPELINE) return pipeline_graph(t, out_placed);
  if (!is_training(which)) return sn_placement_apply(t->placement, t->model, out_placed);
  sn_graph *train = NULL;
  SN_TRY(sn_training_graph(t->model, &t->optimizer, (sn_train_variant)which, &train));
  sn_status status = t->store != NULL ? sn_store_extend(t->store, train) : SN_OK;
  if (status == SN_OK) status = sn_placement_apply(t->placement, train, out_placed);
  sn_graph_free(train);
  return status;
}

static size_t known_extents(const sn_trainer *t, int which, sn_extent *out) {
  bool part = which == PIPELINE || (t->in_parts && is_training(which));
  const sn_extent *largest = part ? t->largest_part : t->largest;
  size_t n = 0;
  for (size_t s = 0; which != CHECK && s < t->n_symbols; s++)
    if (largest[s].count > 0) out[n++] = largest[s];
  return n;
}

static sn_status make_plan(sn_trainer *t, int which) {
  sn_graph *placed = NULL;
  SN_TRY(program_graph(t, which, &placed));
  sn_extent *extents = sn__calloc(t->n_symbols + 1, sizeof *extents);
  sn_status status = extents == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) {
    sn_plan_options options = {.struct_size = sizeof options,
                               .training = is_training(which),
                               .no_outputs = is_training(which) || which == CHECK,
                               .no_losses = which == EVAL,
                               .extents = extents,
                               .n_extents = known_extents(t, which, extents)};
    status = sn_plan_create(placed, t->topology, &options, &t->programs[which].plan);
  }
  sn__free(extents);
  sn_graph_free(placed);
  return status;
}

/* Programs are made when first used: a run without micro-batches or evaluation never pays for them.
 */
static sn_status need_program(sn_trainer *t, int which) {
  program *p = &t->programs[which];
  if (p->plan == NULL) SN_TRY(make_plan(t, which));
  if (p->session != NULL) return SN_OK;
  sn_session_options options = {.struct_size = sizeof options, .seed = t->seed, .check = t->check};
  for (int i = 0; i < N_PROGRAMS; i++) /* one set of arenas for all of them */
    if (t->programs[i].session != NULL) options.share = t->programs[i].session;
  SN_TRY(sn_session_create(p->plan, t->store, t->machine, &options, &p->session));
  sn_extent *extents = sn__calloc(t->n_symbols + 1, sizeof *extents);
  if (extents == NULL) return sn_status_out_of_memory();
  size_t n = known_extents(t, which, extents);
  sn_status status = n > 0 ? sn_session_reserve(p->session, extents, n) : SN_OK;
  sn__free(extents);
  return status;
}

static sn_status make_tables(sn_trainer *t) {
  const sn_graph *g = t->model;
  t->n_symbols = g->n_symbols;
  size_t parts = t->pipeline != SN_PIPELINE_NONE ? (size_t)t->micro_batches : 1;
  t->largest = sn__calloc(g->n_symbols + 1, sizeof *t->largest);
  t->largest_part = sn__calloc(g->n_symbols + 1, sizeof *t->largest_part);
  t->sums = sn__calloc(parts * g->n_losses + 1, sizeof *t->sums);
  t->weights = sn__calloc(g->n_losses + 1, sizeof *t->weights);
  t->part_weights = sn__calloc(parts * g->n_losses + 1, sizeof *t->part_weights);
  t->part_inputs = sn__calloc(parts * g->n_inputs + 1, sizeof *t->part_inputs);
  if (t->largest == NULL || t->largest_part == NULL || t->sums == NULL || t->weights == NULL ||
      t->part_weights == NULL || t->part_inputs == NULL)
    return sn_status_out_of_memory();
  for (size_t s = 0; s < g->n_symbols; s++)
    t->largest[s].symbol = t->largest_part[s].symbol = g->symbols[s].name;
  return SN_OK;
}

static sn_status note_extents(sn_trainer *t, const sn_extent *extents, size_t n) {
  for (size_t i = 0; i < n; i++) {
    size_t s = 0;
    while (s < t->n_symbols && strcmp(t->largest[s].symbol, extents[i].symbol) != 0)
      s++;
    if (s == t->n_symbols)
      return sn_status_make(SN_CODE_INVALID, "extents: the model has no symbol '%s'",
                            extents[i].symbol);
    if (extents[i].count > t->largest[s].count) t->largest[s].count = extents[i].count;
  }
  return SN_OK;
}

/* By symbol: a part of the largest batch, or of a usual one. */
static int64_t *part_extents(const sn_trainer *t) {
  int64_t *part = sn__calloc(t->n_symbols + 1, sizeof *part), parts = t->micro_batches;
  for (size_t s = 0; part != NULL && s < t->n_symbols; s++) {
    const sn__symbol *symbol = &t->model->symbols[s];
    int64_t count = t->largest[s].count > 0 ? t->largest[s].count : sn__usual_extent(symbol);
    part[s] = symbol->kind == SN_SYMBOL_LONGEST ? count : count / parts + (count % parts != 0);
  }
  return part;
}

/* Does the last micro-batch, which has the gradients added up so far beside its own, find room for
 * values as many as a whole batch has? No: t->placement is for parts to decide. */
static sn_status whole_sums_fit(sn_trainer *t, bool *out_fit) {
  bool limited = false;
  *out_fit = true;
  for (int d = 0; d < t->topology->n_devices; d++)
    limited = limited || t->topology->devices[d].memory_bytes > 0;
  if (!limited) return SN_OK;
  sn_status status = make_plan(t, SN_TRAIN_LAST);
  sn_plan_free(t->programs[SN_TRAIN_LAST].plan); /* made again when the store has its sums */
  t->programs[SN_TRAIN_LAST].plan = NULL;
  if (sn_status_code(status) != SN_CODE_OUT_OF_MEMORY) return status;
  sn_status_free(status);
  sn_placement_free(t->placement);
  t->placement = NULL;
  *out_fit = false;
  return SN_OK;
}

/* Micro-batches one after the other: where a whole batch fits as it is, it says where everything
 * goes; else its parts do, with what may be recomputed. */
static sn_status place_parts(sn_trainer *t, const sn_graph *train,
                             const sn_place_options *options) {
  sn_place_options whole = *options;
  if (whole.recompute == SN_RECOMPUTE_AUTO) whole.recompute = SN_RECOMPUTE_NONE;
  sn_status status = sn_place(train, t->topology, &whole, &t->placement);
  bool fits = false;
  if (status == SN_OK) status = whole_sums_fit(t, &fits);
  if (fits || (status != SN_OK && sn_status_code(status) != SN_CODE_OUT_OF_MEMORY)) return status;
  sn_status_free(status);
  sn_graph *last = NULL; /* it has what gradients are added up in */
  int64_t *part = part_extents(t);
  if (part == NULL) return sn_status_out_of_memory();
  sn_place_options parts = *options;
  parts.extents = part;
  parts.n_extents = t->n_symbols;
  status = sn_training_graph(t->model, &t->optimizer, SN_TRAIN_LAST, &last);
  if (status == SN_OK)
    status = sn_status_context(sn_place(last, t->topology, &parts, &t->placement),
                               "one of %lld micro-batches", (long long)t->micro_batches);
  t->in_parts = true;
  for (size_t s = 0; s < t->n_symbols; s++)
    if (t->largest[s].count > 0) t->largest_part[s].count = part[s];
  sn_graph_free(last);
  sn__free(part);
  return status;
}

/* For parts of the largest batch, or of a usual one. */
static sn_status place_pipeline(sn_trainer *t, const sn_graph *train,
                                const sn_place_options *options) {
  sn_graph *unrolled = NULL;
  int64_t *part = part_extents(t);
  if (part == NULL) return sn_status_out_of_memory();
  sn_status status = unrolled_graph(t, &unrolled);
  if (status == SN_OK)
    status = sn__micro_place(train, unrolled, t->topology, options, part, rule_of(t), t->seed,
                             &t->placement);
  sn_graph_free(unrolled);
  sn__free(part);
  return status;
}

static sn_status decide_placement(sn_trainer *t, const sn_trainer_options *o) {
  sn_graph *train = NULL;
  SN_TRY(sn_training_graph(t->model, &t->optimizer, SN_TRAIN_WHOLE, &train));
  sn_place_options options = o->placement;
  int64_t *extents = sn__calloc(t->n_symbols + 1, sizeof *extents);
  sn_status status = extents == NULL ? sn_status_out_of_memory() : SN_OK;
  bool known = o->n_extents > 0;
  for (size_t s = 0; status == SN_OK && s < t->n_symbols; s++) {
    extents[s] = t->largest[s].count;
    known = known && extents[s] > 0;
  }
  if (status == SN_OK && options.extents == NULL && known) {
    options.extents = extents;
    options.n_extents = t->n_symbols;
  }
  if (status == SN_OK && t->pipeline != SN_PIPELINE_NONE)
    status = place_pipeline(t, train, &options);
  else if (status == SN_OK && t->micro_batches > 1)
    status = place_parts(t, train, &options);
  else if (status == SN_OK)
    status = sn_place(train, t->topology, &options, &t->placement);
  if (status == SN_OK) status = sn_store_create(train, t->seed, &t->store);
  sn__free(extents);
  sn_graph_free(train);
  return status;
}

/* Statistics of the whole batch need every micro-batch at once, as far forward as there. */
static sn_status check_total(const sn_trainer *t) {
  const uint32_t total = sn__micro_total(t->model);
  if (total == 0 || t->micro_batches < 2 || t->pipeline == SN_PIPELINE_GPIPE) return SN_OK;
  return sn_status_make(
      SN_CODE_INVALID,
      "'%s' takes its statistics of the whole batch (sync), so it needs all %lld micro-batches "
      "before one goes on, and they %s: use the pipeline gpipe, no micro-batches, or no sync",
      t->model->modules[t->model->nodes[total].module].path, (long long)t->micro_batches,
      t->pipeline == SN_PIPELINE_NONE ? "run one after the other"
                                      : "go back one by one in this pipeline");
}

sn_status sn_trainer_create(const sn_graph *model, const sn_trainer_options *options,
                            sn_trainer **out_trainer) {
  sn_trainer_options known, *o = &known;
  SN_TRY(sn_options_read(options, sizeof known, "sn_trainer_create", &known));
  known.optimizer.struct_size = sizeof known.optimizer;
  known.placement.struct_size = sizeof known.placement;
  SN_TRY(sn_graph_status(model));
  SN_TRY(sn_optimizer_check(&o->optimizer));
  if (o->micro_batches < 0)
    return sn_status_make(SN_CODE_INVALID, "micro_batches is %lld; it must be at least 1",
                          (long long)o->micro_batches);
  if (o->pipeline < SN_PIPELINE_NONE || o->pipeline > SN_PIPELINE_ZERO_BUBBLE)
    return sn_status_make(SN_CODE_INVALID, "no pipeline has number %d", (int)o->pipeline);
  if (o->pipeline != SN_PIPELINE_NONE && (o->micro_batches < 2 || o->micro_batches > MOST_PARTS))
    return sn_status_make(SN_CODE_INVALID,
                          "a pipeline runs 2 to %d micro-batches at once, not %lld", MOST_PARTS,
                          (long long)o->micro_batches);
  sn_trainer *t = sn__calloc(1, sizeof *t);
  if (t == NULL) return sn_status_out_of_memory();
  t->pipeline = o->pipeline;
  t->optimizer = o->optimizer;
  t->micro_batches = o->micro_batches > 0 ? o->micro_batches : 1;
  t->seed = o->seed;
  t->check = o->check;
  sn_status status = sn__graph_clone(model, &t->model);
  if (status == SN_OK) status = check_total(t);
  if (status == SN_OK) t->joined = sn__micro_total(t->model) != 0;
  if (status == SN_OK) status = make_tables(t);
  if (status == SN_OK) status = note_extents(t, o->extents, o->n_extents);
  if (status == SN_OK)
    status = o->topology != NULL ? sn_topology_copy(o->topology, &t->topology)
                                 : sn_topology_parse(o->devices != NULL ? o->devices : "cpu:0",
                                                     o->threads, &t->topology);
  if (status == SN_OK) status = decide_placement(t, o);
  if (status == SN_OK) status = sn_machine_create(t->topology, NULL, &t->machine);
  if (status == SN_OK) status = make_plan(t, SN_TRAIN_WHOLE);
  if (status != SN_OK) {
    sn_trainer_free(t);
    return status;
  }
  *out_trainer = t;
  return SN_OK;
}

void sn_trainer_free(sn_trainer *t) {
  if (t == NULL) return;
  for (int i = 0; i < N_PROGRAMS; i++)
    sn_session_free(t->programs[i].session);
  for (int i = 0; i < N_PROGRAMS; i++)
    sn_plan_free(t->programs[i].plan);
  sn_store_free(t->store);
  sn_machine_free(t->machine);
  sn_placement_free(t->placement);
  sn_topology_free(t->topology);
  sn_graph_free(t->model);
  sn__micro_plan_free(&t->micro);
  sn__free(t->part_inputs);
  sn__free(t->largest);
  sn__free(t->largest_part);
  sn__free(t->part_weights);
  sn__free(t->sums);
  sn__free(t->weights);
  sn__free(t->fetches);
  sn__free(t->feeds);
  sn__free(t->offsets);
  sn__free(t);
}

/* ---- feeds --------------------------------------------------------------------------------- */

static const sn_feed *feed_of(const sn_feed *feeds, size_t n, uint32_t value) {
  for (size_t i = 0; i < n; i++)
    if (feeds[i].value.index == value) return &feeds[i];
  return NULL;
}

static int64_t rows_of(const sn_trainer *t, const sn_feed *feeds, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const sn__value *v = sn__value_info(t->model, feeds[i].value);
    if (v != NULL && v->shape.rank > 0) return feeds[i].rows;
  }
  return 0;
}

static int64_t elements_of(const sn_trainer *t, const sn_feed *feeds, size_t n, int32_t ragged,
                           int64_t rows) {
  for (size_t i = 0; i < n; i++)
    if (feeds[i].offsets != NULL &&
        sn__value_ragged(t->model, sn__value_at(t->model, feeds[i].value.index)) == ragged)
      return feeds[i].offsets[rows];
  return 0;
}

/* What each loss is divided by, over a batch that has been checked: known before any part of it is
 * computed. */
static void total_weights(const sn_trainer *t, const sn_feed *feeds, size_t n) {
  int64_t rows = rows_of(t, feeds, n);
  for (size_t l = 0; l < t->model->n_losses; l++) {
    const sn__loss_info *loss = &t->model->losses[l];
    const sn__symbol *s = &t->model->symbols[loss->symbol];
    int64_t count =
        s->kind == SN_SYMBOL_ELEMENTS ? elements_of(t, feeds, n, (int32_t)s->ragged, rows) : rows;
    t->weights[l] = (double)count;
    const sn_feed *w = loss->weights == 0 ? NULL : feed_of(feeds, n, loss->weights);
    if (w == NULL) continue;
    bool f64 = t->model->values[loss->weights].dtype == SN_F64;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
      sum += f64 ? ((const double *)w->data)[i] : (double)((const float *)w->data)[i];
    t->weights[l] = sum;
  }
}

static size_t row_bytes(const sn_trainer *t, const sn__value *v) {
  (void)t;
  size_t bytes = sn_dtype_size(v->dtype);
  for (int32_t i = 1; i < v->shape.rank; i++)
    bytes *= (size_t)v->shape.dims[i];
  return bytes;
}

/* Rows [from, to) of every feed; ragged offsets are moved down to begin at 0, in `offsets` with
 * room for n * (to - from + 1). */
static void cut_feeds(const sn_trainer *t, const sn_feed *feeds, size_t n, int64_t from, int64_t to,
                      sn_feed *out, int64_t *room) {
  size_t rows = (size_t)(to - from);
  for (size_t i = 0; i < n; i++) {
    const sn__value *v = sn__value_info(t->model, sn__value_at(t->model, feeds[i].value.index));
    out[i] = feeds[i];
    if (v == NULL || v->shape.rank == 0) continue;
    out[i].rows = (int64_t)rows;
    int32_t ragged = sn__value_ragged(t->model, sn__value_at(t->model, feeds[i].value.index));
    const int64_t *offsets = feeds[i].offsets;
    for (size_t k = 0; ragged >= 0 && offsets == NULL && k < n; k++)
      if (sn__value_ragged(t->model, sn__value_at(t->model, feeds[k].value.index)) == ragged)
        offsets = feeds[k].offsets;
    int64_t first = offsets != NULL ? offsets[from] : from;
    out[i].data = (const char *)feeds[i].data + (size_t)first * row_bytes(t, v);
    if (feeds[i].offsets == NULL) continue;
    int64_t *moved = room + i * (rows + 1);
    for (size_t r = 0; r <= rows; r++)
      moved[r] = offsets[from + (int64_t)r] - first;
    out[i].offsets = moved;
  }
}

static sn_status make_room(sn_trainer *t, size_t n_feeds, int64_t rows, int64_t parts) {
  size_t most = (size_t)(rows + parts);
  if (!sn__grow((void **)&t->feeds, &t->cap_feeds, n_feeds * (size_t)parts + 1, sizeof *t->feeds) ||
      !sn__grow((void **)&t->offsets, &t->cap_offsets, n_feeds * most + 1, sizeof *t->offsets))
    return sn_status_out_of_memory();
  return SN_OK;
}

/* ---- steps --------------------------------------------------------------------------------- */

static sn_status run_program(sn_trainer *t, int which, const sn_step_args *args) {
  sn_timepoint done;
  sn_session *s = t->programs[which].session;
  bool watched = t->watcher != NULL && is_training(which);
  if (watched != sn_session_records(s)) SN_TRY(sn_session_record(s, watched));
  SN_TRY(sn_session_step(s, args, &done));
  SN_TRY(sn_session_wait(s, done));
  if (!watched) return SN_OK;
  return t->watcher(t->watcher_user, t->programs[which].plan, sn_session_recorded(s));
}

static sn_status run(sn_trainer *t, int which, const sn_feed *feeds, size_t n_feeds,
                     const sn_fetch *fetches, size_t n_fetches, bool losses, int64_t row_base,
                     const double *weights) {
  SN_TRY(need_program(t, which));
  size_t n_losses = losses ? t->model->n_losses : 0;
  if (!sn__grow((void **)&t->fetches, &t->cap_fetches, n_losses + n_fetches + 1,
                sizeof *t->fetches))
    return sn_status_out_of_memory();
  for (size_t l = 0; l < n_losses; l++)
    t->fetches[l] = (sn_fetch){.value = sn__value_at(t->model, t->model->losses[l].sum),
                               .data = &t->sums[l],
                               .bytes = sizeof t->sums[l]};
  if (n_fetches > 0) memcpy(t->fetches + n_losses, fetches, n_fetches * sizeof *fetches);
  sn_step_args args = {.struct_size = sizeof args,
                       .feeds = feeds,
                       .n_feeds = n_feeds,
                       .fetches = t->fetches,
                       .n_fetches = n_losses + n_fetches,
                       .loss_weights = weights,
                       .row_base = row_base,
                       .hold_step = which == SN_TRAIN_FIRST || which == SN_TRAIN_MIDDLE};
  SN_TRY(run_program(t, which, &args));
  const sn_session *s = t->programs[which].session;
  for (size_t l = 0; weights == NULL && l < n_losses; l++)
    t->weights[l] = sn_session_loss_weight(s, l);
  return SN_OK;
}

void sn_trainer_watch(sn_trainer *t, sn_step_watcher watcher, void *user) {
  t->watcher = watcher;
  t->watcher_user = user;
}

/* A batch that is going to be cut is checked as a whole first: offsets and weights are read before
 * any session sees them. */
static sn_status weigh_whole_batch(sn_trainer *t, const sn_feed *feeds, size_t n_feeds) {
  int which = t->pipeline != SN_PIPELINE_NONE || t->in_parts ? CHECK : SN_TRAIN_FIRST;
  SN_TRY(need_program(t, which));
  sn_step_args args = {.struct_size = sizeof args, .feeds = feeds, .n_feeds = n_feeds};
  SN_TRY(sn_status_context(sn__session_measure(t->programs[which].session, &args), "step"));
  total_weights(t, feeds, n_feeds);
  return SN_OK;
}

static void add_losses(const sn_trainer *t, const float *sums, double *out_losses) {
  for (size_t l = 0; out_losses != NULL && l < t->model->n_losses; l++)
    out_losses[l] += t->weights[l] > 0 ? (double)sums[l] / t->weights[l] : 0;
}

static sn_status step_part(sn_trainer *t, const sn_feed *feeds, size_t n_feeds, int64_t rows,
                           int64_t part, int64_t parts) {
  int64_t from = part * rows / parts, to = (part + 1) * rows / parts;
  int which = part == 0 ? SN_TRAIN_FIRST : part == parts - 1 ? SN_TRAIN_LAST : SN_TRAIN_MIDDLE;
  cut_feeds(t, feeds, n_feeds, from, to, t->feeds, t->offsets);
  return run(t, which, t->feeds, n_feeds, NULL, 0, true, from, t->weights);
}

/* ---- all parts at once --------------------------------------------------------------------- */

static void note_part(sn_trainer *t, uint32_t symbol, int64_t count) {
  if (count > t->largest_part[symbol].count) t->largest_part[symbol].count = count;
}

/* The largest part so far, which the pipeline is planned for when it is first needed. */
static void note_parts(sn_trainer *t, const sn_feed *feeds, size_t n) {
  const sn_graph *g = t->model;
  for (size_t i = 0; i < n; i++) {
    sn_value value = sn__value_at(g, feeds[i].value.index);
    if (g->values[value.index].shape.rank == 0) continue;
    note_part(t, SN_SYMBOL_BATCH, feeds[i].rows);
    int32_t ragged = sn__value_ragged(g, value);
    if (ragged < 0 || feeds[i].offsets == NULL) continue;
    note_part(t, g->raggeds[ragged].elements_symbol, feeds[i].offsets[feeds[i].rows]);
    for (int64_t r = 0; r < feeds[i].rows; r++)
      note_part(t, g->raggeds[ragged].longest_symbol,
                feeds[i].offsets[r + 1] - feeds[i].offsets[r]);
  }
}

static sn_status need_pipeline(sn_trainer *t) {
  bool known = t->programs[PIPELINE].plan != NULL;
  SN_TRY(sn_status_context(need_program(t, PIPELINE), "pipeline"));
  const sn_graph *g = t->programs[PIPELINE].plan->graph;
  for (uint32_t p = 0; !known && p < t->micro_batches; p++)
    for (size_t i = 0; i < t->model->n_inputs; i++)
      t->part_inputs[p * t->model->n_inputs + i] = sn__micro_input(g, t->model->inputs[i].value, p);
  return SN_OK;
}

/* Feeds of the parts lie one behind the other, n_feeds each; what is shared is fed once. */
static size_t address_feeds(sn_trainer *t, size_t n_feeds) {
  const sn_graph *g = t->model;
  size_t n = 0;
  for (size_t i = 0; i < n_feeds * (size_t)t->micro_batches; i++) {
    const sn__value *v = &g->values[t->feeds[i].value.index];
    size_t part = i / n_feeds;
    if (v->shape.rank == 0 && part > 0) continue;
    t->feeds[n] = t->feeds[i];
    t->feeds[n++].value.index = t->part_inputs[part * g->n_inputs + v->extra];
  }
  return n;
}

static sn_status step_pipeline(sn_trainer *t, const sn_feed *feeds, size_t n_feeds, int64_t rows,
                               double *out_losses) {
  size_t n_losses = t->model->n_losses, parts = (size_t)t->micro_batches;
  int64_t *room = t->offsets;
  for (size_t p = 0; p < parts; p++) {
    int64_t from = (int64_t)p * rows / t->micro_batches;
    int64_t to = ((int64_t)p + 1) * rows / t->micro_batches;
    cut_feeds(t, feeds, n_feeds, from, to, t->feeds + p * n_feeds, room);
    note_parts(t, t->feeds + p * n_feeds, n_feeds);
    room += n_feeds * (size_t)(to - from + 1);
    memcpy(t->part_weights + p * n_losses, t->weights, n_losses * sizeof *t->weights);
  }
  SN_TRY(need_pipeline(t));
  size_t n = address_feeds(t, n_feeds);
  const program *p = &t->programs[PIPELINE];
  if (!sn__grow((void **)&t->fetches, &t->cap_fetches, parts * n_losses + 1, sizeof *t->fetches))
    return sn_status_out_of_memory();
  for (size_t l = 0; l < parts * n_losses; l++)
    t->fetches[l] = (sn_fetch){.value = sn__value_at(p->plan->graph, p->plan->graph->losses[l].sum),
                               .data = &t->sums[l],
                               .bytes = sizeof t->sums[l]};
  sn_step_args args = {.struct_size = sizeof args,
                       .feeds = t->feeds,
                       .n_feeds = n,
                       .fetches = t->fetches,
                       .n_fetches = parts * n_losses,
                       .loss_weights = t->part_weights};
  SN_TRY(run_program(t, PIPELINE, &args));
  for (size_t part = 0; part < parts; part++)
    add_losses(t, t->sums + part * n_losses, out_losses);
  return SN_OK;
}

sn_status sn_trainer_step(sn_trainer *t, const sn_feed *feeds, size_t n_feeds, double *out_losses) {
  int64_t rows = rows_of(t, feeds, n_feeds);
  int64_t parts = t->micro_batches < rows ? t->micro_batches : rows > 0 ? rows : 1;
  for (size_t l = 0; out_losses != NULL && l < t->model->n_losses; l++)
    out_losses[l] = 0;
  /* Fewer rows than micro-batches do not fill a pipeline; what needs them all has them at once. */
  if (parts == 1 || (t->joined && parts < t->micro_batches)) {
    SN_TRY(run(t, SN_TRAIN_WHOLE, feeds, n_feeds, NULL, 0, true, 0, NULL));
    add_losses(t, t->sums, out_losses);
    return SN_OK;
  }
  SN_TRY(weigh_whole_batch(t, feeds, n_feeds));
  SN_TRY(make_room(t, n_feeds, rows, parts));
  if (t->pipeline != SN_PIPELINE_NONE && parts == t->micro_batches)
    return step_pipeline(t, feeds, n_feeds, rows, out_losses);
  for (int64_t part = 0; t->in_parts && part < parts; part++) {
    cut_feeds(t, feeds, n_feeds, part * rows / parts, (part + 1) * rows / parts, t->feeds,
              t->offsets);
    note_parts(t, t->feeds, n_feeds);
  }
  for (int64_t part = 0; part < parts; part++) {
    SN_TRY(step_part(t, feeds, n_feeds, rows, part, parts));
    add_losses(t, t->sums, out_losses);
  }
  return SN_OK;
}

sn_status sn_trainer_evaluate(sn_trainer *t, const sn_feed *feeds, size_t n_feeds,
                              const sn_fetch *fetches, size_t n_fetches, double *out_losses,
                              double *out_weights) {
  bool losses = out_losses != NULL;
  SN_TRY(run(t, losses ? EVAL_WITH_LOSSES : EVAL, feeds, n_feeds, fetches, n_fetches, losses, 0,
             NULL));
  for (size_t l = 0; losses && l < t->model->n_losses; l++) {
    out_losses[l] = t->weights[l] > 0 ? (double)t->sums[l] / t->weights[l] : 0;
    if (out_weights != NULL) out_weights[l] = t->weights[l];
  }
  return SN_OK;
}

double sn_trainer_loss_weight(const sn_trainer *t, size_t loss) {
  return loss < t->model->n_losses ? t->weights[loss] : 0;
}

sn_status sn_trainer_reserve(sn_trainer *t, const sn_extent *extents, size_t n_extents) {
  SN_TRY(note_extents(t, extents, n_extents));
  for (int i = 0; i < PIPELINE; i++) /* a pipeline's parts make their own room */
    if (t->programs[i].session != NULL && !(t->in_parts && is_training(i)))
      SN_TRY(sn_session_reserve(t->programs[i].session, extents, n_extents));
  return SN_OK;
}

/* ---- looking ------------------------------------------------------------------------------- */

sn_store *sn_trainer_store(sn_trainer *t) {
  return t->store;
}

const sn_graph *sn_trainer_model(const sn_trainer *t) {
  return t->model;
}

const sn_placement *sn_trainer_placement(const sn_trainer *t) {
  return t->placement;
}

const sn_plan *sn_trainer_plan(const sn_trainer *t) {
  return t->programs[SN_TRAIN_WHOLE].plan;
}

const sn_topology *sn_trainer_topology(const sn_trainer *t) {
  return t->topology;
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Programs take turns in the same arenas; what is allocated is the device's, whoever is asked. */
sn_session_memory sn_trainer_memory_on(const sn_trainer *t, size_t device) {
  sn_session_memory out = {0};
  for (int i = 0; i < N_PROGRAMS; i++) {
    if (t->programs[i].session == NULL) continue;
    sn_session_memory m = sn_session_memory_on(t->programs[i].session, device);
    m.live_bytes = larger(m.live_bytes, out.live_bytes);
    m.planned_compute_bytes = larger(m.planned_compute_bytes, out.planned_compute_bytes);
    m.planned_copy_bytes = larger(m.planned_copy_bytes, out.planned_copy_bytes);
    m.planned_variable_bytes = larger(m.planned_variable_bytes, out.planned_variable_bytes);
    out = m;
  }
  return out;
}

sn_pipeline_figures sn_trainer_pipeline(const sn_trainer *t) {
  const sn__pipe_schedule *s = t->micro.schedule;
  if (s == NULL) return (sn_pipeline_figures){0};
  return (sn_pipeline_figures){.stages = t->micro.pipe->n_stages,
                               .step_ns = s->step_ns,
                               .bound_ns = s->bound_ns,
                               .bubble_ns = s->bubble_ns};
}

sn_pipeline_stage sn_trainer_pipeline_stage(const sn_trainer *t, size_t i) {
  const sn__pipe *p = t->micro.pipe;
  const sn__pipe_schedule *s = t->micro.schedule;
  if (s == NULL || i >= p->n_stages) return (sn_pipeline_stage){.device = -1};
  const int64_t *ns = &p->ns[sn__pipe_task(p, (uint32_t)i, 0, SN__PIPE_F)];
  return (sn_pipeline_stage){.device = p->device[i],
                             .forward_ns = ns[SN__PIPE_F],
                             .backward_ns = ns[SN__PIPE_B],
                             .weight_ns = ns[SN__PIPE_W],
                             .bytes = p->bytes[i],
                             .in_flight = s->peak[i],
                             .most = s->cap[i]};
}

const sn_plan *sn_trainer_pipeline_plan(const sn_trainer *t) {
  return t->programs[PIPELINE].plan;
}

static sn_status hash_variable(sn_sha256 *hash, const sn_store *store, const sn_stored *v) {
  char text[160];
  int used = snprintf(text, sizeof text, "%s[", sn_dtype_name(v->dtype));
  for (int32_t i = 0; i < v->shape.rank; i++)
    used += snprintf(text + used, sizeof text - (size_t)used, "%lld,", (long long)v->shape.dims[i]);
  sn_sha256_add(hash, v->name, strlen(v->name) + 1);
  sn_sha256_add(hash, text, (size_t)used);
  void *data = sn__alloc(v->bytes + 1);
  if (data == NULL) return sn_status_out_of_memory();
  sn_status status = sn_store_read(store, v->name, data, v->bytes);
  if (status == SN_OK) sn_sha256_add(hash, data, v->bytes);
  sn__free(data);
  return status;
}

sn_status sn_store_sha256(const sn_store *store, char out_hex[65]) {
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_begin(&hash);
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *v = sn_store_at(store, i);
    if (v->owner == NULL) SN_TRY(hash_variable(&hash, store, v));
  }
  sn_sha256_end(&hash, digest);
  sn_sha256_hex(digest, out_hex);
  return SN_OK;
}
