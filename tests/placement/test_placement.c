/* SPDX-License-Identifier: Apache-2.0 */
/* Placement without devices: the simulator by hand, pins, memory, causes, and what apply makes. */
#include <stdio.h>

#include "core/rng.h"
#include "core/run/plan.h"
#include "core/verify.h"
#include "layers/layers.h"
#include "ops/ops.h"
#include "optim/optim.h"
#include "placement/flow_simulate.h"
#include "placement/makespan.h"
#include "placement/placement.h"
#include "placement/problem.h"
#include "tests/check_sn.h"

/* ---- made-up machines ---------------------------------------------------------------------- */

/* `n` described devices on which an op costs its launch and a copy its latency: numbers that can be
 * added up by hand. */
static sn_topology *by_hand(int n, const int64_t *launch_ns, int64_t latency_ns) {
  sn_device_desc d[8] = {0};
  for (int i = 0; i < n; i++) {
    sn_device_desc_init(SN_DEVICE_NULL, i, -1, 1, &d[i]);
    d[i].flops_per_s = d[i].bytes_per_s = 1e30;
    d[i].launch_ns = launch_ns[i];
    d[i].memory_bytes = 0;
  }
  sn_topology *t = NULL;
  ck_sn_ok(sn_topology_create(d, n, &t));
  for (int i = 0; i < n * n; i++) {
    if (t->links[i].from == t->links[i].to) continue;
    t->links[i].latency_ns = latency_ns;
    t->links[i].bytes_per_s = 1e300;
  }
  return t;
}

/* A copy of `latency` takes one nanosecond more: what is not whole is rounded up. */
enum { LATENCY = 9, COPY = 10 };

typedef struct rig {
  sn_graph *graph;
  sn_topology *topology;
  sn__problem *problem;
  sn__flow_simulator *simulator;
} rig;

static rig rig_make(sn_graph *g, sn_topology *t) {
  rig r = {g, t, NULL, NULL};
  ck_sn_ok(sn_graph_status(g));
  ck_sn_ok(sn__problem_create(g, t, (const int64_t[]){8}, 1, &r.problem));
  ck_sn_ok(sn__flow_simulator_create(r.problem->flow, &r.simulator));
  return r;
}

static void rig_free(rig *r) {
  sn__flow_simulator_free(r->simulator);
  sn__problem_free(r->problem);
  sn_topology_free(r->topology);
  sn_graph_free(r->graph);
}

static void put(const rig *r, int *devices, const char *module, int device) {
  for (uint32_t u = 0; u < r->problem->n_units; u++)
    if (strcmp(r->graph->modules[r->problem->units[u].module].path, module) == 0) {
      devices[u] = device;
      return;
    }
  ck_abort_msg("no unit '%s'", module);
}

/* ---- the simulator ------------------------------------------------------------------------- */

/* x -> left: tanh; x -> right: exp; join: add. One [8, 4] float tensor is 128 bytes. */
static sn_graph *two_branches(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 4);
  sn_module_begin(g, "left");
  sn_value l = sn_tanh(g, x);
  sn_module_end(g);
  sn_module_begin(g, "right");
  sn_value r = sn_exp(g, x);
  sn_module_end(g);
  sn_module_begin(g, "join");
  sn_output(g, "y", sn_add(g, l, r));
  sn_module_end(g);
  return g;
}

