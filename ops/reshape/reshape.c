/* SPDX-License-Identifier: Apache-2.0 */
/* The same bytes under another shape: a view, never run. */
#include "ops/reshape/reshape.h"

#include <stdlib.h>

static const sn__attr_def reshape_attrs[] = {SN__INTS_ATTR(sn__reshape_attrs, dims)};

/* SN_DIM_KEEP(i) in place of what i says; false when x has no dimension i. */
static bool resolve_dim(const sn_shape *x, int64_t *dim) {
  if (*dim >= INT64_MIN + SN_MAX_RANK) return true;
  const int64_t i = *dim - INT64_MIN;
  if (i >= x->rank) return false;
  *dim = x->dims[i];
  return true;
}

static int by_value(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Product of the fixed dimensions, and the symbolic ones sorted. */
static int64_t factors(const sn_shape *shape, int64_t *symbols, int *n) {
  int64_t product = 1;
  *n = 0;
  for (int32_t i = 0; i < shape->rank; i++) {
    if (sn_dim_is_symbolic(shape->dims[i]))
      symbols[(*n)++] = shape->dims[i];
    else if (__builtin_mul_overflow(product, shape->dims[i], &product))
      return -1;
  }
  qsort(symbols, (size_t)*n, sizeof *symbols, by_value);
  return product;
}

static sn_status reshape_infer(sn__infer *c) {
  const sn__reshape_attrs *a = c->attrs;
  const sn_shape *x = &c->in[0].shape;
  char from[160], to[160];
  sn__input_words(c, 0, from, sizeof from);
  if (a->dims.count < 0 || a->dims.count > SN_MAX_RANK)
    return sn__infer_fail(c, "a shape has at most %d dimensions", SN_MAX_RANK);
  sn_shape y = {.rank = (int32_t)a->dims.count};
  for (int32_t i = 0; i < y.rank; i++) {
    y.dims[i] = a->dims.v[i];
    if (!resolve_dim(x, &y.dims[i]))
      return sn__infer_fail(c, "dimension %d is to be that of %s at %lld, which does not exist", i,
                            from, (long long)(a->dims.v[i] - INT64_MIN));
  }
  int64_t in_symbols[SN_MAX_RANK], out_symbols[SN_MAX_RANK];
  int n_in, n_out;
  const int64_t in = factors(x, in_symbols, &n_in), out = factors(&y, out_symbols, &n_out);
  bool same = in == out && n_in == n_out && in >= 0;
  for (int i = 0; same && i < n_in; i++)
    same = in_symbols[i] == out_symbols[i];
  if (!same)
    return sn__infer_fail(c, "%s cannot become %s: they do not hold the same number of elements",
                          from, sn_shape_text(c->graph, &y, to, sizeof to));
  c->out[0] = (sn__type){c->in[0].dtype, y};
  return SN_OK;
}

/* The dimensions of x, its symbols told by where y has them: attributes name no symbol. */
static sn_status reshape_grad(const sn__grad *c) {
  if (!sn_value_ok(c->dout[0]) || !c->need[0]) return SN_OK;
  sn_shape x = sn_value_shape(c->in[0]), y = sn_value_shape(c->dout[0]);
  for (int32_t i = 0; i < x.rank; i++)
    for (int32_t k = 0; sn_dim_is_symbolic(x.dims[i]) && k < y.rank; k++)
      if (y.dims[k] == x.dims[i]) x.dims[i] = SN_DIM_KEEP(k);
  c->din[0] = sn_reshape(c->graph, c->dout[0], x);
  return SN_OK;
}

const sn_op_def sn__op_reshape = {.name = "reshape",
                                  .version = 1,
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .n_outputs = 1,
                                  .flags = SN_OP_VIEW,
                                  SN__ATTRS(sn__reshape_attrs, reshape_attrs),
                                  .infer = reshape_infer,
                                  .grad = reshape_grad,
                                  .doc = "the same elements under another shape"};

sn_value sn_reshape(sn_graph *g, sn_value x, sn_shape shape) {
  sn__reshape_attrs a = {.dims = {.count = shape.rank}};
  for (int32_t i = 0; i < shape.rank && i < SN_MAX_RANK; i++)
    a.dims.v[i] = shape.dims[i];
  return sn__node_add(g, &sn__op_reshape, &a, &x, 1, NULL, NULL);
}
