/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 products: cuts C into pieces that the team shares out. A thread rounds its piece's parts of
 * A and B into tiles, one cut of k after another, and hands blocks of tiles to the kernels. As in
 * gemm_tiles.c every choice here is for speed alone. */
#include <assert.h>
#include "ops/gemm/gemm_bf16_impl.h"

enum { SIDE = SN__BF16_SIDE, DEPTH = SN__BF16_DEPTH, TILE = SN__BF16_TILE };

/* The largest piece of C. */
#define PIECE_ROWS 384
#define PIECE_COLS 512
/* Tiles of k up to which C is most of the work. */
#define SHALLOW    2
/* m * n * k of the smallest work worth handing to another thread. */
#define TASK_WORK  500000

_Static_assert((PIECE_ROWS + PIECE_COLS) * SN__GEMM_KC_BF16 * sizeof(uint16_t) <=
                   SN__GEMM_SCRATCH_THREAD,
               "a thread's scratch holds a piece");

typedef struct piece_job {
  const sn__gemm_args *args;
  const sn__bf16_kernels *kernels;
  const uint16_t *panels; /* packed op(B), or NULL */
  char *scratch;          /* SN__GEMM_SCRATCH_THREAD bytes for each worker */
  int64_t piece_rows, piece_cols, row_pieces, col_pieces;
  int64_t pieces, per_task;
} piece_job;

/* One piece in one cut of k. */
typedef struct piece {
  const float *a, *b; /* of this cut */
  float *c;
  const float *bias;
  int64_t rows, cols, k, tiles;
  uint16_t *a_tiles, *b_scratch;
  const uint16_t *b_tiles;
  int64_t b_panel;
  bool add, relu;
} piece;

static int64_t ceil_div(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}
static int64_t least(int64_t x, int64_t y) {
  return x < y ? x : y;
}

/* A column form is read a few stored rows at a time, whole. */
static void pack_a(const piece_job *job, const piece *w) {
  const sn__gemm_args *g = job->args;
  const int64_t strips = sn__bf16_sides(w->rows);
  const sn__bf16_form form = g->trans_a ? SN__BF16_A_COLUMNS : SN__BF16_A_ROWS;
  for (int64_t x = 0; x < strips * w->tiles; x++) {
    const int64_t s = g->trans_a ? x % strips : x / w->tiles;
    const int64_t t = g->trans_a ? x / strips : x % w->tiles;
    const int64_t i = s * SIDE, p = t * DEPTH;
    job->kernels->pack[form](w->a + (g->trans_a ? p * g->lda + i : i * g->lda + p), g->lda,
                             (int)least(SIDE, w->rows - i), (int)least(DEPTH, w->k - p),
                             w->a_tiles + (s * w->tiles + t) * TILE);
  }
}

static void pack_b(const piece_job *job, piece *w) {
  sn__bf16_pack_panels(job->kernels, w->cols, w->k, w->b, job->args->ldb, job->args->trans_b,
                       w->b_scratch, NULL);
  w->b_tiles = w->b_scratch;
  w->b_panel = w->tiles * TILE;
}

static void run_block(const piece_job *job, const piece *w, int64_t strip, int64_t panel,
                      int strips, int panels) {
  float sums[SN__BF16_BLOCK * SIDE * SIDE] __attribute__((aligned(64)));
  const int64_t i = strip * SIDE, j = panel * SIDE;
  const int rows = (int)least(strips * SIDE, w->rows - i);
  const sn__bf16_block block = {.a = w->a_tiles + strip * w->tiles * TILE,
                                .b = w->b_tiles + panel * w->b_panel,
                                .a_strip = w->tiles * TILE,
                                .b_panel = w->b_panel,
                                .tiles = w->tiles,
                                .strips = strips,
                                .panels = panels,
                                .rows = rows,
                                .out = sums};
  job->kernels->sums(&block);
  const sn__bf16_finish finish = {.sums = sums,
                                  .pitch = panels * SIDE,
                                  .c = w->c + i * job->args->ldc + j,
                                  .ldc = job->args->ldc,
                                  .rows = rows,
                                  .cols = (int)least(panels * SIDE, w->cols - j),
                                  .bias = w->bias == NULL ? NULL : w->bias + j,
                                  .add = w->add,
                                  .relu = w->relu};
  job->kernels->finish(&finish);
}

/* Blocks of 2 x 2 tiles read each tile least often; where only one strip or panel is left, 1 x 4
 * and 4 x 1 keep as many chains of sums in flight. Where k is short C is most of the work: 1 x 4
 * writes longer stretches of its rows. */
static void run_blocks(const piece_job *job, const piece *w) {
  const int64_t strips = sn__bf16_sides(w->rows), panels = sn__bf16_sides(w->cols);
  for (int64_t j = 0; j < panels;) {
    const int64_t left = panels - j;
    const int wide = left >= 4 && (strips == 1 || w->tiles <= SHALLOW) ? 4 : left >= 2 ? 2 : 1;
    for (int64_t s = 0; s < strips;) {
      const int64_t below = strips - s;
      const int high = wide == 4 || below == 1 ? 1 : wide == 1 && below >= 4 ? 4 : 2;
      run_block(job, w, s, j, high, wide);
      s += high;
    }
    j += wide;
  }
}

