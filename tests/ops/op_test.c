/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ops/op_test.h"

#include <math.h>
#include <stdio.h>
#include "core/autodiff.h"
#include "core/rng.h"
#include "ops/common.h"
#include "tests/check_sn.h"

enum { SENTINEL = 64, GARBAGE = 0xA5 };

/* ---- building ------------------------------------------------------------------------------- */

void op_test_init(op_test *t, sn_dtype dtype, bool empty) {
  memset(t, 0, sizeof *t);
  t->dtype = dtype;
  t->empty = empty;
  t->extents[SN_SYMBOL_BATCH] = empty ? 0 : 5;
  ck_sn_ok(sn_graph_create(&t->graph));
  t->loss_sum = sn__value_at(t->graph, 0);
}

void op_test_free(op_test *t) {
  for (int i = 0; i < t->n_feeds; i++)
    free(t->feeds[i].data);
  sn_graph_free(t->graph);
}

void op_feed(op_test *t, sn_value value, const void *data, size_t bytes) {
  ck_assert_int_lt(t->n_feeds, OP_TEST_FEEDS);
  void *copy = malloc(bytes + 1);
  if (bytes > 0) memcpy(copy, data, bytes);
  t->feeds[t->n_feeds].value = value.index;
  t->feeds[t->n_feeds].data = copy;
  t->feeds[t->n_feeds++].bytes = bytes;
}

static void put(sn_dtype dtype, void *to, int64_t i, double x) {
  switch (dtype) {
  case SN_F32: ((float *)to)[i] = (float)x; break;
  case SN_F64: ((double *)to)[i] = x; break;
  case SN_I32: ((int32_t *)to)[i] = (int32_t)x; break;
  case SN_I64: ((int64_t *)to)[i] = (int64_t)x; break;
  case SN_BF16: ((uint16_t *)to)[i] = (uint16_t)x; break; /* the bits */
  case SN_U8:
  case SN_BOOL: ((uint8_t *)to)[i] = (uint8_t)x; break;
  default: ck_abort_msg("no numbers of type %s", sn_dtype_name(dtype));
  }
}

static double draw(op_test *t, double low, double high) {
  uint64_t bits = sn__mix64(t->draws++ * 2654435761u + 12345);
  return low + (high - low) * (double)(bits >> 11) * 0x1p-53;
}

static int64_t count_of(const op_test *t, sn_shape shape) {
  sn_shape fixed = sn__shape_resolve(&shape, t->extents);
  return sn__shape_size(&fixed);
}

static void feed_numbers(op_test *t, sn_value v, sn_dtype dtype, sn_shape shape,
                         const double *numbers, size_t n, double low, double high) {
  int64_t count = count_of(t, shape);
  size_t bytes = (size_t)count * sn_dtype_size(dtype);
  void *data = calloc(1, bytes + 8);
  if (numbers != NULL && !t->empty) ck_assert_int_eq(count, (int64_t)n);
  for (int64_t i = 0; i < count; i++)
    put(dtype, data, i,
        numbers != NULL ? numbers[(size_t)i % n] : (low < high ? draw(t, low, high) : 0));
  op_feed(t, v, data, bytes);
  free(data);
}

/* What is differentiated is input + variable: the gradient at the sum is that of the input, and an
 * input may have any shape while a variable may not. */
static sn_value watch(op_test *t, sn_value input) {
  char name[32];
  snprintf(name, sizeof name, "watch%d", t->n_params);
  sn_value zero = sn_variable(t->graph, name, t->dtype, SN_SHAPE(1));
  sn_value sum = sn_value_shape(input).rank == 0
                     ? sn_add(t->graph, input, sn__sum_to_shape(t->graph, zero, SN_SCALAR_SHAPE))
                     : sn_add(t->graph, input, zero);
  ck_assert_int_lt(t->n_params, OP_TEST_PARAMS);
  t->params[t->n_params].input = input.index;
  t->params[t->n_params++].value = sum.index;
  return sum;
}

static sn_value fed(op_test *t, sn_dtype dtype, sn_shape shape, const double *numbers, size_t n,
                    double low, double high) {
  char name[32];
  snprintf(name, sizeof name, "fed%d", t->n_feeds);
  sn_value v = sn__role_input(t->graph, name, dtype, shape, SN_INPUT_DATA);
  ck_sn_ok(sn_graph_status(t->graph));
  feed_numbers(t, v, dtype, shape, numbers, n, low, high);
  return v;
}

