/* SPDX-License-Identifier: Apache-2.0 */
/* The operations as builders: each adds a node to the graph and returns its output.
 *
 * A mistake in shapes or types is recorded in the graph (sn_graph_status) in plain language and the
 * invalid value is returned. Shapes are written [batch, 64]; B is the batch, N the elements of a
 * ragged input. Broadcasting is NumPy's: trailing dimensions aligned, 1 stretches; symbolic
 * dimensions are equal only to themselves. Zero extents are legal everywhere: empty reductions give
 * zeros. */
#ifndef SN_OPS_OPS_H
#define SN_OPS_OPS_H

#include "core/graph.h"

SN_BEGIN_DECLS

#ifndef __cplusplus
#define SN__OPTIONS(type, ...) (&(type){.struct_size = sizeof(type), __VA_ARGS__})
#endif

typedef enum sn_activation {
  SN_LINEAR = 0,
  SN_RELU,
  SN_TANH,
  SN_SIGMOID,
  SN_GELU,      /* x * Phi(x), exact by erf   (Hendrycks & Gimpel 2016) */
  SN_GELU_TANH, /* its tanh approximation */
  SN_SILU,
  SN_LEAKY_RELU, /* slope 0.01 */
  SN_SOFTPLUS,
  SN_ACTIVATION_COUNT
} sn_activation;
SN_API const char *sn_activation_name(sn_activation activation); /* "relu" */
/* False when there is no activation of that name. */
SN_API bool sn_activation_from_name(const char *name, sn_activation *out);

/* ---- products ------------------------------------------------------------------------------ */

typedef struct sn_matmul_options {
  SN_OPTIONS_HEAD;
  bool transpose_a, transpose_b;
  sn_value bias;            /* [n], added to every row; optional */
  sn_activation activation; /* fused behind the bias */
  const char *name;
} sn_matmul_options;
/* [.., m, k] x [.., k, n] -> [.., m, n]; a and b have equal leading (batch) dimensions, or b has
 * rank 2 and is shared by all. */
SN_API sn_value sn_matmul_opt(sn_graph *g, sn_value a, sn_value b,
                              const sn_matmul_options *options);
#ifndef __cplusplus
#define sn_matmul(g, a, b, ...)                                                                    \
  sn_matmul_opt((g), (a), (b), SN__OPTIONS(sn_matmul_options, __VA_ARGS__))
#endif

/* ---- images: channels last, [batch, height, width, channels] ------------------------------- */

typedef struct sn_conv2d_op_options {
  SN_OPTIONS_HEAD;
  int64_t stride[2];        /* down, across; 0 means 1 */
  int64_t padding[2];       /* zeros above and below, left and right */
  sn_value bias;            /* [Cout], added to every pixel; optional */
  sn_activation activation; /* fused behind the bias */
  const char *name;
} sn_conv2d_op_options;
/* x [N, H, W, Cin], kernel [KH, KW, Cin, Cout] -> [N, OH, OW, Cout], OH = (H + 2 padding - KH) /
 * stride + 1: y[o] = sum over u of x[o stride - padding + u] kernel[u], not turned round, as in
 * PyTorch. Dilation and groups are 1. All but N have fixed sizes. */
SN_API sn_value sn_conv2d_op_opt(sn_graph *g, sn_value x, sn_value kernel,
                                 const sn_conv2d_op_options *options);

typedef struct sn_pool2d_options {
  SN_OPTIONS_HEAD;
  int64_t kernel[2];      /* the window, down and across; needed */
  int64_t stride[2];      /* 0 means the window's */
  int64_t padding[2];     /* on both sides; at most half the window */
  bool count_include_pad; /* a mean is over the whole window, zeros of the padding included (as
                             PyTorch does unless told not to); otherwise over its pixels alone */
  const char *name;
} sn_pool2d_options;
/* x [N, H, W, C] -> [N, OH, OW, C], OH = (H + 2 padding - kernel) / stride + 1. Padding is never a
 * maximum. Max: the first of equals gets the gradient, a NaN stays. */
SN_API sn_value sn_max_pool2d_opt(sn_graph *g, sn_value x, const sn_pool2d_options *options);
SN_API sn_value sn_avg_pool2d_opt(sn_graph *g, sn_value x, const sn_pool2d_options *options);
#ifndef __cplusplus
/* sn_conv2d_op(g, x, kernel, .stride = {2, 2}, .padding = {1, 1}) */
#define sn_conv2d_op(g, x, kernel, ...)                                                            \
  sn_conv2d_op_opt((g), (x), (kernel), SN__OPTIONS(sn_conv2d_op_options, __VA_ARGS__))
