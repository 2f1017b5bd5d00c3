/* SPDX-License-Identifier: Apache-2.0 */
/* The tutorial's program, whole: docs/tutorial.md explains it piece by piece. */
#include <sennit.h>

#include <stdio.h>
#include <stdlib.h>

/* [model] */
static sn_status build(sn_graph *g) {
  sn_value person = sn_input(g, "person", SN_F32, 4); /* [batch, 4] */
  sn_sequence visits =
      sn_sequence_input(g, "visits", SN_F32, 3);        /* [visits.elements, 3] + offsets */
  sn_value outcome = sn_input(g, "outcome", SN_I64, 0); /* [batch] */

  sn_module_begin(g, "person");
  sn_value p = sn_dense(g, person, .units = 16, .activation = SN_RELU);
  sn_module_end(g);

  sn_module_begin(g, "visits");
  sn_value v = sn_sequence_mean(g, sn_lstm(g, visits, .units = 16));
  sn_module_end(g);

  sn_module_begin(g, "trunk");
  sn_value z = sn_dense(g, sn_concat(g, SN_VALUES(p, v), .axis = 1), .units = 2);
  sn_module_end(g);
  sn_output(g, "outcome", z);
  sn_softmax_cross_entropy(g, z, outcome, .name = "outcome");
  return sn_graph_status(g);
}
/* [model] */

/* [data] */
enum { ROWS = 64, LONGEST = 6 };

typedef struct batch {
  float person[ROWS * 4];
  float visits[ROWS * LONGEST * 3];
  int64_t offsets[ROWS + 1];
  int64_t outcome[ROWS];
} batch;

static float noise(void) {
  return (float)rand() / (float)RAND_MAX * 2 - 1;
}

/* The outcome is 1 when the visits' first feature adds up to more than the person's first. */
static void draw(batch *b) {
  b->offsets[0] = 0;
  for (int r = 0; r < ROWS; r++) {
    int64_t length = rand() % (LONGEST + 1); /* 0 is a length like any other */
    float sum = 0;
    for (int i = 0; i < 4; i++)
      b->person[r * 4 + i] = noise();
    for (int64_t e = b->offsets[r]; e < b->offsets[r] + length; e++) {
      for (int i = 0; i < 3; i++)
        b->visits[e * 3 + i] = noise();
      sum += b->visits[e * 3];
    }
    b->offsets[r + 1] = b->offsets[r] + length;
    b->outcome[r] = sum > b->person[r * 4];
  }
}
/* [data] */

/* [train] */
static sn_status train(void) {
  sn_graph *g = NULL;
  sn_trainer *trainer = NULL;
  batch *b = malloc(sizeof *b);
  sn_status status = sn_graph_create(&g);
  if (status == SN_OK) status = build(g);

  sn_pin pins[] = {
      {"visits", "cpu:1"}}; /* the sequence on the second device, the rest is placed for us */
  sn_trainer_options options = {.struct_size = sizeof options,
                                .devices = "cpu*2",
                                .optimizer = {.struct_size = sizeof options.optimizer,
                                              .kind = SN_ADAM,
                                              .learning_rate = 0.01},
                                .placement = {.pins = pins, .n_pins = 1},
                                .seed = 1};
  if (status == SN_OK) status = sn_trainer_create(g, &options, &trainer);
  if (status == SN_OK) printf("%s\n", sn_placement_sentence(sn_trainer_placement(trainer)));

  for (int step = 0; status == SN_OK && step < 300; step++) {
    double loss;
    draw(b);
    sn_feed feeds[] = {
        {.value = sn_graph_find_input(g, "person"), .data = b->person, .rows = ROWS},
        {.value = sn_graph_find_input(g, "visits"),
         .data = b->visits,
         .offsets = b->offsets,
         .rows = ROWS},
        {.value = sn_graph_find_input(g, "outcome"), .data = b->outcome, .rows = ROWS},
    };
    status = sn_trainer_step(trainer, feeds, 3, &loss);
    if (status == SN_OK && step % 100 == 99) printf("step %d: loss %.3f\n", step + 1, loss);
  }
  sn_trainer_free(trainer);
  sn_graph_free(g);
  free(b);
  return status;
}
/* [train] */

int main(void) {
  sn_status status = train();
  if (status != SN_OK) fprintf(stderr, "%s\n", sn_status_message(status));
  int code = sn_code_exit(sn_status_code(status));
  sn_status_free(status);
  return code;
}
