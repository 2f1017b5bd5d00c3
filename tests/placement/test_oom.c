/* SPDX-License-Identifier: Apache-2.0 */
/* Out of memory at every allocation of a training run: building, differentiation, the optimizer,
 * placement, the plan, a step, a save. Each time a status, nothing left behind, no crash. */
#include <stdio.h>
#include <unistd.h>

#include "core/autodiff.h"
#include "optim/optimize.h"
#include "placement/trainer.h"
#include "tests/fail_alloc.h"
#include "tests/placement/h3_batch.h"
#include "tools/sennit/save.h"

static const sn_h3_sizes tiny = {.name = "tiny",
                                 .batch = 4,
                                 .dense_in = 3,
                                 .dense_hidden = 4,
                                 .sequence_in = 3,
                                 .sequence_units = 4,
                                 .sequence_longest = 4,
                                 .set_in = 2,
                                 .set_hidden = 4,
                                 .set_largest = 3,
                                 .trunk = 5,
                                 .classes = 3};

/* A run so far: each phase makes one of these from those above it. */
typedef struct world {
  sn_graph *model, *gradients, *train, *placed;
  sn_topology *topology;
  sn_placement *placement;
  sn_plan *plan;
  sn_store *store;
  sn_machine *machine;
  sn_session *session;
  h3_batch batch;
  char path[64];
} world;

/* ---- the phases ---------------------------------------------------------------------------- */

static sn_status make_model(world *w) {
  sn_graph *g = NULL;
  SN_TRY(sn_graph_create(&g));
  sn_status status = sn_h3_build(g, &tiny);
  if (status != SN_OK)
    sn_graph_free(g);
  else
    w->model = g;
  return status;
}

static void drop_model(world *w) {
  sn_graph_free(w->model);
}

static sn_status make_gradients(world *w) {
  return sn__differentiate(w->model, &w->gradients);
}

static void drop_gradients(world *w) {
  sn_graph_free(w->gradients);
}

static const sn_optimizer_options adam = {
    .struct_size = sizeof adam, .kind = SN_ADAM, .clip_norm = 1, .ema_decay = 0.9};

static sn_status make_train(world *w) {
  return sn__optimize(w->gradients, &adam, SN_TRAIN_WHOLE, &w->train);
}

static void drop_train(world *w) {
  sn_graph_free(w->train);
}

static sn_status make_topology(world *w) {
  return sn_topology_parse("cpu*2", 2, &w->topology);
}

static void drop_topology(world *w) {
  sn_topology_free(w->topology);
}

static sn_status make_placement(world *w) {
  static const sn_pin pin = {"sequence", "cpu:1"};
  sn_place_options o = {.struct_size = sizeof o,
                        .objective = SN_OBJECTIVE_SPREAD,
                        .pins = &pin,
                        .n_pins = 1,
                        .evals = 40};
  return sn_place(w->train, w->topology, &o, &w->placement);
}

static void drop_placement(world *w) {
  sn_placement_free(w->placement);
}

static sn_status make_placed(world *w) {
  return sn_placement_apply(w->placement, w->train, &w->placed);
}

static void drop_placed(world *w) {
  sn_graph_free(w->placed);
}

static sn_status make_plan(world *w) {
  static const sn_extent extents[] = {{"batch", 4},
                                      {"sequence.elements", 16},
                                      {"sequence.longest", 4},
                                      {"set.elements", 12},
                                      {"set.longest", 3}};
  sn_plan_options o = {.struct_size = sizeof o,
                       .training = true,
                       .extents = extents,
                       .n_extents = sizeof extents / sizeof *extents};
  return sn_plan_create(w->placed, w->topology, &o, &w->plan);
}

static void drop_plan(world *w) {
  sn_plan_free(w->plan);
}

static void drop_running(world *w) {
  sn_session_free(w->session);
  sn_store_free(w->store);
  sn_machine_free(w->machine);
  w->session = NULL;
  w->store = NULL;
  w->machine = NULL;
}

static sn_status step(world *w) {
  sn_step_args args = {.struct_size = sizeof args, .feeds = w->batch.feeds, .n_feeds = 4};
  sn_timepoint done;
  SN_TRY(sn_session_step(w->session, &args, &done));
  return sn_session_wait(w->session, done);
}

static sn_status open_all(world *w) {
  SN_TRY(sn_store_create(w->train, 3, &w->store));
  SN_TRY(sn_machine_create(w->topology, NULL, &w->machine));
  return sn_session_create(w->plan, w->store, w->machine, NULL, &w->session);
}

