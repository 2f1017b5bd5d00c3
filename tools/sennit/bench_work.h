/* SPDX-License-Identifier: Apache-2.0 */
/* The reference works of `sennit bench`: how each is built, fed, counted and written. */
#ifndef SN_TOOLS_SENNIT_BENCH_WORK_H
#define SN_TOOLS_SENNIT_BENCH_WORK_H

#include "placement/trainer.h"
#include "tools/sennit/h3_work.h"
#include "tools/sennit/inception_work.h"

enum { BENCH_H3 = 0, BENCH_INCEPTION }; /* in the order of the command's words */

typedef struct bench_work {
  int kind;
  const char *name, *size;
  int64_t batch;
  const sn_h3_sizes *h3;
  const sn_inception_sizes *inception;
} bench_work;

typedef struct bench_batch {
  h3_work h3;
  inception_work inception;
  const sn_feed *feeds;
  size_t n_feeds;
  double flops; /* of a training step on it */
} bench_batch;

typedef struct bench_extents {
  sn_extent items[5];
  size_t n;
} bench_extents;

/* size: 0 S, 1 M, 2 L. */
bench_work bench_work_of(int kind, int size);
sn_status bench_work_build(const bench_work *work, sn_graph *graph);
/* The largest of so many batches, known beforehand as a loader knows its epoch's. */
sn_status bench_work_extents(const bench_work *work, int64_t batches, bench_extents *out);
/* One batch by its number, for inputs of `graph`. */
sn_status bench_batch_make(const bench_work *work, const sn_graph *graph, uint64_t number,
                           bench_batch *out_batch);
void bench_batch_free(bench_batch *batch);
/* data.h5 and model.yaml in a new folder. */
sn_status bench_work_write(const bench_work *work, const char *folder, int64_t batches);

#endif
