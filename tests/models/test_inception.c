/* SPDX-License-Identifier: Apache-2.0 */
/* The four-path model in its three sizes: weights, paths, output. */
#include "core/graph_impl.h"
#include "models/model.h"
#include "tests/check_sn.h"

static const struct {
  int64_t params, variables;
} sizes[] = {{9946, 16}, {34730, 16}, {271076, 28}};

START_TEST(builds) {
  const sn_inception_sizes *s = sn_inception_sizes_of((sn_inception_size)_i);
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  ck_sn_ok(sn_inception_build(g, s));
  int64_t params = 0, variables = 0;
  for (size_t i = 1; i < g->n_values; i++) {
    if (g->values[i].kind != SN_VALUE_VARIABLE) continue;
    params += sn__shape_size(&g->values[i].shape);
    variables++;
  }
  ck_assert_int_eq(params, sizes[_i].params);
  ck_assert_int_eq(variables, sizes[_i].variables);
  size_t paths = 0;
  for (size_t i = 1; i < g->n_modules; i++)
    paths += strncmp(g->modules[i].path, "image/inception", 15) == 0 &&
             strcmp(strrchr(g->modules[i].path, '/'), "/5x5") == 0;
  ck_assert_uint_eq(paths, (size_t)s->blocks);
  const char *name = NULL;
  const sn_shape y = sn_value_shape(sn_graph_output(g, 0, &name)),
                 want = SN_SHAPE(SN_DIM_BATCH, s->classes);
  ck_assert(sn_shape_equal(&y, &want));
  ck_assert_str_eq(name, "outcome");
  sn_graph_free(g);
}
END_TEST

START_TEST(no_other_size) {
  ck_assert_ptr_null(sn_inception_sizes_of((sn_inception_size)3));
  ck_assert_ptr_null(sn_inception_sizes_of((sn_inception_size)-1));
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("inception");
  TCase *t = tcase_create("inception");
  tcase_add_loop_test(t, builds, 0, 3);
  tcase_add_test(t, no_other_size);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
