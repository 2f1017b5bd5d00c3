/* SPDX-License-Identifier: Apache-2.0 */
/* A table of operations small enough to judge core's passes by, and an interpreter to run graphs of
 * them. f64 only; scalars and vectors. */
#ifndef SN_TESTS_TOY_OPS_H
#define SN_TESTS_TOY_OPS_H

#include <math.h>

#include "core/graph_impl.h"
#include "tests/check_sn.h"

extern const sn_op_def sn__op_add, sn__op_mul, sn__op_tanh, sn__op_add_n, sn__op_sum, sn__op_expand,
    sn__op_tanh_grad, sn__op_round, sn__op_opaque, sn__op_cheat, sn__op_misshape, sn__op_copy,
    sn__op_assign, sn__op_split, sn__op_tagged;

static sn_status infer_same(sn__infer *c) {
  for (int i = 1; i < c->n_in; i++)
    if (!sn_shape_equal(&c->in[i].shape, &c->in[0].shape))
      return sn__infer_fail(c, "inputs differ in shape");
  for (int o = 0; o < c->n_out; o++)
    c->out[o] = c->in[0];
  return SN_OK;
}

static int64_t size_of(const sn__exec *e) {
  return sn__shape_size(&e->out[0].shape);
}
#define IN(e, i)  ((const double *)(e)->in[i].data)
#define OUT(e, o) ((double *)(e)->out[o].data)
#define EACH(e)   for (int64_t i = 0, n_ = size_of(e); i < n_; i++)

static sn_value node2(sn_graph *g, const sn_op_def *op, sn_value a, sn_value b) {
  return sn__node_add(g, op, NULL, (sn_value[]){a, b}, 2, NULL, NULL);
}
static sn_value node1(sn_graph *g, const sn_op_def *op, sn_value a) {
  return sn__node_add(g, op, NULL, &a, 1, NULL, NULL);
}

static sn_status add_cpu(const sn__exec *e) {
  EACH(e) OUT(e, 0)[i] = IN(e, 0)[i] + IN(e, 1)[i];
  return SN_OK;
}
static sn_status add_grad(const sn__grad *c) {
  c->din[0] = c->din[1] = c->dout[0];
  return SN_OK;
}
static sn_status mul_cpu(const sn__exec *e) {
  EACH(e) OUT(e, 0)[i] = IN(e, 0)[i] * IN(e, 1)[i];
  return SN_OK;
}
static sn_status mul_grad(const sn__grad *c) {
  if (c->need[0]) c->din[0] = node2(c->graph, &sn__op_mul, c->dout[0], c->in[1]);
  if (c->need[1]) c->din[1] = node2(c->graph, &sn__op_mul, c->dout[0], c->in[0]);
  return SN_OK;
}
static sn_status tanh_cpu(const sn__exec *e) {
  EACH(e) OUT(e, 0)[i] = tanh(IN(e, 0)[i]);
  return SN_OK;
}
static sn_status tanh_grad_cpu(const sn__exec *e) {
  EACH(e) OUT(e, 0)[i] = IN(e, 0)[i] * (1 - IN(e, 1)[i] * IN(e, 1)[i]);
  return SN_OK;
}
static sn_status tanh_grad(const sn__grad *c) {
  c->din[0] = node2(c->graph, &sn__op_tanh_grad, c->dout[0], c->out[0]);
  return SN_OK;
}
static sn_status add_n_cpu(const sn__exec *e) {
  EACH(e) {
    double sum = 0;
    for (int k = 0; k < e->n_in; k++)
      sum += IN(e, k)[i];
    OUT(e, 0)[i] = sum;
  }
  return SN_OK;
}
static sn_status sum_infer(sn__infer *c) {
  c->out[0] = (sn__type){c->in[0].dtype, {0, {0}}};
  return SN_OK;
}
static sn_status sum_cpu(const sn__exec *e) {
  OUT(e, 0)[0] = 0;
  for (int64_t i = 0; i < sn__shape_size(&e->in[0].shape); i++)
    OUT(e, 0)[0] += IN(e, 0)[i];
  return SN_OK;
}
typedef struct expand_attrs {
  int64_t n;
} expand_attrs;
static const sn__attr_def expand_attr_defs[] = {
    {.name = "n", .kind = SN_ATTR_INT, .offset = offsetof(expand_attrs, n)}};
