/* SPDX-License-Identifier: Apache-2.0 */
/* Store, plan and session on CPU devices, judged by an interpreter that has no schedule and no
 * memory plan. */
#include "tests/core/run/run_ops.h"
#include "tests/fail_alloc.h"

/* ---- a small world ------------------------------------------------------------------------- */

typedef struct world {
  sn_topology *topology;
  sn_machine *machine;
  sn_plan *plan;
  sn_store *store;
  sn_session *session;
} world;

static sn_status world_open(world *w, const sn_graph *g, const char *devices, uint64_t test_seed,
                            const sn_plan_options *options) {
  memset(w, 0, sizeof *w);
  sn_machine_options machine = {.struct_size = sizeof machine, .test_seed = test_seed};
  SN_TRY(sn_topology_parse(devices, 1, &w->topology));
  SN_TRY(sn_machine_create(w->topology, &machine, &w->machine));
  SN_TRY(sn_plan_create(g, w->topology, options, &w->plan));
  SN_TRY(sn_store_create(g, 7, &w->store));
  return sn_session_create(w->plan, w->store, w->machine, NULL, &w->session);
}

static void world_close(world *w) {
  sn_session_free(w->session);
  sn_store_free(w->store);
  sn_plan_free(w->plan);
  sn_machine_free(w->machine);
  sn_topology_free(w->topology);
}

static sn_status run_step(sn_session *s, const sn_feed *feeds, size_t n_feeds,
                          const sn_fetch *fetches, size_t n_fetches) {
  sn_step_args args = {.struct_size = sizeof args,
                       .feeds = feeds,
                       .n_feeds = n_feeds,
                       .fetches = fetches,
                       .n_fetches = n_fetches};
  sn_timepoint done;
  SN_TRY(sn_session_step(s, &args, &done));
  return sn_session_wait(s, done);
}

/* ---- any placement, the same bits ---------------------------------------------------------- */

enum { STEPS = 3, ROWS = 9 };

typedef struct run_result {
  float *fetches[STEPS][8];
  size_t bytes[STEPS][8];
  float *variables[MOST_VARIABLES];
} run_result;

static int64_t rows_of_step(int step) {
  static const int64_t rows[STEPS] = {4, ROWS, 0};
  return rows[step];
}

static float *make_input(uint64_t seed, int64_t count) {
  float *x = malloc(((size_t)count + 1) * sizeof *x);
  for (int64_t i = 0; i < count; i++)
    x[i] = (float)sn__rng_below(seed, 5, (uint64_t)i, 2001) * 0.001f - 1.0f;
  return x;
}

static float *input_of_step(const sn_graph *g, size_t i, int step) {
  sn_shape shape = g->values[g->inputs[i].value].shape;
  return make_input((uint64_t)step * 100 + i, rows_of_step(step) * shape.dims[1]);
}

static void run_by_session(random_graph *r, const char *devices, uint64_t seed, run_result *out) {
  world w;
  sn_plan_options options = {.struct_size = sizeof options,
                             .fetches = r->fetches,
                             .n_fetches = (size_t)r->n_fetches,
                             .training = true};
  ck_sn_ok(world_open(&w, r->g, devices, seed, &options));
  for (int step = 0; step < STEPS; step++) {
    sn_feed feeds[4];
    for (size_t i = 0; i < r->g->n_inputs; i++)
      feeds[i] = (sn_feed){.value = sn_graph_input(r->g, i),
                           .data = input_of_step(r->g, i, step),
                           .rows = rows_of_step(step)};
    sn_fetch fetches[8];
    int64_t extents[1] = {rows_of_step(step)};
    for (int i = 0; i < r->n_fetches; i++) {
      ck_assert(sn__value_bytes(r->g, r->fetches[i].index, extents, &out->bytes[step][i]));
      out->fetches[step][i] = malloc(out->bytes[step][i] + 1);
      fetches[i] = (sn_fetch){r->fetches[i], out->fetches[step][i], out->bytes[step][i]};
    }
    ck_sn_ok(run_step(w.session, feeds, r->g->n_inputs, fetches, (size_t)r->n_fetches));
    for (size_t i = 0; i < r->g->n_inputs; i++)
      free((void *)(uintptr_t)feeds[i].data);
  }
  for (size_t i = 0; i < r->g->n_variables; i++) {
    const sn_stored *v = sn_store_find(w.store, r->g->variables[i].name);
    ck_assert_ptr_nonnull(v);
    out->variables[i] = malloc(v->bytes);
    ck_sn_ok(sn_store_read(w.store, v->name, out->variables[i], v->bytes));
  }
  world_close(&w);
}

