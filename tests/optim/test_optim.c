/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizer pass: its rules against PyTorch in double, its schedules, its graph's homes, the
 * accumulation variants, the finite flag. */
#include "core/autodiff.h"
#include "ops/update.h"
#include "optim/optimize.h"
#include "tests/core/toy_ops.h"
#include "tests/fail_alloc.h"

enum { STEPS = 10, RATES = 12 };

typedef struct golden_run {
  const char *name;
  double w[STEPS][2 * TOY_LENGTH];
} golden_run;
typedef struct golden_schedule {
  const char *name;
  double rates[RATES];
} golden_schedule;
#include "tests/optim/golden.inc"

/* ---- a graph whose gradients are what is put into x0 and x1 -------------------------------- */

typedef double (*storage)[TOY_LENGTH];

static sn_graph *forward_graph(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value sums[2];
  for (int k = 0; k < 2; k++) {
    sn_module_begin(g, k == 0 ? "a" : "b");
    sn_value w = sn_variable(g, "w", SN_F64, SN_SHAPE(TOY_LENGTH), .no_decay = k == 1);
    sn_value x = sn_variable(g, "x", SN_F64, SN_SHAPE(TOY_LENGTH), .frozen = true);
    sums[k] = node1(g, &sn__op_sum, node2(g, &sn__op_mul, w, x));
    sn_module_end(g);
  }
  sn__graph_add_loss(g, NULL, node2(g, &sn__op_add, sums[0], sums[1]), sn__value_at(g, 0), 0, 1);
  return g;
}

static sn_graph *training_graph(const sn_optimizer_options *o, sn_train_variant variant) {
  sn_graph *g = forward_graph(), *t = NULL;
  sn_optimizer_options sized = *o; /* the tables of options leave it out */
  sized.struct_size = sizeof sized;
  ck_sn_ok(sn_training_graph(g, &sized, variant, &t));
  sn_graph_free(g);
  return t;
}

static uint32_t find(const sn_graph *g, const char *name) {
  sn_value v = sn_graph_find_variable(g, name);
  ck_assert_msg(sn_value_ok(v), "no variable '%s'", name);
  return v.index;
}

static const double starts[2][TOY_LENGTH] = {{0.5, -1.25, 2.0, 0.03125}, {-0.75, 0.0, 1.5, -3.0}};

static double golden_gradient(int step, int k, int i) {
  return ((step * 37 + k * 11 + i * 23) % 129 - 64) / 64.0 * (k == 1 ? 4.0 : 0.25);
}

static void start_values(const sn_graph *t, storage values) {
  for (size_t v = 0; v < t->n_variables; v++) {
    const sn__variable *variable = &t->variables[v];
    if (variable->copy_owner) /* owners come before their slots */
      memcpy(values[variable->value], values[t->variables[variable->owner - 1].value],
             sizeof *values);
    else if (strcmp(variable->name, "a/w") == 0 || strcmp(variable->name, "b/w") == 0)
      memcpy(values[variable->value], starts[variable->name[0] == 'b'], sizeof *values);
  }
  for (size_t c = 0; c < t->n_constants; c++)
    memcpy(values[t->constants[c].value], t->constants[c].data, t->constants[c].bytes);
  values[t->losses[0].seed][0] = 1;
}

static void set_step(const sn_graph *t, storage values, int64_t step) {
  if (t->scalars.step != 0) memcpy(values[t->scalars.step], &step, sizeof step);
}