START_TEST(simulated_by_hand) {
  rig r = rig_make(two_branches(), by_hand(2, (const int64_t[]){100, 300}, LATENCY));
  int devices[8] = {0};
  int64_t busy[2];
  uint64_t peak[2];
  sn__flow_step out = {.busy = busy, .peak_bytes = peak};

  sn__flow_simulate(r.simulator, devices, NULL, &out);
  ck_assert_int_eq(out.makespan, 300);
  ck_assert_int_eq(out.copy_time, 0);
  ck_assert_int_eq(busy[0], 300);
  ck_assert_uint_eq(peak[0], 3 * 128);
  ck_assert_uint_eq(peak[1], 0);

  /* x arrives at 10, exp ends at 310, its copy back at 320, the sum at 420. */
  put(&r, devices, "right", 1);
  sn__flow_simulate(r.simulator, devices, NULL, &out);
  ck_assert_int_eq(out.makespan, 2 * COPY + 300 + 100);
  ck_assert_int_eq(out.copy_time, 2 * COPY);
  ck_assert_uint_eq(out.copy_bytes, 2 * 128);
  ck_assert_int_eq(busy[0], 200);
  ck_assert_int_eq(busy[1], 300);
  ck_assert_uint_eq(peak[0], 3 * 128); /* tanh, the copy of exp, the sum */
  ck_assert_uint_eq(peak[1], 2 * 128); /* the copy of x, exp */

  /* Both results go to device 1, which does the sum. */
  put(&r, devices, "right", 0);
  put(&r, devices, "join", 1);
  sn__flow_simulate(r.simulator, devices, NULL, &out);
  ck_assert_int_eq(out.makespan, 200 + COPY + 300);
  ck_assert_int_eq(out.copy_time, 2 * COPY);

  sn__makespan_options o = {.evals = 100};
  sn__makespan_result result;
  ck_sn_ok(sn__makespan_solve(r.problem->flow, &o, &result));
  ck_assert_int_ge(result.lower_bound, 200); /* one branch and the sum */
  ck_assert_int_eq(result.makespan, 300);    /* both branches and the sum on device 0 */
  sn__makespan_free(&result);
  rig_free(&r);
}
END_TEST

/* Two copies to one device stand in one queue; one value to one device is copied once. */
START_TEST(copies_queue_up) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_module_begin(g, "a");
  sn_value p = sn_tanh(g, sn_input(g, "x", SN_F32, 4)), q = sn_exp(g, p);
  sn_module_end(g);
  sn_module_begin(g, "b");
  sn_value u = sn_add(g, p, q);
  sn_output(g, "y", sn_mul(g, sn_add(g, u, p), q));
  sn_module_end(g);
  rig r = rig_make(g, by_hand(2, (const int64_t[]){1, 7}, LATENCY));
  int devices[8] = {0};
  put(&r, devices, "b", 1);
  sn__flow_step out = {0};
  sn__flow_simulate(r.simulator, devices, NULL, &out);
  ck_assert_int_eq(out.copy_time, 2 * COPY);
  ck_assert_uint_eq(out.copy_bytes, 2 * 128);
  ck_assert_int_eq(out.makespan, 1 + COPY + COPY + 3 * 7); /* q waits for p's copy to end */
  rig_free(&r);
}
END_TEST

/* Of two ready tasks the one with more behind it goes first, whatever their order in the graph. */
START_TEST(longest_path_first) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 4);
  sn_module_begin(g, "short");
  sn_output(g, "s", sn_tanh(g, x));
  sn_module_end(g);
  sn_module_begin(g, "long");
  sn_value l = sn_exp(g, x);
  sn_module_end(g);
  sn_module_begin(g, "far");
  sn_output(g, "f", sn_sqrt(g, l));
  sn_module_end(g);
  rig r = rig_make(g, by_hand(2, (const int64_t[]){100, 300}, LATENCY));
  int devices[8] = {0};
  put(&r, devices, "far", 1);
  sn__flow_step out = {0};
  sn__flow_simulate(r.simulator, devices, NULL, &out);
  ck_assert_int_eq(out.makespan, 100 + COPY + 300);
  rig_free(&r);
}
END_TEST

/* far: tanh; near: its product with v; home: v, and what writes it. */
static sn_graph *written_variable(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_module_begin(g, "far");
  sn_value a = sn_tanh(g, sn_input(g, "x", SN_F32, 4));
  sn_module_end(g);
  sn_module_begin(g, "home");
  sn_value v = sn_variable(g, "v", SN_F32, SN_SHAPE(4), .frozen = true);
  sn_value w = sn_variable(g, "w", SN_F32, SN_SHAPE(4), .frozen = true);
  sn_module_begin(g, "view");
  sn_value seen = sn_reshape(g, v, SN_SHAPE(1, 4));
  sn_module_end(g);
  sn__node_add(g, sn__op_find("accumulate"), NULL, (sn_value[]){v, w}, 2, NULL, NULL);
  sn_module_end(g);
  sn_module_begin(g, "near");
  sn_value seed = sn_reduce_sum(g, sn_mul(g, a, seen), .all = true);
  sn__graph_add_loss(g, "y", seed, (sn_value){g, 0}, SN_SYMBOL_BATCH, 1);
  sn_module_end(g);
  return g;
}

