/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation is (internal). One op = one folder in ops/ plus one row in ops/ops.def; the
 * table is received at link time, so core knows no op. Every field that is NULL or 0 means "no". */
#ifndef SN_CORE_OP_H
#define SN_CORE_OP_H

#include "core/graph.h"
#include "core/alloc.h"
#include "core/device/kernel.h"

enum { SN_MAX_OUTPUTS = 8 };

/* ---- attributes: a plain struct per op, described by a table so that graphs can be saved ---- */

typedef struct sn__ints {
  int64_t count;
  int64_t v[SN_MAX_RANK];
} sn__ints;

typedef enum sn__attr_kind {
  SN_ATTR_INT,   /* int64_t */
  SN_ATTR_FLOAT, /* double */
  SN_ATTR_INTS   /* sn__ints */
} sn__attr_kind;

typedef struct sn__attr_def {
  const char *name;
  sn__attr_kind kind;
  size_t offset;
  bool added; /* younger than its op: files leave it out where it is 0, so that a graph without it
                 is written as ever and a reader that does not know it refuses only what needs it */
} sn__attr_def;

/* ---- types and shape rules ---- */

typedef struct sn__type {
  sn_dtype dtype; /* SN_DTYPE_NONE: an optional input that is absent */
  sn_shape shape;
} sn__type;

typedef struct sn_op_def sn_op_def;

typedef struct sn__infer {
  const sn_graph *graph; /* for sn_shape_text in messages */
  const sn_op_def *op;
  const void *attrs;
  const sn__type *in;
  int n_in;
  sn__type out[SN_MAX_OUTPUTS]; /* to fill */
  int n_out;                    /* starts as op->n_outputs */
} sn__infer;

/* ---- differentiation ---- */

typedef struct sn__grad {
  sn_graph
      *graph; /* the training graph being extended; builders called on it make backward nodes */
  const void *attrs;  /* of the forward node */
  const sn_value *in; /* the forward node's inputs (invalid where absent) */
  int n_in;
  const sn_value *out;  /* its outputs */
  const sn_value *dout; /* gradient of each output; invalid where none flows (treat as zero) */
  const bool *need;     /* need[i]: the gradient of input i is wanted */
  sn_value *din;        /* to fill: gradient of each input; leave invalid where not needed */
} sn__grad;

/* ---- cost ---- */

typedef struct sn__tensor {
  void *data; /* NULL for an absent optional input, and in cost queries */
  sn_dtype dtype;
  sn_shape shape; /* fixed */
} sn__tensor;

typedef struct sn__cost {
  double flops;
  double bytes;      /* read plus written, each tensor once */
  double bf16_flops; /* of `flops`: products of bf16 */
} sn__cost;

/* ---- running ---- */

/* What is the same for every node of a step. */
typedef struct sn__step {
  uint64_t seed;
  int64_t step;     /* of the optimizer, from 0 */
  int64_t row_base; /* number of this (micro-)batch's first row in the global batch */
  int64_t rows;     /* extents[SN_SYMBOL_BATCH] */
  bool training;    /* dropout drops, batch norm uses the batch's statistics */
  const int64_t *extents;
} sn__step;

typedef struct sn__exec {
  const sn_op_def *op;
  const void *attrs;
  const sn__tensor *in;
  int n_in;
  const sn__tensor *out; /* data written by the kernel */
  int n_out;
  void *workspace; /* 64-byte aligned, op->workspace() bytes at least; contents undefined */
  size_t workspace_size;
  sn__team *team; /* may be NULL: one thread */
  void *stream; /* of the device's queue, for kernels that are enqueued (sn__launch); may be NULL */
  const sn__step *step;
  uint64_t rng_key; /* of the forward node: seed-independent hash of module path and op ordinal */
} sn__exec;

typedef enum sn__op_flags {
  SN_OP_VIEW = 1 << 0,     /* output 0 is input 0's bytes under another shape; never run */
  SN_OP_RANDOM = 1 << 1,   /* reads rng_key and step */
  SN_OP_COMMIT = 1 << 2,   /* writes variables: output o is the storage of input commits[o] */
  SN_OP_COPY = 1 << 3,     /* the one op whose input and output are on two devices */
  SN_OP_NO_GRAD = 1 << 4,  /* outputs carry no gradient (comparisons, indices) */
  SN_OP_GRAD = 1 << 5,     /* made by differentiation only; has no gradient of its own */
  SN_OP_ALL_PARTS = 1 << 6 /* in a graph of micro-batches it is there once: it takes what each of
                              them brings, in order, and all of them read what it gives */
} sn__op_flags;

struct sn_op_def {
  const char *name; /* as in ops.def; also the ONNX-free name in checkpoints */
  int version;      /* raised when the meaning changes; stored with graphs */
  int min_inputs;
  int max_inputs; /* -1: any number */
  int n_outputs;
  unsigned flags; /* sn__op_flags */
  const sn__attr_def *attrs;
  int n_attrs;
  size_t attrs_size;
  /* Checks inputs and fills out[]; a mistake is a plain-language status from sn__infer_fail(). */
  sn_status (*infer)(sn__infer *c);
  /* Builds gradient nodes with the public builders; fills din. NULL only with NO_GRAD or GRAD. */
  sn_status (*grad)(const sn__grad *c);
  /* Which forward inputs and outputs grad() reads (bit i); everything else may die early. Checked.
   */
  uint32_t saved_inputs;
  uint32_t saved_outputs;
  /* Output o may overwrite input inplace[o] - 1 (0: none); same byte size required. */
  int8_t inplace[SN_MAX_OUTPUTS];
  /* With SN_OP_COMMIT: output o is the storage of input commits[o] - 1 (0: an ordinary output). */
  int8_t commits[SN_MAX_OUTPUTS];
  /* With SN_OP_COMMIT, of a node made before there is an optimizer: input control - 1 is absent
   * until the optimizer's pass puts the step's control there (ops/update.h), which says whether to
   * write at all, and the node behind it (0: it writes whatever comes). */
  int8_t control;
  /* Shapes are fixed; data is NULL. Must grow with every extent. NULL: bytes moved, no flops. */
  void (*cost)(const sn__exec *shapes, sn__cost *out);
  /* Bytes of workspace; must grow with every extent. */
  size_t (*workspace)(const sn__exec *shapes);
  sn__kernel_fn cpu; /* other kinds of device have tables of their own (core/device/device.h) */
  const char *doc;   /* one line: what it computes */
};

/* The table, by ops.def order; defined in ops/. */
extern const sn_op_def *const sn__op_table[];
extern const int sn__op_count;

SN_BEGIN_DECLS
SN_API const sn_op_def *sn__op_find(const char *name); /* NULL when unknown */

/* A shape rule's complaint; the graph adds op, path, and each input's name and shape. */
SN_API SN_MUST_USE sn_status sn__infer_fail(const sn__infer *c, const char *format, ...)
    SN_PRINTF(2, 3);

/* Adds a node; attrs (op->attrs_size bytes, or NULL for zeros) are copied; optional inputs are
 * invalid values. Writes its op->n_outputs output values to out (may be NULL when one output is
 * returned). Returns output 0, or the invalid value after recording the mistake. `name` NULL: the
 * op's name. Inside a gradient callback, makes backward nodes of the forward node's module. */
SN_API sn_value sn__node_add(sn_graph *graph, const sn_op_def *op, const void *attrs,
                             const sn_value *inputs, size_t n_inputs, const char *name,
                             sn_value *out);
SN_END_DECLS

#endif
