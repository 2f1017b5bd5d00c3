/* SPDX-License-Identifier: Apache-2.0 */
/* Random H3 data: standard normal values, lengths uniform in 1..longest, fresh every batch; the
 * same for a seed on any machine. */
#ifndef SN_TOOLS_SENNIT_H3_WORK_H
#define SN_TOOLS_SENNIT_H3_WORK_H

#include "core/run/session.h"
#include "models/model.h"

typedef struct h3_work {
  int64_t rows;
  float *dense, *sequence, *set;
  int64_t *sequence_offsets, *set_offsets, *outcome;
  sn_feed feeds[4];
} h3_work;

/* One batch by its number; `graph` is what the feeds name inputs of (NULL: no feeds). */
sn_status h3_work_make(const sn_graph *graph, const sn_h3_sizes *sizes, int64_t rows,
                       uint64_t number, h3_work *out_work);
void h3_work_free(h3_work *work);

/* Multiplications and additions of one training step of `rows` rows with these elements: forward,
 * and twice as many backward. */
double h3_work_flops(const sn_h3_sizes *sizes, int64_t rows, int64_t sequence_elements,
                     int64_t set_elements);

/* The draws, for other works: uniform in [0, 1); `count` standard normal numbers, the caller's own
 * (NULL when out of memory). */
double work_unit(uint64_t *state);
float *work_normals(uint64_t *state, int64_t count);

#endif
