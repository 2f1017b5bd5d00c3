/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a placement problem on a clock, without allocating. */
#include "placement/flow_simulate_impl.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

/* ---- heaps ---------------------------------------------------------------------------------- */

static inline bool before(sn__entry a, sn__entry b) {
  return a.key != b.key ? a.key > b.key : a.item < b.item;
}

static inline void push(sn__heap *h, sn__entry e) {
  uint32_t i = h->count++;
  for (; i > 0 && before(e, h->items[(i - 1) / 2]); i = (i - 1) / 2)
    h->items[i] = h->items[(i - 1) / 2];
  h->items[i] = e;
}

static inline uint64_t pop(sn__heap *h) {
  uint64_t top = h->items[0].item;
  sn__entry last = h->items[--h->count];
  uint32_t i = 0;
  for (;;) {
    uint32_t c = 2 * i + 1;
    if (c >= h->count) break;
    if (c + 1 < h->count && before(h->items[c + 1], h->items[c])) c++;
    if (!before(h->items[c], last)) break;
    h->items[i] = h->items[c];
    i = c;
  }
  h->items[i] = last;
  return top;
}

static inline void set_bit(uint64_t *mask, int d) {
  mask[d >> 6] |= (uint64_t)1 << (d & 63);
}

static inline void clear_bit(uint64_t *mask, int d) {
  mask[d >> 6] &= ~((uint64_t)1 << (d & 63));
}

/* ---- making and freeing --------------------------------------------------------------------- */

static void find_tails(sn__flow_simulator *s) {
  const sn__flow *f = s->flow;
  for (uint32_t i = f->n_tasks; i-- > 0;) {
    uint32_t t = f->topological[i];
    int64_t after = 0, least = INT64_MAX;
    for (uint32_t o = f->first_output[t]; o < f->first_output[t + 1]; o++)
      for (uint32_t r = f->first_reader[f->outputs[o]]; r < f->first_reader[f->outputs[o] + 1]; r++)
        if (s->tails[f->reads[r].task] > after) after = s->tails[f->reads[r].task];
    for (uint32_t o = f->first_order[t]; o < f->first_order[t + 1]; o++)
      if (f->orders[o].reads == 0 && s->tails[f->orders[o].after] > after)
        after = s->tails[f->orders[o].after];
    for (int d = 0; d < f->n_devices; d++) {
      int64_t ns = f->task_ns[(size_t)t * (size_t)f->n_devices + (size_t)d];
      if (ns < least) least = ns;
    }
    s->tails[t] = least + after;
  }
}

static void count_inputs(sn__flow_simulator *s) {
  const sn__flow *f = s->flow;
  for (uint32_t i = 0; i < f->n_reads; i++)
    if (f->value_task[f->reads[i].value] != SN__FLOW_NONE) s->inputs[f->reads[i].task]++;
  for (uint32_t i = 0; i < f->n_orders; i++)
    s->inputs[f->orders[i].after]++;
  for (uint32_t v = 0; v < f->n_values; v++)
    if (f->value_task[v] == SN__FLOW_NONE && f->first_reader[v] < f->first_reader[v + 1])
      s->sources[s->n_sources++] = v;
}

/* An order may wait for a copy of the value its `before` reads or of one that this looks at. */
static sn_status attach_orders(sn__flow_simulator *s) {
  const sn__flow *f = s->flow;
  uint32_t n = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < f->n_orders; i++) {
      if (f->orders[i].reads == 0) continue;
      for (uint32_t v = f->orders[i].reads - 1; v != SN__FLOW_NONE; v = f->value_base[v]) {
        if (pass == 0)
          s->first_attached[v + 1]++;
        else
          s->attached[s->first_attached[v]++] = i;
        n += pass == 0;
      }
    }
    if (pass > 0) break;
    for (uint32_t v = 0; v < f->n_values; v++)
      s->first_attached[v + 1] += s->first_attached[v];
    s->attached = sn__calloc((size_t)n + 1, sizeof *s->attached);
    if (s->attached == NULL) return sn_status_out_of_memory();
  }
  for (uint32_t v = f->n_values; v > 0; v--)
    s->first_attached[v] = s->first_attached[v - 1];
  s->first_attached[0] = 0;
  return SN_OK;
}

