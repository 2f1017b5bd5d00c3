/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nearest.h"
#include "models/config.h"
#include "tests/check_sn.h"
#include "tests/fail_alloc.h"

/* The model file of CLI.md, word for word but for the stream, which stands alone. */
static const char full[] =
    "inputs:\n"
    "  strokes: {kind: sequence, path: /strokes, encoder: lstm, units: 64, bidirectional: true, "
    "pool: "
    "mean}\n"
    "  pixels:  {kind: set, path: /pixels, encoder: deepsets, phi: [64, 64], pool: mean, rho: "
    "[64]}\n"
    "  profile: {kind: dense, path: /profile, hidden: [64]}\n"
    "  ward:    {kind: category, path: /ward, embedding: 8}      # integers, strings, enums\n"
    "  notes:   {kind: sequence, path: /note_ids, embedding: 32, encoder: gru, units: 64}\n"
    "outputs:\n"
    "  digit:   {path: /digit, task: classification}\n"
    "trunk:     {hidden: [128], dropout: 0.1}\n"
    "train:     {optimizer: adam, learning_rate: 0.001, schedule: cosine, batch: 64, epochs: 20,\n"
    "            monitor: valid.digit.accuracy, patience: 5, keep: 3}\n"
    "placement: {strokes: cpu:1}\n"
    "data:      {train: {profile: /x_train}, valid: {profile: /x_valid}}\n";

static sn_status read_checked(const char *text, sn_model_config **out) {
  SN_TRY(sn_model_config_read(text, strlen(text), "model.yaml", out));
  sn_status status = sn_model_config_check(*out, 0);
  if (status != SN_OK) sn_model_config_free(*out);
  return status;
}

static void refuses(const char *text, const char *words) {
  sn_model_config *config = NULL;
  sn_status status = read_checked(text, &config);
  const char *message = sn_status_message(status);
  ck_assert_msg(sn_status_code(status) == SN_CODE_CONFIG, "'%s' gives '%s'", text, message);
  ck_assert_msg(strstr(message, words) != NULL, "'%s' gives '%s', not '%s'", text, message, words);
  ck_assert_msg(strchr(message, '\n') == NULL, "'%s' is more than one line", message);
  sn_status_free(status);
}

/* Around a part, the least that is needed. */
#define IN  "inputs: {a: {kind: dense}}\n"
#define OUT "outputs: {y: {task: classification}}\n"

START_TEST(reads_the_whole_file) {
  sn_model_config *c = NULL;
  ck_sn_ok(read_checked(full, &c));
  ck_assert_uint_eq(c->input_count, 5);
  ck_assert_str_eq(c->inputs[0].name, "strokes");
  ck_assert_int_eq(c->inputs[0].kind, SN_CONFIG_KIND_SEQUENCE);
  ck_assert_int_eq(c->inputs[0].units, 64);
  ck_assert(c->inputs[0].bidirectional);
  ck_assert_int_eq(c->inputs[0].normalize, SN_CONFIG_NORMALIZE_STANDARD);
  ck_assert_uint_eq(c->inputs[1].phi.count, 2);
  ck_assert_int_eq(c->inputs[1].phi.items[1], 64);
  ck_assert_int_eq(c->inputs[1].encoder, SN_CONFIG_ENCODER_DEEPSETS);
  ck_assert_int_eq(c->inputs[3].embedding, 8);
  ck_assert_int_eq(c->inputs[4].encoder, SN_CONFIG_ENCODER_GRU);
  ck_assert_int_eq(c->outputs[0].task, SN_CONFIG_TASK_CLASSIFICATION);
  ck_assert_double_eq(c->outputs[0].weight, 1);
  ck_assert_double_eq(c->trunk.dropout, 0.1);
  ck_assert_int_eq(c->train.schedule, SN_CONFIG_SCHEDULE_COSINE);
  ck_assert_double_eq(c->train.learning_rate, 0.001);
  ck_assert_double_eq(c->train.beta2, 0.999);
  ck_assert_int_eq(c->train.patience, 5);
  ck_assert_str_eq(c->pins[0].module, "strokes");
  ck_assert_str_eq(c->pins[0].device, "cpu:1");
  ck_assert_int_eq(c->pins[0].line, 12);
  ck_assert_str_eq(sn_model_config_source(c, SN_CONFIG_SPLIT_VALID, "profile", NULL), "/x_valid");
  ck_assert_str_eq(sn_model_config_source(c, SN_CONFIG_SPLIT_TEST, "profile", NULL), "/profile");
  ck_assert_ptr_null(sn_model_config_source(c, SN_CONFIG_SPLIT_TEST, "profil", NULL));
  sn_model_config_free(c);
}
END_TEST