static void run_by_interpreter(random_graph *r, run_result *out) {
  sn_graph *g = r->g;
  sn_store *store;
  ck_sn_ok(sn_store_create(g, 7, &store));
  for (size_t i = 0; i < g->n_variables; i++) {
    const sn_stored *v = sn_store_at(store, i);
    out->variables[i] = malloc(v->bytes);
    ck_sn_ok(sn_store_read(store, v->name, out->variables[i], v->bytes));
  }
  for (int step = 0; step < STEPS; step++) {
    void **data = calloc(g->n_values, sizeof *data);
    int64_t extents[1] = {rows_of_step(step)};
    for (size_t i = 0; i < g->n_inputs; i++)
      data[g->inputs[i].value] = input_of_step(g, i, step);
    for (size_t i = 0; i < g->n_variables; i++)
      data[g->variables[i].value] = out->variables[i];
    interpret(g, extents, data);
    for (int i = 0; i < r->n_fetches; i++) {
      ck_assert(sn__value_bytes(g, r->fetches[i].index, extents, &out->bytes[step][i]));
      out->fetches[step][i] = malloc(out->bytes[step][i] + 1);
      memcpy(out->fetches[step][i], data[r->fetches[i].index], out->bytes[step][i]);
    }
    for (size_t i = 1; i < g->n_nodes; i++) {
      if (g->nodes[i].op != &op_assign) continue;
      uint32_t variable = g->values[g->nodes[i].in[0]].extra;
      memcpy(out->variables[variable], data[g->nodes[i].out[0]],
             sn_store_at(store, variable)->bytes);
    }
    for (size_t v = 1; v < g->n_values; v++)
      if (g->values[v].kind != SN_VALUE_VARIABLE) free(data[v]);
    free(data);
  }
  sn_store_free(store);
}

static void compare_results(const random_graph *r, const run_result *a, const run_result *b) {
  for (int step = 0; step < STEPS; step++)
    for (int i = 0; i < r->n_fetches; i++) {
      ck_assert_uint_eq(a->bytes[step][i], b->bytes[step][i]);
      ck_assert_msg(memcmp(a->fetches[step][i], b->fetches[step][i], a->bytes[step][i]) == 0,
                    "step %d, fetch '%s' differs", step, sn_value_name(r->fetches[i]));
    }
  for (size_t i = 0; i < r->g->n_variables; i++) {
    size_t bytes = 0;
    ck_assert(sn__value_bytes(r->g, r->g->variables[i].value, NULL, &bytes));
    ck_assert_msg(memcmp(a->variables[i], b->variables[i], bytes) == 0, "variable '%s' differs",
                  r->g->variables[i].name);
  }
}

static void free_result(const random_graph *r, run_result *a) {
  for (int step = 0; step < STEPS; step++)
    for (int i = 0; i < r->n_fetches; i++)
      free(a->fetches[step][i]);
  for (size_t i = 0; i < r->g->n_variables; i++)
    free(a->variables[i]);
}

START_TEST(any_placement_same_bits) {
  static const char *const lists[] = {"cpu:0", "cpu*2", "cpu*3", "cpu*4"};
  for (uint64_t seed = 1; seed <= 24; seed++) {
    int devices = 1 + (int)(seed % 4);
    random_graph *r = random_graph_make(seed, devices, 20 + (int)(seed * 3));
    run_result want = {0}, plain = {0}, delayed = {0}, one = {0};
    run_by_interpreter(r, &want);
    run_by_session(r, lists[devices - 1], 0, &plain);
    compare_results(r, &want, &plain);
    if (seed % 3 == 0) {
      run_by_session(r, lists[devices - 1], seed, &delayed);
      compare_results(r, &want, &delayed);
      free_result(r, &delayed);
    }
    all_on_one(r->g);
    run_by_session(r, "cpu:0", 0, &one);
    compare_results(r, &want, &one);
    free_result(r, &want);
    free_result(r, &plain);
    free_result(r, &one);
    random_graph_free(r);
  }
}
END_TEST

