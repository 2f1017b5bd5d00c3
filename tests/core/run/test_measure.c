/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded steps: what they say agrees with the plan's order, and leads to its costs. */
#include "core/run/measure.h"

#include "tests/core/run/run_ops.h"

enum { ROWS = 9, STEPS = 6 };

typedef struct world {
  random_graph *r;
  sn_topology *topology;
  sn_machine *machine;
  sn_plan *plan;
  sn_store *store;
  sn_session *session;
  float *inputs[4];
} world;

static void world_open(world *w, uint64_t seed, sn_profile *profile) {
  const sn_extent batch = {"batch", ROWS};
  memset(w, 0, sizeof *w);
  w->r = random_graph_make(seed, 3, 40);
  w->topology = make_topology("cpu*3");
  sn_topology_set_profile(w->topology, profile);
  ck_sn_ok(sn_machine_create(w->topology, NULL, &w->machine));
  sn_plan_options options = {.struct_size = sizeof options,
                             .fetches = w->r->fetches,
                             .n_fetches = (size_t)w->r->n_fetches,
                             .training = true,
                             .extents = &batch,
                             .n_extents = 1};
  ck_sn_ok(sn_plan_create(w->r->g, w->topology, &options, &w->plan));
  ck_sn_ok(sn_store_create(w->r->g, 7, &w->store));
  ck_sn_ok(sn_session_create(w->plan, w->store, w->machine, NULL, &w->session));
  for (size_t i = 0; i < w->r->g->n_inputs; i++)
    w->inputs[i] = calloc(ROWS * 64, sizeof(float));
}

static void world_close(world *w) {
  sn_session_free(w->session);
  sn_store_free(w->store);
  sn_plan_free(w->plan);
  sn_machine_free(w->machine);
  sn_topology_free(w->topology);
  for (size_t i = 0; i < 4; i++)
    free(w->inputs[i]);
  random_graph_free(w->r);
}

static void step(world *w) {
  sn_feed feeds[4];
  for (size_t i = 0; i < w->r->g->n_inputs; i++)
    feeds[i] = (sn_feed){.value = sn_graph_input(w->r->g, i), .data = w->inputs[i], .rows = ROWS};
  sn_step_args args = {.struct_size = sizeof args, .feeds = feeds, .n_feeds = w->r->g->n_inputs};
  sn_timepoint done;
  ck_sn_ok(sn_session_step(w->session, &args, &done));
  ck_sn_ok(sn_session_wait(w->session, done));
}

START_TEST(a_record_keeps_the_plans_order) {
  world w;
  world_open(&w, (uint64_t)_i + 1, NULL);
  step(&w);
  ck_assert_ptr_null(sn_session_recorded(w.session));
  ck_sn_ok(sn_session_record(w.session, true));
  ck_assert_ptr_null(sn_session_recorded(w.session));
  step(&w);
  const sn_step_record *r = sn_session_recorded(w.session);
  ck_assert_ptr_nonnull(r);
  ck_assert_uint_eq(r->n_nodes, sn_plan_node_count(w.plan));
  ck_assert_int_eq(r->extents[0], ROWS);
  ck_assert(r->began_ns > 0 && r->began_ns <= r->submitted_ns && r->submitted_ns <= r->joined_ns &&
            r->joined_ns <= r->ended_ns);
  for (size_t i = 0; i < r->n_nodes; i++) {
    sn_plan_node n = sn_plan_node_at(w.plan, i);
    ck_assert(r->nodes[i].start_ns >= r->began_ns && r->nodes[i].finish_ns <= r->joined_ns);
    ck_assert(r->nodes[i].start_ns <= r->nodes[i].finish_ns);
    for (size_t k = 0; k < n.n_waits; k++)
      ck_assert_int_le(r->nodes[sn_plan_wait(w.plan, i, k)].finish_ns, r->nodes[i].start_ns);
    for (size_t j = 0; j < i; j++) {
      sn_plan_node other = sn_plan_node_at(w.plan, j);
      if (other.device == n.device && other.copy == n.copy)
        ck_assert_int_le(r->nodes[j].finish_ns, r->nodes[i].start_ns);
    }
  }
  ck_sn_ok(sn_session_record(w.session, false));
  step(&w);
  ck_assert_ptr_null(sn_session_recorded(w.session));
  world_close(&w);
}
END_TEST

