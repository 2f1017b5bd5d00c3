/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_GRU_GRU_H
#define SN_OPS_GRU_GRU_H

#include "ops/recurrent/recurrent.h"

/* A stretch of rows of one step; *_ld is numbers from one row to the next (0: one row for all). */
typedef struct sn__gru_rows {
  int64_t rows, units;
  void *gates; /* [rows, 4H]: r z (W_hn h + b_hn) (W_in x + b_in); r, z and n activated when done */
  const void *h_prev;
  int64_t h_prev_ld;
  void *h;
  int64_t h_ld;
} sn__gru_rows;

typedef struct sn__gru_grad_rows {
  int64_t rows, units;
  const void *gates; /* [rows, 4H], activated */
  const void *h_prev;
  int64_t h_prev_ld;
  const void *dy; /* from above */
  int64_t dy_ld;
  void *dh;     /* [rows, H]: from the next step in; z's share of it out */
  void *dgates; /* [rows, 4H]; may be `gates` */
} sn__gru_grad_rows;

void sn__gru_rows_run(sn_dtype dtype, const sn__gru_rows *r);
void sn__gru_grad_rows_run(sn_dtype dtype, const sn__gru_grad_rows *r);

sn_status sn__gru_cpu(const sn__exec *e);
sn_status sn__gru_grad_cpu(const sn__exec *e);
size_t sn__gru_workspace(const sn__exec *e);
size_t sn__gru_grad_workspace(const sn__exec *e);

#endif