/* ---- feeds --------------------------------------------------------------------------------- */

typedef struct ragged_world {
  sn_graph *g;
  sn_sequence visits;
  sn_value notes, age, scale, total, notes_total;
} ragged_world;

static ragged_world make_ragged(void) {
  ragged_world w = {0};
  ck_sn_ok(sn_graph_create(&w.g));
  w.visits = sn_sequence_input(w.g, "visits", SN_F32, 2);
  w.notes = sn_sequence_input_like(w.g, "notes", SN_F32, 0, w.visits);
  w.age = sn_input(w.g, "age", SN_F32, 3);
  w.scale = sn_scalar_input(w.g, "scale", SN_F32);
  w.total = sn__node_add(w.g, &op_total, NULL, (sn_value[]){w.visits.values, w.visits.offsets}, 2,
                         "visits_total", NULL);
  w.notes_total =
      sn__node_add(w.g, &op_total, NULL, (sn_value[]){w.notes, w.scale}, 2, "notes_total", NULL);
  sn_output(w.g, "total", w.total);
  sn_output(w.g, "notes_total", w.notes_total);
  sn_output(w.g, "age", w.age);
  ck_sn_ok(sn_graph_status(w.g));
  all_on_one(w.g);
  return w;
}

START_TEST(ragged_feeds) {
  ragged_world r = make_ragged();
  world w;
  ck_sn_ok(world_open(&w, r.g, "cpu:0", 0, NULL));
  float visits[] = {1, 2, 3, 4, 5, 6}, notes[] = {10, 20, 30}, age[] = {1, 2, 3, 4, 5, 6};
  float scale = 2, total = 0, notes_total = 0;
  int64_t offsets[] = {0, 1, 3}, other[] = {0, 2, 3}, starts[] = {1, 1, 3}, falls[] = {0, 3, 2},
          large[] = {0, 1, (int64_t)1 << 31};
  sn_feed feeds[] = {{r.visits.values, visits, offsets, 2},
                     {r.notes, notes, NULL, 2},
                     {r.age, age, NULL, 2},
                     {r.scale, &scale, NULL, 0}};
  sn_fetch fetches[] = {{r.total, &total, 4}, {r.notes_total, &notes_total, 4}};
  ck_sn_ok(run_step(w.session, feeds, 4, fetches, 2));
  ck_assert_float_eq(total, 21 + 4000);
  ck_assert_float_eq(notes_total, 120);
  /* The session stays usable after each mistake. */
  ck_sn_fails(run_step(w.session, feeds, 3, fetches, 2), SN_CODE_INVALID,
              "input 'scale' is not fed");
  feeds[2].rows = 3;
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_INVALID,
              "input 'age' is fed with 3 rows and 'notes' with 2");
  feeds[2].rows = 2;
  feeds[1].offsets = other;
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_INVALID,
              "inputs 'visits' and 'notes' must have the same offsets");
  feeds[1].offsets = NULL;
  feeds[0].offsets = starts;
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_DATA, "start at 1");
  feeds[0].offsets = falls;
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_DATA,
              "input 'visits': row 1 ends at 2, before its start at 3");
  feeds[0].offsets = large;
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_DATA, "smaller batch");
  feeds[0].offsets = NULL;
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_INVALID,
              "input 'visits' is fed without offsets");
  feeds[0].offsets = offsets;
  feeds[2].data = NULL;
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_INVALID, "fed with NULL");
  feeds[2].data = age;
  feeds[3] = feeds[2];
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_INVALID,
              "input 'age' is fed twice");
  feeds[3] = (sn_feed){r.scale, &scale, NULL, 0};
  fetches[0].bytes = 3;
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_INVALID, "room for 3");
  fetches[0] = (sn_fetch){r.scale, &total, 4};
  ck_sn_fails(run_step(w.session, feeds, 4, fetches, 2), SN_CODE_INVALID,
              "'scale' was not among the fetches");
  fetches[0] = (sn_fetch){r.total, &total, 4};
  total = 0;
  ck_sn_ok(run_step(w.session, feeds, 4, fetches, 2));
  ck_assert_float_eq(total, 21 + 4000);
  world_close(&w);
  sn_graph_free(r.g);
}
END_TEST

