/* SPDX-License-Identifier: Apache-2.0 */
/* Measures against scikit-learn's, in one batch and in many. */
#include <math.h>
#include "tests/check_sn.h"
#include "tools/sennit/metrics.h"

typedef struct metric_case {
  const char *name;
  metric_kind kind;
  int64_t width, rows;
  const float *predictions;
  const void *labels;
  const float *weights;
  const double *mean, *deviation;
  const metric_value *want;
  size_t n_want;
} metric_case;

#include "tests/tools/metrics.inc"

enum { N_CASES = sizeof cases / sizeof *cases };

static size_t measure(const metric_case *c, int64_t batch, metric_value out[METRICS_MOST]) {
  metrics *m = NULL;
  ck_sn_ok(metrics_create(c->kind, c->width, c->mean, c->deviation, &m));
  bool number = c->kind == METRIC_VALUES || c->kind == METRIC_MULTILABEL;
  for (int64_t at = 0; at < c->rows; at += batch) {
    int64_t rows = c->rows - at < batch ? c->rows - at : batch;
    const void *labels = number ? (const void *)((const float *)c->labels + at * c->width)
                                : (const void *)((const int32_t *)c->labels + at);
    ck_sn_ok(metrics_add(m, rows, c->predictions + at * c->width, labels, number ? SN_F32 : SN_I32,
                         c->weights + at));
  }
  size_t n = metrics_values(m, out);
  metrics_free(m);
  return n;
}

START_TEST(test_as_scikit_learn) {
  const metric_case *c = &cases[_i];
  static const int64_t batches[] = {1, 7, 1000};
  for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
    metric_value got[METRICS_MOST];
    size_t n = measure(c, batches[b], got);
    ck_assert_uint_eq(n, c->n_want);
    for (size_t i = 0; i < n; i++) {
      ck_assert_str_eq(got[i].name, c->want[i].name);
      ck_assert_msg(fabs(got[i].value - c->want[i].value) <= 1e-9 * (1 + fabs(c->want[i].value)),
                    "%s: %s is %.12g, scikit-learn has %.12g", c->name, got[i].name, got[i].value,
                    c->want[i].value);
    }
  }
}
END_TEST

START_TEST(test_nothing_known) {
  metrics *m = NULL;
  metric_value got[METRICS_MOST];
  const float logits[] = {1, 2}, none[] = {0};
  const int32_t label[] = {-1};
  ck_sn_ok(metrics_create(METRIC_CLASSES, 2, NULL, NULL, &m));
  ck_sn_ok(metrics_add(m, 1, logits, label, SN_I32, none));
  ck_assert_int_eq(metrics_rows(m), 0);
  for (size_t i = 0, n = metrics_values(m, got); i < n; i++)
    ck_assert_msg(isnan(got[i].value), "%s of nothing is %g", got[i].name, got[i].value);
  ck_sn_fails(metrics_add(m, 1, logits, label, SN_I32, NULL), SN_CODE_DATA, "label -1");
  metrics_free(m);
}
END_TEST

START_TEST(test_one_class_has_no_auc) {
  metrics *m = NULL;
  metric_value got[METRICS_MOST];
  const float logits[] = {1, 2, 3, 1};
  const int64_t labels[] = {1, 1};
  ck_sn_ok(metrics_create(METRIC_CLASSES, 2, NULL, NULL, &m));
  ck_sn_ok(metrics_add(m, 2, logits, labels, SN_I64, NULL));
  metrics_values(m, got);
  ck_assert_str_eq(got[3].name, "auc");
  ck_assert(isnan(got[3].value));
  ck_assert_double_eq(got[0].value, 0.5);
  metrics_free(m);
}
END_TEST

START_TEST(test_extreme_logits) {
  const float z[] = {1e30f, -1e30f, 0};
  double p[3];
  metrics_softmax(z, 3, p);
  ck_assert_double_eq(p[0], 1);
  ck_assert_double_eq(p[1], 0);
  ck_assert_double_eq(metrics_sigmoid(-1e4), 0);
  ck_assert_double_eq(metrics_sigmoid(1e4), 1);
}
END_TEST

static Suite *metrics_suite(void) {
  Suite *suite = suite_create("metrics");
  TCase *tc = tcase_create("metrics");
  tcase_add_loop_test(tc, test_as_scikit_learn, 0, N_CASES);
  tcase_add_test(tc, test_nothing_known);
  tcase_add_test(tc, test_one_class_has_no_auc);
  tcase_add_test(tc, test_extreme_logits);
  suite_add_tcase(suite, tc);
  return suite;
}

SN_TEST_MAIN(metrics_suite)
