/* SPDX-License-Identifier: Apache-2.0 */
/* A pipe's own facts, and the clock that runs an order of its tasks. */
#include "placement/pipeline.h"

#include <string.h>

#include "core/alloc.h"
#include "placement/pipeline_impl.h"

/* ---- making -------------------------------------------------------------------------------- */

static bool count_all(int n_devices, uint32_t n_stages, uint32_t n_edges, uint32_t n_micro) {
  if (n_devices < 1 || n_devices > 1024 || n_stages < 1 || n_micro < 1) return false;
  uint64_t tasks = (uint64_t)n_stages * n_micro, copies = (uint64_t)n_edges * n_micro;
  return tasks < (1u << 26) && copies < (1u << 26);
}

sn_status sn__pipe_create(int n_devices, uint32_t n_stages, uint32_t n_edges, uint32_t n_micro,
                          sn__pipe **out_pipe) {
  if (!count_all(n_devices, n_stages, n_edges, n_micro))
    return sn_status_make(SN_CODE_INVALID,
                          "a pipeline of %u stages, %u edges and %u micro-batches on %d devices: "
                          "there must be one of each (but edges) and fewer than 2^26 tasks",
                          n_stages, n_edges, n_micro, n_devices);
  sn__pipe *p = sn__calloc(1, sizeof *p);
  if (p == NULL) return sn_status_out_of_memory();
  p->n_devices = n_devices;
  p->n_stages = n_stages;
  p->n_edges = n_edges;
  p->n_micro = n_micro;
  size_t tasks = (size_t)n_stages * n_micro * SN__PIPE_KINDS;
  p->device = sn__calloc(n_stages, sizeof *p->device);
  p->ns = sn__calloc(tasks, sizeof *p->ns);
  p->bytes = sn__calloc(n_stages, sizeof *p->bytes);
  p->edges = sn__calloc((size_t)n_edges + 1, sizeof *p->edges);
  p->all = sn__calloc((size_t)n_edges + 1, sizeof *p->all);
  p->copy_ns = sn__calloc((size_t)n_edges * n_micro * 2 + 1, sizeof *p->copy_ns);
  p->device_bytes = sn__calloc((size_t)n_devices, sizeof *p->device_bytes);
  p->topological = sn__calloc(n_stages, sizeof *p->topological);
  p->to_sink = sn__calloc(n_stages, sizeof *p->to_sink);
  p->through = sn__calloc(n_stages, sizeof *p->through);
  p->first_in = sn__calloc((size_t)n_stages + 1, sizeof *p->first_in);
  p->first_out = sn__calloc((size_t)n_stages + 1, sizeof *p->first_out);
  p->ins = sn__calloc((size_t)n_edges + 1, sizeof *p->ins);
  p->outs = sn__calloc((size_t)n_edges + 1, sizeof *p->outs);
  if (p->device == NULL || p->ns == NULL || p->bytes == NULL || p->edges == NULL ||
      p->all == NULL || p->copy_ns == NULL || p->device_bytes == NULL || p->topological == NULL ||
      p->to_sink == NULL || p->through == NULL || p->first_in == NULL || p->first_out == NULL ||
      p->ins == NULL || p->outs == NULL) {
    sn__pipe_free(p);
    return sn_status_out_of_memory();
  }
  *out_pipe = p;
  return SN_OK;
}

void sn__pipe_free(sn__pipe *p) {
  if (p == NULL) return;
  void *const all[] = {p->device,   p->ns,           p->bytes,       p->edges,   p->copy_ns,
                       p->all,      p->device_bytes, p->topological, p->to_sink, p->through,
                       p->first_in, p->first_out,    p->ins,         p->outs};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    sn__free(all[i]);
  sn__free(p);
}

static sn_status check_times(const int64_t *ns, size_t n, const char *what, int64_t *sum) {
  for (size_t i = 0; i < n; i++) {
    if (ns[i] < 0 || ns[i] > SN__PIPE_TIME_MOST - *sum)
      return sn_status_make(SN_CODE_INVALID,
                            "a pipeline's %s %zu takes %lld ns: times are 0 or more and add up to "
                            "%lld at most",
                            what, i, (long long)ns[i], (long long)SN__PIPE_TIME_MOST);
    *sum += ns[i];
  }
  return SN_OK;
}

