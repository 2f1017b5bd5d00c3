/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: what models are written with. Each opens a module of its own (so that it can be placed),
 * makes its variables, named as PyTorch names them, and returns its output.
 *
 * Written against the public headers alone: everything here could stand in a user's own code. A
 * mistake is recorded in the graph (sn_graph_status). Initial values are PyTorch's unless asked
 * otherwise. */
#ifndef SN_LAYERS_LAYERS_H
#define SN_LAYERS_LAYERS_H

#include "ops/ops.h"

SN_BEGIN_DECLS

/* ---- dense --------------------------------------------------------------------------------- */

typedef struct sn_dense_options {
  SN_OPTIONS_HEAD;
  int64_t units; /* needed */
  sn_activation activation;
  bool no_bias;
  const sn_init *kernel_init; /* NULL: sn_init_pytorch_linear */
  const sn_init *bias_init;   /* NULL: the same (zeros when kernel_init is given) */
  const char *name;           /* the module's; NULL: "dense" */
} sn_dense_options;
/* x [.., F] -> [.., units]: activation(x W^T + b); variables weight [units, F], bias [units]. */
SN_API sn_value sn_dense_opt(sn_graph *g, sn_value x, const sn_dense_options *options);
/* The same layer at every element. */
SN_API sn_sequence sn_sequence_dense_opt(sn_graph *g, sn_sequence x,
                                         const sn_dense_options *options);
SN_API sn_set sn_set_dense_opt(sn_graph *g, sn_set x, const sn_dense_options *options);
#ifndef __cplusplus
#define sn_dense(g, x, ...) sn_dense_opt((g), (x), SN__OPTIONS(sn_dense_options, __VA_ARGS__))
#define sn_sequence_dense(g, x, ...)                                                               \
  sn_sequence_dense_opt((g), (x), SN__OPTIONS(sn_dense_options, __VA_ARGS__))
#define sn_set_dense(g, x, ...)                                                                    \
  sn_set_dense_opt((g), (x), SN__OPTIONS(sn_dense_options, __VA_ARGS__))
#endif

/* ---- images: channels last, [batch, height, width, channels] ------------------------------- */

typedef struct sn_conv2d_options {
  SN_OPTIONS_HEAD;
  int64_t filters;    /* channels out; needed */
  int64_t kernel[2];  /* height, width; needed, the second 0 means as the first */
  int64_t stride[2];  /* 0 means 1, and the second as the first */
  int64_t padding[2]; /* zeros above and below, left and right */
  bool same;          /* instead of padding: (kernel - 1) / 2; with stride 1 the image keeps its
                         size. The kernel must be odd */
  sn_activation activation;
  bool no_bias;
  const sn_init *kernel_init; /* NULL: as PyTorch's Conv2d; fans that are 0 are the kernel's */
  const sn_init *bias_init;   /* NULL: the same (zeros when kernel_init is given) */
  const char *name;           /* NULL: "conv2d" */
} sn_conv2d_options;
/* x [N, H, W, C] -> [N, OH, OW, filters]; variables weight [KH, KW, C, filters] (PyTorch's weight
 * [filters, C, KH, KW], its axes in the order 2, 3, 1, 0) and bias [filters]. */
SN_API sn_value sn_conv2d_opt(sn_graph *g, sn_value x, const sn_conv2d_options *options);

typedef struct sn_inception_options {
  SN_OPTIONS_HEAD;
  int64_t point, three, five; /* channels out of the paths 1 x 1, 3 x 3 and 5 x 5; needed */
  int64_t pool;               /* of the path max pooling 3 x 3, then 1 x 1; needed */
  int64_t reduce_three;       /* a 1 x 1 convolution to so many channels before 3 x 3; 0: none */
  int64_t reduce_five;        /* the same before 5 x 5 */
  sn_activation activation;   /* of every convolution; SN_LINEAR means SN_RELU here */
  const char *name;           /* NULL: "inception" */
} sn_inception_options;
/* Four paths over one image, side by side in the channels: x [N, H, W, C] -> [N, H, W, point +
 * three + five + pool]. Each is a module of its own, "1x1", "3x3", "5x5" and "pool", so that each
 * can have a device of its own.   (Szegedy et al. 2015, "Going deeper with convolutions") */
SN_API sn_value sn_inception_opt(sn_graph *g, sn_value x, const sn_inception_options *options);

