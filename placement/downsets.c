/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/downsets.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

void sn__downsets_free(sn__downsets *d) {
  if (d == NULL) return;
  sn__free(d->first_step);
  sn__free(d->steps);
  sn__free(d->rank);
  sn__free(d);
}

static sn__downsets *create(uint32_t n_blocks) {
  sn__downsets *d = sn__calloc(1, sizeof *d);
  if (d == NULL) return NULL;
  d->n_blocks = n_blocks;
  d->rank = sn__calloc((size_t)n_blocks + 1, sizeof *d->rank);
  if (d->rank != NULL) return d;
  sn__downsets_free(d);
  return NULL;
}

sn_status sn__downsets_chain(uint32_t n, const uint32_t *order, sn__downsets **out_sets) {
  sn__downsets *d = create(n);
  if (d == NULL) return sn_status_out_of_memory();
  d->count = n + 1;
  d->first_step = sn__calloc((size_t)n + 2, sizeof *d->first_step);
  d->steps = sn__calloc((size_t)n + 1, sizeof *d->steps);
  if (d->first_step == NULL || d->steps == NULL) {
    sn__downsets_free(d);
    return sn_status_out_of_memory();
  }
  for (uint32_t i = 0; i < n; i++) {
    d->first_step[i] = i;
    d->steps[i] = (sn__downset_step){order[i], i + 1};
    d->rank[order[i]] = i;
  }
  d->first_step[n] = d->first_step[n + 1] = n;
  *out_sets = d;
  return SN_OK;
}

/* ---- the lattice ---------------------------------------------------------------------------- */

/* While it is made: sets as bits by rank, found again by a hash. */
typedef struct maker {
  sn__downsets *d;
  uint32_t *waits;                 /* [n] how many come before a block, by rank */
  uint32_t *first_before, *before; /* by rank */
  uint32_t *by_rank;               /* [n] block */
  size_t words;
  uint64_t *bits; /* [count * words] */
  uint64_t *hash; /* [count] */
  size_t bits_room, hash_room, steps_room, first_room;
  uint32_t *table; /* open addressing: set + 1, or 0 */
  size_t table_size, n_steps;
} maker;

static void maker_free(maker *m) {
  void *const arrays[] = {m->waits, m->first_before, m->before, m->by_rank,
                          m->bits,  m->hash,         m->table};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
}

/* Blocks by rank: first come, first settled. */
static sn_status rank_blocks(maker *m, const uint32_t *first_after, const uint32_t *after) {
  uint32_t n = m->d->n_blocks, edges = first_after[n], settled = 0;
  m->waits = sn__calloc((size_t)n + 1, sizeof *m->waits);
  m->by_rank = sn__calloc((size_t)n + 1, sizeof *m->by_rank);
  m->first_before = sn__calloc((size_t)n + 2, sizeof *m->first_before);
  m->before = sn__calloc((size_t)edges + 1, sizeof *m->before);
  if (!m->waits || !m->by_rank || !m->first_before || !m->before) return sn_status_out_of_memory();
  for (uint32_t i = 0; i < edges; i++)
    m->waits[after[i]]++;
  for (uint32_t b = 0; b < n; b++)
    if (m->waits[b] == 0) m->by_rank[settled++] = b;
  for (uint32_t i = 0; i < settled; i++) {
    uint32_t b = m->by_rank[i];
    m->d->rank[b] = i;
    for (uint32_t e = first_after[b]; e < first_after[b + 1]; e++)
      if (--m->waits[after[e]] == 0) m->by_rank[settled++] = after[e];
  }
  assert(settled == n && "a lattice of a graph with a cycle");
  for (uint32_t i = 0; i < edges; i++)
    m->first_before[m->d->rank[after[i]] + 1]++;
  for (uint32_t r = 0; r < n; r++)
    m->first_before[r + 1] += m->first_before[r];
  for (uint32_t b = 0; b < n; b++)
    for (uint32_t e = first_after[b]; e < first_after[b + 1]; e++)
      m->before[m->first_before[m->d->rank[after[e]]]++] = m->d->rank[b];
  for (uint32_t r = n; r > 0; r--)
    m->first_before[r] = m->first_before[r - 1];
  m->first_before[0] = 0;
  return SN_OK;
}

