/* SPDX-License-Identifier: Apache-2.0 */
/* Work that devices share. */
#include "placement/bound_work.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

typedef __int128 wide;

/* ---- shared out ----------------------------------------------------------------------------- */

/* The linear program's dual: each device has a price for its time and one for its bytes. Times add
 * up to ONE; whatever the prices are, no step is below what all classes cost where they are
 * cheapest, less what the bytes bring in. Integers, rounded down: it holds to the last nanosecond.
 */
#define ONE ((int64_t)1 << 24)

typedef struct prices {
  const sn__flow *f;
  int64_t *ns;    /* [n_classes * n_devices] */
  int64_t *bytes; /* [n_classes] in units of which all classes together have SCALE, rounded down */
  int64_t *room;  /* [n_devices] in those, rounded up; -1: no limit */
  int64_t *time_price, *byte_price; /* [n_devices] */
  int64_t *load, *held;             /* [n_devices] of the cheapest places */
  int64_t scale;
} prices;

static bool make_prices(prices *p, const sn__flow *f) {
  size_t nd = (size_t)f->n_devices, nc = (size_t)f->n_classes;
  *p = (prices){.f = f,
                .ns = sn__calloc(nc * nd + 1, sizeof *p->ns),
                .bytes = sn__calloc(nc + 1, sizeof *p->bytes),
                .room = sn__calloc(nd, sizeof *p->room),
                .time_price = sn__calloc(nd, sizeof *p->time_price),
                .byte_price = sn__calloc(nd, sizeof *p->byte_price),
                .load = sn__calloc(nd, sizeof *p->load),
                .held = sn__calloc(nd, sizeof *p->held),
                .scale = (int64_t)1 << 40};
  return p->ns && p->bytes && p->room && p->time_price && p->byte_price && p->load && p->held;
}

static void free_prices(prices *p) {
  void *const arrays[] = {p->ns, p->bytes, p->room, p->time_price, p->byte_price, p->load, p->held};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
}

/* Whether some limit is below what all classes hold. */
static bool fill_prices(prices *p) {
  const sn__flow *f = p->f;
  wide all = 0;
  bool limits = false;
  for (uint32_t c = 0; c < f->n_classes; c++) {
    all += f->class_bytes[c];
    for (int d = 0; d < f->n_devices; d++) {
      bool may = f->class_pin[c] < 0 || f->class_pin[c] == d;
      p->ns[(size_t)c * (size_t)f->n_devices + (size_t)d] =
          may ? sn__flow_class_ns(f, c, d) : SN__FLOW_NEVER;
    }
  }
  for (uint32_t c = 0; all > 0 && c < f->n_classes; c++)
    p->bytes[c] = (int64_t)((wide)f->class_bytes[c] * p->scale / all);
  for (int d = 0; d < f->n_devices; d++) {
    bool limit = f->device_bytes[d] > 0 && (wide)f->device_bytes[d] < all;
    p->room[d] = limit ? (int64_t)(((wide)f->device_bytes[d] * p->scale + all - 1) / all) : -1;
    p->time_price[d] = ONE / f->n_devices;
    p->byte_price[d] = 0;
    limits |= limit;
  }
  p->time_price[0] += ONE - ONE / f->n_devices * f->n_devices;
  return limits;
}

/* Everything where it is cheapest: loads, bytes, and what no step is below. */
static int64_t evaluate(prices *p) {
  const sn__flow *f = p->f;
  int nd = f->n_devices;
  wide sum = 0;
  memset(p->load, 0, (size_t)nd * sizeof *p->load);
  memset(p->held, 0, (size_t)nd * sizeof *p->held);
  for (uint32_t c = 0; c < f->n_classes; c++) {
    wide least = 0;
    int best = -1;
    for (int d = 0; d < nd; d++) {
      int64_t ns = p->ns[(size_t)c * (size_t)nd + (size_t)d];
      if (ns == SN__FLOW_NEVER) continue;
      wide price = (wide)ns * p->time_price[d] + (wide)p->bytes[c] * p->byte_price[d];
      /* Of equal ones the emptier. */
      if (best >= 0 && (price > least || (price == least && p->load[d] >= p->load[best]))) continue;
      least = price;
      best = d;
    }
    if (best < 0) continue;
    sum += least;
    p->load[best] += p->ns[(size_t)c * (size_t)nd + (size_t)best];
    p->held[best] += p->bytes[c];
  }
  for (int d = 0; d < nd; d++)
    if (p->room[d] >= 0) sum -= (wide)p->byte_price[d] * p->room[d];
  return sum <= 0 ? 0 : (int64_t)((sum + ONE - 1) / ONE);
}