static sn_status expand_infer(sn__infer *c) {
  c->out[0] = (sn__type){c->in[0].dtype, {1, {((const expand_attrs *)c->attrs)->n}}};
  return SN_OK;
}
static sn_status expand_cpu(const sn__exec *e) {
  EACH(e) OUT(e, 0)[i] = IN(e, 0)[0];
  return SN_OK;
}
static sn_status sum_grad(const sn__grad *c) {
  expand_attrs a = {sn_value_shape(c->in[0]).dims[0]};
  c->din[0] = sn__node_add(c->graph, &sn__op_expand, &a, &c->dout[0], 1, NULL, NULL);
  return SN_OK;
}
/* Two outputs, x + 1 and 2 x: gradients of which one may be absent. */
static sn_status split_cpu(const sn__exec *e) {
  EACH(e) {
    OUT(e, 0)[i] = IN(e, 0)[i] + 1;
    OUT(e, 1)[i] = 2 * IN(e, 0)[i];
  }
  return SN_OK;
}
static sn_status split_grad(const sn__grad *c) {
  sn_value twice = {c->graph, 0};
  if (sn_value_ok(c->dout[1])) twice = node2(c->graph, &sn__op_add, c->dout[1], c->dout[1]);
  if (!sn_value_ok(c->dout[0]))
    c->din[0] = twice;
  else if (!sn_value_ok(twice))
    c->din[0] = c->dout[0];
  else
    c->din[0] = node2(c->graph, &sn__op_add, c->dout[0], twice);
  return SN_OK;
}
static sn_status round_cpu(const sn__exec *e) {
  EACH(e) OUT(e, 0)[i] = rint(IN(e, 0)[i]);
  return SN_OK;
}
static sn_status copy_cpu(const sn__exec *e) {
  EACH(e) OUT(e, 0)[i] = IN(e, 0)[i];
  return SN_OK;
}
static sn_status assign_cpu(const sn__exec *e) {
  EACH(e) OUT(e, 0)[i] = IN(e, 1)[i];
  return SN_OK;
}
/* The wrong: reads what it does not say it saves; gives a gradient of another shape. */
static sn_status misshape_grad(const sn__grad *c) {
  c->din[0] = node1(c->graph, &sn__op_sum, c->dout[0]);
  return SN_OK;
}

/* Attributes of every kind, and an optional input. */
typedef struct tagged_attrs {
  int64_t count, huge;
  double factor, limit;
  sn__ints axes, none;
} tagged_attrs;
#define TAG(field, kind_)                                                                          \
  { .name = #field, .kind = kind_, .offset = offsetof(tagged_attrs, field) }
static const sn__attr_def tagged_attr_defs[] = {
    TAG(count, SN_ATTR_INT),   TAG(huge, SN_ATTR_INT),  TAG(factor, SN_ATTR_FLOAT),
    TAG(limit, SN_ATTR_FLOAT), TAG(axes, SN_ATTR_INTS), TAG(none, SN_ATTR_INTS)};
static sn_status tagged_infer(sn__infer *c) {
  c->out[0] = c->in[0];
  return SN_OK;
}

#define TOY(name_, in_, ...)                                                                       \
  const sn_op_def sn__op_##name_ = {.name = #name_,                                                \
                                    .version = 1,                                                  \
                                    .min_inputs = in_,                                             \
                                    .max_inputs = in_,                                             \
                                    .n_outputs = 1,                                                \
                                    .infer = infer_same,                                           \
                                    __VA_ARGS__}
TOY(add, 2, .grad = add_grad, .cpu = add_cpu);
TOY(mul, 2, .grad = mul_grad, .saved_inputs = 3, .cpu = mul_cpu);
TOY(tanh, 1, .grad = tanh_grad, .saved_outputs = 1, .cpu = tanh_cpu);
TOY(tanh_grad, 2, .flags = SN_OP_GRAD, .cpu = tanh_grad_cpu);
const sn_op_def sn__op_add_n = {.name = "add_n",
                                .version = 1,
                                .min_inputs = 1,
                                .max_inputs = -1,
                                .n_outputs = 1,
                                .infer = infer_same,
                                .flags = SN_OP_GRAD,
                                .cpu = add_n_cpu};
