/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over rows without an update: losses, measures, and predictions for whoever wants them. */
#ifndef SN_TOOLS_SENNIT_EVALUATE_H
#define SN_TOOLS_SENNIT_EVALUATE_H

#include "placement/trainer.h"
#include "tools/sennit/bind.h"
#include "tools/sennit/json.h"
#include "tools/sennit/ui.h"

typedef struct evaluated_output {
  const char *name; /* borrowed from the graph */
  double loss;      /* NaN when it has none */
  size_t n_values;
  metric_value values[METRICS_MOST];
} evaluated_output;

typedef struct evaluation {
  double loss; /* of all outputs, by their weights */
  int64_t rows;
  size_t n_outputs;
  evaluated_output *outputs;
} evaluation;

typedef struct evaluate_options {
  sn_trainer *trainer;
  const sn_preparation *preparation;
  const sn_dataset *dataset;
  const int64_t *rows; /* NULL: all */
  int64_t n_rows;
  int64_t batch;
  ui_state *ui;      /* NULL: no progress */
  const char *title; /* of the progress */
  bool no_labels;    /* predictions alone: no losses, no measures */
  /* Called with each batch's predictions, [bind_rows(), width] of each output in order; may be
   * NULL. */
  sn_status (*take)(void *user, const bind_set *bind, const sn_batch *batch,
                    const float *const *predictions);
  void *user;
} evaluate_options;

/* INTERRUPTED when a signal asks to end. */
sn_status evaluate_run(const evaluate_options *options, evaluation *out);
void evaluation_free(evaluation *e);
/* "loss", "digit.accuracy", "digit.loss"; false when there is no such thing. */
bool evaluation_find(const evaluation *e, const char *name, double *out_value);
/* {"loss": .., "digit": {"accuracy": .., "loss": ..}} */
void evaluation_json(json_report *report, cJSON *into, const evaluation *e);
/* "digit accuracy 0.9721, log_loss 0.1043": the first measures of each output. */
const char *evaluation_words(const evaluation *e, size_t measures, char *buffer, size_t size);
/* One line for each output. */
void evaluation_show(ui_state *ui, const char *title, const evaluation *e);

#endif
