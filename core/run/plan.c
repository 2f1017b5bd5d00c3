/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "core/run/race.h"
#include "core/run/run_impl.h"
#include "core/verify.h"

/* ---- extents ------------------------------------------------------------------------------- */

sn_status sn__extents_apply(const sn_graph *g, const sn_extent *extents, size_t n,
                            int64_t *capacity) {
  for (size_t i = 0; i < n; i++) {
    size_t s = 0;
    while (s < g->n_symbols && strcmp(g->symbols[s].name, extents[i].symbol) != 0)
      s++;
    if (s == g->n_symbols)
      return sn_status_make(SN_CODE_INVALID, "the graph has no symbol '%s'", extents[i].symbol);
    if (extents[i].count < 0)
      return sn_status_make(SN_CODE_INVALID, "extent '%s' is %lld", extents[i].symbol,
                            (long long)extents[i].count);
    capacity[s] = extents[i].count;
  }
  return SN_OK;
}

bool sn__plan_uses_symbol(const sn_plan *plan, uint32_t symbol) {
  const sn_graph *g = plan->graph;
  for (size_t v = 1; v < g->n_values; v++) {
    const sn__value *value = &g->values[v];
    if (!plan->schedule->needed[value->node]) continue;
    for (int32_t d = 0; d < value->shape.rank; d++)
      if (sn_dim_is_symbolic(value->shape.dims[d]) &&
          (uint32_t)sn_dim_symbol(value->shape.dims[d]) == symbol)
        return true;
  }
  /* Kernels may size a workspace by the longest row, which no shape shows. */
  const sn__symbol *s = &g->symbols[symbol];
  return s->kind == SN_SYMBOL_LONGEST &&
         sn__plan_uses_symbol(plan, g->raggeds[s->ragged].elements_symbol);
}

int64_t sn__plan_extent(const sn_plan *p, uint32_t symbol) {
  return p->capacity[symbol] >= 0 ? p->capacity[symbol]
                                  : sn__usual_extent(&p->graph->symbols[symbol]);
}

/* ---- making -------------------------------------------------------------------------------- */

static void add_fetch(sn_plan *p, uint32_t value) {
  for (size_t i = 0; i < p->n_fetches; i++)
    if (p->fetches[i] == value) return;
  if (value != 0) p->fetches[p->n_fetches++] = value;
}

static sn_status collect_fetches(sn_plan *p, const sn_plan_options *o) {
  const sn_graph *g = p->graph;
  p->fetches = sn__calloc(o->n_fetches + g->n_outputs + g->n_losses + 4, sizeof *p->fetches);
  if (p->fetches == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < o->n_fetches; i++) {
    if (o->fetches[i].index == 0 || o->fetches[i].index >= g->n_values)
      return sn_status_make(SN_CODE_INVALID, "fetch %zu is no value of the graph", i);
    add_fetch(p, o->fetches[i].index);
  }
  for (size_t i = 0; i < g->n_outputs && !o->no_outputs; i++)
    add_fetch(p, g->outputs[i].value);
  for (size_t i = 0; i < g->n_losses && !o->no_losses; i++)
    add_fetch(p, g->losses[i].sum);
  if (!o->training || g->scalars.finite == 0) return SN_OK;
  p->finite = g->scalars.finite;
  add_fetch(p, g->scalars.finite);
  add_fetch(p, g->scalars.norm);
  add_fetch(p, g->scalars.rate);
  return SN_OK;
}

/* Fetches are read when the step has ended, so one of a variable would show its new state. */
static sn_status check_fetches(const sn_plan *p) {
  const sn_graph *g = p->graph;
  for (size_t i = 0; i < p->n_fetches; i++) {
    uint32_t value = sn__value_behind_views(g, p->fetches[i]);
    if (p->training && g->values[value].kind == SN_VALUE_VARIABLE)
      return sn_status_make(SN_CODE_INVALID,
                            "'%s' is a variable: read it from the store, not by a fetch",
                            g->values[value].name);
  }
  return SN_OK;
}

