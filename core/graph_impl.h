/* SPDX-License-Identifier: Apache-2.0 */
/* The graph from inside: what passes (differentiation, optimizers, placement, plans) read and
 * extend. Indices are stable: a clone keeps those of its original, so a value of the forward graph
 * names the same tensor in the training graph and in the placed graph. Slot 0 of nodes and values
 * is unused. */
#ifndef SN_CORE_GRAPH_IMPL_H
#define SN_CORE_GRAPH_IMPL_H

#include "core/op.h"

typedef enum sn_phase { SN_FORWARD = 0, SN_BACKWARD, SN_UPDATE } sn_phase;

typedef enum sn__value_kind {
  SN_VALUE_OP = 0,
  SN_VALUE_INPUT,
  SN_VALUE_VARIABLE,
  SN_VALUE_CONSTANT
} sn__value_kind;

typedef struct sn__node {
  const sn_op_def *op;
  void *attrs;
  uint32_t *in; /* value indices; 0 = absent */
  uint32_t n_in;
  uint32_t *out;
  uint32_t n_out;
  uint32_t module;  /* index into modules */
  const char *name; /* module path + "/" + op or given name + number: unique */
  sn_phase phase;
  uint32_t origin;   /* the forward node a backward node comes from; 0 otherwise */
  uint32_t home;     /* value whose home this node must share: the variable of a gradient sum, slot
                        or update, or the value of any n-ary gradient sum; 0: its module decides */
  uint64_t rng_key;  /* hash(module path, op ordinal in the module) of the forward node */
  int32_t device;    /* index into the topology; -1 until placed */
  const char *cause; /* why there; NULL until placed */
  uint32_t part;     /* which micro-batch of a graph in parts; 0 for what all of them share */
  int64_t order;     /* of its queue's work, read as the graph's order_rule says; 0: none given */
  uint32_t after;    /* value that is there before it starts, though it does not read it; 0: none */
  bool recomputed;   /* a forward node once more, for the backward pass (core/recompute.h) */
} sn__node;

/* What nodes' order means to the schedule. Part of a plan, as devices are: clones and placed graphs
 * keep it, files do not. */
typedef enum sn__order_rule {
  SN_ORDER_LONGEST = 0, /* not read: the longest remaining path goes first */
  SN_ORDER_PRIORITY,    /* whenever a queue is free it takes the ready node of the largest order,
                           equals by node; those without one come behind, by longest remaining path */
  SN_ORDER_STRICT       /* a position: a queue's nodes that have one run from the smallest to the
                           largest, whenever they are ready; equals by node; those without one run
                           between them by longest remaining path */
} sn__order_rule;

typedef struct sn__value {
  sn__value_kind kind;
  sn_dtype dtype;
  sn_shape shape;
  uint32_t node; /* its producer (source nodes for inputs, variables, constants) */
  uint32_t slot; /* which output of it */
  const char *name;
  uint32_t extra; /* index into inputs, variables or constants, by kind */
} sn__value;

typedef struct sn__module {
  const char *path; /* "" for the root, "visits/lstm" */
  uint32_t parent;
  uint32_t ordinal; /* ops made in it so far */
} sn__module;

typedef enum sn__symbol_kind {
  SN_SYMBOL_ROWS,
  SN_SYMBOL_ELEMENTS,
  SN_SYMBOL_LONGEST
} sn__symbol_kind;

typedef struct sn__symbol {
  const char *name;
  sn__symbol_kind kind;
  uint32_t ragged; /* index into raggeds for elements and longest */
} sn__symbol;

/* One ragged structure: made by an input, shared by whatever keeps it. */
typedef struct sn__ragged {
  const char *name;
  uint32_t offsets; /* value: i32 [batch + 1], an input */
  uint32_t elements_symbol;
  uint32_t longest_symbol;
} sn__ragged;

typedef enum sn__input_role {
  SN_INPUT_DATA,    /* fed by the caller */
  SN_INPUT_OFFSETS, /* fed with its ragged input */
  SN_INPUT_SEED,    /* lambda / weight of a loss, fed by the session */
  SN_INPUT_STEP     /* the optimizer's step number (i64 scalar), fed by the session */
} sn__input_role;

typedef struct sn__input {
  const char *name;
  uint32_t value;
  sn__input_role role;
  int32_t ragged; /* index into raggeds, or -1 */
  uint32_t loss;  /* for SN_INPUT_SEED */
} sn__input;

/* A slot is a variable too: what an optimizer keeps beside its owner. */
typedef struct sn__variable {
  const char *name;
  uint32_t value;
  sn_init init;
  bool frozen;
  bool no_decay;
  bool copy_owner; /* a slot that starts as its owner does, whatever `init` says */
  uint32_t owner;  /* variable index + 1 of the owner when this is a slot; 0 for a model variable */
  const char
      *role; /* slot's role: "adam.m", "ema", "accumulator", "running_mean"; NULL otherwise */
  uint32_t gradient; /* value: the gradient in a training graph (its sum at home); 0 if none */
  uint32_t commit;   /* node that writes it in this graph; 0 if none */
} sn__variable;

typedef struct sn__constant {
  uint32_t value;
  void *data;
  size_t bytes;
} sn__constant;

