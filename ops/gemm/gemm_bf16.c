/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels make bf16 products here, and op(B) rounded once for many of them. */
#include <assert.h>
#include <stdatomic.h>
#include "ops/gemm/gemm_bf16_impl.h"

static _Atomic(const sn__bf16_kernels *) kernels_now;

/* NULL where the compiler or the machine lacks it. */
static const sn__bf16_kernels *kernels_of(sn__gemm_bf16 unit) {
  switch (unit) {
  case SN__GEMM_BF16_PLAIN: return sn__bf16_kernels_plain;
  case SN__GEMM_BF16_AVX512:
    return sn__cpu_bf16_now() >= SN__CPU_BF16_AVX512 ? sn__bf16_kernels_avx512 : NULL;
  case SN__GEMM_BF16_AMX:
    return sn__cpu_bf16_now() >= SN__CPU_BF16_AMX ? sn__bf16_kernels_amx : NULL;
  default: return NULL;
  }
}

const sn__bf16_kernels *sn__bf16_kernels_now(void) {
  const sn__bf16_kernels *now = atomic_load_explicit(&kernels_now, memory_order_acquire);
  if (now != NULL) return now;
  for (int unit = SN__GEMM_BF16_AMX; now == NULL; unit--)
    now = kernels_of((sn__gemm_bf16)unit);
  atomic_store_explicit(&kernels_now, now, memory_order_release);
  return now;
}

sn__gemm_bf16 sn__gemm_get_bf16(void) {
  return sn__bf16_kernels_now()->unit;
}

bool sn__gemm_set_bf16(sn__gemm_bf16 unit) {
  const sn__bf16_kernels *wanted = kernels_of(unit);
  if (wanted != NULL) atomic_store_explicit(&kernels_now, wanted, memory_order_release);
  return wanted != NULL;
}

const char *sn__gemm_bf16_name(sn__gemm_bf16 unit) {
  switch (unit) {
  case SN__GEMM_BF16_PLAIN: return "plain";
  case SN__GEMM_BF16_AVX512: return "avx512_bf16";
  case SN__GEMM_BF16_AMX: return "amx_bf16";
  }
  return "unknown";
}

bool sn__gemm_rounds(int64_t n, int64_t k) {
  return n > 0 && k >= SN__BF16_DEPTH;
}

/* ---- what a thread has set up ---- */

static _Thread_local struct {
  int holds;
  const sn__bf16_kernels *begun;
} mine;

void sn__bf16_begin(const sn__bf16_kernels *kernels) {
  if (mine.begun == kernels || kernels->begin == NULL) return;
  kernels->begin();
  mine.begun = kernels;
}

void sn__bf16_end(void) {
  if (mine.holds > 0 || mine.begun == NULL) return;
  mine.begun->end();
  mine.begun = NULL;
}

void sn__gemm_hold(void) {
  mine.holds++;
}

void sn__gemm_let_go(void) {
  assert(mine.holds > 0);
  mine.holds--;
  sn__bf16_end();
}

/* ---- packing ---- */

typedef struct pack_job {
  const sn__bf16_kernels *kernels;
  int64_t n, k, ldb, tiles;
  const float *b;
  bool trans;
  uint16_t *out;
} pack_job;

static int least(int64_t x, int y) {
  return x < y ? (int)x : y;
}

static void pack_tile(const pack_job *job, int64_t panel, int64_t tile) {
  const int64_t j = panel * SN__BF16_SIDE, p = tile * SN__BF16_DEPTH;
  const sn__bf16_form form = job->trans ? SN__BF16_B_COLUMNS : SN__BF16_B_ROWS;
  job->kernels->pack[form](job->b + (job->trans ? j * job->ldb + p : p * job->ldb + j), job->ldb,
                           least(job->n - j, SN__BF16_SIDE), least(job->k - p, SN__BF16_DEPTH),
                           job->out + (panel * job->tiles + tile) * SN__BF16_TILE);
}

/* [n, k]: a panel is a stretch of B's own rows. */
static void pack_panel_task(void *arg, int64_t panel, int worker) {
  (void)worker;
  const pack_job *job = arg;
  for (int64_t t = 0; t < job->tiles; t++)
    pack_tile(job, panel, t);
}

/* [k, n]: rows are read whole. */
static void pack_rows_task(void *arg, int64_t tile, int worker) {
  (void)worker;
  const pack_job *job = arg;
  for (int64_t j = 0; j < sn__bf16_sides(job->n); j++)
    pack_tile(job, j, tile);
}

void sn__bf16_pack_panels(const sn__bf16_kernels *kernels, int64_t n, int64_t k, const float *b,
                          int64_t ldb, bool trans, uint16_t *out, sn__team *team) {
  pack_job job = {kernels, n, k, ldb, sn__bf16_tiles(k), b, trans, out};
  if (n * k < SN__GEMM_TEAM_WORK / 8) team = NULL;
  if (trans)
    sn__team_run(team, sn__bf16_sides(n), pack_panel_task, &job);
  else
    sn__team_run(team, job.tiles, pack_rows_task, &job);
}