/* sn_max_pool2d(g, x, .kernel = {2, 2}) */
#define sn_max_pool2d(g, x, ...)                                                                   \
  sn_max_pool2d_opt((g), (x), SN__OPTIONS(sn_pool2d_options, __VA_ARGS__))
#define sn_avg_pool2d(g, x, ...)                                                                   \
  sn_avg_pool2d_opt((g), (x), SN__OPTIONS(sn_pool2d_options, __VA_ARGS__))
#endif

/* ---- element by element -------------------------------------------------------------------- */

/* Two values broadcast together; equal types. */
SN_API sn_value sn_add(sn_graph *g, sn_value a, sn_value b);
SN_API sn_value sn_sub(sn_graph *g, sn_value a, sn_value b);
SN_API sn_value sn_mul(sn_graph *g, sn_value a, sn_value b);
SN_API sn_value sn_div(sn_graph *g, sn_value a, sn_value b);
/* The sum of equal shapes, in the order given: the one way gradients meet. */
SN_API sn_value sn_add_n(sn_graph *g, sn_values values);
/* alpha * x + beta */
SN_API sn_value sn_affine(sn_graph *g, sn_value x, double alpha, double beta);
/* Element by element, any float. log and sqrt of what they do not take are NaN. */
SN_API sn_value sn_neg(sn_graph *g, sn_value x);
SN_API sn_value sn_exp(sn_graph *g, sn_value x);
SN_API sn_value sn_log(sn_graph *g, sn_value x);
SN_API sn_value sn_sqrt(sn_graph *g, sn_value x);
SN_API sn_value sn_tanh(sn_graph *g, sn_value x);
SN_API sn_value sn_sigmoid(sn_graph *g, sn_value x);
SN_API sn_value sn_relu(sn_graph *g, sn_value x);
SN_API sn_value sn_leaky_relu(sn_graph *g, sn_value x, double slope);
SN_API sn_value sn_gelu(sn_graph *g, sn_value x, bool tanh_form);
SN_API sn_value sn_silu(sn_graph *g, sn_value x);
SN_API sn_value sn_softplus(sn_graph *g, sn_value x);
SN_API sn_value sn_softsign(sn_graph *g, sn_value x); /* x / (1 + |x|); NaN at infinity */
SN_API sn_value sn_activate(sn_graph *g, sn_value x, sn_activation activation);
/* Gradient 1 inside [low, high], 0 outside. */
SN_API sn_value sn_clamp(sn_graph *g, sn_value x, double low, double high);
/* condition (bool or u8) ? a : b, broadcast together. */
SN_API sn_value sn_where(sn_graph *g, sn_value condition, sn_value a, sn_value b);

typedef enum sn_comparison { SN_EQ = 0, SN_NE, SN_LT, SN_LE, SN_GT, SN_GE } sn_comparison;
/* -> bool, broadcast. */
SN_API sn_value sn_compare(sn_graph *g, sn_value a, sn_value b, sn_comparison comparison);
SN_API sn_value sn_cast(sn_graph *g, sn_value x, sn_dtype dtype);

/* ---- reductions and normal forms ----------------------------------------------------------- */

typedef struct sn_reduce_options {
  SN_OPTIONS_HEAD;
  int axis;      /* negative counts from the end; ignored with `all` */
  bool all;      /* over every dimension, to a scalar */
  bool keep_dim; /* the reduced dimension stays, as 1 */
} sn_reduce_options;
/* Over one dimension or all. Of nothing: 0. Max: the first of equals gets the gradient. */
SN_API sn_value sn_reduce_sum_opt(sn_graph *g, sn_value x, const sn_reduce_options *options);
SN_API sn_value sn_reduce_mean_opt(sn_graph *g, sn_value x, const sn_reduce_options *options);
SN_API sn_value sn_reduce_max_opt(sn_graph *g, sn_value x, const sn_reduce_options *options);
#ifndef __cplusplus
#define sn_reduce_sum(g, x, ...)                                                                   \
  sn_reduce_sum_opt((g), (x), SN__OPTIONS(sn_reduce_options, __VA_ARGS__))
#define sn_reduce_mean(g, x, ...)                                                                  \
  sn_reduce_mean_opt((g), (x), SN__OPTIONS(sn_reduce_options, __VA_ARGS__))
#define sn_reduce_max(g, x, ...)                                                                   \
  sn_reduce_max_opt((g), (x), SN__OPTIONS(sn_reduce_options, __VA_ARGS__))
#endif
/* Sums `x` down to the shape of `like` (the transpose of broadcasting). */
SN_API sn_value sn_sum_to(sn_graph *g, sn_value x, sn_value like);
SN_API sn_value sn_softmax(sn_graph *g, sn_value x);     /* over the last dimension */
SN_API sn_value sn_log_softmax(sn_graph *g, sn_value x); /* over the last dimension */
/* (x - mean) / sqrt(variance + epsilon) * scale + shift over the last dimension; scale, shift [F],
 * each optional.   (Ba et al. 2016) */