START_TEST(names_the_unknown_key) {
  refuses(IN OUT "train:\n  batch: 3\n  learning_rat: 1\n",
          "unknown key 'learning_rat' in train at model.yaml:5:3; did you mean 'learning_rate'?");
  refuses("inputs:\n  a: {kind: dense, hiden: [3]}\n" OUT,
          "unknown key 'hiden' in input 'a' at model.yaml:2:20; did you mean 'hidden'?");
  refuses("input: {}\n",
          "unknown key 'input' in the model file at model.yaml:1:1; did you mean 'inputs'?");
  refuses(IN OUT "trunk: {zzz: 1}\n", "known: hidden, activation, norm, sync, dropout");
  refuses(IN OUT "data: {trian: {a: /b}}\n", "did you mean 'train'?");
  refuses(IN OUT "data: {train: {aa: /b}}\n", "did you mean 'a'?");
  refuses(IN OUT "data: {train: {a: {path: /x, length: /y}}}\n", "did you mean 'lengths'?");
  refuses(IN OUT "placement: {trnk: cpu:0}\n", "did you mean 'trunk'?");
  refuses("inputs: {a: {kind: dens}}\n" OUT,
          "'kind' is 'dens' at model.yaml:1:20; did you mean 'dense'?");
  refuses("inputs: {a: {kind: dense, encoder: lstm}}\n" OUT,
          "key 'encoder' in input 'a' at model.yaml:1:27 is for kind sequence, not dense");
  refuses(IN OUT "train: {momentum: 0.9}\n", "is for optimizer sgd, rmsprop, not adam");
  refuses(IN "outputs: {y: {task: regression, labels: [a]}}\n",
          "is for task classification, multilabel");
}
END_TEST

START_TEST(refuses_wrong_values) {
  refuses(IN OUT "trunk: {norm: batch, synk: true}\n", "did you mean 'sync'?");
  refuses(IN OUT "trunk: {norm: layer, sync: true}\n",
          "trunk at model.yaml:3:8 has sync: true, which is for norm: batch");
  refuses("inputs: {a: {kind: dense, sync: true}}\n" OUT,
          "input 'a' at model.yaml:1:13 has sync: true");
  refuses(IN OUT "train: {batch: 0}\n", "'batch' is '0' at model.yaml:3:16; a whole number from 1");
  refuses(IN OUT "train: {batch: 1.5}\n", "a whole number");
  refuses(IN OUT "train: {batch: \"64\"}\n", "take the quotes off");
  refuses(IN OUT "train: {batch: [64]}\n", "'batch' is a list");
  refuses(IN OUT "train: {batch: 99999999999999999999999}\n", "a whole number");
  refuses(IN OUT "train: {batch: }\n", "'batch' is nothing");
  refuses(IN OUT "train: {learning_rate: 0}\n", "a number more than 0");
  refuses(IN OUT "train: {learning_rate: fast}\n", "a number more than 0");
  refuses(IN OUT "train: {learning_rate: .nan}\n", "a number");
  refuses(IN OUT "train: {learning_rate: 1e999}\n", "a number");
  refuses(IN OUT "train: {learning_rate: 0x10}\n", "a number");
  refuses(IN OUT "trunk: {dropout: 1.5}\n",
          "'dropout' is '1.5' at model.yaml:3:18; a number from 0 to less than 1");
  refuses(IN OUT "trunk: {dropout: 1}\n", "to less than 1");
  refuses(IN OUT "trunk: {hidden: 64}\n", "a list such as [64, 32] is needed");
  refuses(IN OUT "trunk: {hidden: [64, -1]}\n", "'hidden' is '-1' at model.yaml:3:22");
  refuses(IN OUT "trunk: 5\n", "'trunk' is a single value at model.yaml:3:8; a map");
  refuses(IN OUT "train: {shuffle: maybe}\n", "true or false");
  refuses(IN OUT "train: {warmup: 500}\n", "'500 steps' or '2 epochs'");
  refuses(IN OUT "train: {warmup: 1.5 steps}\n", "'500 steps' or '2 epochs'");
  refuses("inputs: {a: {kind: sequence, units: -4}}\n" OUT, "'units' is '-4'");
  refuses("inputs: {a: {path: /x}}\n" OUT,
          "input 'a' at model.yaml:1:13 has no 'kind'; add one: dense, sequence");
  refuses("inputs: {a b: {kind: dense}}\n" OUT, "input name 'a b' is not usable");
  refuses("inputs: [a]\n" OUT, "'inputs' is a list");
  refuses(IN "outputs: {y: {task: classification, class_weights: heavy}}\n",
          "balanced, a list or a map");
  refuses(IN "outputs: {y: {task: classification, class_weights: {a: -1}}}\n", "at least 0");
  refuses(IN "outputs: {y: {task: classification, labels: [a, a]}}\n", "twice");
  refuses(IN "outputs: {y: {task: classification, labels: [a, !x b]}}\n", "tag");
  refuses(IN "outputs: {y: {task: classification, labels: [\"a\\0b\"]}}\n", "NUL byte");
}
END_TEST

