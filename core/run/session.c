/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/session.h"

#include <string.h>

#include "core/device/thread.h"
#include "core/run/session_impl.h"

/* ---- room ---------------------------------------------------------------------------------- */

/* Makes the arenas as large as this session's plan needs; sessions that share them never shrink
 * one another's. */
static sn_status grow_arenas(sn_session *s) {
  sn__turns *turns = s->turns;
  for (uint32_t a = 0; a < s->memory->n_arenas; a++) {
    size_t bytes = s->memory->arenas[a].bytes;
    if (bytes == 0 || (turns->arenas[a] != NULL && turns->arenas[a]->bytes >= bytes)) continue;
    sn__buffer_free(turns->arenas[a]); /* first: never both at once */
    turns->arenas[a] = NULL;
    turns->changes++;
    SN_TRY(sn__device_alloc(s->machine->devices[a / SN__QUEUE_COUNT], bytes, &turns->arenas[a]));
  }
  return SN_OK;
}

/* Without memory the next step plans anew. */
static void drop_memory(sn_session *s) {
  sn__memory_free(s->own_memory);
  s->own_memory = NULL;
  s->memory = NULL;
  for (size_t i = 0; i < s->plan->graph->n_symbols; i++)
    s->capacity[i] = -1;
}

/* Takes `memory` (owned, or NULL: the plan's own) with its capacity into use. */
static sn_status use_memory(sn_session *s, sn__memory *memory, const int64_t *capacity) {
  sn__memory_free(s->own_memory);
  s->own_memory = memory;
  s->memory = memory != NULL ? memory : s->plan->memory;
  memmove(s->capacity, capacity, s->plan->graph->n_symbols * sizeof *capacity);
  sn_status status = grow_arenas(s);
  if (status != SN_OK) {
    drop_memory(s);
    return status;
  }
  s->replans++;
  s->changes_seen = s->turns->changes;
  sn__session_rebind(s);
  return SN_OK;
}

/* Another session of the turns may have changed the arenas. */
static sn_status keep_room(sn_session *s) {
  sn_status status = grow_arenas(s);
  if (status != SN_OK) {
    drop_memory(s);
    return status;
  }
  if (s->changes_seen != s->turns->changes) sn__session_rebind(s);
  s->changes_seen = s->turns->changes;
  return SN_OK;
}

/* The least number of the grid 1, 2, 3, 4, 5, 7, 9, 12... (times 1.25) that holds n. */
static int64_t on_grid(int64_t n) {
  int64_t grid = 1;
  while (grid < n)
    grid += grid < 4 ? 1 : grid / 4;
  return n == 0 ? 0 : grid;
}

/* One room does for each part of a batch. */
static int64_t most_wanted(const sn_session *s, size_t symbol) {
  int64_t most = 0;
  for (uint32_t p = 0; p < s->n_parts; p++) {
    int64_t wanted = sn__session_extents(s, s->wanted, p)[symbol];
    if (wanted > most) most = wanted;
  }
  return most;
}

/* The first batch gets exactly what it needs; growth goes by the grid, so that it is rare. */
static sn_status ensure_room(sn_session *s) {
  size_t n = s->plan->graph->n_symbols;
  bool fits = s->memory != NULL;
  for (size_t i = 0; i < n; i++)
    fits = fits && most_wanted(s, i) <= s->capacity[i];
  if (fits) return keep_room(s);
  int64_t *capacity = sn__calloc(n, sizeof *capacity);
  if (capacity == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    int64_t wanted = most_wanted(s, i);
    capacity[i] = s->capacity[i];
    if (wanted > capacity[i]) capacity[i] = s->memory == NULL ? wanted : on_grid(wanted);
  }
  sn__memory *memory = NULL;
  sn_status status = sn__plan_memory(s->plan, capacity, &memory);
  if (status == SN_OK) status = use_memory(s, memory, capacity);
  sn__free(capacity);
  return status;
}

/* ---- queues -------------------------------------------------------------------------------- */

static void free_timelines(sn_session *s) {
  for (uint32_t q = 0; s->timelines != NULL && q < s->plan->schedule->n_queues; q++) {
    sn__timeline_free(s->timelines[q]);
    s->timelines[q] = NULL;
  }
  s->timelines_ok = false;
}

static uint32_t queue_length(const sn_session *s, uint32_t q) {
  const sn__schedule *sc = s->plan->schedule;
  return sc->queue_first[q + 1] - sc->queue_first[q];
}