static bool allocate(sn__flow_simulator *s) {
  const sn__flow *f = s->flow;
  size_t nd = (size_t)f->n_devices, nt = (size_t)f->n_tasks + 1, nv = (size_t)f->n_values + 1;
  s->tails = sn__calloc(nt, sizeof *s->tails);
  s->inputs = sn__calloc(nt, sizeof *s->inputs);
  s->sources = sn__calloc(nv, sizeof *s->sources);
  s->first_attached = sn__calloc(nv + 1, sizeof *s->first_attached);
  s->device = sn__calloc(nt, sizeof *s->device);
  s->waiting = sn__calloc(nt, sizeof *s->waiting);
  s->ranks = sn__calloc(nt, sizeof *s->ranks);
  s->ready = sn__calloc(nd, sizeof *s->ready);
  s->ready_items = sn__calloc(nt, sizeof *s->ready_items);
  s->copies = sn__calloc(nd, sizeof *s->copies);
  s->ends = sn__calloc(2 * nd, sizeof *s->ends);
  s->runs = sn__calloc(2 * nd, sizeof *s->runs);
  s->total = sn__calloc(nd, sizeof *s->total);
  s->worked = sn__calloc(nd, sizeof *s->worked);
  s->ended = sn__calloc(nt, sizeof *s->ended);
  s->live = sn__calloc(nd, sizeof *s->live);
  bool ok = s->tails && s->inputs && s->sources && s->first_attached && s->device && s->waiting &&
            s->ranks && s->ready && s->ready_items && s->copies && s->ends && s->runs && s->ended &&
            s->total && s->worked && s->live;
  if (!ok) return false;
  bool bytes = false;
  for (uint32_t v = 0; !bytes && v < f->n_values; v++)
    bytes = f->value_bytes[v] > 0;
  if (bytes && (s->uses = sn__calloc(nv * nd, sizeof *s->uses)) == NULL) return false;
  if (!f->copies_queue) {
    s->arrivals.items = sn__calloc((size_t)f->n_reads + 1, sizeof *s->arrivals.items);
    return s->arrivals.items != NULL;
  }
  for (size_t d = 0; d < nd; d++)
    if ((s->copies[d].items = sn__calloc(nv, sizeof *s->copies[d].items)) == NULL) return false;
  return true;
}

sn_status sn__flow_simulator_create(const sn__flow *flow, sn__flow_simulator **out_simulator) {
  sn__flow_simulator *s = sn__calloc(1, sizeof *s);
  if (s == NULL) return sn_status_out_of_memory();
  s->flow = flow;
  if (!allocate(s) || attach_orders(s) != SN_OK) {
    sn__flow_simulator_free(s);
    return sn_status_out_of_memory();
  }
  find_tails(s);
  count_inputs(s);
  *out_simulator = s;
  return SN_OK;
}

void sn__flow_simulator_free(sn__flow_simulator *s) {
  if (s == NULL) return;
  for (int d = 0; s->copies != NULL && d < s->flow->n_devices; d++)
    sn__free(s->copies[d].items);
  void *const arrays[] = {s->tails,    s->inputs,      s->sources, s->first_attached,
                          s->attached, s->device,      s->waiting, s->ranks,
                          s->ready,    s->ready_items, s->copies,  s->arrivals.items,
                          s->ends,     s->runs,        s->ended,   s->total,
                          s->worked,   s->uses,        s->live};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
  sn__free(s);
}

const int64_t *sn__flow_tails(const sn__flow_simulator *s) {
  return s->tails;
}

/* ---- where things are ----------------------------------------------------------------------- */

