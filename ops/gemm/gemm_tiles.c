/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts C into tiles that the team shares out, and each tile into blocks for the kernels. Nothing
 * here can change a result: every cut is of C, and all kernels sum in one order. So each choice
 * below (tile sizes, what to pack) is for speed alone and may look at m and at the number of
 * threads. */
#include <assert.h>
#include "ops/gemm/gemm_impl.h"

/* The largest tile: its packed parts of A and B stay inside a level-2 cache. In TN both parts are
 * packed anew in every cut of k, so that tile is wider. */
#define TILE_ROWS    384
#define TILE_COLS    256
#define TILE_COLS_TN 512
/* Rows packed at a time where the packed parts lie far apart: few enough for a level-1 cache. */
#define CHUNK        16
/* m * n * k of the smallest work worth handing to another thread. */
#define TASK_WORK    120000

/* Packed A (blocks of 6 rows or more, each padded to the pitch) and packed B fit side by side. */
_Static_assert((TILE_ROWS / 6 * SN__GEMM_A_PITCH + TILE_COLS_TN) * SN__GEMM_KC * sizeof(float) <=
                   SN__GEMM_SCRATCH_THREAD,
               "a thread's scratch holds a tile");

typedef struct tile_job {
  const sn__gemm_args *args;
  const sn__gemm_kernels *kernels;
  const float *panels; /* packed op(B), or NULL */
  float *scratch;      /* SN__GEMM_SCRATCH_THREAD bytes for each worker */
  int64_t tile_rows, tile_cols, row_tiles, col_tiles;
  int64_t tiles, tiles_per_task;
  bool pack_a, pack_b; /* tile by tile */
} tile_job;

/* One tile in one cut of k. */
typedef struct tile {
  const float *a, *b;
  const float *next_a, *next_b; /* the next cut's parts, if they are to be packed; or NULL */
  float *a_scratch, *b_scratch;
  int64_t rows, cols;
  sn__gemm_block block; /* what all its blocks share */
} tile;

static int64_t ceil_div(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}
static int64_t least(int64_t x, int64_t y) {
  return x < y ? x : y;
}

static int width_index(int vectors) {
  return vectors >= 8 ? 3 : vectors >= 4 ? 2 : vectors >= 2 ? 1 : 0;
}

/* The rows of a tile are cut into as few blocks as possible, of nearly the same height. */
typedef struct row_cut {
  int64_t blocks, low, high_blocks; /* the first `high_blocks` are one row higher than `low` */
} row_cut;

static row_cut cut_rows(int64_t rows, int rows_max) {
  const int64_t blocks = ceil_div(rows, rows_max);
  return (row_cut){blocks, rows / blocks, rows % blocks};
}

static void pack_a_tile(const tile_job *job, tile *t, const row_cut *cut) {
  const sn__gemm_args *g = job->args;
  const int64_t k = t->block.k;
  for (int64_t p = 0; p < k; p += CHUNK) {
    const float *a = t->a + p * g->lda;
    for (int64_t s = 0; s < cut->blocks; s++) {
      const int64_t rows = cut->low + (s < cut->high_blocks);
      job->kernels->pack_a_columns(a, g->lda, rows, least(CHUNK, k - p),
                                   t->a_scratch + (s * k + p) * SN__GEMM_A_PITCH);
      a += rows;
    }
  }
  t->a = t->a_scratch;
  t->block.a_row = SN__GEMM_A_PITCH;
}

static void pack_b_tile(const tile_job *job, tile *t) {
  const sn__gemm_args *g = job->args;
  const int64_t width = 2 * job->kernels->lanes, k = t->block.k;
  const int64_t chunk = g->trans_b ? k : CHUNK;
  for (int64_t p = 0; p < k; p += chunk)
    for (int64_t j = 0; j < t->cols; j += width)
      job->kernels->pack_panel(g->trans_b ? t->b + j * g->ldb : t->b + p * g->ldb + j, g->ldb,
                               g->trans_b, least(width, t->cols - j), least(chunk, k - p),
                               t->b_scratch + j * k + p * width);
  t->b = t->b_scratch;
  t->block.b_row = width;
  t->block.b_panel = width * k;
}

/* The part of an operand's stored rows that falls to call `turn` of `turns`, asked for ahead of its
 * packing: the team's cut of C makes it lie in many short rows that no hardware prefetcher follows.
 */
static void fetch_part(const float *x, int64_t ld, int64_t rows, int64_t cols, int64_t turn,
                       int64_t turns) {
  for (int64_t i = rows * turn / turns; i < rows * (turn + 1) / turns; i++)
    for (int64_t j = 0; j < cols; j += 16)
      __builtin_prefetch(x + i * ld + j, 0, 2);
}

