/* SPDX-License-Identifier: Apache-2.0 */
/* The graph as a container and a builder: sticky status, names, symbols, modules, clones. */
#include "core/verify.h"
#include "tests/core/toy_ops.h"
#include "tests/fail_alloc.h"

static sn_graph *new_graph(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  return g;
}

static sn_value vector(sn_graph *g, const char *name, int64_t n) {
  return sn_variable(g, name, SN_F64, SN_SHAPE(n));
}

START_TEST(the_first_mistake_sticks) {
  sn_graph *g = new_graph();
  sn_module_begin(g, "net");
  sn_value a = vector(g, "a", 3), b = vector(g, "b", 4);
  sn_value bad = sn__node_add(g, &sn__op_add, NULL, (sn_value[]){a, b}, 2, "joined", NULL);
  ck_assert(!sn_value_ok(bad));
  size_t nodes = g->n_nodes;
  sn_value later = node2(g, &sn__op_mul, bad, a);
  ck_assert(!sn_value_ok(later));
  vector(g, "a", 3); /* would be a second mistake */
  sn_module_end(g);
  sn_module_end(g); /* a third */
  ck_assert_uint_eq(g->n_nodes, nodes);
  /* Where, what, and every input with its type and shape. */
  sn_status status = sn_graph_status(g);
  ck_assert_str_eq(sn_status_message(status),
                   "add 'net/joined': inputs differ in shape (inputs: 'net/a' f64 [3], 'net/b' f64 "
                   "[4])");
  ck_assert_int_eq(sn_status_code(status), SN_CODE_INVALID);
  sn_status_free(status);
  ck_sn_fails(sn_graph_status(g), SN_CODE_INVALID, "differ in shape"); /* as often as asked */
  sn_graph_free(g);
}
END_TEST

START_TEST(names_are_unique) {
  sn_graph *g = new_graph();
  sn_value a = vector(g, "a", 3);
  sn_value first = node1(g, &sn__op_tanh, a), second = node1(g, &sn__op_tanh, a);
  sn_value named = sn__node_add(g, &sn__op_tanh, NULL, &a, 1, "tanh_7", NULL);
  sn_value third = node1(g, &sn__op_tanh, a);
  ck_assert_str_eq(sn_value_name(first), "tanh");
  ck_assert_str_eq(sn_value_name(second), "tanh_1");
  ck_assert_str_eq(sn_value_name(named), "tanh_7");
  for (size_t i = 1; i < g->n_nodes; i++)
    for (size_t j = 1; j < i; j++)
      ck_assert_str_ne(g->nodes[i].name, g->nodes[j].name);
  (void)third;
  sn_value pair[2];
  sn__node_add(g, &sn__op_split, NULL, &a, 1, NULL, pair);
  ck_assert_str_eq(sn_value_name(pair[0]), "split");
  ck_assert_str_eq(sn_value_name(pair[1]), "split:1");
  sn_graph_free(g);
}
END_TEST

START_TEST(modules_nest_and_number) {
  sn_graph *g = new_graph();
  sn_module_begin(g, "visits");
  sn_module_begin(g, "lstm");
  sn_value w = vector(g, "kernel", 3);
  sn_module_end(g);
  sn_module_begin(g, "lstm");
  sn_value w1 = vector(g, "kernel", 3);
  sn_value x = node1(g, &sn__op_tanh, w1);
  sn_module_end(g);
  sn_module_end(g);
  ck_assert_str_eq(sn_value_name(w), "visits/lstm/kernel");
  ck_assert_str_eq(sn_value_name(w1), "visits/lstm_1/kernel");
  ck_assert_str_eq(sn_value_name(x), "visits/lstm_1/tanh");
  const sn__module *m = &g->modules[sn__producer(g, x.index)->module];
  ck_assert_str_eq(m->path, "visits/lstm_1");
  ck_assert_str_eq(g->modules[m->parent].path, "visits");
  ck_assert_uint_eq(g->module, 0);
  sn_module_begin(g, "bad name");
  ck_sn_fails(sn_graph_status(g), SN_CODE_INVALID, "module 'bad name'");
  sn_graph_free(g);
}
END_TEST

