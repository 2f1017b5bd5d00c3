/* SPDX-License-Identifier: Apache-2.0 */
/* op(B) packed once for many products. */
#include <assert.h>
#include "ops/gemm/gemm_bf16_impl.h"

typedef struct pack_job {
  const sn__gemm_kernels *kernels;
  int64_t n, k, ldb;
  const float *b;
  float *out;
} pack_job;

/* Rows of B done by one task, and at a time: few enough to stay in a level-1 cache. */
#define TASK_ROWS 64
#define CHUNK     16

static int64_t least(int64_t x, int64_t y) {
  return x < y ? x : y;
}

/* [n, k]: a panel is a stretch of B's own rows. */
static void pack_panel_task(void *arg, int64_t panel, int worker) {
  (void)worker;
  const pack_job *job = arg;
  const int64_t width = 2 * job->kernels->lanes, j = panel * width;
  job->kernels->pack_panel(job->b + j * job->ldb, job->ldb, true, least(width, job->n - j), job->k,
                           job->out + j * job->k);
}

/* [k, n]: rows are read whole, since a panel's share of each is too short to read fast. */
static void pack_rows_task(void *arg, int64_t index, int worker) {
  (void)worker;
  const pack_job *job = arg;
  const int64_t width = 2 * job->kernels->lanes, end = least(job->k, (index + 1) * TASK_ROWS);
  for (int64_t p = index * TASK_ROWS; p < end; p += CHUNK)
    for (int64_t j = 0; j < job->n; j += width)
      job->kernels->pack_panel(job->b + p * job->ldb + j, job->ldb, false, least(width, job->n - j),
                               least(CHUNK, end - p), job->out + j * job->k + p * width);
}

void sn__gemm_pack_panels(const sn__gemm_kernels *kernels, int64_t n, int64_t k, const float *b,
                          int64_t ldb, bool trans, float *out, sn__team *team) {
  pack_job job = {kernels, n, k, ldb, b, out};
  const int64_t width = 2 * kernels->lanes;
  /* Packing moves some ten elements in the time of one step of a kernel. */
  if (n * k < SN__GEMM_TEAM_WORK / 8) team = NULL;
  if (trans)
    sn__team_run(team, (n + width - 1) / width, pack_panel_task, &job);
  else
    sn__team_run(team, (k + TASK_ROWS - 1) / TASK_ROWS, pack_rows_task, &job);
}

static size_t align_up(size_t x) {
  return (x + 63) & ~(size_t)63;
}

static bool is_bf16(sn_dtype dtype, sn_dtype compute, int64_t n, int64_t k) {
  assert(dtype == SN_F32 || (dtype == SN_F64 && compute != SN_BF16));
  return compute == SN_BF16 && sn__gemm_rounds(n, k);
}

size_t sn__gemm_packed_size(sn_dtype dtype, sn_dtype compute, int64_t n, int64_t k) {
  const size_t head = 63 + align_up(sizeof(sn__gemm_packed));
  if (is_bf16(dtype, compute, n, k))
    return head + (size_t)(sn__bf16_sides(n) * sn__bf16_tiles(k)) * SN__BF16_TILE * 2;
  /* The widest panel of any instruction set, so that the size does not depend on the machine. */
  const size_t columns = ((size_t)n + 31) / 32 * 32;
  return head + columns * (size_t)k * sn_dtype_size(dtype);
}

const sn__gemm_packed *sn__gemm_pack_b(sn_dtype dtype, sn_dtype compute, int64_t n, int64_t k,
                                       const void *b, int64_t ldb, bool trans_b, void *memory,
                                       sn__team *team) {
  const bool bf16 = is_bf16(dtype, compute, n, k);
  char *start = (char *)memory + (align_up((size_t)(uintptr_t)memory) - (uintptr_t)memory);
  sn__gemm_packed *packed = (sn__gemm_packed *)(void *)start;
  void *data = start + align_up(sizeof *packed);
  const sn__gemm_kernels *kernels = sn__gemm_kernels_now();
  *packed = (sn__gemm_packed){.dtype = dtype,
                              .compute = bf16 ? SN_BF16 : dtype,
                              .isa = kernels->isa,
                              .unit = bf16 ? sn__gemm_get_bf16() : SN__GEMM_BF16_PLAIN,
                              .n = n,
                              .k = k,
                              .data = data};
  if (n == 0 || k == 0) return packed;
  if (ldb == 0) ldb = trans_b ? k : n;
  if (bf16) {
    sn__bf16_pack_panels(sn__bf16_kernels_now(), n, k, b, ldb, trans_b, data, team);
    return packed;
  }
  if (dtype == SN_F32) {
    sn__gemm_pack_panels(kernels, n, k, b, ldb, trans_b, data, team);
    return packed;
  }
  const double *from = b;
  double *to = data;
  for (int64_t p = 0; p < k; p++)
    for (int64_t j = 0; j < n; j++)
      to[p * n + j] = trans_b ? from[j * ldb + p] : from[p * ldb + j];
  return packed;
}
