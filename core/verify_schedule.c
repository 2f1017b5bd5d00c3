/* SPDX-License-Identifier: Apache-2.0 */
/* V5 and V6 under a schedule, by vector clocks: for every node, how far each queue has come at
 * least when it starts. */
#include "core/verify.h"

#include <assert.h>
#include <string.h>

#define BROKEN(...) sn_status_make(SN_CODE_INTERNAL, __VA_ARGS__)

/* Chains of readers by value and of values by storage; index 0 ends a chain. */
typedef struct use {
  uint32_t node, next;
} use;

typedef struct check {
  const sn_graph *g;
  const sn_topology *t;
  const sn__schedule_view *s;
  uint32_t *clocks;     /* [n_nodes * n_queues] positions ended, as a count */
  uint32_t *after;      /* [n_nodes] the node before it in its queue, 0: first */
  uint32_t *wait_first; /* [n_nodes + 1] into wait_list */
  uint32_t *wait_list;
  uint8_t *state;    /* [n_nodes] 0 new, 1 being walked, 2 done */
  uint32_t *stack;   /* [n_nodes] */
  uint32_t *use_of;  /* [n_values] first reader */
  use *uses;         /* [1..] */
  uint32_t *storage; /* [n_values] the value that owns the bytes */
  uint32_t *group;   /* [n_values] by storage: first value */
  uint32_t *sibling; /* [n_values] next value of the same storage */
} check;

static bool scheduled(const check *c, uint32_t node) {
  return c->s->queue[node] != SN__NOT_SCHEDULED;
}

/* `a` has ended when `b` starts. */
static bool before(const check *c, uint32_t a, uint32_t b) {
  return c->clocks[(size_t)b * c->s->n_queues + c->s->queue[a]] > c->s->position[a];
}

static const char *where(const check *c, uint32_t node) {
  int32_t d = c->g->nodes[node].device;
  return d >= 0 && d < c->t->n_devices ? c->t->devices[d].name : "no device";
}

/* ---- the clocks ---------------------------------------------------------------------------- */

static sn_status check_view(const check *c) {
  for (uint32_t i = 1; i < c->g->n_nodes; i++)
    if (scheduled(c, i) && (c->s->queue[i] >= c->s->n_queues || c->s->position[i] >= c->g->n_nodes))
      return BROKEN("V6: node '%s' has a queue or position out of range", c->g->nodes[i].name);
  for (size_t w = 0; w < c->s->n_waits; w++) {
    const sn__wait_edge *e = &c->s->waits[w];
    if (e->node >= c->g->n_nodes || e->on >= c->g->n_nodes || !scheduled(c, e->node) ||
        !scheduled(c, e->on))
      return BROKEN("V6: a wait between nodes that are not scheduled");
  }
  return SN_OK;
}