static sn_optimizer_options options_named(const char *name) {
  sn_optimizer_options o = {.struct_size = sizeof o};
  if (strncmp(name, "sgd", 3) == 0) {
    o.learning_rate = 0.1;
    if (strstr(name, "momentum") != NULL || strstr(name, "nesterov") != NULL) o.momentum = 0.9;
    if (strstr(name, "nesterov") != NULL) {
      o.nesterov = true;
      o.weight_decay = 0.02;
    }
    if (strstr(name, "clip_value") != NULL) o.clip_value = 0.5;
    if (strstr(name, "ema") != NULL) o.ema_decay = 0.75;
  } else if (strcmp(name, "adam decay") == 0) {
    o = (sn_optimizer_options){.kind = SN_ADAM,
                               .learning_rate = 0.05,
                               .beta1 = 0.8,
                               .beta2 = 0.95,
                               .epsilon = 1e-3,
                               .weight_decay = 0.1};
  } else if (strncmp(name, "adamw", 5) == 0) {
    o.kind = SN_ADAMW;
    if (strcmp(name, "adamw") != 0) {
      o.learning_rate = 0.05;
      o.weight_decay = 0.3;
    }
  } else if (strncmp(name, "adam", 4) == 0) {
    o.kind = SN_ADAM;
    if (strcmp(name, "adam") != 0) o.learning_rate = 0.05;
    if (strstr(name, "clip_norm") != NULL) o.clip_norm = 1.5;
    if (strstr(name, "cosine") != NULL)
      o.schedule =
          (sn_schedule_options){.kind = SN_SCHEDULE_COSINE, .total_steps = 8, .min_rate = 0.001};
  } else if (strcmp(name, "rmsprop") == 0) {
    o.kind = SN_RMSPROP;
  } else if (strcmp(name, "rmsprop momentum decay") == 0) {
    o = (sn_optimizer_options){.kind = SN_RMSPROP,
                               .learning_rate = 0.02,
                               .alpha = 0.9,
                               .epsilon = 1e-4,
                               .momentum = 0.7,
                               .weight_decay = 0.05};
  } else {
    o.kind = SN_ADAGRAD;
    if (strcmp(name, "adagrad decay") == 0) {
      o.learning_rate = 0.3;
      o.weight_decay = 0.05;
    }
  }
  o.decay_all = strstr(name, "no_decay") == NULL;
  return o;
}

START_TEST(rules_are_pytorchs) {
  const golden_run *run = &golden_runs[_i];
  sn_optimizer_options o = options_named(run->name);
  sn_graph *t = training_graph(&o, SN_TRAIN_WHOLE);
  storage values = calloc(t->n_values, sizeof *values);
  start_values(t, values);
  const char *shown[2] = {o.ema_decay > 0 ? "a/w/ema" : "a/w", o.ema_decay > 0 ? "b/w/ema" : "b/w"};
  for (int step = 0; step < STEPS; step++) {
    /* Past its end PyTorch's cosine rises again; ours stays. */
    if (o.schedule.kind == SN_SCHEDULE_COSINE && step > o.schedule.total_steps) break;
    for (int k = 0; k < 2; k++)
      for (int i = 0; i < TOY_LENGTH; i++)
        values[find(t, k == 0 ? "a/x" : "b/x")][i] = golden_gradient(step, k, i);
    set_step(t, values, step);
    toy_run(t, values);
    for (int j = 0; j < 2 * TOY_LENGTH; j++) {
      double got = values[find(t, shown[j / TOY_LENGTH])][j % TOY_LENGTH], want = run->w[step][j];
      ck_assert_msg(fabs(got - want) <= 1e-13 * (1 + fabs(want)),
                    "%s, step %d, element %d: %.17g, PyTorch %.17g", run->name, step, j, got, want);
    }
  }
  free(values);
  sn_graph_free(t);
}
END_TEST

/* ---- schedules ------------------------------------------------------------------------------ */

START_TEST(schedules_are_pytorchs) {
  static const sn_schedule_options schedules[] = {
      {.kind = SN_SCHEDULE_STEP, .step_size = 5, .gamma = 0.3},
      {.kind = SN_SCHEDULE_EXPONENTIAL, .gamma = 0.8},
      {.kind = SN_SCHEDULE_COSINE, .total_steps = 11, .min_rate = 0.05},
      {.kind = SN_SCHEDULE_ONE_CYCLE, .total_steps = 12},
      {.kind = SN_SCHEDULE_COSINE, .warmup_steps = 3, .total_steps = 11}};
  ck_assert_uint_eq(sizeof schedules / sizeof *schedules,
                    sizeof golden_schedules / sizeof *golden_schedules);
  for (int64_t step = 0; step < RATES; step++) {
    double got = sn_schedule_rate(&schedules[_i], 0.4, step),
           want = golden_schedules[_i].rates[step];
    ck_assert_msg(fabs(got - want) <= 1e-13 * (want + 1e-3), "%s, step %d: %.17g, PyTorch %.17g",
                  golden_schedules[_i].name, (int)step, got, want);
  }
}
END_TEST

