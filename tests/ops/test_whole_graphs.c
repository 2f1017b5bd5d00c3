/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of whole random graphs of the real operations against central differences, and their
 * bits over threads and in place: values used many times, across modules, dense and ragged. */
#include "tests/check_sn.h"
#include "tests/ops/op_test.h"

enum { WIDTH = 4, MOST = 64 };

static const int64_t lengths[] = {3, 0, 5, 1, 2};
static uint64_t state;

static uint32_t pick(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % below;
}

/* Values [batch, WIDTH] and [elements, WIDTH] to choose from. */
typedef struct pool {
  sn_value items[MOST];
  uint32_t count;
} pool;

static sn_value any(const pool *p) {
  return p->items[pick(p->count)];
}

static void add(pool *p, sn_value v) {
  if (p->count < MOST) p->items[p->count++] = v;
}

/* An operation that works on rows of either kind. */
static sn_value step(op_test *t, const pool *p, const sn_value *kernels) {
  sn_graph *g = t->graph;
  const sn_activation smooth[] = {SN_TANH, SN_SIGMOID, SN_GELU, SN_SILU, SN_SOFTPLUS, SN_LINEAR};
  sn_value a = any(p), b = any(p);
  switch (pick(9)) {
  case 0:
    return sn_matmul(g, a, kernels[pick(3)], .transpose_b = pick(2) != 0,
                     .activation = smooth[pick(6)]);
  case 1: return sn_add(g, a, b);
  case 2: return sn_mul(g, a, b);
  case 3: return sn_activate(g, a, smooth[pick(5)]);
  case 4: return sn_softmax(g, a);
  case 5: return sn_layer_norm_op(g, a, sn__value_at(g, 0), sn__value_at(g, 0), 0.1);
  case 6: return sn_slice(g, sn_concat(g, SN_VALUES(a, b, a), .axis = 1), 1, 2, 2 + WIDTH);
  case 7: return sn_sub(g, sn_affine(g, a, 0.5, 0.1), b);
  default: return sn_add_n(g, SN_VALUES(a, b, a));
  }
}

static void build(op_test *t) {
  sn_sequence s = op_sequence(t, WIDTH, lengths, 5, -1, 1);
  pool dense = {0}, ragged = {0};
  sn_value kernels[3];
  add(&ragged, s.values);
  add(&dense, op_param(t, SN_SHAPE(SN_DIM_BATCH, WIDTH), -1, 1));
  for (int k = 0; k < 3; k++)
    kernels[k] = op_param(t, SN_SHAPE(WIDTH, WIDTH), -0.7, 0.7);
  for (uint32_t i = 0; i < 12; i++) {
    const char *const modules[] = {"a", "b", "c"};
    bool inside = pick(3) != 0;
    if (inside) sn_module_begin(t->graph, modules[pick(3)]);
    switch (pick(6)) {
    case 0:
      add(&dense, sn_segment_reduce(t->graph, any(&ragged), s.offsets,
                                    pick(2) != 0 ? SN_SEGMENT_SUM : SN_SEGMENT_MEAN));
      break;
    case 1: add(&ragged, sn_segment_expand(t->graph, any(&dense), s.offsets)); break;
    case 2: add(&ragged, sn_segment_softmax(t->graph, any(&ragged), s.offsets)); break;
    case 3: add(&ragged, step(t, &ragged, kernels)); break;
    default: add(&dense, step(t, &dense, kernels));
    }
    if (inside) sn_module_end(t->graph);
  }
  op_out(t, dense.items[dense.count - 1]);
  op_out(t, ragged.items[ragged.count - 1]);
  op_out(t, any(&dense));
}

/* The builder is called again within a check: each call must make the same graph. */
static uint64_t seed_of_test;
static void build_same(op_test *t) {
  state = seed_of_test;
  build(t);
}
static const op_case same_case = {"", "random graph", build_same, 1e-5};

START_TEST(gradients) {
  seed_of_test = (uint64_t)_i * 7919 + 1;
  op_check_gradient(&same_case);
}
END_TEST

START_TEST(bits) {
  seed_of_test = (uint64_t)_i * 104729 + 5;
  op_check_threads(&same_case, SN_F32);
  op_check_inplace(&same_case);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("whole_graphs");
  TCase *t = tcase_create("random");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, gradients, 0, 60);
  tcase_add_loop_test(t, bits, 0, 20);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