static sn_status check_pipe(const sn__pipe *p) {
  int64_t sum = 0;
  SN_TRY(check_times(p->ns, sn__pipe_task_count(p), "task", &sum));
  SN_TRY(check_times(p->copy_ns, (size_t)p->n_edges * p->n_micro * 2, "copy", &sum));
  for (uint32_t s = 0; s < p->n_stages; s++)
    if (p->device[s] < 0 || p->device[s] >= p->n_devices)
      return sn_status_make(SN_CODE_INVALID, "stage %u is on device %d of %d", s, p->device[s],
                            p->n_devices);
  for (uint32_t e = 0; e < p->n_edges; e++)
    if (p->edges[e].from >= p->n_stages || p->edges[e].to >= p->n_stages)
      return sn_status_make(SN_CODE_INVALID, "edge %u goes from stage %u to %u of %u", e,
                            p->edges[e].from, p->edges[e].to, p->n_stages);
  return SN_OK;
}

static void index_edges(sn__pipe *p) {
  memset(p->first_in, 0, ((size_t)p->n_stages + 1) * sizeof *p->first_in);
  memset(p->first_out, 0, ((size_t)p->n_stages + 1) * sizeof *p->first_out);
  for (uint32_t e = 0; e < p->n_edges; e++) {
    p->first_in[p->edges[e].to + 1]++;
    p->first_out[p->edges[e].from + 1]++;
  }
  for (uint32_t s = 0; s < p->n_stages; s++) {
    p->first_in[s + 1] += p->first_in[s];
    p->first_out[s + 1] += p->first_out[s];
  }
  for (uint32_t e = p->n_edges; e-- > 0;) { /* ends move to beginnings */
    p->ins[--p->first_in[p->edges[e].to + 1]] = e;
    p->outs[--p->first_out[p->edges[e].from + 1]] = e;
  }
  /* first_x[s + 1] now is where s begins: move down. */
  memmove(p->first_in, p->first_in + 1, p->n_stages * sizeof *p->first_in);
  memmove(p->first_out, p->first_out + 1, p->n_stages * sizeof *p->first_out);
  p->first_in[p->n_stages] = p->first_out[p->n_stages] = p->n_edges;
}

sn_status sn__pipe_finish(sn__pipe *p) {
  SN_TRY(check_pipe(p));
  index_edges(p);
  uint32_t *left = p->through, n = 0; /* borrowed until it is filled */
  for (uint32_t s = 0; s < p->n_stages; s++)
    if ((left[s] = p->first_in[s + 1] - p->first_in[s]) == 0) p->topological[n++] = s;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = p->first_out[p->topological[i]]; k < p->first_out[p->topological[i] + 1]; k++)
      if (--left[p->edges[p->outs[k]].to] == 0) p->topological[n++] = p->edges[p->outs[k]].to;
  if (n < p->n_stages) {
    uint32_t s = 0;
    while (left[s] == 0)
      s++;
    return sn_status_make(SN_CODE_INVALID, "a cycle of stages through stage %u", s);
  }
  for (uint32_t i = n; i-- > 0;) {
    uint32_t s = p->topological[i];
    p->to_sink[s] = 1;
    for (uint32_t k = p->first_out[s]; k < p->first_out[s + 1]; k++) {
      uint32_t behind = p->to_sink[p->edges[p->outs[k]].to];
      if (behind + 1 > p->to_sink[s]) p->to_sink[s] = behind + 1;
    }
  }
  for (uint32_t i = 0; i < n; i++) { /* first the longest path before it, itself left out */
    uint32_t s = p->topological[i];
    p->through[s] = 0;
    for (uint32_t k = p->first_in[s]; k < p->first_in[s + 1]; k++) {
      uint32_t before = p->through[p->edges[p->ins[k]].from] + 1;
      if (before > p->through[s]) p->through[s] = before;
    }
  }
  for (uint32_t s = 0; s < n; s++)
    p->through[s] += p->to_sink[s];
  return SN_OK;
}

sn_status sn__pipe_cut_caps(const sn__pipe *p, uint32_t *caps) {
  for (int d = 0; d < p->n_devices; d++) {
    if (p->device_bytes[d] == 0) continue;
    for (;;) {
      double need = 0; /* bytes times caps may pass 64 bits */
      uint32_t highest = SN__PIPE_NONE;
      for (uint32_t s = 0; s < p->n_stages; s++) {
        if (p->device[s] != d) continue;
        need += (double)p->bytes[s] * caps[s];
        if (caps[s] > 1 && p->bytes[s] > 0 &&
            (highest == SN__PIPE_NONE || caps[s] > caps[highest] ||
             (caps[s] == caps[highest] && p->bytes[s] > p->bytes[highest])))
          highest = s;
      }
      if (need <= (double)p->device_bytes[d]) break;
      if (highest == SN__PIPE_NONE)
        return sn_status_make(SN_CODE_INVALID,
                              "device %d: one micro-batch of each of its stages needs %.0f bytes "
                              "of activations and there are %llu: use more micro-batches",
                              d, need, (unsigned long long)p->device_bytes[d]);
      caps[highest]--;
    }
  }
  return SN_OK;
}