START_TEST(schedules_stay_in_bounds) {
  for (int kind = 0; kind < SN_SCHEDULE_COUNT; kind++)
    for (int64_t warmup = 0; warmup < 6; warmup++) {
      sn_schedule_options s = {.kind = (sn_schedule_kind)kind,
                               .warmup_steps = warmup,
                               .total_steps = 7,
                               .step_size = 2,
                               .gamma = 0.5,
                               .min_rate = 0.001};
      for (int64_t step = 0; step < 40; step++) {
        double rate = sn_schedule_rate(&s, 0.1, step);
        ck_assert_msg(rate > 0 && rate <= 0.1 * (1 + 1e-15), "%s, warm-up %d, step %d: %g",
                      sn_schedule_name(s.kind), (int)warmup, (int)step, rate);
      }
    }
}
END_TEST

/* ---- the graph ------------------------------------------------------------------------------ */

START_TEST(everything_of_a_variable_is_at_home) {
  sn_optimizer_options o = {.struct_size = sizeof o, .kind = SN_ADAM, .ema_decay = 0.9};
  sn_graph *t = training_graph(&o, (sn_train_variant)_i);
  size_t n_slots = 0;
  for (size_t v = 0; v < t->n_variables; v++) {
    const sn__variable *variable = &t->variables[v];
    if (variable->owner == 0) continue;
    n_slots++;
    const sn__variable *owner = &t->variables[variable->owner - 1];
    const sn__node *source = sn__producer(t, variable->value),
                   *home = sn__producer(t, owner->value);
    ck_assert_uint_eq(source->home, owner->value);
    ck_assert_uint_eq(source->module, home->module);
    if (variable->commit != 0) {
      ck_assert_uint_eq(t->nodes[variable->commit].home, owner->value);
      ck_assert_uint_eq(t->nodes[variable->commit].module, home->module);
      ck_assert_int_eq(t->nodes[variable->commit].phase, SN_UPDATE);
    }
  }
  ck_assert_uint_eq(n_slots, 2 * (_i == SN_TRAIN_WHOLE ? 3 : 4));
  bool writes = _i == SN_TRAIN_WHOLE || _i == SN_TRAIN_LAST;
  ck_assert_int_eq(t->scalars.control != 0, writes);
  ck_assert_int_eq(t->variables[0].commit != 0, writes);
  if (writes) {
    const sn__node *norm = sn__producer(t, t->scalars.norm);
    ck_assert_uint_eq(norm->home, t->losses[0].sum);
    ck_assert_uint_eq(norm->n_in, 4); /* rate, step, and the partial sums in variable order */
    ck_assert_uint_eq(sn__producer(t, norm->in[2])->home, t->variables[0].value);
    ck_assert_uint_eq(sn__producer(t, norm->in[3])->home, t->variables[2].value);
  }
  sn_graph_free(t);
}
END_TEST

/* The variants' variables are those of one store: same names in the same order. */
START_TEST(variants_share_a_store) {
  sn_optimizer_options o = {.struct_size = sizeof o, .kind = SN_RMSPROP, .momentum = 0.5};
  sn_graph *whole = training_graph(&o, SN_TRAIN_WHOLE), *last = training_graph(&o, SN_TRAIN_LAST);
  ck_assert_uint_lt(whole->n_variables, last->n_variables);
  for (int variant = SN_TRAIN_WHOLE; variant <= SN_TRAIN_LAST; variant++) {
    sn_graph *t = training_graph(&o, (sn_train_variant)variant);
    for (size_t v = 0; v < t->n_variables; v++) {
      ck_assert_str_eq(t->variables[v].name, last->variables[v].name);
      ck_assert_uint_eq(t->variables[v].value, last->variables[v].value);
    }
    sn_graph_free(t);
  }
  sn_graph_free(whole);
  sn_graph_free(last);
}
END_TEST