START_TEST(refuses_duplicates) {
  refuses(IN OUT "train: {batch: 3, batch: 4}\n",
          "'batch' is given twice, again at model.yaml:3:19");
  refuses(IN OUT IN, "'inputs' is given twice");
  refuses("inputs: {a: {kind: dense}, a: {kind: set}}\n" OUT, "input 'a' is there twice");
  refuses(IN OUT "placement: {a: cpu:0, a: cpu:1}\n", "'a' is given twice");
  refuses(IN OUT "data: {train: {a: /x, a: /y}}\n", "'a' is given twice");
}
END_TEST

START_TEST(judges_keys_against_each_other) {
  refuses(OUT, "no inputs");
  refuses(IN, "no outputs");
  refuses(IN "outputs: {a: {task: regression}}\n", "is an input and an output");
  refuses("inputs: {trunk: {kind: dense}}\n" OUT, "hide the trunk");
  refuses(IN "outputs: {y: {task: regression, weight: 0}}\n", "weight 0");
  refuses(IN "outputs: {y: {task: regression, huber_delta: 2}}\n", "add loss: huber");
  refuses(IN "outputs: {y: {task: classification, labels: [cat, dog], class_weights: {cta: 2}}}\n",
          "did you mean 'cat'?");
  refuses(IN "outputs: {y: {task: classification, labels: [cat, dog], class_weights: [1]}}\n",
          "one weight a label");
  refuses(IN "outputs: {y: {task: classification, class_weights: [0, 0]}}\n", "all 0");
  refuses(IN "outputs: {y: {task: classification, labels: [cat, dog], class_weights: {cat: 0, dog: "
             "0}}}\n",
          "class_weights that are all 0");
  refuses(IN "outputs: {y: {task: multilabel, class_weights: balanced}}\n",
          "is for task classification");
  refuses(IN OUT "train: {optimizer: sgd, nesterov: true}\n", "needs momentum");
  refuses(IN OUT "train: {batch: 2, micro_batches: 3}\n", "more micro_batches");
  refuses(IN OUT "train: {recompute: [aa]}\n", "did you mean 'a'?");
  refuses(IN OUT "train: {recompute: [a+trunc]}\n", "did you mean 'trunk'?");
  refuses(IN OUT "train: {recompute: [a, none]}\n", "stands alone");
  refuses(IN OUT "train: {recompute: a}\n", "a list such as");
  refuses(IN OUT "train: {schedule: step}\n", "needs a step_size");
  refuses(IN OUT "train: {gamma: 0.5}\n", "gamma is for");
  refuses(IN OUT "train: {min_learning_rate: 1}\n", "above learning_rate");
  refuses(IN OUT "train: {monitor: valid.y.acuracy}\n", "did you mean 'accuracy'?");
  refuses(IN OUT "train: {monitor: valid.x.accuracy}\n", "did you mean 'y'?");
  refuses(IN OUT "train: {monitor: test.y.accuracy}\n", "would choose by the test data");
  refuses(IN OUT "train: {monitor: valid.y}\n", "with: accuracy, balanced_accuracy");
  refuses(IN OUT "train: {monitor: best}\n", "use valid.loss or");
  refuses("inputs: {s: {kind: sequence, encoder: mean, pool: max}}\n" OUT,
          "encoder: mean and another pool");
  refuses("inputs: {s: {kind: stream}, a: {kind: dense}}\n", "stand alone");
  refuses("inputs: {s: {kind: stream, next: false}}\n", "next: false");
  refuses("inputs: {s: {kind: stream}}\noutputs: {y: {task: classification, path: /y}}\n",
          "no path");
}
END_TEST

