/* SPDX-License-Identifier: Apache-2.0 */
/* Clones of forward nodes in the backward pass. */
#include "core/recompute.h"

#include <stdlib.h>
#include <string.h>

typedef struct pass {
  sn_graph *g;   /* what is being made: a clone whose nodes are emitted again, in order */
  sn__node *old; /* [n_old] the clone's own nodes */
  const uint32_t *segments; /* [n_old] */
  uint32_t n_old, n_values; /* of the original */
  uint32_t *value_node;     /* [n_values] the old node that makes it */
  uint32_t *node;           /* [n_old] its number in `g` */
  bool *kept;               /* [n_values] read from the original, whoever reads it */
  uint32_t *again;          /* [n_values] the clone's value; 0: none yet */
  bool *wanted;             /* [n_old] about to be cloned */
  uint32_t *list;           /* [n_old] these */
} pass;

/* ---- what is kept -------------------------------------------------------------------------- */

static uint32_t segment_of(const pass *p, uint32_t value) {
  uint32_t maker = p->value_node[value];
  const sn__node *n = &p->old[maker];
  return n->phase == SN_FORWARD && !sn__node_is_source(n) ? p->segments[maker] : 0;
}

/* Reading it there does not make it leave its segment. */
static bool reads_inside(const pass *p, uint32_t reader, uint32_t value) {
  uint32_t maker = p->value_node[value];
  if (p->old[reader].phase == SN_BACKWARD) return true;
  return p->old[reader].phase == SN_FORWARD && p->old[reader].part == p->old[maker].part &&
         p->segments[reader] == p->segments[maker];
}

static void find_kept(pass *p) {
  const sn_graph *g = p->g;
  const unsigned never = SN_OP_COMMIT | SN_OP_COPY;
  for (uint32_t v = 1; v < p->n_values; v++)
    p->kept[v] = segment_of(p, v) == 0 || sn_shape_is_fixed(&g->values[v].shape) ||
                 (p->old[p->value_node[v]].op->flags & never) != 0;
  for (uint32_t i = 1; i < p->n_old; i++)
    for (uint32_t k = 0; k < p->old[i].n_in; k++) {
      uint32_t v = p->old[i].in[k];
      if (v != 0 && !reads_inside(p, i, v)) p->kept[v] = true;
    }
  for (size_t i = 0; i < g->n_outputs; i++)
    p->kept[g->outputs[i].value] = true;
  for (size_t i = 0; i < g->n_losses; i++)
    p->kept[g->losses[i].sum] = true;
  /* A view and what it looks at are the same bytes. */
  for (uint32_t i = p->n_old; i-- > 1;)
    if ((p->old[i].op->flags & SN_OP_VIEW) != 0 && p->kept[p->old[i].out[0]])
      p->kept[p->old[i].in[0]] = true;
  for (uint32_t i = 1; i < p->n_old; i++)
    if ((p->old[i].op->flags & SN_OP_VIEW) != 0 && p->kept[p->old[i].in[0]])
      p->kept[p->old[i].out[0]] = true;
}

/* ---- emitting ------------------------------------------------------------------------------ */

static sn_status new_node(pass *p, uint32_t *out_index) {
  sn_graph *g = p->g;
  if (!sn__grow((void **)&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof *g->nodes))
    return sn_status_out_of_memory();
  *out_index = (uint32_t)g->n_nodes++;
  return SN_OK;
}

static void emit(pass *p, uint32_t old, uint32_t index) {
  sn_graph *g = p->g;
  sn__node *n = &g->nodes[index];
  *n = p->old[old];
  p->node[old] = index;
  n->origin = n->origin == 0 ? 0 : p->node[n->origin];
  for (uint32_t k = 0; n->phase == SN_BACKWARD && k < n->n_in; k++)
    if (n->in[k] != 0 && p->again[n->in[k]] != 0) n->in[k] = p->again[n->in[k]];
  for (uint32_t o = 0; o < n->n_out; o++)
    g->values[n->out[o]].node = index;
}

static const char *again_name(sn_graph *g, const char *name) {
  char *text = sn__format("%s/again", name);
  const char *kept = text == NULL ? NULL : sn__arena_strdup(&g->arena, text);
  sn__free(text);
  return kept;
}

static sn_status add_value(pass *p, uint32_t original, uint32_t node) {
  sn_graph *g = p->g;
  const char *name = again_name(g, g->values[original].name);
  if (name == NULL ||
      !sn__grow((void **)&g->values, &g->cap_values, g->n_values + 1, sizeof *g->values))
    return sn_status_out_of_memory();
  uint32_t index = (uint32_t)g->n_values++;
  g->values[index] = g->values[original];
  g->values[index].node = node;
  g->values[index].name = name;
  p->again[original] = index;
  return SN_OK;
}