/* Time is dearer where more of it is used than elsewhere, bytes where more than there are. */
static void change_prices(prices *p, int round, bool bytes) {
  int nd = p->f->n_devices;
  wide all = 0, sum = 0;
  int64_t slower = 2 + round / 6;
  for (int d = 0; d < nd; d++)
    all += p->load[d];
  int64_t mean = (int64_t)(all / nd) + 1;
  for (int d = 0; d < nd; d++) {
    wide change = (wide)p->time_price[d] * (p->load[d] - mean) / mean / slower;
    if (change > p->time_price[d]) change = p->time_price[d];
    p->time_price[d] += (int64_t)change;
    if (p->time_price[d] < 1) p->time_price[d] = 1;
    sum += p->time_price[d];
    if (!bytes || p->room[d] < 0) continue;
    /* A device full of bytes is worth about its time. */
    wide more = (wide)(p->held[d] - p->room[d]) * ONE / p->scale * mean / p->scale / slower;
    wide price = p->byte_price[d] + more;
    p->byte_price[d] = price < 0 ? 0 : price > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)price;
  }
  wide left = ONE;
  for (int d = 0; d < nd; d++) {
    p->time_price[d] = (int64_t)((wide)p->time_price[d] * ONE / sum);
    left -= p->time_price[d];
  }
  p->time_price[0] += (int64_t)left;
}

sn_status sn__bound_shared(const sn__flow *f, int64_t *out_ns, bool *out_memory) {
  prices p;
  *out_ns = 0;
  *out_memory = false;
  if (!make_prices(&p, f)) {
    free_prices(&p);
    return sn_status_out_of_memory();
  }
  bool limits = fill_prices(&p);
  size_t cells = (size_t)f->n_classes * (size_t)f->n_devices + 1;
  int rounds = cells > 500000 ? 4 : 2000000 / (int)cells > 400 ? 400 : 2000000 / (int)cells;
  for (int pass = 0; pass < (limits ? 2 : 1); pass++)
    for (int round = 0; round < rounds; round++) {
      int64_t ns = evaluate(&p);
      if (ns > *out_ns) {
        *out_ns = ns;
        *out_memory = pass > 0;
      }
      change_prices(&p, round, pass > 0);
    }
  free_prices(&p);
  return SN_OK;
}

/* ---- between starts and tails --------------------------------------------------------------- */

typedef struct moment {
  int64_t at;
  uint32_t task;
} moment;

static int latest_first(const void *a, const void *b) {
  const moment *x = a, *y = b;
  if (x->at != y->at) return x->at > y->at ? -1 : 1;
  return x->task < y->task ? -1 : x->task > y->task;
}

/* Some of the values that heads or tails have, latest first, from the set's own: at most `most`. */
static uint32_t sample(const moment *all, uint32_t n, uint32_t most, int64_t *out) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (kept > 0 && out[kept - 1] == all[i].at) continue;
    if (n > most && (uint64_t)i * most / n == (uint64_t)(i + 1) * most / n && i + 1 < n) continue;
    if (kept < most) out[kept++] = all[i].at;
  }
  return kept;
}

static moment *sorted(const int64_t *at, uint32_t n) {
  moment *all = sn__calloc((size_t)n + 1, sizeof *all);
  for (uint32_t i = 0; all != NULL && i < n; i++)
    all[i] = (moment){at[i], i};
  if (all != NULL && n > 1) qsort(all, n, sizeof *all, latest_first);
  return all;
}

sn_status sn__bound_windows(const sn__flow *f, const sn__windows *w, int64_t *out_ns) {
  enum { MOST = 64 };
  int64_t tails[MOST];
  moment *by_head = sorted(w->head, w->n), *by_tail = sorted(w->tail, w->n);
  *out_ns = 0;
  if (by_head == NULL || by_tail == NULL) {
    sn__free(by_head);
    sn__free(by_tail);
    return sn_status_out_of_memory();
  }
  uint32_t n_tails = sample(by_tail, w->n, MOST, tails);
  for (uint32_t k = 0; k < n_tails; k++) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < w->n; i++) { /* heads fall, the set grows */
      uint32_t t = by_head[i].task;
      if (w->tail[t] < tails[k]) continue;
      sum += w->ns[t];
      int64_t ns = by_head[i].at + tails[k] + sum / f->n_devices + (sum % f->n_devices != 0);
      if (ns > *out_ns) *out_ns = ns;
    }
  }
  sn__free(by_head);
  sn__free(by_tail);
  return SN_OK;
}

/* ---- energy --------------------------------------------------------------------------------- */