#define IMAGE_OF(keys) "inputs: {a: {kind: image, " keys "}}\n" OUT
START_TEST(images_have_lists_of_layers) {
  sn_model_config *c = NULL;
  ck_sn_ok(read_checked(IMAGE_OF("filters: [8, 16, 32], kernel: [5, 3, 3], max_pool: [2]"), &c));
  const sn_model_input *in = &c->inputs[0];
  ck_assert_int_eq(in->encoder, SN_CONFIG_ENCODER_CONV);
  ck_assert_int_eq(in->pool, SN_CONFIG_POOL_MEAN);
  ck_assert(in->filters.count == 3 && in->kernel.items[0] == 5 && in->max_pool.count == 1);
  ck_assert(in->stride.count == 1 && in->stride.items[0] == 1);
  sn_model_config_free(c);
  ck_sn_ok(read_checked(IMAGE_OF("encoder: inception, stem: 8, reduce: 4, pool: flatten"), &c));
  ck_assert(c->inputs[0].stem == 8 && c->inputs[0].reduce == 4);
  sn_model_config_free(c);
  refuses(IMAGE_OF("kernal: [3]"), "did you mean 'kernel'?");
  refuses(IMAGE_OF("kernel: [4]"), "give an odd one");
  refuses(IMAGE_OF("filters: []"), "no filters");
  refuses(IMAGE_OF("stride: [1, 2, 1]"), "2 filters and 3 stride; give one for all");
  refuses(IMAGE_OF("encoder: inception, filters: [30]"), "a multiple of 4");
  refuses(IMAGE_OF("encoder: inception, kernel: [5]"), "has kernel, which is for encoder: conv");
  refuses(IMAGE_OF("stem: 4"), "has stem, which is for encoder: inception");
  refuses(IMAGE_OF("encoder: inception, activation: none"), "give another activation");
  refuses(IMAGE_OF("pool: last"), "use mean, max or flatten");
  refuses(IMAGE_OF("units: 3"), "is for kind sequence, stream, not image");
}
END_TEST

START_TEST(a_stream_makes_its_output) {
  sn_model_config *c = NULL;
  ck_sn_ok(read_checked("inputs: {text: {kind: stream, path: /train, window: 32, next: true}}\n"
                        "train: {monitor: valid.next.nats}\n",
                        &c));
  ck_assert_uint_eq(c->output_count, 1);
  ck_assert_str_eq(c->outputs[0].name, "next");
  ck_assert_ptr_null(c->outputs[0].path);
  ck_assert_int_eq(c->inputs[0].window, 32);
  ck_assert_int_eq(c->inputs[0].embedding, 32);
  sn_model_config_free(c);
}
END_TEST

