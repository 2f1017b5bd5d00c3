/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools against PyTorch's numbers; bits of a row alone; shape errors. */
#include <math.h>
#include "core/autodiff.h"
#include "ops/common.h"
#include "tests/check_sn.h"
#include "tests/ops/op_test.h"
#include "tests/ops/golden_images.inc"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void near(const char *name, const char *what, const sn_graph *g, const op_values *v,
                 sn_value value, const double *want, size_t n) {
  ck_assert_msg(sn_value_ok(value), "%s: no %s", name, what);
  ck_assert_uint_eq(v->bytes[value.index] / sizeof(float), n);
  for (size_t i = 0; i < n; i++) {
    double got = op_number(g, v, value, (int64_t)i);
    ck_assert_msg(fabs(got - want[i]) <= 2e-6 * fmax(fabs(want[i]), 1),
                  "%s: %s[%zu] is %.9g, not %.9g", name, what, i, got, want[i]);
  }
}

typedef struct numbers {
  const double *at;
  size_t n;
} numbers;
#define NUMBERS(a)                                                                                 \
  { a, COUNT(a) }

typedef struct golden {
  const char *name;
  int64_t kernel[2], stride[2], padding[2];
  bool mean, count_include_pad; /* of a pool */
  numbers k, y, r, dx, dk, db;
} golden;