bool sn__flow_order_copy(const sn__flow *f, const sn__flow_order *order, const int *devices,
                         uint32_t *out_value, int *out_to) {
  bool copied = false;
  int at = devices[f->task_class[order->before]];
  if (order->reads == 0) return false;
  for (uint32_t v = order->reads - 1; v != SN__FLOW_NONE; v = f->value_base[v]) {
    int home = devices[f->value_class[v]];
    if (home == at) continue;
    copied = true;
    *out_value = v;
    *out_to = at;
    at = home;
  }
  return copied;
}

static int64_t task_ns(const sn__flow *f, uint32_t task, int device) {
  return f->task_ns[(size_t)task * (size_t)f->n_devices + (size_t)device];
}

void sn__flow_ranks(const sn__flow *f, const int *devices, int64_t *ranks) {
  memset(ranks, 0, (size_t)f->n_tasks * sizeof *ranks);
  /* An order that waits for a copy lengthens the path of what that copies. It is later than
   * whatever makes that, so its rank is settled by then; but it is found from the reader, which
   * comes later too: `after` is settled before `before`, `before` before the maker. Hence the extra
   * length goes straight to the maker. */
  for (uint32_t i = f->n_tasks; i-- > 0;) {
    uint32_t t = f->topological[i];
    int d = devices[f->task_class[t]];
    int64_t after = ranks[t]; /* what orders behind copies have left here */
    for (uint32_t o = f->first_output[t]; o < f->first_output[t + 1]; o++) {
      uint32_t v = f->outputs[o];
      for (uint32_t r = f->first_reader[v]; r < f->first_reader[v + 1]; r++) {
        uint32_t x = f->reads[r].task;
        int64_t rank = ranks[x] + sn__flow_copy_ns(f, v, d, devices[f->task_class[x]]);
        if (rank > after) after = rank;
      }
    }
    for (uint32_t o = f->first_order[t]; o < f->first_order[t + 1]; o++) {
      uint32_t v = 0;
      int to = 0;
      int64_t rank = ranks[f->orders[o].after];
      if (!sn__flow_order_copy(f, &f->orders[o], devices, &v, &to)) {
        if (rank > after) after = rank;
        continue;
      }
      uint32_t maker = f->value_task[v];
      if (maker == SN__FLOW_NONE) continue;
      rank += sn__flow_copy_ns(f, v, devices[f->value_class[v]], to);
      if (rank > ranks[maker]) ranks[maker] = rank;
    }
    ranks[t] = after + task_ns(f, t, d);
  }
}

/* With one queue in use order cannot change the time, and the graph's own keeps memory lower. */
static bool one_queue(const sn__flow_simulator *s) {
  const sn__flow *f = s->flow;
  int only = -1;
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    if (f->task_view[t]) continue;
    if (only >= 0 && s->device[t] != only) return false;
    only = s->device[t];
  }
  for (uint32_t i = 0; i < f->n_reads; i++)
    if (s->devices[f->value_class[f->reads[i].value]] != s->device[f->reads[i].task]) return false;
  return true;
}

/* ---- memory over time ----------------------------------------------------------------------- */

/* The value whose bytes a reader on device d of `value` looks at there. */
static uint32_t bytes_read(const sn__flow_simulator *s, uint32_t value, int d) {
  const sn__flow *f = s->flow;
  while (f->value_base[value] != SN__FLOW_NONE && s->devices[f->value_class[value]] == d)
    value = f->value_base[value];
  return value;
}

uint32_t *sn__flow_uses(const sn__flow_simulator *s, uint32_t value, int d) {
  return &s->uses[(size_t)bytes_read(s, value, d) * (size_t)s->flow->n_devices + (size_t)d];
}

