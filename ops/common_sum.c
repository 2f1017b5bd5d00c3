/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over one of three merged dimensions, in f64. The order of additions depends on the shape
 * alone: within a stretch of at most SN__SUM_PART rows or FLAT contiguous terms first, then the
 * stretches' sums. */
#include "ops/common.h"
#include "ops/vecmath.h"

enum { FLAT = 4096 }; /* contiguous elements summed at a time: part of the bits */

static int64_t part_of(int64_t inner) {
  return inner == 1 ? FLAT : SN__SUM_PART;
}

static int64_t parts_of(int64_t middle, int64_t inner) {
  const int64_t each = part_of(inner);
  return (middle + each - 1) / each;
}

/* [outer, middle, inner] of `dtype` to out [outer, parts, inner]; with one part out is the op's, of
 * the same dtype, else it holds the f64 sums of the parts. */
typedef struct sum_job {
  sn_dtype dtype;
  const char *x;
  int64_t middle, inner, parts;
  double scale; /* applied at once when there is one part, else 1 */
  sn_dtype to;
  char *out;
} sum_job;

#define DEFINE_FLAT(T, S)                                                                          \
  SN__CLONES static double flat_##S(const T *x, int64_t n) {                                       \
    SN__LANE_SUM(double, f64, sum, i, n, (double)x[i]);                                            \
    return sum;                                                                                    \
  }
DEFINE_FLAT(float, f32)
DEFINE_FLAT(double, f64)

/* out[j] = scale times the sum over rows of x[row, j]. */
static void sum_rows(sn_dtype dtype, const char *x, int64_t rows, int64_t inner, double scale,
                     sn_dtype to, char *out) {
  double sums[SN__SUM_COLS];
  for (int64_t j = 0; j < inner; j += SN__SUM_COLS) {
    const int64_t cols = inner - j < SN__SUM_COLS ? inner - j : SN__SUM_COLS;
    if (inner == 1) {
      sums[0] = dtype == SN_F32 ? flat_f32((const float *)(const void *)x, rows)
                                : flat_f64((const double *)(const void *)x, rows);
    } else {
      memset(sums, 0, (size_t)cols * sizeof *sums);
      sn__add_rows(dtype, x + (size_t)j * sn_dtype_size(dtype), rows, inner, cols, sums);
    }
    sn__round_sums(to, sums, scale, cols, out + (size_t)j * sn_dtype_size(to));
  }
}

static void sum_parts(void *arg, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const sum_job *job = arg;
  const int64_t each = part_of(job->inner);
  for (int64_t i = begin; i < end; i++) {
    const int64_t o = i / job->parts, first = i % job->parts * each;
    const int64_t rows = job->middle - first < each ? job->middle - first : each;
    sum_rows(job->dtype,
             job->x + (size_t)((o * job->middle + first) * job->inner) * sn_dtype_size(job->dtype),
             rows, job->inner, job->scale, job->to,
             job->out + (size_t)(i * job->inner) * sn_dtype_size(job->to));
  }
}

size_t sn__sum_middle_workspace(int64_t outer, int64_t middle, int64_t inner) {
  /* Sized as though it were always cut, so that it grows with every extent. */
  return (size_t)(outer * parts_of(middle, inner) * inner) * sizeof(double);
}

void sn__sum_middle(sn__team *team, sn_dtype dtype, const void *x, int64_t outer, int64_t middle,
                    int64_t inner, double scale, void *out, void *workspace) {
  const size_t row = (size_t)inner * sn_dtype_size(dtype);
  if (outer == 0 || inner == 0) return;
  if (middle == 0) {
    memset(out, 0, (size_t)outer * row);
    return;
  }
  const int64_t parts = parts_of(middle, inner);
  sum_job job = {.dtype = dtype,
                 .x = x,
                 .middle = middle,
                 .inner = inner,
                 .parts = parts,
                 .scale = parts == 1 ? scale : 1.0,
                 .to = parts == 1 ? dtype : SN_F64,
                 .out = parts == 1 ? out : workspace};
  const int64_t width = (middle < SN__SUM_PART ? middle : SN__SUM_PART) * inner;
  sn__for_range(team, outer * parts, sn__row_grain(width), sum_parts, &job);
  if (parts == 1) return;
  for (int64_t o = 0; o < outer; o++)
    sum_rows(SN_F64, (const char *)workspace + (size_t)(o * parts * inner) * sizeof(double), parts,
             inner, scale, dtype, (char *)out + (size_t)o * row);
}
