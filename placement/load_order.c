/* SPDX-License-Identifier: Apache-2.0 */
/* Topological orders to slice. All are Kahn's algorithm with a heap of what is ready; what differs
 * is the key. */
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "placement/load.h"

/* The smallest key first, then the smallest number. */
typedef struct item {
  int64_t key;
  uint32_t class_;
} item;

static bool before(const item *a, const item *b) {
  return a->key != b->key ? a->key < b->key : a->class_ < b->class_;
}

static void push(item *heap, uint32_t *n, item x) {
  uint32_t i = (*n)++;
  for (; i > 0 && before(&x, &heap[(i - 1) / 2]); i = (i - 1) / 2)
    heap[i] = heap[(i - 1) / 2];
  heap[i] = x;
}

static uint32_t pop(item *heap, uint32_t *n) {
  uint32_t top = heap[0].class_, i = 0;
  item last = heap[--*n];
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= *n) break;
    if (child + 1 < *n && before(&heap[child + 1], &heap[child])) child++;
    if (!before(&heap[child], &last)) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return top;
}

typedef struct sorter {
  const sn__load *l;
  uint32_t *first, *to; /* the edges, or the edges turned round */
  uint32_t *waits;
  int64_t *key;
  item *heap;
} sorter;

static void sorter_free(sorter *s) {
  sn__free(s->first);
  sn__free(s->to);
  sn__free(s->waits);
  sn__free(s->key);
  sn__free(s->heap);
}

static void turn_round(const sn__load *l, uint32_t *first, uint32_t *to) {
  for (uint32_t i = 0; i < l->n_edges; i++)
    first[l->after[i] + 1]++;
  for (uint32_t c = 0; c < l->n_classes; c++)
    first[c + 1] += first[c];
  for (uint32_t c = 0; c < l->n_classes; c++)
    for (uint32_t i = l->first_after[c]; i < l->first_after[c + 1]; i++)
      to[first[l->after[i]]++] = c;
  for (uint32_t c = l->n_classes; c > 0; c--)
    first[c] = first[c - 1];
  first[0] = 0;
}

static sn_status sorter_create(sorter *s, const sn__load *l, bool backwards) {
  size_t n = (size_t)l->n_classes + 1, edges = (size_t)l->n_edges + 1;
  *s = (sorter){.l = l};
  s->first = sn__calloc(n + 1, sizeof *s->first);
  s->to = sn__calloc(edges, sizeof *s->to);
  s->waits = sn__calloc(n, sizeof *s->waits);
  s->key = sn__calloc(n, sizeof *s->key);
  s->heap = sn__calloc(n, sizeof *s->heap);
  if (!s->first || !s->to || !s->waits || !s->key || !s->heap) return sn_status_out_of_memory();
  if (backwards) {
    turn_round(l, s->first, s->to);
  } else {
    memcpy(s->first, l->first_after, n * sizeof *s->first);
    memcpy(s->to, l->after, (size_t)l->n_edges * sizeof *s->to);
  }
  for (uint32_t i = 0; i < l->n_edges; i++)
    s->waits[s->to[i]]++;
  return SN_OK;
}

static int64_t work_of(const sn__load *l, uint32_t c) {
  int64_t least = SN__FLOW_NEVER;
  for (int k = 0; k < l->n_kinds; k++) {
    int64_t ns = l->ns[(size_t)c * (size_t)l->n_kinds + (size_t)k];
    if (ns < least) least = ns;
  }
  return least == SN__FLOW_NEVER ? 0 : least;
}

/* The key of a class that has just become ready, after `done` others and last behind `parent`. */
static int64_t key_of(const sorter *s, sn__load_order kind, uint64_t seed, uint32_t c,
                      uint32_t done) {
  switch (kind) {
  case SN__ORDER_DEPTH:
  case SN__ORDER_BACK: return -(int64_t)done;
  case SN__ORDER_BREADTH: return (int64_t)done;
  case SN__ORDER_WORK: return s->key[c];
  case SN__ORDER_RANDOM: break;
  }
  return (int64_t)(sn__mix64(seed ^ sn__mix64(c + 1)) >> 1);
}

sn_status sn__load_order_by(const sn__load *l, sn__load_order kind, uint64_t seed,
                            uint32_t *order) {
  sorter s;
  uint32_t ready = 0, done = 0;
  sn_status status = sorter_create(&s, l, kind == SN__ORDER_BACK);
  if (status != SN_OK) goto end;
  for (uint32_t c = 0; c < l->n_classes; c++)
    if (s.waits[c] == 0) push(s.heap, &ready, (item){key_of(&s, kind, seed, c, 0), c});
  while (ready > 0) {
    uint32_t c = pop(s.heap, &ready);
    order[done++] = c;
    for (uint32_t i = s.first[c]; i < s.first[c + 1]; i++) {
      uint32_t to = s.to[i];
      int64_t way = s.key[c] + work_of(l, c);
      if (way > s.key[to]) s.key[to] = way;
      if (--s.waits[to] == 0) push(s.heap, &ready, (item){key_of(&s, kind, seed, to, done), to});
    }
  }
  for (uint32_t i = 0; kind == SN__ORDER_BACK && i < done / 2; i++) {
    uint32_t x = order[i];
    order[i] = order[done - 1 - i];
    order[done - 1 - i] = x;
  }
end:
  sorter_free(&s);
  return status;
}