START_TEST(defaults_follow_the_kind) {
  sn_model_config *c = NULL;
  ck_sn_ok(read_checked(IN OUT "train: {optimizer: adamw, schedule: exponential}\n", &c));
  ck_assert_double_eq(c->train.weight_decay, 0.01);
  ck_assert_double_eq(c->train.gamma, 0.95);
  ck_assert_str_eq(c->inputs[0].path, "/a");
  ck_assert_str_eq(c->train.monitor, "valid.loss");
  ck_assert(c->train.save_every.epochs);
  ck_assert(isnan(c->outputs[0].missing_number));
  sn_model_config_free(c);
  ck_sn_ok(read_checked(
      "inputs: {a: {kind: dense, path: x}}\n"
      "outputs: {y: {task: regression, missing: -1, loss: huber}, z: {task: multilabel}}\n"
      "trunk:\n",
      &c));
  ck_assert_str_eq(c->inputs[0].path, "/x");
  ck_assert_str_eq(c->outputs[0].missing, "-1");
  ck_assert_double_eq(c->outputs[0].missing_number, -1);
  ck_assert_int_eq(c->outputs[0].normalize, SN_CONFIG_NORMALIZE_STANDARD);
  ck_assert_int_eq(c->outputs[1].loss, SN_CONFIG_LOSS_BINARY_CROSS_ENTROPY);
  ck_assert_double_eq(c->train.weight_decay, 0);
  sn_model_config_free(c);
}
END_TEST

static void set_fails(sn_model_config *config, const char *assignment, const char *words) {
  ck_sn_fails(sn_model_config_set(config, assignment), SN_CODE_CONFIG, words);
}

START_TEST(overrides_go_through_the_table) {
  sn_model_config *c = NULL;
  ck_sn_ok(sn_model_config_read(full, strlen(full), "model.yaml", &c));
  ck_sn_ok(sn_model_config_set(c, "train.learning_rate=0.01"));
  ck_sn_ok(sn_model_config_set(c, "train.batch= 32"));
  ck_sn_ok(sn_model_config_set(c, "train.optimizer=adamw"));
  ck_sn_ok(sn_model_config_set(c, "trunk.hidden=[32, 16]"));
  ck_sn_ok(sn_model_config_set(c, "inputs.strokes.units=7"));
  ck_sn_ok(sn_model_config_set(c, "outputs.digit.class_weights={a: 2}"));
  ck_sn_ok(sn_model_config_set(c, "placement.strokes=cpu:0"));
  ck_sn_ok(sn_model_config_set(c, "placement.pix*=cpu:2"));
  ck_sn_ok(sn_model_config_set(c, "data.test.profile=/x_test"));
  ck_sn_ok(sn_model_config_set(c, "train.warmup=2 epochs"));
  set_fails(c, "train.learning_rat=0.01",
            "unknown key 'learning_rat' in train in --set train.learning_rat=0.01; did you mean "
            "'learning_rate'?");
  set_fails(c, "inputs.stroks.units=3", "did you mean 'strokes'?");
  set_fails(c, "trian.batch=3", "did you mean 'train'?");
  set_fails(c, "train.batch=0", "a whole number from 1");
  set_fails(c, "train.batch=", "gives no value");
  set_fails(c, "train.batch", "no key and value");
  set_fails(c, "train={batch: 3}", "names no key");
  set_fails(c, "inputs.strokes=3", "inputs.NAME.KEY=value");
  set_fails(c, "train.batch=[", "no YAML");
  set_fails(c, "data.later.profile=/x", "unknown split");
  ck_sn_ok(sn_model_config_check(c, 0));
  ck_assert_double_eq(c->train.learning_rate, 0.01);
  ck_assert_double_eq(c->train.weight_decay, 0.01);
  ck_assert_int_eq(c->train.batch, 32);
  ck_assert_uint_eq(c->trunk.hidden.count, 2);
  ck_assert_int_eq(c->inputs[0].units, 7);
  ck_assert_uint_eq(c->pin_count, 2);
  ck_assert_str_eq(c->pins[0].device, "cpu:0");
  ck_assert_str_eq(sn_model_config_source(c, SN_CONFIG_SPLIT_TEST, "profile", NULL), "/x_test");
  ck_sn_ok(sn_model_config_set(c, "inputs.strokes.kind=dense"));
  ck_sn_fails(sn_model_config_check(c, 0), SN_CODE_CONFIG, "is for kind sequence");
  sn_model_config_free(c);
}
END_TEST

