/* SPDX-License-Identifier: Apache-2.0 */
/* The passes over whole models: differentiated, with each optimizer and variant, written and read
 * again. SN_WRITE_GRAPHS=<folder> keeps the texts, as seeds for tools/fuzz_graph_json. */
#include <stdio.h>

#include "core/autodiff.h"
#include "core/verify.h"
#include "io/graph_json.h"
#include "layers/layers.h"
#include "models/model.h"
#include "optim/optimize.h"
#include "tests/check_sn.h"

static sn_status build_digits(sn_graph *g) {
  const sn_model_fact facts[] = {{.name = "profile", .features = 16},
                                 {.name = "strokes", .features = 8, .ragged = true},
                                 {.name = "pixels", .features = 3, .ragged = true},
                                 {.name = "digit", .classes = 10}};
  const sn_model_facts all = {sizeof all, 4, facts};
  return sn_model_digits.build(g, &all);
}

static sn_status build_h3(sn_graph *g) {
  return sn_h3_build(g, sn_h3_sizes_of(SN_H3_S));
}

/* Every layer once. */
static sn_status build_all_layers(sn_graph *g) {
  sn_sequence notes = sn_sequence_input(g, "notes", SN_I64, 0);
  sn_set labs = sn_set_input(g, "labs", SN_F32, 5);
  sn_value x = sn_input(g, "x", SN_F32, 6), weights = sn_input(g, "w", SN_F32, 0);
  sn_module_begin(g, "notes");
  sn_sequence h = sn_sequence_embedding(g, notes, .count = 11, .units = 4);
  h = sn_gru(g, h, .units = 3, .layers = 2, .bidirectional = true, .dropout = 0.2);
  sn_value n = sn_concat(
      g, SN_VALUES(sn_sequence_attention(g, h), sn_sequence_max(g, h), sn_sequence_final(g, h, 3)),
      .axis = 1);
  sn_module_end(g);
  sn_module_begin(g, "labs");
  const int64_t phi[] = {7, 5};
  sn_value l = sn_deep_set(g, labs, .phi = phi, .n_phi = 2, .pool = SN_POOL_ATTENTION, .rho = phi,
                           .n_rho = 1, .dropout = 0.1);
  sn_module_end(g);
  sn_value d = sn_batch_norm(g, sn_dense(g, x, .units = 6, .activation = SN_GELU), .momentum = 0.2);
  d = sn_layer_norm(g, sn_dropout(g, d, 0.3), .epsilon = 1e-4);
  sn_value z = sn_concat(g, SN_VALUES(n, l, d), .axis = 1);
  sn_value k = sn_dense(g, z, .units = 3), y = sn_dense(g, z, .units = 2);
  sn_output(g, "kind", k);
  sn_output(g, "level", y);
  sn_softmax_cross_entropy(g, k, sn_input(g, "kind.label", SN_I64, 0), .name = "kind",
                           .weights = weights, .scale = 0.5);
  sn_huber_loss(g, y, sn_input(g, "level.label", SN_F32, 2), .name = "level", .delta = 2);
  return sn_graph_status(g);
}

static const struct {
  const char *name;
  sn_status (*build)(sn_graph *g);
} models[] = {{"digits", build_digits}, {"h3", build_h3}, {"layers", build_all_layers}};
enum { MODELS = sizeof models / sizeof *models };

static sn_graph *forward_of(int i) {
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  ck_sn_ok(models[i].build(g));
  return g;
}

START_TEST(sound_after_every_pass) {
  sn_graph *g = forward_of(_i % MODELS), *d = NULL;
  ck_sn_ok(sn__verify_structure(g));
  ck_sn_ok(sn__differentiate(g, &d));
  ck_sn_ok(sn__verify_structure(d));
  ck_assert_uint_eq(sn__unused_variable_count(d), 0);
  for (int variant = SN_TRAIN_WHOLE; variant <= SN_TRAIN_LAST; variant++) {
    sn_optimizer_options o = {.struct_size = sizeof o,
                              .kind = (sn_optimizer_kind)(_i / MODELS),
                              .momentum = 0.5,
                              .ema_decay = 0.99,
                              .clip_norm = 1};
    sn_graph *t = NULL;
    ck_sn_ok(sn__optimize(d, &o, (sn_train_variant)variant, &t));
    ck_sn_ok(sn__verify_structure(t));
    for (size_t v = 0; v < t->n_variables; v++) {
      const sn__variable *variable = &t->variables[v];
      if (variable->frozen || variable->owner != 0) continue;
      /* The gradient is made at home, in the variable's own module. */
      const sn__node *made = sn__producer(t, variable->gradient);
      ck_assert_msg(made->module == sn__producer(t, variable->value)->module, "%s", variable->name);
      bool writes = variant == SN_TRAIN_WHOLE || variant == SN_TRAIN_LAST;
      ck_assert_int_eq(variable->commit != 0, writes);
    }
    sn_graph_free(t);
  }
  sn_graph_free(d);
  sn_graph_free(g);
}
END_TEST

static void keep(const char *name, const char *text) {
  const char *folder = getenv("SN_WRITE_GRAPHS");
  if (folder == NULL) return;
  char *path = sn__format("%s/%s.json", folder, name);
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  fputs(text, file);
  fclose(file);
  sn__free(path);
}

START_TEST(written_and_read_again) {
  sn_graph *g = forward_of(_i), *back = NULL;
  char *text = NULL, *again = NULL;
  ck_sn_ok(sn__graph_to_json(g, &text));
  keep(models[_i].name, text);
  ck_sn_ok(sn__graph_from_json(text, strlen(text), &back));
  ck_sn_ok(sn__graph_to_json(back, &again));
  ck_assert_str_eq(text, again);
  for (size_t i = 1; i < g->n_nodes; i++) {
    if (!sn__node_is_source(&g->nodes[i]))
      ck_assert_uint_eq(g->nodes[i].rng_key, back->nodes[i].rng_key);
    if (g->nodes[i].op->attrs_size > 0)
      ck_assert_mem_eq(g->nodes[i].attrs, back->nodes[i].attrs, g->nodes[i].op->attrs_size);
  }
  sn__free(text);
  sn__free(again);
  sn_graph_free(g);
  sn_graph_free(back);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("train_graphs");
  TCase *c = tcase_create("models");
  tcase_add_loop_test(c, sound_after_every_pass, 0, MODELS * SN_OPTIMIZER_COUNT);
  tcase_add_loop_test(c, written_and_read_again, 0, MODELS);
  suite_add_tcase(s, c);
  return s;
}

SN_TEST_MAIN(suite)