/* Draws are keyed by module path and op ordinal: another module before changes nothing. */
START_TEST(draws_do_not_depend_on_other_modules) {
  uint64_t keys[2];
  for (int extra = 0; extra < 2; extra++) {
    sn_graph *g = new_graph();
    sn_value a = vector(g, "a", 3);
    for (int i = 0; i < extra; i++) {
      sn_module_begin(g, "other");
      node1(g, &sn__op_tanh, a);
      sn_module_end(g);
    }
    sn_module_begin(g, "net");
    node1(g, &sn__op_tanh, a);
    sn_value x = node1(g, &sn__op_tanh, a);
    sn_module_end(g);
    keys[extra] = sn__producer(g, x.index)->rng_key;
    sn_graph_free(g);
  }
  ck_assert_uint_eq(keys[0], keys[1]);
  ck_assert_uint_ne(sn__mix_key("net", 0), sn__mix_key("net", 1));
  ck_assert_uint_ne(sn__mix_key("net", 0), sn__mix_key("nets", 0));
}
END_TEST

START_TEST(ragged_inputs) {
  sn_graph *g = new_graph();
  sn_sequence s = sn_sequence_input(g, "visits", SN_F32, 32);
  sn_value labels = sn_sequence_input_like(g, "codes", SN_I64, 0, s);
  sn_set set = sn_set_input(g, "labs", SN_F32, 16);
  char text[64];
  sn_shape shape = sn_value_shape(s.values);
  ck_assert_str_eq(sn_shape_text(g, &shape, text, sizeof text), "[visits.elements, 32]");
  shape = sn_value_shape(labels);
  ck_assert_str_eq(sn_shape_text(g, &shape, text, sizeof text), "[visits.elements]");
  shape = sn_value_shape(s.offsets);
  ck_assert_str_eq(sn_shape_text(g, &shape, text, sizeof text), "[batch + 1]");
  ck_assert_int_eq(sn_value_dtype(s.offsets), SN_I32);
  ck_assert_int_eq(sn__value_ragged(g, labels), 0);
  ck_assert_int_eq(sn__value_ragged(g, set.values), 1);
  ck_assert_int_eq(sn__offsets_ragged(g, set.offsets), 1);
  ck_assert_int_eq(sn__offsets_ragged(g, set.values), -1);
  ck_assert_uint_eq(sn_graph_input_count(g), 5);
  sn_input(g, "labs", SN_F32, 3);
  ck_sn_fails(sn_graph_status(g), SN_CODE_INVALID, "input 'labs' exists already");
  sn_graph_free(g);
}
END_TEST

START_TEST(mistakes_in_words) {
  static const char *const words[] = {"dimension 1 is 0",
                                      "exists already",
                                      "belongs to another",
                                      "takes 2 to 2 inputs",
                                      "input 1 is missing",
                                      "without a module begun",
                                      "is not a value of this graph",
                                      "a constant of 3 elements needs their numbers"};
  sn_graph *g = new_graph(), *other = new_graph();
  sn_value a = vector(g, "a", 3), b = vector(other, "b", 3);
  switch (_i) {
  case 0: sn_input_shaped(g, "x", SN_F32, 1, (int64_t[]){0}); break;
  case 1: vector(g, "a", 3); break;
  case 2: node2(g, &sn__op_add, a, b); break;
  case 3: node1(g, &sn__op_add, a); break;
  case 4: node2(g, &sn__op_add, a, sn__value_at(g, 0)); break;
  case 5: sn_module_end(g); break;
  case 7: sn_constant(g, SN_F32, SN_SHAPE(3), NULL); break;
  default: sn_output(g, "y", b);
  }
  ck_sn_fails(sn_graph_status(g), SN_CODE_INVALID, words[_i]);
  sn_graph_free(g);
  sn_graph_free(other);
}
END_TEST

