/* SPDX-License-Identifier: Apache-2.0 */
/* Values computed again in place of kept ones: the same bits however it runs, less memory, and only
 * where it is asked for or needed. */
#include "core/recompute.h"

#include <stdio.h>

#include "core/verify.h"
#include "layers/layers.h"
#include "placement/recompute_choice.h"
#include "placement/trainer.h"
#include "tests/fail_alloc.h"
#include "tests/placement/h3_batch.h"

static const sn_h3_sizes tiny = {.name = "tiny",
                                 .batch = 9,
                                 .dense_in = 5,
                                 .dense_hidden = 7,
                                 .sequence_in = 3,
                                 .sequence_units = 4,
                                 .sequence_longest = 5,
                                 .set_in = 2,
                                 .set_hidden = 6,
                                 .set_largest = 4,
                                 .trunk = 8,
                                 .classes = 3};

static sn_graph *h3(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  ck_sn_ok(sn_h3_build(g, &tiny));
  return g;
}

enum { LAYERS = 9, WIDTH = 32, ROWS = 192 };

/* A chain that keeps much: each layer with batch norm, dropout (by its parent) and an activation.
 */
static sn_graph *chain(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, WIDTH), y = sn_input(g, "y", SN_I64, 0);
  sn_module_begin(g, "trunk");
  for (int i = 0; i < LAYERS; i++) {
    sn_module_begin(g, "layer");
    x = sn_dense(g, x, .units = WIDTH, .activation = SN_GELU);
    x = sn_batch_norm(g, x);
    sn_module_end(g);
    x = sn_dropout(g, x, 0.2);
  }
  sn_module_end(g);
  sn_value z = sn_dense(g, x, .units = 4);
  sn_output(g, "z", z);
  sn_softmax_cross_entropy(g, z, y);
  ck_sn_ok(sn_graph_status(g));
  return g;
}

typedef struct setting {
  const char *devices;
  int64_t parts;
  sn_pipeline pipeline;
  sn_recompute recompute;
  const char *entries[3];
  size_t n;
} setting;

static const sn_extent chain_extents[] = {{"batch", ROWS}};

static sn_trainer_options options_of(const setting *s) {
  return (sn_trainer_options){
      .struct_size = sizeof(sn_trainer_options),
      .devices = s->devices,
      .threads = 2,
      .optimizer = {.struct_size = sizeof(sn_optimizer_options), .kind = SN_ADAM},
      .micro_batches = s->parts,
      .pipeline = s->pipeline,
      .seed = 3,
      .placement = {.struct_size = sizeof(sn_place_options),
                    .objective =
                        strcmp(s->devices, "cpu:0") == 0 || s->recompute != SN_RECOMPUTE_LISTED
                            ? SN_OBJECTIVE_TIME
                            : SN_OBJECTIVE_SPREAD,
                    .evals = 50,
                    .recompute = s->recompute,
                    .recomputed = s->entries,
                    .n_recomputed = s->n}};
}

/* Two steps; what is recomputed and the memory of device 0 are looked at by the caller. */
static sn_trainer *train_chain(const setting *s, char hex[65]) {
  sn_graph *g = chain();
  sn_trainer_options o = options_of(s);
  o.extents = chain_extents;
  o.n_extents = 1;
  sn_trainer *t = NULL;
  ck_sn_ok(sn_trainer_create(g, &o, &t));
  float x[ROWS * WIDTH];
  int64_t y[ROWS];
  for (int step = 0; step < 2; step++) {
    for (int i = 0; i < ROWS * WIDTH; i++)
      x[i] = (float)sn__rng_below(11, (uint64_t)step, (uint64_t)i, 1000) / 500 - 1;
    for (int i = 0; i < ROWS; i++)
      y[i] = (int64_t)sn__rng_below(12, (uint64_t)step, (uint64_t)i, 4);
    sn_feed feeds[] = {{.value = sn_graph_find_input(g, "x"), .data = x, .rows = ROWS},
                       {.value = sn_graph_find_input(g, "y"), .data = y, .rows = ROWS}};
    double loss = 0;
    ck_sn_ok(sn_trainer_step(t, feeds, 2, &loss));
  }
  ck_sn_ok(sn_store_sha256(sn_trainer_store(t), hex));
  sn_graph_free(g);
  return t;
}