static int64_t written_step(const char *const *modules, const int *on, size_t n) {
  rig r = rig_make(written_variable(), by_hand(2, (const int64_t[]){100, 300}, LATENCY));
  int devices[8] = {0};
  for (size_t i = 0; i < n; i++)
    put(&r, devices, modules[i], on[i]);
  sn__flow_step out = {0};
  sn__flow_simulate(r.simulator, devices, NULL, &out);
  rig_free(&r);
  return out.makespan;
}

/* A variable is written when all that reads it has read it, through views and copies; a copy's own
 * readers do not count. */
START_TEST(written_after_readers) {
  static const char *const names[] = {"far", "near", "home", "home/view"};
  /* tanh ends at 300, is there at 310; product, sum, and then the writing. */
  ck_assert_int_eq(written_step(names, (const int[]){1, 0, 0, 0}, 4), 310 + 100 + 100 + 100);
  /* v goes from device 1 to 0, so it is written from 10 on, for 300. */
  ck_assert_int_eq(written_step(names, (const int[]){0, 0, 1, 1}, 4), COPY + 300);
  /* The same, with the view where it is read. */
  ck_assert_int_eq(written_step(names, (const int[]){0, 0, 1, 0}, 4), COPY + 300);
}
END_TEST

/* ---- random graphs ------------------------------------------------------------------------- */

typedef struct draw {
  uint64_t seed, n;
} draw;

static int below(draw *d, int n) {
  return (int)sn__rng_below(d->seed, 77, d->n++, (uint64_t)n);
}

/* Now and then something that lies across modules: a view of another module's value, or another use
 * of a weight that the first module has, read as it is or through a view. */
static sn_value odd_part(sn_graph *g, draw *d, sn_value a, sn_value shared) {
  int64_t units = sn_value_shape(a).dims[1];
  sn_shape flat = SN_SHAPE(SN_DIM_KEEP(0), 1, units), back = SN_SHAPE(SN_DIM_KEEP(0), units);
  switch (below(d, 5)) {
  case 0:
    sn_module_begin(g, "view");
    a = sn_reshape(g, a, flat);
    sn_module_end(g);
    return sn_reshape(g, sn_exp(g, a), back);
  case 1: return sn_mul(g, a, sn_reduce_mean(g, shared, .all = true));
  case 2:
    sn_module_begin(g, "seen");
    shared = sn_reshape(g, shared, SN_SHAPE(8));
    sn_module_end(g);
    return sn_add(g, a, sn_reduce_sum(g, shared, .all = true));
  case 3: return sn_batch_norm(g, a);
  default: return a;
  }
}

/* Modules of a few layers, each reading one or two values made before, and a loss at the end. */
static sn_graph *random_model(draw *d, int modules) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value made[64];
  int n = 0;
  for (int i = 0; i < 1 + below(d, 3); i++) {
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    made[n++] = sn_input(g, name, SN_F32, 4 + below(d, 60));
  }
  sn_module_begin(g, "weights");
  sn_value shared = sn_variable(g, "shared", SN_F32, SN_SHAPE(2, 4));
  sn_module_end(g);
  for (int m = 0; m < modules; m++) {
    char name[16];
    snprintf(name, sizeof name, "m%d", m);
    sn_module_begin(g, name);
    int units = 4 + below(d, 200);
    sn_value a = sn_dense(g, made[below(d, n)], .units = units, .activation = SN_RELU);
    if (below(d, 2) == 0) a = sn_add(g, a, sn_dense(g, made[below(d, n)], .units = units));
    for (int k = below(d, 3); k > 0; k--)
      a = sn_tanh(g, a);
    a = odd_part(g, d, a, shared);
    made[n++] = a;
    sn_module_end(g);
  }
  sn_value z =
      sn_dense(g, sn_concat(g, SN_VALUES(made[n - 1], made[below(d, n)]), .axis = 1), .units = 3);
  sn_output(g, "y", z);
  sn_output(g, "odds", sn_exp(g, z)); /* training does not need it */
  sn_softmax_cross_entropy(g, z, sn_input(g, "y.label", SN_I64, 0), .name = "y");
  ck_sn_ok(sn_graph_status(g));
  return g;
}

static sn_graph *training_of(sn_graph *g, draw *d) {
  sn_optimizer_options o = {.struct_size = sizeof o,
                            .kind = (sn_optimizer_kind)below(d, SN_OPTIMIZER_COUNT),
                            .clip_norm = below(d, 2)};
  sn_graph *train = NULL;
  ck_sn_ok(sn_training_graph(g, &o, SN_TRAIN_WHOLE, &train));
  sn_graph_free(g);
  return train;
}