static void reads_back(const char *text, unsigned flags) {
  sn_model_config *c = NULL, *again = NULL;
  char *first = NULL, *second = NULL;
  ck_sn_ok(read_checked(text, &c));
  ck_sn_ok(sn_model_config_write(c, flags, &first));
  sn_status status = read_checked(first, &again);
  ck_assert_msg(status == SN_OK, "%s\nof\n%s", sn_status_message(status), first);
  ck_sn_ok(sn_model_config_write(again, flags, &second));
  ck_assert_str_eq(first, second);
  if (flags == 0) ck_assert_int_eq(again->train.epochs, c->train.epochs);
  sn_text_free(first);
  sn_text_free(second);
  sn_model_config_free(c);
  sn_model_config_free(again);
}

START_TEST(what_is_written_reads_back) {
  const char *odd =
      "inputs: {a: {kind: sequence, path: \"/with space: \\t\\\"\", lengths: n, norm: layer}}\n"
      "outputs: {y: {task: classification, labels: [\"yes\", \"1\", \"\\u00e9\", \"null\"],"
      " class_weights: {\"yes\": 0.1, \"1\": 3}, missing: \"?\"}}\n"
      "train: {learning_rate: 0.30000000000000004, warmup: 0.5 epochs, seed: 9007199254740992}\n"
      "data: {train: {a: {path: /b, lengths: /c}}}\n";
  for (unsigned flags = 0; flags < 4; flags++) {
    reads_back(full, flags);
    reads_back(odd, flags);
    reads_back(IN OUT, flags);
    reads_back("inputs: {s: {kind: stream}}\n", flags);
    reads_back(IMAGE_OF("filters: [8, 4], kernel: [5, 3], stride: [2], pool: max"), flags);
    reads_back(IMAGE_OF("encoder: inception, stem: 8, max_pool: [1]"), flags);
  }
  sn_model_config *c = NULL;
  char *text = NULL;
  ck_sn_ok(read_checked(odd, &c));
  ck_sn_ok(sn_model_config_write(c, 0, &text));
  ck_assert_ptr_nonnull(strstr(text, "learning_rate: 0.30000000000000004"));
  ck_assert_ptr_nonnull(strstr(text, "labels: [\"yes\", \"1\", \"\xc3\xa9\", \"null\"]"));
  sn_text_free(text);
  sn_model_config_free(c);
}
END_TEST

START_TEST(built_without_a_file) {
  sn_model_config *c = NULL;
  sn_model_input *input = NULL;
  sn_model_output *output = NULL;
  char *text = NULL;
  ck_sn_ok(sn_model_config_create(&c));
  ck_sn_ok(sn_model_config_add_input(c, "visits", SN_CONFIG_KIND_SET, &input));
  ck_assert_uint_eq(input->phi.count, 2);
  ck_sn_fails(sn_model_config_add_input(c, "visits", SN_CONFIG_KIND_SET, &input), SN_CODE_CONFIG,
              "twice");
  ck_sn_fails(sn_model_config_add_input(c, "a/b", SN_CONFIG_KIND_SET, &input), SN_CODE_CONFIG,
              "not usable");
  ck_sn_ok(sn_model_config_add_output(c, "cost", SN_CONFIG_TASK_REGRESSION, &output));
  output->loss = SN_CONFIG_LOSS_HUBER;
  ck_sn_ok(sn_model_config_check(c, 0));
  ck_sn_ok(sn_model_config_write(c, SN_CONFIG_COMMENTS, &text));
  ck_assert_ptr_nonnull(strstr(text, "    kind: set  "));
  ck_assert_ptr_nonnull(strstr(text, "    loss: huber  "));
  ck_assert_ptr_nonnull(strstr(text, "# squared, absolute or Huber error\n"));
  sn_text_free(text);
  sn_model_config_free(c);
  sn_model_config_free(NULL);
}
END_TEST