static void cap_text(char out[64], size_t bytes) {
  snprintf(out, 64, "cpu:0=%zuKiB", bytes / 1024);
}

static size_t arena(const sn_trainer *t, size_t device) {
  return sn_plan_device_at(sn_trainer_plan(t), device).arena_bytes;
}

/* ---- the pass ------------------------------------------------------------------------------ */

/* The trunk as one segment: of what it makes, backward nodes read only what leaves it or has a
 * fixed shape, else the clones, and these are like their originals. */
START_TEST(clones_stand_for_what_was_kept) {
  sn_graph *g = chain(), *train = NULL, *again = NULL;
  sn_optimizer_options adam = {.struct_size = sizeof adam, .kind = SN_ADAM};
  ck_sn_ok(sn_training_graph(g, &adam, SN_TRAIN_WHOLE, &train));
  uint32_t *segments = sn__calloc(train->n_nodes, sizeof *segments);
  for (uint32_t i = 1; i < train->n_nodes; i++)
    segments[i] = strstr(train->nodes[i].name, "trunk") != NULL ? 1 : 0;
  ck_sn_ok(sn__recompute(train, segments, &again));
  ck_sn_ok(sn__verify_structure(again));
  ck_assert_uint_gt(again->n_nodes, train->n_nodes);
  for (uint32_t v = 1; v < train->n_values; v++)
    ck_assert_str_eq(train->values[v].name, again->values[v].name);
  size_t clones = 0, random = 0, late = 0;
  uint32_t last = 0; /* the trunk's output */
  for (uint32_t i = 1; i < train->n_nodes; i++)
    if (segments[i] != 0 && train->nodes[i].phase == SN_FORWARD &&
        !sn__node_is_source(&train->nodes[i]))
      last = train->nodes[i].out[0];
  for (uint32_t i = 1; i < again->n_nodes; i++) {
    const sn__node *n = &again->nodes[i];
    for (uint32_t k = 0; n->phase == SN_BACKWARD && !n->recomputed && k < n->n_in; k++) {
      const sn__value *v = &again->values[n->in[k]];
      const sn__node *maker = &again->nodes[v->node];
      bool kept = n->in[k] == last || sn_shape_is_fixed(&v->shape) || sn__node_is_source(maker);
      ck_assert_msg(n->in[k] == 0 || kept || maker->phase != SN_FORWARD ||
                        strstr(maker->name, "trunk") == NULL,
                    "'%s' reads '%s'", n->name, v->name);
    }
    if (!n->recomputed) continue;
    const sn__node *o = &again->nodes[n->origin];
    clones++;
    random += (n->op->flags & SN_OP_RANDOM) != 0;
    late += n->after != 0 && again->nodes[again->values[n->after].node].phase == SN_BACKWARD;
    ck_assert(n->op == o->op && n->rng_key == o->rng_key && n->phase == SN_BACKWARD);
    ck_assert(o->phase == SN_FORWARD && (n->op->flags & SN_OP_COMMIT) == 0);
  }
  ck_assert_uint_ge(clones, 3 * LAYERS);
  ck_assert_uint_ge(random, LAYERS - 1);
  ck_assert_uint_eq(late, clones);
  sn__free(segments);
  sn_graph_free(again);
  sn_graph_free(train);
  sn_graph_free(g);
}
END_TEST

START_TEST(a_forward_graph_stays) {
  sn_graph *g = chain(), *again = NULL;
  const char *const all[] = {"*"};
  ck_sn_ok(sn__recompute_apply(g, all, 1, NULL, &again));
  ck_assert_uint_eq(again->n_nodes, g->n_nodes);
  sn_graph_free(again);
  sn_graph_free(g);
}
END_TEST

/* ---- the bits ------------------------------------------------------------------------------ */