/* Who stands before whom: by counting places, so that positions may have gaps. */
static sn_status order_queues(check *c) {
  size_t places = c->g->n_nodes;
  uint32_t *at = sn__calloc(places, sizeof *at);
  if (at == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  for (uint32_t q = 0; status == SN_OK && q < c->s->n_queues; q++) {
    memset(at, 0, places * sizeof *at);
    for (uint32_t i = 1; status == SN_OK && i < c->g->n_nodes; i++) {
      if (c->s->queue[i] != q) continue;
      uint32_t *place = &at[c->s->position[i]];
      if (*place != 0)
        status = BROKEN("V6: nodes '%s' and '%s' have one place in their queue",
                        c->g->nodes[*place].name, c->g->nodes[i].name);
      *place = i;
    }
    uint32_t last = 0;
    for (size_t p = 0; p < places; p++)
      if (at[p] != 0) {
        c->after[at[p]] = last;
        last = at[p];
      }
  }
  sn__free(at);
  return status;
}

static void sort_waits(check *c) {
  const sn__schedule_view *s = c->s;
  for (size_t w = 0; w < s->n_waits; w++)
    c->wait_first[s->waits[w].node + 1]++;
  for (size_t i = 0; i < c->g->n_nodes; i++)
    c->wait_first[i + 1] += c->wait_first[i];
  for (size_t w = s->n_waits; w-- > 0;) /* stack is scratch here: places filled so far */
    c->wait_list[c->wait_first[s->waits[w].node] + c->stack[s->waits[w].node]++] = s->waits[w].on;
}

static void take_clock(check *c, uint32_t node, uint32_t ended) {
  uint32_t n = c->s->n_queues, *to = &c->clocks[(size_t)node * n];
  const uint32_t *from = &c->clocks[(size_t)ended * n];
  for (uint32_t q = 0; q < n; q++)
    if (from[q] > to[q]) to[q] = from[q];
  uint32_t *own = &to[c->s->queue[ended]];
  if (c->s->position[ended] + 1 > *own) *own = c->s->position[ended] + 1;
}

/* The k-th of what a node starts after; 0 behind the last. */
static uint32_t predecessor(const check *c, uint32_t node, uint32_t k) {
  if (k == 0 && c->after[node] != 0) return c->after[node];
  if (c->after[node] != 0) k--;
  uint32_t first = c->wait_first[node], count = c->wait_first[node + 1] - first;
  return k < count ? c->wait_list[first + k] : 0;
}

/* Depth first without recursion; `seen` counts the predecessors already walked. */
static sn_status walk(check *c, uint32_t root, uint32_t *seen) {
  uint32_t depth = 0;
  c->stack[depth] = root;
  c->state[root] = 1;
  for (;;) {
    uint32_t node = c->stack[depth], p = predecessor(c, node, seen[node]);
    if (p == 0) {
      for (uint32_t k = 0; (p = predecessor(c, node, k)) != 0; k++)
        take_clock(c, node, p);
      c->state[node] = 2;
      if (depth == 0) return SN_OK;
      depth--;
    } else if (c->state[p] == 1) {
      return BROKEN("V6: nodes '%s' (%s) and '%s' (%s) wait for each other", c->g->nodes[node].name,
                    where(c, node), c->g->nodes[p].name, where(c, p));
    } else {
      seen[node]++;
      if (c->state[p] == 2) continue;
      c->state[p] = 1;
      c->stack[++depth] = p;
    }
  }
}

static sn_status make_clocks(check *c) {
  SN_TRY(check_view(c));
  SN_TRY(order_queues(c));
  sort_waits(c);
  uint32_t *seen = sn__calloc(c->g->n_nodes, sizeof *seen);
  if (seen == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  for (uint32_t i = 1; status == SN_OK && i < c->g->n_nodes; i++)
    if (scheduled(c, i) && c->state[i] == 0) status = walk(c, i, seen);
  sn__free(seen);
  return status;
}

/* ---- V6 ------------------------------------------------------------------------------------ */

static uint32_t behind_views(const sn_graph *g, uint32_t value) {
  while ((g->nodes[g->values[value].node].op->flags & SN_OP_VIEW) != 0)
    value = g->nodes[g->values[value].node].in[0];
  return value;
}

static sn_status check_inputs(const check *c, uint32_t node) {
  const sn_graph *g = c->g;
  const sn__node *n = &g->nodes[node];
  const char *kind = (n->op->flags & SN_OP_COPY) != 0 ? "copy" : "node";
  for (uint32_t k = 0; k < n->n_in; k++) {
    if (n->in[k] == 0) continue;
    uint32_t producer = g->values[behind_views(g, n->in[k])].node;
    if (sn__node_is_source(&g->nodes[producer])) continue;
    if (!scheduled(c, producer))
      return BROKEN("V6: %s '%s' on %s reads '%s', whose producer '%s' never runs", kind, n->name,
                    where(c, node), g->values[n->in[k]].name, g->nodes[producer].name);
    if (!before(c, producer, node))
      return BROKEN("V6: %s '%s' on %s does not wait for '%s' on %s", kind, n->name, where(c, node),
                    g->nodes[producer].name, where(c, producer));
  }
  return SN_OK;
}

/* ---- V5 ------------------------------------------------------------------------------------ */

/* The value that owns the bytes: behind views, commits and what the plan puts in place. */
static uint32_t owner_of(const check *c, uint32_t value) {
  const sn_graph *g = c->g;
  for (size_t steps = 0; steps < g->n_values; steps++) {
    value = behind_views(g, value);
    const sn__value *v = &g->values[value];
    const sn__node *n = &g->nodes[v->node];
    int committed = (n->op->flags & SN_OP_COMMIT) != 0 ? n->op->commits[v->slot] - 1 : -1;
    uint32_t to = committed >= 0          ? n->in[committed]
                  : c->s->storage != NULL ? c->s->storage[value]
                                          : 0;
    if (to == 0 || to == value) return value;
    value = to;
  }
  return value;
}

static sn_status find_uses(check *c) {
  const sn_graph *g = c->g;
  uint32_t n_uses = 1;
  for (uint32_t i = 1; i < g->n_nodes; i++)
    for (uint32_t k = 0; k < g->nodes[i].n_in; k++) {
      uint32_t value = g->nodes[i].in[k];
      if (value == 0 || !scheduled(c, i)) continue;
      c->uses[n_uses] = (use){i, c->use_of[value]};
      c->use_of[value] = n_uses++;
    }
  for (uint32_t v = 1; v < g->n_values; v++) {
    if (c->s->storage != NULL && c->s->storage[v] >= g->n_values)
      return BROKEN("V5: '%s' takes over bytes of a value that is not there", g->values[v].name);
    c->storage[v] = owner_of(c, v);
    c->sibling[v] = c->group[c->storage[v]];
    c->group[c->storage[v]] = v;
  }
  return SN_OK;
}

/* Every reader of older values in the same bytes has ended when `value`, made by `writer`, is
 * written. A value is newer when the writer has ended before its own producer starts. */
static sn_status check_overwrite(const check *c, uint32_t writer, uint32_t value) {
  const sn_graph *g = c->g;
  for (uint32_t old = c->group[c->storage[value]]; old != 0; old = c->sibling[old]) {
    uint32_t real = behind_views(g, old), producer = g->values[real].node;
    if (real == value) continue;
    if (scheduled(c, producer) && before(c, writer, producer)) continue;
    for (uint32_t u = c->use_of[old]; u != 0; u = c->uses[u].next) {
      uint32_t reader = c->uses[u].node;
      if (reader == writer || before(c, reader, writer)) continue;
      return BROKEN("V5: '%s' on %s overwrites '%s' while %s '%s' on %s may still read it",
                    g->nodes[writer].name, where(c, writer), g->values[old].name,
                    (g->nodes[reader].op->flags & SN_OP_COPY) != 0 ? "copy" : "node",
                    g->nodes[reader].name, where(c, reader));
    }
  }
  return SN_OK;
}

static sn_status run_checks(check *c) {
  SN_TRY(make_clocks(c));
  SN_TRY(find_uses(c));
  for (uint32_t i = 1; i < c->g->n_nodes; i++)
    if (scheduled(c, i)) SN_TRY(check_inputs(c, i));
  for (uint32_t i = 1; i < c->g->n_nodes; i++)
    for (uint32_t o = 0; scheduled(c, i) && o < c->g->nodes[i].n_out; o++)
      if (c->storage[c->g->nodes[i].out[o]] != c->g->nodes[i].out[o])
        SN_TRY(check_overwrite(c, i, c->g->nodes[i].out[o]));
  return SN_OK;
}

static void *numbers(sn__arena *arena, size_t count, size_t size) {
  size_t bytes;
  return sn__size_mul(count + 1, size, &bytes) ? sn__arena_alloc(arena, bytes) : NULL;
}

sn_status sn__verify_schedule(const sn_graph *placed, const sn_topology *topology,
                              const sn__schedule_view *view) {
  check c = {.g = placed, .t = topology, .s = view};
  sn__arena arena = {NULL};
  size_t nodes = placed->n_nodes, values = placed->n_values, inputs = 0, cells;
  for (size_t i = 1; i < nodes; i++)
    inputs += placed->nodes[i].n_in;
  sn_status status = SN_OK;
  if (!sn__size_mul(nodes, view->n_queues, &cells))
    status = sn_status_out_of_memory();
  else if ((c.clocks = numbers(&arena, cells, sizeof *c.clocks)) == NULL ||
           (c.after = numbers(&arena, nodes, sizeof *c.after)) == NULL ||
           (c.wait_first = numbers(&arena, nodes + 1, sizeof *c.wait_first)) == NULL ||
           (c.wait_list = numbers(&arena, view->n_waits, sizeof *c.wait_list)) == NULL ||
           (c.state = numbers(&arena, nodes, sizeof *c.state)) == NULL ||
           (c.stack = numbers(&arena, nodes, sizeof *c.stack)) == NULL ||
           (c.use_of = numbers(&arena, values, sizeof *c.use_of)) == NULL ||
           (c.uses = numbers(&arena, inputs + 1, sizeof *c.uses)) == NULL ||
           (c.storage = numbers(&arena, values, sizeof *c.storage)) == NULL ||
           (c.group = numbers(&arena, values, sizeof *c.group)) == NULL ||
           (c.sibling = numbers(&arena, values, sizeof *c.sibling)) == NULL)
    status = sn_status_out_of_memory();
  else
    status = run_checks(&c);
  sn__arena_free(&arena);
  return status;
}
