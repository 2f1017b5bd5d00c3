/* SPDX-License-Identifier: Apache-2.0 */
#include "core/autodiff.h"

#include <stdio.h>

#include "tests/core/toy_ops.h"
#include "tests/fail_alloc.h"

static sn_value vector(sn_graph *g, const char *name) {
  return sn_variable(g, name, SN_F64, SN_SHAPE(TOY_LENGTH));
}

static sn_graph *new_graph(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  return g;
}

static void add_loss(sn_graph *g, sn_value x) {
  sn__graph_add_loss(g, NULL, node1(g, &sn__op_sum, x), sn__value_at(g, 0), 0, 1);
}

static sn_graph *differentiate(sn_graph *g) {
  sn_graph *t = NULL;
  ck_sn_ok(sn_graph_status(g));
  ck_sn_ok(sn__differentiate(g, &t));
  return t;
}

/* ---- random graphs: the slope along a random direction ------------------------------------- */

typedef struct net {
  sn_graph *g;
  uint32_t variables;
} net;

static net random_net(uint64_t seed) {
  toy_state = seed;
  net n = {new_graph(), 2 + toy_random(4)};
  sn_value pool[64];
  uint32_t count = 0;
  for (uint32_t v = 0; v < n.variables; v++) {
    char name[16];
    snprintf(name, sizeof name, "v%u", v);
    pool[count++] = vector(n.g, name);
  }
  for (uint32_t i = 0; i < 4 + toy_random(20); i++) {
    sn_value a = pool[toy_random(count)], b = pool[toy_random(count)], two[2];
    if (toy_random(3) == 0) sn_module_begin(n.g, "m");
    switch (toy_random(5)) {
    case 0: pool[count++] = node2(n.g, &sn__op_add, a, b); break;
    case 1: pool[count++] = node2(n.g, &sn__op_mul, a, b); break;
    case 2: pool[count++] = node1(n.g, &sn__op_tanh, a); break;
    case 3: pool[count++] = node1(n.g, &sn__op_round, a); break;
    default:
      sn__node_add(n.g, &sn__op_split, NULL, &a, 1, NULL, two);
      pool[count++] = two[0];
      pool[count++] = two[1];
    }
    if (n.g->module != 0) sn_module_end(n.g);
  }
  /* The losses read the last values and the first variable, which is therefore always trained. */
  for (uint32_t l = 0; l < 1 + toy_random(3); l++) {
    sn_value x = node1(n.g, &sn__op_tanh, pool[count - 1 - l]);
    add_loss(n.g, node2(n.g, &sn__op_add, x, pool[0]));
  }
  return n;
}

static double total_loss(const sn_graph *t, double (*values)[TOY_LENGTH]) {
  double total = 0;
  toy_run(t, values);
  for (size_t l = 0; l < t->n_losses; l++)
    total += values[t->losses[l].seed][0] * values[t->losses[l].sum][0];
  return total;
}

START_TEST(slopes_of_random_graphs) {
  net n = random_net((uint64_t)_i + 1);
  sn_graph *t = differentiate(n.g);
  sn_graph_free(n.g);
  double(*values)[TOY_LENGTH] = calloc(t->n_values, sizeof *values);
  double(*start)[TOY_LENGTH] = calloc(t->n_values, sizeof *start);
  double(*along)[TOY_LENGTH] = calloc(t->n_values, sizeof *along);
  for (size_t v = 0; v < t->n_variables; v++)
    for (int k = 0; k < TOY_LENGTH; k++) {
      start[t->variables[v].value][k] = toy_number();
      along[t->variables[v].value][k] = toy_number();
    }
  for (size_t l = 0; l < t->n_losses; l++)
    start[t->losses[l].seed][0] = 0.5 + (double)l;
  const double h = 1e-6;
  double ends[2];
  for (int side = 0; side < 2; side++) {
    memcpy(values, start, t->n_values * sizeof *values);
    for (size_t v = 0; v < t->n_variables; v++)
      for (int k = 0; k < TOY_LENGTH; k++)
        values[t->variables[v].value][k] += (side == 0 ? -h : h) * along[t->variables[v].value][k];
    ends[side] = total_loss(t, values);
  }
  memcpy(values, start, t->n_values * sizeof *values);
  total_loss(t, values);
  double slope = 0;
  for (size_t v = 0; v < t->n_variables; v++)
    for (int k = 0; t->variables[v].gradient != 0 && k < TOY_LENGTH; k++)
      slope += values[t->variables[v].gradient][k] * along[t->variables[v].value][k];
  double want = (ends[1] - ends[0]) / (2 * h);
  ck_assert_msg(fabs(slope - want) <= 1e-6 * (1 + fabs(want)), "slope %.9g, differences %.9g",
                slope, want);
  free(values);
  free(start);
  free(along);
  sn_graph_free(t);
}
END_TEST