START_TEST(empty_batches) {
  ragged_world r = make_ragged();
  world w;
  ck_sn_ok(world_open(&w, r.g, "cpu:0", 0, NULL));
  float scale = 2, total = 9, notes_total = 9, age[6];
  int64_t none[] = {0}, empties[] = {0, 0, 0};
  sn_fetch fetches[] = {
      {r.total, &total, 4}, {r.notes_total, &notes_total, 4}, {r.age, age, sizeof age}};
  sn_feed feeds[] = {{r.visits.values, NULL, none, 0},
                     {r.notes, NULL, NULL, 0},
                     {r.age, NULL, NULL, 0},
                     {r.scale, &scale, NULL, 0}};
  ck_sn_ok(run_step(w.session, feeds, 4, fetches, 3));
  ck_assert_float_eq(total, 0);
  ck_assert_float_eq(notes_total, 0);
  float ages[] = {1, 2, 3, 4, 5, 6};
  feeds[0] = (sn_feed){r.visits.values, NULL, empties, 2};
  feeds[1].rows = feeds[2].rows = 2;
  feeds[2].data = ages;
  ck_sn_ok(run_step(w.session, feeds, 4, fetches, 3));
  ck_assert_mem_eq(age, ages, sizeof age);
  world_close(&w);
  sn_graph_free(r.g);
}
END_TEST

/* ---- room ---------------------------------------------------------------------------------- */

START_TEST(room_grows_and_stops) {
  enum { BATCHES = SN_SANITIZED ? 200 : 600, MOST_ROWS = SN_SANITIZED ? 250 : 2000 };
  random_graph *r = random_graph_make(7, 2, 30);
  world w;
  sn_plan_options options = {.struct_size = sizeof options, .training = true};
  options.fetches = r->fetches;
  options.n_fetches = (size_t)r->n_fetches;
  ck_sn_ok(world_open(&w, r->g, "cpu*2", 0, &options));
  ck_assert_uint_eq(sn_session_replans(w.session), 0);
  float *data = make_input(3, MOST_ROWS * 64);
  size_t replans = 0, bytes = 0;
  for (int step = 0; step < BATCHES; step++) {
    sn_feed feeds[4];
    int64_t rows = (int64_t)sn__rng_below(1, 1, (uint64_t)step, MOST_ROWS);
    for (size_t i = 0; i < r->g->n_inputs; i++)
      feeds[i] = (sn_feed){sn_graph_input(r->g, i), data, NULL, rows};
    ck_sn_ok(run_step(w.session, feeds, r->g->n_inputs, NULL, 0));
    if (step == BATCHES / 2) {
      replans = sn_session_replans(w.session);
      bytes = sn_session_memory_on(w.session, 0).arena_bytes;
    }
  }
  ck_assert_uint_le(replans, 12);
  ck_assert_uint_le(sn_session_replans(w.session), replans + 1);
  ck_assert_uint_le(sn_session_memory_on(w.session, 0).arena_bytes, bytes + bytes / 4 + 4096);
  free(data);
  world_close(&w);
  random_graph_free(r);
}
END_TEST