/* ---- hostile files --------------------------------------------------------------------------- */

START_TEST(refuses_what_is_no_model_file) {
  refuses("", "model.yaml is empty");
  refuses("# nothing\n", "model.yaml is empty");
  refuses("~\n", "model.yaml is empty");
  refuses("inputs: {a: [}\n", "no YAML at model.yaml:1:14");
  refuses("inputs: \xff\xfe\n", "save it as plain UTF-8");
  refuses("\x89HDF\r\n\x1a\n", "UTF-8");
  refuses("--- {}\n--- {}\n", "model.yaml");
  refuses(IN OUT "---\nx: 1\n", "second document");
  refuses("[1, 2]\n", "'the model file' is a list");
  refuses("? [a]\n: b\n", "'key' is a list");
  refuses("a: *b\n", "no YAML");
}
END_TEST

START_TEST(bounds_aliases_and_depth) {
  refuses("inputs: &a {a: *a}\n", "has no 'kind'");
  refuses("a: &a [x]\nb: &b [*a,*a]\n", "unknown key 'a'");
  size_t size = 1 << 20;
  char *text = malloc(size + 1);
  memset(text, '[', size);
  text[size] = '\0';
  refuses(text, "more than 4096 brackets");
  for (size_t i = 0; i + 4 < size; i += 4) {
    memcpy(text + i, "&a ,", 4);
  }
  refuses(text, "more than 100 anchors");
  memset(text, ' ', size);
  text[size - 1] = 'a';
  refuses(text, "");
  /* A long list named by many aliases: read at most so many items. */
  size_t used = 0;
  memset(text, 0, size);
  used += (size_t)sprintf(text, "outputs:\n  y0: {task: classification, labels: &l [");
  for (int i = 0; i < 4000; i++) {
    used += (size_t)sprintf(text + used, "%d,", i);
  }
  used += (size_t)sprintf(text + used, "]}\n");
  for (int i = 1; i < 200; i++) {
    used += (size_t)sprintf(text + used, "  y%d: {task: classification, labels: *l}\n", i);
  }
  refuses(text, "more than 50000 list items");
  free(text);
  sn_model_config *c = NULL;
  ck_sn_fails(sn_model_config_read("", (1 << 20) + 1, "big", &c), SN_CODE_CONFIG, "larger than");
}
END_TEST

START_TEST(opens_only_files) {
  sn_model_config *c = NULL;
  char name[] = "/tmp/sn_config_XXXXXX", fifo[64];
  ck_sn_fails(sn_model_config_load("/nowhere/model.yaml", &c), SN_CODE_CONFIG, "No such file");
  ck_sn_fails(sn_model_config_load("/tmp", &c), SN_CODE_CONFIG, "it is a folder");
  int file = mkstemp(name);
  ck_assert_int_ge(file, 0);
  ck_sn_fails(sn_model_config_load(name, &c), SN_CODE_CONFIG, "is empty");
  ck_assert_int_eq(write(file, full, strlen(full)), (ssize_t)strlen(full));
  ck_sn_ok(sn_model_config_load(name, &c));
  ck_assert_str_eq(c->file, name);
  sn_model_config_free(c);
  ck_assert_int_eq(ftruncate(file, (1 << 20) + 1), 0);
  ck_sn_fails(sn_model_config_load(name, &c), SN_CODE_CONFIG, "larger than");
  snprintf(fifo, sizeof fifo, "%s.fifo", name);
  ck_assert_int_eq(mkfifo(fifo, 0600), 0);
  ck_sn_fails(sn_model_config_load(fifo, &c), SN_CODE_CONFIG, "no regular file");
  unlink(fifo);
  unlink(name);
  close(file);
}
END_TEST

