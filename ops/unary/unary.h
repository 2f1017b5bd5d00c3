/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions of one input: one family of kernels, one row of ops.def each (internal). */
#ifndef SN_OPS_UNARY_UNARY_H
#define SN_OPS_UNARY_UNARY_H

#include "ops/common.h"

/* What the gradient reads: nothing of the forward node, its input, or its output. */
typedef enum sn__unary_saves { SN__SAVES_NONE, SN__SAVES_IN, SN__SAVES_OUT } sn__unary_saves;

/* X(name, what the gradient reads, flops for each element, doc) */
#define SN__UNARIES(X)                                                                             \
  X(neg, NONE, 1, "-x")                                                                            \
  X(exp, OUT, 20, "e^x")                                                                           \
  X(log, IN, 30, "natural logarithm")                                                              \
  X(sqrt, OUT, 4, "square root")                                                                   \
  X(tanh, OUT, 35, "hyperbolic tangent")                                                           \
  X(sigmoid, OUT, 25, "1 / (1 + e^-x)")                                                            \
  X(relu, OUT, 1, "max(x, 0)")                                                                     \
  X(leaky_relu, OUT, 2, "x where positive, else slope * x")                                        \
  X(gelu, IN, 60, "x * Phi(x), Phi the normal distribution function")                              \
  X(gelu_tanh, IN, 50, "the tanh approximation of gelu")                                           \
  X(silu, IN, 26, "x * sigmoid(x)")                                                                \
  X(softplus, IN, 60, "log(1 + e^x)")                                                              \
  X(softsign, IN, 5, "x / (1 + |x|)")                                                              \
  X(affine, NONE, 2, "alpha * x + beta")                                                           \
  X(clamp, IN, 2, "x kept within [alpha, beta]")

typedef enum sn__unary {
#define SN_X(name, saves, flops, doc) SN__UNARY_##name,
  SN__UNARIES(SN_X)
#undef SN_X
      SN__UNARY_COUNT
} sn__unary;

typedef struct sn__unary_attrs {
  double alpha; /* leaky_relu's slope, affine's factor, clamp's low */
  double beta;  /* affine's term, clamp's high */
} sn__unary_attrs;

typedef struct sn__unary_grad_attrs {
  int64_t kind; /* sn__unary */
  double alpha, beta;
} sn__unary_grad_attrs;

/* y[i] = f(x[i]) for i in [0, n); y may be x. */
typedef void (*sn__unary_fn)(const void *x, void *y, int64_t n, const sn__unary_attrs *a);
/* dx[i] = f'(saved[i]) * dy[i]; dx may be saved or dy. */
typedef void (*sn__unary_grad_fn)(const void *saved, const void *dy, void *dx, int64_t n,
                                  double alpha, double beta);

extern const sn__unary_fn sn__unary_f32[SN__UNARY_COUNT], sn__unary_f64[SN__UNARY_COUNT];
extern const sn__unary_grad_fn sn__unary_grad_f32[SN__UNARY_COUNT],
    sn__unary_grad_f64[SN__UNARY_COUNT];

extern const sn_op_def *const sn__unary_defs[SN__UNARY_COUNT];

sn__unary_saves sn__unary_saved(sn__unary kind);
/* The unary op of an activation; SN__UNARY_COUNT for SN_LINEAR. */
sn__unary sn__unary_of_activation(sn_activation activation, sn__unary_attrs *out_attrs);
/* f'(saved) * dy as a backward node. */
sn_value sn__unary_grad_add(sn_graph *g, sn__unary kind, const sn__unary_attrs *attrs,
                            sn_value saved, sn_value dy);

sn_status sn__unary_cpu(const sn__exec *e);
sn_status sn__unary_grad_cpu(const sn__exec *e);

#endif
