/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-batches at once: whatever the schedule and the devices, the bits of one after the other. */
#include <math.h>

#include "core/autodiff.h"
#include "layers/layers.h"
#include "optim/optimize.h"
#include "placement/microbatch.h"
#include "tests/fail_alloc.h"
#include "tests/placement/h3_batch.h"
#include "tests/placement/settings.h"

static sn_trainer *new_trainer(const sn_graph *g, const setting *s) {
  const sn_optimizer_options adam = {
      .struct_size = sizeof adam, .kind = SN_ADAM, .learning_rate = 0.01, .clip_norm = 1};
  sn_trainer *t = NULL;
  ck_sn_ok(make_trainer(g, s, &adam, &t));
  return t;
}

typedef struct result {
  char hex[65];
  double losses[3];
} result;

static void same(const result *a, const result *b, const char *what, const setting *s) {
  for (int i = 0; i < 3; i++)
    ck_assert_msg(memcmp(&a->losses[i], &b->losses[i], sizeof a->losses[i]) == 0,
                  "%s, %s, pipeline %d: loss %d is %.17g and %.17g", what, s->devices,
                  (int)s->pipeline, i, a->losses[i], b->losses[i]);
  ck_assert_msg(strcmp(a->hex, b->hex) == 0, "%s, %s, pipeline %d, %lld parts: other parameters",
                what, s->devices, (int)s->pipeline, (long long)s->micro_batches);
}

/* ---- ragged branches ------------------------------------------------------------------------ */

static result train_h3(const setting *s) {
  result out;
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  ck_sn_ok(sn_h3_build(g, &h3_tiny));
  sn_trainer *t = new_trainer(g, s);
  static const int64_t rows[] = {7, 9, 5}; /* the second needs more room than was planned */
  for (int i = 0; i < 3; i++) {
    h3_batch b = h3_make(g, &h3_tiny, 100 + (uint64_t)i, rows[i], 0);
    ck_sn_ok(sn_trainer_step(t, b.feeds, 4, &out.losses[i]));
    ck_assert(isfinite(out.losses[i]));
    h3_free(&b);
  }
  ck_sn_ok(sn_store_sha256(sn_trainer_store(t), out.hex));
  if (s->pipeline != SN_PIPELINE_NONE) {
    ck_assert_uint_ge(sn_trainer_pipeline(t).stages, 1);
    ck_assert_ptr_nonnull(sn_trainer_pipeline_plan(t));
  }
  sn_trainer_free(t);
  sn_graph_free(g);
  return out;
}

START_TEST(ragged_branches) {
  static const sn_pin pins[] = {{"sequence", "cpu:1"}, {"trunk", "cpu:1"}, {"set", "cpu:0"}};
  for (int64_t parts = SN_SANITIZED ? 5 : 2; parts <= 5; parts += 3) {
    const result one = train_h3(&(setting){"cpu:0", SN_PIPELINE_NONE, parts, NULL, 0});
    for (int p = SN_PIPELINE_GPIPE; p <= SN_PIPELINE_ZERO_BUBBLE; p++) {
      const setting settings[] = {{"cpu:0", (sn_pipeline)p, parts, NULL, 0},
                                  {"cpu*2", (sn_pipeline)p, parts, pins, 3},
                                  {"cpu*2", (sn_pipeline)p, parts, NULL, 0},
                                  {"cpu*4", (sn_pipeline)p, parts, NULL, 0}};
      for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const result other = train_h3(&settings[i]);
        same(&one, &other, "H3", &settings[i]);
      }
    }
  }
}
END_TEST

/* ---- everything that could tell parts apart ------------------------------------------------- */

enum { FEATURES = 6, ROWS = 11 };

/* Batch norm, dropout, a variable read in two modules, a weighted loss and one over elements. */
static void build_odd(sn_graph *g, sn_value in[5]) {
  in[0] = sn_input(g, "x", SN_F32, FEATURES);
  in[1] = sn_input(g, "y", SN_I64, 0);
  in[2] = sn_input(g, "w", SN_F32, 0);
  sn_sequence s = sn_sequence_input(g, "s", SN_F32, 3);
  in[3] = s.values;
  sn_module_begin(g, "a");
  sn_value tied = sn_variable(g, "tied", SN_F32, SN_SHAPE(FEATURES, FEATURES),
                              .init = {.kind = SN_INIT_GLOROT_UNIFORM});
  sn_value h = sn_matmul(g, in[0], tied);
  h = sn_batch_norm(g, h);
  h = sn_dropout(g, sn_relu(g, h), 0.3);
  sn_module_end(g);
  sn_module_begin(g, "b");
  sn_sequence q = sn_gru(g, s, .units = 4, .bidirectional = true);
  q = sn_sequence_dropout(g, q, 0.2);
  sn_module_end(g);
  sn_module_begin(g, "c");
  sn_value z = sn_matmul(g, h, tied);
  z = sn_concat(g, SN_VALUES(z, sn_sequence_mean(g, q)), .axis = 1);
  z = sn_batch_norm(g, z);
  sn_module_end(g);
  sn_module_begin(g, "d");
  z = sn_dense(g, z, .units = 8, .activation = SN_TANH);
  sn_softmax_cross_entropy(g, sn_dense(g, z, .units = 3), in[1], .weights = in[2]);
  sn_module_end(g);
  sn_module_begin(g, "e");
  sn_value each = sn_sequence_dense(g, q, .units = 3).values;
  sn_squared_loss(g, each, in[3], .scale = 0.5);
  sn_module_end(g);
  ck_sn_ok(sn_graph_status(g));
}