START_TEST(the_same_bits) {
  static const setting ways[] = {
      {"cpu:0", 1, SN_PIPELINE_NONE, SN_RECOMPUTE_LISTED, {"trunk/*"}, 1},
      {"cpu:0", 1, SN_PIPELINE_NONE, SN_RECOMPUTE_LISTED, {"trunk"}, 1},
      {"cpu*2", 1, SN_PIPELINE_NONE, SN_RECOMPUTE_LISTED, {"trunk/layer+trunk/layer_[1-4]"}, 1},
      {"cpu:0",
       4,
       SN_PIPELINE_NONE,
       SN_RECOMPUTE_LISTED,
       {"trunk/layer_[1-4]", "trunk/layer_7"},
       2},
      {"cpu*2", 4, SN_PIPELINE_GPIPE, SN_RECOMPUTE_LISTED, {"trunk/*"}, 1},
      {"cpu*3", 4, SN_PIPELINE_1F1B, SN_RECOMPUTE_LISTED, {"trunk/layer+trunk/layer_1", "*"}, 2},
      {"cpu*2", 4, SN_PIPELINE_ZERO_BUBBLE, SN_RECOMPUTE_LISTED, {"trunk/*"}, 1}};
  char plain[2][65];
  for (int parts = 0; parts < 2; parts++)
    sn_trainer_free(train_chain(
        &(setting){.devices = "cpu:0", .parts = parts == 0 ? 1 : 4, .recompute = SN_RECOMPUTE_NONE},
        plain[parts]));
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    char hex[65];
    sn_trainer *t = train_chain(&ways[i], hex);
    ck_assert_uint_eq(sn_placement_recomputed_count(sn_trainer_placement(t)), ways[i].n);
    ck_assert_msg(strcmp(hex, plain[ways[i].parts > 1]) == 0, "way %zu: other bits", i);
    sn_trainer_free(t);
  }
}
END_TEST

static void train_h3(const char *const *entries, size_t n, const char *devices, char hex[65]) {
  sn_graph *g = h3();
  sn_trainer_options o =
      options_of(&(setting){.devices = devices, .parts = 1, .recompute = SN_RECOMPUTE_LISTED});
  o.placement.recomputed = entries;
  o.placement.n_recomputed = n;
  sn_trainer *t = NULL;
  ck_sn_ok(sn_trainer_create(g, &o, &t));
  for (int i = 0; i < 2; i++) {
    h3_batch b = h3_make(g, &tiny, 100 + (uint64_t)i, 9, 0);
    ck_sn_ok(sn_trainer_step(t, b.feeds, 4, NULL));
    h3_free(&b);
  }
  ck_sn_ok(sn_store_sha256(sn_trainer_store(t), hex));
  sn_trainer_free(t);
  sn_graph_free(g);
}

/* Any modules, alone or as one, on one device and three: the plan's verifier and race checker take
 * it, and the bits stay. */
START_TEST(any_choice_of_modules) {
  char plain[65], hex[65];
  train_h3(NULL, 0, "cpu:0", plain);
  sn_graph *g = h3();
  for (uint64_t trial = 0; trial < (SN_SANITIZED ? 6 : 24); trial++) {
    const char *entries[8];
    char joint[512] = "";
    size_t n = 0;
    for (uint32_t m = 1; m < g->n_modules && n < 7; m++) {
      uint64_t draw = sn__rng_below(5, trial, m, 4);
      if (draw == 0) entries[n++] = g->modules[m].path;
      if (draw == 1 && strlen(joint) + strlen(g->modules[m].path) < sizeof joint - 2)
        strcat(strcat(joint, joint[0] != '\0' ? "+" : ""), g->modules[m].path);
    }
    if (strchr(joint, '+') != NULL) entries[n++] = joint;
    train_h3(entries, n, trial % 2 == 0 ? "cpu:0" : "cpu*3", hex);
    ck_assert_msg(strcmp(hex, plain) == 0, "trial %d: other bits", (int)trial);
  }
  sn_graph_free(g);
}
END_TEST

/* ---- memory -------------------------------------------------------------------------------- */

