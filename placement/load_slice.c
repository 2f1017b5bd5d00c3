/* SPDX-License-Identifier: Apache-2.0 */
/* Contiguous splits by dynamic programming over downsets (Tarnawski et al., "Efficient Algorithms
 * for Device Placement of DNN Graph Operators", NeurIPS 2020), with what makes it fast:
 *
 * From each set, the larger ones are reached by adding blocks in ascending rank, so each slice is
 * met once and its load follows from the last one's in time proportional to the block's nets. A
 * branch ends where time that no later block takes back (work, and nets that the set below has
 * already cut) passes the bound on every kind of device. A set is left out for such numbers of
 * devices as could not do what remains within the bound. */
#include <string.h>

#include "core/alloc.h"
#include "placement/downsets.h"
#include "placement/load.h"

enum { STATES_MOST = 1024 };

/* How a (set, devices used) was reached: from the set `from`, by one more device of `kind`. */
typedef struct link {
  uint32_t from;
  int8_t kind;
} link;

typedef struct frame {
  uint32_t set, next, block;
} frame;

typedef struct slicer {
  const sn__load *l;
  const sn__downsets *d;
  int64_t bound;
  size_t states;
  size_t stride[SN__LOAD_KINDS_MOST];
  uint8_t *used; /* [states * kinds] */
  int64_t *room; /* [states] of kind 0's time, what the devices left can do within the bound */
  int64_t *best; /* [count * states] */
  link *links;   /* [count * states] */
  int64_t *work; /* [count] of kind 0's time, in the set; 0 where kind 0 cannot */
  struct {
    uint32_t set, block;
  } * down; /* [count] a step that the set is the end of */
  int64_t total;
  bool measured; /* room and work say something */
  /* the slice at hand */
  uint32_t *count; /* [n_nets] */
  bool *touched;   /* [n_nets] has a class in the set below */
  int64_t ns[SN__LOAD_KINDS_MOST], cut_ns, lasting_ns;
  int impossible[SN__LOAD_KINDS_MOST]; /* blocks in the slice that the kind cannot run */
  uint64_t bytes;
  frame *stack;
  size_t *alive; /* [states] of the set below */
  size_t n_alive;
  uint64_t evals;
} slicer;

static void slicer_free(slicer *s) {
  void *const arrays[] = {s->used, s->room,  s->best,    s->links, s->work,
                          s->down, s->count, s->touched, s->stack, s->alive};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
}

/* The numbers of devices used of each kind, as one number. */
static sn_status number_states(slicer *s) {
  s->states = 1;
  for (int k = 0; k < s->l->n_kinds; k++) {
    s->stride[k] = s->states;
    s->states *= (size_t)s->l->kinds[k].count + 1;
    if (s->states > STATES_MOST)
      return sn_status_make(SN_CODE_UNSUPPORTED,
                            "placement: %d devices of %d kinds are too many for contiguous splits",
                            s->l->n_devices, s->l->n_kinds);
  }
  s->used = sn__calloc(s->states, (size_t)s->l->n_kinds);
  if (s->used == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < s->states; i++)
    for (int k = 0; k < s->l->n_kinds; k++)
      s->used[i * (size_t)s->l->n_kinds + (size_t)k] =
          (uint8_t)(i / s->stride[k] % ((size_t)s->l->kinds[k].count + 1));
  return SN_OK;
}

/* The most of kind 0's time that one device of kind k does while it is busy for the bound; -1: no
 * limit known. */
static int64_t reach_of(const slicer *s, int k) {
  const sn__load *l = s->l;
  size_t kinds = (size_t)l->n_kinds;
  __int128 most = 0;
  for (uint32_t c = 0; c < l->n_classes; c++) {
    int64_t own = l->ns[c * kinds], other = l->ns[c * kinds + (size_t)k];
    if (own == SN__FLOW_NEVER || own == 0 || other == SN__FLOW_NEVER) continue;
    if (other == 0) return -1;
    __int128 reach = ((__int128)own * s->bound + other - 1) / other;
    if (reach > most) most = reach;
  }
  return most > SN__FLOW_TIME_MOST ? -1 : (int64_t)most;
}

