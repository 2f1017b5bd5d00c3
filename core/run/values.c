/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/values.h"

#include <stdio.h>
#include <string.h>

#include "core/precision.h"

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
  *out = (sn__cost){.flops = 0};
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
  *out = (sn__cost){.flops = 0};
  n->op->cost(&shapes, out);
  if (tensors != few) sn__free(tensors);
  return SN_OK;
}

static double compute_seconds(const sn__cost *work, const sn_device_desc *device) {
  if (device->bf16_flops_per_s <= 0) return work->flops / device->flops_per_s;
  return (work->flops - work->bf16_flops) / device->flops_per_s +
         work->bf16_flops / device->bf16_flops_per_s;
}

int64_t sn__work_ns(const sn__cost *work, const sn_device_desc *device) {
  int64_t compute = whole_ns(compute_seconds(work, device));
  int64_t memory = whole_ns(work->bytes / device->bytes_per_s);
  int64_t ns = device->launch_ns + (compute > memory ? compute : memory);
  return ns < 1 ? 1 : ns;
}

/* ---- how a profile names things ------------------------------------------------------------- */

static void put_shape(const sn__value *v, char *out, size_t size) {
  size_t used = (size_t)snprintf(out, size, "%s[", sn_dtype_name(v->dtype));
  for (int32_t d = 0; d < v->shape.rank && used < size; d++) {
    const char *comma = d > 0 ? "," : "";
    if (sn_dim_is_symbolic(v->shape.dims[d]))
      used += (size_t)snprintf(out + used, size - used, "%s*", comma);
    else
      used +=
          (size_t)snprintf(out + used, size - used, "%s%lld", comma, (long long)v->shape.dims[d]);
  }
  if (used < size) snprintf(out + used, size - used, "]");
}

void sn__profile_shapes(const sn_graph *g, uint32_t node, char out[SN_PROFILE_TEXT_SIZE]) {
  const sn__node *n = &g->nodes[node];
  const int64_t *precision = sn__node_precision(n);
  const bool bf16 = precision != NULL && *precision == SN_PRECISION_BF16;
  size_t used = (size_t)snprintf(out, SN_PROFILE_TEXT_SIZE, "%s", bf16 ? "bf16 " : "");
  for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
    uint32_t value = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
    char shape[128] = "-";
    if (value != 0) put_shape(&g->values[value], shape, sizeof shape);
    const char *before = i == n->n_in ? (i > 0 ? " > " : "> ") : i > 0 ? " " : "";
    if (used + strlen(shape) + 32 > SN_PROFILE_TEXT_SIZE) { /* a long n-ary op: how many more */
      snprintf(out + used, SN_PROFILE_TEXT_SIZE - used, " +%u", n->n_in + n->n_out - i);
      return;
    }
    used += (size_t)snprintf(out + used, SN_PROFILE_TEXT_SIZE - used, "%s%s", before, shape);
  }
}

void sn__profile_device(const sn_device_desc *d, char out[SN_PROFILE_TEXT_SIZE]) {
  snprintf(out, SN_PROFILE_TEXT_SIZE, "%s/%d", sn_device_kind_name(d->kind), d->threads);
}

void sn__profile_link(const sn_topology *t, int from, int to, char out[SN_PROFILE_TEXT_SIZE]) {
  const sn_device_desc *a = &t->devices[from], *b = &t->devices[to];
  snprintf(out, SN_PROFILE_TEXT_SIZE, "%s/%d %s/%d", sn_device_kind_name(a->kind), a->threads,
           sn_device_kind_name(b->kind), b->threads);
}

double sn__profile_work(const sn__cost *work, const sn_device_desc *device) {
  double compute = 1e9 * compute_seconds(work, device);
  double memory = 1e9 * work->bytes / device->bytes_per_s;
  return compute > memory ? compute : memory;
}

/* ---- what things cost ----------------------------------------------------------------------- */

static int64_t bounded(double ns) {
  return ns < 1 ? 1 : ns > (double)most_ns ? most_ns : (int64_t)(ns + 0.5);
}

static sn_cost_source copy_cost(const sn_topology *t, int from, int to, uint64_t bytes,
                                int64_t *out_ns) {
  char link[SN_PROFILE_TEXT_SIZE];
  double ns = 0;
  sn_cost_source source = SN_COST_ANALYTIC;
  if (t->profile != NULL && from != to) {
    sn__profile_link(t, from, to, link);
    source =
        sn__profile_ns(t->profile, SN__PROFILE_COPY, SN__PROFILE_COPY, link, (double)bytes, &ns);
  }
  if (source != SN_COST_ANALYTIC) {
    *out_ns = bounded(ns);
    return source;
  }
  int64_t described = sn_topology_copy_ns(t, from, to, bytes);
  *out_ns = described < 1 ? 1 : described > most_ns ? most_ns : described;
  return source;
}

int64_t sn__copy_ns(const sn_topology *topology, int from, int to, uint64_t bytes) {
  int64_t ns = 0;
  copy_cost(topology, from, to, bytes, &ns);
  return ns;
}

sn_status sn__node_device_ns(const sn_graph *g, const sn_topology *topology, const int64_t *extents,
                             uint32_t node, int device, int64_t *out_ns,
                             sn_cost_source *out_source) {
  const sn__node *n = &g->nodes[node];
  sn_cost_source source = SN_COST_ANALYTIC;
  *out_ns = 0;
  if (out_source != NULL) *out_source = source;
  if (sn__node_is_source(n) || (n->op->flags & SN_OP_VIEW) != 0) return SN_OK;
  sn__cost work;
  SN_TRY(sn__node_work(g, extents, node, &work));
  const sn_device_desc *desc = &topology->devices[device];
  if (topology->profile != NULL) {
    char shapes[SN_PROFILE_TEXT_SIZE], name[SN_PROFILE_TEXT_SIZE];
    double ns = 0;
    sn__profile_shapes(g, node, shapes);
    sn__profile_device(desc, name);
    source = sn__profile_ns(topology->profile, n->op->name, shapes, name,
                            sn__profile_work(&work, desc), &ns);
    *out_ns = bounded(ns);
  }
  if (source == SN_COST_ANALYTIC) *out_ns = sn__work_ns(&work, desc);
  if (out_source != NULL) *out_source = source;
  return SN_OK;
}

sn_status sn__node_cost(const sn_graph *g, const sn_topology *topology, const int64_t *extents,
                        uint32_t node, int64_t *out_ns, sn_cost_source *out_source) {
  const sn__node *n = &g->nodes[node];
  if ((n->op->flags & SN_OP_COPY) == 0)
    return sn__node_device_ns(g, topology, extents, node, n->device, out_ns, out_source);
  size_t bytes = 0;
  if (!sn__value_bytes(g, n->in[0], extents, &bytes)) return too_large(g, n->in[0]);
  *out_source = copy_cost(topology, sn__producer(g, n->in[0])->device, n->device, bytes, out_ns);
  return SN_OK;
}

sn_status sn__node_cost_ns(const sn_graph *g, const sn_topology *topology, const int64_t *extents,
                           uint32_t node, int64_t *out_ns) {
  sn_cost_source source;
  return sn__node_cost(g, topology, extents, node, out_ns, &source);
}

int64_t sn__step_cost_ns(const sn_topology *t) {
  double ns = 0;
  sn_cost_source source =
      sn__profile_ns(t->profile, SN__PROFILE_STEP, SN__PROFILE_STEP, SN__PROFILE_STEP, 0, &ns);
  return source == SN_COST_ANALYTIC ? 0 : bounded(ns);
}