#define CONV(n, ...)                                                                               \
  {                                                                                                \
    .name = #n, .k = NUMBERS(k_##n), .y = NUMBERS(y_##n), .r = NUMBERS(r_##n),                     \
    .dx = NUMBERS(dx_##n), .dk = NUMBERS(dk_##n), .db = NUMBERS(db_##n), __VA_ARGS__               \
  }
#define POOL(n, ...)                                                                               \
  { .name = #n, .y = NUMBERS(y_##n), .r = NUMBERS(r_##n), .dx = NUMBERS(dx_##n), __VA_ARGS__ }
#define HALVES .kernel = {2, 2}
#define OVER   .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}
#define ODD    .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}

static const golden goldens[] = {
    CONV(same, .kernel = {3, 3}, .padding = {1, 1}),
    CONV(stride, .kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 0}),
    CONV(point, .kernel = {1, 1}),
    CONV(wide, .kernel = {5, 5}, .stride = {1, 2}, .padding = {4, 2}),
    POOL(max_halves, HALVES),
    POOL(max_over, OVER),
    POOL(max_odd, ODD),
    POOL(avg_halves, HALVES, .mean = true),
    POOL(avg_over, OVER, .mean = true),
    POOL(avg_odd, ODD, .mean = true),
    POOL(avg_pad_halves, HALVES, .mean = true, .count_include_pad = true),
    POOL(avg_pad_over, OVER, .mean = true, .count_include_pad = true),
    POOL(avg_pad_odd, ODD, .mean = true, .count_include_pad = true),
};

static sn_value pool_of(sn_graph *g, const golden *c, sn_value x) {
  const sn_pool2d_options o = {.struct_size = sizeof o,
                               .kernel = {c->kernel[0], c->kernel[1]},
                               .stride = {c->stride[0], c->stride[1]},
                               .padding = {c->padding[0], c->padding[1]},
                               .count_include_pad = c->count_include_pad};
  return c->mean ? sn_avg_pool2d_opt(g, x, &o) : sn_max_pool2d_opt(g, x, &o);
}

START_TEST(as_pytorch) {
  const golden *c = &goldens[_i];
  op_test t;
  op_test_init(&t, SN_F32, false);
  t.extents[SN_SYMBOL_BATCH] = 2;
  sn_graph *g = t.graph;
  sn_value x = op_param_of(&t, SN_SHAPE(SN_DIM_BATCH, 7, 6, 3), image_x, COUNT(image_x));
  sn_value k = sn__value_at(g, 0), b = k, y;
  if (c->k.n > 0) {
    k = op_param_of(&t, SN_SHAPE(c->kernel[0], c->kernel[1], 3, 4), c->k.at, c->k.n);
    b = op_param_of(&t, SN_SHAPE(4), image_b, COUNT(image_b));
    y = sn_conv2d_op(g, x, k, .stride = {c->stride[0], c->stride[1]},
                     .padding = {c->padding[0], c->padding[1]}, .bias = b);
  } else {
    y = pool_of(g, c, x);
  }
  sn_value r = op_data(&t, SN_F32, sn_value_shape(y), c->r.at, c->r.n);
  sn_graph *train;
  op_values v;
  op_differentiate(&t, op_weighted_sum(&t, y, r), &train, &v);
  near(c->name, "y", train, &v, y, c->y.at, c->y.n);
  near(c->name, "dx", train, &v, op_gradient(train, x), c->dx.at, c->dx.n);
  if (c->k.n > 0) {
    near(c->name, "dkernel", train, &v, op_gradient(train, k), c->dk.at, c->dk.n);
    near(c->name, "dbias", train, &v, op_gradient(train, b), c->db.at, c->db.n);
  }
  op_values_free(&v);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

/* Sizes with several chunks of patches, with taps that no pixel meets and pixels that no tap meets.
 */
static const struct sizes {
  int64_t n, h, w, in, kh, kw, out, sh, sw, ph, pw;
} loops[] = {
    {5, 12, 13, 70, 3, 3, 3, 1, 1, 1, 1}, {5, 12, 13, 70, 3, 3, 2, 1, 2, 1, 1},
    {3, 17, 19, 66, 3, 4, 2, 2, 1, 2, 0}, {2, 9, 11, 3, 2, 2, 5, 3, 4, 0, 0},
    {2, 3, 2, 17, 5, 5, 2, 1, 1, 4, 4},   {1, 20, 300, 1, 20, 1, 1, 1, 1, 0, 0},
    {4, 40, 1, 90, 6, 1, 3, 1, 1, 5, 0},
};

/* Adds what each output pixel, tap and pair of channels has to do with y, dx and dk. */
static void by_loops(const struct sizes *s, int64_t oh, int64_t ow, const double *x,
                     const double *k, const double *r, double *y, double *dx, double *dk) {
  for (int64_t p = 0; p < s->n * oh * ow; p++)
    for (int64_t t = 0; t < s->kh * s->kw; t++) {
      const int64_t i = p / ow % oh * s->sh - s->ph + t / s->kw;
      const int64_t j = p % ow * s->sw - s->pw + t % s->kw;
      if (i < 0 || j < 0 || i >= s->h || j >= s->w) continue;
      const int64_t at = ((p / ow / oh * s->h + i) * s->w + j) * s->in;
      for (int64_t c = 0; c < s->in; c++)
        for (int64_t o = 0; o < s->out; o++) {
          const int64_t tap = (t * s->in + c) * s->out + o;
          y[p * s->out + o] += x[at + c] * k[tap];
          dx[at + c] += r[p * s->out + o] * k[tap];
          dk[tap] += r[p * s->out + o] * x[at + c];
        }
    }
}

static void same_numbers(const char *what, int64_t n, const double *got, const double *want) {
  for (int64_t i = 0; i < n; i++)
    ck_assert_msg(fabs(got[i] - want[i]) <= 1e-11 * fmax(1, fabs(want[i])),
                  "%s[%lld] is %.17g, not %.17g", what, (long long)i, got[i], want[i]);
}

/* The convolution of these sizes; its image and kernel in x and k. */
static sn_value conv_of(op_test *t, sn_dtype dtype, const struct sizes *s, sn_value *x,
                        sn_value *k) {
  op_test_init(t, dtype, false);
  t->extents[SN_SYMBOL_BATCH] = s->n;
  *x = op_param(t, SN_SHAPE(SN_DIM_BATCH, s->h, s->w, s->in), -1, 1);
  *k = op_param(t, SN_SHAPE(s->kh, s->kw, s->in, s->out), -1, 1);
  return sn_conv2d_op(t->graph, *x, *k, .stride = {s->sh, s->sw}, .padding = {s->ph, s->pw});
}

START_TEST(as_loops) {
  const struct sizes *s = &loops[_i];
  op_test t;
  sn_value x, k, y = conv_of(&t, SN_F64, s, &x, &k);
  sn_value r = op_noise(&t, sn_value_shape(y), -1, 1);
  sn_graph *train;
  op_values v;
  op_differentiate(&t, op_weighted_sum(&t, y, r), &train, &v);
  const sn_shape out = sn_value_shape(y);
  sn_value dx = op_gradient(train, x);
  sn_value dk = op_gradient(train, k);
  double *want[] = {calloc(1, v.bytes[y.index]), calloc(1, v.bytes[dx.index]),
                    calloc(1, v.bytes[dk.index])};
  by_loops(s, out.dims[1], out.dims[2], v.data[x.index], v.data[k.index], v.data[r.index], want[0],
           want[1], want[2]);
  same_numbers("y", (int64_t)(v.bytes[y.index] / 8), v.data[y.index], want[0]);
  same_numbers("dx", (int64_t)(v.bytes[dx.index] / 8), v.data[dx.index], want[1]);
  same_numbers("dkernel", (int64_t)(v.bytes[dk.index] / 8), v.data[dk.index], want[2]);
  for (int i = 0; i < 3; i++)
    free(want[i]);
  op_values_free(&v);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

/* The same sizes in f32: three threads give the bits of one. */
START_TEST(threads) {
  const struct sizes *s = &loops[_i];
  op_test t;
  sn_value x, k, y = conv_of(&t, SN_F32, s, &x, &k);
  y = sn_max_pool2d(t.graph, y, .kernel = {1, 1});
  op_out(&t, sn_avg_pool2d(t.graph, y, .kernel = {1, 1}));
  sn_graph *train;
  op_values v[2];
  sn__team *team;
  op_differentiate(&t, t.loss_sum, &train, &v[0]);
  ck_sn_ok(sn__team_create(3, &team));
  ck_sn_ok(op_run(&t, train, team, 0, &v[1]));
  for (size_t i = 1; i < train->n_values; i++)
    if (v[0].data[i] != NULL)
      ck_assert_msg(memcmp(v[0].data[i], v[1].data[i], v[0].bytes[i]) == 0, "'%s' differs",
                    train->values[i].name);
  op_values_free(&v[0]);
  op_values_free(&v[1]);
  sn__team_free(team);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

/* What an image gives, forward and back, does not depend on what other images there are, though
 * chunks of patches are cut anywhere in them. */
START_TEST(image_alone) {
  enum { IMAGES = 7, IN = 9 * 8 * 5, DX = 1, Y = 0 };
  double pixels[IMAGES * IN];
  for (int i = 0; i < IMAGES * IN; i++)
    pixels[i] = sin(i * 0.37) * 3;
  float *kept[2][2];
  size_t bytes[2];
  for (int alone = 0; alone < 2; alone++) {
    op_test t;
    op_test_init(&t, SN_F32, false);
    int images = alone ? 1 : IMAGES;
    t.extents[SN_SYMBOL_BATCH] = images;
    sn_graph *g = t.graph;
    sn_value x = op_param_of(&t, SN_SHAPE(SN_DIM_BATCH, 9, 8, 5), pixels + (alone ? 5 * IN : 0),
                             (size_t)images * IN);
    double weights[5 * 5 * 5 * 33];
    for (int i = 0; i < 5 * 5 * 5 * 33; i++)
      weights[i] = cos(i * 0.11);
    sn_value k = op_data(&t, SN_F32, SN_SHAPE(5, 5, 5, 33), weights, COUNT(weights));
    sn_value y = sn_conv2d_op(g, x, k, .padding = {2, 2}, .stride = {1, 2}, .activation = SN_TANH);
    y = sn_max_pool2d(g, y, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1});
    y = sn_avg_pool2d(g, y, .kernel = {3, 2}, .stride = {1, 1}, .padding = {1, 1});
    sn_graph *train;
    op_values v;
    op_differentiate(&t, op_weighted_sum(&t, y, y), &train, &v);
    sn_value of[] = {y, op_gradient(train, x)};
    for (int i = 0; i < 2; i++) {
      bytes[i] = v.bytes[of[i].index] / (size_t)images;
      kept[alone][i] = malloc(bytes[i]);
      memcpy(kept[alone][i], (char *)v.data[of[i].index] + (alone ? 0 : 5 * bytes[i]), bytes[i]);
    }
    op_values_free(&v);
    sn_graph_free(train);
    op_test_free(&t);
  }
  ck_assert_mem_eq(kept[0][Y], kept[1][Y], bytes[Y]);
  ck_assert_mem_eq(kept[0][DX], kept[1][DX], bytes[DX]);
  for (int i = 0; i < 4; i++)
    free(kept[i / 2][i % 2]);
}
END_TEST

/* A NaN is a maximum and stays where its window is; infinities are numbers. */
START_TEST(not_finite) {
  const double x[] = {1, NAN, 2, -INFINITY, -INFINITY, -INFINITY, 3, INFINITY};
  op_test t;
  op_test_init(&t, SN_F32, false);
  sn_value y =
      sn_max_pool2d(t.graph, op_data(&t, SN_F32, SN_SHAPE(1, 1, 8, 1), x, 8), .kernel = {1, 2});
  op_values v;
  ck_sn_ok(op_run(&t, t.graph, NULL, 0, &v));
  ck_assert(isnan(op_number(t.graph, &v, y, 0)));
  ck_assert(op_number(t.graph, &v, y, 1) == 2);
  ck_assert(op_number(t.graph, &v, y, 2) == -(double)INFINITY);
  ck_assert(op_number(t.graph, &v, y, 3) == (double)INFINITY);
  op_values_free(&v);
  op_test_free(&t);
}
END_TEST

/* The first of equals takes a maximum's gradient, as does a first NaN. */
START_TEST(ties) {
  const double x[] = {1, 1, 0, 7, 1, 0, 7, 7, NAN, 2, -1, -1, NAN, 3, -2, -1};
  const double want[] = {1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0};
  op_test t;
  op_test_init(&t, SN_F32, false);
  sn_graph *g = t.graph;
  sn_value v = op_param_of(&t, SN_SHAPE(1, 4, 4, 1), x, 16);
  sn_value y = sn_max_pool2d(g, v, .kernel = {2, 2});
  sn__graph_add_loss(g, NULL, sn__sum_to_shape(g, y, SN_SCALAR_SHAPE), sn__value_at(g, 0),
                     SN_SYMBOL_BATCH, 1);
  sn_graph *train;
  op_values values;
  ck_sn_ok(sn_graph_status(g));
  ck_sn_ok(sn__differentiate(g, &train));
  ck_sn_ok(op_run(&t, train, NULL, 0, &values));
  sn_value dx = op_gradient(train, v);
  for (int i = 0; i < 16; i++)
    ck_assert_msg(op_number(train, &values, dx, i) == want[i], "dx[%d] is %g", i,
                  op_number(train, &values, dx, i));
  op_values_free(&values);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

static sn_value image(op_test *t) {
  return op_noise(t, SN_SHAPE(SN_DIM_BATCH, 5, 4, 3), 0, 1);
}
static sn_value kernel(op_test *t, int64_t h, int64_t w, int64_t in, int64_t out) {
  return op_noise(t, SN_SHAPE(h, w, in, out), 0, 1);
}
static void bad_rank(op_test *t) {
  sn_conv2d_op(t->graph, op_noise(t, SN_SHAPE(SN_DIM_BATCH, 5, 4), 0, 1), kernel(t, 1, 1, 4, 1));
}
static void bad_symbol(op_test *t) {
  sn_conv2d_op(t->graph, op_noise(t, SN_SHAPE(2, SN_DIM_BATCH, 4, 3), 0, 1), kernel(t, 1, 1, 3, 1));
}
static void bad_channels(op_test *t) {
  sn_conv2d_op(t->graph, image(t), kernel(t, 3, 3, 4, 8));
}
static void bad_kernel(op_test *t) {
  sn_conv2d_op(t->graph, image(t), op_noise(t, SN_SHAPE(3, 3, 3), 0, 1));
}
static void bad_size(op_test *t) {
  sn_conv2d_op(t->graph, image(t), kernel(t, 3, 7, 3, 8), .padding = {0, 1});
}
static void bad_bias(op_test *t) {
  sn_conv2d_op(t->graph, image(t), kernel(t, 3, 3, 3, 8), .bias = op_noise(t, SN_SHAPE(3), 0, 1));
}
static void bad_stride(op_test *t) {
  sn_conv2d_op(t->graph, image(t), kernel(t, 3, 3, 3, 8), .stride = {-1, 1});
}
static void bad_padding(op_test *t) {
  sn_conv2d_op(t->graph, image(t), kernel(t, 3, 3, 3, 8), .padding = {-1, 1});
}
static void bad_dtype(op_test *t) {
  sn_conv2d_op(t->graph, op_data(t, SN_U8, SN_SHAPE(2, 5, 4, 3), NULL, 0), kernel(t, 1, 1, 3, 1));
}
static void bad_window(op_test *t) {
  sn_max_pool2d(t->graph, image(t), .kernel = {2});
}
static void bad_window_size(op_test *t) {
  sn_avg_pool2d(t->graph, image(t), .kernel = {6, 2});
}
static void bad_pool_padding(op_test *t) {
  sn_max_pool2d(t->graph, image(t), .kernel = {3, 3}, .padding = {2, 1});
}
static void bad_count(op_test *t) {
  sn_max_pool2d(t->graph, image(t), .kernel = {3, 3}, .count_include_pad = true);
}

static const op_mistake mistakes[] = {
    {bad_rank, "x has shape [batch, 5, 4]; it must be [batch, height, width, channels]"},
    {bad_symbol, "all but the batch of a fixed size"},
    {bad_channels, "x has 3 channels and the kernel reads 4; they must be equal"},
    {bad_kernel, "the kernel has shape [3, 3, 3]; it must be [height, width, channels in"},
    {bad_size, "a kernel of 3 x 7 does not fit into an image of 5 x 4 with padding 0 x 1"},
    {bad_bias, "the bias has shape [3]; it must be [8]"},
    {bad_stride, "stride is -1 x 1; both must be at least 1"},
    {bad_padding, "padding is -1 x 1; neither may be negative"},
    {bad_dtype, "x is u8; it must be f32"},
    {bad_window, "the window is 2 x 0; both must be at least 1"},
    {bad_window_size, "a window of 6 x 2 does not fit into an image of 5 x 4"},
    {bad_pool_padding, "padding is 2 x 1; it must be from 0 to half the window of 3 x 3"},
    {bad_count, "count_include_pad is for means alone"},
};

START_TEST(shape_error) {
  op_check_mistake(&mistakes[_i]);
}
END_TEST

/* The rows that the placement search reads. */
START_TEST(cost) {
  op_test t;
  op_test_init(&t, SN_F32, false);
  sn_value x = op_param(&t, SN_SHAPE(SN_DIM_BATCH, 6, 6, 3), 0, 1);
  sn_value k = op_param(&t, SN_SHAPE(3, 3, 3, 8), 0, 1);
  op_out(&t, sn_conv2d_op(t.graph, x, k, .stride = {2, 2}, .padding = {1, 1}));
  sn__graph_add_loss(t.graph, NULL, t.loss_sum, sn__value_at(t.graph, 0), SN_SYMBOL_BATCH, 1);
  sn_graph *train;
  ck_sn_ok(sn__differentiate(t.graph, &train));
  const double flops = 2.0 * 5 * 3 * 3 * (3 * 3 * 3 * 8);
  int seen = 0;
  for (size_t i = 1; i < train->n_nodes; i++) {
    const sn__node *n = &train->nodes[i];
    if (n->op == NULL || strncmp(n->op->name, "conv2d", 6) != 0) continue;
    sn__tensor in[3], out[1];
    for (uint32_t s = 0; s < n->n_in; s++)
      in[s] = (sn__tensor){NULL, train->values[n->in[s]].dtype,
                           sn__shape_resolve(&train->values[n->in[s]].shape, t.extents)};
    out[0] = (sn__tensor){NULL, train->values[n->out[0]].dtype,
                          sn__shape_resolve(&train->values[n->out[0]].shape, t.extents)};
    sn__exec e = {
        .op = n->op, .attrs = n->attrs, .in = in, .n_in = (int)n->n_in, .out = out, .n_out = 1};
    sn__cost c;
    n->op->cost(&e, &c);
    ck_assert_msg(c.flops == flops, "%s: %g flops, not %g", n->op->name, c.flops, flops);
    ck_assert(c.bytes == 4.0 * (5 * 6 * 6 * 3 + 3 * 3 * 3 * 8 + 5 * 3 * 3 * 8));
    seen++;
  }
  ck_assert_int_eq(seen, 3);
  sn_graph_free(train);
  op_test_free(&t);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("images");
  TCase *t = tcase_create("values");
  tcase_add_loop_test(t, as_pytorch, 0, (int)COUNT(goldens));
  tcase_add_loop_test(t, as_loops, 0, (int)COUNT(loops));
  tcase_add_loop_test(t, threads, 0, (int)COUNT(loops));
  tcase_add_test(t, image_alone);
  tcase_add_test(t, not_finite);
  tcase_add_test(t, ties);
  tcase_add_loop_test(t, shape_error, 0, (int)COUNT(mistakes));
  tcase_add_test(t, cost);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