static void begin_memory(sn__flow_simulator *s) {
  const sn__flow *f = s->flow;
  size_t nd = (size_t)f->n_devices;
  memset(s->live, 0, nd * sizeof *s->live);
  memset(s->step->peak_bytes, 0, nd * sizeof *s->live);
  if (s->uses == NULL) return; /* no value has bytes */
  memset(s->uses, 0, (size_t)f->n_values * nd * sizeof *s->uses);
  for (uint32_t v = 0; v < f->n_values; v++) {
    int home = s->devices[f->value_class[v]];
    uint64_t to[SN__WORDS] = {0}; /* a copy reads its value at the source */
    for (uint32_t r = f->first_reader[v]; r < f->first_reader[v + 1]; r++) {
      int d = s->device[f->reads[r].task];
      if (!f->task_view[f->reads[r].task]) ++*sn__flow_uses(s, v, d);
      if (d != home) set_bit(to, d);
    }
    for (int w = 0; w < SN__WORDS; w++)
      if (to[w] != 0) *sn__flow_uses(s, v, home) += (uint32_t)__builtin_popcountll(to[w]);
  }
}

/* What is there for the whole step. */
void sn__flow_add_classes(const sn__flow_simulator *s, uint64_t *peak_bytes) {
  for (uint32_t c = 0; c < s->flow->n_classes; c++)
    peak_bytes[s->devices[c]] += s->flow->class_bytes[c];
}

static void grow_live(sn__flow_simulator *s, uint32_t value, int d) {
  s->live[d] += s->flow->value_bytes[value];
  if (s->live[d] > s->step->peak_bytes[d]) s->step->peak_bytes[d] = s->live[d];
}

static void drop_use(sn__flow_simulator *s, uint32_t read, int d) {
  uint32_t value = bytes_read(s, read, d);
  uint32_t *uses = &s->uses[(size_t)value * (size_t)s->flow->n_devices + (size_t)d];
  if (*uses == 0 || --*uses > 0) return;
  /* What is there from the start stays at home; copies of it elsewhere go. */
  if (s->flow->value_task[value] == SN__FLOW_NONE && d == s->devices[s->flow->value_class[value]])
    return;
  s->live[d] -= s->flow->value_bytes[value];
}

static void start_memory(sn__flow_simulator *s, uint32_t task, int d) {
  const sn__flow *f = s->flow;
  for (uint32_t o = f->first_output[task]; o < f->first_output[task + 1]; o++)
    if (f->value_base[f->outputs[o]] == SN__FLOW_NONE) grow_live(s, f->outputs[o], d);
}

static void end_memory(sn__flow_simulator *s, uint32_t task, int d) {
  const sn__flow *f = s->flow;
  for (uint32_t i = f->first_input[task]; !f->task_view[task] && i < f->first_input[task + 1]; i++)
    drop_use(s, f->inputs[i], d);
  for (uint32_t o = f->first_output[task]; o < f->first_output[task + 1]; o++) {
    uint32_t v = f->outputs[o]; /* what nobody reads is there while it is made */
    if (f->value_base[v] == SN__FLOW_NONE && *sn__flow_uses(s, v, d) == 0)
      s->live[d] -= f->value_bytes[v];
  }
}

/* ---- the clock ------------------------------------------------------------------------------ */

static inline void settle(sn__flow_simulator *s, uint32_t task) {
  if (--s->waiting[task] > 0) return;
  if (s->came != NULL) s->came[task] = s->now;
  if (s->flow->task_view[task]) {
    s->ended[s->n_ended++] = task;
    return;
  }
  int d = s->device[task];
  push(&s->ready[d], (sn__entry){s->keys[task], task});
  set_bit(s->some, d);
}

/* A copy's longest remaining path. */
int64_t sn__flow_copy_key(const sn__flow_simulator *s, uint32_t value, int to, int64_t ns) {
  const sn__flow *f = s->flow;
  int64_t key = 0;
  for (uint32_t r = f->first_reader[value]; r < f->first_reader[value + 1]; r++)
    if (s->device[f->reads[r].task] == to && s->ranks[f->reads[r].task] > key)
      key = s->ranks[f->reads[r].task];
  for (uint32_t i = s->first_attached[value]; i < s->first_attached[value + 1]; i++) {
    const sn__flow_order *order = &f->orders[s->attached[i]];
    uint32_t v = 0;
    int d = 0;
    if (s->ranks[order->after] > key && sn__flow_order_copy(f, order, s->devices, &v, &d) &&
        v == value && d == to)
      key = s->ranks[order->after];
  }
  return key + ns;
}