static int64_t span(const sn_plan *plan) {
  int64_t end = 0;
  for (size_t i = 0; i < sn_plan_node_count(plan); i++)
    if (sn_plan_node_at(plan, i).finish_ns > end) end = sn_plan_node_at(plan, i).finish_ns;
  return end;
}

START_TEST(measured_steps_become_the_plans_costs) {
  world w;
  sn_profile *profile = NULL;
  sn_measurement *m = NULL;
  ck_sn_ok(sn_profile_create(&profile));
  ck_sn_ok(sn_measurement_create(&m));
  world_open(&w, (uint64_t)_i + 1, NULL);
  ck_assert_int_eq(sn_plan_host_ns(w.plan), 0);
  ck_sn_ok(sn_session_record(w.session, true));
  for (int i = 0; i < STEPS; i++) {
    step(&w);
    ck_sn_ok(sn_measurement_add(m, w.plan, sn_session_recorded(w.session)));
  }
  ck_sn_ok(sn_measurement_write(m, profile));
  sn_measurement_free(m);
  world_close(&w);

  size_t counts[SN_COST_SOURCE_COUNT];
  world_open(&w, (uint64_t)_i + 1, profile);
  ck_sn_ok(sn_plan_cost_sources(w.plan, counts));
  ck_assert_uint_eq(counts[SN_COST_MEASURED], sn_plan_node_count(w.plan));
  ck_assert_int_gt(sn_plan_host_ns(w.plan), 0);
  ck_assert_int_eq(sn_plan_step_ns(w.plan), span(w.plan) + sn_plan_host_ns(w.plan));
  world_close(&w);
  sn_profile_free(profile);
}
END_TEST

START_TEST(a_plan_predicts_its_own_step) {
  world w;
  int64_t step_ns = 0, smaller = 0, one_row[1] = {1};
  world_open(&w, (uint64_t)_i + 1, NULL);
  size_t n = sn_plan_node_count(w.plan);
  sn_node_time *times = calloc(n, sizeof *times);
  ck_sn_ok(sn_plan_predict(w.plan, NULL, times, &step_ns));
  ck_assert_int_eq(step_ns, sn_plan_step_ns(w.plan));
  for (size_t i = 0; i < n; i++) {
    ck_assert_int_eq(times[i].start_ns, sn_plan_node_at(w.plan, i).start_ns);
    ck_assert_int_eq(times[i].finish_ns, sn_plan_node_at(w.plan, i).finish_ns);
  }
  ck_sn_ok(sn_plan_predict(w.plan, one_row, NULL, &smaller));
  ck_assert_int_le(smaller, step_ns);
  free(times);
  world_close(&w);
}
END_TEST

/* The most bytes over time are what the arenas hold at one moment. */
START_TEST(memory_over_time_peaks_at_the_live_bytes) {
  world w;
  world_open(&w, (uint64_t)_i + 1, NULL);
  for (size_t d = 0; d < sn_plan_device_count(w.plan); d++) {
    size_t most = sn_plan_memory_over(w.plan, d, NULL);
    sn_plan_memory_point *points = calloc(most + 1, sizeof *points);
    size_t n = sn_plan_memory_over(w.plan, d, points);
    int64_t peak = 0;
    for (size_t i = 0; i < n; i++) {
      ck_assert(i == 0 || points[i].ns > points[i - 1].ns);
      ck_assert_int_ge(points[i].bytes, 0);
      if (points[i].bytes > peak) peak = points[i].bytes;
    }
    ck_assert(n == 0 || points[n - 1].bytes == 0);
    ck_assert_int_le(peak, (int64_t)sn_plan_device_at(w.plan, d).arena_bytes);
    ck_assert(peak > 0 || sn_plan_device_at(w.plan, d).arena_bytes == 0);
    free(points);
  }
  world_close(&w);
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("measure");
  TCase *tcase = tcase_create("measure");
  tcase_set_timeout(tcase, 60);
  tcase_add_loop_test(tcase, a_record_keeps_the_plans_order, 0, 6);
  tcase_add_loop_test(tcase, measured_steps_become_the_plans_costs, 0, 4);
  tcase_add_loop_test(tcase, a_plan_predicts_its_own_step, 0, 6);
  tcase_add_loop_test(tcase, memory_over_time_peaks_at_the_live_bytes, 0, 6);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(make_suite)
