/* SPDX-License-Identifier: Apache-2.0 */
/* What the ops that cut, move and reduce rows share (internal): attribute rows, checks of shapes,
 * sharing rows out to the team, column sums. */
#ifndef SN_OPS_LAYOUT_H
#define SN_OPS_LAYOUT_H

#include "core/graph_impl.h"
#include "ops/ops.h"

/* Every op, so that builders and gradients can name each other's. */
#define SN_OP(name) extern const sn_op_def sn__op_##name;
#include "ops/ops.def"
#undef SN_OP

/* What products compute in: the last attribute of their ops. */
#define SN__PRECISION_ATTR(type)                                                                   \
  { .name = "precision", .kind = SN_ATTR_INT, .offset = offsetof(type, precision), .added = true }
#define SN__INT_ATTR(type, field)                                                                  \
  { .name = #field, .kind = SN_ATTR_INT, .offset = offsetof(type, field) }
#define SN__FLOAT_ATTR(type, field)                                                                \
  { .name = #field, .kind = SN_ATTR_FLOAT, .offset = offsetof(type, field) }
#define SN__INTS_ATTR(type, field)                                                                 \
  { .name = #field, .kind = SN_ATTR_INTS, .offset = offsetof(type, field) }
#define SN__LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))
/* The attribute fields of an op row. */
#define SN__ATTRS(type, table)                                                                     \
  .attrs = (table), .n_attrs = SN__LENGTH(table), .attrs_size = sizeof(type)

typedef enum sn__index_kind { SN__OFFSETS, SN__INDICES } sn__index_kind;

/* Shape rules: each returns SN_OK or the complaint. `what` names input i in words. */
SN_MUST_USE sn_status sn__want_real(const sn__infer *c, int i, const char *what);
SN_MUST_USE sn_status sn__want_rank(const sn__infer *c, int i, int32_t least, int32_t most,
                                    const char *what);
/* Offsets: i32 of rank 1. Indices: i32 or i64 of any rank. */
SN_MUST_USE sn_status sn__want_index(const sn__infer *c, int i, sn__index_kind kind,
                                     const char *what);
/* Input i is [n] of the dtype of input 0. */
SN_MUST_USE sn_status sn__want_vector(const sn__infer *c, int i, int64_t n, const char *what);
/* The shape of input i, in the caller's buffer. */
const char *sn__input_words(const sn__infer *c, int i, char *buffer, size_t size);
/* A negative axis counts from the end; -1 when there is no such axis. */
int32_t sn__axis_of(int64_t axis, int32_t rank);

/* Rows of a ragged structure from its offsets' only dimension (batch + 1 or a number). */
int64_t sn__rows_of_offsets(int64_t offsets_dim);
/* `x` with dims[0] = dim0. */
sn_shape sn__with_dim0(const sn_shape *x, int64_t dim0);

/* Runs fn over [0, rows) in pieces that the team shares out. Rows are independent, so the cut,
 * which depends on the number of threads, changes no result. `work` is elements touched per row. */
typedef void (*sn__rows_fn)(void *arg, int64_t begin, int64_t end);
void sn__rows_run(sn__team *team, int64_t rows, int64_t work, sn__rows_fn fn, void *arg);

/* Sums of f32 or f64 columns, kept in f64 and rounded once: `dtype` is that of x. */
/* Columns summed at a time: their sums stay in a level-1 cache. Not part of the bits. */
enum { SN__SUM_COLS = 512 };
/* sums[j] += x[i * ld + j] over the rows, eight at a time: cutting the rows at a multiple of eight
 * changes no bits. At most SN__SUM_COLS columns are quick. */
void sn__add_rows(sn_dtype dtype, const void *x, int64_t rows, int64_t ld, int64_t cols,
                  double *sums);
/* The same of any number of columns, which the team shares out. */
void sn__add_columns(sn_dtype dtype, const void *x, int64_t rows, int64_t cols, int64_t ld,
                     double *sums, sn__team *team);
/* out[j] = sums[j] * scale, n of `dtype`. */
void sn__round_sums(sn_dtype dtype, const double *sums, double scale, int64_t n, void *out);

/* Bytes of all inputs and outputs: the usual cost row. */
double sn__tensor_bytes(const sn__exec *e);

/* Copies rows of `bytes` bytes: to + i * to_step <- from + i * from_step. */
void sn__copy_rows(sn__team *team, void *to, size_t to_step, const void *from, size_t from_step,
                   int64_t rows, size_t bytes);

#endif