/* A device of the topology that runs the op, or NULL. */
static const char *who_runs(const sn_plan *p, const sn_op_def *op, sn_dtype dtype) {
  for (int d = 0; d < p->topology->n_devices; d++)
    if (sn__device_kernel(p->topology->devices[d].kind, op, dtype) != NULL)
      return p->topology->devices[d].name;
  return NULL;
}

/* Devices of a kind that is not here are planned for as if they had every kernel. */
static sn_status check_kernels(const sn_plan *p) {
  const sn_graph *g = p->graph;
  for (uint32_t t = 0; t < p->schedule->n_tasks; t++) {
    const sn__node *n = &g->nodes[p->schedule->tasks[t].node];
    const sn_device_desc *device = &p->topology->devices[n->device];
    const sn_dtype dtype = n->n_out > 0 ? g->values[n->out[0]].dtype : SN_DTYPE_NONE;
    if ((n->op->flags & SN_OP_COPY) != 0 || !sn__device_kind_here(device->kind) ||
        sn__device_kernel(device->kind, n->op, dtype) != NULL)
      continue;
    const char *other = who_runs(p, n->op, dtype);
    return sn_status_make(
        SN_CODE_CONFIG, "op %s ('%s', %s) has no kernel on %s; put module '%s' on %s%s",
        n->op->name, n->name, sn_dtype_name(dtype), device->name, g->modules[n->module].path,
        other != NULL ? other : "a CPU device", other != NULL ? ", which has one" : "");
  }
  return SN_OK;
}

sn__schedule_options sn__plan_schedule_options(const sn_plan *p) {
  return (sn__schedule_options){
      .fetches = p->fetches, .n_fetches = p->n_fetches, .commits = p->training};
}

/* The verifier's view of a schedule and of what the memory plan lets take over whose bytes. */
static sn_status verify_schedule(const sn_plan *p, const sn__memory *m) {
  const sn_graph *g = p->graph;
  const sn__schedule *s = p->schedule;
  sn__arena scratch = {NULL};
  uint32_t *queue = sn__arena_alloc(&scratch, g->n_nodes * sizeof *queue);
  uint32_t *position = sn__arena_alloc(&scratch, g->n_nodes * sizeof *position);
  uint32_t *storage = sn__arena_alloc(&scratch, g->n_values * sizeof *storage);
  sn__wait_edge *waits = sn__arena_alloc(&scratch, (s->n_waits + 1) * sizeof *waits);
  if (queue == NULL || position == NULL || storage == NULL || waits == NULL) {
    sn__arena_free(&scratch);
    return sn_status_out_of_memory();
  }
  for (size_t i = 0; i < g->n_nodes; i++)
    queue[i] = s->task_of[i] == 0 ? SN__NOT_SCHEDULED : s->tasks[s->task_of[i] - 1].queue;
  for (uint32_t t = 0; t < s->n_tasks; t++) {
    const sn__task *task = &s->tasks[t];
    const sn__node *n = &g->nodes[task->node];
    position[task->node] = task->position;
    for (uint32_t w = task->first_wait; w < task->first_wait + task->n_waits; w++) {
      uint32_t on = s->queue_tasks[s->queue_first[s->waits[w].queue] + s->waits[w].position];
      waits[w] = (sn__wait_edge){task->node, s->tasks[on].node};
    }
    for (uint32_t o = 0; o < n->n_out; o++)
      if (sn__memory_in_place(m, n, o)) storage[n->out[o]] = n->in[n->op->inplace[o] - 1];
  }
  sn__schedule_view view = {s->n_queues, queue, position, waits, s->n_waits, storage};
  sn_status status = sn__verify_schedule(g, p->topology, &view);
  sn__arena_free(&scratch);
  return status;
}

sn_status sn__plan_memory(const sn_plan *p, const int64_t *capacity, sn__memory **out_memory) {
  sn__schedule_options options = sn__plan_schedule_options(p);
  sn__memory *memory = NULL;
  SN_TRY(sn__memory_build(p->graph, p->schedule, capacity, &options, &memory));
  sn_status status = verify_schedule(p, memory);
  if (status == SN_OK)
    status = sn__race_check_plan(p->graph, p->topology, p->schedule, memory, capacity, &options);
  if (status != SN_OK) {
    sn__memory_free(memory);
    return status;
  }
  *out_memory = memory;
  return SN_OK;
}

