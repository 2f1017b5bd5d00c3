/* SPDX-License-Identifier: Apache-2.0 */
/* Small ops for the tests of schedules, memory plans and sessions, an interpreter that runs a graph
 * of them without any of these, and random placed graphs with copies in them. */
#ifndef SN_TESTS_RUN_OPS_H
#define SN_TESTS_RUN_OPS_H

#include <math.h>
#include <stdio.h>

#include "core/graph_impl.h"
#include "core/rng.h"
#include "core/run/race.h"
#include "core/run/run_impl.h"
#include "core/run/session.h"
#include "tests/check_sn.h"

/* ---- ops ----------------------------------------------------------------------------------- */

static const float *in_data(const sn__exec *e, int i) {
  return e->in[i].data;
}
static float *out_data(const sn__exec *e, int o) {
  return e->out[o].data;
}
static int64_t count_of(const sn__tensor *t) {
  return sn__shape_size(&t->shape);
}

static sn_status like_first(sn__infer *c) {
  for (int o = 0; o < c->n_out; o++)
    c->out[o] = c->in[0];
  return SN_OK;
}

/* No gradient, version 1; what else a row says comes last. */
#define RUN_OP(op, least, most, outputs, rule, words, ...)                                         \
  static const sn_op_def op_##op = {.name = #op,                                                   \
                                    .version = 1,                                                  \
                                    .min_inputs = least,                                           \
                                    .max_inputs = most,                                            \
                                    .n_outputs = outputs,                                          \
                                    .infer = rule,                                                 \
                                    .doc = words,                                                  \
                                    __VA_ARGS__};

/* out = tanh of the sum of all inputs, each as a ring; may overwrite input 0; has a workspace. */
static sn_status mix_cpu(const sn__exec *e) {
  float *sums = e->workspace;
  int64_t n = count_of(&e->out[0]);
  for (int64_t i = 0; i < n; i++) {
    float sum = 0.1f;
    for (int k = 0; k < e->n_in; k++) {
      int64_t m = count_of(&e->in[k]);
      if (m > 0) sum += in_data(e, k)[i % m] * (1.0f / (float)(k + 1));
    }
    sums[i] = sum;
  }
  for (int64_t i = 0; i < n; i++)
    out_data(e, 0)[i] = tanhf(sums[i]);
  return SN_OK;
}
static size_t mix_workspace(const sn__exec *e) {
  return (size_t)count_of(&e->out[0]) * sizeof(float);
}
RUN_OP(mix, 1, -1, 1, like_first, "tanh of a sum", .inplace = {1}, .workspace = mix_workspace,
       .cpu = mix_cpu, .flags = SN_OP_NO_GRAD)

/* Two outputs; the second may overwrite input 0. */
static sn_status pair_cpu(const sn__exec *e) {
  int64_t n = count_of(&e->out[0]);
  for (int64_t i = 0; i < n; i++) {
    float x = in_data(e, 0)[i];
    out_data(e, 0)[i] = x * 0.5f;
    out_data(e, 1)[i] = x - 1.0f;
  }
  return SN_OK;
}
RUN_OP(pair, 1, 1, 2, like_first, "half of it, and it minus one", .inplace = {0, 1},
       .cpu = pair_cpu, .flags = SN_OP_NO_GRAD)

RUN_OP(view, 1, 1, 1, like_first, "the same bytes", .flags = SN_OP_NO_GRAD | SN_OP_VIEW)

static sn_status copy_cpu(const sn__exec *e) {
  memcpy(e->out[0].data, e->in[0].data, (size_t)count_of(&e->out[0]) * sizeof(float));
  return SN_OK;
}
RUN_OP(copy, 1, 1, 1, like_first, "to another device", .flags = SN_OP_NO_GRAD | SN_OP_COPY,
       .cpu = copy_cpu)

/* variable -= gradient / 10, in place. */
static sn_status assign_cpu(const sn__exec *e) {
  int64_t n = count_of(&e->out[0]), m = count_of(&e->in[1]);
  for (int64_t i = 0; i < n; i++)
    out_data(e, 0)[i] = in_data(e, 0)[i] - 0.1f * (m > 0 ? in_data(e, 1)[i % m] : 0.0f);
  return SN_OK;
}
RUN_OP(assign, 2, 2, 1, like_first, "writes a variable", .flags = SN_OP_NO_GRAD | SN_OP_COMMIT,
       .commits = {1}, .cpu = assign_cpu)

/* Sum of all elements, times the sum of the ints of input 1 when there are any: to see offsets. */
static sn_status total_infer(sn__infer *c) {
  c->out[0] = (sn__type){SN_F32, {0, {0}}};
  return SN_OK;
}
static sn_status total_cpu(const sn__exec *e) {
  float sum = 0;
  for (int64_t i = 0; i < count_of(&e->in[0]); i++)
    sum += in_data(e, 0)[i];
  if (e->n_in > 1 && e->in[1].dtype == SN_I32)
    for (int64_t i = 0; i < count_of(&e->in[1]); i++)
      sum += 1000.0f * (float)((const int32_t *)e->in[1].data)[i];
  if (e->n_in > 1 && e->in[1].dtype == SN_F32) sum *= in_data(e, 1)[0];
  *out_data(e, 0) = sum;
  return SN_OK;
}
RUN_OP(total, 1, 2, 1, total_infer, "sum", .cpu = total_cpu, .flags = SN_OP_NO_GRAD)

