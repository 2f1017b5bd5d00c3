/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_LSTM_LSTM_H
#define SN_OPS_LSTM_LSTM_H

#include "ops/recurrent/recurrent.h"

/* A stretch of rows of one step; *_ld is numbers from one row to the next (0: one row for all). */
typedef struct sn__lstm_rows {
  int64_t rows, units;
  void *gates; /* [rows, 4H]: i f g o, before their activations; after them when done */
  const void *c_prev;
  int64_t c_prev_ld;
  void *c; /* [rows, H] */
  void *h;
  int64_t h_ld;
} sn__lstm_rows;

typedef struct sn__lstm_grad_rows {
  int64_t rows, units;
  const void *gates; /* [rows, 4H], activated */
  const void *c;     /* [rows, H] */
  const void *c_prev;
  int64_t c_prev_ld;
  const void *dy; /* from above */
  int64_t dy_ld;
  const void *dh; /* [rows, H], from the next step */
  void *dc;       /* [rows, H], in and out */
  void *dgates;   /* [rows, 4H]; may be `gates` */
} sn__lstm_grad_rows;

void sn__lstm_rows_run(sn_dtype dtype, const sn__lstm_rows *r);
void sn__lstm_grad_rows_run(sn_dtype dtype, const sn__lstm_grad_rows *r);

sn_status sn__lstm_cpu(const sn__exec *e);
sn_status sn__lstm_grad_cpu(const sn__exec *e);
size_t sn__lstm_workspace(const sn__exec *e);
size_t sn__lstm_grad_workspace(const sn__exec *e);

#endif
