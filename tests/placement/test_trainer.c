/* SPDX-License-Identifier: Apache-2.0 */
/* Whole training steps: the same bits on any placement, devices and threads; exact accumulation. */
#include <math.h>
#include <stdio.h>
#include "layers/layers.h"
#include "placement/trainer.h"
#include "tests/placement/h3_batch.h"

typedef struct setting {
  const char *devices;
  int threads;
  sn_objective objective;
  const sn_pin *pins;
  size_t n_pins;
  int64_t micro_batches;
  int64_t rows;
} setting;

/* Trains `steps` steps of H3 and gives the hash of its variables; the last loss too. */
static void train(const sn_h3_sizes *sizes, const setting *s, int steps, char hex[65],
                  double *out_loss) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  ck_sn_ok(sn_h3_build(g, sizes));
  sn_trainer_options o = {
      .struct_size = sizeof o,
      .devices = s->devices,
      .threads = s->threads,
      .optimizer = {.struct_size = sizeof o.optimizer, .kind = SN_ADAM, .learning_rate = 0.01},
      .micro_batches = s->micro_batches,
      .seed = 7,
      .placement = {.struct_size = sizeof o.placement,
                    .objective = s->objective,
                    .pins = s->pins,
                    .n_pins = s->n_pins}};
  sn_trainer *t = NULL;
  ck_sn_ok(sn_trainer_create(g, &o, &t));
  double loss = 0, first = 0;
  for (int i = 0; i < steps; i++) {
    h3_batch b =
        h3_make(g, sizes, 100 + (uint64_t)(i % 2), s->rows > 0 ? s->rows : sizes->batch, 0);
    ck_sn_ok(sn_trainer_step(t, b.feeds, 4, &loss));
    ck_assert(isfinite(loss));
    if (i == 0) first = loss;
    h3_free(&b);
  }
  if (steps > 10) ck_assert_msg(loss < first, "loss went from %g to %g", first, loss);
  ck_sn_ok(sn_store_sha256(sn_trainer_store(t), hex));
  if (out_loss != NULL) *out_loss = loss;
  sn_trainer_free(t);
  sn_graph_free(g);
}

START_TEST(test_learns) {
  char hex[65];
  double loss;
  train(&h3_tiny, &(setting){.devices = "cpu:0", .threads = 1}, 60, hex, &loss);
  ck_assert_msg(loss < 0.7, "loss %g", loss);
}
END_TEST

START_TEST(test_same_bits_everywhere) {
  char one[65], other[65];
  double loss;
  train(&h3_tiny, &(setting){.devices = "cpu:0", .threads = 1}, 4, one, &loss);
  static const sn_pin a[] = {{"sequence", "cpu:1"}},
                      b[] = {{"dense", "cpu:1"}, {"trunk", "cpu:0"}, {"set", "cpu:2"}},
                      c[] = {{"trunk", "cpu:1"}, {"sequence/lstm", "cpu:1"}};
  const setting settings[] = {
      {"cpu:0", 2, SN_OBJECTIVE_TIME, NULL, 0, 0, 0},
      {"cpu:0", 3, SN_OBJECTIVE_TIME, NULL, 0, 0, 0},
      {"cpu*2", 2, SN_OBJECTIVE_SPREAD, NULL, 0, 0, 0},
      {"cpu*3", 3, SN_OBJECTIVE_SPREAD, NULL, 0, 0, 0},
      {"cpu*4", 8, SN_OBJECTIVE_SPREAD, NULL, 0, 0, 0},
      {"cpu*2", 2, SN_OBJECTIVE_TIME, a, 1, 0, 0},
      {"cpu*3", 3, SN_OBJECTIVE_TIME, b, 3, 0, 0},
      {"cpu*2", 2, SN_OBJECTIVE_TIME, c, 2, 0, 0},
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    train(&h3_tiny, &settings[i], 4, other, &loss);
    ck_assert_msg(strcmp(one, other) == 0, "setting %zu (%s): other parameters", i,
                  settings[i].devices);
  }
}
END_TEST