static sn_graph *sample(void) {
  sn_graph *g = new_graph();
  sn_module_begin(g, "net");
  sn_value w = vector(g, "w", TOY_LENGTH);
  sn_value c = sn_constant(g, SN_F64, SN_SHAPE(TOY_LENGTH), (double[TOY_LENGTH]){1, 2, 3, 4});
  sn_value x = node2(g, &sn__op_mul, w, c);
  sn_module_end(g);
  sn_sequence_input(g, "s", SN_F32, 2);
  sn_output(g, "out", x);
  sn__graph_add_loss(g, "first", node1(g, &sn__op_sum, x), sn__value_at(g, 0), 0, 0.5);
  sn__graph_add_loss(g, "first", node1(g, &sn__op_sum, x), sn__value_at(g, 0), 0, 2);
  return g;
}

START_TEST(clones_stand_alone) {
  sn_graph *g = sample(), *copy = NULL;
  ck_sn_ok(sn__graph_clone(g, &copy));
  sn_value w = sn_graph_find_variable(g, "net/w");
  sn_graph_free(g);
  ck_sn_ok(sn__verify_structure(copy));
  ck_assert_str_eq(copy->values[w.index].name, "net/w");
  ck_assert_double_eq(((double *)copy->constants[0].data)[3], 4);
  ck_assert_str_eq(copy->losses[1].name, "first_1");
  ck_assert_str_eq(copy->inputs[copy->n_inputs - 1].name, "loss/first_1/seed");
  ck_assert_uint_eq(copy->inputs[copy->n_inputs - 1].loss, 1);
  /* It can be built on. */
  sn_value more = node1(copy, &sn__op_tanh, sn__value_at(copy, w.index));
  ck_sn_ok(sn_graph_status(copy));
  ck_assert(sn_value_ok(more));
  sn_graph_free(copy);
}
END_TEST

START_TEST(a_failed_graph_is_not_cloned) {
  sn_graph *g = new_graph(), *copy = NULL;
  sn_module_end(g);
  ck_sn_fails(sn__graph_clone(g, &copy), SN_CODE_INVALID, "without a module");
  ck_assert_ptr_null(copy);
  sn_graph_free(g);
}
END_TEST

static sn_status build_and_clone(void *arg) {
  (void)arg;
  sn_graph *g = NULL, *copy = NULL;
  SN_TRY(sn_graph_create(&g));
  sn_module_begin(g, "net");
  sn_value w = vector(g, "w", 3);
  sn_output(g, "y", node1(g, &sn__op_tanh, w));
  sn_module_end(g);
  sn_sequence_input(g, "s", SN_F32, 2);
  sn__graph_add_loss(g, NULL, node1(g, &sn__op_sum, w), sn__value_at(g, 0), 0, 1);
  sn_status status = sn__graph_clone(g, &copy);
  sn_graph_free(g);
  if (status == SN_OK) sn_graph_free(copy);
  return status;
}

START_TEST(out_of_memory) {
  ck_assert_int_gt(sn_fail_alloc_every_call(build_and_clone, NULL), 20);
}
END_TEST

static Suite *graph_suite(void) {
  Suite *s = suite_create("graph");
  TCase *c = tcase_create("graph");
  tcase_add_test(c, the_first_mistake_sticks);
  tcase_add_test(c, names_are_unique);
  tcase_add_test(c, modules_nest_and_number);
  tcase_add_test(c, draws_do_not_depend_on_other_modules);
  tcase_add_test(c, ragged_inputs);
  tcase_add_loop_test(c, mistakes_in_words, 0, 8);
  tcase_add_test(c, clones_stand_alone);
  tcase_add_test(c, a_failed_graph_is_not_cloned);
  tcase_add_test(c, out_of_memory);
  suite_add_tcase(s, c);
  return s;
}

SN_TEST_MAIN(graph_suite)
