/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/h3_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"

static uint64_t next(uint64_t *state) {
  uint64_t x = *state += 0x9E3779B97F4A7C15u; /* splitmix64 (Steele et al. 2014) */
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

double work_unit(uint64_t *state) {
  return (double)(next(state) >> 11) * 0x1p-53;
}

float *work_normals(uint64_t *state, int64_t count) {
  float *x = sn__alloc((size_t)(count + 2) * sizeof *x);
  for (int64_t i = 0; x != NULL && i < count; i += 2) {
    double r = sqrt(-2 * log(1 - work_unit(state))), a = 6.283185307179586 * work_unit(state);
    x[i] = (float)(r * cos(a));
    x[i + 1] = (float)(r * sin(a));
  }
  return x;
}

static int64_t *lengths(uint64_t *state, int64_t rows, int64_t longest) {
  int64_t *offsets = sn__alloc((size_t)(rows + 1) * sizeof *offsets);
  if (offsets != NULL) offsets[0] = 0;
  for (int64_t r = 0; offsets != NULL && r < rows; r++)
    offsets[r + 1] = offsets[r] + 1 + (int64_t)(work_unit(state) * (double)longest);
  return offsets;
}

sn_status h3_work_make(const sn_graph *graph, const sn_h3_sizes *s, int64_t rows, uint64_t number,
                       h3_work *w) {
  uint64_t state = number * 0xD1342543DE82EF95u + 1;
  *w = (h3_work){.rows = rows};
  w->sequence_offsets = lengths(&state, rows, s->sequence_longest);
  w->set_offsets = lengths(&state, rows, s->set_largest);
  if (w->sequence_offsets != NULL && w->set_offsets != NULL) {
    w->dense = work_normals(&state, rows * s->dense_in);
    w->sequence = work_normals(&state, w->sequence_offsets[rows] * s->sequence_in);
    w->set = work_normals(&state, w->set_offsets[rows] * s->set_in);
    w->outcome = sn__alloc((size_t)(rows + 1) * sizeof *w->outcome);
  }
  if (w->dense == NULL || w->sequence == NULL || w->set == NULL || w->outcome == NULL) {
    h3_work_free(w);
    return sn_status_out_of_memory();
  }
  for (int64_t r = 0; r < rows; r++)
    w->outcome[r] = (int64_t)(work_unit(&state) * (double)s->classes);
  if (graph == NULL) return SN_OK;
  w->feeds[0] =
      (sn_feed){.value = sn_graph_find_input(graph, "dense"), .data = w->dense, .rows = rows};
  w->feeds[1] = (sn_feed){.value = sn_graph_find_input(graph, "sequence"),
                          .data = w->sequence,
                          .offsets = w->sequence_offsets,
                          .rows = rows};
  w->feeds[2] = (sn_feed){.value = sn_graph_find_input(graph, "set"),
                          .data = w->set,
                          .offsets = w->set_offsets,
                          .rows = rows};
  w->feeds[3] =
      (sn_feed){.value = sn_graph_find_input(graph, "outcome"), .data = w->outcome, .rows = rows};
  return SN_OK;
}

void h3_work_free(h3_work *w) {
  sn__free(w->dense);
  sn__free(w->sequence);
  sn__free(w->set);
  sn__free(w->sequence_offsets);
  sn__free(w->set_offsets);
  sn__free(w->outcome);
  memset(w, 0, sizeof *w);
}

double h3_work_flops(const sn_h3_sizes *s, int64_t rows, int64_t sequence_elements,
                     int64_t set_elements) {
  double b = (double)rows, n = (double)sequence_elements, e = (double)set_elements;
  double dense =
      b * ((double)(s->dense_in * s->dense_hidden) + (double)(s->dense_hidden * s->dense_hidden));
  double sequence = n * 2 * 4 * (double)(s->sequence_units * (s->sequence_in + s->sequence_units));
  double set = e * ((double)(s->set_in * s->set_hidden) + (double)(s->set_hidden * s->set_hidden)) +
               b * (double)(s->set_hidden * s->set_hidden);
  double trunk =
      b * ((double)((s->dense_hidden + 2 * s->sequence_units + s->set_hidden) * s->trunk) +
           (double)(s->trunk * s->classes));
  return 2 * 3 * (dense + sequence + set + trunk);
}
