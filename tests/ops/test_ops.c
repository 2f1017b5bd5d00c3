/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over all cases and over the table of ops: an op without a gradient case cannot land. */
#include <stdio.h>
#include "core/autodiff.h"
#include "tests/check_sn.h"
#include "tests/ops/op_test.h"

static const op_case *const tables[] = {op_cases_basic, op_cases_rows, op_cases_images};

static bool names(const char *list, const char *op) {
  size_t n = strlen(op);
  for (const char *at = strstr(list, op); at != NULL; at = strstr(at + 1, op))
    if ((at == list || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' ')) return true;
  return false;
}

static const op_case *case_at(int i) {
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const op_case *c = tables[t]; c->ops != NULL; c++)
      if (i-- == 0) return c;
  return NULL;
}

static int case_count(void) {
  int n = 0;
  while (case_at(n) != NULL)
    n++;
  return n;
}

START_TEST(gradients) {
  op_check_gradient(case_at(_i));
}
END_TEST

START_TEST(threads) {
  op_check_threads(case_at(_i), SN_F32);
  op_check_threads(case_at(_i), SN_F64);
}
END_TEST

START_TEST(in_place) {
  op_check_inplace(case_at(_i));
}
END_TEST

START_TEST(no_rows) {
  op_check_empty(case_at(_i));
}
END_TEST

/* Every op is differentiated by a case that says so, or says in its row that it has no gradient. */
START_TEST(every_op_has_a_case) {
  const sn_op_def *op = sn__op_table[_i];
  ck_assert_msg(op->doc != NULL && op->version >= 1 && op->infer != NULL, "op %s: row incomplete",
                op->name);
  ck_assert_ptr_eq(sn__op_find(op->name), op);
  if ((op->flags & (SN_OP_GRAD | SN_OP_COMMIT)) != 0) return;
  ck_assert_msg(op->grad != NULL || (op->flags & SN_OP_NO_GRAD) != 0,
                "op %s has neither a gradient nor SN_OP_NO_GRAD", op->name);
  if (op->grad == NULL) return;
  bool found = false;
  for (int i = 0; !found && case_at(i) != NULL; i++)
    found = names(case_at(i)->ops, op->name);
  ck_assert_msg(found, "op %s has no gradient case in tests/ops/cases_*.c", op->name);
}
END_TEST

/* A case's graph holds the ops that it says it stands for. */
START_TEST(cases_hold_their_ops) {
  const op_case *c = case_at(_i);
  op_test t;
  op_test_init(&t, SN_F64, false);
  c->build(&t);
  for (int o = 0; o < sn__op_count; o++) {
    if (!names(c->ops, sn__op_table[o]->name)) continue;
    bool found = false;
    for (size_t i = 1; !found && i < t.graph->n_nodes; i++)
      found = t.graph->nodes[i].op == sn__op_table[o];
    ck_assert_msg(found, "case '%s' has no %s", c->name, sn__op_table[o]->name);
  }
  op_test_free(&t);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("ops");
  TCase *t = tcase_create("cases");
  tcase_set_timeout(t, 60);
  int n = case_count();
  tcase_add_loop_test(t, gradients, 0, n);
  tcase_add_loop_test(t, threads, 0, n);
  tcase_add_loop_test(t, in_place, 0, n);
  tcase_add_loop_test(t, no_rows, 0, n);
  tcase_add_loop_test(t, cases_hold_their_ops, 0, n);
  tcase_add_loop_test(t, every_op_has_a_case, 0, sn__op_count);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