static sn_topology *random_machine(draw *d, int n) {
  sn_topology *t = NULL;
  char list[32];
  bool alike = below(d, 2) == 0; /* then equal costs abound, and only ties decide */
  if (alike) return by_hand(n, (const int64_t[]){100, 100, 100, 100}, LATENCY);
  snprintf(list, sizeof list, "null*%d", n);
  ck_sn_ok(sn_topology_parse(list, 1, &t));
  for (int i = 0; i < n; i++) {
    t->devices[i].flops_per_s = 1e9 * (1 + below(d, 100));
    t->devices[i].bytes_per_s = 1e9 * (1 + below(d, 10));
    t->devices[i].launch_ns = below(d, 5000);
    t->devices[i].memory_bytes = 0;
  }
  for (int i = 0; i < n * n; i++) {
    t->links[i].latency_ns = below(d, 20000);
    t->links[i].bytes_per_s = 1e8 * (1 + below(d, 100));
  }
  return t;
}

static void expect_sound(const sn_placement *pl, const sn_topology *t) {
  const sn_placement_figures *f = sn_placement_figures_of(pl);
  int64_t busy[8] = {0};
  bool used[8] = {false};
  int n_used = 0;
  for (size_t i = 0; i < sn_placement_module_count(pl); i++) {
    const sn_placement_module *m = sn_placement_module_at(pl, i);
    ck_assert_int_ge(m->device, 0);
    ck_assert_int_lt(m->device, t->n_devices);
    ck_assert_msg(m->cause != NULL && m->cause[0] != '\0', "'%s' has no cause", m->path);
    busy[m->device] += m->busy_ns;
    n_used += !used[m->device];
    used[m->device] = true;
  }
  for (int d = 0; d < t->n_devices; d++)
    ck_assert_int_eq(busy[d], sn_placement_busy_ns(pl, d));
  ck_assert_int_eq(f->devices_used, n_used);
  ck_assert_int_le(f->lower_bound_ns, f->predicted_step_ns);
  ck_assert(strlen(sn_placement_sentence(pl)) > 10);
}

static void expect_same(const sn_placement *a, const sn_placement *b) {
  ck_assert_int_eq(sn_placement_figures_of(a)->predicted_step_ns,
                   sn_placement_figures_of(b)->predicted_step_ns);
  ck_assert_uint_eq(sn_placement_module_count(a), sn_placement_module_count(b));
  for (size_t i = 0; i < sn_placement_module_count(a); i++) {
    const sn_placement_module *x = sn_placement_module_at(a, i), *y = sn_placement_module_at(b, i);
    ck_assert_str_eq(x->path, y->path);
    ck_assert_int_eq(x->device, y->device);
    ck_assert_str_eq(x->cause, y->cause);
  }
}

/* The copies of a placed graph, against the graph it was made of. */
static void expect_applied(const sn_graph *g, const sn_graph *placed, const sn_topology *t) {
  ck_sn_ok(sn__verify(placed, t));
  uint32_t *copies = calloc(g->n_values * (size_t)t->n_devices, sizeof *copies);
  uint32_t *reads = calloc(placed->n_values, sizeof *reads);
  for (size_t v = 1; v < g->n_values; v++) { /* a value keeps its index */
    ck_assert_str_eq(placed->values[v].name, g->values[v].name);
    ck_assert_str_eq(sn__producer(placed, (uint32_t)v)->name, sn__producer(g, (uint32_t)v)->name);
  }
  size_t originals = 0;
  for (size_t i = 1; i < placed->n_nodes; i++) {
    const sn__node *n = &placed->nodes[i];
    ck_assert_msg(n->cause != NULL && n->cause[0] != '\0', "'%s' has no cause", n->name);
    bool copy = strcmp(n->op->name, "copy") == 0;
    originals += !copy;
    for (uint32_t k = 0; k < n->n_in; k++) {
      if (n->in[k] == 0) continue;
      const sn__value *in = &placed->values[n->in[k]];
      ck_assert_uint_lt(in->node, i); /* the order computes */
      int from = placed->nodes[in->node].device;
      reads[n->in[k]]++;
      if (!copy) {
        ck_assert_int_eq(from, n->device);
        continue;
      }
      ck_assert_int_ne(from, n->device);
      ck_assert_uint_lt(n->in[k], g->n_values);
      ck_assert_uint_ge(n->out[0], g->n_values);
      uint32_t *slot = &copies[n->in[k] * (size_t)t->n_devices + (size_t)n->device];
      ck_assert_msg(*slot == 0, "'%s' is copied twice to %s", in->name, t->devices[n->device].name);
      *slot = n->out[0];
    }
  }
  ck_assert_uint_eq(originals, g->n_nodes - 1);
  for (size_t v = g->n_values; v < placed->n_values; v++)
    ck_assert_msg(reads[v] > 0, "nobody reads '%s'", placed->values[v].name);
  free(copies);
  free(reads);
}

