/* SPDX-License-Identifier: Apache-2.0 */
/* A step written whole, against PyTorch's numbers for it and against itself. */
#include <math.h>

#include "tests/tools/read_h5.h"

typedef struct golden {
  const char *work, *variable;
  double gradient_norm, gradient_sum, updated_norm; /* variable "": the loss comes first */
} golden;

static const golden torch_step[] = {
#include "tests/tools/torch_step.inc"
};

enum { N_GOLDEN = sizeof torch_step / sizeof *torch_step };

#define H3_FILES     "--data \"$T/h3/data.h5\" --config \"$T/h3/model.yaml\" "
#define DIGITS_FILES "--data \"$DIGITS/digits_train.h5\" --config \"" SN_DIGITS_STEP "\" "
static void make_steps(void) {
  sennit_ok("bench h3 --size S --write \"$T/h3\"");
  sennit_ok("debug " H3_FILES "--rows 0:32 --out \"$T/h3.h5\"");
  sennit_ok("debug " DIGITS_FILES "--rows 0:64 --out \"$T/digits.h5\"");
}

static double norm_of(const numbers *n) {
  double sum = 0;
  for (size_t i = 0; i < n->count; i++)
    sum += n->at[i] * n->at[i];
  return sqrt(sum);
}

static double sum_of(const numbers *n) {
  double sum = 0;
  for (size_t i = 0; i < n->count; i++)
    sum += n->at[i];
  return sum;
}

static void near_relative(double is, double want, double limit, const char *what) {
  ck_assert_msg(fabs(is - want) <= limit * fabs(want), "%s is %.9g, PyTorch has %.9g", what, is,
                want);
}

static void check_golden(hid_t file, const golden *g) {
  char what[300];
  snprintf(what, sizeof what, "%s: %s", g->work, g->variable);
  if (*g->variable == '\0') {
    numbers loss = h5_numbers(file, "loss", strcmp(g->work, "h3") == 0 ? "outcome" : "digit");
    near_relative(loss.at[0], g->gradient_norm, 1e-5, what);
    sn__free(loss.at);
    return;
  }
  numbers gradient = h5_numbers(file, "gradients", g->variable);
  numbers updated = h5_numbers(file, "updated", g->variable);
  near_relative(norm_of(&gradient), g->gradient_norm, 1e-5, what);
  near_relative(norm_of(&updated), g->updated_norm, 1e-5, what);
  /* A sum may cancel to nothing: it is as exact as its terms are. */
  ck_assert_msg(fabs(sum_of(&gradient) - g->gradient_sum) <=
                    1e-5 * g->gradient_norm * sqrt((double)gradient.count),
                "%s: sum %.9g, PyTorch has %.9g", what, sum_of(&gradient), g->gradient_sum);
  sn__free(gradient.at);
  sn__free(updated.at);
}

START_TEST(a_step_is_pytorchs) {
  make_steps();
  hid_t h3 = h5_open("h3.h5"), digits = h5_open("digits.h5");
  ck_assert_int_ge(N_GOLDEN, 40);
  for (int i = 0; i < N_GOLDEN; i++)
    check_golden(strcmp(torch_step[i].work, "h3") == 0 ? h3 : digits, &torch_step[i]);
  H5Fclose(h3);
  H5Fclose(digits);
}
END_TEST

/* The loss is the mean of -log softmax of the logits beside it. */
START_TEST(loss_follows_from_logits) {
  make_steps();
  hid_t file = h5_open("h3.h5");
  numbers z = h5_numbers(file, "activations", "outcome/out/matmul");
  numbers y = h5_numbers(file, "inputs", "outcome.label");
  numbers loss = h5_numbers(file, "loss", "outcome");
  double sum = 0;
  size_t classes = z.count / y.count;
  ck_assert_uint_eq(classes, 10);
  for (size_t r = 0; r < y.count; r++) {
    const double *row = z.at + r * classes;
    double total = 0;
    for (size_t k = 0; k < classes; k++)
      total += exp(row[k]);
    sum += log(total) - row[(size_t)y.at[r]];
  }
  ck_assert_double_eq_tol(loss.at[0], sum / (double)y.count, 1e-6);
  sn__free(z.at);
  sn__free(y.at);
  sn__free(loss.at);
  H5Fclose(file);
}
END_TEST