START_TEST(test_micro_batches) {
  char one[65], other[65];
  double whole, parts;
  train(&h3_tiny, &(setting){.devices = "cpu:0", .threads = 1, .rows = 7}, 1, one, &whole);
  train(&h3_tiny, &(setting){.devices = "cpu:0", .threads = 1, .rows = 7, .micro_batches = 3}, 1,
        one, &parts);
  ck_assert_msg(fabs(whole - parts) <= 1e-6 * fabs(whole), "%.9g and %.9g", whole, parts);
  train(&h3_tiny, &(setting){.devices = "cpu:0", .threads = 1, .rows = 7, .micro_batches = 3}, 4,
        one, &parts);
  train(&h3_tiny,
        &(setting){.devices = "cpu*3",
                   .threads = 3,
                   .objective = SN_OBJECTIVE_SPREAD,
                   .rows = 7,
                   .micro_batches = 3},
        4, other, &parts);
  ck_assert_str_eq(one, other);
}
END_TEST

START_TEST(test_mistakes) {
  sn_graph *g = NULL;
  sn_trainer *t = NULL;
  ck_sn_ok(sn_graph_create(&g));
  ck_sn_ok(sn_h3_build(g, &h3_tiny));
  sn_pin pin = {"sequense", "cpu:0"};
  sn_trainer_options o = {
      .struct_size = sizeof o, .devices = "cpu*2", .placement = {.pins = &pin, .n_pins = 1}};
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_CONFIG, "did you mean 'sequence'");
  pin = (sn_pin){"sequence", "cpu:7"};
  ck_sn_fails(sn_trainer_create(g, &o, &t), SN_CODE_CONFIG,
              "which is not in --devices (cpu:0, cpu:1)");
  sn_graph_free(g);
}
END_TEST

/* Whole or in parts, a batch that makes no sense is refused before anything of it is read. */
START_TEST(test_bad_feeds) {
  sn_graph *g = NULL;
  sn_trainer *t = NULL;
  ck_sn_ok(sn_graph_create(&g));
  ck_sn_ok(sn_h3_build(g, &h3_tiny));
  sn_trainer_options o = {.struct_size = sizeof o, .threads = 1, .micro_batches = _i == 0 ? 1 : 3};
  ck_sn_ok(sn_trainer_create(g, &o, &t));
  h3_batch b = h3_make(g, &h3_tiny, 1, 6, 1);
  sn_feed feeds[4];
  double loss = 0;

  memcpy(feeds, b.feeds, sizeof feeds);
  feeds[3].rows = (int64_t)1 << 30;
  ck_sn_fails(sn_trainer_step(t, feeds, 4, &loss), SN_CODE_INVALID, "'outcome' is fed with");
  ck_sn_fails(sn_trainer_evaluate(t, feeds, 4, NULL, 0, &loss, NULL), SN_CODE_INVALID,
              "'outcome' is fed with");
  feeds[3].rows = -1;
  ck_sn_fails(sn_trainer_step(t, feeds, 4, &loss), SN_CODE_INVALID, "is fed with -1 rows");
  feeds[3] = b.feeds[3];
  feeds[3].data = NULL;
  ck_sn_fails(sn_trainer_step(t, feeds, 4, &loss), SN_CODE_INVALID, "'outcome' is fed with NULL");
  ck_sn_fails(sn_trainer_step(t, feeds, 3, &loss), SN_CODE_INVALID, "'outcome' is not fed");
  feeds[3] = b.feeds[3];
  feeds[3].value = (sn_value){g, 1u << 30};
  ck_sn_fails(sn_trainer_step(t, feeds, 4, &loss), SN_CODE_INVALID, "which is no input");
  feeds[3] = b.feeds[3];
  b.sequence_offsets[2] = (int64_t)1 << 40;
  ck_sn_fails(sn_trainer_step(t, feeds, 4, &loss), SN_CODE_DATA, "offsets must not decrease");

  h3_free(&b);
  sn_trainer_free(t);
  sn_graph_free(g);
}
END_TEST