static result train_odd(const setting *s) {
  result out;
  sn_value in[5];
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  build_odd(g, in);
  sn_trainer *t = new_trainer(g, s);
  for (int i = 0; i < 3; i++) {
    uint64_t seed = 40 + (uint64_t)i;
    float *x = h3_normals(seed, 1, ROWS * FEATURES), *w = h3_normals(seed, 2, ROWS);
    int64_t *offsets = h3_offsets(seed, 3, ROWS, 0, 4), y[ROWS];
    float *e = h3_normals(seed, 4, 3 * offsets[ROWS]);
    for (int r = 0; r < ROWS; r++) {
      y[r] = (int64_t)sn__rng_below(seed, 5, (uint64_t)r, 3);
      w[r] = fabsf(w[r]);
    }
    const sn_feed feeds[] = {{.value = in[0], .data = x, .rows = ROWS},
                             {.value = in[1], .data = y, .rows = ROWS},
                             {.value = in[2], .data = w, .rows = ROWS},
                             {.value = in[3], .data = e, .offsets = offsets, .rows = ROWS}};
    double losses[2];
    ck_sn_ok(sn_trainer_step(t, feeds, 4, losses));
    out.losses[i] = losses[0] + losses[1];
    free(x);
    free(w);
    free(e);
    free(offsets);
  }
  ck_sn_ok(sn_store_sha256(sn_trainer_store(t), out.hex));
  sn_trainer_free(t);
  sn_graph_free(g);
  return out;
}

START_TEST(everything_that_could_tell_parts_apart) {
  static const sn_pin pins[] = {
      {"a", "cpu:0"}, {"b", "cpu:1"}, {"c", "cpu:1"}, {"d", "cpu:0"}, {"e", "cpu:0"}};
  static const sn_pin chain[] = {
      {"a", "cpu:0"}, {"b", "cpu:1"}, {"c", "cpu:2"}, {"d", "cpu:3"}, {"e", "cpu:1"}};
  for (int64_t parts = SN_SANITIZED ? 5 : 2; parts <= 5; parts += 3) {
    const result one = train_odd(&(setting){"cpu:0", SN_PIPELINE_NONE, parts, NULL, 0});
    for (int p = SN_PIPELINE_GPIPE; p <= SN_PIPELINE_ZERO_BUBBLE; p++) {
      const setting settings[] = {{"cpu:0", (sn_pipeline)p, parts, NULL, 0},
                                  {"cpu*2", (sn_pipeline)p, parts, pins, 5},
                                  {"cpu*4", (sn_pipeline)p, parts, chain, 5}};
      for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const result other = train_odd(&settings[i]);
        same(&one, &other, "odd", &settings[i]);
      }
    }
  }
}
END_TEST

/* ---- a chain ------------------------------------------------------------------------------- */

enum { WIDTH = 32, LAYERS = 4, BATCH = 64 };

static sn_graph *new_chain(sn_value in[2]) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  in[0] = sn_input(g, "x", SN_F32, WIDTH);
  in[1] = sn_input(g, "y", SN_F32, WIDTH);
  sn_value h = in[0];
  for (int i = 0; i < LAYERS; i++)
    h = sn_dense(g, h, .units = WIDTH, .activation = SN_TANH);
  sn_squared_loss(g, h, in[1]);
  ck_sn_ok(sn_graph_status(g));
  return g;
}

static const sn_pin chain_pins[] = {
    {"dense", "cpu:0"}, {"dense_1", "cpu:1"}, {"dense_2", "cpu:2"}, {"dense_3", "cpu:3"}};

