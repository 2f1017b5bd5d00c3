/* SPDX-License-Identifier: Apache-2.0 */
/* Random images for the four-path model: standard normal pixels, fresh every batch; the same for a
 * seed on any machine. */
#ifndef SN_TOOLS_SENNIT_INCEPTION_WORK_H
#define SN_TOOLS_SENNIT_INCEPTION_WORK_H

#include "core/run/session.h"
#include "models/model.h"

typedef struct inception_work {
  int64_t rows;
  float *image;
  int64_t *outcome;
  sn_feed feeds[2];
} inception_work;

/* One batch by its number; `graph` is what the feeds name inputs of (NULL: no feeds). */
sn_status inception_work_make(const sn_graph *graph, const sn_inception_sizes *sizes, int64_t rows,
                              uint64_t number, inception_work *out_work);
void inception_work_free(inception_work *work);

/* Multiplications and additions of one training step: forward, and twice as many backward. */
double inception_work_flops(const sn_inception_sizes *sizes, int64_t rows);

#endif