static sn_status make_schedule(sn_plan *p) {
  const sn_graph *g = p->graph;
  sn__schedule_options options = sn__plan_schedule_options(p);
  int64_t *extents = sn__calloc(g->n_symbols, sizeof *extents);
  if (extents == NULL) return sn_status_out_of_memory();
  for (uint32_t s = 0; s < g->n_symbols; s++)
    extents[s] = sn__plan_extent(p, s);
  sn_status status = sn__schedule_build(g, p->topology, extents, &options, &p->schedule);
  sn__free(extents);
  return status;
}

static sn_status make_memory(sn_plan *p) {
  const sn_graph *g = p->graph;
  for (uint32_t s = 0; s < g->n_symbols; s++) {
    if (p->capacity[s] >= 0) continue;
    if (sn__plan_uses_symbol(p, s)) return SN_OK; /* sessions plan when they see a batch */
    p->capacity[s] = 0;
  }
  return sn__plan_memory(p, p->capacity, &p->memory);
}

/* What does not fit, where, and what would: of the values of a step about as many examples as the
 * memory beside the variables holds. */
static sn_status does_not_fit(const sn_plan *p, const sn_plan_device *d, uint64_t limit) {
  double values = (double)d->arena_bytes, variables = (double)d->variable_bytes;
  char has[SN__BYTES_SIZE], stays[SN__BYTES_SIZE], step[SN__BYTES_SIZE], all[SN__BYTES_SIZE];
  char remedy[160];
  int64_t rows = p->capacity[SN_SYMBOL_BATCH];
  double fit = ((double)limit - variables) / values * (double)rows;
  if (fit >= 1 && fit < (double)rows)
    snprintf(remedy, sizeof remedy, "a batch of about %.0f in place of %lld would fit", fit,
             (long long)rows);
  else
    snprintf(remedy, sizeof remedy, "%s would do; or spread the model over more devices",
             sn__bytes_enough((uint64_t)d->arena_bytes + d->variable_bytes, all));
  return sn_status_make(SN_CODE_OUT_OF_MEMORY,
                        "%s has %s, and the plan needs %s there for variables and slots and %s "
                        "for the values of a step; %s",
                        d->name, sn__bytes(limit, has), sn__bytes(d->variable_bytes, stays),
                        sn__bytes(d->arena_bytes, step), remedy);
}

static sn_status check_room(const sn_plan *p) {
  for (size_t i = 0; p->memory != NULL && i < sn_plan_device_count(p); i++) {
    sn_plan_device d = sn_plan_device_at(p, i);
    uint64_t limit = p->topology->devices[i].memory_bytes;
    if (limit != 0 && (uint64_t)d.arena_bytes + d.variable_bytes > limit)
      return does_not_fit(p, &d, limit);
  }
  return SN_OK;
}

static sn_status make(sn_plan *p, const sn_graph *graph, const sn_topology *topology,
                      const sn_plan_options *o) {
  SN_TRY(sn__verify(graph, topology));
  SN_TRY(sn__graph_clone(graph, &p->graph));
  SN_TRY(sn_topology_copy(topology, &p->topology));
  p->training = o->training;
  p->capacity = sn__calloc(p->graph->n_symbols, sizeof *p->capacity);
  if (p->capacity == NULL) return sn_status_out_of_memory();
  for (size_t s = 0; s < p->graph->n_symbols; s++)
    p->capacity[s] = -1;
  SN_TRY(sn__extents_apply(p->graph, o->extents, o->n_extents, p->capacity));
  SN_TRY(collect_fetches(p, o));
  SN_TRY(check_fetches(p));
  SN_TRY(make_schedule(p));
  SN_TRY(check_kernels(p));
  SN_TRY(make_memory(p));
  return check_room(p);
}