/* ---- the clock ----------------------------------------------------------------------------- */

sn_status sn__pipe_clock_create(const sn__pipe *p, sn__pipe_clock *out) {
  size_t tasks = sn__pipe_task_count(p), devices = (size_t)p->n_devices, stages = p->n_stages;
  size_t copies = (size_t)p->n_edges * p->n_micro * 2;
  size_t bytes = tasks * (2 * sizeof(int64_t) + sizeof(uint32_t)) +
                 devices * (sizeof(int64_t) + sizeof(uint32_t) + sizeof(sn__pipe_lane)) +
                 7 * stages * sizeof(uint32_t) + copies * sizeof(uint32_t) + 64;
  char *at = sn__calloc(1, bytes);
  if (at == NULL) return sn_status_out_of_memory();
  sn__pipe_clock c = {.pipe = p, .memory = at};
  c.start = (int64_t *)(void *)at;
  c.finish = c.start + tasks;
  c.until = c.finish + tasks;
  c.lanes = (sn__pipe_lane *)(void *)(c.until + devices);
  uint32_t *words = (uint32_t *)(void *)(c.lanes + devices);
  c.left = words;
  c.running = c.left + tasks;
  c.peak = c.running + devices;
  words = c.peak + stages;
  for (int k = 0; k < SN__PIPE_KINDS; k++, words += 2 * stages) {
    c.started[k] = words;
    c.ended[k] = words + stages;
  }
  for (int d = 0; d < p->n_devices; d++) {
    c.lanes[d].waiting = words;
    for (uint32_t e = 0; e < p->n_edges; e++)
      if (p->device[p->edges[e].from] != p->device[p->edges[e].to])
        words +=
            (p->device[p->edges[e].from] == d || p->device[p->edges[e].to] == d) ? p->n_micro : 0;
  }
  *out = c;
  return SN_OK;
}

void sn__pipe_clock_free(sn__pipe_clock *c) {
  sn__free(c->memory);
  c->memory = NULL;
}

/* How many arrivals the edges of a list stand for. */
static uint32_t arrivals(const sn__pipe *p, const uint32_t *list, uint32_t from, uint32_t to) {
  uint32_t n = 0;
  for (uint32_t k = from; k < to; k++)
    n += p->all[list[k]] ? p->n_micro : 1;
  return n;
}

static void reset(sn__pipe_clock *c, bool glued) {
  const sn__pipe *p = c->pipe;
  c->glued = glued;
  c->now = 0;
  c->n_started = 0;
  for (uint32_t s = 0; s < p->n_stages; s++) {
    for (int k = 0; k < SN__PIPE_KINDS; k++)
      c->started[k][s] = c->ended[k][s] = 0;
    c->peak[s] = 0;
    const uint32_t ins = arrivals(p, p->ins, p->first_in[s], p->first_in[s + 1]);
    const uint32_t outs = arrivals(p, p->outs, p->first_out[s], p->first_out[s + 1]);
    for (uint32_t m = 0; m < p->n_micro; m++) {
      uint32_t f = sn__pipe_task(p, s, m, SN__PIPE_F);
      c->left[f] = ins;
      c->left[f + SN__PIPE_B] = 1 + outs;
      c->left[f + SN__PIPE_W] = 1;
    }
  }
  for (uint32_t t = 0; t < sn__pipe_task_count(p); t++)
    c->finish[t] = -1;
  for (int d = 0; d < p->n_devices; d++) {
    c->running[d] = SN__PIPE_NONE;
    c->lanes[d].head = c->lanes[d].tail = 0;
    c->lanes[d].running = SN__PIPE_NONE;
  }
}

static void arrive(sn__pipe_clock *c, uint32_t copy) {
  const sn__pipe *p = c->pipe;
  const sn__pipe_edge *e = &p->edges[copy / 2 / p->n_micro];
  bool back = copy % 2 != 0, all = p->all[copy / 2 / p->n_micro];
  const uint32_t stage = back ? e->from : e->to, micro = copy / 2 % p->n_micro;
  for (uint32_t m = all ? 0 : micro; m < (all ? p->n_micro : micro + 1); m++)
    c->left[sn__pipe_task(p, stage, m, back ? SN__PIPE_B : SN__PIPE_F)]--;
}