START_TEST(reserve_is_exact) {
  random_graph *r = random_graph_make(6, 1, 30);
  world a, b;
  sn_extent extents[] = {{"batch", 123}};
  sn_plan_options options = {.struct_size = sizeof options, .training = true};
  options.fetches = r->fetches;
  options.n_fetches = (size_t)r->n_fetches;
  ck_sn_ok(world_open(&a, r->g, "cpu:0", 0, &options));
  ck_sn_ok(sn_session_reserve(a.session, extents, 1));
  ck_assert_uint_eq(sn_session_replans(a.session), 1);
  options.extents = extents;
  options.n_extents = 1;
  ck_sn_ok(world_open(&b, r->g, "cpu:0", 0, &options));
  size_t planned = sn_plan_device_at(b.plan, 0).arena_bytes;
  ck_assert_uint_gt(planned, 0);
  ck_assert_uint_eq(sn_session_memory_on(a.session, 0).arena_bytes, planned);
  ck_assert_uint_eq(sn_session_memory_on(b.session, 0).arena_bytes, planned);
  float *data = make_input(3, 123 * 64);
  sn_feed feeds[4];
  for (size_t i = 0; i < r->g->n_inputs; i++)
    feeds[i] = (sn_feed){sn_graph_input(r->g, i), data, NULL, 123};
  ck_sn_ok(run_step(a.session, feeds, r->g->n_inputs, NULL, 0));
  ck_assert_uint_eq(sn_session_replans(a.session), 1);
  ck_sn_fails(sn_session_reserve(a.session, &(sn_extent){"rows", 3}, 1), SN_CODE_INVALID,
              "no symbol 'rows'");
  free(data);
  world_close(&a);
  world_close(&b);
  random_graph_free(r);
}
END_TEST

/* ---- losses, steps, stores ----------------------------------------------------------------- */

typedef struct loss_world {
  sn_graph *g;
  sn_value x, weights, sum, gradient, variable, step, seen;
} loss_world;

/* Loss: the sum of x with weights; "gradient": x's sum times the seed; x may break it by a log. */
static loss_world make_loss(void) {
  loss_world w = {0};
  ck_sn_ok(sn_graph_create(&w.g));
  sn_graph *g = w.g;
  w.x = sn_input(g, "x", SN_F32, 2);
  w.weights = sn_input(g, "weights", SN_F32, 0);
  w.variable = sn_variable(g, "w", SN_F32, SN_SHAPE(2));
  sn_module_begin(g, "body");
  sn_value log = sn__node_add(g, &op_log, NULL, &w.x, 1, NULL, NULL);
  sn_value frail = sn__node_add(g, &op_fragile, NULL, &log, 1, NULL, NULL);
  w.sum = sn__node_add(g, &op_total, NULL, &frail, 1, NULL, NULL);
  sn_module_end(g);
  sn__graph_add_loss(g, "digit", w.sum, w.weights, 0, 3.0);
  sn_value seed = sn__value_at(g, g->losses[0].seed);
  w.gradient = sn__node_add(g, &op_total, NULL, (sn_value[]){w.x, seed}, 2, NULL, NULL);
  sn_value finite = sn__node_add(g, &op_finite, NULL, &w.sum, 1, NULL, NULL);
  sn_value norm = sn__node_add(g, &op_total, NULL, &w.gradient, 1, NULL, NULL);
  g->scalars.finite = finite.index;
  g->scalars.norm = g->scalars.rate = norm.index;
  w.step = sn__role_input(g, "step", SN_I64, SN_SCALAR_SHAPE, SN_INPUT_STEP);
  w.seen = sn__node_add(g, &op_view, NULL, &w.step, 1, NULL, NULL);
  sn__node_add(g, &op_assign, NULL, (sn_value[]){w.variable, norm}, 2, NULL, NULL);
  ck_sn_ok(sn_graph_status(g));
  all_on_one(g);
  return w;
}