sn_value op_param(op_test *t, sn_shape shape, double low, double high) {
  return watch(t, fed(t, t->dtype, shape, NULL, 0, low, high));
}

sn_value op_param_of(op_test *t, sn_shape shape, const double *numbers, size_t n) {
  return watch(t, fed(t, t->dtype, shape, numbers, n, 0, 0));
}

sn_value op_data(op_test *t, sn_dtype dtype, sn_shape shape, const double *numbers, size_t n) {
  return fed(t, dtype, shape, numbers, n, 0, 0);
}

sn_value op_noise(op_test *t, sn_shape shape, double low, double high) {
  return fed(t, t->dtype, shape, NULL, 0, low, high);
}

sn_sequence op_sequence(op_test *t, int64_t features, const int64_t *lengths, size_t rows,
                        double low, double high) {
  char name[32];
  snprintf(name, sizeof name, "ragged%d", t->n_feeds);
  sn_sequence s = sn_sequence_input(t->graph, name, t->dtype, features);
  ck_sn_ok(sn_graph_status(t->graph));
  const sn__ragged *r = &t->graph->raggeds[sn__offsets_ragged(t->graph, s.offsets)];
  ck_assert_uint_lt(r->longest_symbol, OP_TEST_SYMBOLS);
  if (t->empty) rows = 0;
  int32_t *offsets = calloc(rows + 1, sizeof *offsets);
  int64_t longest = 0;
  for (size_t i = 0; i < rows; i++) {
    offsets[i + 1] = offsets[i] + (int32_t)lengths[i];
    longest = lengths[i] > longest ? lengths[i] : longest;
  }
  t->extents[SN_SYMBOL_BATCH] = (int64_t)rows;
  t->extents[r->elements_symbol] = offsets[rows];
  t->extents[r->longest_symbol] = longest;
  op_feed(t, s.offsets, offsets, (rows + 1) * sizeof *offsets);
  free(offsets);
  feed_numbers(t, s.values, t->dtype, sn_value_shape(s.values), NULL, 0, low, high);
  s.values = watch(t, s.values);
  return s;
}

void op_out(op_test *t, sn_value y) {
  ck_sn_ok(sn_graph_status(t->graph));
  sn_value r = fed(t, sn_value_dtype(y), sn_value_shape(y), NULL, 0, 0.5, 1.5);
  sn_value sum = sn__sum_to_shape(t->graph, sn_mul(t->graph, y, r), SN_SCALAR_SHAPE);
  t->loss_sum = sn_value_ok(t->loss_sum) ? sn_add(t->graph, t->loss_sum, sum) : sum;
}

void op_out_plain(op_test *t, sn_value y) {
  ck_sn_ok(sn_graph_status(t->graph));
  ck_assert(sn_value_ok(y));
}

/* ---- running -------------------------------------------------------------------------------- */

static void *block_new(op_values *v, uint32_t index, size_t bytes) {
  char *block = NULL;
  ck_assert_int_eq(posix_memalign((void **)&block, 64, SENTINEL + bytes + SENTINEL), 0);
  memset(block, GARBAGE, SENTINEL + bytes + SENTINEL);
  v->blocks[index] = block;
  v->data[index] = block + SENTINEL;
  v->bytes[index] = bytes;
  return block + SENTINEL;
}

static bool block_whole(const void *block, size_t bytes) {
  const unsigned char *b = block;
  for (size_t i = 0; i < SENTINEL; i++)
    if (b[i] != GARBAGE || b[SENTINEL + bytes + i] != GARBAGE) return false;
  return true;
}

void op_values_free(op_values *v) {
  for (size_t i = 0; i < v->n; i++)
    free(v->blocks[i]);
  free(v->data);
  free(v->bytes);
  free(v->blocks);
  memset(v, 0, sizeof *v);
}

static void run_source(const op_test *t, const sn_graph *g, uint32_t index, op_values *v) {
  const sn__value *info = &g->values[index];
  sn_shape shape = sn__shape_resolve(&info->shape, t->extents);
  size_t bytes = (size_t)sn__shape_size(&shape) * sn_dtype_size(info->dtype);
  void *to = block_new(v, index, bytes);
  memset(to, 0, bytes);
  if (info->kind == SN_VALUE_CONSTANT) memcpy(to, g->constants[info->extra].data, bytes);
  if (info->kind == SN_VALUE_INPUT && g->inputs[info->extra].role == SN_INPUT_SEED)
    put(info->dtype, to, 0, 1.0);
  for (int i = 0; i < t->n_feeds; i++)
    if (t->feeds[i].value == index) {
      ck_assert_msg(t->feeds[i].bytes == bytes, "'%s' is fed %zu bytes and has %zu", info->name,
                    t->feeds[i].bytes, bytes);
      memcpy(to, t->feeds[i].data, bytes);
    }
}

