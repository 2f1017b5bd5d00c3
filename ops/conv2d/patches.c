/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the patch matrix. Channels-last makes each tap row of a patch one stretch of memory. */
#include "ops/conv2d/conv2d.h"

#include <string.h>

#include "ops/gemm/gemm.h"

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

typedef struct gather_job {
  const sn__patches *p;
  size_t pixel; /* bytes */
  int64_t first;
  char *out;
} gather_job;

/* One row of taps: zeros, source, zeros. */
static void gather_taps(const gather_job *job, const char *line, int64_t x, char *out) {
  const sn__patches *p = job->p;
  const int64_t taps = p->taps_w;
  const int64_t left = x >= 0 ? 0 : x < -taps ? taps : -x;
  int64_t right = p->source_w - x;
  right = right < left ? left : right > taps ? taps : right;
  if (left > 0) memset(out, 0, (size_t)left * job->pixel);
  if (right > left)
    memcpy(out + (size_t)left * job->pixel, line + (size_t)(x + left) * job->pixel,
           (size_t)(right - left) * job->pixel);
  if (right < taps)
    memset(out + (size_t)right * job->pixel, 0, (size_t)(taps - right) * job->pixel);
}

static void gather_task(void *arg, int64_t begin, int64_t end) {
  const gather_job *job = arg;
  const sn__patches *p = job->p;
  const size_t line = (size_t)p->source_w * job->pixel, taps = (size_t)p->taps_w * job->pixel;
  char *out = job->out + (size_t)begin * (size_t)p->taps_h * taps;
  const int64_t at = job->first + begin;
  int64_t j = at % p->grid_w, i = at / p->grid_w % p->grid_h, n = at / p->grid_w / p->grid_h;
  for (int64_t row = begin; row < end; row++) {
    const char *image = (const char *)p->source + (size_t)(n * p->source_h) * line;
    for (int64_t u = 0; u < p->taps_h; u++, out += taps) {
      const int64_t y = i * p->step_h + p->offset_h + u;
      if (y < 0 || y >= p->source_h)
        memset(out, 0, taps);
      else
        gather_taps(job, image + (size_t)y * line, j * p->step_w + p->offset_w, out);
    }
    if (++j < p->grid_w) continue;
    j = 0;
    if (++i < p->grid_h) continue;
    i = 0;
    n++;
  }
}

void sn__patches_gather(const sn__patches *p, sn_dtype dtype, int64_t first, int64_t rows,
                        void *out, sn__team *team) {
  gather_job job = {p, (size_t)p->channels * sn_dtype_size(dtype), first, out};
  sn__rows_run(team, rows, sn__patch_width(p), gather_task, &job);
}
