/* SPDX-License-Identifier: Apache-2.0 */
/* Random H3 batches for tests: the same for a seed. */
#ifndef SN_TESTS_H3_BATCH_H
#define SN_TESTS_H3_BATCH_H

#include "core/rng.h"
#include "core/run/session.h"
#include "models/model.h"
#include "tests/check_sn.h"

/* A small H3. */
static const sn_h3_sizes h3_tiny = {.name = "tiny",
                                    .batch = 9,
                                    .dense_in = 5,
                                    .dense_hidden = 7,
                                    .sequence_in = 3,
                                    .sequence_units = 4,
                                    .sequence_longest = 5,
                                    .set_in = 2,
                                    .set_hidden = 6,
                                    .set_largest = 4,
                                    .trunk = 8,
                                    .classes = 3};

typedef struct h3_batch {
  int64_t rows;
  float *dense, *sequence, *set;
  int64_t *sequence_offsets, *set_offsets, *outcome;
  sn_feed feeds[4];
} h3_batch;

static inline float *h3_normals(uint64_t seed, uint64_t key, int64_t n) {
  float *x = malloc((size_t)(n + 2) * sizeof *x);
  for (int64_t i = 0; i < n; i += 2) {
    double pair[2];
    sn__rng_normal2(seed, key, (uint64_t)i, pair);
    x[i] = (float)pair[0];
    x[i + 1] = (float)pair[1];
  }
  return x;
}

static inline int64_t *h3_offsets(uint64_t seed, uint64_t key, int64_t rows, int64_t least,
                                  int64_t longest) {
  int64_t *offsets = malloc((size_t)(rows + 1) * sizeof *offsets);
  offsets[0] = 0;
  for (int64_t r = 0; r < rows; r++)
    offsets[r + 1] =
        offsets[r] + least +
        (int64_t)sn__rng_below(seed, key, (uint64_t)r, (uint64_t)(longest - least + 1));
  return offsets;
}

/* Lengths uniform in least..max. `g` is the graph that the feeds name inputs of. */
static inline h3_batch h3_make(const sn_graph *g, const sn_h3_sizes *s, uint64_t seed, int64_t rows,
                               int64_t least) {
  h3_batch b = {.rows = rows};
  b.sequence_offsets = h3_offsets(seed, 1, rows, least, s->sequence_longest);
  b.set_offsets = h3_offsets(seed, 2, rows, least, s->set_largest);
  b.dense = h3_normals(seed, 3, rows * s->dense_in);
  b.sequence = h3_normals(seed, 4, b.sequence_offsets[rows] * s->sequence_in);
  b.set = h3_normals(seed, 5, b.set_offsets[rows] * s->set_in);
  b.outcome = malloc((size_t)(rows + 1) * sizeof *b.outcome);
  for (int64_t r = 0; r < rows; r++)
    b.outcome[r] = (int64_t)sn__rng_below(seed, 6, (uint64_t)r, (uint64_t)s->classes);
  b.feeds[0] = (sn_feed){.value = sn_graph_find_input(g, "dense"), .data = b.dense, .rows = rows};
  b.feeds[1] = (sn_feed){.value = sn_graph_find_input(g, "sequence"),
                         .data = b.sequence,
                         .offsets = b.sequence_offsets,
                         .rows = rows};
  b.feeds[2] = (sn_feed){.value = sn_graph_find_input(g, "set"),
                         .data = b.set,
                         .offsets = b.set_offsets,
                         .rows = rows};
  b.feeds[3] =
      (sn_feed){.value = sn_graph_find_input(g, "outcome"), .data = b.outcome, .rows = rows};
  return b;
}

static inline void h3_free(h3_batch *b) {
  free(b->dense);
  free(b->sequence);
  free(b->set);
  free(b->sequence_offsets);
  free(b->set_offsets);
  free(b->outcome);
}

#endif