static sn__tensor tensor_of(const op_test *t, const sn_graph *g, const op_values *v,
                            uint32_t index) {
  if (index == 0) return (sn__tensor){.dtype = SN_DTYPE_NONE};
  const sn__value *info = &g->values[index];
  return (sn__tensor){v->data[index], info->dtype, sn__shape_resolve(&info->shape, t->extents)};
}

/* Where output o goes: a block of its own, or an input's storage. */
static void place_output(const sn__node *n, uint32_t o, size_t bytes, unsigned flags,
                         sn__tensor *in, op_values *v) {
  uint32_t index = n->out[o];
  int from = (n->op->flags & SN_OP_COMMIT) != 0 ? n->op->commits[o] - 1 : -1;
  if (from >= 0) {
    v->data[index] = in[from].data;
    v->bytes[index] = bytes;
    return;
  }
  void *to = block_new(v, index, bytes);
  from = (flags & OP_RUN_INPLACE) != 0 ? n->op->inplace[o] - 1 : -1;
  if (from < 0 || from >= (int)n->n_in || n->in[from] == 0 || v->bytes[n->in[from]] != bytes)
    return;
  for (uint32_t i = 0; i < n->n_in; i++)
    if ((int)i != from && n->in[i] == n->in[from]) return; /* it is read elsewhere, too */
  memcpy(to, in[from].data, bytes);
  in[from].data = to;
}

static sn_status run_node(const op_test *t, const sn_graph *g, const sn__node *n, sn__team *team,
                          unsigned flags, op_values *v) {
  sn__tensor *in = calloc(n->n_in + 1, sizeof *in), out[SN_MAX_OUTPUTS];
  for (uint32_t i = 0; i < n->n_in; i++)
    in[i] = tensor_of(t, g, v, n->in[i]);
  for (uint32_t o = 0; o < n->n_out; o++) {
    out[o] = tensor_of(t, g, v, n->out[o]);
    size_t bytes = (size_t)sn__shape_size(&out[o].shape) * sn_dtype_size(out[o].dtype);
    place_output(n, o, bytes, flags, in, v);
    out[o].data = v->data[n->out[o]];
  }
  sn__step step = {.seed = 7,
                   .step = 3,
                   .rows = t->extents[SN_SYMBOL_BATCH],
                   .training = true,
                   .extents = t->extents};
  sn__exec e = {.op = n->op,
                .attrs = n->attrs,
                .in = in,
                .n_in = (int)n->n_in,
                .out = out,
                .n_out = (int)n->n_out,
                .team = team,
                .step = &step,
                .rng_key = n->rng_key};
  size_t need = n->op->workspace == NULL ? 0 : n->op->workspace(&e);
  char *work = NULL;
  ck_assert_int_eq(posix_memalign((void **)&work, 64, SENTINEL + need + SENTINEL), 0);
  memset(work, GARBAGE, SENTINEL + need + SENTINEL);
  e.workspace = work + SENTINEL;
  e.workspace_size = need;
  sn_status status = SN_OK;
  if ((n->op->flags & SN_OP_VIEW) != 0) {
    if (v->bytes[n->out[0]] > 0) memcpy(out[0].data, in[0].data, v->bytes[n->out[0]]);
  } else {
    ck_assert_msg(n->op->cpu != NULL, "op %s has no cpu kernel", n->op->name);
    status = n->op->cpu(&e);
  }
  ck_assert_msg(block_whole(work, need), "%s wrote outside its workspace of %zu bytes", n->name,
                need);
  for (uint32_t o = 0; o < n->n_out; o++)
    if (v->blocks[n->out[o]] != NULL)
      ck_assert_msg(block_whole(v->blocks[n->out[o]], v->bytes[n->out[o]]),
                    "%s wrote outside output %u", n->name, o);
  if (n->op->cost != NULL) {
    sn__cost cost = {.flops = -1, .bytes = -1};
    n->op->cost(&e, &cost);
    ck_assert_msg(cost.bf16_flops >= 0 && cost.flops >= cost.bf16_flops && cost.bytes >= 0,
                  "%s: cost %g (%g of it bf16) %g", n->name, cost.flops, cost.bf16_flops,
                  cost.bytes);
  }
  free(work);
  free(in);
  return status;
}