static sn_status log_cpu(const sn__exec *e) {
  for (int64_t i = 0; i < count_of(&e->out[0]); i++)
    out_data(e, 0)[i] = logf(in_data(e, 0)[i]);
  return SN_OK;
}
RUN_OP(log, 1, 1, 1, like_first, "natural logarithm", .cpu = log_cpu, .flags = SN_OP_NO_GRAD)

/* 1 when all inputs are finite: u8. */
static sn_status finite_infer(sn__infer *c) {
  c->out[0] = (sn__type){SN_U8, {0, {0}}};
  return SN_OK;
}
static sn_status finite_cpu(const sn__exec *e) {
  uint8_t ok = 1;
  for (int k = 0; k < e->n_in; k++)
    for (int64_t i = 0; i < count_of(&e->in[k]); i++)
      ok = ok && isfinite(in_data(e, k)[i]);
  *(uint8_t *)e->out[0].data = ok;
  return SN_OK;
}
RUN_OP(finite, 1, -1, 1, finite_infer, "whether all is finite", .cpu = finite_cpu,
       .flags = SN_OP_NO_GRAD)

/* Fails when told to. */
static _Atomic int failing;
static sn_status fragile_cpu(const sn__exec *e) {
  if (failing) return sn_status_make(SN_CODE_DEVICE, "told to fail");
  memmove(e->out[0].data, e->in[0].data, (size_t)count_of(&e->out[0]) * sizeof(float));
  return SN_OK;
}
RUN_OP(fragile, 1, 1, 1, like_first, "fails when told to", .cpu = fragile_cpu,
       .flags = SN_OP_NO_GRAD)

/* Every test file that includes this is a program of its own, with this table. */
const sn_op_def *const sn__op_table[] = {&op_mix,   &op_pair, &op_view,   &op_copy,   &op_assign,
                                         &op_total, &op_log,  &op_finite, &op_fragile};
const int sn__op_count = sizeof sn__op_table / sizeof *sn__op_table;

/* ---- random placed graphs ------------------------------------------------------------------ */

typedef struct dice {
  uint64_t seed, count;
} dice;

static inline uint64_t roll(dice *d, uint64_t n) {
  return sn__rng_below(d->seed, 77, d->count++, n);
}

enum { MOST_DEVICES = 4, MOST_VALUES = 4096, MOST_VARIABLES = 8 };

typedef struct random_graph {
  sn_graph *g;
  int devices;
  sn_value values[MOST_VALUES]; /* may be read; not copies */
  int n_values;
  sn_value fetches[8];
  int n_fetches;
  uint32_t copies[MOST_VALUES * 4][MOST_DEVICES]; /* [value][device] */
} random_graph;

static inline int home_of(const sn_graph *g, sn_value v) {
  return g->nodes[g->values[v.index].node].device;
}

static void place_on(sn_graph *g, sn_value v, int device) {
  ck_assert_msg(sn_value_ok(v), "%s", sn_status_message(g->status));
  g->nodes[g->values[v.index].node].device = device;
}

/* The value on this device: itself or the one copy of it. */
static sn_value on_device(random_graph *r, sn_value v, int device) {
  if (home_of(r->g, v) == device) return v;
  uint32_t *copy = &r->copies[v.index][device];
  if (*copy == 0) {
    sn_value c = sn__node_add(r->g, &op_copy, NULL, &v, 1, NULL, NULL);
    place_on(r->g, c, device);
    *copy = c.index;
  }
  return sn__value_at(r->g, *copy);
}

static void add_random_node(random_graph *r, dice *d) {
  sn_value in[16];
  int device = (int)roll(d, (uint64_t)r->devices);
  /* Recent values more often, or everything lives for ever. */
  uint64_t kind = roll(d, 10);
  int fan_in = kind < 7 ? (roll(d, 4) == 0 ? 1 + (int)roll(d, 16) : 1 + (int)roll(d, 3)) : 1;
  for (int i = 0; i < fan_in; i++) {
    int recent = r->n_values < 12 || roll(d, 6) == 0 ? r->n_values : 12;
    sn_value v = r->values[r->n_values - 1 - (int)roll(d, (uint64_t)recent)];
    if (kind == 7) device = home_of(r->g, v);
    in[i] = on_device(r, v, device);
  }
  const sn_op_def *op = kind < 7 ? &op_mix : kind == 7 ? &op_view : &op_pair;
  sn_value out[SN_MAX_OUTPUTS];
  sn_value first = sn__node_add(r->g, op, NULL, in, (size_t)fan_in, NULL, out);
  place_on(r->g, first, device);
  for (int o = 0; o < op->n_outputs; o++)
    r->values[r->n_values++] = out[o];
}

