/* SPDX-License-Identifier: Apache-2.0 */
#include "optim/optimize.h"

#include <assert.h>
#include <string.h>

#include "core/autodiff.h"
#include "ops/schedule/schedule.h"
#include "ops/update.h"

enum { MAX_SLOTS = 2 };

/* What one variable gets; built in variable order, used again by later sweeps. */
typedef struct trained {
  uint32_t variable; /* index into variables */
  sn_value value, gradient, slots[MAX_SLOTS], ema, accumulator, squares;
} trained;

typedef struct pass {
  sn_graph *g;
  sn_optimizer_options o;
  sn_train_variant variant;
  trained *list;
  size_t count;
} pass;

/* New nodes stand in the home value's module and share its device. */
static void build_at(sn_graph *g, uint32_t home) {
  g->phase = SN_UPDATE;
  g->origin = 0;
  g->home = home;
  g->module = g->nodes[g->values[home].node].module;
}

/* ---- slots --------------------------------------------------------------------------------- */

/* The roles of an optimizer's slots in the order of its update's inputs. */
static void slot_roles(const sn_optimizer_options *o, const char *roles[MAX_SLOTS]) {
  roles[0] = roles[1] = NULL;
  switch (o->kind) {
  case SN_SGD:
    if (o->momentum > 0) roles[0] = "sgd.momentum";
    break;
  case SN_ADAM:
  case SN_ADAMW:
    roles[0] = "adam.m";
    roles[1] = "adam.v";
    break;
  case SN_RMSPROP:
    roles[0] = "rmsprop.square";
    if (o->momentum > 0) roles[1] = "rmsprop.momentum";
    break;
  case SN_ADAGRAD: roles[0] = "adagrad.sum"; break;
  default: break;
  }
}

static sn_value add_slot(pass *p, const trained *t, const char *role) {
  return sn__slot_variable(p->g, t->value, role, sn_value_dtype(t->value), sn_value_shape(t->value),
                           (sn_init){.kind = SN_INIT_ZEROS});
}

/* Accumulators come last, so that the variables of a graph without are the first of one with. */
static void add_slots(pass *p) {
  const char *roles[MAX_SLOTS];
  slot_roles(&p->o, roles);
  p->g->phase = SN_FORWARD;
  for (size_t i = 0; i < p->count; i++) {
    trained *t = &p->list[i];
    for (int s = 0; s < MAX_SLOTS; s++)
      if (roles[s] != NULL) t->slots[s] = add_slot(p, t, roles[s]);
    if (p->o.ema_decay > 0) {
      t->ema = add_slot(p, t, "ema");
      if (sn_value_ok(t->ema)) p->g->variables[p->g->values[t->ema.index].extra].copy_owner = true;
    }
  }
  for (size_t i = 0; i < p->count && p->variant != SN_TRAIN_WHOLE; i++)
    p->list[i].accumulator = add_slot(p, &p->list[i], "accumulator");
}

/* ---- accumulation -------------------------------------------------------------------------- */

static void accumulate(pass *p) {
  sn__accumulate_attrs attrs = {.first = p->variant == SN_TRAIN_FIRST};
  for (size_t i = 0; i < p->count; i++) {
    trained *t = &p->list[i];
    build_at(p->g, t->value.index);
    sn_value in[] = {t->accumulator, t->gradient};
    sn__node_add(p->g, &sn__op_accumulate, &attrs, in, 2, NULL, NULL);
  }
}

/* The whole batch's gradient: what the earlier micro-batches left, plus the last one's. */
static sn_status total_gradients(pass *p) {
  const sn_op_def *add_n = sn__op_find("add_n");
  if (add_n == NULL)
    return sn_status_make(SN_CODE_INTERNAL, "the table of operations has no 'add_n'");
  for (size_t i = 0; i < p->count; i++) {
    trained *t = &p->list[i];
    build_at(p->g, t->value.index);
    sn_value in[] = {t->accumulator, t->gradient};
    t->gradient = sn__node_add(p->g, add_n, NULL, in, 2, "gradient", NULL);
    p->g->variables[t->variable].gradient = t->gradient.index;
  }
  return SN_OK;
}

/* ---- the step's scalars -------------------------------------------------------------------- */

