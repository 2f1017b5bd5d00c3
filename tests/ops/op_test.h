/* SPDX-License-Identifier: Apache-2.0 */
/* Runs graphs op by op on the host, without devices, for tests of ops.
 *
 * A case is a function that builds a forward graph with these helpers. It is built anew for f64
 * (gradients against central differences) and for f32 (bits over threads, in-place runs), and once
 * with every symbolic extent 0. Every buffer has sentinels before and behind it and starts as
 * garbage; a write outside fails the test, naming node and output. Use symbolic dimensions
 * (SN_DIM_BATCH) where the op allows them, so that the zero-size run says something. */
#ifndef SN_TESTS_OPS_OP_TEST_H
#define SN_TESTS_OPS_OP_TEST_H

#include "core/graph_impl.h"
#include "ops/ops.h"

enum { OP_TEST_SYMBOLS = 16, OP_TEST_PARAMS = 16, OP_TEST_FEEDS = 64 };

typedef struct op_test {
  sn_graph *graph;
  sn_dtype dtype;                   /* of parameters: SN_F64 or SN_F32 */
  bool empty;                       /* every symbolic extent is 0 */
  int64_t extents[OP_TEST_SYMBOLS]; /* [SN_SYMBOL_BATCH] starts as 5 */
  uint64_t draws;
  int n_params;
  struct {
    uint32_t input; /* what is wiggled */
    uint32_t value; /* whose gradient is compared */
  } params[OP_TEST_PARAMS];
  int n_feeds;
  struct {
    uint32_t value;
    void *data;
    size_t bytes;
  } feeds[OP_TEST_FEEDS];
  sn_value loss_sum;
} op_test;

/* ---- building ---- */

/* A tensor of t->dtype that gradients are checked for, uniform in [low, high). */
sn_value op_param(op_test *t, sn_shape shape, double low, double high);
/* The same holding the given numbers; `n` of them when not empty. */
sn_value op_param_of(op_test *t, sn_shape shape, const double *numbers, size_t n);
/* A fed tensor of any type without a check, holding the given numbers (converted); NULL: zeros. */
sn_value op_data(op_test *t, sn_dtype dtype, sn_shape shape, const double *numbers, size_t n);
/* A fed tensor of t->dtype without a check, uniform in [low, high). */
sn_value op_noise(op_test *t, sn_shape shape, double low, double high);
/* A ragged input of t->dtype with rows of these lengths: sets batch, elements and longest, feeds
 * the offsets; values are a checked parameter in [low, high). */
sn_sequence op_sequence(op_test *t, int64_t features, const int64_t *lengths, size_t rows,
                        double low, double high);
/* Adds sum(y * r), r random, to what is differentiated. y is f32 or f64. */
void op_out(op_test *t, sn_value y);
/* Without a gradient: y is compared between runs only. */
void op_out_plain(op_test *t, sn_value y);

/* ---- running ---- */

typedef enum op_run_flags {
  OP_RUN_INPLACE = 1 /* outputs are the storage of inputs wherever the table allows it */
} op_run_flags;

typedef struct op_values {
  void **data; /* by value index; NULL where absent */
  size_t *bytes;
  void **blocks;
  size_t n;
} op_values;

/* Runs every node of `graph` (t->graph or its training graph) with t's feeds; variables are 0
 * unless fed by op_feed(); seeds are 1. Free the values with op_values_free, also on failure. */
SN_MUST_USE sn_status op_run(const op_test *t, const sn_graph *graph, sn__team *team,
                             unsigned flags, op_values *out);
void op_values_free(op_values *v);
/* Borrowed bytes fed to an input or variable; copied. */
void op_feed(op_test *t, sn_value value, const void *data, size_t bytes);
void op_test_init(op_test *t, sn_dtype dtype, bool empty);
void op_test_free(op_test *t);
/* The number at element i of a float value. */
double op_number(const sn_graph *g, const op_values *v, sn_value value, int64_t i);

/* Adds `sum`, a scalar, as the loss, differentiates and runs; ends the Check test on failure. Free
 * both. */
void op_differentiate(op_test *t, sn_value sum, sn_graph **out_train, op_values *out);
/* sum(y * r) */
sn_value op_weighted_sum(op_test *t, sn_value y, sn_value r);
/* The gradient by a value of t->graph. */
sn_value op_gradient(const sn_graph *train, sn_value value);

/* A graph that some shape rule refuses, and words that the complaint has. */
typedef struct op_mistake {
  void (*build)(op_test *t);
  const char *words;
} op_mistake;
void op_check_mistake(const op_mistake *m);

/* ---- whole checks, each ends the Check test on failure ---- */

typedef struct op_case {
  const char *ops;  /* names in ops.def whose gradient this case stands for, separated by spaces */
  const char *name; /* what is special about it */
  void (*build)(op_test *t);
  double tolerance; /* of gradients, relative to the largest; 0 means 1e-6 */
} op_case;

void op_check_gradient(const op_case *c);
void op_check_threads(const op_case *c, sn_dtype dtype);
void op_check_inplace(const op_case *c);
void op_check_empty(const op_case *c);

/* Tables end with a case whose `ops` is NULL. A new table is one line here and in test_ops.c. */
extern const op_case op_cases_basic[];
extern const op_case op_cases_rows[];
extern const op_case op_cases_images[];

#endif