START_TEST(loss_weights_and_steps) {
  loss_world l = make_loss();
  world w;
  sn_plan_options options = {.struct_size = sizeof options, .training = true};
  options.fetches = (sn_value[]){l.gradient, l.seen};
  options.n_fetches = 2;
  ck_sn_ok(world_open(&w, l.g, "cpu:0", 0, &options));
  float x[] = {1, 2, 3, 4}, weights[] = {0.5f, 1.5f}, gradient = 0, variable[2];
  int64_t seen = -1;
  sn_feed feeds[] = {{l.x, x, NULL, 2}, {l.weights, weights, NULL, 2}};
  sn_fetch fetches[] = {{l.gradient, &gradient, 4}, {l.seen, &seen, 8}};
  ck_sn_ok(run_step(w.session, feeds, 2, fetches, 2));
  ck_assert_float_eq(gradient, 10 * 3.0f / 2);
  ck_assert_int_eq(seen, 0);
  ck_assert_int_eq(sn_store_step(w.store), 1);
  ck_assert(sn_session_loss_weight(w.session, 0) == 2.0);
  double of_all = 6, none = 0;
  sn_step_args args = {.struct_size = sizeof args, .feeds = feeds, .n_feeds = 2};
  args.fetches = fetches;
  args.n_fetches = 2;
  args.loss_weights = &of_all;
  args.no_commit = true;
  ck_sn_ok(sn_store_read(w.store, "w", variable, sizeof variable));
  float before = variable[0];
  sn_timepoint done;
  ck_sn_ok(sn_session_step(w.session, &args, &done));
  ck_sn_ok(sn_session_wait(w.session, done));
  ck_assert_float_eq(gradient, 5);
  ck_assert_int_eq(seen, 1);
  ck_assert_int_eq(sn_store_step(w.store), 1);
  ck_sn_ok(sn_store_read(w.store, "w", variable, sizeof variable));
  ck_assert_float_eq(variable[0], before);
  args.no_commit = false;
  args.loss_weights = &none;
  ck_sn_ok(sn_session_step(w.session, &args, &done));
  ck_sn_ok(sn_session_wait(w.session, done));
  ck_assert_float_eq(gradient, 0);
  ck_assert_int_eq(sn_store_step(w.store), 2);
  world_close(&w);
  sn_graph_free(l.g);
}
END_TEST

START_TEST(not_finite_is_replayed) {
  loss_world l = make_loss();
  world w;
  sn_plan_options options = {.struct_size = sizeof options, .training = true};
  options.fetches = &l.seen; /* makes the step number one of the plan's inputs */
  options.n_fetches = 1;
  ck_sn_ok(world_open(&w, l.g, "cpu:0", 3, &options));
  float x[] = {1, 2, 3, -4, 5, 6}, weights[] = {1, 1, 1};
  sn_feed feeds[] = {{l.x, x, NULL, 3}, {l.weights, weights, NULL, 3}};
  sn_step_args args = {.struct_size = sizeof args, .feeds = feeds, .n_feeds = 2, .row_base = 100};
  sn_timepoint done;
  ck_sn_ok(sn_session_step(w.session, &args, &done));
  sn_status status = sn_session_wait(w.session, done);
  ck_assert_int_eq(sn_status_code(status), SN_CODE_NUMERIC);
  const char *words[] = {"log 'body/log'", "cpu:0", "module 'body'", "nan in row 101"};
  for (int i = 0; i < 4; i++)
    ck_assert_msg(strstr(sn_status_message(status), words[i]) != NULL, "'%s' lacks '%s'",
                  sn_status_message(status), words[i]);
  sn_status_free(status);
  ck_assert_int_eq(sn_store_step(w.store), 0);
  x[3] = 4;
  ck_sn_ok(run_step(w.session, feeds, 2, NULL, 0)); /* the session goes on */
  ck_assert_int_eq(sn_store_step(w.store), 1);
  x[4] = NAN;
  ck_sn_fails(run_step(w.session, feeds, 2, NULL, 0), SN_CODE_NUMERIC, "input 'x'");
  /* Nobody waits: the next step says so. */
  ck_sn_ok(sn_session_step(w.session, &args, &done));
  sn_timepoint next;
  ck_sn_fails(sn_session_step(w.session, &args, &next), SN_CODE_NUMERIC, "the step before");
  x[4] = 1;
  ck_sn_ok(sn_session_step(w.session, &args, &next));
  ck_sn_ok(sn_session_wait(w.session, next));
  world_close(&w);
  sn_graph_free(l.g);
}
END_TEST

