/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint of a run holds, and how it comes back.
 *
 * Tensors: variables/<name> and slots/<name>. Texts: "graph" (JSON), "config" (canonical YAML with
 * every default), "preparation" (JSON), "state" (JSON: where the run was).
 *
 * Where the optimizer kept averaged weights (train.ema), those are what validation measured, so
 * they are what eval, predict and export take: see save_weights(). */
#ifndef SN_TOOLS_SENNIT_SAVE_H
#define SN_TOOLS_SENNIT_SAVE_H

#include "core/run/store.h"
#include "io/checkpoint.h"
#include "io/dataset.h"

/* Where a run is. Losses are sums over the epoch under way, by loss, and their weights. */
typedef struct run_state {
  int64_t step;    /* updates made */
  int64_t epoch;   /* whole epochs done */
  int64_t batch;   /* batches done of the next one */
  int64_t batches; /* an epoch */
  int64_t horizon; /* epochs in all */
  int64_t seed;
  int64_t best_epoch; /* 1 for the first; 0: none yet */
  double best;        /* the monitor there */
  int64_t since_best; /* epochs */
  double loss;        /* of the latest step */
  size_t n_losses;
  double *sums, *totals; /* [n_losses], owned */
  char data[65];         /* sn_dataset_fingerprint() of what it trains on; "": not known */
  char valid[65];        /* of --valid; "": not known, or there is none */
} run_state;

sn_status run_state_create(size_t n_losses, run_state *out);
void run_state_free(run_state *state);

/* What does not change from save to save; texts are owned (save_texts_free). */
typedef struct save_texts {
  char *graph, *config, *preparation;
} save_texts;
void save_texts_free(save_texts *texts);

/* `metrics` is a JSON object's text, or NULL. Written atomically. */
sn_status save_write(const char *path, const sn_store *store, const save_texts *texts,
                     const run_state *state, const char *metrics);

/* CORRUPT when the text is not what save_write() wrote. */
sn_status save_read_state(const sn_checkpoint *checkpoint, run_state *out);
/* Every variable and slot that the store has. CONFIG when one is missing or of another shape: the
 * model or the optimizer is another. */
sn_status save_read_store(const sn_checkpoint *checkpoint, const char *path, sn_store *store);

/* The weights of variable `name` that predictions are made with: averaged ones where there are any.
 * NULL when there is no such variable. */
const sn_named_tensor *save_weights(const sn_checkpoint *checkpoint, const char *name);
/* All of them, into the variables of the store (slots are left alone). */
sn_status save_read_weights(const sn_checkpoint *checkpoint, const char *path, sn_store *store);

/* Graph and preparation of a checkpoint. */
sn_status save_read_model(const sn_checkpoint *checkpoint, const char *path, sn_graph **out_graph,
                          sn_preparation **out_preparation);

/* "--checkpoint": a file, or the folder of a run, which means its best.h5, else last.h5. Opens it;
 * the path is the caller's (sn__free). */
sn_status save_open(const char *given, char **out_path, sn_checkpoint **out_checkpoint);

/* Averaged weights take the place of the variables while something is measured. */
typedef struct average average;
sn_status average_begin(sn_store *store, average **out_average); /* NULL when there are none */
sn_status average_end(average *average, sn_store *store);        /* puts the variables back */

#endif
