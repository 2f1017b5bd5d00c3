/* SPDX-License-Identifier: Apache-2.0 */
#include "io/graph_json.h"

#include <locale.h>

#include "core/autodiff.h"
#include "core/verify.h"
#include "tests/core/toy_ops.h"
#include "tests/fail_alloc.h"

/* Something of everything. */
static sn_graph *sample(void) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_sequence s = sn_sequence_input(g, "visits", SN_F64, 2);
  sn_value like = sn_sequence_input_like(g, "codes", SN_I64, 0, s);
  sn_value dense = sn_input_shaped(g, "image", SN_F64, 2, (int64_t[]){3, 5});
  sn_value weights = sn_input(g, "weights", SN_F64, 0);
  sn_module_begin(g, "net");
  sn_module_begin(g, "inner");
  sn_value w = sn_variable(g, "w", SN_F64, SN_SHAPE(TOY_LENGTH), .no_decay = true);
  sn_value f = sn_variable(g, "f", SN_F32, SN_SHAPE(2, 3), .frozen = true);
  sn_value x = node1(g, &sn__op_tanh, w);
  sn_module_end(g);
  sn_value c = sn_constant(g, SN_F64, SN_SHAPE(TOY_LENGTH), (double[]){1, -0.1, 1e300, 0});
  sn_value bytes = sn_constant(g, SN_U8, SN_SHAPE(5), (uint8_t[]){0, 1, 254, 255, 7});
  tagged_attrs a = {.count = -3,
                    .huge = INT64_MIN + 2,
                    .factor = 0.1,
                    .limit = -(double)INFINITY,
                    .axes = {3, {2, INT64_MAX, -1}}};
  sn_value in[3] = {like, sn__value_at(g, 0), s.offsets};
  sn__node_add(g, &sn__op_tagged, &a, in, 3, "odd \"name\"", NULL);
  sn_value two[2];
  sn__node_add(g, &sn__op_split, NULL, &x, 1, NULL, two);
  sn_value y = node2(g, &sn__op_mul, two[1], c);
  node1(g, &sn__op_tanh, y);
  sn_module_end(g);
  sn_output(g, "y", y);
  sn_output(g, "dense", dense);
  sn_output(g, "bytes", bytes);
  sn_output(g, "f", f);
  sn__graph_add_loss(g, "main", node1(g, &sn__op_sum, y), weights, 0, 0.7);
  sn__graph_add_loss(g, NULL, node1(g, &sn__op_sum, x), sn__value_at(g, 0), 1, 1.0 / 3);
  ck_sn_ok(sn_graph_status(g));
  return g;
}

static char *write_text(const sn_graph *g) {
  char *text = NULL;
  ck_sn_ok(sn__graph_to_json(g, &text));
  return text;
}

static void same_nodes(const sn_graph *a, const sn_graph *b) {
  ck_assert_uint_eq(a->n_nodes, b->n_nodes);
  for (size_t i = 1; i < a->n_nodes; i++) {
    const sn__node *m = &a->nodes[i], *n = &b->nodes[i];
    ck_assert_ptr_eq(m->op, n->op);
    ck_assert_str_eq(m->name, n->name);
    ck_assert_uint_eq(m->module, n->module);
    ck_assert_uint_eq(m->n_in, n->n_in);
    ck_assert_mem_eq(m->in, n->in, m->n_in * sizeof *m->in);
    ck_assert_mem_eq(m->out, n->out, m->n_out * sizeof *m->out);
    if (!sn__node_is_source(m)) ck_assert_uint_eq(m->rng_key, n->rng_key);
    if (m->op->attrs_size > 0) ck_assert_mem_eq(m->attrs, n->attrs, m->op->attrs_size);
  }
}