/* A timeline that has failed stays so: after a failure all begin anew. */
static sn_status ensure_timelines(sn_session *s) {
  if (s->timelines_ok) return SN_OK;
  free_timelines(s);
  for (uint32_t q = 0; q < s->plan->schedule->n_queues; q++)
    if (queue_length(s, q) > 0) SN_TRY(sn__timeline_create(s->base, &s->timelines[q]));
  s->timelines_ok = true;
  return SN_OK;
}

static void drain(sn_session *s) {
  for (int d = 0; d < s->plan->topology->n_devices; d++)
    sn__device_drain(s->machine->devices[d]);
  s->timelines_ok = false;
}

/* One batch for each queue. When one is refused, those behind it fail, so that nobody waits. */
static sn_status submit(sn_session *s) {
  const sn__schedule *sc = s->plan->schedule;
  SN_TRY(ensure_timelines(s));
  for (size_t i = 0; i < s->n_points; i++) {
    const sn__point_patch *p = &s->point_patches[i];
    s->points[i] = (sn__timepoint){s->timelines[p->queue], s->base + p->position + 1};
  }
  sn_status status = SN_OK;
  for (uint32_t q = 0; q < sc->n_queues; q++) {
    uint32_t n = queue_length(s, q);
    if (n == 0) continue;
    if (status == SN_OK)
      status = sn__device_submit(s->machine->devices[q / SN__QUEUE_COUNT],
                                 (sn__queue)(q % SN__QUEUE_COUNT), &s->commands[sc->queue_first[q]],
                                 (int)n);
    if (status != SN_OK) sn__timeline_fail(s->timelines[q], sn_status_copy(status));
  }
  if (status != SN_OK) drain(s);
  return status;
}

static sn_status join(sn_session *s) {
  sn_status status = SN_OK;
  for (uint32_t q = 0; status == SN_OK && q < s->plan->schedule->n_queues; q++) {
    uint32_t n = queue_length(s, q);
    if (n > 0) status = sn__timeline_wait(s->timelines[q], s->base + n, SN__FOREVER);
  }
  s->base += (uint64_t)s->plan->schedule->n_tasks + 1;
  if (status != SN_OK) drain(s);
  return status;
}

/* ---- the end of a step --------------------------------------------------------------------- */

static sn_status download(const sn_session *s, uint32_t value, void *to, size_t bytes) {
  sn__place from = sn__session_place(s, value);
  if (bytes == 0) return SN_OK;
  if (from.buffer == NULL) {
    memcpy(to, (const char *)from.host + from.offset, bytes);
    return SN_OK;
  }
  sn__transfer down = {.to = {.host = to}, .from = from, .bytes = bytes};
  return sn__transfer_now(&down);
}

/* The same step once more from variables that it left alone, with a look behind every op. */
static sn_status replay(sn_session *s) {
  bool was_checking = s->checking;
  s->skip_commits = s->checking = true;
  sn_status status = submit(s);
  if (status == SN_OK) status = join(s);
  s->checking = was_checking;
  if (status != SN_OK) return status;
  return sn_status_make(SN_CODE_NUMERIC,
                        "the norm of the gradients is not finite, though each of them is: lower "
                        "the learning rate or clip gradients");
}

static sn_status conclude(sn_session *s) {
  const sn_graph *g = s->plan->graph;
  SN_TRY(join(s));
  if (s->recording) s->record.joined_ns = (int64_t)sn__now_ns();
  if (s->plan->finite != 0) {
    uint8_t finite = 1;
    SN_TRY(download(s, s->plan->finite, &finite, sizeof finite));
    if (finite == 0)
      return sn_status_context(replay(s), "step %lld left the variables as they were",
                               (long long)s->parts[0].step);
  }
  if (s->advance) s->store->step++;
  for (size_t i = 0; i < s->n_fetches; i++) {
    const sn_fetch *f = &s->fetches[i];
    size_t bytes = 0;
    const int64_t *extents = sn__session_extents(s, s->extents, sn__value_part(g, f->value.index));
    if (!sn__value_bytes(g, f->value.index, extents, &bytes)) continue; /* was planned */
    SN_TRY(download(s, f->value.index, f->data, bytes));
  }
  return SN_OK;
}

static void finish(sn_session *s) {
  if (!s->in_flight) return;
  s->in_flight = false;
  s->failure = conclude(s);
  if (s->recording) s->record.ended_ns = (int64_t)sn__now_ns();
}

/* Whoever's step used the arenas last has to be through with them. */
static void take_turn(sn_session *s) {
  if (s->turns->active != NULL) finish(s->turns->active);
  s->turns->active = s;
}

static sn_status take_failure(sn_session *s) {
  sn_status status = s->failure;
  s->failure = SN_OK;
  return status;
}