static result train_chain(const setting *s, sn_pipeline_stage stages[LAYERS], size_t *out_arena) {
  result out;
  sn_value in[2];
  sn_graph *g = new_chain(in);
  sn_trainer *t = new_trainer(g, s);
  for (int i = 0; i < 3; i++) {
    float *x = h3_normals(9 + (uint64_t)i, 1, BATCH * WIDTH);
    float *y = h3_normals(9 + (uint64_t)i, 2, BATCH * WIDTH);
    const sn_feed feeds[] = {{.value = in[0], .data = x, .rows = BATCH},
                             {.value = in[1], .data = y, .rows = BATCH}};
    ck_sn_ok(sn_trainer_step(t, feeds, 2, &out.losses[i]));
    free(x);
    free(y);
  }
  ck_sn_ok(sn_store_sha256(sn_trainer_store(t), out.hex));
  for (size_t i = 0; i < LAYERS; i++)
    stages[i] = sn_trainer_pipeline_stage(t, i);
  *out_arena = sn_trainer_memory_on(t, 0).arena_bytes;
  if (s->pipeline != SN_PIPELINE_NONE) {
    ck_assert_uint_eq(sn_trainer_pipeline(t).stages, LAYERS);
    ck_assert_int_eq(sn_trainer_pipeline_stage(t, LAYERS).device, -1);
  }
  sn_trainer_free(t);
  sn_graph_free(g);
  return out;
}

START_TEST(a_chain_keeps_what_its_schedule_says) {
  sn_pipeline_stage stages[LAYERS];
  size_t arena[4];
  const result one =
      train_chain(&(setting){"cpu*4", SN_PIPELINE_NONE, 8, chain_pins, 4}, stages, &arena[0]);
  for (int p = SN_PIPELINE_GPIPE; p <= SN_PIPELINE_ZERO_BUBBLE; p++) {
    const setting s = {"cpu*4", (sn_pipeline)p, 8, chain_pins, 4};
    const result other = train_chain(&s, stages, &arena[p]);
    same(&one, &other, "chain", &s);
    for (uint32_t i = 0; i < LAYERS; i++) {
      ck_assert_int_eq(stages[i].device, (int)i);
      ck_assert_int_gt(stages[i].forward_ns, 0);
      ck_assert_int_gt(stages[i].weight_ns, 0);
      ck_assert(i == 0 ? stages[i].backward_ns == 0 : stages[i].backward_ns > 0);
      /* Its tanh, and what came by a copy; x is fed. */
      ck_assert_uint_eq(stages[i].bytes, (i == 0 ? 1 : 2) * 8 * WIDTH * 4);
      if (p == SN_PIPELINE_GPIPE) ck_assert_uint_eq(stages[i].in_flight, 8);
      if (p == SN_PIPELINE_1F1B) ck_assert_uint_eq(stages[i].in_flight, LAYERS - i);
    }
  }
  /* What stands in memory is bounded by the order. */
  ck_assert_uint_lt(arena[SN_PIPELINE_1F1B], arena[SN_PIPELINE_GPIPE]);
}
END_TEST

/* Nobody says where: a chain that pays in two pieces is cut into two of like work. */
START_TEST(a_chain_is_cut) {
  enum { WIDE = 256, MANY = 512 };
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, WIDE), h = x;
  for (int i = 0; i < 4; i++)
    h = sn_dense(g, h, .units = WIDE, .activation = SN_TANH);
  sn_squared_loss(g, h, x);
  ck_sn_ok(sn_graph_status(g));
  const sn_extent extents[] = {{"batch", MANY}};
  sn_trainer_options o = {.struct_size = sizeof o,
                          .devices = "cpu*2",
                          .threads = 2,
                          .micro_batches = 8,
                          .pipeline = SN_PIPELINE_1F1B,
                          .extents = extents,
                          .n_extents = 1};
  sn_trainer *t = NULL;
  ck_sn_ok(sn_trainer_create(g, &o, &t));
  const sn_placement *p = sn_trainer_placement(t);
  ck_assert_int_eq(sn_placement_figures_of(p)->devices_used, 2);
  for (size_t i = 0; i < sn_placement_module_count(p); i++) {
    const sn_placement_module *m = sn_placement_module_at(p, i);
    bool low = strcmp(m->path, "dense") == 0 || strcmp(m->path, "dense_1") == 0;
    if (strncmp(m->path, "dense", 5) != 0) continue;
    ck_assert_msg(m->device == (low ? 0 : 1), "'%s' is on %d", m->path, m->device);
    ck_assert_ptr_nonnull(strstr(m->cause, "pipeline"));
  }
  float *data = h3_normals(1, 1, MANY * WIDE);
  const sn_feed feed = {.value = x, .data = data, .rows = MANY};
  double loss;
  ck_sn_ok(sn_trainer_step(t, &feed, 1, &loss));
  ck_assert_uint_eq(sn_trainer_pipeline(t).stages, 2);
  ck_assert_uint_eq(sn_trainer_pipeline_stage(t, 0).in_flight, 2);
  ck_assert_uint_eq(sn_trainer_pipeline_stage(t, 1).in_flight, 1);
  free(data);
  sn_trainer_free(t);
  sn_graph_free(g);
}
END_TEST