/* k micro-batches make the step that their gradients' sum makes. */
START_TEST(accumulation) {
  sn_optimizer_options o = {.struct_size = sizeof o, .kind = SN_ADAM, .clip_norm = 1};
  sn_graph *whole = training_graph(&o, SN_TRAIN_WHOLE), *part[4] = {NULL};
  for (int variant = SN_TRAIN_FIRST; variant <= SN_TRAIN_LAST; variant++)
    part[variant] = training_graph(&o, (sn_train_variant)variant);
  size_t n = part[SN_TRAIN_LAST]->n_values;
  storage a = calloc(n, sizeof *a), b = calloc(n, sizeof *b), c = calloc(n, sizeof *c);
  start_values(whole, a);
  start_values(part[SN_TRAIN_LAST], b);
  size_t n_variables = part[SN_TRAIN_LAST]->n_variables;
  for (int64_t step = 0; step < 3; step++) {
    for (int k = 0; k < 2; k++)
      memset(a[find(whole, k == 0 ? "a/x" : "b/x")], 0, sizeof *a);
    for (int micro = 0; micro < 4; micro++) {
      const sn_graph *t = part[micro == 0   ? SN_TRAIN_FIRST
                               : micro == 3 ? SN_TRAIN_LAST
                                            : SN_TRAIN_MIDDLE];
      memset(c, 0, n * sizeof *c); /* only variables live from one to the next */
      for (size_t v = 0; v < n_variables; v++)
        memcpy(c[t->variables[v].value], b[t->variables[v].value], sizeof *c);
      c[t->losses[0].seed][0] = 1;
      set_step(t, c, step);
      for (int k = 0; k < 2; k++)
        for (int i = 0; i < TOY_LENGTH; i++) {
          double x = golden_gradient((int)step * 4 + micro, k, i);
          c[find(t, k == 0 ? "a/x" : "b/x")][i] = x;
          a[find(whole, k == 0 ? "a/x" : "b/x")][i] += x;
        }
      toy_run(t, c);
      for (size_t v = 0; v < n_variables; v++)
        memcpy(b[t->variables[v].value], c[t->variables[v].value], sizeof *c);
      if (micro < 3 && step == 0) ck_assert_mem_eq(b[find(t, "a/w")], starts[0], sizeof *b);
    }
    set_step(whole, a, step);
    toy_run(whole, a);
    /* Multiples of 1/64 add up exactly, so here not even rounding differs. */
    for (int k = 0; k < 2; k++) {
      const char *name = k == 0 ? "a/w" : "b/w";
      ck_assert_mem_eq(a[find(whole, name)], b[find(part[SN_TRAIN_LAST], name)], sizeof *a);
    }
  }
  ck_assert_mem_ne(a[find(whole, "a/w")], starts[0], sizeof *a);
  free(a);
  free(b);
  free(c);
  sn_graph_free(whole);
  for (int variant = SN_TRAIN_FIRST; variant <= SN_TRAIN_LAST; variant++)
    sn_graph_free(part[variant]);
}
END_TEST

