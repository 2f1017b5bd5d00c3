/* SPDX-License-Identifier: Apache-2.0 */
/* train, eval and predict on the digits, from end to end. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include "tests/tools/run_sennit.h"

#define DATA  "--data \"$DIGITS/digits_train.h5\" --config \"$T/digits.yaml\" "
#define QUICK DATA "--json --set train.patience=0 "

static char *copy_of(const char *text) {
  char *copy = strdup(text);
  ck_assert_ptr_nonnull(copy);
  return copy;
}

/* Kept by the JSON that it stands in. */
static const char *hash_of(const char *json) {
  const char *hash = json_text_at(json, "params_sha256");
  ck_assert_uint_eq(strlen(hash), 64);
  return hash;
}

static void same_files(const char *a, const char *b) {
  char line[300];
  snprintf(line, sizeof line, "cmp \"$T/%s\" \"$T/%s\"", a, b);
  ck_assert_msg(system(line) == 0, "%s and %s differ", a, b);
}

/* Everything that metrics.jsonl says but for the time it took. */
static void same_metrics(const char *a, const char *b) {
  char line[600];
  snprintf(line, sizeof line,
           "for r in %s %s; do sed 's/\"seconds\":[^,]*,//' \"$T/$r/metrics.jsonl\" >\"$T/$r.m\"; "
           "done; cmp \"$T/%s.m\" \"$T/%s.m\"",
           a, b, a, b);
  ck_assert_msg(system(line) == 0, "metrics of %s and %s differ", a, b);
}

START_TEST(placement_changes_no_bit) {
  static const char *const ways[] = {
      "--devices cpu:0 --threads 1",
      "--devices cpu:0 --threads 2",
      "--devices 'cpu*2' --objective spread --threads 1",
      "--devices 'cpu*2' --objective spread --threads 4",
      "--devices 'cpu*3' --objective spread",
      "--devices 'cpu*2' --set placement.strokes=cpu:1 --set placement.pixels=cpu:0",
      "--devices 'cpu*2' --set 'placement.pixels/phi*=cpu:1' --set placement.trunk=cpu:1",
  };
  char *first = NULL;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const ran *r = sennit("train " QUICK "--epochs 2 --out \"$T/w%zu\" %s", i, ways[i]);
    ck_assert_msg(r->code == 0, "%s: %s", ways[i], r->err);
    const char *hash = hash_of(r->out);
    if (first == NULL) first = copy_of(hash);
    ck_assert_msg(strcmp(hash, first) == 0, "%s: %s, not %s", ways[i], hash, first);
  }
  same_files("w0/last.h5", "w3/last.h5");
  free(first);
}
END_TEST

START_TEST(micro_batches_change_no_bit_by_placement) {
  static const char *const ways[] = {"--devices cpu:0", "--devices 'cpu*2' --objective spread"};
  char *first = NULL;
  for (size_t i = 0; i < 2; i++) {
    const ran *r =
        sennit("train " QUICK "--micro-batches 3 --epochs 1 --out \"$T/m%zu\" %s", i, ways[i]);
    ck_assert_msg(r->code == 0, "%s", r->err);
    const char *hash = hash_of(r->out);
    if (first == NULL) first = copy_of(hash);
    ck_assert_str_eq(hash, first);
  }
  free(first);
}
END_TEST

