/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as matrix products over patches (internal).
 *
 * Images are channels-last: x [N, H, W, Cin], kernel [KH, KW, Cin, Cout], y [N, OH, OW, Cout]. Row
 * p of the patch matrix is what the kernel sees at output pixel p, so y = patches [N OH OW, K]
 * times the kernel as it lies [K, Cout], K = KH KW Cin. Patches are made a chunk of rows at a time,
 * never all at once. Bits follow from ops/gemm: a row's own patch and K alone decide them. */
#ifndef SN_OPS_CONV2D_CONV2D_H
#define SN_OPS_CONV2D_CONV2D_H

#include "ops/unary/unary.h"

typedef struct sn__conv2d_attrs {
  int64_t stride_h, stride_w;
  int64_t padding_h, padding_w;
  int64_t activation; /* sn_activation; the forward op's alone */
  /* What the gradients cannot tell from their inputs: the extents of x, or of the kernel. */
  int64_t height, width;
  int64_t precision; /* sn_precision */
} sn__conv2d_attrs;

/* Where patches are read: source [images, source_h, source_w, channels]; the patch of grid pixel
 * (i, j) has its corner at (i step_h + offset_h, j step_w + offset_w) and taps_h x taps_w pixels;
 * what lies outside the source is 0. */
typedef struct sn__patches {
  const void *source;
  int64_t images, source_h, source_w, channels;
  int64_t grid_h, grid_w;
  int64_t step_h, step_w, offset_h, offset_w;
  int64_t taps_h, taps_w;
} sn__patches;

static inline int64_t sn__patch_rows(const sn__patches *p) {
  return p->images * p->grid_h * p->grid_w;
}
static inline int64_t sn__patch_width(const sn__patches *p) {
  return p->taps_h * p->taps_w * p->channels;
}
/* The patch matrix is the source as it lies. */
bool sn__patches_are_source(const sn__patches *p);
/* Rows [first, first + rows) of the patch matrix, to out [rows, width]. */
void sn__patches_gather(const sn__patches *p, sn_dtype dtype, int64_t first, int64_t rows,
                        void *out, sn__team *team);
/* Rows of a chunk: what about a megabyte holds, in steps of SN__GEMM_KC so that sums over rows are
 * cut where one f32 product over all rows would cut them (bf16 ones are cut at chunks as well).
 * Depends on the patch's width alone. */
int64_t sn__patch_chunk(const sn__patches *p, sn_dtype dtype);

sn_status sn__conv2d_cpu(const sn__exec *e);
sn_status sn__conv2d_input_grad_cpu(const sn__exec *e);
sn_status sn__conv2d_weight_grad_cpu(const sn__exec *e);
size_t sn__conv2d_workspace(const sn__exec *e);
size_t sn__conv2d_input_grad_workspace(const sn__exec *e);
size_t sn__conv2d_weight_grad_workspace(const sn__exec *e);

#endif