/* ---- order and homes ----------------------------------------------------------------------- */

START_TEST(one_sum_in_use_order_at_home) {
  sn_graph *g = new_graph();
  sn_module_begin(g, "a");
  sn_value w = vector(g, "w");
  sn_value x = node1(g, &sn__op_tanh, w);
  sn_module_end(g);
  sn_module_begin(g, "b");
  sn_value y = node2(g, &sn__op_mul, x, x); /* two uses in one node */
  sn_module_end(g);
  sn_value z = node2(g, &sn__op_add, y, x); /* the third */
  add_loss(g, z);
  sn_graph *t = differentiate(g);
  const sn__node *sum = sn__producer(t, sn__gradient_of(t, x).index);
  ck_assert_ptr_eq(sum->op, &sn__op_add_n);
  ck_assert_uint_eq(sum->n_in, 3);
  ck_assert_uint_eq(sum->home, x.index);
  ck_assert_str_eq(t->modules[sum->module].path, "a");
  ck_assert_int_eq(sum->phase, SN_BACKWARD);
  /* y's two terms, made in b, by input; then z's, which is z's own gradient passed on. */
  const sn__node *first = sn__producer(t, sum->in[0]), *second = sn__producer(t, sum->in[1]);
  ck_assert_str_eq(t->modules[first->module].path, "b");
  ck_assert_uint_lt(sum->in[0], sum->in[1]);
  ck_assert_uint_eq(first->origin, t->values[y.index].node);
  ck_assert_uint_eq(second->origin, t->values[y.index].node);
  ck_assert_uint_eq(sum->in[2], sn__gradient_of(t, z).index);
  int sums = 0;
  for (size_t i = 1; i < t->n_nodes; i++)
    sums += t->nodes[i].op == &sn__op_add_n;
  ck_assert_int_eq(sums, 1); /* single terms pass, the variable's own module made its only one */
  sn_graph_free(t);
  sn_graph_free(g);
}
END_TEST

START_TEST(a_lone_term_from_elsewhere_comes_home) {
  sn_graph *g = new_graph();
  sn_module_begin(g, "a");
  sn_value w = vector(g, "w");
  sn_module_end(g);
  sn_module_begin(g, "b");
  sn_value x = node1(g, &sn__op_tanh, w);
  sn_module_end(g);
  add_loss(g, x);
  sn_graph *t = differentiate(g);
  const sn__node *home = sn__producer(t, t->variables[0].gradient);
  ck_assert_ptr_eq(home->op, &sn__op_add_n);
  ck_assert_uint_eq(home->n_in, 1);
  ck_assert_uint_eq(home->home, w.index);
  ck_assert_str_eq(t->modules[home->module].path, "a");
  sn_graph_free(t);
  sn_graph_free(g);
}
END_TEST

START_TEST(the_forward_graph_stays) {
  net n = random_net(7);
  size_t nodes = n.g->n_nodes, values = n.g->n_values;
  sn_graph *t = differentiate(n.g);
  ck_assert_uint_eq(n.g->n_nodes, nodes);
  ck_assert_uint_eq(n.g->n_values, values);
  for (size_t i = 1; i < nodes; i++)
    ck_assert_str_eq(t->nodes[i].name, n.g->nodes[i].name);
  for (size_t i = nodes; i < t->n_nodes; i++) {
    ck_assert_int_eq(t->nodes[i].phase, SN_BACKWARD);
    ck_assert_uint_ne(t->nodes[i].origin, 0);
    ck_assert_uint_lt(t->nodes[i].origin, nodes);
  }
  sn_graph_free(t);
  sn_graph_free(n.g);
}
END_TEST

START_TEST(frozen_and_unused_variables) {
  sn_graph *g = new_graph();
  sn_value used = vector(g, "used");
  sn_value frozen = sn_variable(g, "frozen", SN_F64, SN_SHAPE(TOY_LENGTH), .frozen = true);
  sn_value idle = vector(g, "idle"), rounded = vector(g, "rounded");
  (void)idle;
  sn_value x = node2(g, &sn__op_mul, used, frozen);
  add_loss(g, node2(g, &sn__op_add, x, node1(g, &sn__op_round, rounded)));
  sn_graph *t = differentiate(g);
  ck_assert(sn_value_ok(sn__gradient_of(t, used)));
  ck_assert(!sn_value_ok(sn__gradient_of(t, frozen)));
  ck_assert_uint_eq(sn__unused_variable_count(t), 2);
  ck_assert_str_eq(sn__unused_variable(t, 0), "idle");
  ck_assert_str_eq(sn__unused_variable(t, 1), "rounded");
  ck_assert_ptr_null(sn__unused_variable(t, 2));
  sn_graph_free(t);
  sn_graph_free(g);
}
END_TEST