static void same_tables(const sn_graph *a, const sn_graph *b) {
  ck_assert_uint_eq(a->n_values, b->n_values);
  for (size_t i = 1; i < a->n_values; i++) {
    ck_assert_str_eq(a->values[i].name, b->values[i].name);
    ck_assert_int_eq(a->values[i].dtype, b->values[i].dtype);
    ck_assert_int_eq(a->values[i].kind, b->values[i].kind);
    ck_assert(sn_shape_equal(&a->values[i].shape, &b->values[i].shape));
  }
  ck_assert_uint_eq(a->n_inputs, b->n_inputs);
  for (size_t i = 0; i < a->n_inputs; i++) {
    ck_assert_int_eq(a->inputs[i].role, b->inputs[i].role);
    ck_assert_int_eq(a->inputs[i].ragged, b->inputs[i].ragged);
    ck_assert_uint_eq(a->inputs[i].loss, b->inputs[i].loss);
  }
  ck_assert_uint_eq(a->n_variables, b->n_variables);
  for (size_t i = 0; i < a->n_variables; i++) {
    ck_assert_int_eq(a->variables[i].frozen, b->variables[i].frozen);
    ck_assert_int_eq(a->variables[i].no_decay, b->variables[i].no_decay);
  }
  ck_assert_uint_eq(a->n_constants, b->n_constants);
  for (size_t i = 0; i < a->n_constants; i++) {
    ck_assert_uint_eq(a->constants[i].bytes, b->constants[i].bytes);
    ck_assert_mem_eq(a->constants[i].data, b->constants[i].data, a->constants[i].bytes);
  }
  ck_assert_uint_eq(a->n_losses, b->n_losses);
  for (size_t i = 0; i < a->n_losses; i++) {
    ck_assert_str_eq(a->losses[i].name, b->losses[i].name);
    ck_assert_uint_eq(a->losses[i].seed, b->losses[i].seed);
    ck_assert_uint_eq(a->losses[i].weights, b->losses[i].weights);
    ck_assert_int_eq(a->losses[i].symbol, b->losses[i].symbol);
    ck_assert_double_eq(a->losses[i].lambda, b->losses[i].lambda);
  }
  ck_assert_uint_eq(a->n_raggeds, b->n_raggeds);
  ck_assert_uint_eq(a->raggeds[0].offsets, b->raggeds[0].offsets);
  ck_assert_uint_eq(a->n_outputs, b->n_outputs);
}

START_TEST(there_and_back) {
  /* Where such a locale is installed, it must not show in the text. */
  if (_i == 1) setlocale(LC_ALL, "de_DE.UTF-8");
  sn_graph *g = sample(), *back = NULL;
  char *text = write_text(g);
  ck_sn_ok(sn__graph_from_json(text, strlen(text), &back));
  same_nodes(g, back);
  same_tables(g, back);
  char *again = write_text(back);
  ck_assert_str_eq(text, again);
  /* It goes on as the original would: draws, names, training. */
  sn_graph *t = NULL;
  ck_sn_ok(sn__differentiate(back, &t));
  sn_graph_free(t);
  sn__free(text);
  sn__free(again);
  sn_graph_free(g);
  sn_graph_free(back);
}
END_TEST

START_TEST(only_forward_graphs) {
  sn_graph *g = sample(), *t = NULL;
  char *text = NULL;
  ck_sn_ok(sn__differentiate(g, &t));
  ck_sn_fails(sn__graph_to_json(t, &text), SN_CODE_INVALID, "only a forward graph");
  sn_graph_free(g);
  sn_graph_free(t);
}
END_TEST