/* One gradient that is not finite keeps every variable and slot of the graph as it was. */
START_TEST(not_finite_writes_nothing) {
  static const sn_optimizer_kind kinds[] = {SN_SGD, SN_ADAM, SN_ADAMW, SN_RMSPROP, SN_ADAGRAD};
  sn_optimizer_options o = {
      .struct_size = sizeof o, .kind = kinds[_i], .ema_decay = 0.9, .clip_norm = 1};
  sn_graph *t = training_graph(&o, SN_TRAIN_WHOLE);
  storage values = calloc(t->n_values, sizeof *values),
          before = calloc(t->n_values, sizeof *before);
  start_values(t, values);
  set_step(t, values, 0);
  for (int bad = 0; bad < 3; bad++) {
    for (int i = 0; i < TOY_LENGTH; i++)
      values[find(t, "a/x")][i] = values[find(t, "b/x")][i] = 0.5;
    values[find(t, "b/x")][3] = bad == 0 ? (double)NAN : bad == 1 ? (double)INFINITY : 0.25;
    memcpy(before, values, t->n_values * sizeof *values);
    toy_run(t, values);
    uint8_t finite;
    memcpy(&finite, values[t->scalars.finite], 1);
    ck_assert_int_eq(finite, bad == 2);
    for (size_t v = 0; v < t->n_variables; v++) {
      uint32_t value = t->variables[v].value;
      bool same = memcmp(values[value], before[value], sizeof *values) == 0;
      ck_assert_msg(same == (bad < 2 || t->variables[v].commit == 0), "%s", t->variables[v].name);
    }
  }
  free(values);
  free(before);
  sn_graph_free(t);
}
END_TEST

START_TEST(refusals) {
  static const struct {
    sn_optimizer_options o;
    const char *words;
  } cases[] = {{{.learning_rate = -1}, "learning_rate is -1"},
               {{.learning_rate = (double)NAN}, "learning_rate"},
               {{.kind = SN_ADAM, .beta2 = 1}, "beta2 is 1; it must be from 0 to below 1"},
               {{.nesterov = true}, "nesterov needs a momentum"},
               {{.kind = (sn_optimizer_kind)77}, "no kind number 77"},
               {{.schedule = {.kind = SN_SCHEDULE_COSINE}}, "needs total_steps"},
               {{.schedule = {.kind = SN_SCHEDULE_STEP}}, "needs a step_size"},
               {{.schedule = {.kind = SN_SCHEDULE_EXPONENTIAL}}, "gamma is 0"},
               {{.schedule = {.kind = SN_SCHEDULE_COSINE, .total_steps = 4, .min_rate = 1}},
                "min_rate is 1"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sn_optimizer_options o = cases[i].o;
    ck_sn_fails(sn_optimizer_check(&o), SN_CODE_INVALID, "struct_size");
    o.struct_size = sizeof o;
    ck_sn_fails(sn_optimizer_check(&o), SN_CODE_INVALID, cases[i].words);
  }
}
END_TEST

static sn_status make_training_graph(void *arg) {
  sn_graph *t = NULL;
  sn_optimizer_options o = {.struct_size = sizeof o, .kind = SN_ADAM, .ema_decay = 0.5};
  sn_status status = sn_training_graph(arg, &o, SN_TRAIN_LAST, &t);
  if (status == SN_OK) sn_graph_free(t);
  return status;
}

START_TEST(out_of_memory) {
  sn_graph *g = forward_graph(); /* lives in the default allocator, freed by it below */
  ck_assert_int_gt(sn_fail_alloc_every_call(make_training_graph, g), 20);
  sn_graph_free(g);
}
END_TEST

static Suite *optim_suite(void) {
  Suite *s = suite_create("optim");
  TCase *c = tcase_create("optim");
  tcase_add_loop_test(c, rules_are_pytorchs, 0, sizeof golden_runs / sizeof *golden_runs);
  tcase_add_loop_test(c, schedules_are_pytorchs, 0,
                      sizeof golden_schedules / sizeof *golden_schedules);
  tcase_add_test(c, schedules_stay_in_bounds);
  tcase_add_loop_test(c, everything_of_a_variable_is_at_home, 0, 4);
  tcase_add_test(c, variants_share_a_store);
  tcase_add_test(c, accumulation);
  tcase_add_loop_test(c, not_finite_writes_nothing, 0, 5);
  tcase_add_test(c, refusals);
  tcase_add_test(c, out_of_memory);
  suite_add_tcase(s, c);
  return s;
}

SN_TEST_MAIN(optim_suite)
