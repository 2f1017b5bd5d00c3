/* SPDX-License-Identifier: Apache-2.0 */
/* Products in plain C: f64, for checking gradients. Same order of sums as the f32 kernels, so it
 * serves as their model too; columns are done in strips to keep the running sums in registers. */
#include "ops/gemm/gemm_impl.h"

#define STRIP      32
#define CHUNK_ROWS 16

typedef struct plain_job {
  const sn__gemm_args *args;
  int64_t chunks; /* of rows, in one product */
} plain_job;

/* C[i, j .. j+cols) of one product */
static void plain_strip(const sn__gemm_args *g, const double *a, const double *b, double *c,
                        int64_t i, int64_t j, int64_t cols) {
  const int64_t a_step = g->trans_a ? g->lda : 1;
  const int64_t b_row = g->trans_b ? 1 : g->ldb, b_col = g->trans_b ? g->ldb : 1;
  const double *ai = g->trans_a ? a + i : a + i * g->lda;
  const double *bias = g->bias;
  double *out = c + i * g->ldc + j;
  for (int64_t p0 = 0; p0 == 0 || p0 < g->k; p0 += SN__GEMM_KC) {
    int64_t end = g->k < p0 + SN__GEMM_KC ? g->k : p0 + SN__GEMM_KC;
    double sum[STRIP] = {0};
    for (int64_t p = p0; p < end; p++) {
      const double x = ai[p * a_step];
      const double *row = b + p * b_row + j * b_col;
      for (int64_t q = 0; q < cols; q++)
        sum[q] += x * row[q * b_col];
    }
    const bool add = p0 > 0 || g->accumulate;
    for (int64_t q = 0; q < cols; q++)
      out[q] = add ? out[q] + sum[q] : sum[q];
  }
  for (int64_t q = 0; q < cols; q++) {
    if (bias != NULL) out[q] += bias[j + q];
    if (g->act == SN__GEMM_ACT_RELU && out[q] < 0) out[q] = 0;
  }
}

static void plain_task(void *arg, int64_t index, int worker) {
  (void)worker;
  const plain_job *job = arg;
  const sn__gemm_args *g = job->args;
  const int64_t batch = index / job->chunks, first = index % job->chunks * CHUNK_ROWS;
  const int64_t last = first + CHUNK_ROWS < g->m ? first + CHUNK_ROWS : g->m;
  const double *a = (const double *)g->a + batch * g->a_stride;
  const double *b = (const double *)g->b + batch * g->b_stride;
  double *c = (double *)g->c + batch * g->c_stride;
  for (int64_t i = first; i < last; i++) {
    for (int64_t j = 0; j < g->n; j += STRIP)
      plain_strip(g, a, b, c, i, j, g->n - j < STRIP ? g->n - j : STRIP);
    if (g->epilogue != NULL) g->epilogue(g->user, batch, i, 0, g->n, c + i * g->ldc);
  }
}

void sn__gemm_plain_f64(const sn__gemm_args *args, sn__team *team) {
  plain_job job = {.args = args, .chunks = (args->m + CHUNK_ROWS - 1) / CHUNK_ROWS};
  if (args->m * args->n * args->k * args->batch < SN__GEMM_TEAM_WORK / 8) team = NULL;
  sn__team_run(team, job.chunks * args->batch, plain_task, &job);
}