START_TEST(failures_travel) {
  random_graph *r = random_graph_make(11, 3, 40);
  sn_value frail = sn__node_add(r->g, &op_fragile, NULL, &r->values[0], 1, NULL, NULL);
  place_on(r->g, frail, home_of(r->g, r->values[0]));
  sn_value far = on_device(r, frail, (home_of(r->g, frail) + 1) % 3);
  sn_output(r->g, "far", far);
  ck_sn_ok(sn_graph_status(r->g));
  world w;
  sn_plan_options options = {.struct_size = sizeof options, .training = true};
  ck_sn_ok(world_open(&w, r->g, "cpu*3", 0, &options));
  float *data = make_input(3, 8 * 64);
  sn_feed feeds[4];
  for (size_t i = 0; i < r->g->n_inputs; i++)
    feeds[i] = (sn_feed){sn_graph_input(r->g, i), data, NULL, 8};
  for (int round = 0; round < 5; round++) {
    failing = 1;
    ck_sn_fails(run_step(w.session, feeds, r->g->n_inputs, NULL, 0), SN_CODE_DEVICE,
                "fragile 'fragile' on cpu:");
    failing = 0;
    ck_sn_ok(run_step(w.session, feeds, r->g->n_inputs, NULL, 0));
    for (int d = 0; d < 3; d++) {
      sn__device_inject(w.machine->devices[d], SN__INJECT_SUBMIT, 1);
      sn_status status = run_step(w.session, feeds, r->g->n_inputs, NULL, 0);
      ck_assert_int_eq(sn_status_code(status), SN_CODE_DEVICE);
      sn_status_free(status);
      sn__device_inject(w.machine->devices[d], SN__INJECT_SUBMIT, 0);
    }
    ck_sn_ok(run_step(w.session, feeds, r->g->n_inputs, NULL, 0));
  }
  free(data);
  world_close(&w);
  random_graph_free(r);
}
END_TEST

START_TEST(plans_share_a_store) {
  loss_world l = make_loss();
  world w;
  sn_plan_options options = {.struct_size = sizeof options, .training = true};
  ck_sn_ok(world_open(&w, l.g, "cpu:0", 0, &options));
  sn_output(l.g, "gradient", l.gradient);
  sn_plan *eval;
  ck_sn_ok(sn_plan_create(l.g, w.topology,
                          &(sn_plan_options){.struct_size = sizeof options, .no_losses = true},
                          &eval));
  sn_session *session;
  ck_sn_ok(sn_session_create(eval, w.store, w.machine, NULL, &session));
  float x[] = {1, 2}, gradient = 0;
  sn_feed feeds[] = {{l.x, x, NULL, 1}}; /* no weights: nothing reads them */
  ck_sn_ok(run_step(session, feeds, 1, &(sn_fetch){l.gradient, &gradient, 4}, 1));
  ck_assert_int_eq(sn_store_step(w.store), 0);
  sn_session_free(session);
  sn_plan_free(eval);
  /* A plan that wants the variable elsewhere is refused. */
  sn_topology *two = make_topology("cpu*2");
  sn_machine *machine;
  ck_sn_ok(sn_machine_create(two, NULL, &machine));
  for (size_t i = 1; i < l.g->n_nodes; i++)
    l.g->nodes[i].device = 1;
  ck_sn_ok(sn_plan_create(l.g, two, &options, &eval));
  ck_sn_fails(sn_session_create(eval, w.store, machine, NULL, &session), SN_CODE_INVALID,
              "variable 'w' lives on cpu:0");
  ck_sn_fails(sn_session_create(eval, w.store, w.machine, NULL, &session), SN_CODE_INVALID,
              "other devices");
  sn_plan_free(eval);
  sn_machine_free(machine);
  sn_topology_free(two);
  world_close(&w);
  sn_graph_free(l.g);
}
END_TEST

