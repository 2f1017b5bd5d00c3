/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/values.h"

#include <string.h>

enum { USUAL_ROWS = 32, USUAL_LENGTH = 16 };

/* What takes longer counts as this long (some hours), so that sums over a step cannot overflow: a
 * link may have no rate at all. */
static const int64_t most_ns = (int64_t)10000000000000;

uint32_t sn__value_behind_views(const sn_graph *g, uint32_t value) {
  for (;;) {
    const sn__node *n = &g->nodes[g->values[value].node];
    if ((n->op->flags & SN_OP_VIEW) == 0 || g->values[value].slot != 0) return value;
    value = n->in[0];
  }
}

uint32_t sn__value_storage(const sn_graph *g, uint32_t value) {
  for (;;) {
    value = sn__value_behind_views(g, value);
    const sn__node *n = &g->nodes[g->values[value].node];
    int input = (n->op->flags & SN_OP_COMMIT) != 0 ? n->op->commits[g->values[value].slot] : 0;
    if (input == 0) return value;
    value = n->in[input - 1];
  }
}

bool sn__value_bytes(const sn_graph *g, uint32_t value, const int64_t *extents, size_t *out) {
  const sn__value *v = &g->values[value];
  sn_shape shape = sn__shape_resolve(&v->shape, extents);
  int64_t count = 0;
  return sn__shape_count(&shape, &count) &&
         sn__size_mul((size_t)count, sn_dtype_size(v->dtype), out) && *out <= INT64_MAX / 4;
}

int64_t sn__usual_extent(const sn__symbol *s) {
  if (s->kind == SN_SYMBOL_ROWS) return USUAL_ROWS;
  return s->kind == SN_SYMBOL_ELEMENTS ? USUAL_ROWS * USUAL_LENGTH / 2 : USUAL_LENGTH;
}

/* ---- what is needed ------------------------------------------------------------------------ */

static void push(bool *needed, uint32_t *stack, size_t *top, uint32_t node) {
  if (node == 0 || needed[node]) return;
  needed[node] = true;
  stack[(*top)++] = node;
}

/* With a stack: a placed graph's copies stand elsewhere than their readers. */
sn_status sn__mark_needed(const sn_graph *g, const uint32_t *fetches, size_t n_fetches,
                          bool commits, bool *needed) {
  uint32_t *stack = sn__calloc(g->n_nodes, sizeof *stack);
  if (stack == NULL) return sn_status_out_of_memory();
  size_t top = 0;
  memset(needed, 0, g->n_nodes * sizeof *needed);
  for (size_t i = 0; i < n_fetches; i++)
    push(needed, stack, &top, g->values[fetches[i]].node);
  for (uint32_t i = 1; commits && i < g->n_nodes; i++)
    if ((g->nodes[i].op->flags & SN_OP_COMMIT) != 0) push(needed, stack, &top, i);
  while (top > 0) {
    const sn__node *n = &g->nodes[stack[--top]];
    for (uint32_t i = 0; i < n->n_in; i++)
      if (n->in[i] != 0) push(needed, stack, &top, g->values[n->in[i]].node);
  }
  sn__free(stack);
  return SN_OK;
}

/* ---- costs --------------------------------------------------------------------------------- */

static int64_t whole_ns(double seconds) {
  double ns = seconds * 1e9;
  if (!(ns > 0)) return 0;
  return ns > (double)most_ns ? most_ns : (int64_t)ns;
}

static sn_status too_large(const sn_graph *g, uint32_t value) {
  return sn_status_make(SN_CODE_INVALID, "'%s' is too large for memory; use a smaller batch",
                        g->values[value].name);
}

/* Each tensor once, read or written. */
static sn_status moved_bytes(const sn_graph *g, const sn__node *n, const int64_t *extents,
                             double *out_bytes) {
  *out_bytes = 0;
  for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
    uint32_t value = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
    size_t bytes = 0;
    if (value == 0) continue;
    if (!sn__value_bytes(g, value, extents, &bytes)) return too_large(g, value);
    *out_bytes += (double)bytes;
  }
  return SN_OK;
}

sn_status sn__node_work(const sn_graph *g, const int64_t *extents, uint32_t node, sn__cost *out) {
  const sn__node *n = &g->nodes[node];
  *out = (sn__cost){0, 0};
  SN_TRY(moved_bytes(g, n, extents, &out->bytes)); /* refuses what is too large for the row below */
  if (n->op->cost == NULL) return SN_OK;
  sn__tensor few[16], *tensors = few;
  uint32_t count = n->n_in + n->n_out;
  if (count > 16 && (tensors = sn__alloc(count * sizeof *tensors)) == NULL)
    return sn_status_out_of_memory();
  for (uint32_t i = 0; i < count; i++) {
    uint32_t value = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
    const sn__value *v = &g->values[value];
    tensors[i] = (sn__tensor){NULL, SN_DTYPE_NONE, {0, {0}}};
    if (value != 0)
      tensors[i] = (sn__tensor){NULL, v->dtype, sn__shape_resolve(&v->shape, extents)};
  }
  sn__step step = {.rows = extents[SN_SYMBOL_BATCH], .extents = extents, .training = true};
  sn__exec shapes = {.op = n->op,
                     .attrs = n->attrs,
                     .in = tensors,
                     .n_in = (int)n->n_in,
                     .out = tensors + n->n_in,
                     .n_out = (int)n->n_out,
                     .step = &step};
  *out = (sn__cost){0, 0};
  n->op->cost(&shapes, out);
  if (tensors != few) sn__free(tensors);
  return SN_OK;
}

int64_t sn__work_ns(const sn__cost *work, const sn_device_desc *device) {
  int64_t compute = whole_ns(work->flops / device->flops_per_s);
  int64_t memory = whole_ns(work->bytes / device->bytes_per_s);
  int64_t ns = device->launch_ns + (compute > memory ? compute : memory);
  return ns < 1 ? 1 : ns;
}

int64_t sn__copy_ns(const sn_topology *topology, int from, int to, uint64_t bytes) {
  int64_t ns = sn_topology_copy_ns(topology, from, to, bytes);
  return ns < 1 ? 1 : ns > most_ns ? most_ns : ns;
}

sn_status sn__node_cost_ns(const sn_graph *g, const sn_topology *topology, const int64_t *extents,
                           uint32_t node, int64_t *out_ns) {
  const sn__node *n = &g->nodes[node];
  *out_ns = 0;
  if (sn__node_is_source(n) || (n->op->flags & SN_OP_VIEW) != 0) return SN_OK;
  if ((n->op->flags & SN_OP_COPY) != 0) {
    size_t bytes = 0;
    if (!sn__value_bytes(g, n->in[0], extents, &bytes)) return too_large(g, n->in[0]);
    *out_ns = sn__copy_ns(topology, sn__producer(g, n->in[0])->device, n->device, bytes);
    return SN_OK;
  }
  sn__cost work;
  SN_TRY(sn__node_work(g, extents, node, &work));
  *out_ns = sn__work_ns(&work, &topology->devices[n->device]);
  return SN_OK;
}