static void measure_room(slicer *s) {
  const sn__load *l = s->l;
  int64_t reach[SN__LOAD_KINDS_MOST];
  s->measured = true;
  for (int k = 0; k < l->n_kinds; k++) {
    reach[k] = reach_of(s, k);
    if (reach[k] < 0) s->measured = false;
  }
  for (size_t i = 0; s->measured && i < s->states; i++) {
    __int128 room = 0;
    for (int k = 0; k < l->n_kinds; k++)
      room +=
          (__int128)reach[k] * (l->kinds[k].count - s->used[i * (size_t)l->n_kinds + (size_t)k]);
    s->room[i] = room > INT64_MAX ? INT64_MAX : (int64_t)room;
  }
}

static sn_status slicer_create(slicer *s, const sn__load *l, const sn__downsets *d, int64_t bound) {
  *s = (slicer){.l = l, .d = d, .bound = bound};
  SN_TRY(number_states(s));
  size_t cells = 0;
  if (!sn__size_mul(d->count, s->states, &cells)) return sn_status_out_of_memory();
  s->room = sn__calloc(s->states, sizeof *s->room);
  s->best = sn__calloc(cells, sizeof *s->best);
  s->links = sn__calloc(cells, sizeof *s->links);
  s->work = sn__calloc(d->count, sizeof *s->work);
  s->down = sn__calloc(d->count, sizeof *s->down);
  s->count = sn__calloc((size_t)l->n_nets + 1, sizeof *s->count);
  s->touched = sn__calloc((size_t)l->n_nets + 1, sizeof *s->touched);
  s->stack = sn__calloc((size_t)l->n_classes + 2, sizeof *s->stack);
  s->alive = sn__calloc(s->states, sizeof *s->alive);
  if (!s->room || !s->best || !s->links || !s->work || !s->down || !s->count || !s->touched ||
      !s->stack || !s->alive)
    return sn_status_out_of_memory();
  for (size_t i = 1; i < cells; i++)
    s->best[i] = SN__FLOW_NEVER;
  measure_room(s);
  for (uint32_t i = 0; i < d->count; i++)
    for (uint32_t e = d->first_step[i]; e < d->first_step[i + 1]; e++) {
      sn__downset_step step = d->steps[e];
      int64_t own = l->ns[(size_t)step.block * (size_t)l->n_kinds];
      s->work[step.to] = s->work[i] + (own == SN__FLOW_NEVER ? 0 : own);
      s->down[step.to].set = i;
      s->down[step.to].block = step.block;
    }
  s->total = s->work[d->count - 1];
  return SN_OK;
}

/* ---- the slice at hand --------------------------------------------------------------------- */

static void add_block(slicer *s, uint32_t b) {
  const sn__load *l = s->l;
  for (int k = 0; k < l->n_kinds; k++) {
    int64_t ns = l->ns[(size_t)b * (size_t)l->n_kinds + (size_t)k];
    if (ns == SN__FLOW_NEVER)
      s->impossible[k]++;
    else
      s->ns[k] += ns;
  }
  s->bytes += l->bytes[b];
  for (uint32_t i = l->first_net[b]; i < l->first_net[b + 1]; i++) {
    uint32_t net = l->nets[i], n = ++s->count[net];
    if (n == 1) {
      s->cut_ns += l->net_ns[net];
      if (s->touched[net]) s->lasting_ns += l->net_ns[net];
    }
    if (n == l->first_end[net + 1] - l->first_end[net]) s->cut_ns -= l->net_ns[net];
  }
}

static void remove_block(slicer *s, uint32_t b) {
  const sn__load *l = s->l;
  for (int k = 0; k < l->n_kinds; k++) {
    int64_t ns = l->ns[(size_t)b * (size_t)l->n_kinds + (size_t)k];
    if (ns == SN__FLOW_NEVER)
      s->impossible[k]--;
    else
      s->ns[k] -= ns;
  }
  s->bytes -= l->bytes[b];
  for (uint32_t i = l->first_net[b]; i < l->first_net[b + 1]; i++) {
    uint32_t net = l->nets[i], n = s->count[net]--;
    if (n == l->first_end[net + 1] - l->first_end[net]) s->cut_ns += l->net_ns[net];
    if (n == 1) {
      s->cut_ns -= l->net_ns[net];
      if (s->touched[net]) s->lasting_ns -= l->net_ns[net];
    }
  }
}

/* Puts the slice on a device of kind k after each number of devices that the set below was reached
 * with. */