static bool has(const uint64_t *bits, uint32_t i) {
  return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static bool may_add(const maker *m, const uint64_t *bits, uint32_t rank) {
  if (has(bits, rank)) return false;
  for (uint32_t i = m->first_before[rank]; i < m->first_before[rank + 1]; i++)
    if (!has(bits, m->before[i])) return false;
  return true;
}

static bool grow_table(maker *m) {
  size_t size = m->table_size == 0 ? 1024 : 2 * m->table_size;
  uint32_t *table = sn__calloc(size, sizeof *table);
  if (table == NULL) return false;
  for (uint32_t s = 0; s < m->d->count; s++) {
    size_t at = m->hash[s] & (size - 1);
    while (table[at] != 0)
      at = (at + 1) & (size - 1);
    table[at] = s + 1;
  }
  sn__free(m->table);
  m->table = table;
  m->table_size = size;
  return true;
}

/* The set `bits`, made if it is new. */
static bool find_or_add(maker *m, const uint64_t *bits, uint64_t hash, uint32_t *out_set) {
  sn__downsets *d = m->d;
  if (2 * ((size_t)d->count + 1) > m->table_size && !grow_table(m)) return false;
  size_t at = hash & (m->table_size - 1);
  for (; m->table[at] != 0; at = (at + 1) & (m->table_size - 1)) {
    uint32_t s = m->table[at] - 1;
    if (m->hash[s] != hash) continue;
    if (memcmp(m->bits + s * m->words, bits, m->words * sizeof *bits) != 0) continue;
    *out_set = s;
    return true;
  }
  size_t count = d->count;
  if (!sn__grow((void **)&m->bits, &m->bits_room, (count + 1) * m->words, sizeof *m->bits) ||
      !sn__grow((void **)&m->hash, &m->hash_room, count + 1, sizeof *m->hash) ||
      !sn__grow((void **)&d->first_step, &m->first_room, count + 2, sizeof *d->first_step))
    return false;
  memcpy(m->bits + count * m->words, bits, m->words * sizeof *bits);
  m->hash[count] = hash;
  m->table[at] = ++d->count;
  *out_set = (uint32_t)count;
  return true;
}

/* All that one block more makes of the set `s`. `scratch` holds a set. */
static bool add_steps(maker *m, uint32_t s, uint64_t *scratch) {
  sn__downsets *d = m->d;
  d->first_step[s] = (uint32_t)m->n_steps;
  memcpy(scratch, m->bits + s * m->words, m->words * sizeof *scratch);
  for (uint32_t r = 0; r < d->n_blocks; r++) {
    uint32_t to = 0;
    if (!may_add(m, scratch, r)) continue;
    scratch[r / 64] |= (uint64_t)1 << (r % 64);
    bool made = find_or_add(m, scratch, m->hash[s] ^ sn__mix64(r + 1), &to);
    scratch[r / 64] &= ~((uint64_t)1 << (r % 64));
    if (!made || !sn__grow((void **)&d->steps, &m->steps_room, m->n_steps + 1, sizeof *d->steps))
      return false;
    d->steps[m->n_steps++] = (sn__downset_step){m->by_rank[r], to};
  }
  return true;
}

/* Sets are met by size, so each stands behind its subsets. */
static sn_status make_lattice(maker *m, uint32_t most, bool *out_all) {
  uint64_t *scratch = sn__calloc(m->words, sizeof *scratch);
  uint32_t empty = 0;
  bool ok = scratch != NULL && find_or_add(m, scratch, 0, &empty);
  uint32_t s = 0;
  for (; ok && s < m->d->count && m->d->count <= most; s++)
    ok = add_steps(m, s, scratch);
  sn__free(scratch);
  if (!ok) return sn_status_out_of_memory();
  *out_all = s == m->d->count && m->d->count <= most;
  m->d->first_step[s] = (uint32_t)m->n_steps;
  return SN_OK;
}

sn_status sn__downsets_create(uint32_t n, const uint32_t *first_after, const uint32_t *after,
                              uint32_t most, sn__downsets **out_sets) {
  bool all = false;
  maker m = {.d = create(n), .words = (size_t)n / 64 + 1};
  *out_sets = NULL;
  if (m.d == NULL) return sn_status_out_of_memory();
  sn_status status = rank_blocks(&m, first_after, after);
  if (status == SN_OK) status = make_lattice(&m, most, &all);
  maker_free(&m);
  if (status != SN_OK || !all)
    sn__downsets_free(m.d);
  else
    *out_sets = m.d;
  return status;
}
