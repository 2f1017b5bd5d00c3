/* SPDX-License-Identifier: Apache-2.0 */
/* What a second device gives: two equal LSTM branches on cpu*2 against the same on cpu:0, one
 * thread a device.
 *
 *   bench_branches [--sittings N] [--rounds N]
 *
 * A sitting takes turns of 5 steps on each and compares medians; the last line is the median
 * sitting. Every step has fresh values and lengths, made outside the timed part. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "layers/layers.h"
#include "placement/trainer.h"
#include "tools/sennit/h3_work.h"

enum { TURN = 5, WARM_UP = 8 };

/* The widths of h3-M's sequence branch; the second branch reads the same sequence. */
static const sn_h3_sizes sizes = {.batch = 128,
                                  .dense_in = 1,
                                  .sequence_in = 32,
                                  .sequence_units = 128,
                                  .sequence_longest = 64,
                                  .set_in = 1,
                                  .set_largest = 1,
                                  .classes = 10};

static void need(sn_status s) {
  if (s == SN_OK) return;
  fprintf(stderr, "bench_branches: %s\n", sn_status_message(s));
  exit(sn_code_exit(sn_status_code(s)));
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + 1e-6 * (double)t.tv_nsec;
}

static sn_graph *build(void) {
  sn_graph *g = NULL;
  need(sn_graph_create(&g));
  sn_value pooled[2];
  const char *names[] = {"left", "right"};
  for (int i = 0; i < 2; i++) {
    sn_sequence x = sn_sequence_input(g, names[i], SN_F32, sizes.sequence_in);
    sn_module_begin(g, names[i]);
    pooled[i] =
        sn_sequence_mean(g, sn_lstm(g, x, .units = sizes.sequence_units, .bidirectional = true));
    sn_module_end(g);
  }
  sn_value label = sn_input(g, "label", SN_I64, 0);
  sn_module_begin(g, "trunk");
  sn_value z =
      sn_dense(g, sn_concat(g, SN_VALUES(pooled[0], pooled[1]), .axis = 1), .units = sizes.classes);
  sn_softmax_cross_entropy(g, z, label, .name = "label");
  sn_module_end(g);
  need(sn_graph_status(g));
  return g;
}

static sn_trainer *train_on(const sn_graph *g, const char *devices, int threads) {
  const int64_t most = sizes.batch * sizes.sequence_longest;
  const sn_extent extents[] = {{"batch", sizes.batch},
                               {"left.elements", most},
                               {"left.longest", sizes.sequence_longest},
                               {"right.elements", most},
                               {"right.longest", sizes.sequence_longest}};
  sn_trainer_options o = {
      .struct_size = sizeof o,
      .devices = devices,
      .threads = threads,
      .extents = extents,
      .n_extents = sizeof extents / sizeof *extents,
      .optimizer = {.struct_size = sizeof o.optimizer, .kind = SN_ADAM, .learning_rate = 1e-3}};
  sn_trainer *t = NULL;
  need(sn_trainer_create(g, &o, &t));
  return t;
}

/* Milliseconds of step `number`. */
static double step(sn_trainer *t, const sn_graph *g, uint64_t number) {
  h3_work w;
  need(h3_work_make(NULL, &sizes, sizes.batch, number, &w));
  const sn_feed feeds[] = {
      {.value = sn_graph_find_input(g, "left"),
       .data = w.sequence,
       .offsets = w.sequence_offsets,
       .rows = w.rows},
      {.value = sn_graph_find_input(g, "right"),
       .data = w.sequence,
       .offsets = w.sequence_offsets,
       .rows = w.rows},
      {.value = sn_graph_find_input(g, "label"), .data = w.outcome, .rows = w.rows}};
  const double began = now_ms();
  need(sn_trainer_step(t, feeds, 3, NULL));
  const double took = now_ms() - began;
  h3_work_free(&w);
  return took;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, by_size);
  return x[n / 2];
}

static double sitting(const sn_graph *g, int rounds) {
  sn_trainer *on[2] = {train_on(g, "cpu:0", 1), train_on(g, "cpu*2", 2)};
  double *ms[2];
  for (int d = 0; d < 2; d++) {
    ms[d] = sn__calloc((size_t)(rounds * TURN), sizeof **ms);
    if (ms[d] == NULL) need(sn_status_out_of_memory());
    for (uint64_t i = 0; i < WARM_UP; i++)
      step(on[d], g, i);
  }
  for (int i = 0; i < rounds * TURN * 2; i++) {
    const int d = i / TURN % 2, at = i / (2 * TURN) * TURN + i % TURN;
    ms[d][at] = step(on[d], g, (uint64_t)(WARM_UP + at));
  }
  const double one = median(ms[0], rounds * TURN), two = median(ms[1], rounds * TURN);
  printf("cpu:0 %.3f ms, cpu*2 %.3f ms: %.3fx\n", one, two, one / two);
  for (int d = 0; d < 2; d++) {
    sn_trainer_free(on[d]);
    sn__free(ms[d]);
  }
  return one / two;
}

int main(int argc, char **argv) {
  int sittings = 5, rounds = 12;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--sittings") == 0) sittings = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
  }
  if (sittings < 1 || sittings > 99 || rounds < 1 || rounds > 10000) {
    fprintf(stderr, "bench_branches: --sittings 1..99 --rounds 1..10000\n");
    return 2;
  }
  double ratios[99];
  sn_graph *g = build();
  for (int i = 0; i < sittings; i++)
    ratios[i] = sitting(g, rounds);
  printf("median of %d: %.3fx\n", sittings, median(ratios, sittings));
  sn_graph_free(g);
  return 0;
}