static void offer(slicer *s, uint32_t below, uint32_t set, int k, int64_t load) {
  const int64_t *from = s->best + (size_t)below * s->states;
  int64_t *to = s->best + (size_t)set * s->states;
  size_t stride = s->stride[k];
  for (size_t i = 0; i < s->n_alive; i++) {
    size_t state = s->alive[i];
    if (s->used[state * (size_t)s->l->n_kinds + (size_t)k] == s->l->kinds[k].count) continue;
    int64_t most = from[state] > load ? from[state] : load;
    if (most >= to[state + stride]) continue;
    to[state + stride] = most;
    s->links[(size_t)set * s->states + state + stride] = (link){below, (int8_t)k};
  }
}

/* False: no larger slice can be within the bound either. */
static bool offer_all(slicer *s, uint32_t below, uint32_t set) {
  const sn__load *l = s->l;
  bool any = false;
  s->evals++;
  for (int k = 0; k < l->n_kinds; k++) {
    const sn__load_kind *kind = &l->kinds[k];
    if (s->impossible[k] > 0 || (kind->bytes != 0 && s->bytes > kind->bytes)) continue;
    if (s->ns[k] + (kind->pays ? s->lasting_ns : 0) > s->bound) continue;
    any = true;
    int64_t load = s->ns[k] + (kind->pays ? s->cut_ns : 0);
    if (load <= s->bound) offer(s, below, set, k, load);
  }
  return any;
}

/* All slices above one set: blocks are added in ascending rank, so each set is met once. */
static void walk_up(slicer *s, uint32_t below) {
  const sn__downsets *d = s->d;
  size_t depth = 0;
  s->stack[0] = (frame){below, d->first_step[below], 0};
  for (;;) {
    frame *f = &s->stack[depth];
    if (f->next == d->first_step[f->set + 1]) {
      if (depth == 0) return;
      remove_block(s, f->block);
      depth--;
      continue;
    }
    sn__downset_step step = d->steps[f->next++];
    if (depth > 0 && d->rank[step.block] < d->rank[f->block]) continue;
    add_block(s, step.block);
    if (!offer_all(s, below, step.to)) {
      remove_block(s, step.block);
      continue;
    }
    s->stack[++depth] = (frame){step.to, d->first_step[step.to], step.block};
  }
}

static void find_alive(slicer *s, uint32_t set) {
  const int64_t *best = s->best + (size_t)set * s->states;
  s->n_alive = 0;
  for (size_t i = 0; i < s->states; i++)
    if (best[i] <= s->bound && (!s->measured || s->total - s->work[set] <= s->room[i]))
      s->alive[s->n_alive++] = i;
}

/* Which nets have a class in the set. */
static void touch(slicer *s, uint32_t set) {
  memset(s->touched, 0, s->l->n_nets * sizeof *s->touched);
  for (; set != 0; set = s->down[set].set) {
    uint32_t block = s->down[set].block;
    for (uint32_t i = s->l->first_net[block]; i < s->l->first_net[block + 1]; i++)
      s->touched[s->l->nets[i]] = true;
  }
}

static void fill(slicer *s) {
  for (uint32_t i = 0; i + 1 < s->d->count; i++) {
    find_alive(s, i);
    if (s->n_alive == 0) continue;
    touch(s, i);
    walk_up(s, i);
  }
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void take_answer(slicer *s, int *device, int64_t *out_ns) {
  const sn__downsets *d = s->d;
  const sn__load *l = s->l;
  size_t full = d->count - 1, state = 0;
  int next[SN__LOAD_KINDS_MOST] = {0};
  *out_ns = SN__FLOW_NEVER;
  for (size_t i = 0; i < s->states; i++)
    if (s->best[full * s->states + i] < *out_ns) {
      *out_ns = s->best[full * s->states + i];
      state = i;
    }
  if (*out_ns == SN__FLOW_NEVER) return;
  /* A smaller set's blocks are overwritten by the slices below it. */
  for (uint32_t set = (uint32_t)full; set != 0;) {
    link at = s->links[(size_t)set * s->states + state];
    int to = 0;
    for (int skip = next[at.kind]; l->kind_of[to] != at.kind || skip-- > 0; to++)
      ;
    next[at.kind]++;
    for (uint32_t i = set; i != 0; i = s->down[i].set)
      device[s->down[i].block] = to;
    set = at.from;
    state -= s->stride[at.kind];
  }
}

sn_status sn__load_slice(const sn__load *l, const sn__downsets *d, int64_t bound, int *device,
                         int64_t *out_ns, uint64_t *evals) {
  slicer s;
  sn_status status = slicer_create(&s, l, d, bound);
  if (status == SN_OK) {
    fill(&s);
    take_answer(&s, device, out_ns);
  }
  *evals += s.evals;
  slicer_free(&s);
  return status;
}
