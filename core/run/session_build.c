/* SPDX-License-Identifier: Apache-2.0 */
/* What a session builds once, and what it refreshes every step. */
#include "core/run/session_impl.h"

#include <stdio.h>
#include <string.h>

#include "core/device/thread.h"

/* ---- running a task ------------------------------------------------------------------------ */

static sn_status run_work(void *arg, const sn__launch *at) {
  sn__work *w = arg;
  const sn_session *s = w->session;
  if (w->empty || (s->skip_commits && w->only_commits)) return SN_OK;
  if (s->checking) SN_TRY(sn__session_check_inputs(w));
  if (w->is_copy) return sn__transfer_now(&w->transfer);
  w->exec.team = at->team;
  w->exec.stream = at->stream;
  SN_TRY(w->kernel(&w->exec));
  return s->checking ? sn__session_check_outputs(w) : SN_OK;
}

static sn_status run_timed(void *arg, const sn__launch *at) {
  sn__work *w = arg;
  sn_node_time *time = &w->session->times[w - w->session->work];
  time->start_ns = (int64_t)sn__now_ns();
  sn_status status = run_work(arg, at);
  time->finish_ns = (int64_t)sn__now_ns();
  return status;
}

void sn__session_time_commands(sn_session *s, bool on) {
  for (uint32_t i = 0; i < s->plan->schedule->n_tasks; i++)
    s->commands[i].run = on ? run_timed : run_work;
}

/* ---- building ------------------------------------------------------------------------------ */

static void *take(sn_session *s, size_t count, size_t size) {
  size_t bytes = 0;
  if (!sn__size_mul(count + 1, size, &bytes)) return NULL;
  return sn__arena_alloc(&s->build, bytes);
}

static sn_status build_work(sn_session *s, uint32_t task, size_t *at) {
  const sn_graph *g = s->plan->graph;
  const sn__node *n = &g->nodes[s->plan->schedule->tasks[task].node];
  sn__work *w = &s->work[task];
  size_t length = strlen(n->op->name) + strlen(n->name) + 4;
  w->label = take(s, length, 1);
  if (w->label == NULL) return sn_status_out_of_memory();
  snprintf(w->label, length, "%s '%s'", n->op->name, n->name);
  w->session = s;
  w->node = n;
  w->kernel = sn__device_kernel(s->plan->topology->devices[n->device].kind, n->op,
                                n->n_out > 0 ? g->values[n->out[0]].dtype : SN_DTYPE_NONE);
  w->is_copy = (n->op->flags & SN_OP_COPY) != 0;
  w->only_commits = (n->op->flags & SN_OP_COMMIT) != 0;
  for (uint32_t o = 0; o < n->n_out; o++)
    if (n->op->commits[o] == 0) w->only_commits = false;
  w->exec = (sn__exec){.op = n->op,
                       .attrs = n->attrs,
                       .in = &s->tensors[*at],
                       .n_in = (int)n->n_in,
                       .out = &s->tensors[*at + n->n_in],
                       .n_out = (int)n->n_out,
                       .step = &s->parts[n->part],
                       .rng_key = n->rng_key};
  for (uint32_t i = 0; i < n->n_in + n->n_out; i++, (*at)++) {
    uint32_t value = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
    s->tensor_values[*at] = value;
    if (value != 0)
      s->tensors[*at] = (sn__tensor){NULL, g->values[value].dtype, g->values[value].shape};
  }
  return SN_OK;
}

static sn_status build_works(sn_session *s) {
  const sn__schedule *schedule = s->plan->schedule;
  for (uint32_t t = 0; t < schedule->n_tasks; t++) {
    const sn__node *n = &s->plan->graph->nodes[schedule->tasks[t].node];
    s->n_tensors += n->n_in + n->n_out;
  }
  s->work = take(s, schedule->n_tasks, sizeof *s->work);
  s->tensors = take(s, s->n_tensors, sizeof *s->tensors);
  s->tensor_values = take(s, s->n_tensors, sizeof *s->tensor_values);
  if (s->work == NULL || s->tensors == NULL || s->tensor_values == NULL)
    return sn_status_out_of_memory();
  size_t at = 0;
  for (uint32_t t = 0; t < schedule->n_tasks; t++)
    SN_TRY(build_work(s, t, &at));
  return SN_OK;
}