static sn_value add_rate(pass *p, sn_value step) {
  const sn_schedule_options *s = &p->o.schedule;
  sn__schedule_attrs attrs = {.kind = (int64_t)s->kind,
                              .warmup_steps = s->warmup_steps,
                              .total_steps = s->total_steps,
                              .step_size = s->step_size,
                              .rate = p->o.learning_rate,
                              .gamma = s->gamma,
                              .least = s->min_rate};
  return sn__node_add(p->g, &sn__op_schedule, &attrs, &step, 1, NULL, NULL);
}

static sn_status add_scalars(pass *p) {
  sn_graph *g = p->g;
  for (size_t i = 0; i < p->count; i++) {
    build_at(g, p->list[i].value.index);
    p->list[i].squares =
        sn__node_add(g, &sn__op_sum_squares, NULL, &p->list[i].gradient, 1, NULL, NULL);
  }
  sn_value *in = sn__calloc(p->count + 2, sizeof *in);
  if (in == NULL) return sn_status_out_of_memory();
  build_at(g, g->losses[0].sum);
  in[1] = sn__role_input(g, "optimizer/step", SN_I64, (sn_shape){0, {0}}, SN_INPUT_STEP);
  in[0] = add_rate(p, in[1]);
  for (size_t i = 0; i < p->count; i++)
    in[i + 2] = p->list[i].squares;
  sn__global_norm_attrs attrs = {.clip_norm = p->o.clip_norm};
  sn_value out[3];
  sn__node_add(g, &sn__op_global_norm, &attrs, in, p->count + 2, NULL, out);
  g->scalars = (sn__scalars){.step = in[1].index,
                             .rate = in[0].index,
                             .norm = out[0].index,
                             .finite = out[1].index,
                             .control = out[2].index};
  sn__free(in);
  return sn_graph_status(g);
}

/* ---- updates ------------------------------------------------------------------------------- */

typedef union any_attrs {
  sn__sgd_attrs sgd;
  sn__adam_attrs adam;
  sn__rmsprop_attrs rmsprop;
  sn__adagrad_attrs adagrad;
} any_attrs;

static const sn_op_def *update_op(const sn_optimizer_options *o, double decay, any_attrs *a) {
  switch (o->kind) {
  case SN_SGD:
    a->sgd = (sn__sgd_attrs){.momentum = o->momentum,
                             .weight_decay = decay,
                             .clip_value = o->clip_value,
                             .nesterov = o->nesterov};
    return &sn__op_sgd;
  case SN_ADAM:
  case SN_ADAMW:
    a->adam = (sn__adam_attrs){.beta1 = o->beta1,
                               .beta2 = o->beta2,
                               .epsilon = o->epsilon,
                               .weight_decay = decay,
                               .clip_value = o->clip_value,
                               .decoupled = o->kind == SN_ADAMW};
    return &sn__op_adam;
  case SN_RMSPROP:
    a->rmsprop = (sn__rmsprop_attrs){.alpha = o->alpha,
                                     .epsilon = o->epsilon,
                                     .momentum = o->momentum,
                                     .weight_decay = decay,
                                     .clip_value = o->clip_value};
    return &sn__op_rmsprop;
  default:
    a->adagrad = (sn__adagrad_attrs){
        .epsilon = o->epsilon, .weight_decay = decay, .clip_value = o->clip_value};
    return &sn__op_adagrad;
  }
}

static void add_updates(pass *p) {
  sn_graph *g = p->g;
  sn_value control = sn__value_at(g, g->scalars.control);
  for (size_t i = 0; i < p->count; i++) {
    const trained *t = &p->list[i];
    bool decays = p->o.decay_all || !g->variables[t->variable].no_decay;
    any_attrs attrs;
    const sn_op_def *op = update_op(&p->o, decays ? p->o.weight_decay : 0, &attrs);
    build_at(g, t->value.index);
    sn_value in[SN__UPDATE_SLOTS + MAX_SLOTS] = {t->value, t->gradient, control};
    size_t n = SN__UPDATE_SLOTS;
    for (int s = 0; s < MAX_SLOTS; s++)
      if (t->slots[s].index != 0) in[n++] = t->slots[s];
    sn_value updated = sn__node_add(g, op, &attrs, in, n, NULL, NULL);
    if (t->ema.index == 0) continue;
    sn__ema_attrs ema = {.decay = p->o.ema_decay};
    sn_value ema_in[] = {t->ema, updated, control};
    sn__node_add(g, &sn__op_ema, &ema, ema_in, 3, NULL, NULL);
  }
}

