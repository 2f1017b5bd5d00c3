/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a dataset as feeds of a graph: inputs by the names of fields, and what each output is
 * measured against. */
#ifndef SN_TOOLS_SENNIT_BIND_H
#define SN_TOOLS_SENNIT_BIND_H

#include "core/run/session.h"
#include "io/dataset.h"
#include "tools/sennit/metrics.h"

typedef struct bind_input {
  sn_value value;
  size_t field;
  bool weights; /* the field's weights, not its data */
} bind_input;

enum { BIND_NONE = -1 };

typedef struct bind_output {
  const char *name;
  sn_value value;
  metric_kind kind;
  int64_t width;   /* of a row of predictions */
  int loss;        /* its number, or BIND_NONE */
  int field;       /* of its labels in the dataset, or BIND_NONE */
  int preparation; /* of its labels, or BIND_NONE */
  int ragged;      /* field whose elements it has a prediction for; BIND_NONE: one a row */
} bind_output;

typedef struct bind_set {
  const sn_graph *graph;
  bind_input *inputs;
  size_t n_inputs;
  bind_output *outputs;
  size_t n_outputs;
  sn_feed *feeds;
  float *ones; /* weights of fields that have none */
  size_t cap_ones;
} bind_set;

/* With `labels` false the dataset need not have what only losses read. All are borrowed. */
sn_status bind_create(const sn_graph *graph, const sn_preparation *preparation,
                      const sn_dataset *dataset, bool labels, bind_set *out);
void bind_free(bind_set *bind);

/* The feeds of a batch, [n_inputs]; they are good as long as the batch is, until the next call. */
sn_status bind_feeds(bind_set *bind, const sn_batch *batch, const sn_feed **out_feeds);

/* Rows of a batch, or elements where the output has one prediction for each. */
int64_t bind_rows(const bind_output *output, const sn_batch *batch);

#endif