/* Which tensors change with extents, and which with the feeds. */
static sn_status build_patches(sn_session *s) {
  const sn_graph *g = s->plan->graph;
  s->dims = take(s, s->n_tensors * SN_MAX_RANK, sizeof *s->dims);
  s->input_tensors = take(s, s->n_tensors, sizeof *s->input_tensors);
  s->input_of = take(s, s->n_tensors, sizeof *s->input_of);
  if (s->dims == NULL || s->input_tensors == NULL || s->input_of == NULL)
    return sn_status_out_of_memory();
  for (size_t i = 0; i < s->n_tensors; i++) {
    uint32_t value = s->tensor_values[i];
    if (value == 0) continue;
    for (int32_t d = 0; d < s->tensors[i].shape.rank; d++) {
      int64_t dim = s->tensors[i].shape.dims[d];
      if (!sn_dim_is_symbolic(dim)) continue;
      uint32_t extent =
          sn__value_part(g, value) * (uint32_t)g->n_symbols + (uint32_t)sn_dim_symbol(dim);
      s->dims[s->n_dims++] = (sn__dim_patch){&s->tensors[i], d, extent, sn_dim_addend(dim)};
    }
    uint32_t storage = sn__value_storage(g, value);
    if (g->values[storage].kind != SN_VALUE_INPUT) continue;
    s->input_of[s->n_input_tensors] = g->values[storage].extra;
    s->input_tensors[s->n_input_tensors++] = &s->tensors[i];
  }
  return SN_OK;
}

/* A task signals when another queue waits for it, or when it is the last of its own. */
static bool *find_signals(sn_session *s) {
  const sn__schedule *sc = s->plan->schedule;
  bool *signals = take(s, sc->n_tasks, sizeof *signals);
  if (signals == NULL) return NULL;
  for (uint32_t w = 0; w < sc->n_waits; w++)
    signals[sc->queue_tasks[sc->queue_first[sc->waits[w].queue] + sc->waits[w].position]] = true;
  for (uint32_t q = 0; q < sc->n_queues; q++)
    if (sc->queue_first[q] < sc->queue_first[q + 1])
      signals[sc->queue_tasks[sc->queue_first[q + 1] - 1]] = true;
  return signals;
}

static sn_status build_commands(sn_session *s) {
  const sn__schedule *sc = s->plan->schedule;
  bool *signals = find_signals(s);
  size_t most = (size_t)sc->n_waits + sc->n_tasks;
  s->commands = take(s, sc->n_tasks, sizeof *s->commands);
  s->points = take(s, most, sizeof *s->points);
  s->point_patches = take(s, most, sizeof *s->point_patches);
  s->timelines = take(s, sc->n_queues, sizeof(sn__timeline *));
  if (s->machine->test_seed != 0)
    s->touched = take(s, s->n_tensors + sc->n_tasks, sizeof(sn__buffer *));
  if (signals == NULL || s->commands == NULL || s->points == NULL || s->point_patches == NULL ||
      s->timelines == NULL || (s->machine->test_seed != 0 && s->touched == NULL))
    return sn_status_out_of_memory();
  for (uint32_t i = 0; i < sc->n_tasks; i++) {
    uint32_t task = sc->queue_tasks[i];
    const sn__task *t = &sc->tasks[task];
    sn__command *c = &s->commands[i];
    *c = (sn__command){.label = s->work[task].label,
                       .waits = &s->points[s->n_points],
                       .n_waits = (int)t->n_waits,
                       .run = run_work,
                       .arg = &s->work[task]};
    for (uint32_t w = 0; w < t->n_waits; w++) {
      const sn__queue_point *p = &sc->waits[t->first_wait + w];
      s->point_patches[s->n_points++] = (sn__point_patch){p->queue, p->position};
    }
    if (!signals[task]) continue;
    c->signals = &s->points[s->n_points];
    c->n_signals = 1;
    s->point_patches[s->n_points++] = (sn__point_patch){t->queue, t->position};
  }
  return SN_OK;
}

sn_status sn__session_build(sn_session *s) {
  const sn_graph *g = s->plan->graph;
  s->n_parts = sn__graph_parts(g);
  s->parts = take(s, s->n_parts, sizeof *s->parts);
  s->extents = take(s, s->n_parts * g->n_symbols, sizeof *s->extents);
  s->capacity = take(s, g->n_symbols, sizeof *s->capacity);
  s->wanted = take(s, s->n_parts * g->n_symbols, sizeof *s->wanted);
  s->variables = take(s, g->n_variables, sizeof(sn__buffer *));
  s->constants = take(s, g->n_constants, sizeof(sn__buffer *));
  s->inputs = take(s, g->n_inputs, sizeof *s->inputs);
  s->raggeds = take(s, s->n_parts * g->n_raggeds, sizeof *s->raggeds);
  s->loss_weights = take(s, g->n_losses, sizeof *s->loss_weights);
  if (s->parts == NULL || s->extents == NULL || s->capacity == NULL || s->wanted == NULL ||
      s->variables == NULL || s->constants == NULL || s->inputs == NULL || s->raggeds == NULL ||
      s->loss_weights == NULL)
    return sn_status_out_of_memory();
  for (uint32_t p = 0; p < s->n_parts; p++) {
    s->parts[p].extents = sn__session_extents(s, s->extents, p);
    s->parts[p].training = s->plan->training;
  }
  SN_TRY(build_works(s));
  SN_TRY(build_patches(s));
  return build_commands(s);
}

