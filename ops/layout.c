/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/layout.h"

#include <string.h>

#include "ops/vecmath.h"

/* ---- shape rules --------------------------------------------------------------------------- */

const char *sn__input_words(const sn__infer *c, int i, char *buffer, size_t size) {
  return sn_shape_text(c->graph, &c->in[i].shape, buffer, size);
}

sn_status sn__want_real(const sn__infer *c, int i, const char *what) {
  if (c->in[i].dtype == SN_F32 || c->in[i].dtype == SN_F64) return SN_OK;
  return sn__infer_fail(c, "%s must be f32 or f64, not %s; cast it first", what,
                        sn_dtype_name(c->in[i].dtype));
}

sn_status sn__want_rank(const sn__infer *c, int i, int32_t least, int32_t most, const char *what) {
  const int32_t rank = c->in[i].shape.rank;
  if (rank >= least && rank <= most) return SN_OK;
  char text[160];
  sn__input_words(c, i, text, sizeof text);
  if (least == most)
    return sn__infer_fail(c, "%s must have %d dimensions and has %d: %s", what, least, rank, text);
  return sn__infer_fail(c, "%s must have %d to %d dimensions and has %d: %s", what, least, most,
                        rank, text);
}

sn_status sn__want_index(const sn__infer *c, int i, sn__index_kind kind, const char *what) {
  const sn_dtype dtype = c->in[i].dtype;
  if (kind == SN__INDICES) {
    if (dtype == SN_I32 || dtype == SN_I64) return SN_OK;
    return sn__infer_fail(c, "%s must be i32 or i64, not %s", what, sn_dtype_name(dtype));
  }
  if (dtype != SN_I32)
    return sn__infer_fail(c, "%s must be i32, not %s", what, sn_dtype_name(dtype));
  return sn__want_rank(c, i, 1, 1, what);
}

sn_status sn__want_vector(const sn__infer *c, int i, int64_t n, const char *what) {
  char text[160];
  if (c->in[i].dtype != c->in[0].dtype)
    return sn__infer_fail(c, "%s is %s but must be %s as its input is", what,
                          sn_dtype_name(c->in[i].dtype), sn_dtype_name(c->in[0].dtype));
  if (c->in[i].shape.rank == 1 && c->in[i].shape.dims[0] == n) return SN_OK;
  return sn__infer_fail(c, "%s must be [%lld], not %s", what, (long long)n,
                        sn__input_words(c, i, text, sizeof text));
}

int32_t sn__axis_of(int64_t axis, int32_t rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? (int32_t)axis : -1;
}

int64_t sn__rows_of_offsets(int64_t dim) {
  if (!sn_dim_is_symbolic(dim)) return dim > 0 ? dim - 1 : 0;
  return SN_DIM_SYMBOL(sn_dim_symbol(dim));
}

sn_shape sn__with_dim0(const sn_shape *x, int64_t dim0) {
  sn_shape shape = *x;
  shape.dims[0] = dim0;
  return shape;
}

/* ---- rows among threads -------------------------------------------------------------------- */

enum { PIECE_WORK = 16384 }; /* elements worth waking another thread for */

typedef struct rows_job {
  sn__rows_fn fn;
  void *arg;
  int64_t rows, piece;
} rows_job;

static void rows_task(void *arg, int64_t index, int worker) {
  (void)worker;
  const rows_job *job = arg;
  const int64_t begin = index * job->piece, end = begin + job->piece;
  job->fn(job->arg, begin, end < job->rows ? end : job->rows);
}

void sn__rows_run(sn__team *team, int64_t rows, int64_t work, sn__rows_fn fn, void *arg) {
  if (rows <= 0) return;
  const int64_t threads = sn__team_threads(team);
  int64_t piece = PIECE_WORK / (work > 0 ? work : 1) + 1;
  const int64_t even = (rows + 4 * threads - 1) / (4 * threads);
  if (piece < even) piece = even;
  if (threads == 1 || piece >= rows) {
    fn(arg, 0, rows);
    return;
  }
  rows_job job = {fn, arg, rows, piece};
  sn__team_run(team, (rows + piece - 1) / piece, rows_task, &job);
}

double sn__tensor_bytes(const sn__exec *e) {
  double bytes = 0;
  for (int i = 0; i < e->n_in; i++)
    if (e->in[i].dtype != SN_DTYPE_NONE)
      bytes += (double)sn__shape_size(&e->in[i].shape) * (double)sn_dtype_size(e->in[i].dtype);
  for (int i = 0; i < e->n_out; i++)
    bytes += (double)sn__shape_size(&e->out[i].shape) * (double)sn_dtype_size(e->out[i].dtype);
  return bytes;
}

/* ---- copies -------------------------------------------------------------------------------- */

typedef struct copy_job {
  char *to;
  const char *from;
  size_t to_step, from_step, bytes;
} copy_job;

static void copy_task(void *arg, int64_t begin, int64_t end) {
  const copy_job *job = arg;
  if (job->bytes == job->to_step && job->bytes == job->from_step) {
    memcpy(job->to + (size_t)begin * job->bytes, job->from + (size_t)begin * job->bytes,
           (size_t)(end - begin) * job->bytes);
    return;
  }
  for (int64_t i = begin; i < end; i++)
    memcpy(job->to + (size_t)i * job->to_step, job->from + (size_t)i * job->from_step, job->bytes);
}

void sn__copy_rows(sn__team *team, void *to, size_t to_step, const void *from, size_t from_step,
                   int64_t rows, size_t bytes) {
  if (rows <= 0 || bytes == 0 || to == from) return;
  copy_job job = {to, from, to_step, from_step, bytes};
  sn__rows_run(team, rows, (int64_t)(bytes / sizeof(float)), copy_task, &job);
}
