/* SPDX-License-Identifier: Apache-2.0 */
/* Long sums of f32 whose terms nearly cancel, as a bias gradient's do: rounded once, not once a
 * term. The f64 sum of the same f32 numbers is the judge; a chain of f32 is off by 1e-4 here. */
#include <math.h>
#include "tests/check_sn.h"
#include "tests/ops/op_test.h"

enum { ROWS = 3000, COLS = 37 };

static double terms[ROWS * COLS];

static void fill(void) {
  uint64_t state = 12345;
  for (int i = 0; i < ROWS * COLS; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double unit = (double)(state >> 40) * 0x1p-24;
    terms[i] = (double)(float)((i / COLS % 2 == 0 ? 1000.0 : -1000.0) + unit - 0.25);
  }
}

/* y[j] against the sum of rows times scale. */
static void close_to(const op_test *t, const op_values *v, sn_value y, int64_t step, int64_t rows,
                     double scale, int64_t n, const char *what) {
  for (int64_t j = 0; j < n; j++) {
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
      sum += terms[i * step + j];
    const double want = sum * scale, got = op_number(t->graph, v, y, j);
    ck_assert_msg(fabs(got - want) <= 1.2e-7 * fabs(want), "%s %lld: %.9g, not %.9g", what,
                  (long long)j, got, want);
  }
}

START_TEST(rounded_once) {
  fill();
  op_test t;
  op_test_init(&t, SN_F32, false);
  const double offsets[] = {0, ROWS};
  sn_value x = op_data(&t, SN_F32, SN_SHAPE(ROWS, COLS), terms, ROWS * COLS);
  sn_value like = op_data(&t, SN_F32, SN_SHAPE(COLS), NULL, COLS);
  sn_value cut = op_data(&t, SN_I32, SN_SHAPE(2), offsets, 2);
  sn_value columns = sn_sum_to(t.graph, x, like);
  sn_value all = sn_reduce_sum(t.graph, x, .all = true);
  sn_value mean = sn_segment_reduce(t.graph, x, cut, SN_SEGMENT_MEAN);
  sn__team *team;
  ck_sn_ok(sn__team_create(1 + _i, &team));
  op_values v;
  ck_sn_ok(op_run(&t, t.graph, team, 0, &v));
  close_to(&t, &v, columns, COLS, ROWS, 1, COLS, "column");
  close_to(&t, &v, all, 1, ROWS * COLS, 1, 1, "all");
  close_to(&t, &v, mean, COLS, ROWS, 1.0 / ROWS, COLS, "mean");
  op_values_free(&v);
  op_test_free(&t);
  sn__team_free(team);
}
END_TEST

/* Uses of three of a table's four rows, by turns of unequal length. */
static double use_of(int i) {
  return i % 7 < 4 ? 2 : i % 7 < 6 ? 0 : 3;
}

/* An embedding's gradient: every use of a row is a term. Row 1 is never used. Once narrow and long,
 * once wider than what is summed at a time. */
START_TEST(rows_of_a_table) {
  fill();
  op_test t;
  op_test_init(&t, SN_F32, false);
  const int cols = _i == 0 ? COLS : 30 * COLS, rows = ROWS * COLS / cols;
  double uses[ROWS];
  for (int i = 0; i < rows; i++)
    uses[i] = use_of(i);
  sn_value x = op_data(&t, SN_F32, SN_SHAPE(rows, cols), terms, ROWS * COLS);
  sn_value at = op_data(&t, SN_I32, SN_SHAPE(rows), uses, (size_t)rows);
  sn_value like = op_data(&t, SN_F32, SN_SHAPE(4, cols), NULL, (size_t)(4 * cols));
  sn_value y = sn_scatter_add_rows(t.graph, x, at, like);
  static float kept[4 * 30 * COLS];
  for (int threads = 1; threads <= 3; threads++) {
    sn__team *team;
    ck_sn_ok(sn__team_create(threads, &team));
    op_values v;
    ck_sn_ok(op_run(&t, t.graph, team, 0, &v));
    for (int j = 0; j < 4 * cols; j++) {
      double want = 0;
      for (int i = 0; i < rows; i++)
        want += use_of(i) == j / cols ? terms[i * cols + j % cols] : 0;
      const double got = op_number(t.graph, &v, y, j);
      ck_assert_msg(fabs(got - want) <= 6e-8 * fabs(want), "row %d, feature %d: %.9g, not %.9g",
                    j / cols, j % cols, got, want);
    }
    const size_t bytes = (size_t)(4 * cols) * sizeof(float);
    if (threads == 1) memcpy(kept, v.data[y.index], bytes);
    ck_assert_mem_eq(v.data[y.index], kept, bytes);
    op_values_free(&v);
    sn__team_free(team);
  }
  op_test_free(&t);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("sums");
  TCase *t = tcase_create("f32");
  tcase_add_loop_test(t, rounded_once, 0, 2);
  tcase_add_loop_test(t, rows_of_a_table, 0, 2);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
