/* SPDX-License-Identifier: Apache-2.0 */
/* The graph API: what a model is written in.
 *
 * A graph owns its nodes in an arena; an sn_value is a small handle, valid as long as its graph.
 * Model code is straight-line: a builder that fails returns the invalid value, the graph keeps the
 * FIRST mistake with op, names and shapes, later calls pass it through, and sn_graph_status()
 * reports it once. A graph belongs to one thread at a time.
 *
 *   sn_graph *g;
 *   SN_TRY(sn_graph_create(&g));
 *   sn_value x = sn_input(g, "pixels", SN_F32, 64);          // [batch, 64]
 *   sn_value y = sn_input(g, "digit", SN_I64, 0);            // [batch]
 *   sn_value h = sn_dense(g, x, .units = 32, .activation = SN_RELU);
 *   sn_value z = sn_dense(g, h, .units = 10);
 *   sn_output(g, "digit", z);
 *   sn_loss  l = sn_softmax_cross_entropy(g, z, y);
 *   SN_TRY(sn_graph_status(g));
 */
#ifndef SN_CORE_GRAPH_H
#define SN_CORE_GRAPH_H

#include "core/options.h"
#include "core/shape.h"

SN_BEGIN_DECLS

typedef struct sn_graph sn_graph;

/* One tensor of a graph; index 0 is the invalid value. */
typedef struct sn_value {
  sn_graph *graph;
  uint32_t index;
} sn_value;

/* Ragged data: packed values [elements, features] (or [elements] for ids) and offsets [batch + 1];
 * row r is elements offsets[r] .. offsets[r+1). Two C types over the same storage, so an
 * order-sensitive layer cannot be fed a set. */
typedef struct sn_sequence {
  sn_value values;
  sn_value offsets;
} sn_sequence;

typedef struct sn_set {
  sn_value values;
  sn_value offsets;
} sn_set;

/* A loss as the graph knows it: the sum over the batch's rows (or elements), a scalar of the
 * prediction's type. A step divides it by its weight: see sn_loss_options and sn_step_args. */
typedef struct sn_loss {
  sn_value sum;
  uint32_t index; /* its number in the graph, from 0 */
} sn_loss;

/* A borrowed list of values for builders of any number: sn_concat(g, SN_VALUES(a, b), .axis = 1).
 */
typedef struct sn_values {
  const sn_value *items;
  size_t count;
} sn_values;

#ifndef __cplusplus
#define SN_VALUES(...)                                                                             \
  ((sn_values){(const sn_value[]){__VA_ARGS__},                                                    \
               sizeof((const sn_value[]){__VA_ARGS__}) / sizeof(sn_value)})
#endif

/* An empty graph with its root module open; the caller's own. */
SN_API SN_MUST_USE sn_status sn_graph_create(sn_graph **out_graph);
SN_API void sn_graph_free(sn_graph *graph);
/* The first mistake made while building, as a status of the caller's own; SN_OK when there is none.
 */
SN_API SN_MUST_USE sn_status sn_graph_status(const sn_graph *graph);
/* Records a mistake made by code that builds on this API (a layer); the first one is kept. Takes
 * ownership. Returns the invalid value so that a builder can end with it. */
SN_API sn_value sn_graph_fail(sn_graph *graph, sn_status status);
/* sn_options_read() for builders: false after recording the mistake. */
SN_API SN_MUST_USE bool sn_graph_options(sn_graph *graph, const void *options, size_t size,
                                         const char *what, void *out_options);

/* ---- inputs -------------------------------------------------------------------------------- */

/* [batch, features], or [batch] when features is 0. Names are unique in the graph. */
SN_API sn_value sn_input(sn_graph *graph, const char *name, sn_dtype dtype, int64_t features);
/* [batch, dims...] */
SN_API sn_value sn_input_shaped(sn_graph *graph, const char *name, sn_dtype dtype, int32_t rank,
                                const int64_t *dims);
/* values [name.elements, features] (or [name.elements]), offsets [batch + 1]. */
SN_API sn_sequence sn_sequence_input(sn_graph *graph, const char *name, sn_dtype dtype,
                                     int64_t features);
