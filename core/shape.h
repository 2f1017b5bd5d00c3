/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: up to six dimensions, each fixed or symbolic.
 *
 * A dimension >= 0 is fixed. A negative one names a symbol of the graph ("batch",
 * "visits.elements"), optionally plus one (offsets have batch + 1 entries). Symbols come from
 * inputs alone, so all their values (the extents) are known on the host when a batch is fed. All
 * tensors are dense, row-major. */
#ifndef SN_CORE_SHAPE_H
#define SN_CORE_SHAPE_H

#include "core/dtype.h"

SN_BEGIN_DECLS

enum { SN_MAX_RANK = 6 };

typedef struct sn_shape {
  int32_t rank;
  int64_t dims[SN_MAX_RANK];
} sn_shape;

/* Symbol `s` as a dimension, and symbol `s` plus one. */
#define SN_DIM_SYMBOL(s)          (-1 - 2 * (int64_t)(s))
#define SN_DIM_SYMBOL_PLUS_ONE(s) (-2 - 2 * (int64_t)(s))
/* Every graph's symbol 0: the number of rows (examples) in the batch. */
#define SN_SYMBOL_BATCH           0
#define SN_DIM_BATCH              SN_DIM_SYMBOL(SN_SYMBOL_BATCH)

static inline bool sn_dim_is_symbolic(int64_t dim) {
  return dim < 0;
}
static inline int32_t sn_dim_symbol(int64_t dim) {
  return (int32_t)((-1 - dim) / 2);
}
static inline int64_t sn_dim_addend(int64_t dim) {
  return (-1 - dim) % 2;
}

SN_API sn_shape sn_shape_make(int32_t rank,
                              const int64_t *dims); /* rank > SN_MAX_RANK gives rank -1 */
/* Symbols are equal to themselves alone. */
SN_API bool sn_shape_equal(const sn_shape *a, const sn_shape *b);
/* No dimension is a symbol. */
SN_API bool sn_shape_is_fixed(const sn_shape *shape);

#ifndef __cplusplus
/* SN_SHAPE(3, 4): a fixed or symbolic shape from its dimensions; SN_SCALAR_SHAPE has rank 0. */
#define SN_SHAPE(...)                                                                              \
  sn_shape_make((int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
                (const int64_t[]){__VA_ARGS__})
#define SN_SCALAR_SHAPE ((sn_shape){0, {0}})
#endif

/* ---- inside sennit ---- */

/* Puts extents[symbol] in place of symbols. */
SN_API sn_shape sn__shape_resolve(const sn_shape *shape, const int64_t *extents);
/* Elements of a fixed shape (rank 0 has one); false on overflow. */
SN_API SN_MUST_USE bool sn__shape_count(const sn_shape *shape, int64_t *out_count);
/* Elements of a resolved shape already known to fit. */
SN_API int64_t sn__shape_size(const sn_shape *shape);
/* Product of dims[from..to). */
SN_API int64_t sn__shape_span(const sn_shape *shape, int32_t from, int32_t to);

SN_END_DECLS

#endif
