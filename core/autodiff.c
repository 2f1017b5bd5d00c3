/* SPDX-License-Identifier: Apache-2.0 */
#include "core/autodiff.h"

#include <assert.h>
#include <string.h>

/* One consumer's share in a value's gradient. */
typedef struct term {
  uint32_t value; /* in the training graph */
  uint32_t next;  /* index into terms, 0 at the end */
} term;

typedef struct pass {
  sn_graph *g;
  size_t n_nodes, n_values; /* of the forward graph */
  bool *active;             /* [n_values]: a trainable variable reaches it */
  bool *reached;            /* [n_values]: it reaches a loss */
  uint32_t *first;          /* [n_values]: its first term */
  term *terms;              /* [1, n_terms) */
  size_t n_terms, cap_terms;
} pass;

/* Terms arrive consumer by consumer from the last to the first, inputs likewise, and are put in
 * front: the list is in forward-use order. */
static bool push_term(pass *p, uint32_t value, uint32_t gradient) {
  if (!sn__grow((void **)&p->terms, &p->cap_terms, p->n_terms + 1, sizeof *p->terms)) return false;
  p->terms[p->n_terms] = (term){gradient, p->first[value]};
  p->first[value] = (uint32_t)p->n_terms++;
  return true;
}

/* ---- what has to be differentiated --------------------------------------------------------- */

static void mark_active(pass *p) {
  const sn_graph *g = p->g;
  for (size_t i = 0; i < g->n_variables; i++) {
    const sn__variable *v = &g->variables[i];
    p->active[v->value] =
        !v->frozen && v->owner == 0 && sn_dtype_is_float(g->values[v->value].dtype);
  }
  for (size_t i = 1; i < p->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if ((n->op->flags & SN_OP_NO_GRAD) != 0) continue;
    bool any = false;
    for (uint32_t k = 0; !any && k < n->n_in; k++)
      any = n->in[k] != 0 && p->active[n->in[k]];
    for (uint32_t o = 0; any && o < n->n_out; o++)
      p->active[n->out[o]] = sn_dtype_is_float(g->values[n->out[o]].dtype);
  }
}

static void mark_reached(pass *p) {
  const sn_graph *g = p->g;
  for (size_t i = 0; i < g->n_losses; i++)
    p->reached[g->losses[i].sum] = true;
  for (size_t i = p->n_nodes - 1; i > 0; i--) {
    const sn__node *n = &g->nodes[i];
    if ((n->op->flags & SN_OP_NO_GRAD) != 0) continue;
    bool any = false;
    for (uint32_t o = 0; !any && o < n->n_out; o++)
      any = p->reached[n->out[o]];
    for (uint32_t k = 0; any && k < n->n_in; k++)
      if (n->in[k] != 0) p->reached[n->in[k]] = true;
  }
}