START_TEST(messages_stay_printable) {
  char text[400];
  snprintf(text, sizeof text, "inputs: {a: {kind: dense, \"x\\n\\e%0150d\": 1}}\n", 1);
  refuses(text, "unknown key 'x??000");
  refuses("inputs: {a: {kind: dense, "
          "\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
          "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
          "\xc3\xa9"
          "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
          "\xc3\xa9"
          "\xc3\xa9\": 1}}\n",
          "\xc3\xa9...'");
}
END_TEST

static sn_status all_of_it(void *arg) {
  (void)arg;
  sn_model_config *c = NULL;
  char *text = NULL;
  SN_TRY(read_checked(full, &c));
  sn_status status = sn_model_config_set(c, "train.monitor=valid.digit.f1");
  if (status == SN_OK) status = sn_model_config_write(c, SN_CONFIG_ALL | SN_CONFIG_COMMENTS, &text);
  sn_text_free(text);
  text = NULL;
  if (status == SN_OK) status = sn_model_config_write(c, 0, &text);
  sn_text_free(text);
  sn_model_config_free(c);
  return status;
}

START_TEST(survives_every_failing_allocation) {
  ck_assert_int_gt(sn_fail_alloc_every_call(all_of_it, NULL), 20);
}
END_TEST

static sn_status one_mistake(void *arg) {
  sn_model_config *c = NULL;
  sn_status status = read_checked(arg, &c);
  /* The mistake may be met before memory runs out. */
  if (sn_status_code(status) == SN_CODE_CONFIG) {
    sn_status_free(status);
    return SN_OK;
  }
  if (status == SN_OK) sn_model_config_free(c);
  return status;
}

START_TEST(mistakes_survive_failing_allocation) {
  char text[] = IN OUT "train: {batch: 0}\n";
  ck_assert_int_gt(sn_fail_alloc_every_call(one_mistake, text), 3);
}
END_TEST

START_TEST(numbers_ignore_the_locale) {
  if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
    return; /* not installed: the number reader names its locale, so nothing is lost */
  reads_back(full, SN_CONFIG_ALL);
  setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(nearest_words) {
  const char *const known[] = {"train", "trunk", NULL, "placement"};
  ck_assert_uint_eq(sn__edit_distance("trian", "train"), 1);
  ck_assert_uint_eq(sn__edit_distance("", "abc"), 3);
  ck_assert_uint_eq(sn__edit_distance("kitten", "sitting"), 3);
  ck_assert_uint_eq(sn__edit_distance("Train", "train"), 0);
  ck_assert_str_eq(sn__nearest("trian", known, 4), "train");
  ck_assert_str_eq(sn__nearest("place", known, 4), "placement");
  ck_assert_ptr_null(sn__nearest("xyzzy", known, 4));
}
END_TEST

static Suite *config_suite(void) {
  Suite *suite = suite_create("config");
  TCase *reading = tcase_create("reading"), *hostile = tcase_create("hostile");
  tcase_add_test(reading, reads_the_whole_file);
  tcase_add_test(reading, names_the_unknown_key);
  tcase_add_test(reading, refuses_wrong_values);
  tcase_add_test(reading, refuses_duplicates);
  tcase_add_test(reading, judges_keys_against_each_other);
  tcase_add_test(reading, images_have_lists_of_layers);
  tcase_add_test(reading, a_stream_makes_its_output);
  tcase_add_test(reading, defaults_follow_the_kind);
  tcase_add_test(reading, overrides_go_through_the_table);
  tcase_add_test(reading, what_is_written_reads_back);
  tcase_add_test(reading, built_without_a_file);
  tcase_add_test(reading, numbers_ignore_the_locale);
  tcase_add_test(reading, nearest_words);
  tcase_add_test(hostile, refuses_what_is_no_model_file);
  tcase_add_test(hostile, bounds_aliases_and_depth);
  tcase_add_test(hostile, opens_only_files);
  tcase_add_test(hostile, messages_stay_printable);
  tcase_add_test(hostile, survives_every_failing_allocation);
  tcase_add_test(hostile, mistakes_survive_failing_allocation);
  tcase_set_timeout(hostile, 60);
  suite_add_tcase(suite, reading);
  suite_add_tcase(suite, hostile);
  return suite;
}

SN_TEST_MAIN(config_suite)