sn_status op_run(const op_test *t, const sn_graph *g, sn__team *team, unsigned flags,
                 op_values *v) {
  v->n = g->n_values;
  v->data = calloc(v->n + 1, sizeof *v->data);
  v->bytes = calloc(v->n + 1, sizeof *v->bytes);
  v->blocks = calloc(v->n + 1, sizeof *v->blocks);
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (sn__node_is_source(n))
      run_source(t, g, n->out[0], v);
    else
      SN_TRY(run_node(t, g, n, team, flags, v));
  }
  for (size_t i = 1; i < v->n; i++)
    if (v->blocks[i] != NULL)
      ck_assert_msg(block_whole(v->blocks[i], v->bytes[i]), "something wrote outside '%s'",
                    g->values[i].name);
  return SN_OK;
}

double op_number(const sn_graph *g, const op_values *v, sn_value value, int64_t i) {
  const void *data = v->data[value.index];
  switch (g->values[value.index].dtype) {
  case SN_F32: return (double)((const float *)data)[i];
  case SN_F64: return ((const double *)data)[i];
  case SN_I32: return (double)((const int32_t *)data)[i];
  case SN_I64: return (double)((const int64_t *)data)[i];
  default: return (double)((const uint8_t *)data)[i];
  }
}

/* ---- parts of checks ------------------------------------------------------------------------ */

void op_differentiate(op_test *t, sn_value sum, sn_graph **out_train, op_values *out) {
  sn__graph_add_loss(t->graph, NULL, sum, sn__value_at(t->graph, 0), SN_SYMBOL_BATCH, 1);
  ck_sn_ok(sn_graph_status(t->graph));
  ck_sn_ok(sn__differentiate(t->graph, out_train));
  ck_sn_ok(op_run(t, *out_train, NULL, 0, out));
}

sn_value op_weighted_sum(op_test *t, sn_value y, sn_value r) {
  return sn__sum_to_shape(t->graph, sn_mul(t->graph, y, r), SN_SCALAR_SHAPE);
}

sn_value op_gradient(const sn_graph *train, sn_value value) {
  return sn__gradient_of(train, sn__value_at(train, value.index));
}

void op_check_mistake(const op_mistake *m) {
  op_test t;
  op_test_init(&t, SN_F32, false);
  m->build(&t);
  ck_sn_fails(sn_graph_status(t.graph), SN_CODE_INVALID, m->words);
  op_test_free(&t);
}

/* ---- whole checks --------------------------------------------------------------------------- */

/* Builds the case and, where something is to be differentiated, its training graph. */
static void case_build(const op_case *c, sn_dtype dtype, bool empty, op_test *t, sn_graph **train) {
  op_test_init(t, dtype, empty);
  c->build(t);
  *train = NULL;
  if (sn_value_ok(t->loss_sum))
    sn__graph_add_loss(t->graph, NULL, t->loss_sum, sn__value_at(t->graph, 0), SN_SYMBOL_BATCH, 1);
  sn_status status = sn_graph_status(t->graph);
  ck_assert_msg(status == SN_OK, "%s (%s): %s", c->ops, c->name, sn_status_message(status));
  status = t->graph->n_losses > 0 ? sn__differentiate(t->graph, train)
                                  : sn__graph_clone(t->graph, train);
  ck_assert_msg(status == SN_OK, "%s (%s): %s", c->ops, c->name, sn_status_message(status));
}

static void run_ok(const op_case *c, const op_test *t, const sn_graph *g, sn__team *team,
                   unsigned flags, op_values *out) {
  sn_status status = op_run(t, g, team, flags, out);
  ck_assert_msg(status == SN_OK, "%s (%s): %s", c->ops, c->name, sn_status_message(status));
}

static double total_loss(const op_case *c, const op_test *t) {
  op_values v;
  run_ok(c, t, t->graph, NULL, 0, &v);
  double sum = 0;
  for (size_t i = 0; i < t->graph->n_losses; i++)
    sum += op_number(t->graph, &v, sn__value_at(t->graph, t->graph->losses[i].sum), 0);
  op_values_free(&v);
  return sum;
}

static int feed_of(const op_test *t, uint32_t input) {
  for (int i = 0; i < t->n_feeds; i++)
    if (t->feeds[i].value == input) return i;
  ck_abort_msg("parameter without numbers");
  return -1;
}

