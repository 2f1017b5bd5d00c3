/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the patch matrix. Channels-last makes each tap row of a patch one stretch of memory. */
#include "ops/conv2d/conv2d.h"

#include <string.h>

#include "ops/gemm/gemm.h"
#include "ops/vecmath.h"

#define CHUNK_BYTES ((int64_t)1 << 20)

bool sn__patches_are_source(const sn__patches *p) {
  return p->taps_h == 1 && p->taps_w == 1 && p->step_h == 1 && p->step_w == 1 && p->offset_h == 0 &&
         p->offset_w == 0 && p->grid_h == p->source_h && p->grid_w == p->source_w;
}

int64_t sn__patch_chunk(const sn__patches *p, sn_dtype dtype) {
  const int64_t bytes = sn__patch_width(p) * (int64_t)sn_dtype_size(dtype);
  const int64_t cuts = CHUNK_BYTES / ((bytes > 0 ? bytes : 1) * SN__GEMM_KC);
  return (cuts > 0 ? cuts : 1) * SN__GEMM_KC;
}

/* Pixels are whole words, whatever their type. Blocks are copied in place: a call of memcpy() for
 * each takes as long as the copy. */
typedef uint32_t word;
typedef uint32_t block __attribute__((vector_size(64), aligned(4), may_alias));
enum { BLOCK = 16 };

SN__INLINE void copy_words(const word *from, int64_t n, word *to) {
  if (n < BLOCK) {
    for (int64_t i = 0; i < n; i++)
      to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + BLOCK < n; i += BLOCK)
    *(block *)(to + i) = *(const block *)(from + i);
  *(block *)(to + n - BLOCK) = *(const block *)(from + n - BLOCK); /* may overlap the one before */
}

/* `pixels` rows of taps that lie in the line: each `step` words after the one before. */
SN__CLONES static void copy_taps(const word *from, int64_t step, int64_t pixels, int64_t taps,
                                 int64_t pitch, word *to) {
  for (int64_t j = 0; j < pixels; j++, from += step, to += pitch)
    copy_words(from, taps, to);
}

typedef struct gather_job {
  const sn__patches *p;
  int64_t pixel; /* words */
  int64_t first;
  word *out;
} gather_job;

/* One row of taps at the edge: zeros, source, zeros. */
static void edge_taps(const gather_job *job, const word *line, int64_t x, word *out) {
  const sn__patches *p = job->p;
  const int64_t taps = p->taps_w;
  const int64_t left = x >= 0 ? 0 : x < -taps ? taps : -x;
  int64_t right = p->source_w - x;
  right = right < left ? left : right > taps ? taps : right;
  const size_t size = (size_t)job->pixel * sizeof *out;
  if (left > 0) memset(out, 0, (size_t)left * size);
  if (right > left)
    memcpy(out + left * job->pixel, line + (x + left) * job->pixel, (size_t)(right - left) * size);
  if (right < taps) memset(out + right * job->pixel, 0, (size_t)(taps - right) * size);
}

/* One row of taps of grid pixels [from, to) of one grid row; `line` is NULL outside the source. */
static void gather_line(const gather_job *job, const word *line, int64_t from, int64_t to,
                        word *out) {
  const sn__patches *p = job->p;
  const int64_t taps = p->taps_w * job->pixel, pitch = p->taps_h * taps;
  const int64_t step = p->step_w, at = p->offset_w;
  int64_t j = from;
  if (line == NULL) {
    for (; j < to; j++, out += pitch)
      memset(out, 0, (size_t)taps * sizeof *out);
    return;
  }
  for (; j < to && j * step + at < 0; j++, out += pitch)
    edge_taps(job, line, j * step + at, out);
  const int64_t room = p->source_w - p->taps_w - at; /* the last corner that lies inside */
  int64_t inside = room < 0 ? 0 : room / step + 1;
  inside = inside > to ? to : inside;
  if (inside > j) {
    copy_taps(line + (j * step + at) * job->pixel, step * job->pixel, inside - j, taps, pitch, out);
    out += (inside - j) * pitch;
    j = inside;
  }
  for (; j < to; j++, out += pitch)
    edge_taps(job, line, j * step + at, out);
}

static void gather_task(void *arg, int64_t begin, int64_t end) {
  const gather_job *job = arg;
  const sn__patches *p = job->p;
  const int64_t line = p->source_w * job->pixel, taps = p->taps_w * job->pixel;
  for (int64_t row = begin; row < end;) {
    const int64_t at = job->first + row, j = at % p->grid_w;
    const int64_t i = at / p->grid_w % p->grid_h, n = at / p->grid_w / p->grid_h;
    const int64_t here = p->grid_w - j < end - row ? p->grid_w - j : end - row;
    const word *image = (const word *)p->source + n * p->source_h * line;
    word *out = job->out + row * p->taps_h * taps;
    for (int64_t u = 0; u < p->taps_h; u++) {
      const int64_t y = i * p->step_h + p->offset_h + u;
      const bool inside = y >= 0 && y < p->source_h;
      gather_line(job, inside ? image + y * line : NULL, j, j + here, out + u * taps);
    }
    row += here;
  }
}

void sn__patches_gather(const sn__patches *p, sn_dtype dtype, int64_t first, int64_t rows,
                        void *out, sn__team *team) {
  const int64_t words = (int64_t)(sn_dtype_size(dtype) / sizeof(word));
  gather_job job = {p, p->channels * words, first, out};
  sn__rows_run(team, rows, sn__patch_width(p), gather_task, &job);
}