static void run_piece(const piece_job *job, int64_t index, char *scratch) {
  const sn__gemm_args *g = job->args;
  const int64_t in_product = index % (job->row_pieces * job->col_pieces);
  const int64_t batch = index / (job->row_pieces * job->col_pieces);
  const int64_t i = in_product / job->col_pieces * job->piece_rows;
  const int64_t j = in_product % job->col_pieces * job->piece_cols;
  const float *a = (const float *)g->a + batch * g->a_stride;
  const float *b = (const float *)g->b + batch * g->b_stride;
  piece w = {.rows = least(job->piece_rows, g->m - i), .cols = least(job->piece_cols, g->n - j)};
  w.c = (float *)g->c + batch * g->c_stride + i * g->ldc + j;
  w.a_tiles = (uint16_t *)(void *)scratch;
  w.b_scratch = w.a_tiles + PIECE_ROWS * SN__GEMM_KC_BF16;
  for (int64_t p = 0; p < g->k; p += SN__GEMM_KC_BF16) {
    const bool last = p + SN__GEMM_KC_BF16 >= g->k;
    w.k = least(SN__GEMM_KC_BF16, g->k - p);
    w.tiles = sn__bf16_tiles(w.k);
    w.a = g->trans_a ? a + p * g->lda + i : a + i * g->lda + p;
    w.add = p > 0 || g->accumulate;
    w.bias = last && g->bias != NULL ? (const float *)g->bias + j : NULL;
    w.relu = last && g->act == SN__GEMM_ACT_RELU;
    if (job->panels != NULL) {
      w.b_panel = sn__bf16_tiles(g->k) * TILE;
      w.b_tiles = job->panels + j / SIDE * w.b_panel + p / DEPTH * TILE;
    } else {
      w.b = g->trans_b ? b + j * g->ldb + p : b + p * g->ldb + j;
      pack_b(job, &w);
    }
    pack_a(job, &w);
    run_blocks(job, &w);
  }
  if (g->epilogue != NULL)
    for (int64_t r = 0; r < w.rows; r++)
      g->epilogue(g->user, batch, i + r, j, w.cols, w.c + r * g->ldc);
}

static void piece_task(void *arg, int64_t index, int worker) {
  const piece_job *job = arg;
  char *scratch = job->scratch + (size_t)worker * SN__GEMM_SCRATCH_THREAD;
  const int64_t end = least(job->pieces, (index + 1) * job->per_task);
  sn__bf16_begin(job->kernels);
  for (int64_t i = index * job->per_task; i < end; i++)
    run_piece(job, i, scratch);
  sn__bf16_end();
}

/* Large pieces, but enough of them for the team to even out. */
static void choose_pieces(piece_job *job, int threads) {
  const sn__gemm_args *g = job->args;
  int64_t row_pieces = g->m <= PIECE_ROWS ? 1 : ceil_div(g->m, 256);
  int64_t col_pieces = ceil_div(g->n, PIECE_COLS);
  const int64_t work = g->m * g->n * g->k;
  while (threads > 1) {
    const int64_t pieces = row_pieces * col_pieces;
    if (pieces * g->batch >= 2 * threads || work / pieces < 2 * TASK_WORK) break;
    const int64_t rows = g->m / row_pieces, cols = g->n / col_pieces;
    if (cols >= 4 * SIDE && cols >= rows)
      col_pieces *= 2;
    else if (rows >= 4 * SIDE)
      row_pieces *= 2;
    else
      break;
  }
  job->piece_rows = ceil_div(ceil_div(g->m, row_pieces), 2 * SIDE) * 2 * SIDE;
  job->piece_cols = ceil_div(ceil_div(g->n, col_pieces), 2 * SIDE) * 2 * SIDE;
  job->row_pieces = ceil_div(g->m, job->piece_rows);
  job->col_pieces = ceil_div(g->n, job->piece_cols);
  job->pieces = g->batch * job->row_pieces * job->col_pieces;
  const int64_t piece_work = least(job->piece_rows * job->piece_cols * g->k, TASK_WORK);
  job->per_task = ceil_div(TASK_WORK, piece_work);
}

sn_status sn__gemm_tiles_bf16(const sn__gemm_args *g, sn__team *team) {
  piece_job job = {.args = g, .kernels = sn__bf16_kernels_now()};
  if (g->m * g->n * g->k * g->batch < 4 * SN__GEMM_TEAM_WORK) team = NULL;
  if (g->packed_b != NULL) {
    assert(g->packed_b->unit == job.kernels->unit);
    job.panels = g->packed_b->data;
  }
  choose_pieces(&job, sn__team_threads(team));
  const size_t whole = (size_t)(sn__bf16_sides(g->n) * sn__bf16_tiles(g->k)) * TILE * 2;
  if (job.panels == NULL && (job.row_pieces > 1 || g->batch > 1) &&
      (g->batch == 1 || g->b_stride == 0) && whole <= SN__GEMM_SCRATCH_SHARED) {
    uint16_t *panels = (uint16_t *)(void *)sn__gemm_scratch_shared(whole);
    if (panels == NULL) return sn_status_out_of_memory();
    sn__bf16_pack_panels(job.kernels, g->n, g->k, g->b, g->ldb, g->trans_b, panels, team);
    job.panels = panels;
  }
  job.scratch = (char *)sn__gemm_scratch_threads(sn__team_threads(team));
  if (job.scratch == NULL) return sn_status_out_of_memory();
  sn__team_run(team, ceil_div(job.pieces, job.per_task), piece_task, &job);
  return SN_OK;
}