START_TEST(mistakes) {
  sn_value in[2];
  sn_graph *g = new_chain(in);
  sn_trainer *t = NULL;
  sn_trainer_options o = {.struct_size = sizeof o, .pipeline = SN_PIPELINE_1F1B};
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_INVALID,
              "2 to 256 micro-batches at once, not 0");
  o.micro_batches = 1000;
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_INVALID, "not 1000");
  o.pipeline = (sn_pipeline)7;
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_INVALID, "no pipeline has number 7");
  o.pipeline = SN_PIPELINE_GPIPE;
  o.micro_batches = 4;
  ck_sn_ok(sn_trainer_create(g, &o, &t));
  float x[4 * WIDTH] = {0};
  double loss;
  sn_feed feeds[] = {{.value = in[0], .data = x, .rows = 4},
                     {.value = in[1], .data = x, .rows = 3}};
  ck_sn_fails(sn_trainer_step(t, feeds, 2, &loss), SN_CODE_INVALID,
              "input 'y' is fed with 3 rows and 'x' with 4");
  feeds[1].rows = 4;
  x[3 * WIDTH] = NAN;
  ck_sn_fails(sn_trainer_step(t, feeds, 2, &loss), SN_CODE_NUMERIC, "in row 3");
  x[3 * WIDTH] = 1;
  ck_sn_ok(sn_trainer_step(t, feeds, 2, &loss));
  feeds[0].rows = feeds[1].rows = 2; /* fewer rows than micro-batches: one row each */
  ck_sn_ok(sn_trainer_step(t, feeds, 2, &loss));
  sn_trainer_free(t);
  sn_graph_free(g);
}
END_TEST

/* ---- out of memory -------------------------------------------------------------------------- */

static sn_status order_small(sn_graph *all, const sn_topology *topology) {
  static const sn_pin pins[] = {{"dense", "cpu:0"}, {"dense_1", "cpu:1"}};
  static const sn_optimizer_options sgd = {.struct_size = sizeof sgd, .kind = SN_SGD};
  sn_place_options o = {.struct_size = sizeof o, .pins = pins, .n_pins = 2, .evals = 5};
  sn_graph *train = NULL, *placed = NULL;
  sn_placement *placement = NULL;
  sn__micro_plan plan = {NULL, NULL, NULL, NULL};
  int64_t extents[8] = {4};
  sn_status status = sn__optimize(all, &sgd, SN_TRAIN_WHOLE, &train);
  if (status == SN_OK) status = sn_place(train, topology, &o, &placement);
  if (status == SN_OK) status = sn_placement_apply(placement, train, &placed);
  if (status == SN_OK)
    status = sn__micro_order(placed, topology, extents, SN__PIPE_ZERO_BUBBLE, 1, &plan);
  sn__micro_plan_free(&plan);
  sn_graph_free(placed);
  sn_placement_free(placement);
  sn_graph_free(train);
  return status;
}

static sn_status unroll_small(void *arg) {
  (void)arg;
  sn_graph *g = NULL, *one = NULL, *all = NULL;
  sn_topology *topology = NULL;
  SN_TRY(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 3);
  sn_value h = sn_batch_norm(g, sn_dense(g, x, .units = 3));
  sn_squared_loss(g, sn_dense(g, h, .units = 3), x);
  sn_status status = sn_graph_status(g);
  if (status == SN_OK) status = sn__differentiate(g, &one);
  if (status == SN_OK) status = sn__micro_unroll(one, 3, &all);
  if (status == SN_OK) status = sn_topology_parse("cpu*2", 2, &topology);
  if (status == SN_OK) status = order_small(all, topology);
  sn_topology_free(topology);
  sn_graph_free(all);
  sn_graph_free(one);
  sn_graph_free(g);
  return status;
}

START_TEST(every_allocation) {
  ck_assert_int_gt(sn_fail_alloc_every_call(unroll_small, NULL), 100);
}
END_TEST

static Suite *pipeline_run_suite(void) {
  Suite *suite = suite_create("pipeline_run");
  TCase *c = tcase_create("bits");
  tcase_set_timeout(c, 60);
  tcase_add_test(c, ragged_branches);
  tcase_add_test(c, everything_that_could_tell_parts_apart);
  tcase_add_test(c, a_chain_keeps_what_its_schedule_says);
  tcase_add_test(c, a_chain_is_cut);
  tcase_add_test(c, mistakes);
  tcase_add_test(c, every_allocation);
  suite_add_tcase(suite, c);
  return suite;
}

SN_TEST_MAIN(pipeline_run_suite)
