/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm with sync: k micro-batches are one batch, forward and backward, wherever they run. */
#include <math.h>

#include "core/op.h"
#include "layers/layers.h"
#include "tests/placement/h3_batch.h"
#include "tests/placement/settings.h"

enum { FEATURES = 6, ROWS = 13, STEPS = 2, MOST_VARIABLES = 64 };

/* Norms over rows, over elements of ragged rows, one behind the other, and one whose input is also
 * read past it. */
static void build(sn_graph *g, bool sync, sn_value in[3]) {
  in[0] = sn_input(g, "x", SN_F32, FEATURES);
  sn_sequence s = sn_sequence_input(g, "s", SN_F32, 3);
  in[1] = s.values;
  in[2] = sn_input(g, "y", SN_I64, 0);
  sn_module_begin(g, "a");
  sn_value h = sn_dense(g, in[0], .units = 8, .no_bias = true);
  h = sn_relu(g, sn_batch_norm(g, h, .sync = sync));
  sn_module_end(g);
  sn_module_begin(g, "b");
  sn_value e = sn_sequence_dense(g, s, .units = 5, .no_bias = true).values;
  e = sn_tanh(g, sn_batch_norm(g, e, .sync = sync, .momentum = 0.3));
  sn_value pooled = sn_sequence_mean(g, (sn_sequence){e, s.offsets});
  sn_module_end(g);
  sn_module_begin(g, "c");
  sn_value z =
      sn_dense(g, sn_concat(g, SN_VALUES(h, pooled), .axis = 1), .units = 7, .no_bias = true);
  z = sn_add(g, z, sn_batch_norm(g, z, .sync = sync, .epsilon = 1e-3));
  sn_softmax_cross_entropy(g, sn_dense(g, z, .units = 3), in[2]);
  sn_module_end(g);
  ck_sn_ok(sn_graph_status(g));
}

/* One step of it leaves the gradients in the momentum slots. */
static const sn_optimizer_options sgd = {
    .struct_size = sizeof sgd, .kind = SN_SGD, .momentum = 0.9, .learning_rate = 0.1};

/* What a run leaves: of each variable and slot (a momentum slot is the gradient after one step). */
typedef struct result {
  size_t n;
  const char *name[MOST_VARIABLES];
  float *data[MOST_VARIABLES];
  size_t count[MOST_VARIABLES];
  double loss;
  char hex[65];
  sn_trainer *trainer; /* owns the names */
  sn_graph *graph;
} result;

static void free_result(result *r) {
  for (size_t i = 0; i < r->n; i++)
    free(r->data[i]);
  sn_trainer_free(r->trainer);
  sn_graph_free(r->graph);
}

/* `empties`: that many rows at the beginning have no element, so the first micro-batches have none.
 */
static result train_one(const setting *s, bool sync, int steps, int64_t rows, int64_t empties) {
  result out = {0};
  sn_value in[3];
  ck_sn_ok(sn_graph_create(&out.graph));
  build(out.graph, sync, in);
  ck_sn_ok(make_trainer(out.graph, s, &sgd, &out.trainer));
  for (int i = 0; i < steps; i++) {
    uint64_t seed = 40 + (uint64_t)i;
    float *x = h3_normals(seed, 1, rows * FEATURES);
    int64_t *offsets = h3_offsets(seed, 3, rows, 0, 4), y[ROWS];
    int64_t gone = offsets[empties];
    for (int64_t r = 0; r <= rows; r++)
      offsets[r] = r <= empties ? 0 : offsets[r] - gone;
    float *e = h3_normals(seed, 4, 3 * offsets[rows]);
    for (int64_t r = 0; r < rows; r++)
      y[r] = (int64_t)sn__rng_below(seed, 5, (uint64_t)r, 3);
    const sn_feed feeds[] = {{.value = in[0], .data = x, .rows = rows},
                             {.value = in[1], .data = e, .offsets = offsets, .rows = rows},
                             {.value = in[2], .data = y, .rows = rows}};
    ck_sn_ok(sn_trainer_step(out.trainer, feeds, 3, &out.loss));
    free(x);
    free(e);
    free(offsets);
  }
  const sn_store *store = sn_trainer_store(out.trainer);
  ck_sn_ok(sn_store_sha256(store, out.hex));
  ck_assert_uint_le(sn_store_count(store), MOST_VARIABLES);
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *v = sn_store_at(store, i);
    float *data = malloc(v->bytes + 1);
    ck_sn_ok(sn_store_read(store, v->name, data, v->bytes));
    out.name[out.n] = v->name;
    out.count[out.n] = v->bytes / sizeof *data;
    out.data[out.n++] = data;
  }
  return out;
}