START_TEST(memory_binds) {
  char plain[65], hex[65], devices[64];
  sn_trainer *t = train_chain(
      &(setting){.devices = "cpu:0", .parts = 1, .recompute = SN_RECOMPUTE_AUTO}, plain);
  ck_assert_uint_eq(sn_placement_recomputed_count(sn_trainer_placement(t)), 0);
  ck_assert_ptr_null(sn_placement_recompute_cause(sn_trainer_placement(t)));
  size_t all = arena(t, 0), variables = sn_plan_device_at(sn_trainer_plan(t), 0).variable_bytes;
  sn_trainer_free(t);

  /* As much as it needs: nothing. */
  cap_text(devices, all + variables + 1023);
  setting s = {.devices = devices, .parts = 1, .recompute = SN_RECOMPUTE_AUTO};
  t = train_chain(&s, hex);
  ck_assert_uint_eq(sn_placement_recomputed_count(sn_trainer_placement(t)), 0);
  sn_trainer_free(t);

  /* Two thirds of the arena: something, and the same bits within it. */
  size_t cap = variables + all * 2 / 3;
  cap_text(devices, cap);
  t = train_chain(&s, hex);
  const sn_placement *pl = sn_trainer_placement(t);
  ck_assert_uint_gt(sn_placement_recomputed_count(pl), 0);
  ck_assert(strstr(sn_placement_recompute_cause(pl), "no placement found fits without: cpu:0"));
  for (size_t i = 0; i < sn_placement_recomputed_count(pl); i++) {
    ck_assert_uint_gt(sn_placement_recomputed_at(pl, i).bytes, 0);
    ck_assert_int_gt(sn_placement_recomputed_at(pl, i).ns, 0);
  }
  sn_session_memory m = sn_trainer_memory_on(t, 0);
  ck_assert_uint_le(arena(t, 0) + variables, cap);
  ck_assert_uint_le(m.peak_bytes, cap);
  ck_assert_uint_gt(m.peak_bytes, 0);
  ck_assert_uint_le(m.peak_bytes,
                    m.planned_compute_bytes + m.planned_copy_bytes + m.planned_variable_bytes);
  ck_assert_str_eq(hex, plain);
  sn_trainer_free(t);

  /* Not allowed, it is the remedy; too little for anything, the batch is. */
  sn_graph *g = chain();
  s.recompute = SN_RECOMPUTE_NONE;
  sn_trainer_options o = options_of(&s);
  o.extents = chain_extents;
  o.n_extents = 1;
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_OUT_OF_MEMORY, "or --recompute auto (");
  cap_text(devices, variables + all / 6);
  s.recompute = SN_RECOMPUTE_AUTO;
  o = options_of(&s);
  o.extents = chain_extents;
  o.n_extents = 1;
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_OUT_OF_MEMORY,
              "with all recomputed that helps: cpu:0 would need");
  sn_graph_free(g);
}
END_TEST

/* Parts of a batch that fit need no recomputing, though the whole batch would. */
START_TEST(micro_batches_come_first) {
  char plain[65], hex[65], devices[64];
  setting s = {.devices = "cpu:0", .parts = 4, .recompute = SN_RECOMPUTE_AUTO};
  sn_trainer *t = train_chain(&s, plain);
  sn_plan_device d = sn_plan_device_at(sn_trainer_plan(t), 0);
  sn_trainer_free(t);
  size_t cap = d.variable_bytes * 4 / 3 + d.arena_bytes * 2 / 5;
  cap_text(devices, cap);
  s.devices = devices;
  t = train_chain(&s, hex);
  ck_assert_uint_eq(sn_placement_recomputed_count(sn_trainer_placement(t)), 0);
  ck_assert_uint_le(sn_trainer_memory_on(t, 0).peak_bytes, cap);
  ck_assert_str_eq(hex, plain);
  sn_trainer_free(t);
  cap_text(devices, d.variable_bytes * 4 / 3 + d.arena_bytes / 5);
  t = train_chain(&s, hex);
  ck_assert_uint_gt(sn_placement_recomputed_count(sn_trainer_placement(t)), 0);
  ck_assert_str_eq(hex, plain);
  sn_trainer_free(t);
}
END_TEST