/* `nodes` ops on `devices` devices; some variables, each committed; some fetches; inputs "x0"...
 * of [batch, features]. */
static inline random_graph *random_graph_make(uint64_t seed, int devices, int nodes) {
  random_graph *r = calloc(1, sizeof *r);
  dice d = {seed, 0};
  ck_sn_ok(sn_graph_create(&r->g));
  r->devices = devices;
  int inputs = 1 + (int)roll(&d, 3), variables = 1 + (int)roll(&d, MOST_VARIABLES - 1);
  for (int i = 0; i < inputs; i++) {
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    sn_value v = sn_input(r->g, name, SN_F32, 1 + (int64_t)roll(&d, 48));
    place_on(r->g, v, (int)roll(&d, (uint64_t)devices));
    r->values[r->n_values++] = v;
  }
  sn_value vars[MOST_VARIABLES];
  for (int i = 0; i < variables; i++) {
    char name[16];
    snprintf(name, sizeof name, "w%d", i);
    vars[i] = sn_variable(r->g, name, SN_F32, SN_SHAPE(1 + (int64_t)roll(&d, 200)),
                          .init = {.kind = SN_INIT_NORMAL, .value = 0.5});
    place_on(r->g, vars[i], (int)roll(&d, (uint64_t)devices));
    r->values[r->n_values++] = vars[i];
  }
  for (int i = 0; i < nodes; i++)
    add_random_node(r, &d);
  for (int i = 0; i < variables; i++) {
    int home = home_of(r->g, vars[i]);
    sn_value last = r->values[r->n_values - 1 - (int)roll(&d, 6)];
    sn_value in[2] = {vars[i], on_device(r, last, home)};
    place_on(r->g, sn__node_add(r->g, &op_assign, NULL, in, 2, NULL, NULL), home);
  }
  for (int i = 0; i < 4; i++) {
    sn_value v = r->values[r->n_values - 1 - (int)roll(&d, (uint64_t)(nodes / 2 + 1))];
    if (r->g->values[sn__value_storage(r->g, v.index)].kind != SN_VALUE_VARIABLE)
      r->fetches[r->n_fetches++] = v;
  }
  ck_sn_ok(sn_graph_status(r->g));
  return r;
}

static inline void random_graph_free(random_graph *r) {
  sn_graph_free(r->g);
  free(r);
}

/* Everything on device 0; copies, of which there can be none there, become views. */
static inline void all_on_one(sn_graph *g) {
  for (size_t i = 1; i < g->n_nodes; i++) {
    g->nodes[i].device = 0;
    if (g->nodes[i].op == &op_copy) g->nodes[i].op = &op_view;
  }
}

static inline sn_topology *make_topology(const char *list) {
  sn_topology *t = NULL;
  ck_sn_ok(sn_topology_parse(list, 0, &t));
  return t;
}

/* ---- the interpreter ----------------------------------------------------------------------- */

/* Runs the graph in node order, every value in memory of its own. `data[value]` is filled in for
 * inputs and variables by the caller (a committed output gets memory of its own, and shows the new
 * state); everything is malloced. */
static inline void interpret(const sn_graph *g, const int64_t *extents, void **data) {
  sn__step step = {.rows = extents[0], .extents = extents, .training = true};
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (sn__node_is_source(n)) continue;
    sn__tensor tensors[32];
    ck_assert(n->n_in + n->n_out <= 32);
    for (uint32_t k = 0; k < n->n_in + n->n_out; k++) {
      uint32_t v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
      tensors[k] = (sn__tensor){NULL, SN_DTYPE_NONE, {0, {0}}};
      if (v == 0) continue;
      tensors[k].dtype = g->values[v].dtype;
      tensors[k].shape = sn__shape_resolve(&g->values[v].shape, extents);
      size_t bytes = (size_t)count_of(&tensors[k]) * sn_dtype_size(tensors[k].dtype);
      if (k >= n->n_in) data[v] = malloc(bytes + 1);
      tensors[k].data = data[v];
    }
    if ((n->op->flags & SN_OP_VIEW) != 0) {
      memcpy(tensors[1].data, tensors[0].data, (size_t)count_of(&tensors[0]) * sizeof(float));
      continue;
    }
    sn__exec e = {.op = n->op,
                  .attrs = n->attrs,
                  .in = tensors,
                  .n_in = (int)n->n_in,
                  .out = tensors + n->n_in,
                  .n_out = (int)n->n_out,
                  .step = &step};
    e.workspace_size = n->op->workspace == NULL ? 0 : n->op->workspace(&e);
    e.workspace = malloc(e.workspace_size + 1);
    ck_sn_ok(n->op->cpu(&e));
    free(e.workspace);
  }
}

#endif