SN_API sn_set sn_set_input(sn_graph *graph, const char *name, sn_dtype dtype, int64_t features);
/* A second input with the very rows and lengths of `like` (labels of each element, say). */
SN_API sn_value sn_sequence_input_like(sn_graph *graph, const char *name, sn_dtype dtype,
                                       int64_t features, sn_sequence like);
/* A scalar fed every step. */
SN_API sn_value sn_scalar_input(sn_graph *graph, const char *name, sn_dtype dtype);
/* A constant tensor; the bytes are copied. */
SN_API sn_value sn_constant(sn_graph *graph, sn_dtype dtype, sn_shape shape, const void *data);
SN_API sn_value sn_constant_scalar(sn_graph *graph, sn_dtype dtype, double number);

/* ---- variables ----------------------------------------------------------------------------- */

typedef enum sn_init_kind {
  SN_INIT_ZEROS = 0,
  SN_INIT_CONSTANT,       /* value */
  SN_INIT_UNIFORM,        /* in [-value, value) */
  SN_INIT_NORMAL,         /* mean 0, standard deviation `value` */
  SN_INIT_GLOROT_UNIFORM, /* bound gain * sqrt(6 / (fan_in + fan_out))   (Glorot & Bengio 2010) */
  SN_INIT_GLOROT_NORMAL,
  SN_INIT_HE_UNIFORM, /* bound gain * sqrt(3 / fan_in); gain 0 means sqrt(2)   (He et al. 2015) */
  SN_INIT_HE_NORMAL,
  SN_INIT_ORTHOGONAL /* rows or columns orthonormal, times gain   (Saxe et al. 2013) */
} sn_init_kind;

/* How a variable starts. Draws are keyed by (seed, variable's name, position): the same whatever
 * the placement or the order in which variables were made. */
typedef struct sn_init {
  sn_init_kind kind;
  double value;
  double gain;             /* 0 means 1 (sqrt(2) for He) */
  int64_t fan_in, fan_out; /* 0 means from the shape: [out, in] as for dense weights */
} sn_init;

/* What PyTorch's Linear, LSTM, GRU and Embedding start with, by name. */
SN_API sn_init
sn_init_pytorch_linear(int64_t fan_in); /* U(-1/sqrt(in), 1/sqrt(in)), weight and bias */
SN_API sn_init sn_init_pytorch_recurrent(int64_t units); /* U(-1/sqrt(units), 1/sqrt(units)) */
SN_API sn_init sn_init_pytorch_embedding(void);          /* N(0, 1) */

typedef struct sn_variable_options {
  SN_OPTIONS_HEAD;
  sn_init init;
  bool frozen;   /* no gradient, no update: running statistics, fixed embeddings */
  bool no_decay; /* weight decay leaves it alone (biases, norms, embeddings by their layers' choice)
                  */
} sn_variable_options;

/* A variable of a fixed shape, named <module path>/<name>; the full name is unique. */
SN_API sn_value sn_variable_opt(sn_graph *graph, const char *name, sn_dtype dtype, sn_shape shape,
                                const sn_variable_options *options);
#ifndef __cplusplus
#define sn_variable(g, name, dtype, shape, ...)                                                    \
  sn_variable_opt((g), (name), (dtype), (shape),                                                   \
                  &(sn_variable_options){.struct_size = sizeof(sn_variable_options), __VA_ARGS__})
#endif

/* ---- modules ------------------------------------------------------------------------------- */

/* Opens a module, the unit of placement; nests. A name already taken among its siblings gets a
 * number ("dense_1"). Names are letters, digits, '_', '-' and '.'. */
SN_API void sn_module_begin(sn_graph *graph, const char *name);
SN_API void sn_module_end(sn_graph *graph);

/* ---- outputs ------------------------------------------------------------------------------- */

/* Names a value as an output of the model: what eval, predict and export give. */
SN_API void sn_output(sn_graph *graph, const char *name, sn_value value);

/* ---- precision ----------------------------------------------------------------------------- */

/* What matrix products compute in: matmul and what is built of it (dense, attention), LSTM and GRU,
 * conv2d, and all their gradients. Whatever the choice, tensors are f32 in memory: variables, what
 * optimizers keep, activations, gradients, losses; sums, norms, gates and activation functions are
 * computed in f32. */
