/* SPDX-License-Identifier: Apache-2.0 */
/* A model written in C, as the command loads it: one shared library that exports one symbol.
 *
 *     static sn_status build(sn_graph *g, const sn_model_facts *facts) {
 *       ...
 *       return sn_graph_status(g);
 *     }
 *     SN_MODEL_EXPORT const sn_model_v1 sn_model = {sizeof sn_model, SN_MODEL_ABI, "mine", build};
 *
 *     cc -shared -fPIC mine.c $(pkg-config --cflags --libs sennit) -o libmine.so
 *     sennit train --model ./libmine.so --data train.h5 --out run
 *
 * The graph's inputs are read from the datasets of their names: dense `sn_input(g, "age", ...)`
 * from /age, a sequence or set from the group /name with `values` and `offsets` (or what the
 * config's `inputs` and `data` say). What a loss takes as labels is an input too. */
#ifndef SN_MODELS_MODEL_H
#define SN_MODELS_MODEL_H

#include "core/graph.h"

SN_BEGIN_DECLS

#define SN_MODEL_ABI    1
#define SN_MODEL_SYMBOL "sn_model"
#if defined(__GNUC__)
#define SN_MODEL_EXPORT __attribute__((visibility("default")))
#else
#define SN_MODEL_EXPORT
#endif

/* What the data says of one dataset or ragged group. */
typedef struct sn_model_fact {
  const char *name; /* of the input: its dataset without the leading slash */
  int64_t features; /* per row or element; 0 for scalars and ids */
  int64_t
      classes; /* distinct integer or string values of a label or category; 0 when not counted */
  bool ragged;
} sn_model_fact;

typedef struct sn_model_facts {
  size_t struct_size;
  size_t count;
  const sn_model_fact *items;
} sn_model_facts;

/* NULL when the data has no such thing. */
SN_API const sn_model_fact *sn_model_find_fact(const sn_model_facts *facts, const char *name);

typedef struct sn_model_v1 {
  size_t struct_size;
  int abi; /* SN_MODEL_ABI */
  const char *name;
  /* Fills an empty graph: inputs, layers, sn_output for each output, a loss for each. Called for
   * training only: a checkpoint carries the graph, so eval, predict and export need no library. */
  sn_status (*build)(sn_graph *graph, const sn_model_facts *facts);
} sn_model_v1;

/* The models that come with sennit. */
SN_API extern const sn_model_v1 sn_model_digits;

typedef enum sn_h3_size { SN_H3_S = 0, SN_H3_M, SN_H3_L } sn_h3_size;

/* H3, the heterogeneous benchmark: three encoders that share nothing, and a trunk. */
typedef struct sn_h3_sizes {
  const char *name;
  int64_t batch;
  int64_t dense_in, dense_hidden;
  int64_t sequence_in, sequence_units, sequence_longest;
  int64_t set_in, set_hidden, set_largest;
  int64_t trunk, classes;
} sn_h3_sizes;
SN_API const sn_h3_sizes *sn_h3_sizes_of(sn_h3_size size);
/* Inputs dense, sequence, set and the label outcome; output and loss "outcome". */
SN_API SN_MUST_USE sn_status sn_h3_build(sn_graph *graph, const sn_h3_sizes *sizes);

typedef enum sn_inception_size {
  SN_INCEPTION_S = 0,
  SN_INCEPTION_M,
  SN_INCEPTION_L
} sn_inception_size;

/* Images through a stem (3 x 3) and blocks of four parallel paths, each with filters / 4 channels;
 * all pixels averaged, one dense layer. */
typedef struct sn_inception_sizes {
  const char *name;
  int64_t batch;
  int64_t side, channels; /* images [side, side, channels] */
  int64_t stem, filters, reduce, blocks;
  int64_t classes;
} sn_inception_sizes;
SN_API const sn_inception_sizes *sn_inception_sizes_of(sn_inception_size size);
/* Input image [batch, side side channels] and the label outcome; output and loss "outcome". */
SN_API SN_MUST_USE sn_status sn_inception_build(sn_graph *graph, const sn_inception_sizes *sizes);

SN_END_DECLS

#endif