/* Adam's first step, whose averages are the gradient and its square. */
START_TEST(update_follows_from_gradient) {
  make_steps();
  hid_t file = h5_open("h3.h5");
  for (int i = 0; i < N_GOLDEN; i++) {
    const char *name = torch_step[i].variable;
    if (strcmp(torch_step[i].work, "h3") != 0 || *name == '\0') continue;
    numbers before = h5_numbers(file, "variables", name), g = h5_numbers(file, "gradients", name);
    numbers after = h5_numbers(file, "updated", name);
    for (size_t k = 0; k < g.count; k++) {
      double want = before.at[k] - 1e-3 * g.at[k] / (fabs(g.at[k]) + 1e-8);
      ck_assert_msg(fabs(after.at[k] - want) <= 1e-7 + 1e-6 * fabs(want), "%s[%zu]: %.9g, not %.9g",
                    name, k, after.at[k], want);
    }
    sn__free(before.at);
    sn__free(g.at);
    sn__free(after.at);
  }
  H5Fclose(file);
}
END_TEST

START_TEST(placement_changes_no_bit) {
  make_steps();
  sennit_ok("debug " H3_FILES "--rows 0:32 --out \"$T/other.h5\" --devices 'cpu*2' --threads 4 "
            "--set placement.sequence=cpu:1 --set placement.trunk=cpu:1 --set placement.set=cpu:0");
  hid_t a = h5_open("h3.h5"), b = h5_open("other.h5");
  static const char *const groups[] = {"variables", "gradients", "updated"};
  for (int i = 0; i < N_GOLDEN; i++) {
    const char *name = torch_step[i].variable;
    if (strcmp(torch_step[i].work, "h3") != 0 || *name == '\0') continue;
    for (size_t k = 0; k < 3; k++) {
      numbers x = h5_numbers(a, groups[k], name), y = h5_numbers(b, groups[k], name);
      same_numbers(&x, &y, name);
      sn__free(x.at);
      sn__free(y.at);
    }
  }
  H5Fclose(a);
  H5Fclose(b);
}
END_TEST

START_TEST(inputs_are_the_rows_asked_for) {
  make_steps();
  sennit_ok("debug " H3_FILES "--rows 30:35 --out \"$T/rows.h5\"");
  hid_t file = h5_open("rows.h5"), data = h5_open("h3/data.h5");
  numbers y = h5_numbers(file, "inputs", "outcome.label"), all = h5_numbers(data, "", "outcome");
  numbers at = h5_numbers(file, "inputs", "sequence/offsets");
  numbers offsets = h5_numbers(data, "sequence", "offsets");
  ck_assert_uint_eq(y.count, 5);
  ck_assert_uint_eq(at.count, 6);
  for (size_t r = 0; r < 5; r++) {
    ck_assert(y.at[r] == all.at[30 + r]);
    ck_assert(at.at[r + 1] == offsets.at[31 + r] - offsets.at[30]);
  }
  numbers values = h5_numbers(file, "inputs", "sequence/values");
  numbers packed = h5_numbers(data, "sequence", "values");
  ck_assert_uint_eq(values.count, 16 * (size_t)at.at[5]);
  for (size_t i = 0; i < values.count; i++)
    ck_assert(values.at[i] == packed.at[16 * (size_t)offsets.at[30] + i]);
  numbers *const lists[] = {&y, &all, &at, &offsets, &values, &packed};
  for (size_t i = 0; i < 6; i++)
    sn__free(lists[i]->at);
  H5Fclose(file);
  H5Fclose(data);
}
END_TEST

START_TEST(mistakes_are_one_line) {
  sennit_fails(2, "--rows 1400:1500: the data has 1437 rows; give A:B with B at most 1437",
               "debug " DIGITS_FILES "--rows 1400:1500 --out \"$T/x.h5\"");
  sennit_fails(1, "/nowhere/x.h5: cannot write: No such file or directory",
               "debug " DIGITS_FILES "--rows 0:4 --out /nowhere/x.h5");
  sennit_fails(2, "--rows", "debug " DIGITS_FILES "--rows 4:4 --out \"$T/x.h5\"");
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("debug");
  TCase *tcase = tcase_create("debug");
  tcase_set_timeout(tcase, 120);
  tcase_add_checked_fixture(tcase, run_begin, run_end);
  tcase_add_test(tcase, a_step_is_pytorchs);
  tcase_add_test(tcase, loss_follows_from_logits);
  tcase_add_test(tcase, update_follows_from_gradient);
  tcase_add_test(tcase, placement_changes_no_bit);
  tcase_add_test(tcase, inputs_are_the_rows_asked_for);
  tcase_add_test(tcase, mistakes_are_one_line);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(make_suite)