static result train(const setting *s, int steps, int64_t rows, int64_t empties) {
  return train_one(s, true, steps, rows, empties);
}

/* The largest ‖a − b‖ / ‖b‖ of any variable or slot. */
static double apart(const result *a, const result *b, const char **out_name) {
  double worst = 0;
  for (size_t i = 0; i < b->n; i++) {
    size_t k = 0;
    while (k < a->n && strcmp(a->name[k], b->name[i]) != 0)
      k++;
    ck_assert_uint_lt(k, a->n);
    double difference = 0, size = 0;
    for (size_t j = 0; j < b->count[i]; j++) {
      difference += pow((double)a->data[k][j] - b->data[i][j], 2);
      size += pow((double)b->data[i][j], 2);
    }
    const double ratio = size > 0 ? sqrt(difference / size) : sqrt(difference);
    if (ratio > worst) {
      worst = ratio;
      *out_name = b->name[i];
    }
  }
  return worst;
}

static const setting whole = {.devices = "cpu:0", .micro_batches = 1};

static void same_as_whole(int steps, int64_t rows, int64_t empties) {
  result one = train(&whole, steps, rows, empties);
  for (int64_t parts = 2; parts <= 5; parts++) {
    const setting s = {"cpu:0", SN_PIPELINE_GPIPE, parts, NULL, 0};
    result many = train(&s, steps, rows, empties);
    const char *name = "";
    const double worst = apart(&many, &one, &name);
    ck_assert_msg(worst <= 1e-6, "%d parts: '%s' is %.2e apart", (int)parts, name, worst);
    ck_assert_double_eq_tol(many.loss, one.loss, 1e-6);
    free_result(&many);
  }
  free_result(&one);
}

START_TEST(gradients_are_the_whole_batch_s) {
  same_as_whole(1, ROWS, 0);
  same_as_whole(STEPS, ROWS, 0);
}
END_TEST

static void run_op(const char *name, const void *attrs, const sn__tensor *in, int n_in, double *out,
                   int64_t size) {
  static const sn__step step = {.training = true};
  const sn__tensor to = {out, SN_F64, {1, {size}}};
  const sn__exec e = {.op = sn__op_find(name),
                      .attrs = attrs,
                      .in = in,
                      .n_in = n_in,
                      .out = &to,
                      .n_out = 1,
                      .step = &step};
  ck_assert_ptr_nonnull(e.op);
  ck_sn_ok(e.op->cpu(&e));
}

/* A mean far from zero costs no digits: of sums of squares it would leave none. */
START_TEST(a_mean_far_from_zero) {
  enum { PARTS = 4, EACH = 25 };
  const int64_t moments = 1;
  double x[PARTS * EACH], part[PARTS][3], total[3];
  sn__tensor in[PARTS + 1];
  double mean = 0, variance = 0;
  for (int i = 0; i < PARTS * EACH; i++) {
    x[i] = 1e9 + sin(i) * (1 + i / 10.0);
    mean += (x[i] - 1e9) / (PARTS * EACH);
  }
  for (int i = 0; i < PARTS * EACH; i++)
    variance += pow(x[i] - 1e9 - mean, 2) / (PARTS * EACH);
  for (int p = 0; p < PARTS; p++) {
    const sn__tensor rows = {x + (ptrdiff_t)p * EACH, SN_F64, {2, {EACH, 1}}};
    run_op("batch_moments", NULL, &rows, 1, part[p], 3);
    in[p + (p > 1)] = (sn__tensor){part[p], SN_F64, {1, {3}}};
  }
  double none[3] = {0}; /* a part without rows */
  in[2] = (sn__tensor){none, SN_F64, {1, {3}}};
  run_op("batch_total", &moments, in, PARTS + 1, total, 3);
  ck_assert_double_eq_tol(total[0], 1e9 + mean, 1e-6);
  ck_assert_double_eq_tol(total[1] / variance, 1, 1e-7);
  ck_assert_double_eq(total[2], PARTS * EACH);
}
END_TEST