/* A NaN in the data: the step is refused, and neither variables nor running statistics keep it. */
START_TEST(test_nan_leaves_everything) {
  sn_graph *g = NULL;
  sn_trainer *t = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 4), y = sn_input(g, "y", SN_I64, 0);
  sn_value h = sn_batch_norm(g, sn_dense(g, x, .units = 3));
  sn_softmax_cross_entropy(g, sn_dense(g, h, .units = 2), y);
  sn_trainer_options o = {.struct_size = sizeof o, .threads = 1, .optimizer = {.kind = SN_ADAM}};
  ck_sn_ok(sn_trainer_create(g, &o, &t));
  float data[6 * 4];
  int64_t labels[6] = {0, 1, 0, 1, 1, 0};
  for (int i = 0; i < 24; i++)
    data[i] = (float)(i % 7) - 2.5f;
  sn_feed feeds[] = {{.value = x, .data = data, .rows = 6},
                     {.value = y, .data = labels, .rows = 6}};
  double loss = 0;
  ck_sn_ok(sn_trainer_step(t, feeds, 2, &loss));
  ck_assert_double_eq(sn_trainer_loss_weight(t, 0), 6);
  ck_assert_double_eq(sn_trainer_loss_weight(t, 1), 0); /* there is none */
  const sn_store *store = sn_trainer_store(t);
  float before[32][64], after[64];
  size_t n = sn_store_count(store);
  ck_assert_uint_le(n, 32);
  for (size_t i = 0; i < n; i++)
    ck_sn_ok(
        sn_store_read(store, sn_store_at(store, i)->name, before[i], sn_store_at(store, i)->bytes));
  data[5] = NAN;
  ck_sn_fails(sn_trainer_step(t, feeds, 2, &loss), SN_CODE_NUMERIC, "'x'");
  for (size_t i = 0; i < n; i++) {
    const sn_stored *v = sn_store_at(store, i);
    ck_assert_uint_le(v->bytes, sizeof after);
    ck_sn_ok(sn_store_read(store, v->name, after, v->bytes));
    ck_assert_msg(memcmp(before[i], after, v->bytes) == 0, "'%s' was written", v->name);
  }
  ck_assert_int_eq(sn_store_step(store), 1);
  data[5] = 1;
  ck_sn_ok(sn_trainer_step(t, feeds, 2, &loss));
  ck_assert(isfinite(loss));
  sn_trainer_free(t);
  sn_graph_free(g);
}
END_TEST

/* All that goes forward through the norm is finite, and gradients overflow: the step is refused,
 * and running statistics stay where the other variables do. */
START_TEST(test_overflow_leaves_statistics) {
  sn_graph *g = NULL;
  sn_trainer *t = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 4), y = sn_input(g, "y", SN_F32, 2);
  sn_value h = sn_batch_norm(g, sn_dense(g, x, .units = 3));
  sn_squared_loss(g, sn_dense(g, h, .units = 2), y);
  sn_trainer_options o = {.struct_size = sizeof o, .threads = 1, .optimizer = {.kind = SN_SGD}};
  ck_sn_ok(sn_trainer_create(g, &o, &t));
  float data[6 * 4], wanted[6 * 2];
  for (int i = 0; i < 24; i++)
    data[i] = (float)(i % 7) - 2.5f;
  for (int i = 0; i < 12; i++)
    wanted[i] = i % 3 == 0 ? 3e38f : -3e38f;
  sn_feed feeds[] = {{.value = x, .data = data, .rows = 6},
                     {.value = y, .data = wanted, .rows = 6}};
  const sn_store *store = sn_trainer_store(t);
  float before[3], after[3];
  const char *const names[] = {"batch_norm/running_mean", "batch_norm/running_var"};
  for (int k = 0; k < 2; k++) {
    ck_sn_ok(sn_store_read(store, names[k], before, sizeof before));
    ck_sn_fails(sn_trainer_step(t, feeds, 2, NULL), SN_CODE_NUMERIC, "");
    ck_sn_ok(sn_store_read(store, names[k], after, sizeof after));
    ck_assert_msg(memcmp(before, after, sizeof after) == 0, "'%s' was written", names[k]);
  }
  memset(wanted, 0, sizeof wanted);
  ck_sn_ok(sn_trainer_step(t, feeds, 2, NULL));
  ck_sn_ok(sn_store_read(store, names[1], after, sizeof after));
  ck_assert_msg(memcmp(before, after, sizeof after) != 0, "'%s' was not written", names[1]);
  sn_trainer_free(t);
  sn_graph_free(g);
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("trainer");
  TCase *c = tcase_create("h3");
  tcase_set_timeout(c, 120); /* sanitizers and a loaded machine */
  tcase_add_test(c, test_learns);
  tcase_add_test(c, test_same_bits_everywhere);
  tcase_add_test(c, test_micro_batches);
  tcase_add_test(c, test_overflow_leaves_statistics);
  tcase_add_test(c, test_mistakes);
  tcase_add_loop_test(c, test_bad_feeds, 0, 2);
  tcase_add_test(c, test_nan_leaves_everything);
  suite_add_tcase(suite, c);
  return suite;
}

SN_TEST_MAIN(make_suite)