/* Gradient, slots and update of every variable are where the variable is. */
static void expect_at_home(const sn_graph *placed) {
  for (size_t i = 0; i < placed->n_variables; i++) {
    const sn__variable *v = &placed->variables[i];
    int home = sn__producer(placed, v->value)->device;
    if (v->owner != 0)
      ck_assert_int_eq(home, sn__producer(placed, placed->variables[v->owner - 1].value)->device);
    if (v->gradient != 0) ck_assert_int_eq(sn__producer(placed, v->gradient)->device, home);
    if (v->commit != 0) ck_assert_int_eq(placed->nodes[v->commit].device, home);
  }
}

/* The step that the search believed in is, to the nanosecond, the step that the plan runs. */
static void expect_as_planned(const sn_placement *pl, const sn_graph *placed, const sn_topology *t,
                              bool training) {
  const sn_placement_figures *f = sn_placement_figures_of(pl);
  sn_plan_options o = {.struct_size = sizeof o, .training = training, .no_outputs = training};
  sn_plan *plan = NULL;
  ck_sn_ok(sn_plan_create(placed, t, &o, &plan));
  ck_assert_int_eq(sn_plan_step_ns(plan), f->predicted_step_ns);
  for (int d = 0; d < t->n_devices; d++)
    ck_assert_int_eq(sn_plan_device_at(plan, (size_t)d).busy_ns, sn_placement_busy_ns(pl, d));
  uint64_t bytes = 0;
  for (size_t c = 0; c < sn_plan_copy_count(plan); c++)
    bytes += sn_plan_copy_at(plan, c).bytes;
  ck_assert_uint_eq(bytes, f->copy_bytes);
  sn_plan_free(plan);
}

enum { GRAPHS = 200, PARTS = 4 };

START_TEST(random_graphs) {
  int ordered = 0;
  for (int i = _i; i < GRAPHS; i += PARTS) {
    draw d = {(uint64_t)i, 0};
    sn_graph *g = random_model(&d, 1 + below(&d, 9));
    bool training = below(&d, 2) == 0;
    if (training) g = training_of(g, &d);
    sn_topology *t = random_machine(&d, 1 + below(&d, 4));
    sn_place_options o = {.struct_size = sizeof o, .evals = 300, .seed = (uint64_t)i};
    sn_placement *pl = NULL, *again = NULL, *spread = NULL;
    sn_graph *placed = NULL;
    ck_sn_ok(sn_place(g, t, &o, &pl));
    expect_sound(pl, t);
    const sn_placement_figures *f = sn_placement_figures_of(pl);
    ck_assert_msg(f->predicted_step_ns <= f->one_device_ns, "graph %d: %lld ns, %lld on one device",
                  i, (long long)f->predicted_step_ns, (long long)f->one_device_ns);
    ck_sn_ok(sn_place(g, t, &o, &again));
    expect_same(pl, again);
    ordered += f->ordered;
    ck_sn_ok(sn_placement_apply(pl, g, &placed));
    ck_assert_int_eq(placed->order_rule == SN_ORDER_PRIORITY, f->ordered);
    expect_applied(g, placed, t);
    expect_at_home(placed);
    expect_as_planned(pl, placed, t, training);
    sn_graph_free(placed);

    o.objective = SN_OBJECTIVE_SPREAD;
    ck_sn_ok(sn_place(g, t, &o, &spread));
    expect_sound(spread, t);
    size_t modules = sn_placement_module_count(spread);
    int most = modules < (size_t)t->n_devices ? (int)modules : t->n_devices;
    ck_assert_msg(sn_placement_figures_of(spread)->devices_used == most, "graph %d: %d of %d", i,
                  sn_placement_figures_of(spread)->devices_used, most);
    ck_sn_ok(sn_placement_apply(spread, g, &placed));
    expect_applied(g, placed, t);
    expect_at_home(placed);
    expect_as_planned(spread, placed, t, training);
    sn_graph_free(placed);
    sn_placement_free(spread);
    sn_placement_free(again);
    sn_placement_free(pl);
    sn_topology_free(t);
    sn_graph_free(g);
  }
  ck_assert_int_gt(ordered, 0); /* priorities are held to the nanosecond, too */
}
END_TEST

