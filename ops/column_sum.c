/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of columns, in f64: the gradient of a bias adds up every element of a batch, of either sign,
 * and a chain of f32 additions leaves more error there than anything else in a step. */
#include "ops/layout.h"
#include "ops/vecmath.h"

enum {
  PIECE = 32, /* columns of the least piece for a thread */
};

/* Eight rows at a time, for each column, so that the sums are read and written once for the eight.
 * The pairing is part of the bits. */
#define DEFINE_ADD(T, S)                                                                           \
  SN__CLONES static void add_##S(const T *restrict x, int64_t rows, int64_t ld, int64_t cols,      \
                                 double *restrict sums) {                                          \
    int64_t i = 0;                                                                                 \
    for (; i + 8 <= rows; i += 8) {                                                                \
      const T *a = x + i * ld, *b = a + ld, *c = b + ld, *d = c + ld;                              \
      const T *e = d + ld, *f = e + ld, *g = f + ld, *h = g + ld;                                  \
      SN__SIMD for (int64_t j = 0; j < cols; j++) {                                                \
        const double low = ((double)a[j] + (double)b[j]) + ((double)c[j] + (double)d[j]);          \
        const double high = ((double)e[j] + (double)f[j]) + ((double)g[j] + (double)h[j]);         \
        sums[j] += low + high;                                                                     \
      }                                                                                            \
    }                                                                                              \
    for (; i < rows; i++) {                                                                        \
      const T *a = x + i * ld;                                                                     \
      SN__SIMD for (int64_t j = 0; j < cols; j++) sums[j] += (double)a[j];                         \
    }                                                                                              \
  }
DEFINE_ADD(float, f32)
DEFINE_ADD(double, f64)

void sn__add_rows(sn_dtype dtype, const void *x, int64_t rows, int64_t ld, int64_t cols,
                  double *sums) {
  if (dtype == SN_F32)
    add_f32(x, rows, ld, cols, sums);
  else
    add_f64(x, rows, ld, cols, sums);
}

typedef struct columns_job {
  sn_dtype dtype;
  const char *x;
  int64_t rows, cols, ld;
  double *sums;
} columns_job;

static void columns_task(void *arg, int64_t begin, int64_t end) {
  const columns_job *job = arg;
  const int64_t last = end * PIECE < job->cols ? end * PIECE : job->cols;
  for (int64_t j = begin * PIECE; j < last; j += SN__SUM_COLS) {
    const int64_t cols = last - j < SN__SUM_COLS ? last - j : SN__SUM_COLS;
    sn__add_rows(job->dtype, job->x + (size_t)j * sn_dtype_size(job->dtype), job->rows, job->ld,
                 cols, job->sums + j);
  }
}

void sn__add_columns(sn_dtype dtype, const void *x, int64_t rows, int64_t cols, int64_t ld,
                     double *sums, sn__team *team) {
  columns_job job = {dtype, x, rows, cols, ld, sums};
  sn__rows_run(team, (cols + PIECE - 1) / PIECE, rows * PIECE, columns_task, &job);
}

void sn__round_sums(sn_dtype dtype, const double *sums, double scale, int64_t n, void *out) {
  if (dtype == SN_F32)
    for (int64_t j = 0; j < n; j++)
      ((float *)out)[j] = (float)(sums[j] * scale);
  else
    for (int64_t j = 0; j < n; j++)
      ((double *)out)[j] = sums[j] * scale;
}
