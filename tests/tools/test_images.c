/* SPDX-License-Identifier: Apache-2.0 */
/* kind: image from a file to a checkpoint; the four-path work as files. */
#include "tests/tools/read_h5.h"

/* Few rows and narrow blocks: what is tested does not depend on either. */
#define DATA  "--data \"$DIGITS/images_test.h5\" --config \"$DIGITS/images.yaml\" "
#define SMALL DATA "--set inputs.image.filters=[16,8] --set inputs.image.reduce=4 "

/* Every path of the first block somewhere else, and the head on its own. */
START_TEST(placement_changes_no_bit) {
  static const char *const ways[] = {
      "--devices cpu:0 --threads 1",
      "--devices 'cpu*2' --objective spread",
      "--devices 'cpu*4' --set placement.image/inception/1x1=cpu:0 --set "
      "placement.image/inception/3x3=cpu:1 --set placement.image/inception/5x5=cpu:2 --set "
      "placement.image/inception/pool=cpu:3 --set placement.digit=cpu:2",
  };
  char first[65] = "";
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const ran *r = sennit("train " SMALL "--steps 4 --json --out \"$T/w%zu\" %s", i, ways[i]);
    ck_assert_msg(r->code == 0, "%s: %s", ways[i], r->err);
    const char *hash = json_text_at(r->out, "params_sha256");
    if (i == 0) snprintf(first, sizeof first, "%s", hash);
    ck_assert_msg(strcmp(hash, first) == 0, "%s: %s, not %s", ways[i], hash, first);
  }
}
END_TEST

START_TEST(each_encoder_trains_and_predicts) {
  static const char *const sets[] = {
      "--set inputs.image.encoder=conv --set inputs.image.filters=[16] --set "
      "inputs.image.max_pool=[2]",
      "--set inputs.image.pool=flatten --set inputs.image.stem=8 --set inputs.image.norm=layer "
      "--set inputs.image.filters=[16,8]",
  };
  for (size_t i = 0; i < 2; i++) {
    /* Keys of the other encoder would be refused. */
    const char *config = i == 0 ? "$T/conv.yaml" : "$DIGITS/images.yaml";
    char line[400];
    snprintf(line, sizeof line, "sed 's/ reduce: 16,//' \"$DIGITS/images.yaml\" >\"$T/conv.yaml\"");
    ck_assert_int_eq(system(line), 0);
    sennit_ok("train --data \"$DIGITS/images_test.h5\" --config \"%s\" --steps 3 --set "
              "train.batch=16 --out \"$T/e%zu\" "
              "%s",
              config, i, sets[i]);
    const ran *r = sennit("eval --checkpoint \"$T/e%zu/last.h5\" --data \"$DIGITS/images_test.h5\" "
                          "--json",
                          i);
    ck_assert_msg(r->code == 0, "%s", r->err);
    sennit_ok("predict --checkpoint \"$T/e%zu/last.h5\" --data \"$DIGITS/images_test.h5\" --out "
              "\"$T/p%zu.h5\"",
              i, i);
  }
}
END_TEST

START_TEST(mistakes_are_one_line) {
  sennit_fails(1, "/digit has 1 dimensions: kind: image needs [rows, height, width]",
               "train " DATA "--set inputs.image.path=/digit --out \"$T/m\"");
  sennit_fails(2, "a window of 2 x 2 does not fit into an image of 1 x 1",
               "train " DATA "--set inputs.image.filters=[8,8,8] "
               "--set inputs.image.max_pool=[4,2,2] --out \"$T/m\"");
  sennit_fails(2, "did you mean 'inception'?",
               "train " DATA "--set inputs.image.encoder=inceptoin --out \"$T/m\"");
}
END_TEST

/* The four-path work as a model file has the variables of the four-path work. */
START_TEST(inception_files_build_it) {
  static const char *const names[] = {
      "image/stem/weight",
      "image/inception/1x1/conv2d/weight",
      "image/inception/3x3/reduce/weight",
      "image/inception/3x3/conv2d/weight",
      "image/inception/5x5/reduce/weight",
      "image/inception/5x5/conv2d/weight",
      "image/inception/pool/conv2d/weight",
      "outcome/out/weight",
  };
  sennit_ok("bench inception --size S --write \"$T/S\"");
  const ran *r = sennit("plan --data \"$T/S/data.h5\" --config \"$T/S/model.yaml\" --devices "
                        "'cpu*2' --json");
  ck_assert_msg(r->code == 0, "%s", r->err);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char quoted[100];
    snprintf(quoted, sizeof quoted, "\"%s\"", names[i]);
    ck_assert_msg(strstr(r->out, quoted) != NULL, "no %s", quoted);
  }
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("images");
  TCase *tcase = tcase_create("images");
  tcase_set_timeout(tcase, 120);
  tcase_add_checked_fixture(tcase, run_begin, run_end);
  tcase_add_test(tcase, placement_changes_no_bit);
  tcase_add_test(tcase, each_encoder_trains_and_predicts);
  tcase_add_test(tcase, mistakes_are_one_line);
  tcase_add_test(tcase, inception_files_build_it);
  suite_add_tcase(suite, tcase);
  return suite;
}

SN_TEST_MAIN(make_suite)