/* A placement made for the training graph fits the forward graph of the same model. */
START_TEST(other_variants) {
  draw d = {5, 0};
  sn_graph *g = random_model(&d, 6), *copy = NULL, *placed = NULL;
  ck_sn_ok(sn__graph_clone(g, &copy));
  sn_graph *train = training_of(copy, &d);
  sn_topology *t = random_machine(&d, 3);
  sn_place_options o = {.struct_size = sizeof o, .objective = SN_OBJECTIVE_SPREAD};
  sn_placement *pl = NULL;
  ck_sn_ok(sn_place(train, t, &o, &pl));
  ck_sn_ok(sn_placement_apply(pl, g, &placed));
  expect_applied(g, placed, t);
  for (size_t i = 1; i < placed->n_nodes; i++) {
    const sn__node *n = &placed->nodes[i];
    if (n->op == &sn__op_input || strcmp(n->op->name, "copy") == 0) continue;
    for (size_t m = 0; m < sn_placement_module_count(pl); m++)
      if (strcmp(sn_placement_module_at(pl, m)->path, placed->modules[n->module].path) == 0)
        ck_assert_int_eq(n->device, sn_placement_module_at(pl, m)->device);
  }
  sn_graph_free(placed);
  sn_placement_free(pl);
  sn_topology_free(t);
  sn_graph_free(train);
  sn_graph_free(g);
}
END_TEST

/* ---- pins ---------------------------------------------------------------------------------- */

static sn_graph *nested(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 4);
  static const char *const tops[] = {"a", "ab", "b"};
  for (int i = 0; i < 3; i++) {
    sn_module_begin(g, tops[i]);
    x = sn_tanh(g, x);
    sn_module_begin(g, "inner");
    x = sn_exp(g, x);
    sn_module_begin(g, "core");
    x = sn_tanh(g, x);
    sn_module_end(g);
    sn_module_end(g);
    sn_module_end(g);
  }
  sn_output(g, "y", x);
  ck_sn_ok(sn_graph_status(g));
  return g;
}

static sn_placement *pinned(const sn_graph *g, const sn_topology *t, const sn_pin *pins, size_t n) {
  sn_place_options o = {.struct_size = sizeof o, .pins = pins, .n_pins = n};
  sn_placement *pl = NULL;
  ck_sn_ok(sn_place(g, t, &o, &pl));
  return pl;
}

static const sn_placement_module *module_named(const sn_placement *pl, const char *path) {
  for (size_t i = 0; i < sn_placement_module_count(pl); i++)
    if (strcmp(sn_placement_module_at(pl, i)->path, path) == 0)
      return sn_placement_module_at(pl, i);
  ck_abort_msg("no module '%s'", path);
  return NULL;
}

static const struct {
  sn_pin pins[3];
  size_t n;
  const char *path;
  int device;
  const char *cause;
} pin_rows[] = {
    {{{"a", "null:1"}}, 1, "a", 1, "pinned by 'a'"},
    {{{"a", "null:1"}}, 1, "a/inner", 1, "pinned by 'a'"},
    {{{"a", "null:1"}}, 1, "a/inner/core", 1, "pinned by 'a'"},
    {{{"a", "null:1"}}, 1, "ab", 0, NULL}, /* a prefix of the path, not of the name */
    {{{"a*", "null:1"}}, 1, "ab/inner", 1, "pinned by 'a*'"},
    {{{"a*", "null:1"}}, 1, "b", 0, NULL},
    {{{"?", "null:2"}}, 1, "b/inner/core", 2, "pinned by '?'"},
    {{{"?", "null:2"}}, 1, "ab/inner", 0, NULL},
    {{{"*/inner", "null:2"}}, 1, "b", 0, NULL},
    {{{"*/inner", "null:2"}}, 1, "b/inner/core", 2, "pinned by '*/inner'"},
    /* The longest wins, in whatever order they come. */
    {{{"a", "null:1"}, {"*/inner", "null:2"}}, 2, "a/inner", 2, "pinned by '*/inner'"},
    {{{"*/inner", "null:2"}, {"a", "null:1"}}, 2, "a/inner", 2, "pinned by '*/inner'"},
    {{{"*/inner", "null:2"}, {"a", "null:1"}}, 2, "a", 1, "pinned by 'a'"},
    {{{"a/inner/core", "null:0"}, {"*/inner", "null:2"}, {"a", "null:1"}},
     3,
     "a/inner/core",
     0,
     "pinned by 'a/inner/core'"},
};