/* The mean, or the greatest, of all pixels of each channel: [N, H, W, C] -> [N, C]. */
SN_API sn_value sn_global_average_pool(sn_graph *g, sn_value x);
SN_API sn_value sn_global_max_pool(sn_graph *g, sn_value x);
/* [N, H, W, C] -> [N, H W C]. */
SN_API sn_value sn_flatten(sn_graph *g, sn_value x);
#ifndef __cplusplus
/* sn_conv2d(g, x, .filters = 32, .kernel = {3}, .same = true, .activation = SN_RELU) */
#define sn_conv2d(g, x, ...) sn_conv2d_opt((g), (x), SN__OPTIONS(sn_conv2d_options, __VA_ARGS__))
#define sn_inception(g, x, ...)                                                                    \
  sn_inception_opt((g), (x), SN__OPTIONS(sn_inception_options, __VA_ARGS__))
#endif

/* ---- embedding ----------------------------------------------------------------------------- */

typedef struct sn_embedding_options {
  SN_OPTIONS_HEAD;
  int64_t count;       /* ids are 0 .. count - 1; needed */
  int64_t units;       /* needed */
  const sn_init *init; /* NULL: sn_init_pytorch_embedding */
  const char *name;    /* NULL: "embedding" */
} sn_embedding_options;
/* ids [..] (i32 or i64) -> [.., units]; variable weight [count, units]. */
SN_API sn_value sn_embedding_opt(sn_graph *g, sn_value ids, const sn_embedding_options *options);
/* The same at every element. */
SN_API sn_sequence sn_sequence_embedding_opt(sn_graph *g, sn_sequence ids,
                                             const sn_embedding_options *options);
#ifndef __cplusplus
#define sn_embedding(g, ids, ...)                                                                  \
  sn_embedding_opt((g), (ids), SN__OPTIONS(sn_embedding_options, __VA_ARGS__))
#define sn_sequence_embedding(g, ids, ...)                                                         \
  sn_sequence_embedding_opt((g), (ids), SN__OPTIONS(sn_embedding_options, __VA_ARGS__))
#endif

/* ---- recurrent ----------------------------------------------------------------------------- */

typedef struct sn_recurrent_options {
  SN_OPTIONS_HEAD;
  int64_t units;      /* needed */
  int64_t layers;     /* 0 means 1 */
  bool bidirectional; /* outputs [N, 2 * units]: forward half, backward half */
  bool no_bias;
  double dropout;      /* between layers */
  const sn_init *init; /* for all variables; NULL: sn_init_pytorch_recurrent */
  const char *name;    /* NULL: "lstm", "gru" */
} sn_recurrent_options;
/* x [N, F] -> [N, units]. Variables weight_ih_l0 [4 units, F], weight_hh_l0, bias_ih_l0,
 * bias_hh_l0, with _reverse for the backward direction. */
SN_API sn_sequence sn_lstm_opt(sn_graph *g, sn_sequence x, const sn_recurrent_options *options);
SN_API sn_sequence sn_gru_opt(sn_graph *g, sn_sequence x, const sn_recurrent_options *options);
#ifndef __cplusplus
#define sn_lstm(g, x, ...) sn_lstm_opt((g), (x), SN__OPTIONS(sn_recurrent_options, __VA_ARGS__))
#define sn_gru(g, x, ...)  sn_gru_opt((g), (x), SN__OPTIONS(sn_recurrent_options, __VA_ARGS__))
#endif

/* ---- pooling: ragged rows -> [batch, F]; an empty row gives zeros --------------------------- */

/* The last, first, mean, greatest (by feature) or sum of each row's elements. */
SN_API sn_value sn_sequence_last(sn_graph *g, sn_sequence x);
SN_API sn_value sn_sequence_first(sn_graph *g, sn_sequence x);
SN_API sn_value sn_sequence_mean(sn_graph *g, sn_sequence x);
SN_API sn_value sn_sequence_max(sn_graph *g, sn_sequence x);
SN_API sn_value sn_sequence_sum(sn_graph *g, sn_sequence x);
/* The final states of a bidirectional layer: the last of the forward half, the first of the other.
 */
SN_API sn_value sn_sequence_final(sn_graph *g, sn_sequence x, int64_t units);
/* Sum, mean or greatest (by feature) of each row's elements, whatever their order. */
SN_API sn_value sn_set_sum(sn_graph *g, sn_set x);
SN_API sn_value sn_set_mean(sn_graph *g, sn_set x);
SN_API sn_value sn_set_max(sn_graph *g, sn_set x);