/* The batch named by the error is the largest that fits. */
START_TEST(the_remedy_is_right) {
  sn_graph *g = chain();
  sn_trainer *t = NULL;
  setting s = {.devices = "cpu:0=700KiB", .parts = 1, .recompute = SN_RECOMPUTE_NONE};
  sn_trainer_options o = options_of(&s);
  sn_extent extents[] = {{"batch", ROWS}};
  o.extents = extents;
  o.n_extents = 1;
  sn_status status = sn_trainer_create(g, &o, &t);
  ck_assert_int_eq(sn_status_code(status), SN_CODE_OUT_OF_MEMORY);
  const char *at = strstr(sn_status_message(status), "a batch of ");
  ck_assert_ptr_nonnull(at);
  extents[0].count = strtoll(at + strlen("a batch of "), NULL, 10);
  ck_assert_int_gt(extents[0].count, 0);
  sn_status_free(status);
  ck_sn_ok(sn_trainer_create(g, &o, &t));
  sn_trainer_free(t);
  extents[0].count++;
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_OUT_OF_MEMORY, "no placement found that fits");
  sn_graph_free(g);
}
END_TEST

START_TEST(mistakes_are_told) {
  sn_graph *g = chain();
  sn_trainer *t = NULL;
  sn_trainer_options o = options_of(&(setting){.devices = "cpu:0"});
  const char *const names[] = {"trunk+trunc"};
  o.placement.recompute = SN_RECOMPUTE_LISTED;
  o.placement.recomputed = names;
  o.placement.n_recomputed = 1;
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_CONFIG, "no module 'trunc'; did you mean");
  o.placement.recomputed = (const char *const[]){""};
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_CONFIG, "a name is empty");
  o.placement.recompute = (sn_recompute)9;
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_INVALID, "has number 9");
  sn_graph_free(g);
}
END_TEST

/* ---- out of memory ------------------------------------------------------------------------- */

/* Each allocation of the choice failing would take minutes: every 97th does. */
START_TEST(out_of_memory) {
  sn_graph *g = chain(), *train = NULL;
  sn_optimizer_options sgd = {.struct_size = sizeof sgd, .kind = SN_SGD, .learning_rate = 0.1};
  sn_topology *topology = NULL;
  ck_sn_ok(sn_topology_parse("cpu:0=500KiB", 1, &topology));
  ck_sn_ok(sn_training_graph(g, &sgd, SN_TRAIN_WHOLE, &train));
  const int64_t extents[] = {ROWS};
  sn_place_options o = {
      .struct_size = sizeof o, .extents = extents, .n_extents = 1, .evals = 1, .seed = 1};
  long failed = 0;
  for (long at = 1;; at += SN_SANITIZED ? 2503 : 997) {
    sn_placement *pl = NULL;
    sn_fail_alloc_install(at);
    sn_status status = sn_place(train, topology, &o, &pl);
    bool done = status == SN_OK;
    ck_assert_msg(done || sn_status_code(status) == SN_CODE_OUT_OF_MEMORY, "allocation %ld", at);
    sn_status_free(status);
    if (done) ck_assert_uint_gt(sn_placement_recomputed_count(pl), 0);
    sn_placement_free(pl);
    ck_assert_int_eq(sn_fail_alloc_live(), 0);
    sn_fail_alloc_remove();
    if (done) break;
    failed++;
  }
  ck_assert_int_gt(failed, 3);
  sn_topology_free(topology);
  sn_graph_free(train);
  sn_graph_free(g);
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("recompute");
  TCase *c = tcase_create("pass");
  tcase_add_test(c, clones_stand_for_what_was_kept);
  tcase_add_test(c, a_forward_graph_stays);
  suite_add_tcase(suite, c);
  c = tcase_create("bits");
  tcase_set_timeout(c, 60);
  tcase_add_test(c, the_same_bits);
  tcase_add_test(c, any_choice_of_modules);
  suite_add_tcase(suite, c);
  c = tcase_create("memory");
  tcase_set_timeout(c, 60);
  tcase_add_test(c, memory_binds);
  tcase_add_test(c, micro_batches_come_first);
  tcase_add_test(c, the_remedy_is_right);
  tcase_add_test(c, mistakes_are_told);
  tcase_add_test(c, out_of_memory);
  suite_add_tcase(suite, c);
  return suite;
}

SN_TEST_MAIN(make_suite)