/* ---- where things are ---------------------------------------------------------------------- */

/* The plan is const to a session, but a place's host side is only read when it is the source. */
static void *readable(const void *data) {
  return (void *)(uintptr_t)data;
}

sn__place sn__session_place(const sn_session *s, uint32_t value) {
  const sn_graph *g = s->plan->graph;
  uint32_t storage = sn__value_storage(g, value);
  const sn__value *v = &g->values[storage];
  switch (v->kind) {
  case SN_VALUE_VARIABLE: return (sn__place){.buffer = s->variables[v->extra]};
  case SN_VALUE_CONSTANT:
    if (s->constants[v->extra] != NULL) return (sn__place){.buffer = s->constants[v->extra]};
    return (sn__place){.host = readable(g->constants[v->extra].data)};
  case SN_VALUE_INPUT:
    if (s->inputs[v->extra].in_buffer) return (sn__place){.buffer = s->inputs[v->extra].buffer};
    return (sn__place){.host = readable(s->inputs[v->extra].data)};
  default: break;
  }
  const sn__block *block = &s->memory->blocks[s->memory->block_of[storage]];
  return (sn__place){.buffer = s->turns->arenas[block->arena], .offset = block->offset};
}

/* What a kernel is given: an address of the host's, or of the device's own. */
static void *address(sn__place place) {
  if (place.buffer == NULL) return place.host;
  char *base = place.buffer->host != NULL ? place.buffer->host : place.buffer->handle;
  return base + place.offset;
}

static void list_touched(sn_session *s) {
  const sn__schedule *sc = s->plan->schedule;
  sn__buffer **at = s->touched;
  for (uint32_t i = 0; i < sc->n_tasks; i++) {
    uint32_t task = sc->queue_tasks[i];
    const sn__node *n = s->work[task].node;
    s->commands[i].buffers = at;
    for (uint32_t k = 0; k < n->n_in + n->n_out; k++) {
      uint32_t value = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
      sn__place place = value == 0 ? (sn__place){0} : sn__session_place(s, value);
      if (place.buffer != NULL) *at++ = place.buffer;
    }
    int32_t workspace = s->memory->workspace[task];
    if (workspace != SN__NO_BLOCK) *at++ = s->turns->arenas[s->memory->blocks[workspace].arena];
    s->commands[i].n_buffers = (int)(at - s->commands[i].buffers);
  }
}

void sn__session_rebind(sn_session *s) {
  const sn__schedule *sc = s->plan->schedule;
  const sn__memory *m = s->memory;
  for (size_t i = 0; i < s->n_tensors; i++)
    if (s->tensor_values[i] != 0)
      s->tensors[i].data = address(sn__session_place(s, s->tensor_values[i]));
  for (uint32_t t = 0; t < sc->n_tasks; t++) {
    sn__work *w = &s->work[t];
    w->exec.workspace = NULL;
    w->exec.workspace_size = m->workspace_bytes[t];
    if (m->workspace[t] != SN__NO_BLOCK) {
      const sn__block *b = &m->blocks[m->workspace[t]];
      w->exec.workspace =
          address((sn__place){.buffer = s->turns->arenas[b->arena], .offset = b->offset});
    }
    if (w->is_copy) w->transfer.to = sn__session_place(s, w->node->out[0]);
  }
}

/* ---- every step ---------------------------------------------------------------------------- */

static bool has_element(const sn__work *w) {
  for (int o = 0; o < w->exec.n_out; o++)
    if (sn__shape_size(&w->exec.out[o].shape) > 0) return true;
  return false;
}

void sn__session_refresh(sn_session *s) {
  uint32_t n_tasks = s->plan->schedule->n_tasks;
  for (size_t i = 0; i < s->n_input_tensors; i++) {
    const sn__input_state *in = &s->inputs[s->input_of[i]];
    s->input_tensors[i]->data =
        in->in_buffer ? address((sn__place){.buffer = in->buffer}) : readable(in->data);
  }
  if (!s->shapes_known)
    for (size_t i = 0; i < s->n_dims; i++) {
      const sn__dim_patch *p = &s->dims[i];
      p->tensor->shape.dims[p->dim] = s->extents[p->extent] + p->addend;
    }
  for (uint32_t t = 0; t < n_tasks; t++) {
    sn__work *w = &s->work[t];
    if (!s->shapes_known) w->empty = !has_element(w);
    if (!w->is_copy) continue;
    w->transfer.from = sn__session_place(s, w->node->in[0]);
    w->transfer.bytes =
        (size_t)sn__shape_size(&w->exec.out[0].shape) * sn_dtype_size(w->exec.out[0].dtype);
  }
  s->shapes_known = true;
  if (s->touched != NULL) list_touched(s);
}
