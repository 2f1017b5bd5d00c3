/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/bench_work.h"

#include <string.h>
#include "tools/sennit/h3_write.h"
#include "tools/sennit/inception_write.h"

bench_work bench_work_of(int kind, int size) {
  bench_work w = {.kind = kind};
  if (kind == BENCH_H3) {
    w.h3 = sn_h3_sizes_of((sn_h3_size)size);
    w.name = "h3";
    w.size = w.h3->name;
    w.batch = w.h3->batch;
  } else {
    w.inception = sn_inception_sizes_of((sn_inception_size)size);
    w.name = "inception";
    w.size = w.inception->name;
    w.batch = w.inception->batch;
  }
  return w;
}

sn_status bench_work_build(const bench_work *w, sn_graph *g) {
  return w->kind == BENCH_H3 ? sn_h3_build(g, w->h3) : sn_inception_build(g, w->inception);
}

static sn_status h3_extents(const sn_h3_sizes *s, int64_t batches, bench_extents *out) {
  int64_t sequence = 0, set = 0;
  for (int64_t i = 0; i < batches; i++) {
    h3_work w;
    sn_h3_sizes thin = *s;
    thin.dense_in = thin.sequence_in = thin.set_in = 1;
    SN_TRY(h3_work_make(NULL, &thin, s->batch, (uint64_t)i, &w));
    if (w.sequence_offsets[w.rows] > sequence) sequence = w.sequence_offsets[w.rows];
    if (w.set_offsets[w.rows] > set) set = w.set_offsets[w.rows];
    h3_work_free(&w);
  }
  *out = (bench_extents){{{"batch", s->batch},
                          {"sequence.elements", sequence},
                          {"sequence.longest", s->sequence_longest},
                          {"set.elements", set},
                          {"set.longest", s->set_largest}},
                         5};
  return SN_OK;
}

sn_status bench_work_extents(const bench_work *w, int64_t batches, bench_extents *out) {
  if (w->kind == BENCH_H3) return h3_extents(w->h3, batches, out);
  *out = (bench_extents){{{"batch", w->batch}}, 1};
  return SN_OK;
}

sn_status bench_batch_make(const bench_work *w, const sn_graph *g, uint64_t number,
                           bench_batch *out) {
  memset(out, 0, sizeof *out);
  if (w->kind == BENCH_H3) {
    h3_work *h = &out->h3;
    SN_TRY(h3_work_make(g, w->h3, w->batch, number, h));
    out->feeds = h->feeds;
    out->n_feeds = 4;
    out->flops =
        h3_work_flops(w->h3, h->rows, h->sequence_offsets[h->rows], h->set_offsets[h->rows]);
  } else {
    SN_TRY(inception_work_make(g, w->inception, w->batch, number, &out->inception));
    out->feeds = out->inception.feeds;
    out->n_feeds = 2;
    out->flops = inception_work_flops(w->inception, w->batch);
  }
  return SN_OK;
}

void bench_batch_free(bench_batch *b) {
  h3_work_free(&b->h3);
  inception_work_free(&b->inception);
}

sn_status bench_work_write(const bench_work *w, const char *folder, int64_t batches) {
  return w->kind == BENCH_H3 ? h3_write(folder, w->h3, batches)
                             : inception_write(folder, w->inception, batches);
}