/* ---- a step -------------------------------------------------------------------------------- */

static sn_status check_fetch(const sn_session *s, const sn_fetch *f) {
  const sn_graph *g = s->plan->graph;
  size_t i = 0, bytes = 0;
  while (i < s->plan->n_fetches && s->plan->fetches[i] != f->value.index)
    i++;
  if (i == s->plan->n_fetches)
    return sn_status_make(SN_CODE_INVALID, "'%s' was not among the fetches of the plan",
                          f->value.index < g->n_values && f->value.index > 0
                              ? g->values[f->value.index].name
                              : "(invalid)");
  const int64_t *wanted = sn__session_extents(s, s->wanted, sn__value_part(g, f->value.index));
  if (!sn__value_bytes(g, f->value.index, wanted, &bytes) || f->bytes < bytes)
    return sn_status_make(SN_CODE_INVALID,
                          "'%s' has %zu bytes this time; its fetch has room for "
                          "%zu",
                          g->values[f->value.index].name, bytes, f->bytes);
  return SN_OK;
}

static sn_status keep_fetches(sn_session *s, const sn_step_args *args) {
  s->n_fetches = 0;
  if (args->n_fetches == 0) return SN_OK;
  if (!sn__grow((void **)&s->fetches, &s->cap_fetches, args->n_fetches, sizeof *s->fetches))
    return sn_status_out_of_memory();
  for (size_t i = 0; i < args->n_fetches; i++)
    SN_TRY(check_fetch(s, &args->fetches[i]));
  memcpy(s->fetches, args->fetches, args->n_fetches * sizeof *s->fetches);
  s->n_fetches = args->n_fetches;
  return SN_OK;
}

static bool advances(const sn_session *s, const sn_step_args *args) {
  const sn_graph *g = s->plan->graph;
  if (!s->plan->training || args->no_commit || args->hold_step) return false;
  for (size_t i = 0; i < g->n_inputs; i++)
    if (g->inputs[i].role == SN_INPUT_STEP &&
        s->plan->schedule->needed[g->values[g->inputs[i].value].node])
      return true;
  return false;
}

static void set_extents(sn_session *s) {
  size_t bytes = s->n_parts * s->plan->graph->n_symbols * sizeof *s->extents;
  if (memcmp(s->extents, s->wanted, bytes) == 0) return;
  memcpy(s->extents, s->wanted, bytes);
  s->shapes_known = false;
}

/* Test mode: what an earlier step left behind must not be read. */
static void poison_arenas(sn_session *s) {
  for (uint32_t a = 0; s->machine->test_seed != 0 && a < s->plan->schedule->n_queues; a++)
    if (s->turns->arenas[a] != NULL && s->turns->arenas[a]->host != NULL)
      memset(s->turns->arenas[a]->host, 0xff, s->turns->arenas[a]->bytes);
}

static sn_status start(sn_session *s, const sn_step_args *args) {
  SN_TRY(sn__session_measure(s, args));
  SN_TRY(keep_fetches(s, args));
  SN_TRY(ensure_room(s));
  set_extents(s);
  SN_TRY(sn__session_stage(s, args));
  int64_t row_base = args->row_base;
  for (uint32_t p = 0; p < s->n_parts; p++) {
    s->parts[p].step = s->store->step;
    s->parts[p].row_base = row_base;
    s->parts[p].rows = sn__session_extents(s, s->extents, p)[SN_SYMBOL_BATCH];
    row_base += s->parts[p].rows;
  }
  s->skip_commits = args->no_commit;
  s->checking = s->check;
  s->advance = advances(s, args);
  sn__session_refresh(s);
  poison_arenas(s);
  return submit(s);
}

sn_status sn_session_step(sn_session *s, const sn_step_args *args, sn_timepoint *out_done) {
  sn_step_args known;
  SN_TRY(sn_options_read(args, sizeof known, "sn_session_step", &known));
  take_turn(s);
  SN_TRY(sn_status_context(take_failure(s), "the step before"));
  if (s->recording) s->record.began_ns = (int64_t)sn__now_ns();
  sn_status status = start(s, &known);
  if (s->recording) s->record.submitted_ns = (int64_t)sn__now_ns();
  if (status != SN_OK) return sn_status_context(status, "step");
  s->in_flight = true;
  *out_done = (sn_timepoint){++s->steps};
  return SN_OK;
}

sn_status sn_session_wait(sn_session *s, sn_timepoint done) {
  if (done.step > s->steps)
    return sn_status_make(SN_CODE_INVALID, "no step of this session ends at %llu",
                          (unsigned long long)done.step);
  if (done.step < s->steps) return SN_OK; /* a later step has started, so it has ended */
  finish(s);
  return take_failure(s);
}