/* Micro-batches without an element of the ragged input. */
START_TEST(empty_micro_batches) {
  same_as_whole(1, ROWS, 8);
  same_as_whole(1, ROWS, ROWS);
}
END_TEST

START_TEST(a_check_that_can_fail) {
  const setting parts = {"cpu:0", SN_PIPELINE_GPIPE, 3, NULL, 0};
  result one = train_one(&whole, false, 1, ROWS, 0), many = train_one(&parts, false, 1, ROWS, 0);
  result synced = train(&whole, 1, ROWS, 0);
  const char *name = "";
  ck_assert_double_gt(apart(&many, &one, &name), 1e-2);
  /* One batch is the same with sync and without, but for the order of sums. */
  ck_assert_double_le(apart(&synced, &one, &name), 1e-6);
  free_result(&one);
  free_result(&many);
  free_result(&synced);
}
END_TEST

START_TEST(same_bits_on_any_placement) {
  static const sn_pin two[] = {{"a", "cpu:0"}, {"b", "cpu:1"}, {"c", "cpu:0"}};
  static const sn_pin other[] = {{"a", "cpu:1"}, {"b", "cpu:1"}, {"c", "cpu:0"}};
  static const sn_pin three[] = {{"a", "cpu:2"}, {"b", "cpu:0"}, {"c", "cpu:1"}};
  for (int64_t parts = 2; parts <= 4; parts += 2) {
    const setting settings[] = {{"cpu:0", SN_PIPELINE_GPIPE, parts, NULL, 0},
                                {"cpu*2", SN_PIPELINE_GPIPE, parts, NULL, 0},
                                {"cpu*2", SN_PIPELINE_GPIPE, parts, two, 3},
                                {"cpu*2", SN_PIPELINE_GPIPE, parts, other, 3},
                                {"cpu*3", SN_PIPELINE_GPIPE, parts, three, 3}};
    char first[65] = "";
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
      result r = train(&settings[i], STEPS, ROWS, 0);
      if (i == 0) memcpy(first, r.hex, sizeof first);
      ck_assert_msg(strcmp(first, r.hex) == 0, "%d parts, setting %zu: other bits", (int)parts, i);
      ck_assert_uint_gt(sn_trainer_pipeline(r.trainer).stages, 2);
      free_result(&r);
    }
  }
}
END_TEST

/* Fewer rows than micro-batches run as the one batch that they are. */
START_TEST(few_rows) {
  const setting s = {"cpu*2", SN_PIPELINE_GPIPE, 5, NULL, 0};
  result few = train(&s, STEPS, 4, 0), one = train(&whole, STEPS, 4, 0);
  ck_assert_str_eq(few.hex, one.hex);
  free_result(&few);
  free_result(&one);
}
END_TEST

START_TEST(where_it_cannot_be) {
  sn_value in[3];
  sn_graph *g = NULL;
  sn_trainer *t = NULL;
  ck_sn_ok(sn_graph_create(&g));
  build(g, true, in);
  const setting after = {"cpu:0", SN_PIPELINE_NONE, 4, NULL, 0};
  ck_sn_fails(make_trainer(g, &after, &sgd, &t), SN_CODE_INVALID,
              "needs all 4 micro-batches before one goes on, and they run one after the other: use "
              "the pipeline gpipe");
  for (int p = SN_PIPELINE_1F1B; p <= SN_PIPELINE_ZERO_BUBBLE; p++) {
    const setting early = {"cpu*2", (sn_pipeline)p, 4, NULL, 0};
    ck_sn_fails(make_trainer(g, &early, &sgd, &t), SN_CODE_INVALID,
                "they go back one by one in this pipeline");
  }
  sn_graph_free(g);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("sync_norm");
  TCase *t = tcase_create("sync");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, gradients_are_the_whole_batch_s);
  tcase_add_test(t, a_mean_far_from_zero);
  tcase_add_test(t, empty_micro_batches);
  tcase_add_test(t, a_check_that_can_fail);
  tcase_add_test(t, same_bits_on_any_placement);
  tcase_add_test(t, few_rows);
  tcase_add_test(t, where_it_cannot_be);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
