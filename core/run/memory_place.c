/* SPDX-License-Identifier: Apache-2.0 */
/* Packing blocks that live at different times into one arena: best fit in several orders, the
 * smallest result kept, then a bounded search that moves the blocks at the top of the arena to the
 * front of the order, then the search of memory_search.h. Deterministic: the search's random
 * numbers have a fixed seed. */
#include "core/run/memory_search.h"

#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

/* Where orders leave more than a fiftieth unused, a search follows: some tens of milliseconds. */
enum { SEARCH_BUDGET = 400000 };

typedef struct packer {
  sn__pack *p;
  uint32_t *order, *best_order;
  size_t *offsets;  /* of the order being tried */
  uint32_t *placed; /* by offset: a scan of it finds the holes without sorting */
  size_t best;
} packer;

/* The tightest hole between the placed blocks that conflict with block i, or the end of the last.
 */
static size_t best_fit(const packer *k, uint32_t i, uint32_t n_placed) {
  const uint64_t *row = &k->p->conflicts[i * k->p->words];
  size_t end = 0, found = SIZE_MAX, waste = SIZE_MAX, bytes = k->p->bytes[i];
  for (uint32_t t = 0; t < n_placed; t++) {
    uint32_t j = k->placed[t];
    if ((row[j / 64] >> (j % 64) & 1) == 0) continue;
    size_t begin = k->offsets[j];
    if (begin > end && begin - end >= bytes && begin - end - bytes < waste) {
      waste = begin - end - bytes;
      found = end;
    }
    if (begin + k->p->bytes[j] > end) end = begin + k->p->bytes[j];
  }
  return found != SIZE_MAX ? found : end;
}

static void insert(packer *k, uint32_t i, uint32_t n_placed) {
  uint32_t low = 0, high = n_placed;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (k->offsets[k->placed[middle]] <= k->offsets[i])
      low = middle + 1;
    else
      high = middle;
  }
  memmove(&k->placed[low + 1], &k->placed[low], (n_placed - low) * sizeof *k->placed);
  k->placed[low] = i;
}

/* Places all blocks in k->order; SIZE_MAX as soon as `give_up` bytes are not undercut. */
static size_t place(packer *k, size_t give_up) {
  const sn__pack *p = k->p;
  size_t most = 0;
  uint32_t n_placed = 0;
  for (uint32_t o = 0; o < p->n; o++) {
    uint32_t i = k->order[o];
    k->offsets[i] = 0;
    if (p->bytes[i] == 0) continue;
    k->offsets[i] = best_fit(k, i, n_placed);
    insert(k, i, n_placed++);
    if (k->offsets[i] + p->bytes[i] > most) most = k->offsets[i] + p->bytes[i];
    if (most >= give_up) return SIZE_MAX;
  }
  return most;
}

static void keep_better(packer *k) {
  size_t bytes = place(k, k->best);
  if (bytes >= k->best) return;
  k->best = bytes;
  memcpy(k->p->offsets, k->offsets, k->p->n * sizeof *k->offsets);
  memcpy(k->best_order, k->order, k->p->n * sizeof *k->order);
}

/* ---- orders -------------------------------------------------------------------------------- */

typedef struct key {
  uint64_t a, b;
  uint32_t block;
} key;

static int by_key(const void *x, const void *y) {
  const key *p = x, *q = y;
  if (p->a != q->a) return p->a > q->a ? -1 : 1;
  if (p->b != q->b) return p->b > q->b ? -1 : 1;
  return p->block < q->block ? -1 : p->block > q->block;
}

static key key_of(const sn__pack *p, int kind, uint32_t i) {
  uint64_t span = (uint64_t)(p->last[i] - p->first[i]) + 1;
  uint64_t early = UINT32_MAX - p->first[i];
  switch (kind) {
  case 0: return (key){p->bytes[i], span, i};
  case 1: return (key){p->bytes[i] / 64 * span, p->bytes[i], i};
  case 2: return (key){span, p->bytes[i], i};
  case 3: return (key){early, p->bytes[i], i};
  case 4: return (key){p->last[i], p->bytes[i], i};
  default: return (key){p->bytes[i], early, i};
  }
}

static void try_orders(packer *k, key *keys) {
  for (int kind = 0; kind < 6 && k->best > k->p->live_bytes; kind++) {
    for (uint32_t i = 0; i < k->p->n; i++)
      keys[i] = key_of(k->p, kind, i);
    qsort(keys, k->p->n, sizeof *keys, by_key);
    for (uint32_t i = 0; i < k->p->n; i++)
      k->order[i] = keys[i].block;
    keep_better(k);
  }
}

/* What ends highest is what made the arena large: place one of those blocks earlier and look again.
 * The budget keeps planning under some milliseconds whatever the graph. */
static void improve(packer *k) {
  const sn__pack *p = k->p;
  uint64_t work = 0, budget = 20000000, round = 0;
  for (; work < budget && round < 400 && k->best > p->live_bytes; round++) {
    uint32_t top = 0, n_top = 0;
    for (uint32_t o = 0; o < p->n; o++) {
      uint32_t i = k->best_order[o];
      if (p->bytes[i] == 0 || p->offsets[i] + p->bytes[i] <= p->live_bytes) continue;
      n_top++; /* a fair choice among all of them */
      if (sn__rng_below(1, 2, round << 20 | n_top, n_top) == 0) top = o;
    }
    if (n_top == 0 || top == 0) return;
    uint32_t to = (uint32_t)sn__rng_below(1, 3, round, top);
    memcpy(k->order, k->best_order, p->n * sizeof *k->order);
    uint32_t moved = k->order[top];
    memmove(&k->order[to + 1], &k->order[to], (top - to) * sizeof *k->order);
    k->order[to] = moved;
    size_t bytes = place(k, k->best + 1); /* an equal one may lead further */
    if (bytes <= k->best) {
      k->best = bytes;
      memcpy(p->offsets, k->offsets, p->n * sizeof *k->offsets);
      memcpy(k->best_order, k->order, p->n * sizeof *k->order);
    }
    work += (uint64_t)p->n * (p->n / 2 + 32);
  }
}

sn_status sn__pack_blocks(sn__pack *p, size_t *out_bytes) {
  sn__arena scratch = {NULL};
  size_t n = (size_t)p->n + 1;
  packer k = {.p = p, .best = SIZE_MAX};
  k.order = sn__arena_alloc(&scratch, n * sizeof *k.order);
  k.best_order = sn__arena_alloc(&scratch, n * sizeof *k.best_order);
  k.offsets = sn__arena_alloc(&scratch, n * sizeof *k.offsets);
  k.placed = sn__arena_alloc(&scratch, n * sizeof *k.placed);
  key *keys = sn__arena_alloc(&scratch, n * sizeof *keys);
  bool ok = k.order != NULL && k.best_order != NULL && k.offsets != NULL && k.placed != NULL &&
            keys != NULL;
  if (ok) {
    try_orders(&k, keys);
    improve(&k);
    *out_bytes = k.best;
  }
  sn__arena_free(&scratch);
  if (!ok) return sn_status_out_of_memory();
  if (k.best <= p->live_bytes + p->live_bytes / 50) return SN_OK;
  uint64_t used = 0;
  size_t lower = 0;
  return sn__pack_search(p, SEARCH_BUDGET, out_bytes, &lower, &used);
}