sn_status sn_session_reserve(sn_session *s, const sn_extent *extents, size_t n_extents) {
  finish(s);
  if (s->turns->active != NULL) finish(s->turns->active); /* it may be at work in the arenas */
  const sn_graph *g = s->plan->graph;
  int64_t *capacity = sn__calloc(g->n_symbols, sizeof *capacity);
  if (capacity == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < g->n_symbols; i++)
    capacity[i] = -1;
  sn_status status = sn__extents_apply(g, extents, n_extents, capacity);
  bool known = true;
  for (uint32_t i = 0; i < g->n_symbols; i++) {
    if (capacity[i] < 0) capacity[i] = s->capacity[i];
    if (capacity[i] < 0 && !sn__plan_uses_symbol(s->plan, i)) capacity[i] = 0;
    known = known && capacity[i] >= 0;
  }
  sn__memory *memory = NULL;
  bool same =
      s->memory != NULL && memcmp(capacity, s->capacity, g->n_symbols * sizeof *capacity) == 0;
  if (same) {
    sn__free(capacity);
    return status;
  }
  if (status == SN_OK && known) {
    status = sn__plan_memory(s->plan, capacity, &memory);
    if (status == SN_OK) status = use_memory(s, memory, capacity);
  } else if (status == SN_OK) {
    memcpy(s->capacity, capacity, g->n_symbols * sizeof *capacity); /* the first batch completes */
  }
  sn__free(capacity);
  return status;
}

/* ---- life ---------------------------------------------------------------------------------- */

static sn_status check_machine(const sn_plan *plan, const sn_machine *machine) {
  const sn_topology *want = plan->topology, *have = machine->topology;
  bool same = want->n_devices == have->n_devices;
  for (int i = 0; same && i < want->n_devices; i++)
    same = strcmp(want->devices[i].name, have->devices[i].name) == 0;
  if (same) return SN_OK;
  return sn_status_make(SN_CODE_INVALID, "the plan was made for other devices than the machine's");
}

static sn_status bind_variables(sn_session *s) {
  const sn_graph *g = s->plan->graph;
  for (size_t i = 0; i < g->n_variables; i++) {
    const sn__value *v = &g->values[g->variables[i].value];
    if (!s->plan->schedule->needed[v->node]) continue;
    int64_t at = sn__store_index(s->store, g->variables[i].name);
    if (at < 0)
      return sn_status_make(SN_CODE_NOT_FOUND, "the store has no variable '%s'",
                            g->variables[i].name);
    const sn_stored *have = sn_store_at(s->store, (size_t)at);
    if (have->dtype != v->dtype || !sn_shape_equal(&have->shape, &v->shape))
      return sn_status_make(SN_CODE_INVALID,
                            "variable '%s' has another shape or type in the plan than in the store",
                            have->name);
    SN_TRY(sn__store_bind(s->store, (size_t)at, s->machine, g->nodes[v->node].device));
    s->variables[i] = s->store->items[at].buffer;
  }
  return SN_OK;
}

/* Devices that read host memory read the plan's own constants. */
static sn_status upload_constants(sn_session *s) {
  const sn_graph *g = s->plan->graph;
  for (size_t i = 0; i < g->n_constants; i++) {
    const sn__constant *c = &g->constants[i];
    const sn__node *n = &g->nodes[g->values[c->value].node];
    if (!s->plan->schedule->needed[g->values[c->value].node] ||
        s->plan->topology->devices[n->device].kind == SN_DEVICE_CPU)
      continue;
    SN_TRY(sn__device_alloc(s->machine->devices[n->device], c->bytes, &s->constants[i]));
    sn__transfer up = {
        .to = {.buffer = s->constants[i]}, .from = {.host = c->data}, .bytes = c->bytes};
    SN_TRY(sn__transfer_now(&up));
  }
  return SN_OK;
}

static sn_status join_turns(sn_session *s, sn_session *share) {
  uint32_t n = s->plan->schedule->n_queues;
  if (share != NULL && share->machine != s->machine)
    return sn_status_make(SN_CODE_INVALID, "sessions on two machines cannot share arenas");
  if (share != NULL) {
    take_turn(share);
    s->turns = share->turns;
  } else {
    s->turns = sn__calloc(1, sizeof *s->turns + n * sizeof(sn__buffer *));
    if (s->turns == NULL) return sn_status_out_of_memory();
    s->turns->n_arenas = n;
  }
  s->turns->sessions++;
  return SN_OK;
}

