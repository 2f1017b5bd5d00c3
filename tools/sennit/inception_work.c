/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/inception_work.h"

#include <string.h>
#include "core/alloc.h"
#include "tools/sennit/h3_work.h"

sn_status inception_work_make(const sn_graph *graph, const sn_inception_sizes *s, int64_t rows,
                              uint64_t number, inception_work *w) {
  uint64_t state = number * 0xD1342543DE82EF95u + 1;
  *w = (inception_work){.rows = rows};
  w->image = work_normals(&state, rows * s->side * s->side * s->channels);
  w->outcome = sn__alloc((size_t)(rows + 1) * sizeof *w->outcome);
  if (w->image == NULL || w->outcome == NULL) {
    inception_work_free(w);
    return sn_status_out_of_memory();
  }
  for (int64_t r = 0; r < rows; r++)
    w->outcome[r] = (int64_t)(work_unit(&state) * (double)s->classes);
  if (graph == NULL) return SN_OK;
  w->feeds[0] =
      (sn_feed){.value = sn_graph_find_input(graph, "image"), .data = w->image, .rows = rows};
  w->feeds[1] =
      (sn_feed){.value = sn_graph_find_input(graph, "outcome"), .data = w->outcome, .rows = rows};
  return SN_OK;
}

void inception_work_free(inception_work *w) {
  sn__free(w->image);
  sn__free(w->outcome);
  memset(w, 0, sizeof *w);
}

double inception_work_flops(const sn_inception_sizes *s, int64_t rows) {
  const double path = (double)s->filters / 4, reduce = (double)s->reduce;
  double in = (double)s->stem, pixel = 9 * (double)s->channels * in;
  for (int64_t i = 0; i < s->blocks; i++, in = (double)s->filters)
    pixel += in * (2 * path + 2 * reduce) + (9 + 25) * reduce * path;
  const double row = (double)(s->side * s->side) * pixel + in * (double)s->classes;
  return 2 * 3 * (double)rows * row;
}