/* f64: with a step of 1e-5 the cut-off error is about 1e-10 and the rounding error 1e-11. */
static double check_param(const op_case *c, op_test *t, const sn_graph *train, const op_values *v,
                          int p) {
  const double step = 1e-5;
  sn_value at = sn__value_at(train, t->params[p].value), gradient = sn__gradient_of(train, at);
  int feed = feed_of(t, t->params[p].input);
  double *x = t->feeds[feed].data;
  int64_t n = (int64_t)(t->feeds[feed].bytes / sizeof *x);
  double worst = 0, largest = 1;
  for (int64_t i = 0; i < n; i++) {
    double kept = x[i];
    x[i] = kept + step;
    double up = total_loss(c, t);
    x[i] = kept - step;
    double down = total_loss(c, t);
    x[i] = kept;
    double want = (up - down) / (2 * step);
    double got = sn_value_ok(gradient) ? op_number(train, v, gradient, i) : 0;
    ck_assert_msg(isfinite(got), "%s (%s): gradient %lld of parameter %d is %g", c->ops, c->name,
                  (long long)i, p, got);
    worst = fmax(worst, fabs(got - want));
    largest = fmax(largest, fabs(want));
  }
  double tolerance = c->tolerance > 0 ? c->tolerance : 1e-6;
  ck_assert_msg(worst <= tolerance * largest,
                "%s (%s): the gradient of parameter %d is off by %.3g of %.3g", c->ops, c->name, p,
                worst, largest);
  return worst / largest;
}

void op_check_gradient(const op_case *c) {
  op_test t;
  sn_graph *train;
  op_values v;
  case_build(c, SN_F64, false, &t, &train);
  if (t.graph->n_losses > 0) {
    run_ok(c, &t, train, NULL, 0, &v);
    for (int p = 0; p < t.n_params; p++)
      check_param(c, &t, train, &v, p);
    op_values_free(&v);
  }
  sn_graph_free(train);
  op_test_free(&t);
}

static void same_values(const op_case *c, const sn_graph *g, const op_values *a, const op_values *b,
                        const char *what) {
  for (size_t i = 1; i < g->n_values; i++) {
    if (a->data[i] == NULL || b->data[i] == NULL) continue;
    ck_assert_msg(memcmp(a->data[i], b->data[i], a->bytes[i]) == 0, "%s (%s): '%s' differs %s",
                  c->ops, c->name, g->values[i].name, what);
  }
}

void op_check_threads(const op_case *c, sn_dtype dtype) {
  op_test t;
  sn_graph *train;
  case_build(c, dtype, false, &t, &train);
  op_values one;
  run_ok(c, &t, train, NULL, 0, &one);
  for (int threads = 2; threads <= 3; threads++) {
    sn__team *team;
    ck_sn_ok(sn__team_create(threads, &team));
    op_values more;
    run_ok(c, &t, train, team, 0, &more);
    same_values(c, train, &one, &more, "with more threads");
    op_values_free(&more);
    sn__team_free(team);
  }
  op_values_free(&one);
  sn_graph_free(train);
  op_test_free(&t);
}

void op_check_inplace(const op_case *c) {
  op_test t;
  sn_graph *train;
  case_build(c, SN_F32, false, &t, &train);
  op_values apart, over;
  run_ok(c, &t, train, NULL, 0, &apart);
  run_ok(c, &t, train, NULL, OP_RUN_INPLACE, &over);
  same_values(c, train, &apart, &over, "when run in place");
  op_values_free(&apart);
  op_values_free(&over);
  sn_graph_free(train);
  op_test_free(&t);
}

void op_check_empty(const op_case *c) {
  op_test t;
  sn_graph *train;
  op_values v;
  case_build(c, SN_F32, true, &t, &train);
  run_ok(c, &t, train, NULL, 0, &v);
  for (size_t i = 1; i < train->n_values; i++) {
    if (train->values[i].dtype != SN_F32) continue;
    for (size_t k = 0; k < v.bytes[i] / sizeof(float); k++)
      ck_assert_msg(isfinite(((const float *)v.data[i])[k]), "%s (%s): '%s' is %g with no rows",
                    c->ops, c->name, train->values[i].name, (double)((const float *)v.data[i])[k]);
  }
  op_values_free(&v);
  sn_graph_free(train);
  op_test_free(&t);
}