typedef struct sn_attention_options {
  SN_OPTIONS_HEAD;
  int64_t units;    /* of the scoring layer; 0 means the features */
  const char *name; /* NULL: "attention" */
} sn_attention_options;
/* Elements weighed by softmax(v . tanh(W x + b)) within their row, and added.
 * (Yang et al. 2016, "Hierarchical attention networks"; Ilse et al. 2018 for sets) */
SN_API sn_value sn_sequence_attention_opt(sn_graph *g, sn_sequence x,
                                          const sn_attention_options *options);
SN_API sn_value sn_set_attention_opt(sn_graph *g, sn_set x, const sn_attention_options *options);
#ifndef __cplusplus
#define sn_sequence_attention(g, x, ...)                                                           \
  sn_sequence_attention_opt((g), (x), SN__OPTIONS(sn_attention_options, __VA_ARGS__))
#define sn_set_attention(g, x, ...)                                                                \
  sn_set_attention_opt((g), (x), SN__OPTIONS(sn_attention_options, __VA_ARGS__))
#endif

/* ---- sets ---------------------------------------------------------------------------------- */

typedef enum sn_pool {
  SN_POOL_MEAN = 0,
  SN_POOL_SUM,
  SN_POOL_MAX,
  SN_POOL_ATTENTION,
  SN_POOL_LAST
} sn_pool;

typedef struct sn_deep_set_options {
  SN_OPTIONS_HEAD;
  const int64_t *phi; /* units of the dense layers over each element */
  size_t n_phi;
  sn_pool pool;       /* not SN_POOL_LAST: a set has no last element */
  const int64_t *rho; /* units of the dense layers over the pooled row; may be none */
  size_t n_rho;
  sn_activation activation; /* of every layer; SN_LINEAR means SN_RELU here */
  double dropout;           /* behind every layer of rho */
  const char *name;         /* NULL: "deep_set" */
} sn_deep_set_options;
/* rho(pool(phi(x)))   (Zaheer et al. 2017, "Deep sets"). The order of a set never matters. */
SN_API sn_value sn_deep_set_opt(sn_graph *g, sn_set x, const sn_deep_set_options *options);
#ifndef __cplusplus
#define sn_deep_set(g, x, ...)                                                                     \
  sn_deep_set_opt((g), (x), SN__OPTIONS(sn_deep_set_options, __VA_ARGS__))
/* .phi = SN_UNITS(64, 64), .n_phi = 2 */
#define SN_UNITS(...)                                                                              \
  (const int64_t[]) {                                                                              \
    __VA_ARGS__                                                                                    \
  }
#endif

/* ---- norms and dropout --------------------------------------------------------------------- */

typedef struct sn_norm_options {
  SN_OPTIONS_HEAD;
  double epsilon;  /* 0 means 1e-5 */
  double momentum; /* batch norm: share of the new statistics; 0 means 0.1 */
  bool no_scale, no_shift;
  const char *name; /* NULL: "layer_norm", "batch_norm" */
  bool sync; /* batch norm: statistics of the whole batch, not of each micro-batch; micro-batches
                then run as a GPipe pipeline alone (sn_batch_norm_sync_op()) */
} sn_norm_options;
/* Variables weight and bias [F]; batch norm also keeps running_mean and running_var. */
SN_API sn_value sn_layer_norm_opt(sn_graph *g, sn_value x, const sn_norm_options *options);
SN_API sn_value sn_batch_norm_opt(sn_graph *g, sn_value x, const sn_norm_options *options);
#ifndef __cplusplus
#define sn_layer_norm(g, x, ...)                                                                   \
  sn_layer_norm_opt((g), (x), SN__OPTIONS(sn_norm_options, __VA_ARGS__))
#define sn_batch_norm(g, x, ...)                                                                   \
  sn_batch_norm_opt((g), (x), SN__OPTIONS(sn_norm_options, __VA_ARGS__))
#endif
/* sn_dropout_op() by the row of a dense value, or by row and position of a ragged one. */
SN_API sn_value sn_dropout(sn_graph *g, sn_value x, double rate);
SN_API sn_sequence sn_sequence_dropout(sn_graph *g, sn_sequence x, double rate);
SN_API sn_set sn_set_dropout(sn_graph *g, sn_set x, double rate);

SN_END_DECLS

#endif
