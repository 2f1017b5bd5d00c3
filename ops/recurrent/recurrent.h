/* SPDX-License-Identifier: Apache-2.0 */
/* What the recurrent ops share (internal): layouts, shape rules, and the scan over time.
 *
 * Elements are time-major, rows sorted by length: step t is elements steps[t] .. steps[t+1), one of
 * each row longer than t, so the rows active at t are a prefix of those active at t - 1. A row's
 * state never meets another row's: a thread takes a direction and a stretch of rows through all
 * of time and waits for nobody.
 *
 * `gates` [N, D * 4 * H] is opaque: direction d is the contiguous block [N, 4H] at d * N * 4H.
 *   LSTM  i f g o, after their activations; `cells` [N, D * H] likewise holds c.
 *   GRU   r z after their activations, W_hn h + b_hn, n after its activation.
 * `dgates` has the same layout and holds the gradients before the activations. */
#ifndef SN_OPS_RECURRENT_RECURRENT_H
#define SN_OPS_RECURRENT_RECURRENT_H

#include "ops/gemm/gemm.h"
#include "ops/common.h"

typedef enum sn__recurrent_kind { SN__LSTM, SN__GRU } sn__recurrent_kind;

typedef struct sn__recurrent_attrs {
  int64_t directions;
  int64_t kind;      /* sn__recurrent_kind; of the shared gradient ops */
  int64_t direction; /* recurrent_weight_grad: which */
  int64_t rows;      /* lstm_grad, gru_grad: of out[1]; the batch, or a bound of it */
  int64_t precision; /* sn_precision */
} sn__recurrent_attrs;

#define SN__RECURRENT_ATTR_ROWS                                                                    \
  {                                                                                                \
    SN__INT_ATTR(sn__recurrent_attrs, directions), SN__INT_ATTR(sn__recurrent_attrs, kind),        \
        SN__INT_ATTR(sn__recurrent_attrs, direction), SN__INT_ATTR(sn__recurrent_attrs, rows),     \
        SN__PRECISION_ATTR(sn__recurrent_attrs)                                                    \
  }

/* Inputs of the forward ops: x, steps, then four of each direction. */
enum { SN__RNN_X, SN__RNN_STEPS, SN__RNN_WEIGHTS, SN__RNN_PER_DIRECTION = 4 };
enum { SN__RNN_W_IH, SN__RNN_W_HH, SN__RNN_B_IH, SN__RNN_B_HH };
enum { SN__RNN_TAPE = 4 }; /* numbers of H per element and direction in `gates`, of both kinds */
/* What the gradients read: x, steps, and both kernels of each direction. */
#define SN__RNN_SAVED_INPUTS (1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 7)
/* Elements whose weight gradients are taken at a time: their dgates, which three sums read, stay in
 * a level-2 cache meanwhile. A multiple of SN__GEMM_KC and of eight, so that cutting there
 * changes no bits of f32 products; bf16 ones are cut here as well, the last piece's being f32 where
 * it is short: a matter of `pitch` (4H) and the number of elements alone. */
static inline int64_t sn__rnn_piece(int64_t pitch) {
  enum { NUMBERS = 1 << 18, MOST = 8 * SN__GEMM_KC };
  const int64_t rows = NUMBERS / (pitch > 0 ? pitch : 1) / SN__GEMM_KC * SN__GEMM_KC;
  return rows < SN__GEMM_KC ? SN__GEMM_KC : rows > MOST ? MOST : rows;
}
/* What stands beside the previous state in the right-hand side of that product: LSTM's kernels meet
 * the same dgates, so x joins it; GRU's do not. */
static inline int64_t sn__rnn_beside(const sn__recurrent_attrs *a, int64_t features) {
  return a->kind == SN__GRU ? 0 : features;
}

static inline sn_dtype sn__rnn_compute(const sn__exec *e) {
  return sn__compute(e->in[0].dtype, ((const sn__recurrent_attrs *)e->attrs)->precision);
}

/* Of a product n wide and k deep, what is made in bf16. */
static inline double sn__rnn_bf16_flops(const sn__exec *e, int64_t n, int64_t k, double flops) {
  return sn__rnn_compute(e) == SN_BF16 && sn__gemm_rounds(n, k) ? flops : 0;
}

static inline int sn__rnn_input(int direction, int which) {
  return SN__RNN_WEIGHTS + direction * SN__RNN_PER_DIRECTION + which;
}

/* Checks everything; fills out[0] (y) and out[1] (gates). `count` is gates of the kernels, 3 or 4.
 */
SN_MUST_USE sn_status sn__recurrent_infer(sn__infer *c, int64_t count);
void sn__recurrent_cost(const sn__exec *e, int64_t count, sn__cost *out);
void sn__recurrent_grad_cost(const sn__exec *e, sn__cost *out);
sn_value sn__recurrent_add(sn_graph *g, const sn_op_def *op, sn_value x, sn_value steps,
                           const sn_recurrent_weights *weights, int directions);
/* The attributes of lstm_grad and gru_grad. */
sn__recurrent_attrs sn__recurrent_grad_attrs(const sn__grad *c);
/* dgates (may be invalid) to gradients of x and of every weight that need one. */
void sn__recurrent_grads(const sn__grad *c, sn__recurrent_kind kind, sn_value dgates);

/* out = a + b; either may be NULL, which is zeros. */
void sn__add_biases(sn_dtype dtype, const void *a, const void *b, int64_t n, void *out);

/* ---- the scan ---- */

typedef struct sn__scan {
  const sn__exec *e;
  sn_dtype dtype;
  sn_dtype compute; /* of products */
  size_t size;      /* bytes of a number */
  int64_t n;        /* elements */
  int64_t length;   /* steps */
  int64_t rows;     /* of step 0 */
  int64_t units;    /* H */
  int directions;
  const int32_t *steps;
  char *workspace; /* op's own use */
  void *user;
} sn__scan;

/* lstm_grad and gru_grad: fails when the batch has more rows than out[1] has room for. */
SN_MUST_USE sn_status sn__scan_fits(const sn__scan *s);
/* Fails when steps are not non-increasing counts that add up to n. */
SN_MUST_USE sn_status sn__scan_init(sn__scan *s, const sn__exec *e, const sn__tensor *steps,
                                    const sn__tensor *x, int64_t units, int directions);

/* Rows [row, row + rows) of direction `direction`, to be taken through all of time. */
typedef sn_status (*sn__scan_fn)(const sn__scan *s, int direction, int64_t row, int64_t rows);
SN_MUST_USE sn_status sn__scan_run(const sn__scan *s, sn__scan_fn fn);

/* One step of a stretch of rows, as the op's inner function needs it. */
typedef struct sn__scan_step {
  int64_t rows;      /* active of the stretch */
  int64_t element;   /* of the first */
  int64_t prev_rows; /* of those, how many have a state before this step (a prefix) */
  int64_t prev;      /* element of the first one's previous state */
} sn__scan_step;
/* Step t seen by `direction`; prev is in the direction's own sense of time. */
sn__scan_step sn__scan_at(const sn__scan *s, int direction, int64_t t, int64_t row, int64_t rows);

static inline int64_t sn__scan_rows(const sn__scan *s, int64_t t) {
  return s->steps[t + 1] - s->steps[t];
}

/* Bytes rounded up to whole cache lines. */
static inline size_t sn__lines(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

sn_status sn__recurrent_input_grad_cpu(const sn__exec *e);
sn_status sn__recurrent_weight_grad_cpu(const sn__exec *e);

#endif