typedef enum sn_precision {
  SN_PRECISION_F32 = 0,
  /* Both operands of a product are rounded to bf16 (8 bits of significand, the nearest, ties to
   * even) as they are read, and the products of the rounded numbers are added up in f32. An element
   * of a product of depth k is off by at most (2^-7 + 2^-16 + (k + 4) 2^-24) times the sum of |a b|
   * over its terms. Numbers have f32's range: nothing needs scaling; NaN and infinities stay; what
   * is above 3.396e38 becomes infinite, and what is below 1.18e-38 counts as zero. */
  SN_PRECISION_BF16
} sn_precision;

/* Sets what the products that the graph has by now compute in; f64 ones stay f64. Call it when the
 * model is built and before it is differentiated (sn_train_graph, sn_trainer_create): gradients
 * compute as their forward products do. It is part of the graph: written to checkpoints with it, so
 * that eval, predict and resumed runs compute alike. A program older than this choice refuses such
 * a checkpoint. Faster where the CPU has AMX_BF16 or AVX512_BF16; elsewhere emulated. */
SN_API void sn_graph_set_precision(sn_graph *graph, sn_precision precision);
/* BF16 when any product of the graph is. */
SN_API sn_precision sn_graph_precision(const sn_graph *graph);

/* ---- looking ------------------------------------------------------------------------------- */

/* False for the invalid value, which a builder that failed returns. */
SN_API bool sn_value_ok(sn_value value);
SN_API sn_dtype sn_value_dtype(sn_value value);   /* SN_DTYPE_NONE when invalid */
SN_API sn_shape sn_value_shape(sn_value value);   /* rank -1 when invalid */
SN_API const char *sn_value_name(sn_value value); /* borrowed; "(invalid)" when it is */
/* "[batch, 64]" in the caller's buffer. */
SN_API const char *sn_shape_text(const sn_graph *graph, const sn_shape *shape, char *buffer,
                                 size_t size);
/* Variables in the order in which they were made, those of layers and optimizers included; the
 * invalid value where there is none. */
SN_API size_t sn_graph_variable_count(const sn_graph *graph);
SN_API sn_value sn_graph_variable(const sn_graph *graph, size_t i);
SN_API sn_value sn_graph_find_variable(const sn_graph *graph, const char *name);
/* Outputs in the order in which they were named; out_name (may be NULL) is borrowed. */
SN_API size_t sn_graph_output_count(const sn_graph *graph);
SN_API sn_value sn_graph_output(const sn_graph *graph, size_t i, const char **out_name);
/* Losses in the order in which they were made. */
SN_API size_t sn_graph_loss_count(const sn_graph *graph);
/* A loss as it was made. Names are borrowed. */
typedef struct sn_loss_info {
  const char *name;
  const char *op;             /* "softmax_cross_entropy", "squared_loss" */
  double scale;               /* its weight in the total */
  sn_value sum;               /* f32 scalar */
  sn_value prediction, label; /* what it compares */
  sn_value weights;           /* of rows or elements; invalid: all count 1 */
} sn_loss_info;
SN_API sn_loss_info sn_graph_loss(const sn_graph *graph, size_t i);
/* Everything that is fed, in order: data, and what sessions feed themselves (offsets, the seeds of
 * losses, the step). */
SN_API size_t sn_graph_input_count(const sn_graph *graph);
SN_API sn_value sn_graph_input(const sn_graph *graph, size_t i);
SN_API sn_value sn_graph_find_input(const sn_graph *graph, const char *name);
/* All values of a graph: sn_graph_value(graph, 1) .. sn_graph_value(graph, count). */
SN_API size_t sn_graph_value_count(const sn_graph *graph);
SN_API sn_value sn_graph_value(const sn_graph *graph, size_t number);
/* Whether an op computes it: not the bytes of an input, a variable or a constant. */
SN_API bool sn_value_computed(sn_value value);
/* In a training graph (optim/optim.h) the gradient of one of its variables, summed; invalid when
 * none flows. */
SN_API sn_value sn_graph_gradient(const sn_graph *train, sn_value variable);

SN_END_DECLS

#endif