typedef struct energy {
  const sn__windows *w;
  int64_t devices;
  int64_t *heads, *tails; /* some of them */
  uint32_t n_heads, n_tails;
} energy;

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Whether some stretch of a step of `ns` has more work than time. */
static bool overfull(const energy *x, int64_t ns) {
  const sn__windows *w = x->w;
  for (uint32_t h = 0; h < x->n_heads; h++)
    for (uint32_t k = 0; k < x->n_tails; k++) {
      int64_t from = x->heads[h], to = ns - x->tails[k], length = to - from;
      if (length <= 0) continue;
      wide room = (wide)length * x->devices;
      for (uint32_t t = 0; t < w->n && room >= 0; t++) {
        /* As early as it can, and as late as it can: it cannot avoid the stretch by more. */
        int64_t early = w->head[t] + w->ns[t] - from;
        int64_t late = to - (ns - w->tail[t] - w->ns[t]);
        int64_t part = smaller(smaller(w->ns[t], length), smaller(early, late));
        if (part > 0) room -= part;
      }
      if (room < 0) return true;
    }
  return false;
}

sn_status sn__bound_energy(const sn__flow *f, const sn__windows *w, int64_t least,
                           int64_t *out_ns) {
  enum { MOST = 40, WORK = 1500000 };
  uint32_t most = MOST;
  while (most > 4 && (uint64_t)most * most * w->n > WORK)
    most--;
  energy x = {.w = w, .devices = f->n_devices};
  moment *by_head = sorted(w->head, w->n), *by_tail = sorted(w->tail, w->n);
  x.heads = sn__calloc(MOST, sizeof *x.heads);
  x.tails = sn__calloc(MOST, sizeof *x.tails);
  sn_status status = SN_OK;
  *out_ns = least;
  if (by_head == NULL || by_tail == NULL || x.heads == NULL || x.tails == NULL) {
    status = sn_status_out_of_memory();
  } else if (w->n > 0 && f->n_devices > 1) {
    x.n_heads = sample(by_head, w->n, most, x.heads);
    x.n_tails = sample(by_tail, w->n, most, x.tails);
    /* What is overfull is a bound whatever the search thinks of what is between. */
    int64_t low = least, high = least + least / 2 + 1;
    for (int i = 0; i < 16 && low < high; i++) {
      int64_t middle = low + (high - low) / 2;
      if (overfull(&x, middle))
        low = middle + 1;
      else
        high = middle;
    }
    *out_ns = low;
  }
  sn__free(by_head);
  sn__free(by_tail);
  sn__free(x.heads);
  sn__free(x.tails);
  return status;
}

/* ---- a crossing that memory forces ---------------------------------------------------------- */

static uint32_t root_of(uint32_t *parent, uint32_t c) {
  while (parent[c] != c)
    c = parent[c] = parent[parent[c]];
  return c;
}

sn_status sn__bound_crossing(const sn__flow *f, const sn__windows *w, int64_t *out_ns) {
  wide all = 0;
  uint64_t most = 0;
  *out_ns = 0;
  for (uint32_t c = 0; c < f->n_classes; c++)
    all += f->class_bytes[c];
  for (int d = 0; d < f->n_devices; d++) {
    if (f->device_bytes[d] == 0) return SN_OK;
    if (f->device_bytes[d] > most) most = f->device_bytes[d];
  }
  if (all <= (wide)most || f->n_devices == 1 || f->n_classes == 0) return SN_OK;
  uint32_t *parent = sn__calloc(f->n_classes, sizeof *parent);
  if (parent == NULL) return sn_status_out_of_memory();
  uint32_t parts = f->n_classes;
  for (uint32_t c = 0; c < f->n_classes; c++)
    parent[c] = c;
  int64_t least = INT64_MAX;
  for (uint32_t i = 0; i < f->n_reads; i++) {
    uint32_t v = f->reads[i].value, t = f->reads[i].task, maker = f->value_task[v];
    uint32_t a = root_of(parent, f->value_class[v]), b = root_of(parent, f->task_class[t]);
    if (f->value_class[v] == f->task_class[t]) continue;
    if (a != b) {
      parent[a] = b;
      parts--;
    }
    int64_t copy = INT64_MAX;
    for (int k = 0; k < f->n_links; k++)
      copy = smaller(copy, f->copy_ns[(size_t)v * (size_t)f->n_links + (size_t)k]);
    int64_t before = maker == SN__FLOW_NONE ? 0 : w->head[maker] + w->ns[maker];
    least = smaller(least, before + copy + w->ns[t] + w->tail[t]);
  }
  /* All in one piece: whatever is elsewhere is read from here, or reads. */
  if (parts == 1 && least < INT64_MAX) *out_ns = least;
  sn__free(parent);
  return SN_OK;
}