START_TEST(report_has_its_keys) {
  const ran *r =
      sennit("train " QUICK "--epochs 2 --test \"$DIGITS/digits_test.h5\" --out \"$T/r\" --devices "
             "'cpu*2' --threads 2");
  ck_assert_msg(r->code == 0, "%s", r->err);
  char *out = copy_of(r->out);
  ck_assert_ptr_eq(strchr(out, '\n'), out + strlen(out) - 1);
  static const char *const numbers[] = {"steps",
                                        "epochs",
                                        "loss",
                                        "train.digit.accuracy",
                                        "valid.loss",
                                        "valid.digit.accuracy",
                                        "valid.digit.auc",
                                        "test.digit.balanced_accuracy",
                                        "test.digit.f1",
                                        "test.digit.log_loss",
                                        "samples_per_s",
                                        "step_ms",
                                        "params",
                                        "peak_rss_mib"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    ck_assert_msg(json_number_at(out, numbers[i]) > 0, "%s in %s", numbers[i], out);
  ck_assert_double_eq(json_number_at(out, "epochs"), 2);
  ck_assert_double_eq(json_number_at(out, "steps"), 36);
  ck_assert_double_gt(json_number_at(out, "valid.digit.accuracy"), 0.5);
  ck_assert_int_eq(cJSON_GetArraySize(json_at(out, "devices")), 2);
  char *checkpoint = copy_of(json_text_at(out, "checkpoint"));
  ck_assert_ptr_nonnull(strstr(r->err, "pixels/phi_1"));
  ck_assert_ptr_nonnull(strstr(r->err, "solver: "));
  /* The same numbers from the checkpoint alone. */
  r = sennit("eval --checkpoint %s --data \"$DIGITS/digits_test.h5\" --json", checkpoint);
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_double_eq(json_number_at(r->out, "digit.accuracy"),
                      json_number_at(out, "test.digit.accuracy"));
  ck_assert_double_eq(json_number_at(r->out, "digit.log_loss"),
                      json_number_at(out, "test.digit.log_loss"));
  free(checkpoint);
  free(out);
}
END_TEST

START_TEST(resume_is_exact) {
  const ran *r = sennit("train " QUICK "--epochs 4 --out \"$T/a\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  const char *whole = hash_of(r->out);
  sennit_ok("train " QUICK "--epochs 4 --stop-after 2 --out \"$T/b\"");
  r = sennit("train " QUICK "--epochs 4 --resume --out \"$T/b\" --devices 'cpu*2'");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_ptr_nonnull(strstr(r->err, "resuming after step 36, epoch 2"));
  ck_assert_str_eq(hash_of(r->out), whole);
  sennit_ok("train " QUICK "--epochs 4 --steps 25 --out \"$T/c\"");
  r = sennit("train " QUICK "--epochs 4 --resume --out \"$T/c\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_str_eq(hash_of(r->out), whole);
  same_files("a/last.h5", "b/last.h5");
  same_files("a/best.h5", "b/best.h5");
  same_files("a/best.h5", "c/best.h5");
  same_metrics("a", "b");
  same_metrics("a", "c");
  /* A run that is done stays as it is. */
  r = sennit("train " QUICK "--epochs 4 --resume --out \"$T/b\"");
  ck_assert_int_eq(r->code, 0);
  ck_assert_str_eq(hash_of(r->out), whole);
  same_files("a/last.h5", "b/last.h5");
  same_metrics("a", "b");
}
END_TEST

static bool there(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", run_folder, name);
  return access(path, F_OK) == 0;
}

/* Starts a run, waits until its first epoch is logged, sends `signal`, gives its exit code. */
static int interrupted(const char *out, int signal) {
  char line[1000], metrics[80];
  snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", out);
  snprintf(line, sizeof line,
           "exec >\"$T/out\" 2>\"$T/err\"; exec '%s' train " QUICK
           "--batch 2 --epochs 3 --out \"$T/%s\"",
           SN_SENNIT, out);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
  }
  const struct timespec pause = {0, 2000000};
  for (int i = 0; i < 30000 && !there(metrics); i++)
    nanosleep(&pause, NULL);
  for (int i = 0; i < 20; i++) /* into the second epoch */
    nanosleep(&pause, NULL);
  ck_assert_int_eq(kill(pid, signal), 0);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    ck_assert_int_eq(errno, EINTR);
  ck_assert(WIFEXITED(status));
  return WEXITSTATUS(status);
}

START_TEST(signals_end_with_a_checkpoint) {
  const ran *r = sennit("train " QUICK "--batch 2 --epochs 3 --out \"$T/whole\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  const char *whole = hash_of(r->out);
  ck_assert_int_eq(interrupted("term", SIGTERM), 143);
  ck_assert_int_eq(interrupted("int", SIGINT), 130);
  static const char *const runs[] = {"term", "int"};
  for (int i = 0; i < 2; i++) {
    r = sennit("train " QUICK "--batch 2 --epochs 3 --resume --out \"$T/%s\" --devices 'cpu*2'",
               runs[i]);
    ck_assert_msg(r->code == 0, "%s", r->err);
    ck_assert_str_eq(hash_of(r->out), whole);
    same_files("whole/best.h5", i == 0 ? "term/best.h5" : "int/best.h5");
    same_metrics("whole", runs[i]);
  }
}
END_TEST

START_TEST(killed_while_saving) {
  for (int i = 0; i < 6; i++) {
    char line[800];
    snprintf(line, sizeof line,
             "'%s' train " QUICK "--epochs 1 --set 'train.save_every=1 steps' %s --out \"$T/k\" "
             ">\"$T/out\" 2>\"$T/err\" & p=$!; sleep 0.%d; kill -9 $p; wait $p 2>/dev/null; true",
             SN_SENNIT, there("k/last.h5") ? "--resume" : "", 2 + i % 3);
    ck_assert_int_eq(system("rm -rf \"$T/k.new\""), 0);
    ck_assert_int_eq(system(line), 0);
    if (!there("k/last.h5")) continue;
    sennit_ok("eval --checkpoint \"$T/k/last.h5\" --data \"$DIGITS/digits_test.h5\" --json");
  }
}
END_TEST

START_TEST(keeps_and_removes) {
  sennit_ok("train " QUICK "--epochs 4 --set train.keep=2 --out \"$T/k\"");
  ck_assert(!there("k/epoch-0001.h5") && !there("k/epoch-0002.h5"));
  ck_assert(there("k/epoch-0003.h5") && there("k/epoch-0004.h5"));
  same_files("k/epoch-0004.h5", "k/last.h5");
  sennit_fails(2, "already holds a run; give --resume", "train " QUICK "--out \"$T/k\"");
  sennit_fails(1, "has no last.h5 to go on from", "train " QUICK "--resume --out \"$T/none\"");
  sennit_fails(2, "a run keeps its seed",
               "train " QUICK "--epochs 4 --resume --seed 3 --out \"$T/k\"");
  const ran *r =
      sennit("train " QUICK "--epochs 4 --resume --set 'trunk.hidden=[16]' --out \"$T/k\"");
  ck_assert_int_eq(r->code, 2);
  ck_assert_ptr_nonnull(strstr(last_line(r->err), "'trunk/dense/weight'"));
}
END_TEST

START_TEST(stops_when_patience_is_lost) {
  const ran *r =
      sennit("train " DATA "--json --set train.patience=2 --set train.learning_rate=1e-9 "
             "--epochs 30 --out \"$T/p\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_ptr_nonnull(strstr(r->err, "no better valid.digit.accuracy for 2 epochs"));
  double epochs = json_number_at(r->out, "epochs");
  ck_assert(epochs >= 3 && epochs < 30);
  /* Still lost after a resume. */
  r = sennit("train " DATA "--json --set train.patience=2 --set train.learning_rate=1e-9 "
             "--epochs 30 --resume --out \"$T/p\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_double_eq(json_number_at(r->out, "epochs"), epochs);
}
END_TEST

START_TEST(averaged_weights_are_measured) {
  const ran *r = sennit("train " QUICK "--epochs 2 --set train.ema=0.9 --test "
                        "\"$DIGITS/digits_test.h5\" --out \"$T/e\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  double test = json_number_at(r->out, "test.digit.log_loss");
  const char *hash = hash_of(r->out);
  r = sennit("eval --checkpoint \"$T/e\" --data \"$DIGITS/digits_test.h5\" --json");
  ck_assert_double_eq(json_number_at(r->out, "digit.log_loss"), test);
  /* The weights themselves are not touched by it. */
  r = sennit("train " QUICK "--epochs 2 --test \"$DIGITS/digits_test.h5\" --out \"$T/f\"");
  ck_assert_str_eq(hash_of(r->out), hash);
  ck_assert(fabs(json_number_at(r->out, "test.digit.log_loss") - test) > 1e-6);
}
END_TEST

START_TEST(numeric_trouble_is_named) {
  sennit_fails(1, "no checkpoint was written yet",
               "train " DATA "--set train.learning_rate=1e30 --epochs 2 --out \"$T/n\"");
  const ran *r = sennit("train " DATA "--set train.learning_rate=1e30 --epochs 2 --out \"$T/n\"");
  ck_assert_msg(strstr(r->err, "the first that is not finite") != NULL, "%s", r->err);
  ck_assert_msg(strstr(r->err, "of module '") != NULL, "%s", r->err);
}
END_TEST

START_TEST(a_model_in_c) {
  ck_assert_int_eq(system("cp '" SN_MINE "' \"$T/libmine.so\""), 0);
  const ran *r = sennit("train --data \"$DIGITS/digits_train.h5\" --model \"$T/libmine.so\" --json "
                        "--epochs 2 --set train.monitor=valid.digit.f1 --test "
                        "\"$DIGITS/digits_test.h5\" --out \"$T/c\" --devices 'cpu*2'");
  ck_assert_msg(r->code == 0, "%s", r->err);
  double accuracy = json_number_at(r->out, "test.digit.accuracy");
  ck_assert_double_gt(accuracy, 0.5);
  sennit_fails(2, "is no measure of the model",
               "train --data \"$DIGITS/digits_train.h5\" --model \"$T/libmine.so\" --set "
               "train.monitor=valid.dgit.f1 --out \"$T/d\"");
  ck_assert_int_eq(system("rm \"$T/libmine.so\""), 0);
  r = sennit("eval --checkpoint \"$T/c\" --data \"$DIGITS/digits_test.h5\" --json");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_double_eq(json_number_at(r->out, "digit.accuracy"), accuracy);
  sennit_ok("predict --checkpoint \"$T/c\" --data \"$DIGITS/digits_test.h5\" --out \"$T/p.h5\"");
  ck_assert(there("p.h5"));
  sennit_fails(2, "cannot open shared object file",
               "train --data \"$DIGITS/digits_train.h5\" --model \"$T/libmine.so\" --out \"$T/d\"");
  sennit_fails(2, "has no symbol 'sn_model'",
               "train --data \"$DIGITS/digits_train.h5\" --model \"$(ldd '" SN_SENNIT
               "' | awk '/libm.so/ {print $3}')\" "
               "--out \"$T/d\"");
}
END_TEST

START_TEST(placement_files) {
  sennit_ok("train " QUICK "--epochs 1 --devices 'cpu*2' --objective spread --save-placement "
            "\"$T/p.yaml\" --out \"$T/a\"");
  const ran *r = sennit("train " QUICK "--epochs 1 --devices 'cpu*2' --placement \"$T/p.yaml\" "
                        "--save-placement \"$T/q.yaml\" --out \"$T/b\"");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_ptr_nonnull(strstr(r->err, "pinned by"));
  /* Causes stand beside the pins as comments: the solver's there, "pinned by" here. */
  ck_assert_int_eq(system("for f in p q; do sed 's/ *#.*//' \"$T/$f.yaml\" >\"$T/$f.pins\"; done"),
                   0);
  same_files("p.pins", "q.pins");
  sennit_ok("eval --checkpoint \"$T/a\" --data \"$DIGITS/digits_test.h5\" --devices 'cpu*2' "
            "--placement \"$T/p.yaml\"");
  sennit_fails(2, "which is not in --devices (cpu:0)",
               "train " QUICK "--placement \"$T/p.yaml\" --out \"$T/c\"");
  ck_assert_int_eq(system("printf 'strokes: auto\\n' >\"$T/auto.yaml\""), 0);
  sennit_ok("train " QUICK "--epochs 1 --set placement.strokes=cpu:0 --placement \"$T/auto.yaml\" "
            "--out \"$T/d\"");
  ck_assert_int_eq(system("printf 'strokes: [1]\\n' >\"$T/bad.yaml\""), 0);
  ck_assert_int_eq(system("printf 'strokes: cpu:0\\nstrokes: cpu:1\\n' >\"$T/two.yaml\""), 0);
  sennit_fails(2, "two.yaml:2:1: ", "train " QUICK "--placement \"$T/two.yaml\" --out \"$T/e\"");
  sennit_fails(2, "bad.yaml:1:10: ", "train " QUICK "--placement \"$T/bad.yaml\" --out \"$T/e\"");
}
END_TEST

/* A model of the tests' own: the one beside the data is tuned from time to time. */
static void begin(void) {
  run_begin();
  run_write(
      "digits.yaml",
      "inputs:\n"
      "  profile: {kind: dense, path: /profile, hidden: [64]}\n"
      "  strokes: {kind: sequence, path: /strokes, units: 64, bidirectional: true}\n"
      "  pixels: {kind: set, path: /pixels, phi: [64, 64], rho: [64]}\n"
      "outputs:\n"
      "  digit: {path: /digit, task: classification}\n"
      "trunk: {hidden: [128], dropout: 0.1}\n"
      "train: {optimizer: adam, learning_rate: 0.002, schedule: cosine, batch: 64, epochs: 20,\n"
      "        monitor: valid.digit.accuracy, patience: 8, keep: 3}\n");
}

static Suite *train_suite(void) {
  Suite *suite = suite_create("train");
  TCase *tc = tcase_create("digits");
  tcase_set_timeout(tc, 240);
  tcase_add_checked_fixture(tc, begin, run_end);
  tcase_add_test(tc, placement_changes_no_bit);
  tcase_add_test(tc, micro_batches_change_no_bit_by_placement);
  tcase_add_test(tc, report_has_its_keys);
  tcase_add_test(tc, resume_is_exact);
  tcase_add_test(tc, signals_end_with_a_checkpoint);
  tcase_add_test(tc, killed_while_saving);
  tcase_add_test(tc, keeps_and_removes);
  tcase_add_test(tc, stops_when_patience_is_lost);
  tcase_add_test(tc, averaged_weights_are_measured);
  tcase_add_test(tc, numeric_trouble_is_named);
  tcase_add_test(tc, a_model_in_c);
  tcase_add_test(tc, placement_files);
  suite_add_tcase(suite, tc);
  return suite;
}

SN_TEST_MAIN(train_suite)