/* Sessions of unlike plans in one set of arenas, each growing it in turn. */
START_TEST(sessions_take_turns) {
  random_graph *r = random_graph_make(7, 2, 30);
  world w;
  sn_plan_options options = {.struct_size = sizeof options};
  options.fetches = r->fetches;
  options.n_fetches = (size_t)r->n_fetches;
  ck_sn_ok(world_open(&w, r->g, "cpu*2", 5, &options));
  sn_plan *small;
  options.n_fetches = 1;
  ck_sn_ok(sn_plan_create(r->g, w.topology, &options, &small));
  sn_session_options share = {.struct_size = sizeof share, .share = w.session};
  sn_session *sharing, *alone;
  ck_sn_ok(sn_session_create(small, w.store, w.machine, &share, &sharing));
  ck_sn_ok(sn_session_create(small, w.store, w.machine, NULL, &alone));
  float *data = make_input(3, 100 * 64), *got = malloc(1 << 20), *want = malloc(1 << 20);
  for (int64_t rows = 1; rows < 100; rows = rows * 2 + 1) {
    sn_feed feeds[4];
    for (size_t i = 0; i < r->g->n_inputs; i++)
      feeds[i] = (sn_feed){sn_graph_input(r->g, i), data, NULL, rows};
    sn_fetch fetch = {r->fetches[0], want, 1 << 20};
    sn_step_args args = {.struct_size = sizeof args, .feeds = feeds, .n_feeds = r->g->n_inputs};
    args.fetches = &fetch;
    args.n_fetches = 1;
    size_t bytes = 0;
    ck_assert(sn__value_bytes(r->g, r->fetches[0].index, &rows, &bytes));
    ck_sn_ok(run_step(alone, feeds, r->g->n_inputs, &fetch, 1));
    sn_session *order[] = {w.session, sharing, w.session, sharing};
    for (int k = 0; k < 4; k++) {
      sn_timepoint before, done;
      fetch.data = got;
      ck_sn_ok(sn_session_step(order[1 - k % 2], &args, &before)); /* nobody waits for it */
      /* More room while that step is in flight: it must end before its arenas move. */
      ck_sn_ok(sn_session_reserve(order[k], &(sn_extent){"batch", rows + 7 * (k + 1)}, 1));
      memset(got, 0, bytes);
      ck_sn_ok(sn_session_step(order[k], &args, &done));
      ck_sn_ok(sn_session_wait(order[k], done));
      ck_assert_mem_eq(got, want, bytes);
      ck_sn_ok(sn_session_wait(order[1 - k % 2], before));
    }
  }
  ck_assert_uint_eq(sn_session_memory_on(sharing, 0).arena_bytes,
                    sn_session_memory_on(w.session, 0).arena_bytes);
  sn_session_free(w.session);
  w.session = NULL;
  sn_session_free(sharing);
  sn_session_free(alone);
  sn_plan_free(small);
  free(data);
  free(got);
  free(want);
  world_close(&w);
  random_graph_free(r);
}
END_TEST

/* ---- out of memory ------------------------------------------------------------------------- */

static sn_status whole_life(void *arg) {
  const random_graph *r = arg;
  world w;
  sn_plan_options options = {.struct_size = sizeof options, .training = true};
  options.fetches = r->fetches;
  options.n_fetches = (size_t)r->n_fetches;
  sn_status status = world_open(&w, r->g, "cpu*2", 0, &options);
  static float data[16 * 64];
  float *out = malloc(1 << 16);
  for (int64_t rows = 3; status == SN_OK && rows < 16; rows += 6) {
    sn_feed feeds[4];
    for (size_t i = 0; i < r->g->n_inputs; i++)
      feeds[i] = (sn_feed){sn_graph_input(r->g, i), data, NULL, rows};
    sn_fetch fetch = {r->fetches[0], out, 1 << 16};
    status = run_step(w.session, feeds, r->g->n_inputs, &fetch, 1);
    if (status == SN_OK) continue;
    /* Usable all the same: the one failing call is over. */
    sn_status again = run_step(w.session, feeds, r->g->n_inputs, &fetch, 1);
    ck_assert_msg(again == SN_OK, "after a failed step: %s", sn_status_message(again));
  }
  free(out);
  world_close(&w);
  return status;
}

START_TEST(out_of_memory_anywhere) {
  random_graph *r = random_graph_make(21, 2, 12);
  ck_assert_int_gt(r->n_fetches, 0);
  ck_assert_int_gt(sn_fail_alloc_every_call(whole_life, r), 40);
  random_graph_free(r);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("session");
  TCase *t = tcase_create("session");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, any_placement_same_bits);
  tcase_add_test(t, ragged_feeds);
  tcase_add_test(t, empty_batches);
  tcase_add_test(t, room_grows_and_stops);
  tcase_add_test(t, reserve_is_exact);
  tcase_add_test(t, loss_weights_and_steps);
  tcase_add_test(t, not_finite_is_replayed);
  tcase_add_test(t, failures_travel);
  tcase_add_test(t, plans_share_a_store);
  tcase_add_test(t, sessions_take_turns);
  tcase_add_test(t, out_of_memory_anywhere);
  suite_add_tcase(s, t);
  return s;
}
SN_TEST_MAIN(suite)
