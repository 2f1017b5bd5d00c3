/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over one of three merged dimensions. The order of additions depends on the shape alone:
 * within a stretch of at most SN__SUM_PART (columns) or SN__SUM_FLAT (contiguous) terms first, then
 * the stretches' sums in rising order. */
#include "ops/common.h"
#include "ops/vecmath.h"

/* Contiguous elements summed at a time: part of the bits. */
#define SN__SUM_FLAT 4096

static int64_t parts_of(int64_t middle, int64_t inner) {
  int64_t each = inner == 1 ? SN__SUM_FLAT : SN__SUM_PART;
  return (middle + each - 1) / each;
}

typedef struct sum_job {
  const char *x;
  char *to; /* [outer, parts, inner]: out itself when there is one part */
  int64_t middle, inner, parts;
  double scale; /* applied at once when there is one part, else 1 */
  bool f64;
} sum_job;

#define DEFINE(T, S)                                                                               \
  SN__CLONES static T flat_##S(const T *x, int64_t n) {                                            \
    SN__LANE_SUM(T, S, sum, i, n, x[i]);                                                           \
    return sum;                                                                                    \
  }                                                                                                \
  SN__CLONES static void rows_##S(const T *x, int64_t rows, int64_t width, T scale, T *to) {       \
    enum { BLOCK = 64 };                                                                           \
    for (int64_t c = 0; c < width; c += BLOCK) {                                                   \
      T acc[BLOCK] = {0};                                                                          \
      const int64_t n = width - c < BLOCK ? width - c : BLOCK;                                     \
      const T *p = x + c;                                                                          \
      if (n == BLOCK)                                                                              \
        for (int64_t r = 0; r < rows; r++, p += width) {                                           \
          SN__SIMD for (int j = 0; j < BLOCK; j++) acc[j] += p[j];                                 \
        }                                                                                          \
      else                                                                                         \
        for (int64_t r = 0; r < rows; r++, p += width) {                                           \
          SN__SIMD for (int64_t j = 0; j < n; j++) acc[j] += p[j];                                 \
        }                                                                                          \
      for (int64_t j = 0; j < n; j++)                                                              \
        to[c + j] = acc[j] * scale;                                                                \
    }                                                                                              \
  }                                                                                                \
  static void parts_##S(const sum_job *job, int64_t begin, int64_t end) {                          \
    const int64_t each = job->inner == 1 ? SN__SUM_FLAT : SN__SUM_PART;                            \
    for (int64_t i = begin; i < end; i++) {                                                        \
      int64_t o = i / job->parts, first = i % job->parts * each;                                   \
      int64_t rows = job->middle - first < each ? job->middle - first : each;                      \
      const T *x = (const T *)job->x + (o * job->middle + first) * job->inner;                     \
      T *to = (T *)job->to + i * job->inner;                                                       \
      if (job->inner == 1)                                                                         \
        *to = flat_##S(x, rows) * (T)job->scale;                                                   \
      else                                                                                         \
        rows_##S(x, rows, job->inner, (T)job->scale, to);                                          \
    }                                                                                              \
  }
DEFINE(float, f32)
DEFINE(double, f64)

static void sum_parts(void *arg, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const sum_job *job = arg;
  if (job->f64)
    parts_f64(job, begin, end);
  else
    parts_f32(job, begin, end);
}

size_t sn__sum_middle_workspace(sn_dtype dtype, int64_t outer, int64_t middle, int64_t inner) {
  /* Sized as though it were always cut, so that it grows with every extent. */
  int64_t parts = parts_of(middle, inner);
  return (size_t)(outer * parts * inner) * sn_dtype_size(dtype);
}

void sn__sum_middle(sn__team *team, sn_dtype dtype, const void *x, int64_t outer, int64_t middle,
                    int64_t inner, double scale, void *out, void *workspace) {
  if (outer == 0 || inner == 0) return;
  if (middle == 0) {
    memset(out, 0, (size_t)(outer * inner) * sn_dtype_size(dtype));
    return;
  }
  int64_t parts = parts_of(middle, inner);
  sum_job job = {.x = x,
                 .to = parts == 1 ? out : workspace,
                 .middle = middle,
                 .inner = inner,
                 .parts = parts,
                 .scale = parts == 1 ? scale : 1.0,
                 .f64 = dtype == SN_F64};
  int64_t width = (middle < SN__SUM_PART ? middle : SN__SUM_PART) * inner;
  sn__for_range(team, outer * parts, sn__row_grain(width), sum_parts, &job);
  if (parts == 1) return;
  for (int64_t o = 0; o < outer; o++) {
    if (dtype == SN_F64)
      rows_f64((const double *)workspace + o * parts * inner, parts, inner, scale,
               (double *)out + o * inner);
    else
      rows_f32((const float *)workspace + o * parts * inner, parts, inner, (float)scale,
               (float *)out + o * inner);
  }
}