/* Ranks of what waits for this copy decide from now on. */
static void note_key(sn__flow_simulator *s, uint64_t copy) {
  const sn__flow *f = s->flow;
  uint32_t value = (uint32_t)(copy / (uint64_t)f->n_devices);
  int to = (int)(copy % (uint64_t)f->n_devices);
  for (uint32_t r = f->first_reader[value]; r < f->first_reader[value + 1]; r++)
    if (s->device[f->reads[r].task] == to && s->keyed[f->reads[r].task] > s->now)
      s->keyed[f->reads[r].task] = s->now;
  for (uint32_t i = s->first_attached[value]; i < s->first_attached[value + 1]; i++) {
    uint32_t after = f->orders[s->attached[i]].after;
    if (s->keyed[after] > s->now) s->keyed[after] = s->now;
  }
}

static void begin_copy(sn__flow_simulator *s, uint32_t value, int from, int to) {
  const sn__flow *f = s->flow;
  int64_t ns = sn__flow_copy_ns(f, value, from, to);
  uint64_t copy = (uint64_t)value * (uint64_t)f->n_devices + (uint64_t)to;
  s->step->copy_time += ns;
  s->step->copy_bytes += f->value_bytes[value];
  if (!f->copies_queue) {
    if (s->watched) grow_live(s, value, to);
    push(&s->arrivals, (sn__entry){-(s->now + ns), copy});
    return;
  }
  push(&s->copies[to], (sn__entry){sn__flow_copy_key(s, value, to, ns), copy});
  set_bit(s->copy_some, to);
  if (s->keyed == NULL || s->copies[to].count < 2) return;
  if (s->copies[to].count == 2)
    note_key(s, s->copies[to].items[copy == s->copies[to].items[0].item].item);
  note_key(s, copy);
}

/* A value is there: its readers at home, and copies to wherever else it is read. */
static inline void deliver(sn__flow_simulator *s, uint32_t value, int d) {
  const sn__flow *f = s->flow;
  uint64_t to[SN__WORDS] = {0};
  bool away = false;
  for (uint32_t r = f->first_reader[value]; r < f->first_reader[value + 1]; r++) {
    uint32_t x = f->reads[r].task;
    int at = s->device[x];
    if (at == d) {
      settle(s, x);
    } else {
      away = true;
      set_bit(to, at);
    }
  }
  for (int w = 0; away && w < SN__WORDS; w++)
    for (uint64_t left = to[w]; left != 0; left &= left - 1)
      begin_copy(s, value, d, w * 64 + __builtin_ctzll(left));
}

static void end_one(sn__flow_simulator *s, uint32_t task) {
  const sn__flow *f = s->flow;
  int d = s->device[task];
  s->done++;
  if (s->step->end != NULL) {
    s->step->end[task] = s->now;
    if (f->task_view[task]) s->step->start[task] = s->now;
  }
  if (s->watched) end_memory(s, task, d);
  for (uint32_t o = f->first_output[task]; o < f->first_output[task + 1]; o++)
    deliver(s, f->outputs[o], d);
  for (uint32_t o = f->first_order[task]; o < f->first_order[task + 1]; o++) {
    uint32_t v = 0;
    int to = 0;
    if (!sn__flow_order_copy(f, &f->orders[o], s->devices, &v, &to)) settle(s, f->orders[o].after);
  }
}

/* Ends the views that are over by now, those that look at them too. */
static inline void end_views(sn__flow_simulator *s) {
  while (s->n_ended > 0)
    end_one(s, s->ended[--s->n_ended]);
}