static void fetch_next(const sn__gemm_args *g, const tile *t, int64_t turn, int64_t turns) {
  const int64_t k = SN__GEMM_KC;
  if (t->next_a != NULL) fetch_part(t->next_a, g->lda, k, t->rows, turn, turns);
  if (t->next_b != NULL)
    fetch_part(t->next_b, g->ldb, g->trans_b ? t->cols : k, g->trans_b ? k : t->cols, turn, turns);
}

static void run_blocks(const tile_job *job, const tile *t, const row_cut *cut) {
  const sn__gemm_kernels *kernels = job->kernels;
  const int lanes = kernels->lanes;
  const bool columns = job->args->trans_a, packed_a = t->a == t->a_scratch;
  const int64_t vectors = ceil_div(t->cols, lanes);
  const int widest = kernels->wide[cut->low + (cut->high_blocks > 0)];
  const bool fetch = t->next_a != NULL || t->next_b != NULL;
  const int64_t turns = cut->blocks * ceil_div(vectors, widest);
  int64_t turn = 0;
  for (int64_t v = 0; v < vectors;) {
    const int index = width_index((int)least(vectors - v, widest)), wide = 1 << index;
    sn__gemm_block block = t->block;
    block.b = t->b + v / 2 * block.b_panel + v % 2 * lanes;
    block.c += v * lanes;
    if (block.bias != NULL) block.bias += v * lanes;
    block.lanes_last = (int)least(lanes, t->cols - (v + wide - 1) * lanes);
    block.a = t->a;
    for (int64_t s = 0; s < cut->blocks; s++) {
      const int64_t rows = cut->low + (s < cut->high_blocks);
      if (fetch && turn < turns) fetch_next(job->args, t, turn++, turns);
      kernels->kernel[columns][rows][index](&block);
      block.a += packed_a ? block.k * block.a_row : columns ? rows : rows * block.a_row;
      block.c += rows * block.c_row;
    }
    v += wide;
  }
}

static void run_tile(const tile_job *job, int64_t index, float *scratch) {
  const sn__gemm_args *g = job->args;
  const int64_t in_product = index % (job->row_tiles * job->col_tiles);
  const int64_t batch = index / (job->row_tiles * job->col_tiles);
  const int64_t i = in_product / job->col_tiles * job->tile_rows;
  const int64_t j = in_product % job->col_tiles * job->tile_cols;
  const int64_t rows = least(job->tile_rows, g->m - i), cols = least(job->tile_cols, g->n - j);
  const int64_t width = 2 * job->kernels->lanes;
  const bool wide = ceil_div(cols, job->kernels->lanes) > 3;
  /* A is packed for the low blocks of wide tiles; a narrow last tile reads it in place. */
  const bool pack_a = job->pack_a && wide;
  const row_cut cut = cut_rows(rows, wide ? job->kernels->rows_wide : job->kernels->rows_max);
  const float *a = (const float *)g->a + batch * g->a_stride;
  float *c = (float *)g->c + batch * g->c_stride + i * g->ldc + j;
  for (int64_t p = 0; p < g->k; p += SN__GEMM_KC) {
    const bool last = p + SN__GEMM_KC >= g->k;
    tile t = {.rows = rows, .cols = cols, .a_scratch = scratch};
    t.a = g->trans_a ? a + p * g->lda + i : a + i * g->lda + p;
    t.block = (sn__gemm_block){.k = least(SN__GEMM_KC, g->k - p),
                               .c = c,
                               .c_row = g->ldc,
                               .a_row = g->lda,
                               .add = p > 0 || g->accumulate,
                               .bias = last && g->bias != NULL ? (const float *)g->bias + j : NULL,
                               .relu = last && g->act == SN__GEMM_ACT_RELU};
    if (job->panels != NULL) {
      t.b = job->panels + j * g->k + p * width;
      t.block.b_row = width;
      t.block.b_panel = width * g->k;
    } else {
      const float *b = (const float *)g->b + batch * g->b_stride;
      t.b = g->trans_b ? b + j * g->ldb + p : b + p * g->ldb + j;
      t.block.b_row = g->ldb;
      t.block.b_panel = width;
    }
    if (!last && p + 2 * SN__GEMM_KC <= g->k) { /* only whole cuts: reads stay inside A and B */
      if (pack_a) t.next_a = t.a + SN__GEMM_KC * g->lda;
      if (job->pack_b) t.next_b = t.b + SN__GEMM_KC * (g->trans_b ? 1 : g->ldb);
    }
    if (job->pack_b) {
      t.b_scratch = scratch + SN__GEMM_SCRATCH_THREAD / sizeof(float) - TILE_COLS_TN * SN__GEMM_KC;
      pack_b_tile(job, &t);
    }
    if (pack_a) pack_a_tile(job, &t, &cut);
    run_blocks(job, &t, &cut);
  }
  if (g->epilogue != NULL)
    for (int64_t r = 0; r < rows; r++)
      g->epilogue(g->user, batch, i + r, j, cols, c + r * g->ldc);
}