START_TEST(pins) {
  sn_graph *g = nested();
  sn_topology *t = by_hand(3, (const int64_t[]){1, 10, 10}, LATENCY);
  sn_placement *pl = pinned(g, t, pin_rows[_i].pins, pin_rows[_i].n);
  const sn_placement_module *m = module_named(pl, pin_rows[_i].path);
  if (pin_rows[_i].cause != NULL) {
    ck_assert_int_eq(m->device, pin_rows[_i].device);
    ck_assert_str_eq(m->cause, pin_rows[_i].cause);
  } else {
    ck_assert_ptr_null(strstr(m->cause, "pinned")); /* wherever the solver puts it */
  }
  sn_placement_free(pl);
  sn_topology_free(t);
  sn_graph_free(g);
}
END_TEST

/* A reason that the search cannot see: all goes to the slow device, but what is pinned. */
START_TEST(only_one_device) {
  sn_graph *g = nested();
  sn_topology *t = by_hand(2, (const int64_t[]){1, 10}, LATENCY);
  sn_pin pin = {"a/inner/core", "null:0"};
  sn_place_options o = {.struct_size = sizeof o,
                        .pins = &pin,
                        .n_pins = 1,
                        .only_device = "null:1",
                        .only_cause = "measured"};
  sn_placement *pl = NULL;
  ck_sn_ok(sn_place(g, t, &o, &pl));
  for (size_t i = 0; i < sn_placement_module_count(pl); i++) {
    const sn_placement_module *m = sn_placement_module_at(pl, i);
    bool pinned = strcmp(m->path, "a/inner/core") == 0;
    ck_assert_int_eq(m->device, pinned ? 0 : 1);
    ck_assert_str_eq(m->cause, pinned ? "pinned by 'a/inner/core'" : "measured");
  }
  ck_assert(!sn_placement_figures_of(pl)->certified);
  sn_placement_free(pl);
  o.only_device = "null:2";
  ck_sn_fails(sn_place(g, t, &o, &pl), SN_CODE_CONFIG, "'null:2' is not in the topology");
  sn_topology_free(t);
  sn_graph_free(g);
}
END_TEST

START_TEST(pins_that_mean_nothing) {
  sn_graph *g = nested();
  sn_topology *t = by_hand(2, (const int64_t[]){1, 10}, LATENCY);
  sn_pin pin = {"inner", "null:1"}; /* paths begin at the top */
  sn_place_options o = {.struct_size = sizeof o, .pins = &pin, .n_pins = 1};
  sn_placement *pl = NULL;
  ck_sn_fails(sn_place(g, t, &o, &pl), SN_CODE_CONFIG, "no module 'inner'");
  pin = (sn_pin){"a/iner", "null:1"};
  ck_sn_fails(sn_place(g, t, &o, &pl), SN_CODE_CONFIG, "did you mean 'a/inner'?");
  pin = (sn_pin){"z*", "null:1"};
  ck_sn_fails(sn_place(g, t, &o, &pl), SN_CODE_CONFIG, "no module 'z*'");
  pin = (sn_pin){"a", "cuda:0"};
  ck_sn_fails(sn_place(g, t, &o, &pl), SN_CODE_CONFIG,
              "'a' is pinned to 'cuda:0', which is not in --devices (null:0, null:1)");
  ck_assert_ptr_null(pl);
  sn_topology_free(t);
  sn_graph_free(g);
}
END_TEST