typedef struct sn__loss_info {
  const char *name;
  uint32_t sum;     /* value: f32 scalar */
  uint32_t seed;    /* value: the scalar input that seeds the backward pass */
  double lambda;    /* the output's weight in the total */
  uint32_t weights; /* value of the per-row weights input (an input), or 0: every row counts 1 */
  int32_t symbol;   /* without weights: the symbol whose extent is the weight (batch or elements) */
} sn__loss_info;

typedef struct sn__output_info {
  const char *name;
  uint32_t value;
} sn__output_info;

/* The step's scalars in a training graph with an optimizer; 0 where there is none. */
typedef struct sn__scalars {
  uint32_t step;    /* input: i64, the number of the step, from 0 */
  uint32_t rate;    /* f64: the learning rate */
  uint32_t norm;    /* f64: of all gradients together, before clipping */
  uint32_t finite;  /* u8: 1 when every gradient is finite; 0: no variable is written */
  uint32_t control; /* f64 [4]: rate, factor of the gradients, finite, step: what updates read */
} sn__scalars;

struct sn_graph {
  sn__arena arena; /* owns names, attributes, index lists, constants */
  sn_status status;
  sn__node *nodes; /* [1, n_nodes) */
  size_t n_nodes, cap_nodes;
  sn__value *values; /* [1, n_values) */
  size_t n_values, cap_values;
  sn__module *modules; /* [0, n_modules); 0 is the root */
  size_t n_modules, cap_modules;
  sn__symbol *symbols;
  size_t n_symbols, cap_symbols;
  sn__ragged *raggeds;
  size_t n_raggeds, cap_raggeds;
  sn__input *inputs;
  size_t n_inputs, cap_inputs;
  sn__variable *variables;
  size_t n_variables, cap_variables;
  sn__constant *constants;
  size_t n_constants, cap_constants;
  sn__loss_info *losses;
  size_t n_losses, cap_losses;
  sn__output_info *outputs;
  size_t n_outputs, cap_outputs;
  /* [value]: the value that is its gradient in a training graph, 0 where none flows. Shorter than
   * the list of values: later ones have no gradient. */
  uint32_t *gradients;
  size_t n_gradients, cap_gradients;
  sn__scalars scalars;
  sn__order_rule order_rule;
  uint32_t n_parts; /* micro-batches unrolled in it (placement/microbatch.h); 0: a whole batch */
  uint32_t module;  /* the open one */
  uint32_t module_depth; /* to catch unbalanced ends */
  /* What new nodes are marked with; passes set these. */
  sn_phase phase;
  uint32_t origin;
  uint32_t home;
};

static inline uint32_t sn__graph_parts(const sn_graph *g) {
  return g->n_parts > 1 ? g->n_parts : 1;
}

/* The micro-batch whose extents a value's symbols have. */
static inline uint32_t sn__value_part(const sn_graph *g, uint32_t value) {
  return g->nodes[g->values[value].node].part;
}

/* The three source ops, known to core itself: nodes without inputs or kernels. */
extern const sn_op_def sn__op_input, sn__op_variable, sn__op_constant;

SN_BEGIN_DECLS

/* A deep copy with the same indices. The original may be freed. */
SN_API SN_MUST_USE sn_status sn__graph_clone(const sn_graph *graph, sn_graph **out_graph);

SN_API sn_value sn__value_at(const sn_graph *graph, uint32_t index);
SN_API sn__value *sn__value_info(const sn_graph *graph, sn_value value); /* NULL when invalid */
SN_API sn__node *sn__producer(const sn_graph *graph, uint32_t value);
SN_API bool sn__node_is_source(const sn__node *node); /* input, variable or constant */

/* Which ragged structure a value's first dimension counts the elements of, or -1. */
SN_API int32_t sn__value_ragged(const sn_graph *graph, sn_value value);
/* The structure whose offsets this value is, or -1. */
SN_API int32_t sn__offsets_ragged(const sn_graph *graph, sn_value offsets);

/* A node made earlier in the open module (and phase) with this op, these attrs and these inputs:
 * shared structure (time index, casts) is computed once a module. Invalid value when none. */
SN_API sn_value sn__graph_find_node(const sn_graph *graph, const sn_op_def *op, const void *attrs,
                                    const sn_value *inputs, size_t n_inputs);

/* Registers a loss: `sum` is the f32 scalar; weights an input value or invalid; symbol as in
 * sn__loss_info; makes the seed input "loss/<name>/seed". name NULL: "loss". */
SN_API sn_loss sn__graph_add_loss(sn_graph *graph, const char *name, sn_value sum, sn_value weights,
                                  int32_t symbol, double lambda);

/* A slot of `owner`, named <owner's name>/<role>; frozen; starts as `init` says, or as its owner
 * when the caller then sets copy_owner in its sn__variable (see sn__init_variable). */
SN_API sn_value sn__slot_variable(sn_graph *graph, sn_value owner, const char *role, sn_dtype dtype,
                                  sn_shape shape, sn_init init);

SN_API sn_value sn__role_input(sn_graph *graph, const char *name, sn_dtype dtype, sn_shape shape,
                               sn__input_role role);

SN_API uint64_t sn__hash_text(uint64_t seed, const char *text); /* stable across machines */
/* What a forward node's random draws are keyed by, beside seed and step. */
SN_API uint64_t sn__mix_key(const char *module_path, uint32_t ordinal);

SN_END_DECLS

#endif