static sn_status make_running(world *w) {
  sn_status status = open_all(w);
  if (status == SN_OK) status = step(w);
  if (status != SN_OK) drop_running(w);
  return status;
}

static sn_status make_save(world *w) {
  const save_texts texts = {"{\"graph\": 1}", "inputs: {}", "{\"preparation\": 1}"};
  run_state state;
  SN_TRY(run_state_create(1, &state));
  sn_status status = save_write(w->path, w->store, &texts, &state, "{\"loss\": 1}");
  run_state_free(&state);
  return status;
}

static void drop_save(world *w) {
  ck_assert_int_eq(unlink(w->path), 0);
}

static sn_status make_load(world *w) {
  sn_checkpoint *c = NULL;
  SN_TRY(sn_checkpoint_open(w->path, &c));
  sn_status status = save_read_store(c, w->path, w->store);
  sn_checkpoint_free(c);
  return status;
}

static void drop_load(world *w) {
  (void)w;
}

typedef struct phase {
  const char *name;
  sn_status (*make)(world *w); /* leaves the world as it was when it fails */
  void (*drop)(world *w);
  long least; /* allocations, at least: what fails must be looked at */
  long apart; /* every so manieth fails: a search makes many, and is made anew each time */
} phase;

static const phase phases[] = {
    {"building the graph", make_model, drop_model, 50, 1},
    {"differentiation", make_gradients, drop_gradients, 50, 1},
    {"the optimizer", make_train, drop_train, 50, 1},
    {"the topology", make_topology, drop_topology, 3, 1},
    {"placement", make_placement, drop_placement, 30, 11},
    {"copies", make_placed, drop_placed, 30, 1},
    {"the plan", make_plan, drop_plan, 50, 1},
    {"a session and its first step", make_running, drop_running, 50, 1},
    {"a save", make_save, drop_save, 20, 1},
    {"a load", make_load, drop_load, 10, 1},
};
enum { PHASES = sizeof phases / sizeof *phases };

/* ---- the loops ----------------------------------------------------------------------------- */

/* Runs with the k-th allocation from now on failing; whether it came to that. */
static bool fails_at(sn_status (*make)(world *w), world *w, long k, sn_status *out_status) {
  long at = atomic_load(&sn_fail_alloc_state.calls) + k;
  atomic_store(&sn_fail_alloc_state.fail_at, at);
  *out_status = make(w);
  atomic_store(&sn_fail_alloc_state.fail_at, 0);
  return atomic_load(&sn_fail_alloc_state.calls) >= at;
}

static void expect_out_of_memory(sn_status status, bool reached, const char *name, long k) {
  ck_assert_msg(reached, "%s fails without a failing allocation: %s", name,
                sn_status_message(status));
  ck_assert_msg(sn_status_code(status) == SN_CODE_OUT_OF_MEMORY,
                "%s: allocation %ld fails, the status says: %s", name, k,
                sn_status_message(status));
  sn_status_free(status);
}

/* The allocations of one phase in turn; ends with the phase made. */
static void fail_each(const phase *p, world *w) {
  for (long k = 1;; k += p->apart) {
    long live = sn_fail_alloc_live();
    sn_status status = SN_OK;
    bool reached = fails_at(p->make, w, k, &status);
    if (status == SN_OK && !reached) {
      ck_assert_msg(k > p->least, "%s: only %ld allocations", p->name, k - 1);
      return;
    }
    if (status == SN_OK)
      p->drop(w); /* it could do without */
    else
      expect_out_of_memory(status, reached, p->name, k);
    ck_assert_msg(sn_fail_alloc_live() == live, "%s: allocation %ld fails: %ld blocks leak",
                  p->name, k, sn_fail_alloc_live() - live);
    ck_assert_msg(k < 100000, "%s: does it ever end?", p->name);
  }
}

static void begin(world *w) {
  *w = (world){0};
  snprintf(w->path, sizeof w->path, "/tmp/sennit-oom-%ld.h5", (long)getpid());
  sn_fail_alloc_install(0);
}

static void make_phase(world *w, int i) {
  ck_sn_ok(phases[i].make(w));
  if (i == 0) w->batch = h3_make(w->model, &tiny, 11, tiny.batch, 0);
}

static void end(world *w, int made) {
  h3_free(&w->batch);
  for (int i = made; i-- > 0;)
    phases[i].drop(w);
  ck_assert_int_eq(sn_fail_alloc_live(), 0);
  sn_fail_alloc_remove();
}