static sn_status seed_losses(pass *p) {
  const sn_graph *g = p->g;
  if (g->n_losses == 0)
    return sn_status_make(SN_CODE_INVALID, "the graph has no loss, so there is nothing to train; "
                                           "add one, such as sn_softmax_cross_entropy");
  for (size_t i = g->n_losses; i-- > 0;) {
    const sn__loss_info *loss = &g->losses[i];
    if (!p->active[loss->sum])
      return sn_status_make(SN_CODE_INVALID,
                            "loss '%s' depends on no trainable variable, so it cannot be trained; "
                            "it must be computed, by differentiable operations, from a variable "
                            "that is not frozen",
                            loss->name);
    if (!push_term(p, loss->sum, loss->seed)) return sn_status_out_of_memory();
  }
  return SN_OK;
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* Marks what is built from here on; module and home as given. */
static void build_for(sn_graph *g, uint32_t module, uint32_t origin, uint32_t home) {
  g->module = module;
  g->phase = SN_BACKWARD;
  g->origin = origin;
  g->home = home;
}

static sn_status add_sum(pass *p, uint32_t value, size_t count, uint32_t *out) {
  sn_graph *g = p->g;
  const sn_op_def *add_n = sn__op_find("add_n");
  if (add_n == NULL)
    return sn_status_make(SN_CODE_INTERNAL, "the table of operations has no 'add_n'");
  sn_value *terms = sn__calloc(count, sizeof *terms);
  if (terms == NULL) return sn_status_out_of_memory();
  size_t k = 0;
  for (uint32_t t = p->first[value]; t != 0; t = p->terms[t].next)
    terms[k++] = sn__value_at(g, p->terms[t].value);
  uint32_t producer = g->values[value].node;
  build_for(g, g->nodes[producer].module, producer, value);
  sn_value sum = sn__node_add(g, add_n, NULL, terms, count, "gradient", NULL);
  g->home = 0;
  sn__free(terms);
  *out = sum.index;
  return sn_graph_status(g);
}

/* A lone term passes through unless it is a variable's and not made in the variable's module. */
static bool needs_sum(const pass *p, uint32_t value, size_t count) {
  if (count > 1) return true;
  const sn_graph *g = p->g;
  if (g->values[value].kind != SN_VALUE_VARIABLE) return false;
  const sn__value *lone = &g->values[p->terms[p->first[value]].value];
  return g->nodes[lone->node].module != g->nodes[g->values[value].node].module ||
         lone->kind != SN_VALUE_OP;
}

/* Settles the gradient of a value whose consumers have all been walked; 0 when none flows. */
static sn_status settle(pass *p, uint32_t value) {
  size_t count = 0;
  for (uint32_t t = p->first[value]; t != 0; t = p->terms[t].next)
    count++;
  if (count == 0) return SN_OK;
  uint32_t gradient = p->terms[p->first[value]].value;
  if (needs_sum(p, value, count)) SN_TRY(add_sum(p, value, count, &gradient));
  p->g->gradients[value] = gradient;
  return SN_OK;
}

/* ---- one node ------------------------------------------------------------------------------ */

static bool may_read(const sn_graph *g, const sn__node *n, uint32_t value) {
  const sn__value *v = &g->values[value];
  if (v->kind == SN_VALUE_CONSTANT || g->nodes[v->node].phase != SN_FORWARD) return true;
  /* Offsets and the seed of a loss are fed and stay for the whole step. */
  if (v->kind == SN_VALUE_INPUT && g->inputs[v->extra].role != SN_INPUT_DATA) return true;
  for (uint32_t k = 0; k < n->n_in && k < 32; k++)
    if (n->in[k] == value && (n->op->saved_inputs >> k & 1u) != 0) return true;
  for (uint32_t o = 0; o < n->n_out && o < 32; o++)
    if (n->out[o] == value && (n->op->saved_outputs >> o & 1u) != 0) return true;
  return false;
}

/* The saved-tensor mask is a promise that lifetimes are planned by: hold the op to it. */
static sn_status check_saved(const sn_graph *g, uint32_t node, size_t first_new) {
  const sn__node *n = &g->nodes[node];
  for (size_t i = first_new; i < g->n_nodes; i++)
    for (uint32_t k = 0; k < g->nodes[i].n_in; k++) {
      uint32_t in = g->nodes[i].in[k];
      if (in != 0 && !may_read(g, n, in))
        return sn_status_make(SN_CODE_INTERNAL,
                              "the gradient of '%s' (%s) reads '%s', which its row does not say it "
                              "saves",
                              n->op->name, n->name, g->values[in].name);
    }
  return SN_OK;
}

static sn_status check_gradient(const sn_graph *g, uint32_t node, uint32_t input, sn_value din) {
  const sn__node *n = &g->nodes[node];
  const sn__value *v = &g->values[n->in[input]], *d = sn__value_info(g, din);
  if (d == NULL || din.graph != g)
    return sn_status_make(SN_CODE_INTERNAL, "the gradient of '%s' (%s) is no value of the graph",
                          n->op->name, n->name);
  if (d->dtype == v->dtype && sn_shape_equal(&d->shape, &v->shape)) return SN_OK;
  char want[160], got[160];
  return sn_status_make(SN_CODE_INTERNAL,
                        "the gradient of '%s' (%s) by input %u is %s %s; it must be %s %s",
                        n->op->name, n->name, input, sn_dtype_name(d->dtype),
                        sn_shape_text(g, &d->shape, got, sizeof got), sn_dtype_name(v->dtype),
                        sn_shape_text(g, &v->shape, want, sizeof want));
}

/* Takes the terms that an op's gradient gave, last input first (see push_term). */
static sn_status take_terms(pass *p, uint32_t node, const sn_value *din, const bool *need) {
  for (uint32_t k = p->g->nodes[node].n_in; k-- > 0;) {
    if (!need[k] || din[k].index == 0) continue;
    SN_TRY(check_gradient(p->g, node, k, din[k]));
    if (!push_term(p, p->g->nodes[node].in[k], din[k].index)) return sn_status_out_of_memory();
  }
  return SN_OK;
}

static sn_status call_gradient(pass *p, uint32_t node, sn_value *values, bool *need) {
  sn_graph *g = p->g;
  const sn__node n = g->nodes[node]; /* a copy: the array may move while nodes are added */
  sn_value *in = values, *out = in + n.n_in, *dout = out + n.n_out, *din = dout + n.n_out;
  for (uint32_t k = 0; k < n.n_in; k++) {
    in[k] = sn__value_at(g, n.in[k]);
    din[k] = sn__value_at(g, 0);
    need[k] = n.in[k] != 0 && p->active[n.in[k]];
  }
  for (uint32_t o = 0; o < n.n_out; o++) {
    out[o] = sn__value_at(g, n.out[o]);
    dout[o] = sn__value_at(g, g->gradients[n.out[o]]);
  }
  build_for(g, n.module, node, 0);
  size_t before = g->n_nodes;
  sn__grad c = {.graph = g,
                .attrs = n.attrs,
                .in = in,
                .n_in = (int)n.n_in,
                .out = out,
                .dout = dout,
                .need = need,
                .din = din};
  SN_TRY(sn_status_context(n.op->grad(&c), "gradient of '%s' (%s)", n.op->name, n.name));
  SN_TRY(sn_status_context(sn_graph_status(g), "gradient of '%s' (%s)", n.op->name, n.name));
  SN_TRY(check_saved(g, node, before));
  return take_terms(p, node, din, need);
}

static sn_status walk_node(pass *p, uint32_t node) {
  sn_graph *g = p->g;
  uint32_t n_out = g->nodes[node].n_out;
  bool flows = false;
  for (uint32_t o = 0; o < n_out; o++) {
    uint32_t value = g->nodes[node].out[o];
    SN_TRY(settle(p, value));
    flows |= g->gradients[value] != 0;
  }
  const sn__node *n = &g->nodes[node];
  if (!flows || sn__node_is_source(n)) return SN_OK;
  if (n->op->grad == NULL)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "operation '%s' (%s) has no gradient and lies between a loss and a "
                          "trainable variable; freeze the variable or use another operation",
                          n->op->name, n->name);
  sn_value *values = sn__calloc(2 * (size_t)n->n_in + 2 * (size_t)n->n_out, sizeof *values);
  bool *need = sn__calloc((size_t)n->n_in + 1, sizeof *need);
  sn_status status = values == NULL || need == NULL ? sn_status_out_of_memory()
                                                    : call_gradient(p, node, values, need);
  sn__free(values);
  sn__free(need);
  return status;
}