SN_API sn_value sn_layer_norm_op(sn_graph *g, sn_value x, sn_value scale, sn_value shift,
                                 double epsilon);
/* Over all but the last dimension, statistics of the valid elements of the (micro-)batch in
 * training, running ones otherwise; biased variance to normalise, unbiased into the running one;
 * momentum is the share of the new. Running mean and variance are frozen variables [F]. Count 0,
 * and a statistic that is not finite, leave them alone. (Ioffe & Szegedy 2015) */
SN_API sn_value sn_batch_norm_op(sn_graph *g, sn_value x, sn_value scale, sn_value shift,
                                 sn_value running_mean, sn_value running_variance, double momentum,
                                 double epsilon);
/* The same with the statistics of the whole batch, each micro-batch's weighted by its count,
 * forward and backward: k micro-batches give one batch's gradients but for rounding, and the
 * running statistics move once a step. All micro-batches must be computed as far as here before one
 * goes on: they run in one graph (a GPipe pipeline), never one after the other. */
SN_API sn_value sn_batch_norm_sync_op(sn_graph *g, sn_value x, sn_value scale, sn_value shift,
                                      sn_value running_mean, sn_value running_variance,
                                      double momentum, double epsilon);
/* Zeroes with probability `rate` and scales the rest by 1 / (1 - rate), in training only. Draws are
 * keyed by seed, step, module and op, the row's number in the global batch, the position in its row
 * and the feature; `offsets` (or an invalid value for dense [batch, ...]) tells rows and positions.
 */
SN_API sn_value sn_dropout_op(sn_graph *g, sn_value x, sn_value offsets, double rate);

/* ---- shapes -------------------------------------------------------------------------------- */

typedef struct sn_concat_options {
  SN_OPTIONS_HEAD;
  int axis;
} sn_concat_options;
/* Joins values of equal type that differ along `axis` alone (negative counts from the end). */
SN_API sn_value sn_concat_opt(sn_graph *g, sn_values values, const sn_concat_options *options);
#ifndef __cplusplus
/* sn_concat(g, SN_VALUES(a, b), .axis = 1) */
#define sn_concat(g, values, ...)                                                                  \
  sn_concat_opt((g), (values), SN__OPTIONS(sn_concat_options, __VA_ARGS__))
#endif
/* Equal or given parts along a fixed axis; sizes[n] must add up. Writes n values. */
SN_API void sn_split(sn_graph *g, sn_value x, int axis, const int64_t *sizes, size_t n,
                     sn_value *out);
/* [.., begin:end, ..] along a fixed axis. */
SN_API sn_value sn_slice(sn_graph *g, sn_value x, int axis, int64_t begin, int64_t end);
/* One dimension may be SN_DIM_KEEP(i): that of x at i, which is how symbolic dimensions pass. */
#define SN_DIM_KEEP(i) (INT64_MIN + (i))
SN_API sn_value sn_reshape(sn_graph *g, sn_value x, sn_shape shape);
/* axes is a permutation of the rank. */
SN_API sn_value sn_transpose(sn_graph *g, sn_value x, const int *axes, size_t n);

/* ---- rows ---------------------------------------------------------------------------------- */

/* table [V, ..] by indices [..] (i32 or i64) -> [.., ..]; its gradient is scatter-add in index
 * order. An index out of range is a DATA status when run, naming the row. */
SN_API sn_value sn_gather_rows(sn_graph *g, sn_value table, sn_value indices);
/* x [M, ..] added into zeros with the shape of `like` [V, ..] at indices [M]: each row's terms in
 * ascending order, kept in f64 and rounded once. */
SN_API sn_value sn_scatter_add_rows(sn_graph *g, sn_value x, sn_value indices, sn_value like);

/* ---- ragged rows: x [N, F] with offsets [B + 1] ------------------------------------------- */

typedef enum sn_segment_reduction {
  SN_SEGMENT_SUM = 0,
  SN_SEGMENT_MEAN,
  SN_SEGMENT_MAX,
  SN_SEGMENT_FIRST,
  SN_SEGMENT_LAST
} sn_segment_reduction;
/* -> [B, F]; an empty row gives zeros and takes no gradient. Max: the first of equals gets it. */
SN_API sn_value sn_segment_reduce(sn_graph *g, sn_value x, sn_value offsets,
                                  sn_segment_reduction how);
/* Softmax within each row's elements, per feature: [N, F] -> [N, F]. */
SN_API sn_value sn_segment_softmax(sn_graph *g, sn_value x, sn_value offsets);
/* x [B, F] -> [N, F]: every element gets its row's values. N is that of the structure of `offsets`.
 */