/* Old node `old` once more, not before `after` is there. */
static sn_status emit_clone(pass *p, uint32_t old, uint32_t after) {
  sn_graph *g = p->g;
  const sn__node *from = &p->old[old];
  uint32_t index = 0;
  SN_TRY(new_node(p, &index));
  sn__node *n = &g->nodes[index];
  *n = *from;
  n->phase = SN_BACKWARD;
  n->origin = p->node[old];
  n->home = 0;
  n->after = after;
  n->recomputed = true;
  n->name = again_name(g, from->name);
  n->in = sn__arena_alloc(&g->arena, (n->n_in + 1) * sizeof *n->in);
  n->out = sn__arena_alloc(&g->arena, (n->n_out + 1) * sizeof *n->out);
  if (n->name == NULL || n->in == NULL || n->out == NULL) return sn_status_out_of_memory();
  for (uint32_t k = 0; k < n->n_in; k++) {
    uint32_t v = from->in[k];
    n->in[k] = v == 0 || p->kept[v] ? v : p->again[v];
  }
  for (uint32_t o = 0; o < n->n_out; o++) {
    SN_TRY(add_value(p, from->out[o], index));
    g->nodes[index].out[o] = p->again[from->out[o]];
  }
  return SN_OK;
}

/* ---- what a backward node wants -------------------------------------------------------------- */

static void want(pass *p, uint32_t value, uint32_t *n) {
  uint32_t maker = value == 0 ? 0 : p->value_node[value];
  if (value == 0 || p->kept[value] || p->again[value] != 0 || p->wanted[maker]) return;
  p->wanted[maker] = true;
  p->list[(*n)++] = maker;
}

/* What makes the backward pass reach this node: the latest gradient it reads, or where none comes
 * in (a loss), the end of its forward node. */
static uint32_t reached_by(const pass *p, const sn__node *reader) {
  uint32_t latest = 0;
  for (uint32_t k = 0; k < reader->n_in; k++) {
    uint32_t v = reader->in[k];
    if (v == 0 || p->old[p->value_node[v]].phase != SN_BACKWARD) continue;
    if (latest == 0 || p->value_node[v] > p->value_node[latest]) latest = v;
  }
  if (latest == 0 && reader->origin != 0) latest = p->old[reader->origin].out[0];
  return latest;
}

static int compare_numbers(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static sn_status emit_wanted(pass *p, const sn__node *reader) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < reader->n_in; k++)
    want(p, reader->in[k], &n);
  for (uint32_t i = 0; i < n; i++) /* grows on the way */
    for (uint32_t k = 0; k < p->old[p->list[i]].n_in; k++)
      want(p, p->old[p->list[i]].in[k], &n);
  if (n == 0) return SN_OK;
  uint32_t after = reached_by(p, reader);
  qsort(p->list, n, sizeof *p->list, compare_numbers);
  for (uint32_t i = 0; i < n; i++) {
    p->wanted[p->list[i]] = false;
    SN_TRY(emit_clone(p, p->list[i], after));
  }
  return SN_OK;
}

/* ---- the pass ------------------------------------------------------------------------------ */

static sn_status build(pass *p) {
  sn_graph *g = p->g;
  p->value_node = sn__calloc(p->n_values, sizeof *p->value_node);
  p->node = sn__calloc(p->n_old, sizeof *p->node);
  p->kept = sn__calloc(p->n_values, sizeof *p->kept);
  p->again = sn__calloc(p->n_values, sizeof *p->again);
  p->wanted = sn__calloc(p->n_old, sizeof *p->wanted);
  p->list = sn__calloc(p->n_old, sizeof *p->list);
  if (p->value_node == NULL || p->node == NULL || p->kept == NULL || p->again == NULL ||
      p->wanted == NULL || p->list == NULL ||
      !sn__grow((void **)&g->nodes, &g->cap_nodes, p->n_old, sizeof *g->nodes))
    return sn_status_out_of_memory();
  for (uint32_t v = 0; v < p->n_values; v++)
    p->value_node[v] = g->values[v].node;
  find_kept(p);
  g->nodes[g->n_nodes++] = p->old[0];
  for (uint32_t i = 1; i < p->n_old; i++) {
    if (p->old[i].phase == SN_BACKWARD) SN_TRY(emit_wanted(p, &p->old[i]));
    uint32_t index = 0;
    SN_TRY(new_node(p, &index));
    emit(p, i, index);
  }
  for (size_t v = 0; v < g->n_variables; v++)
    if (g->variables[v].commit != 0) g->variables[v].commit = p->node[g->variables[v].commit];
  return SN_OK;
}

sn_status sn__recompute(const sn_graph *train, const uint32_t *segments, sn_graph **out_graph) {
  pass p = {.segments = segments,
            .n_old = (uint32_t)train->n_nodes,
            .n_values = (uint32_t)train->n_values};
  SN_TRY(sn__graph_clone(train, &p.g));
  p.old = p.g->nodes;
  p.g->nodes = NULL;
  p.g->n_nodes = p.g->cap_nodes = 0;
  sn_status status = build(&p);
  void *const all[] = {p.old, p.value_node, p.node, p.kept, p.again, p.wanted, p.list};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    sn__free(all[i]);
  if (status != SN_OK) {
    sn_graph_free(p.g);
    return sn_status_context(status, "recomputation");
  }
  *out_graph = p.g;
  return SN_OK;
}
