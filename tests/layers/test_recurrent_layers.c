/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers: mistakes in words, whatever the numbers. */
#include "layers/layers.h"
#include "tests/check_sn.h"

static const int64_t units[] = {0, -1, INT64_MAX / 2, INT64_MAX};

START_TEST(units_out_of_range) {
  sn_graph *g;
  ck_sn_ok(sn_graph_create(&g));
  sn_sequence x = sn_sequence_input(g, "x", SN_F32, 3);
  if (_i % 2 == 0)
    sn_lstm(g, x, .units = units[_i / 2]);
  else
    sn_gru(g, x, .units = units[_i / 2]);
  ck_sn_fails(sn_graph_status(g), SN_CODE_INVALID, "from 1 to 2147483647 units");
  sn_graph_free(g);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("recurrent_layers");
  TCase *t = tcase_create("mistakes");
  tcase_add_loop_test(t, units_out_of_range, 0, 2 * (int)(sizeof units / sizeof *units));
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