/* A chain has nothing to do at the same time: spreading a small one only adds copies. */
START_TEST(small_mlp_stays) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 30);
  for (int i = 0; i < 2; i++) {
    sn_module_begin(g, i == 0 ? "hidden" : "out");
    x = sn_dense(g, x, .units = i == 0 ? 64 : 2, .activation = i == 0 ? SN_RELU : SN_LINEAR);
    sn_module_end(g);
  }
  sn_softmax_cross_entropy(g, x, sn_input(g, "label", SN_I64, 0), .name = "y");
  draw d = {1, 0};
  g = training_of(g, &d);
  sn_topology *t = NULL;
  ck_sn_ok(sn_topology_parse("cpu*2", 2, &t));
  sn_place_options o = {.struct_size = sizeof o};
  sn_placement *pl = NULL;
  ck_sn_ok(sn_place(g, t, &o, &pl));
  const sn_placement_figures *f = sn_placement_figures_of(pl);
  ck_assert_int_eq(f->devices_used, 1);
  ck_assert_int_eq(f->predicted_step_ns, f->one_device_ns);
  ck_assert_ptr_nonnull(strstr(sn_placement_sentence(pl), "more in copies than it gains"));
  ck_assert_ptr_nonnull(
      strstr(sn_placement_module_at(pl, 0)->cause, "copies would cost more than they gain"));
  printf("64-unit MLP: %lld ns on one device, certified %d, %lld evaluations\n",
         (long long)f->predicted_step_ns, f->certified, (long long)f->evals);
  sn_placement_free(pl);
  sn_topology_free(t);
  sn_graph_free(g);
}
END_TEST

/* ---- memory -------------------------------------------------------------------------------- */

/* Two modules with a [256, 256] weight of 256 KiB each; device 1 is slow and far away. */
static sn_graph *two_heavy(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 256);
  for (int i = 0; i < 2; i++) {
    sn_module_begin(g, i == 0 ? "first" : "second");
    x = sn_matmul(g, x, sn_variable(g, "weight", SN_F32, SN_SHAPE(256, 256), .frozen = true));
    sn_module_end(g);
  }
  sn_output(g, "y", x);
  ck_sn_ok(sn_graph_status(g));
  return g;
}

START_TEST(memory_is_kept_to) {
  sn_graph *g = two_heavy();
  sn_topology *t = by_hand(2, (const int64_t[]){100, 100000}, 1000000);
  sn_place_options o = {.struct_size = sizeof o, .extents = (const int64_t[]){8}, .n_extents = 1};
  sn_placement *pl = NULL;
  ck_sn_ok(sn_place(g, t, &o, &pl));
  ck_assert_int_eq(sn_placement_figures_of(pl)->devices_used, 1);
  ck_assert_uint_ge(sn_placement_peak_bytes(pl, 0), 2 * 256 * 1024);
  ck_assert(sn_placement_figures_of(pl)->memory_fits);
  sn_placement_free(pl);

  t->devices[0].memory_bytes = t->devices[1].memory_bytes = 400 * 1024;
  ck_sn_ok(sn_place(g, t, &o, &pl));
  ck_assert_int_eq(sn_placement_figures_of(pl)->devices_used, 2);
  for (int d = 0; d < 2; d++) {
    ck_assert_uint_le(sn_placement_peak_bytes(pl, d), 400 * 1024);
    ck_assert_uint_ge(sn_placement_peak_bytes(pl, d), 256 * 1024);
  }
  ck_assert(sn_placement_figures_of(pl)->memory_fits);
  sn_placement_free(pl);

  sn_placement *none = NULL;
  t->devices[0].memory_bytes = t->devices[1].memory_bytes = 200 * 1024;
  ck_sn_fails(sn_place(g, t, &o, &none), SN_CODE_OUT_OF_MEMORY,
              "variables and slots of module 'first' alone take 256.00 KiB and the largest device "
              "has 200.00 KiB; give it a device of 256.00 KiB at least");
  ck_assert_ptr_null(none);
  sn_topology_free(t);
  sn_graph_free(g);
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("placement");
  TCase *c = tcase_create("simulator");
  tcase_add_test(c, simulated_by_hand);
  tcase_add_test(c, copies_queue_up);
  tcase_add_test(c, longest_path_first);
  tcase_add_test(c, written_after_readers);
  suite_add_tcase(suite, c);
  c = tcase_create("random");
  tcase_set_timeout(c, 120); /* sanitizers and a loaded machine */
  tcase_add_loop_test(c, random_graphs, 0, PARTS);
  tcase_add_test(c, other_variants);
  suite_add_tcase(suite, c);
  c = tcase_create("pins and memory");
  tcase_add_loop_test(c, pins, 0, sizeof pin_rows / sizeof *pin_rows);
  tcase_add_test(c, only_one_device);
  tcase_add_test(c, pins_that_mean_nothing);
  tcase_add_test(c, small_mlp_stays);
  tcase_add_test(c, memory_is_kept_to);
  suite_add_tcase(suite, c);
  return suite;
}

SN_TEST_MAIN(make_suite)