/* What leaves a stage goes to the destination's lane, or is there at once. */
static void send(sn__pipe_clock *c, uint32_t edge, uint32_t micro, bool back) {
  const sn__pipe *p = c->pipe;
  const sn__pipe_edge *e = &p->edges[edge];
  uint32_t copy = (edge * p->n_micro + micro) * 2 + back;
  if (p->device[e->from] == p->device[e->to] || p->copy_ns[copy] == 0) {
    arrive(c, copy);
    return;
  }
  sn__pipe_lane *lane = &c->lanes[p->device[back ? e->from : e->to]];
  lane->waiting[lane->tail++] = copy;
}

static void end_task(sn__pipe_clock *c, uint32_t task) {
  const sn__pipe *p = c->pipe;
  uint32_t s = sn__pipe_stage_of(p, task), m = sn__pipe_micro_of(p, task);
  uint32_t kind = task % SN__PIPE_KINDS;
  c->ended[kind][s]++;
  if (kind != SN__PIPE_W) c->left[task + 1]--;
  if (kind == SN__PIPE_F)
    for (uint32_t k = p->first_out[s]; k < p->first_out[s + 1]; k++)
      send(c, p->outs[k], m, false);
  if (kind == (c->glued ? SN__PIPE_W : SN__PIPE_B))
    for (uint32_t k = p->first_in[s]; k < p->first_in[s + 1]; k++)
      send(c, p->ins[k], m, true);
}

/* Whatever ends now; true when something did. */
static bool end_all(sn__pipe_clock *c) {
  bool any = false;
  for (int d = 0; d < c->pipe->n_devices; d++) {
    sn__pipe_lane *lane = &c->lanes[d];
    if (c->running[d] != SN__PIPE_NONE && c->until[d] == c->now) {
      uint32_t task = c->running[d];
      c->running[d] = SN__PIPE_NONE;
      end_task(c, task);
      any = true;
    }
    if (lane->running != SN__PIPE_NONE && lane->until == c->now) {
      arrive(c, lane->running);
      lane->running = SN__PIPE_NONE;
      any = true;
    }
  }
  return any;
}

static void start_task(sn__pipe_clock *c, int device, uint32_t task) {
  uint32_t s = sn__pipe_stage_of(c->pipe, task), kind = task % SN__PIPE_KINDS;
  c->start[task] = c->now;
  c->finish[task] = c->now + c->pipe->ns[task];
  c->running[device] = task;
  c->until[device] = c->finish[task];
  c->n_started++;
  c->started[kind][s]++;
  uint32_t flying = c->started[SN__PIPE_F][s] - c->ended[SN__PIPE_W][s];
  if (kind == SN__PIPE_F && flying > c->peak[s]) c->peak[s] = flying;
}

static bool start_all(sn__pipe_clock *c, sn__pipe_choose choose, void *arg) {
  bool any = false;
  for (int d = 0; d < c->pipe->n_devices; d++) {
    sn__pipe_lane *lane = &c->lanes[d];
    if (lane->running == SN__PIPE_NONE && lane->head < lane->tail) {
      lane->running = lane->waiting[lane->head++];
      lane->until = c->now + c->pipe->copy_ns[lane->running];
      any = true;
    }
    if (c->running[d] != SN__PIPE_NONE) continue;
    uint32_t task = choose(arg, c, d);
    if (task == SN__PIPE_NONE) continue;
    start_task(c, d, task);
    any = true;
  }
  return any;
}

bool sn__pipe_run(sn__pipe_clock *c, bool glued, sn__pipe_choose choose, void *arg) {
  const sn__pipe *p = c->pipe;
  reset(c, glued);
  for (;;) {
    /* All that ends at this moment ends before anything is chosen; tasks without time end in the
     * moment in which they start. */
    do
      while (end_all(c)) {
      }
    while (start_all(c, choose, arg));
    int64_t next = INT64_MAX;
    for (int d = 0; d < p->n_devices; d++) {
      if (c->running[d] != SN__PIPE_NONE && c->until[d] < next) next = c->until[d];
      const sn__pipe_lane *lane = &c->lanes[d];
      if (lane->running != SN__PIPE_NONE && lane->until < next) next = lane->until;
    }
    if (next == INT64_MAX) return c->n_started == sn__pipe_task_count(p);
    c->now = next;
  }
}

static uint32_t choose_in_order(void *arg, const sn__pipe_clock *c, int device) {
  sn__pipe_orders *o = arg;
  uint32_t at = o->first[device] + o->at[device];
  if (at >= o->first[device + 1] || c->left[o->order[at]] > 0) return SN__PIPE_NONE;
  o->at[device]++;
  return o->order[at];
}

bool sn__pipe_run_orders(sn__pipe_clock *c, bool glued, sn__pipe_orders *orders) {
  memset(orders->at, 0, (size_t)c->pipe->n_devices * sizeof *orders->at);
  return sn__pipe_run(c, glued, choose_in_order, orders);
}