/* ---- commits of the backward pass ----------------------------------------------------------- */

/* Puts node `at` behind all others. Nothing reads a commit's output. */
static void move_last(sn_graph *g, uint32_t at) {
  const uint32_t last = (uint32_t)g->n_nodes - 1;
  const sn__node moved = g->nodes[at];
  memmove(g->nodes + at, g->nodes + at + 1, (last - at) * sizeof *g->nodes);
  g->nodes[last] = moved;
  for (size_t i = 0; i < g->n_values; i++)
    if (g->values[i].node >= at)
      g->values[i].node = g->values[i].node == at ? last : g->values[i].node - 1;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].origin > at) g->nodes[i].origin--;
  for (size_t i = 0; i < g->n_variables; i++)
    if (g->variables[i].commit >= at)
      g->variables[i].commit = g->variables[i].commit == at ? last : g->variables[i].commit - 1;
}

static bool wants_control(const sn__node *n) {
  return n->op->control > 0 && n->in[n->op->control - 1] == 0;
}

/* Running statistics are written when the other variables are: when every gradient is finite. What
 * tells comes after the gradients, so their commits go to the end. */
static void hold_commits(sn_graph *g) {
  size_t left = g->n_nodes;
  for (uint32_t i = 1; i < left;) {
    if (!wants_control(&g->nodes[i])) {
      i++;
      continue;
    }
    move_last(g, i);
    left--;
    sn__node *n = &g->nodes[g->n_nodes - 1];
    n->in[n->op->control - 1] = g->scalars.control;
  }
}

/* ---- the pass ------------------------------------------------------------------------------ */

static sn_status find_trained(pass *p) {
  sn_graph *g = p->g;
  p->list = sn__calloc(g->n_variables + 1, sizeof *p->list);
  if (p->list == NULL) return sn_status_out_of_memory();
  for (uint32_t v = 0; v < g->n_variables; v++) {
    if (g->variables[v].gradient == 0) continue;
    trained *t = &p->list[p->count++];
    t->variable = v;
    t->value = sn__value_at(g, g->variables[v].value);
    t->gradient = sn__value_at(g, g->variables[v].gradient);
  }
  assert(p->count > 0); /* differentiation refuses a loss that no variable reaches */
  return SN_OK;
}

static sn_status build(pass *p) {
  SN_TRY(find_trained(p));
  add_slots(p);
  SN_TRY(sn_graph_status(p->g));
  if (p->variant == SN_TRAIN_FIRST || p->variant == SN_TRAIN_MIDDLE) {
    accumulate(p);
    return sn_graph_status(p->g);
  }
  if (p->variant == SN_TRAIN_LAST) SN_TRY(total_gradients(p));
  SN_TRY(add_scalars(p));
  add_updates(p);
  SN_TRY(sn_graph_status(p->g));
  hold_commits(p->g);
  return SN_OK;
}

sn_status sn__optimize(const sn_graph *differentiated, const sn_optimizer_options *options,
                       sn_train_variant variant, sn_graph **out_train) {
  SN_TRY(sn_optimizer_check(options));
  sn_optimizer_options known;
  SN_TRY(sn_options_read(options, sizeof known, "optimizer", &known));
  pass p = {.o = sn__optimizer_defaults(&known), .variant = variant};
  SN_TRY(sn__graph_clone(differentiated, &p.g));
  uint32_t module = p.g->module;
  sn_status status = build(&p);
  p.g->phase = SN_FORWARD;
  p.g->home = 0;
  p.g->module = module;
  sn__free(p.list);
  if (status != SN_OK)
    sn_graph_free(p.g);
  else
    *out_train = p.g;
  return status;
}

sn_status sn_training_graph(const sn_graph *forward, const sn_optimizer_options *options,
                            sn_train_variant variant, sn_graph **out_train) {
  sn_graph *differentiated = NULL;
  SN_TRY(sn__differentiate(forward, &differentiated));
  sn_status status = sn__optimize(differentiated, options, variant, out_train);
  sn_graph_free(differentiated);
  return status;
}