const sn_op_def sn__op_sum = {.name = "sum",
                              .version = 1,
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .n_outputs = 1,
                              .infer = sum_infer,
                              .grad = sum_grad,
                              .cpu = sum_cpu};
const sn_op_def sn__op_expand = {.name = "expand",
                                 .version = 1,
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .n_outputs = 1,
                                 .flags = SN_OP_GRAD,
                                 .attrs = expand_attr_defs,
                                 .n_attrs = 1,
                                 .attrs_size = sizeof(expand_attrs),
                                 .infer = expand_infer,
                                 .cpu = expand_cpu};
const sn_op_def sn__op_split = {.name = "split",
                                .version = 1,
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .n_outputs = 2,
                                .infer = infer_same,
                                .grad = split_grad,
                                .cpu = split_cpu};
TOY(round, 1, .flags = SN_OP_NO_GRAD, .cpu = round_cpu);
TOY(opaque, 1, .cpu = copy_cpu);
TOY(cheat, 2, .grad = mul_grad, .saved_inputs = 1, .cpu = mul_cpu);
TOY(misshape, 1, .grad = misshape_grad, .cpu = copy_cpu);
TOY(copy, 1, .flags = SN_OP_COPY, .cpu = copy_cpu);
TOY(assign, 2, .flags = SN_OP_COMMIT | SN_OP_NO_GRAD, .commits = {1}, .cpu = assign_cpu);

const sn_op_def sn__op_tagged = {.name = "tagged",
                                 .version = 3,
                                 .min_inputs = 1,
                                 .max_inputs = 3,
                                 .n_outputs = 1,
                                 .flags = SN_OP_NO_GRAD,
                                 .attrs = tagged_attr_defs,
                                 .n_attrs = 6,
                                 .attrs_size = sizeof(tagged_attrs),
                                 .infer = tagged_infer,
                                 .cpu = copy_cpu};

const sn_op_def *const sn__op_table[] = {
    &sn__op_add,   &sn__op_mul,    &sn__op_tanh,   &sn__op_tanh_grad,
    &sn__op_add_n, &sn__op_sum,    &sn__op_expand, &sn__op_split,
    &sn__op_round, &sn__op_opaque, &sn__op_cheat,  &sn__op_misshape,
    &sn__op_copy,  &sn__op_assign, &sn__op_tagged, NULL};
const int sn__op_count = (int)(sizeof sn__op_table / sizeof *sn__op_table) - 1;

/* ---- the interpreter ----------------------------------------------------------------------- */

enum { TOY_LENGTH = 4 };

/* values[v]: room for TOY_LENGTH doubles each; sources are filled by the caller. What a node writes
 * to a variable is seen by those that come later. */
static inline void toy_run(const sn_graph *g, double (*values)[TOY_LENGTH]) {
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (sn__node_is_source(n)) continue;
    sn__tensor in[64], out[SN_MAX_OUTPUTS];
    ck_assert_uint_le(n->n_in, 64);
    for (uint32_t k = 0; k < n->n_in; k++)
      in[k] = (sn__tensor){values[n->in[k]], g->values[n->in[k]].dtype, g->values[n->in[k]].shape};
    for (uint32_t o = 0; o < n->n_out; o++) {
      const sn__value *v = &g->values[n->out[o]];
      out[o] = (sn__tensor){values[n->out[o]], v->dtype, v->shape};
    }
    double workspace[8];
    sn__exec e = {.op = n->op,
                  .attrs = n->attrs,
                  .in = in,
                  .n_in = (int)n->n_in,
                  .out = out,
                  .n_out = (int)n->n_out,
                  .workspace = workspace,
                  .workspace_size = sizeof workspace};
    ck_sn_ok(n->op->cpu(&e));
    for (uint32_t o = 0; o < n->n_out && (n->op->flags & SN_OP_COMMIT) != 0; o++)
      memcpy(values[n->in[n->op->commits[o] - 1]], values[n->out[o]], sizeof *values);
  }
}

static uint64_t toy_state = 1;
static inline uint32_t toy_random(uint32_t below) {
  toy_state = toy_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(toy_state >> 33) % below;
}
static inline double toy_number(void) {
  return (double)toy_random(2000001) / 1e6 - 1;
}

#endif