sn_status sn_plan_create(const sn_graph *graph, const sn_topology *topology,
                         const sn_plan_options *options, sn_plan **out_plan) {
  sn_plan_options o;
  SN_TRY(sn_options_read(options, sizeof o, "sn_plan_create", &o));
  sn_plan *p = sn__calloc(1, sizeof *p);
  if (p == NULL) return sn_status_out_of_memory();
  sn_status status = make(p, graph, topology, &o);
  if (status != SN_OK) {
    sn_plan_free(p);
    return sn_status_context(status, "plan");
  }
  *out_plan = p;
  return SN_OK;
}

void sn_plan_free(sn_plan *p) {
  if (p == NULL) return;
  sn__memory_free(p->memory);
  sn__schedule_free(p->schedule);
  sn_topology_free(p->topology);
  sn_graph_free(p->graph);
  sn__free(p->fetches);
  sn__free(p->capacity);
  sn__free(p);
}

/* ---- looking ------------------------------------------------------------------------------- */

size_t sn_plan_device_count(const sn_plan *p) {
  return (size_t)p->topology->n_devices;
}

sn_plan_device sn_plan_device_at(const sn_plan *p, size_t i) {
  if (i >= sn_plan_device_count(p)) return (sn_plan_device){0};
  const sn_graph *g = p->graph;
  sn_plan_device d = {.name = p->topology->devices[i].name};
  for (uint32_t q = 0; p->memory != NULL && q < SN__QUEUE_COUNT; q++) {
    const sn__arena_plan *arena = &p->memory->arenas[i * SN__QUEUE_COUNT + q];
    d.arena_bytes += arena->bytes;
    d.live_bytes += arena->live_bytes;
    if (q == SN__QUEUE_COPY) d.copy_bytes = arena->bytes;
  }
  for (uint32_t t = 0; t < p->schedule->n_tasks; t++) {
    const sn__task *task = &p->schedule->tasks[t];
    if ((size_t)sn__task_device(task) != i) continue;
    d.nodes++;
    if (task->queue % SN__QUEUE_COUNT == SN__QUEUE_COMPUTE) d.busy_ns += task->cost_ns;
  }
  for (size_t v = 0; v < g->n_variables; v++) {
    const sn__node *n = &g->nodes[g->values[g->variables[v].value].node];
    size_t bytes = 0;
    if ((size_t)n->device == i && p->schedule->needed[g->values[g->variables[v].value].node] &&
        sn__value_bytes(g, g->variables[v].value, p->capacity, &bytes))
      d.variable_bytes += bytes;
  }
  return d;
}

size_t sn_plan_node_count(const sn_plan *p) {
  return p->schedule->n_tasks;
}

sn_plan_node sn_plan_node_at(const sn_plan *p, size_t i) {
  static const char *const phases[] = {"forward", "backward", "update"};
  if (i >= p->schedule->n_tasks) return (sn_plan_node){.device = -1};
  const sn__task *t = &p->schedule->tasks[i];
  const sn__node *n = &p->graph->nodes[t->node];
  return (sn_plan_node){.node = t->node,
                        .name = n->name,
                        .op = n->op->name,
                        .module = p->graph->modules[n->module].path,
                        .phase = phases[n->phase],
                        .device = n->device,
                        .cause = n->cause,
                        .copy = (n->op->flags & SN_OP_COPY) != 0,
                        .order = t->position,
                        .n_waits = t->n_waits,
                        .start_ns = t->start_ns,
                        .finish_ns = t->finish_ns};
}

size_t sn_plan_wait(const sn_plan *p, size_t i, size_t wait) {
  const sn__schedule *s = p->schedule;
  if (i >= s->n_tasks || wait >= s->tasks[i].n_waits) return s->n_tasks;
  const sn__queue_point *w = &s->waits[s->tasks[i].first_wait + wait];
  return s->queue_tasks[s->queue_first[w->queue] + w->position];
}

int64_t sn_plan_step_ns(const sn_plan *p) {
  return p->schedule->makespan_ns + sn__step_cost_ns(p->topology);
}

bool sn_plan_is_training(const sn_plan *p) {
  return p->training;
}

size_t sn_plan_symbol_count(const sn_plan *p) {
  return p->graph->n_symbols;
}

const char *sn_plan_symbol(const sn_plan *p, size_t i) {
  return i < p->graph->n_symbols ? p->graph->symbols[i].name : NULL;
}