START_TEST(every_allocation) {
  world w;
  begin(&w);
  for (int i = 0; i < _i; i++)
    make_phase(&w, i);
  fail_each(&phases[_i], &w);
  end(&w, _i + 1);
}
END_TEST

/* What a step could not do for want of memory, the next one does: the same bits as if nothing had
 * happened. */
START_TEST(steps_go_on) {
  world w;
  begin(&w);
  for (int i = 0; phases[i].make != make_running; i++)
    make_phase(&w, i);
  char want[65], got[65];
  ck_sn_ok(make_running(&w));
  ck_sn_ok(sn_store_sha256(w.store, want));
  drop_running(&w);
  bool reached = true;
  long k = 1;
  for (; reached; k++) {
    ck_sn_ok(open_all(&w));
    sn_status status = SN_OK;
    reached = fails_at(step, &w, k, &status);
    if (status != SN_OK) {
      expect_out_of_memory(status, reached, "a step", k);
      ck_sn_ok(step(&w));
    }
    ck_assert_int_eq(sn_store_step(w.store), 1);
    ck_sn_ok(sn_store_sha256(w.store, got));
    ck_assert_msg(strcmp(want, got) == 0, "allocation %ld fails: other parameters", k);
    drop_running(&w);
  }
  ck_assert_int_gt(k, 2);
  int made = 0;
  while (phases[made].make != make_running)
    made++;
  end(&w, made);
}
END_TEST

/* A save that fails leaves the checkpoint before it. */
START_TEST(old_checkpoint_stays) {
  world w;
  begin(&w);
  int made = 0;
  for (; phases[made].make != make_load; made++)
    make_phase(&w, made);
  bool reached = true;
  for (long k = 1; reached; k++) {
    sn_status status = SN_OK;
    reached = fails_at(make_save, &w, k, &status);
    if (status != SN_OK) expect_out_of_memory(status, reached, "a save", k);
    ck_sn_ok(make_load(&w));
  }
  end(&w, made);
}
END_TEST

/* The trainer does all of it in a few calls. A whole run stands behind each allocation here, and
 * the phases above have tried them all, so it is every `stride`th. */
static sn_status trainer_run(world *w) {
  sn_trainer_options o = {.struct_size = sizeof o,
                          .devices = "cpu*2",
                          .threads = 2,
                          .optimizer = adam,
                          .micro_batches = 2,
                          .placement = {.objective = SN_OBJECTIVE_SPREAD, .evals = 10}};
  sn_trainer *t = NULL;
  SN_TRY(sn_trainer_create(w->model, &o, &t));
  double loss;
  sn_status status = sn_trainer_step(t, w->batch.feeds, 4, &loss);
  if (status == SN_OK) status = sn_trainer_evaluate(t, w->batch.feeds, 4, NULL, 0, &loss, NULL);
  sn_trainer_free(t);
  return status;
}

enum { TRAINER_RUNS = 150, TRAINER_PARTS = 3 };

START_TEST(trainer) {
  world w;
  begin(&w);
  make_phase(&w, 0);
  long before = atomic_load(&sn_fail_alloc_state.calls);
  ck_sn_ok(trainer_run(&w));
  long calls = atomic_load(&sn_fail_alloc_state.calls) - before, live = sn_fail_alloc_live();
  ck_assert_int_gt(calls, 500);
  long stride = calls / TRAINER_RUNS + 1;
  for (long k = 1 + _i * stride / TRAINER_PARTS; k <= calls; k += stride * TRAINER_PARTS) {
    sn_status status = SN_OK;
    bool reached = fails_at(trainer_run, &w, k, &status);
    if (status != SN_OK) expect_out_of_memory(status, reached, "the trainer", k);
    ck_assert_msg(sn_fail_alloc_live() == live, "allocation %ld fails: %ld blocks leak", k,
                  sn_fail_alloc_live() - live);
  }
  end(&w, 1);
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("out of memory");
  TCase *c = tcase_create("phases");
  tcase_set_timeout(c, 180); /* sanitizers and a loaded machine */
  tcase_add_loop_test(c, every_allocation, 0, PHASES);
  tcase_add_test(c, steps_go_on);
  tcase_add_test(c, old_checkpoint_stays);
  tcase_add_loop_test(c, trainer, 0, TRAINER_PARTS);
  suite_add_tcase(suite, c);
  return suite;
}

SN_TEST_MAIN(make_suite)