static void tile_task(void *arg, int64_t index, int worker) {
  const tile_job *job = arg;
  float *scratch = job->scratch == NULL
                       ? NULL
                       : job->scratch + (size_t)worker * (SN__GEMM_SCRATCH_THREAD / sizeof(float));
  const int64_t end = least(job->tiles, (index + 1) * job->tiles_per_task);
  for (int64_t i = index * job->tiles_per_task; i < end; i++)
    run_tile(job, i, scratch);
}

/* Rows and columns of a tile: large, but enough tiles for the team to even out. */
static void choose_tiles(tile_job *job, int threads) {
  const sn__gemm_args *g = job->args;
  const int64_t width = 2 * job->kernels->lanes;
  const int64_t high =
      g->n > 3 * job->kernels->lanes ? job->kernels->rows_wide : job->kernels->rows_max;
  int64_t row_tiles = g->m <= TILE_ROWS ? 1 : ceil_div(g->m, 258);
  int64_t col_tiles = ceil_div(g->n, g->trans_a ? TILE_COLS_TN : TILE_COLS);
  const int64_t work = g->m * g->n * g->k;
  if (threads > 1) {
    for (;;) {
      const int64_t tiles = row_tiles * col_tiles;
      if (tiles * g->batch >= 2 * threads || work / tiles < 2 * TASK_WORK) break;
      const int64_t rows = g->m / row_tiles, cols = g->n / col_tiles;
      if (cols >= 2 * 64 && (cols >= rows || job->pack_b))
        col_tiles *= 2;
      else if (rows >= 2 * high)
        row_tiles *= 2;
      else
        break;
    }
  }
  job->tile_rows = row_tiles == 1 ? g->m : ceil_div(ceil_div(g->m, row_tiles), high) * high;
  job->tile_cols = col_tiles == 1 ? g->n : ceil_div(ceil_div(g->n, col_tiles), width) * width;
  job->row_tiles = ceil_div(g->m, job->tile_rows);
  job->col_tiles = ceil_div(g->n, job->tile_cols);
  job->tiles = g->batch * job->row_tiles * job->col_tiles;
  const int64_t tile_work = least(job->tile_rows * job->tile_cols * g->k, TASK_WORK);
  job->tiles_per_task = ceil_div(TASK_WORK, tile_work);
}

/* Measured; see the table in docs/performance.md. */
static void choose_packing(tile_job *job) {
  const sn__gemm_args *g = job->args;
  const int lanes = job->kernels->lanes;
  /* A kernel reads whole vectors of B: in columns of its stored form they do not exist, and a last
   * one that is not full needs padding. Otherwise packing pays where many rows use it. */
  job->pack_b = job->panels == NULL && (g->trans_b || g->n % lanes != 0 ||
                                        (g->m >= 256 && g->ldb >= (g->trans_a ? 512 : 64)));
  /* Rows of A are read in place. So are columns, unless each lies on a page of its own. */
  job->pack_a = g->trans_a && g->lda > 256 && g->n > 3 * lanes && g->m > 4;
}

sn_status sn__gemm_tiles_f32(const sn__gemm_args *g, sn__team *team) {
  tile_job job = {.args = g, .kernels = sn__gemm_kernels_now()};
  if (g->m * g->n * g->k * g->batch < SN__GEMM_TEAM_WORK) team = NULL;
  if (g->packed_b != NULL) {
    assert(g->packed_b->isa == job.kernels->isa);
    job.panels = g->packed_b->data;
  }
  choose_packing(&job);
  choose_tiles(&job, sn__team_threads(team));
  const int64_t width = 2 * job.kernels->lanes;
  const size_t whole = (size_t)(ceil_div(g->n, width) * width * g->k) * sizeof(float);
  if (job.pack_b && (job.row_tiles > 1 || (g->batch > 1 && g->b_stride == 0)) &&
      (g->batch == 1 || g->b_stride == 0) && whole <= SN__GEMM_SCRATCH_SHARED) {
    float *panels = sn__gemm_scratch_shared(whole);
    if (panels == NULL) return sn_status_out_of_memory();
    sn__gemm_pack_panels(job.kernels, g->n, g->k, g->b, g->ldb, g->trans_b, panels, team);
    job.panels = panels;
    job.pack_b = false;
  }
  if (job.pack_a || job.pack_b) {
    job.scratch = sn__gemm_scratch_threads(sn__team_threads(team));
    if (job.scratch == NULL) return sn_status_out_of_memory();
  }
  sn__team_run(team, ceil_div(job.tiles, job.tiles_per_task), tile_task, &job);
  return SN_OK;
}