static sn_status differentiate(pass *p) {
  sn_graph *g = p->g;
  p->n_nodes = g->n_nodes;
  p->n_values = g->n_values;
  p->n_terms = 1;
  p->active = sn__calloc(p->n_values, sizeof *p->active);
  p->reached = sn__calloc(p->n_values, sizeof *p->reached);
  p->first = sn__calloc(p->n_values, sizeof *p->first);
  if (p->active == NULL || p->reached == NULL || p->first == NULL ||
      !sn__grow((void **)&g->gradients, &g->cap_gradients, p->n_values, sizeof *g->gradients))
    return sn_status_out_of_memory();
  memset(g->gradients, 0, p->n_values * sizeof *g->gradients);
  g->n_gradients = p->n_values;
  mark_active(p);
  mark_reached(p);
  SN_TRY(seed_losses(p));
  for (size_t i = p->n_nodes - 1; i > 0; i--) {
    bool wanted = false;
    for (uint32_t o = 0; o < g->nodes[i].n_out; o++)
      wanted |= p->active[g->nodes[i].out[o]] && p->reached[g->nodes[i].out[o]];
    if (wanted) SN_TRY(walk_node(p, (uint32_t)i));
  }
  for (size_t i = 0; i < g->n_variables; i++)
    g->variables[i].gradient = g->gradients[g->variables[i].value];
  return SN_OK;
}

sn_status sn__differentiate(const sn_graph *forward, sn_graph **out_train) {
  pass p = {0};
  SN_TRY(sn__graph_clone(forward, &p.g));
  assert(p.g->n_gradients == 0); /* a training graph is not differentiated again */
  uint32_t module = p.g->module;
  sn_status status = differentiate(&p);
  build_for(p.g, module, 0, 0);
  p.g->phase = SN_FORWARD;
  sn__free(p.active);
  sn__free(p.reached);
  sn__free(p.first);
  sn__free(p.terms);
  if (status != SN_OK)
    sn_graph_free(p.g);
  else
    *out_train = p.g;
  return status;
}

sn_value sn__gradient_of(const sn_graph *train, sn_value value) {
  return sn__value_at(train, value.index < train->n_gradients ? train->gradients[value.index] : 0);
}

const char *sn__unused_variable(const sn_graph *train, size_t i) {
  for (size_t v = 0; v < train->n_variables; v++) {
    const sn__variable *variable = &train->variables[v];
    if (!variable->frozen && variable->owner == 0 && variable->gradient == 0 && i-- == 0)
      return variable->name;
  }
  return NULL;
}

size_t sn__unused_variable_count(const sn_graph *train) {
  size_t count = 0;
  while (sn__unused_variable(train, count) != NULL)
    count++;
  return count;
}