static void end_copy(sn__flow_simulator *s, uint64_t copy) {
  const sn__flow *f = s->flow;
  uint32_t value = (uint32_t)(copy / (uint64_t)f->n_devices);
  int to = (int)(copy % (uint64_t)f->n_devices);
  if (s->watched) drop_use(s, value, s->devices[f->value_class[value]]);
  for (uint32_t r = f->first_reader[value]; r < f->first_reader[value + 1]; r++)
    if (s->device[f->reads[r].task] == to) settle(s, f->reads[r].task);
  for (uint32_t i = s->first_attached[value]; i < s->first_attached[value + 1]; i++) {
    const sn__flow_order *order = &f->orders[s->attached[i]];
    uint32_t v = 0;
    int d = 0;
    if (sn__flow_order_copy(f, order, s->devices, &v, &d) && v == value && d == to)
      settle(s, order->after);
  }
  end_views(s);
}

/* False when the step is seen to take longer than asked for. */
static bool start_ready(sn__flow_simulator *s) {
  const sn__flow *f = s->flow;
  int nd = f->n_devices;
  for (int w = 0; w < SN__WORDS && w * 64 < nd; w++) {
    for (uint64_t left = s->idle[w] & s->some[w]; left != 0; left &= left - 1) {
      int d = w * 64 + __builtin_ctzll(left);
      uint32_t t = (uint32_t)pop(&s->ready[d]);
      int64_t ns = task_ns(f, t, d);
      if (s->ready[d].count == 0) clear_bit(s->some, d);
      clear_bit(s->idle, d);
      if (s->now + s->tails[t] > s->step->cutoff ||
          s->now + s->total[d] - s->worked[d] > s->step->cutoff)
        return false;
      s->worked[d] += ns;
      s->ends[d] = s->now + ns;
      if (s->step->previous != NULL) s->step->previous[t] = (uint32_t)s->runs[d];
      s->runs[d] = t;
      if (s->step->busy != NULL) s->step->busy[d] += ns;
      if (s->step->start != NULL) s->step->start[t] = s->now;
      if (s->watched) start_memory(s, t, d);
    }
    for (uint64_t left = s->copy_idle[w] & s->copy_some[w]; left != 0; left &= left - 1) {
      int d = w * 64 + __builtin_ctzll(left);
      uint64_t copy = pop(&s->copies[d]);
      uint32_t value = (uint32_t)(copy / (uint64_t)nd);
      if (s->copies[d].count == 0) clear_bit(s->copy_some, d);
      clear_bit(s->copy_idle, d);
      s->ends[nd + d] = s->now + sn__flow_copy_ns(f, value, s->devices[f->value_class[value]], d);
      s->runs[nd + d] = copy;
      if (s->watched) grow_live(s, value, d);
    }
  }
  return true;
}

static int64_t next_moment(const sn__flow_simulator *s, int queues) {
  int64_t next = INT64_MAX;
  for (int q = 0; q < queues; q++)
    if (s->ends[q] < next) next = s->ends[q];
  if (s->arrivals.count > 0 && -s->arrivals.items[0].key < next) next = -s->arrivals.items[0].key;
  return next;
}

static void end_moment(sn__flow_simulator *s, int queues) {
  int nd = s->flow->n_devices;
  for (int q = 0; q < queues; q++) {
    if (s->ends[q] != s->now) continue;
    s->ends[q] = INT64_MAX;
    if (q < nd) {
      set_bit(s->idle, q);
      end_one(s, (uint32_t)s->runs[q]);
      end_views(s);
    } else {
      set_bit(s->copy_idle, q - nd);
      end_copy(s, s->runs[q]);
    }
  }
  while (s->arrivals.count > 0 && -s->arrivals.items[0].key == s->now)
    end_copy(s, pop(&s->arrivals));
}