/* Replaces the first `from` in the sample's text and reads it. */
static void altered(const char *from, const char *to, sn_code code, const char *words) {
  sn_graph *g = sample(), *back = NULL;
  char *text = write_text(g), *at = strstr(text, from);
  ck_assert_msg(at != NULL, "'%s' is not in the text", from);
  char *changed = sn__format("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  ck_sn_fails(sn__graph_from_json(changed, strlen(changed), &back), code, words);
  ck_assert_ptr_null(back);
  sn__free(changed);
  sn__free(text);
  sn_graph_free(g);
}

START_TEST(alterations) {
  static const struct {
    const char *from, *to, *words;
    sn_code code;
  } cases[] = {
      {"\"sennit graph\"", "\"other\"", "not a sennit graph", SN_CODE_CORRUPT},
      {"\"min_reader\": 1", "\"min_reader\": 2", "needs a reader of version 2",
       SN_CODE_UNSUPPORTED},
      {"\"op\": \"tanh\"", "\"op\": \"tanhh\"", "operation 'tanhh'", SN_CODE_UNSUPPORTED},
      {"\"version\": 3", "\"version\": 4", "needs version 4 of operation 'tagged'",
       SN_CODE_UNSUPPORTED},
      {"\"version\": 3", "\"version\": 0", "'version'", SN_CODE_CORRUPT},
      {"\"factor\"", "\"factory\"", "attribute 'factory'", SN_CODE_UNSUPPORTED},
      {"\"count\": -3", "\"count\": -3.5", "'count' of operation 'tagged' is not a whole number",
       SN_CODE_CORRUPT},
      {"\"axes\": [2", "\"axes\": [1, 1, 1, 1, 1, 2", "at most 6", SN_CODE_CORRUPT},
      {"\"in\": [", "\"in\": [999, ", "not a value made before it", SN_CODE_CORRUPT},
      {"\"in\": [", "\"in\": [-1, ", "not a value made before it", SN_CODE_CORRUPT},
      {"\"op\": \"tanh\"", "\"op\": \"tanh_grad\"", "no place in a forward graph", SN_CODE_CORRUPT},
      {"\"op\": \"tanh\"", "\"op\": \"mul\"", "takes 2 to 2 inputs", SN_CODE_CORRUPT},
      {"\"net/inner/tanh\"", "\"else/tanh\"", "does not stand in its module", SN_CODE_CORRUPT},
      {"\"net/tanh\"", "\"net/mul\"", "two nodes have the name", SN_CODE_CORRUPT},
      {"\"net/inner\", \"parent\": 1", "\"net/inner\", \"parent\": 2", "'parent'", SN_CODE_CORRUPT},
      {"\"net/inner\", \"parent\"", "\"not/inner\", \"parent\"", "not beneath its parent",
       SN_CODE_CORRUPT},
      {"AAH+/wc=", "AAH+/w==", "has not the data", SN_CODE_CORRUPT},
      {"AAH+/wc=", "AAH+/wc", "has not the data", SN_CODE_CORRUPT},
      {"AAH+/wc=", "AAH+*wc=", "has not the data", SN_CODE_CORRUPT},
      {"\"f64\"", "\"f65\"", "no element type", SN_CODE_CORRUPT},
      {"\"visits.elements\", 2", "\"visits.element\", 2", "'shape'", SN_CODE_CORRUPT},
      {"\"visits.elements\", 2", "7, 2", "does not fit its ragged structure", SN_CODE_CORRUPT},
      {"\"role\": \"offsets\"", "\"role\": \"seed\"", "'loss'", SN_CODE_CORRUPT},
      {"\"role\": \"offsets\"", "\"role\": \"step\"", "'role'", SN_CODE_CORRUPT},
      {"\"elements\": 1", "\"elements\": 2", "do not belong together", SN_CODE_CORRUPT},
      {"\"elements\": 1", "\"elements\": 1e30", "'elements'", SN_CODE_CORRUPT},
      {"\"losses\": [", "\"losses\": [], \"x\": [", "the seed of no loss", SN_CODE_CORRUPT},
      {"\"losses\": [", "\"loses\": [", "'losses' is not a list", SN_CODE_CORRUPT},
      {"\"lambda\": 0.6", "\"lambda\": \"inf\", \"x\": 0.6", "does not fit", SN_CODE_CORRUPT},
      {"\"value\": ", "\"value\": 9", "'value'", SN_CODE_CORRUPT}};
  ck_assert_int_eq(_i < (int)(sizeof cases / sizeof *cases), 1);
  altered(cases[_i].from, cases[_i].to, cases[_i].code, cases[_i].words);
}
END_TEST

/* Cut anywhere, or with any byte changed: a status or a sound graph, nothing else. */
START_TEST(every_prefix_and_many_bytes) {
  sn_graph *g = sample(), *back = NULL;
  char *text = write_text(g);
  size_t n = strlen(text);
  /* The last bracket alone can be missed, never more: the text ends in "]}\n". */
  for (size_t cut = 0; cut < n - 1; cut++)
    ck_sn_fails(sn__graph_from_json(text, cut, &back), SN_CODE_CORRUPT, "not JSON");
  toy_state = 1;
  int sound = 0;
  for (int round = 0; round < 4000; round++) {
    uint32_t at = toy_random((uint32_t)n);
    char old = text[at];
    text[at] = (char)toy_random(256);
    sn_status status = sn__graph_from_json(text, n, &back);
    if (status == SN_OK) {
      ck_sn_ok(sn__verify_structure(back));
      sn_graph_free(back);
      sound++;
    }
    sn_status_free(status);
    text[at] = old;
  }
  ck_assert_int_gt(sound, 10);
  sn__free(text);
  sn_graph_free(g);
}
END_TEST

static sn_status copy_by_text(void *arg) {
  char *text = NULL;
  sn_graph *back = NULL;
  SN_TRY(sn__graph_to_json(arg, &text));
  sn_status status = sn__graph_from_json(text, strlen(text), &back);
  sn__free(text);
  if (status == SN_OK) sn_graph_free(back);
  return status;
}

START_TEST(out_of_memory) {
  sn_graph *g = sample();
  ck_assert_int_gt(sn_fail_alloc_every_call(copy_by_text, g), 40);
  sn_graph_free(g);
}
END_TEST

static Suite *graph_json_suite(void) {
  Suite *s = suite_create("graph_json");
  TCase *c = tcase_create("graph_json");
  tcase_add_loop_test(c, there_and_back, 0, 2);
  tcase_add_test(c, only_forward_graphs);
  tcase_add_loop_test(c, alterations, 0, 30);
  tcase_add_test(c, every_prefix_and_many_bytes);
  tcase_add_test(c, out_of_memory);
  suite_add_tcase(s, c);
  return s;
}

SN_TEST_MAIN(graph_json_suite)
