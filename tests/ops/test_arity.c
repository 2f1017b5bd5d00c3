/* SPDX-License-Identifier: Apache-2.0 */
/* Every op's shape rule, given as few inputs as its row lets through and any shapes: a status or a
 * node, and no look at an input that is not there. A graph from a file may ask for any of it. */
#include "core/graph_impl.h"
#include "core/op.h"
#include "tests/check_sn.h"

enum { MOST = 12 };

static void add(const sn_op_def *op, sn_dtype dtype, int rank, size_t n_in) {
  static const sn_shape shapes[] = {{1, {3}}, {2, {3, 3}}, {4, {3, 3, 3, 3}}};
  sn_graph *g = NULL;
  ck_sn_ok(sn_graph_create(&g));
  sn_value in[MOST];
  for (size_t i = 0; i < n_in; i++)
    in[i] = sn_variable(g, "v", dtype, shapes[rank], .init = {.kind = SN_INIT_ZEROS});
  sn_value out[SN_MAX_OUTPUTS];
  /* On the heap and of just that size, so that a sanitizer sees a read behind it. */
  sn_value *just = malloc((n_in + (n_in == 0)) * sizeof *just);
  memcpy(just, in, n_in * sizeof *in);
  sn__node_add(g, op, NULL, just, n_in, NULL, out);
  free(just);
  sn_graph_free(g);
}

START_TEST(few_inputs) {
  static const sn_dtype dtypes[] = {SN_F32, SN_F64, SN_I32};
  int rows = 0;
  for (; rows < sn__op_count; rows++) {
    const sn_op_def *op = sn__op_table[rows];
    const int most = op->max_inputs < 0 || op->max_inputs > MOST ? MOST : op->max_inputs;
    for (int n = op->min_inputs; n <= most; n++)
      for (int k = 0; k < 9; k++)
        add(op, dtypes[k / 3], k % 3, (size_t)n);
  }
  ck_assert_int_gt(rows, 60);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("arity");
  TCase *t = tcase_create("arity");
  tcase_add_test(t, few_inputs);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