SN_API sn_value sn_segment_expand(sn_graph *g, sn_value x, sn_value offsets);

/* Time-major order of a ragged structure: rows sorted by length, longest first, ties by row number;
 * step t holds the t-th element of every row longer than t. Outputs, all i32:
 * map [N]: row-major element number of each time-major element; steps [longest + 1]: where each
 * step begins; order [B]: row numbers, sorted. Made once a module for the same offsets. */
SN_API void sn_time_order(sn_graph *g, sn_value offsets, sn_value *out_map, sn_value *out_steps,
                          sn_value *out_order);
/* Row-major packed [N, ..] -> time-major packed, and back when `inverse`. */
SN_API sn_value sn_reorder(sn_graph *g, sn_value x, sn_value map, bool inverse);

/* ---- recurrent, on time-major sorted packed rows ------------------------------------------- */

typedef struct sn_recurrent_weights {
  sn_value input_kernel;     /* [G * H, F] as PyTorch's weight_ih (gates i,f,g,o; r,z,n for GRU) */
  sn_value recurrent_kernel; /* [G * H, H] weight_hh */
  sn_value input_bias;       /* [G * H] bias_ih; optional */
  sn_value recurrent_bias;   /* [G * H] bias_hh; optional (GRU: n's stays inside r * (...)) */
} sn_recurrent_weights;
/* x [N, F] -> [N, H], or [N, 2H] (forward then backward halves) when two directions of weights are
 * given. State starts at zero in every row. (Hochreiter & Schmidhuber 1997; Cho et al. 2014) */
SN_API sn_value sn_lstm_op(sn_graph *g, sn_value x, sn_value steps,
                           const sn_recurrent_weights *weights, int directions);
SN_API sn_value sn_gru_op(sn_graph *g, sn_value x, sn_value steps,
                          const sn_recurrent_weights *weights, int directions);

/* ---- losses: (sum, weight) ------------------------------------------------------------------ */

typedef struct sn_loss_options {
  SN_OPTIONS_HEAD;
  sn_value weights; /* f32, one per row of the labels, an input; optional. Rows of weight 0 are not
                       read */
  double scale;     /* lambda, this output's share in the total; 0 means 1 */
  double delta;     /* Huber's; 0 means 1 */
  const char *name;
} sn_loss_options;
/* The loss of a batch is sum / weight; weight = rows, or the sum of `weights`. Each returns the
 * sum. */
SN_API sn_loss sn_softmax_cross_entropy_opt(sn_graph *g, sn_value logits /* [R, K] */,
                                            sn_value labels /* i32 or i64 [R] */,
                                            const sn_loss_options *options);
/* labels f32 of the logits' shape, in [0, 1]; summed over features, averaged over them (as
 * PyTorch). */
SN_API sn_loss sn_sigmoid_cross_entropy_opt(sn_graph *g, sn_value logits, sn_value labels,
                                            const sn_loss_options *options);
/* Mean over features of each row, summed over rows. */
SN_API sn_loss sn_squared_loss_opt(sn_graph *g, sn_value prediction, sn_value target,
                                   const sn_loss_options *options);
SN_API sn_loss sn_absolute_loss_opt(sn_graph *g, sn_value prediction, sn_value target,
                                    const sn_loss_options *options);
SN_API sn_loss sn_huber_loss_opt(sn_graph *g, sn_value prediction, sn_value target,
                                 const sn_loss_options *options);
#ifndef __cplusplus
/* The options are optional: sn_squared_loss(g, z, y) or sn_squared_loss(g, z, y, .weights = w). */
#define sn_softmax_cross_entropy(g, z, ...)                                                        \
  SN__LOSS(sn_softmax_cross_entropy_opt, g, z, __VA_ARGS__, .struct_size = sizeof(sn_loss_options))
#define sn_sigmoid_cross_entropy(g, z, ...)                                                        \
  SN__LOSS(sn_sigmoid_cross_entropy_opt, g, z, __VA_ARGS__, .struct_size = sizeof(sn_loss_options))
#define sn_squared_loss(g, z, ...)                                                                 \
  SN__LOSS(sn_squared_loss_opt, g, z, __VA_ARGS__, .struct_size = sizeof(sn_loss_options))
#define sn_absolute_loss(g, z, ...)                                                                \
  SN__LOSS(sn_absolute_loss_opt, g, z, __VA_ARGS__, .struct_size = sizeof(sn_loss_options))
#define sn_huber_loss(g, z, ...)                                                                   \
  SN__LOSS(sn_huber_loss_opt, g, z, __VA_ARGS__, .struct_size = sizeof(sn_loss_options))
#define SN__LOSS(f, g, z, y, ...) f((g), (z), (y), &(sn_loss_options){__VA_ARGS__})
#endif

SN_END_DECLS

#endif