/* ---- refusals ------------------------------------------------------------------------------ */

static void refused(sn_graph *g, sn_code code, const char *words) {
  sn_graph *t = NULL;
  ck_sn_fails(sn__differentiate(g, &t), code, words);
  ck_assert_ptr_null(t);
  sn_graph_free(g);
}

START_TEST(refusals) {
  sn_graph *g = new_graph();
  vector(g, "w");
  refused(g, SN_CODE_INVALID, "no loss");

  g = new_graph();
  vector(g, "w");
  add_loss(g, sn_constant(g, SN_F64, SN_SHAPE(TOY_LENGTH), (double[TOY_LENGTH]){1, 2, 3}));
  refused(g, SN_CODE_INVALID, "depends on no trainable variable");

  g = new_graph();
  add_loss(g, node1(g, &sn__op_opaque, vector(g, "w")));
  refused(g, SN_CODE_UNSUPPORTED, "'opaque'");

  g = new_graph();
  add_loss(g, node2(g, &sn__op_cheat, vector(g, "w"), vector(g, "v")));
  refused(g, SN_CODE_INTERNAL, "does not say it saves");

  g = new_graph();
  add_loss(g, node1(g, &sn__op_misshape, vector(g, "w")));
  refused(g, SN_CODE_INTERNAL, "must be f64 [4]");

  g = new_graph();
  add_loss(g, node2(g, &sn__op_add, vector(g, "w"), sn_variable(g, "v", SN_F64, SN_SHAPE(2))));
  refused(g, SN_CODE_INVALID, "differ in shape");
}
END_TEST

/* An op without a gradient is no obstacle where none flows. */
START_TEST(opaque_beside_the_path) {
  sn_graph *g = new_graph();
  sn_value w = vector(g, "w");
  sn_value c = sn_constant(g, SN_F64, SN_SHAPE(TOY_LENGTH), (double[TOY_LENGTH]){1, 2, 3});
  sn_output(g, "seen", node1(g, &sn__op_opaque, w));
  add_loss(g, node2(g, &sn__op_mul, w, node1(g, &sn__op_opaque, c)));
  sn_graph_free(differentiate(g));
  sn_graph_free(g);
}
END_TEST

START_TEST(two_writers_of_one_variable) {
  sn_graph *g = new_graph();
  sn_value w = vector(g, "w"), x = vector(g, "x");
  node2(g, &sn__op_assign, w, x);
  ck_assert_uint_ne(g->variables[0].commit, 0);
  node2(g, &sn__op_assign, w, x);
  ck_sn_fails(sn_graph_status(g), SN_CODE_INVALID, "writes already");
  sn_graph_free(g);
}
END_TEST

static sn_status build_and_differentiate(void *arg) {
  (void)arg;
  sn_graph *g = NULL, *t = NULL;
  SN_TRY(sn_graph_create(&g));
  sn_value w = vector(g, "w"), x = node1(g, &sn__op_tanh, w);
  add_loss(g, node2(g, &sn__op_mul, x, x));
  sn_status status = sn__differentiate(g, &t);
  sn_graph_free(g);
  if (status == SN_OK) sn_graph_free(t);
  return status;
}

START_TEST(out_of_memory) {
  ck_assert_int_gt(sn_fail_alloc_every_call(build_and_differentiate, NULL), 10);
}
END_TEST

static Suite *autodiff_suite(void) {
  Suite *s = suite_create("autodiff");
  TCase *c = tcase_create("autodiff");
  tcase_add_loop_test(c, slopes_of_random_graphs, 0, 300);
  tcase_add_test(c, one_sum_in_use_order_at_home);
  tcase_add_test(c, a_lone_term_from_elsewhere_comes_home);
  tcase_add_test(c, the_forward_graph_stays);
  tcase_add_test(c, frozen_and_unused_variables);
  tcase_add_test(c, refusals);
  tcase_add_test(c, opaque_beside_the_path);
  tcase_add_test(c, two_writers_of_one_variable);
  tcase_add_test(c, out_of_memory);
  suite_add_tcase(s, c);
  return s;
}

SN_TEST_MAIN(autodiff_suite)
