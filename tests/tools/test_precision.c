/* SPDX-License-Identifier: Apache-2.0 */
/* --precision: what it changes, what it keeps, and what it says. */
#include "io/checkpoint.h"
#include "tests/tools/run_sennit.h"

#define DATA  "--data \"$DIGITS/digits_train.h5\" --config \"$T/digits.yaml\" "
#define QUICK DATA "--json --set train.patience=0 --epochs 2 "
#define BF16  "--precision bf16 "

static char *hash_of(const char *arguments) {
  const ran *r = sennit("train " QUICK "%s", arguments);
  ck_assert_msg(r->code == 0, "%s", r->err);
  char *copy = strdup(json_text_at(r->out, "params_sha256"));
  ck_assert_ptr_nonnull(copy);
  return copy;
}

/* Of the checkpoint's graph. */
static bool graph_says(const char *name, const char *words) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", run_folder, name);
  sn_checkpoint *c;
  ck_sn_ok(sn_checkpoint_open(path, &c));
  const sn_named_text *graph = sn_checkpoint_text(c, "graph");
  ck_assert_ptr_nonnull(graph);
  const bool found = memmem(graph->text, graph->length, words, strlen(words)) != NULL;
  sn_checkpoint_free(c);
  return found;
}

START_TEST(placement_changes_no_bit) {
  char *one = hash_of(BF16 "--out \"$T/a\"");
  char *two = hash_of(BF16 "--out \"$T/b\" --devices 'cpu*2' --objective spread");
  char *three = hash_of("--set train.precision=bf16 --out \"$T/c\" --devices 'cpu*3' --threads 6 "
                        "--objective spread");
  char *f32 = hash_of("--out \"$T/f\"");
  ck_assert_str_eq(one, two);
  ck_assert_str_eq(one, three);
  ck_assert_str_ne(one, f32);
  ck_assert(graph_says("a/last.h5", "\"precision\": 1"));
  /* A graph of f32 is written as it always was. */
  ck_assert(!graph_says("f/last.h5", "\"precision\""));
  free(one);
  free(two);
  free(three);
  free(f32);
}
END_TEST

START_TEST(checkpoints_keep_it) {
  char *whole = hash_of(BF16 "--out \"$T/a\" --valid-fraction 0.2");
  sennit_ok("train " QUICK BF16 "--stop-after 1 --out \"$T/b\" --valid-fraction 0.2");
  char *resumed = hash_of(BF16 "--resume --out \"$T/b\" --valid-fraction 0.2");
  ck_assert_str_eq(whole, resumed);
  /* Another choice goes on, and is announced. */
  sennit_ok("train " QUICK BF16 "--stop-after 1 --out \"$T/c\" --valid-fraction 0.2");
  const ran *r = sennit("train " QUICK "--resume --out \"$T/c\" --valid-fraction 0.2");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_ptr_nonnull(strstr(r->err, "train.precision is f32 and was bf16"));
  ck_assert_str_ne(json_text_at(r->out, "params_sha256"), whole);
  ck_assert(!graph_says("c/last.h5", "\"precision\""));
  /* Measured as it was trained, unless told otherwise. */
#define EVAL "eval --checkpoint \"$T/a\" --data \"$DIGITS/digits_test.h5\" --json "
  double loss[3];
  const char *const options[] = {"", BF16, "--precision f32"};
  for (int i = 0; i < 3; i++) {
    r = sennit(EVAL "%s", options[i]);
    ck_assert_msg(r->code == 0, "%s", r->err);
    loss[i] = json_number_at(r->out, "digit.log_loss");
  }
  ck_assert(loss[0] == loss[1] && loss[0] != loss[2]);
  free(whole);
  free(resumed);
}
END_TEST

START_TEST(fp16_is_refused) {
  sennit_fails(2, "precision fp16: no device here computes it; use bf16",
               "train " QUICK "--precision fp16 --out \"$T/a\"");
  sennit_fails(2, "use bf16", "train " QUICK "--set train.precision=fp16 --out \"$T/a\"");
  sennit_fails(2, "use bf16", "plan " DATA "--precision fp16");
  sennit_fails(2, "use bf16", "eval --checkpoint \"$T/a\" --data x.h5 --precision fp16");
  sennit_fails(2, "use bf16", "debug " DATA "--rows 0:2 --out \"$T/s.h5\" --precision fp16");
}
END_TEST

START_TEST(bench_and_plan_take_it) {
  const ran *r = sennit("bench h3 --size S --bf16 --steps 2 --json");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_str_eq(json_text_at(r->out, "precision"), "bf16");
  static const char *const keys[] = {"step_ms",    "samples_per_s",  "first_step_s", "peak_rss_mib",
                                     "params",     "flops_per_step", "gflops",       "peak_gflops",
                                     "loss_first", "loss_last"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    ck_assert_msg(json_number_at(r->out, keys[i]) > 0, "%s in %s", keys[i], r->out);
  r = sennit("bench h3 --size S --steps 2 --json");
  ck_assert_msg(r->code == 0, "%s", r->err);
  ck_assert_str_eq(json_text_at(r->out, "precision"), "f32");
  sennit_ok("plan " DATA BF16);
}
END_TEST

static void begin(void) {
  run_begin();
  run_write("digits.yaml",
            "inputs:\n"
            "  profile: {kind: dense, path: /profile, hidden: [64]}\n"
            "  strokes: {kind: sequence, path: /strokes, units: 64, bidirectional: true}\n"
            "  pixels: {kind: set, path: /pixels, phi: [64, 64], rho: [64]}\n"
            "outputs:\n"
            "  digit: {path: /digit, task: classification}\n"
            "trunk: {hidden: [128], dropout: 0.1}\n"
            "train: {optimizer: adam, learning_rate: 0.002, batch: 64, epochs: 2}\n");
}

static Suite *precision_suite(void) {
  Suite *suite = suite_create("cmd_precision");
  TCase *tc = tcase_create("digits");
  tcase_set_timeout(tc, 240);
  tcase_add_checked_fixture(tc, begin, run_end);
  tcase_add_test(tc, placement_changes_no_bit);
  tcase_add_test(tc, checkpoints_keep_it);
  tcase_add_test(tc, fp16_is_refused);
  tcase_add_test(tc, bench_and_plan_take_it);
  suite_add_tcase(suite, tc);
  return suite;
}

SN_TEST_MAIN(precision_suite)
