/* SPDX-License-Identifier: Apache-2.0 */
/* What the ops share (internal): work in fixed chunks, broadcasting, usual checks and costs. */
#ifndef SN_OPS_COMMON_H
#define SN_OPS_COMMON_H

#include "ops/layout.h"

/* ---- chunks of work ------------------------------------------------------------------------- */

/* Elements in one task of an elementwise kernel. */
#define SN__GRAIN 16384

typedef void (*sn__range_fn)(void *arg, int64_t begin, int64_t end, int worker);

/* fn over [0, n) in chunks [i * grain, (i + 1) * grain): the cut depends on n and grain alone. */
void sn__for_range(sn__team *team, int64_t n, int64_t grain, sn__range_fn fn, void *arg);
/* Rows of `width` elements to a task so that a task has about SN__GRAIN elements; at least one. */
int64_t sn__row_grain(int64_t width);

/* ---- broadcasting --------------------------------------------------------------------------- */

/* NumPy's rule with symbolic dimensions equal only to themselves. */
SN_MUST_USE sn_status sn__infer_broadcast(const sn__infer *c, const sn_shape *a, const sn_shape *b,
                                          sn_shape *out);

enum { SN__BROADCAST_MOST = 3 };

/* Up to three operands walked together with an output of `out`'s shape: dimensions that all
 * operands step through alike are merged; the last one has stride 0 or 1 in each operand. */
typedef struct sn__broadcast {
  int32_t rank; /* at least 1 */
  int64_t dims[SN_MAX_RANK];
  int64_t strides[SN__BROADCAST_MOST][SN_MAX_RANK];
} sn__broadcast;

sn__broadcast sn__broadcast_plan(const sn_shape *out, const sn_shape *const *in, int n_in);

/* One stretch: `n` outputs from `at`; operand i starts at element first[i], steps by step[i]. */
typedef void (*sn__stretch_fn)(void *arg, int64_t at, const int64_t *first, const int64_t *step,
                               int64_t n);
void sn__broadcast_run(const sn__exec *e, const sn__broadcast *plan, int n_in, sn__stretch_fn fn,
                       void *arg);

/* ---- checks used by many shape rules -------------------------------------------------------- */

/* f32 or f64, else a complaint naming the input as `what`. */
SN_MUST_USE sn_status sn__need_float(const sn__infer *c, int input, const char *what);
SN_MUST_USE sn_status sn__need_same_dtype(const sn__infer *c, int a, const char *what_a, int b,
                                          const char *what_b);
SN_MUST_USE sn_status sn__need_same_shape(const sn__infer *c, int a, const char *what_a, int b,
                                          const char *what_b);
/* A dimension as words: "64", "batch". In the caller's buffer. */
const char *sn__dim_text(const sn_graph *graph, int64_t dim, char *buffer, size_t size);
/* "[batch, 64]" of a type, in the caller's buffer. */
const char *sn__shape_words(const sn__infer *c, const sn_shape *shape, char *buffer, size_t size);

/* What a product's `precision` attribute says it computes in. */
SN_MUST_USE sn_status sn__need_precision(const sn__infer *c, int64_t precision);
static inline bool sn__is_bf16(sn_dtype dtype, int64_t precision) {
  return dtype == SN_F32 && precision == SN_PRECISION_BF16;
}
static inline sn_dtype sn__compute(sn_dtype dtype, int64_t precision) {
  return sn__is_bf16(dtype, precision) ? SN_BF16 : dtype;
}

/* Outputs like input 0. */
sn_status sn__infer_like_first(sn__infer *c);
/* Float input 0; output like it. */
sn_status sn__infer_float_like_first(sn__infer *c);

static inline int64_t sn__count(const sn__tensor *t) {
  return sn__shape_size(&t->shape);
}
static inline int64_t sn__last_dim(const sn_shape *s) {
  return s->rank > 0 ? s->dims[s->rank - 1] : 1;
}
static inline sn__ints sn__ints_of(const sn_shape *s) {
  sn__ints out = {s->rank, {0}};
  for (int32_t i = 0; i < s->rank; i++)
    out.v[i] = s->dims[i];
  return out;
}
static inline sn_shape sn__shape_of_ints(const sn__ints *v) {
  sn_shape out = {(int32_t)v->count, {0}};
  for (int32_t i = 0; i < out.rank; i++)
    out.dims[i] = v->v[i];
  return out;
}

/* Bytes of all tensors, each once. */
double sn__cost_bytes(const sn__exec *e);
/* cost rows: `flops` for each element of output 0, and each tensor moved once. */
void sn__cost_elements(const sn__exec *e, double flops, sn__cost *out);

/* ---- builders inside ops -------------------------------------------------------------------- */

/* x stretched to `shape` by broadcasting. */
sn_value sn__broadcast_to(sn_graph *g, sn_value x, sn_shape shape);
sn_value sn__sum_to_shape(sn_graph *g, sn_value x, sn_shape shape);
/* The op across two devices. */
sn_value sn__copy(sn_graph *g, sn_value x);

/* ---- sums that several ops need, in fixed orders -------------------------------------------- */

/* Rows summed at a time when rows are added up: part of the bits. A multiple of eight. */
#define SN__SUM_PART 128

/* out[o, i] = scale * sum over m of x[o, m, i] for f32 and f64, added up in f64; no middle gives
 * zeros. workspace holds sn__sum_middle_workspace() bytes. */
size_t sn__sum_middle_workspace(int64_t outer, int64_t middle, int64_t inner);
void sn__sum_middle(sn__team *team, sn_dtype dtype, const void *x, int64_t outer, int64_t middle,
                    int64_t inner, double scale, void *out, void *workspace);

#endif