static void leave_turns(sn_session *s) {
  sn__turns *turns = s->turns;
  if (turns == NULL) return;
  if (turns->active == s) turns->active = NULL;
  if (--turns->sessions > 0) return;
  for (uint32_t a = 0; a < turns->n_arenas; a++)
    sn__buffer_free(turns->arenas[a]);
  sn__free(turns);
}

static sn_status open_session(sn_session *s, const sn_session_options *options) {
  SN_TRY(check_machine(s->plan, s->machine));
  SN_TRY(join_turns(s, options->share));
  SN_TRY(sn__session_build(s));
  s->check = options->check;
  for (uint32_t p = 0; p < s->n_parts; p++)
    s->parts[p].seed = options->seed != 0 ? options->seed : s->store->seed;
  SN_TRY(bind_variables(s));
  SN_TRY(upload_constants(s));
  SN_TRY(ensure_timelines(s));
  memcpy(s->capacity, s->plan->capacity, s->plan->graph->n_symbols * sizeof *s->capacity);
  return s->plan->memory != NULL ? use_memory(s, NULL, s->plan->capacity) : SN_OK;
}

sn_status sn_session_create(const sn_plan *plan, sn_store *store, sn_machine *machine,
                            const sn_session_options *options, sn_session **out_session) {
  sn_session_options o;
  SN_TRY(sn_options_read(options, sizeof o, "sn_session_create", &o));
  sn_session *s = sn__calloc(1, sizeof *s);
  if (s == NULL) return sn_status_out_of_memory();
  s->plan = plan;
  s->store = store;
  s->machine = machine;
  sn_status status = open_session(s, &o);
  if (status != SN_OK) {
    sn_session_free(s);
    return sn_status_context(status, "session");
  }
  *out_session = s;
  return SN_OK;
}

void sn_session_free(sn_session *s) {
  if (s == NULL) return;
  finish(s);
  sn_status_free(s->failure);
  const sn_graph *g = s->plan->graph;
  free_timelines(s);
  leave_turns(s);
  for (size_t i = 0; s->constants != NULL && i < g->n_constants; i++)
    sn__buffer_free(s->constants[i]);
  for (size_t i = 0; s->inputs != NULL && i < g->n_inputs; i++)
    sn__buffer_free(s->inputs[i].buffer);
  for (size_t i = 0; s->raggeds != NULL && i < s->n_parts * g->n_raggeds; i++)
    sn__free(s->raggeds[i].narrow);
  sn__memory_free(s->own_memory);
  sn__free(s->fetches);
  sn__arena_free(&s->build);
  sn__free(s);
}

/* ---- looking ------------------------------------------------------------------------------- */

double sn_session_loss_weight(const sn_session *s, size_t loss) {
  return loss < s->plan->graph->n_losses ? s->loss_weights[loss] : 0;
}

sn_session_memory sn_session_memory_on(const sn_session *s, size_t device) {
  sn_session_memory out = {0};
  if (device >= sn_plan_device_count(s->plan)) return out;
  sn__device_memory allocated;
  sn__device_memory_stats(s->machine->devices[device], &allocated);
  out.peak_bytes = allocated.peak;
  out.limit_bytes = allocated.limit;
  out.planned_variable_bytes = sn_plan_device_at(s->plan, device).variable_bytes;
  for (size_t q = 0; q < SN__QUEUE_COUNT; q++) {
    size_t a = device * SN__QUEUE_COUNT + q;
    if (s->turns->arenas[a] != NULL) out.arena_bytes += s->turns->arenas[a]->bytes;
    if (s->memory == NULL) continue;
    out.live_bytes += s->memory->arenas[a].live_bytes;
    size_t *planned = q == SN__QUEUE_COPY ? &out.planned_copy_bytes : &out.planned_compute_bytes;
    *planned = s->memory->arenas[a].bytes;
  }
  return out;
}

sn_status sn_session_record(sn_session *s, bool on) {
  finish(s);
  uint32_t n = s->plan->schedule->n_tasks;
  if (on && s->times == NULL) {
    s->times = sn__arena_alloc(&s->build, (n + 1) * sizeof *s->times);
    if (s->times == NULL) return sn_status_out_of_memory();
  }
  s->recording = on;
  s->record = (sn_step_record){.n_nodes = n, .nodes = s->times, .extents = s->extents};
  sn__session_time_commands(s, on);
  return SN_OK;
}

bool sn_session_records(const sn_session *s) {
  return s->recording;
}

const sn_step_record *sn_session_recorded(const sn_session *s) {
  return s->recording && !s->in_flight && s->record.ended_ns > 0 ? &s->record : NULL;
}

size_t sn_session_replans(const sn_session *s) {
  return s->replans;
}