/* Everything idle, nothing done, heaps with room for what each device will see. */
void sn__flow_reset(sn__flow_simulator *s) {
  const sn__flow *f = s->flow;
  size_t nd = (size_t)f->n_devices;
  s->now = 0;
  s->done = s->n_ended = s->arrivals.count = 0;
  memset(s->some, 0, sizeof s->some);
  memset(s->copy_some, 0, sizeof s->copy_some);
  memset(s->idle, 0xff, sizeof s->idle);
  memset(s->copy_idle, 0xff, sizeof s->copy_idle);
  for (size_t d = 0; d < nd; d++) {
    s->ready[d].count = s->copies[d].count = 0;
    s->ends[d] = s->ends[nd + d] = INT64_MAX;
    s->runs[d] = SN__FLOW_NONE;
    s->total[d] = s->worked[d] = 0;
  }
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    int d = s->devices[f->task_class[t]];
    s->device[t] = (uint16_t)d;
    s->ready[d].count++;
    s->total[d] += task_ns(f, t, d);
  }
  memcpy(s->waiting, s->inputs, (size_t)f->n_tasks * sizeof *s->waiting);
  sn__entry *items = s->ready_items;
  for (size_t d = 0; d < nd; d++) {
    s->ready[d].items = items;
    items += s->ready[d].count;
    s->ready[d].count = 0;
  }
}

/* What is there when the step begins: tasks that wait for nothing, copies of values that were there
 * before. */
void sn__flow_begin(sn__flow_simulator *s) {
  const sn__flow *f = s->flow;
  for (uint32_t i = 0; i < s->n_sources; i++) {
    uint32_t v = s->sources[i];
    for (uint32_t r = f->first_reader[v]; r < f->first_reader[v + 1]; r++)
      s->waiting[f->reads[r].task]++;
  }
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    if (s->waiting[t] > 0) continue;
    s->waiting[t] = 1;
    settle(s, t);
  }
  end_views(s);
  for (uint32_t i = 0; i < s->n_sources; i++)
    deliver(s, s->sources[i], s->devices[f->value_class[s->sources[i]]]);
  end_views(s);
}

int64_t sn__flow_run(sn__flow_simulator *s) {
  int queues = s->flow->copies_queue ? 2 * s->flow->n_devices : s->flow->n_devices;
  if (!start_ready(s)) return INT64_MAX;
  for (int64_t next; (next = next_moment(s, queues)) != INT64_MAX;) {
    if (s->history != NULL && s->done >= s->mark && next > s->now) sn__flow_history_mark(s);
    s->now = next;
    end_moment(s, queues);
    if (!start_ready(s)) return INT64_MAX;
  }
  assert(s->done == s->flow->n_tasks); /* sn__flow_finish() refuses cycles */
  return s->now;
}

void sn__flow_key(sn__flow_simulator *s, const int64_t *priorities) {
  const sn__flow *f = s->flow;
  s->keys = priorities == NULL ? s->ranks : priorities;
  if (priorities == NULL && one_queue(s))
    memset(s->ranks, 0, (size_t)f->n_tasks * sizeof *s->ranks);
  else if (priorities == NULL || f->copies_queue)
    sn__flow_ranks(f, s->devices, s->ranks);
}

void sn__flow_simulate(sn__flow_simulator *s, const int *devices, const int64_t *priorities,
                       sn__flow_step *step) {
  const sn__flow *f = s->flow;
  int64_t cutoff = step->cutoff;
  s->devices = devices;
  s->step = step;
  step->copy_time = 0;
  step->copy_bytes = 0;
  if (cutoff == 0) step->cutoff = INT64_MAX;
  sn__flow_reset(s);
  sn__flow_key(s, priorities);
  if (step->busy != NULL) memset(step->busy, 0, (size_t)f->n_devices * sizeof *step->busy);
  s->watched = step->peak_bytes != NULL && s->uses != NULL;
  if (step->peak_bytes != NULL) begin_memory(s);
  sn__flow_begin(s);
  step->makespan = sn__flow_run(s);
  if (step->peak_bytes != NULL) sn__flow_add_classes(s, step->peak_bytes);
  step->cutoff = cutoff;
}
