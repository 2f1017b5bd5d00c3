/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/memory_search.h"

#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

typedef enum outcome { FOUND, NONE, SPENT } outcome;

/* What placing a block changed, to be taken back. */
typedef struct change {
  uint32_t block;
  size_t floor; /* as it was */
} change;

typedef struct candidate {
  size_t floor;
  uint32_t rank, block;
} candidate;

typedef struct state {
  uint64_t a, b; /* 128 bits of a hash: two states that are not one do not meet */
} state;

#define SN__STATE_SPREAD 0x9E3779B97F4A7C15u

typedef struct rank_key {
  uint64_t by[3];
  uint32_t block;
} rank_key;

enum { ORDERS = 4, FAILED_FEW = 1 << 10, FAILED_MANY = 1 << 18 };

/* Sections are sets of blocks that all conflict: what is left of one stands above its lowest floor.
 */
typedef struct seeker {
  const sn__pack *p;
  size_t words, grain; /* all bytes, hence all offsets, are multiples of grain */
  uint32_t n_sections;
  size_t *left, *low;      /* [n_sections] bytes not placed yet; scratch: the lowest floor */
  uint32_t *of_first, *of; /* the sections of block i: of[of_first[i] .. of_first[i + 1]) */
  uint32_t *rank;          /* the order in which blocks with equal floors are tried */
  rank_key *keys;
  uint32_t *twin; /* one before it that nothing tells apart, or itself */

  size_t cap;     /* packings may end here */
  size_t horizon; /* of a node: where its next block begins at the latest */
  size_t *floor;  /* where the blocks placed so far let a block begin */
  size_t *offsets;
  uint32_t *listed; /* scratch: the blocks of a set */

  uint64_t *rows;   /* sets of blocks: of the parts that are being searched */
  candidate *tries; /* of all nodes on the path */
  change *changes;
  uint32_t *placed;
  state *failed; /* [failed_mask + 1] by the low bits of .a; the newest stays */
  size_t failed_mask;
  size_t n_rows, n_tries, n_changes;
  uint32_t n_placed;
  uint64_t looks, limit; /* work: a node looks at the blocks that it has to place */
} seeker;

static bool has(const uint64_t *set, uint32_t i) {
  return (set[i / 64] >> (i % 64) & 1) != 0;
}

static uint32_t list(seeker *k, const uint64_t *set) {
  uint32_t n = 0;
  for (size_t w = 0; w < k->words; w++)
    for (uint64_t bits = set[w]; bits != 0; bits &= bits - 1)
      k->listed[n++] = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
  return n;
}

/* ---- placing and taking back --------------------------------------------------------------- */

static void place(seeker *k, uint32_t block, const uint64_t *set) {
  const uint64_t *row = &k->p->conflicts[block * k->words];
  size_t top = k->floor[block] + k->p->bytes[block];
  k->offsets[block] = k->floor[block];
  k->placed[k->n_placed++] = block;
  for (uint32_t s = k->of_first[block]; s < k->of_first[block + 1]; s++)
    k->left[k->of[s]] -= k->p->bytes[block];
  for (size_t w = 0; w < k->words; w++)
    for (uint64_t bits = row[w] & set[w]; bits != 0; bits &= bits - 1) {
      uint32_t i = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
      if (k->floor[i] >= top) continue;
      k->changes[k->n_changes++] = (change){i, k->floor[i]};
      k->floor[i] = top;
    }
}

static void take_back(seeker *k, uint32_t n_placed, size_t n_changes) {
  while (k->n_changes > n_changes) {
    const change *c = &k->changes[--k->n_changes];
    k->floor[c->block] = c->floor;
  }
  while (k->n_placed > n_placed) {
    uint32_t block = k->placed[--k->n_placed];
    for (uint32_t s = k->of_first[block]; s < k->of_first[block + 1]; s++)
      k->left[k->of[s]] += k->p->bytes[block];
  }
}

/* ---- a node -------------------------------------------------------------------------------- */

/* The lowest a block can get, when nothing goes below `at` any more: one whose floor is below that
 * will stand on another that is still to come. */
static size_t lowest(const seeker *k, const uint64_t *set, uint32_t i, size_t at) {
  if (k->floor[i] >= at) return k->floor[i];
  const uint64_t *row = &k->p->conflicts[i * k->words];
  size_t best = SIZE_MAX;
  for (size_t w = 0; w < k->words; w++)
    for (uint64_t bits = row[w] & set[w]; bits != 0; bits &= bits - 1) {
      uint32_t j = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
      size_t under = k->floor[j] > at ? k->floor[j] : at;
      if (under + k->p->bytes[j] < best) best = under + k->p->bytes[j];
    }
  return best;
}

/* Whether some section cannot end below the cap any more, when no block goes below `at`. */
static bool overfull(seeker *k, const uint64_t *set, uint32_t n, size_t at) {
  k->horizon = k->cap;
  for (uint32_t l = 0; l < n; l++)
    for (uint32_t i = k->listed[l], s = k->of_first[i]; s < k->of_first[i + 1]; s++) {
      size_t left = k->left[k->of[s]];
      if (at + left > k->cap) return true;
      if (k->cap - left < k->horizon) k->horizon = k->cap - left;
      k->low[k->of[s]] = SIZE_MAX;
    }
  for (uint32_t l = 0; l < n; l++) {
    uint32_t i = k->listed[l];
    size_t floor = lowest(k, set, i, at);
    if (floor > k->cap - k->p->bytes[i]) return true;
    for (uint32_t s = k->of_first[i]; s < k->of_first[i + 1]; s++)
      if (floor < k->low[k->of[s]]) k->low[k->of[s]] = floor;
  }
  for (uint32_t l = 0; l < n; l++)
    for (uint32_t i = k->listed[l], s = k->of_first[i]; s < k->of_first[i + 1]; s++)
      if (k->low[k->of[s]] + k->left[k->of[s]] > k->cap) return true;
  return false;
}

static int by_floor(const void *x, const void *y) {
  const candidate *a = x, *b = y;
  if (a->floor != b->floor) return a->floor < b->floor ? -1 : 1;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Which blocks of the set may come next: none below the last one, none that would leave room for a
 * whole other one beneath it, of twins the first. */
static uint32_t list_tries(seeker *k, const uint64_t *set, uint32_t n, size_t at, uint32_t rank) {
  size_t lowest_top = SIZE_MAX;
  for (uint32_t l = 0; l < n; l++) {
    size_t top = k->floor[k->listed[l]] + k->p->bytes[k->listed[l]];
    if (top < lowest_top) lowest_top = top;
  }
  candidate *tries = &k->tries[k->n_tries];
  uint32_t n_tries = 0;
  for (uint32_t l = 0; l < n; l++) {
    uint32_t i = k->listed[l];
    size_t floor = k->floor[i];
    if (floor < at || floor >= lowest_top || floor > k->horizon ||
        (floor == at && k->rank[i] < rank))
      continue;
    if (k->twin[i] != i && has(set, k->twin[i])) continue;
    tries[n_tries++] = (candidate){floor, k->rank[i], i};
  }
  qsort(tries, n_tries, sizeof *tries, by_floor);
  return n_tries;
}

/* The set's parts without conflicts between them, as rows from k->n_rows on, small ones first. */
static uint32_t split(seeker *k, const uint64_t *set, uint64_t *rest) {
  uint32_t n = 0;
  memcpy(rest, set, k->words * sizeof *rest);
  for (size_t from = 0; from < k->words;) {
    if (rest[from] == 0) {
      from++;
      continue;
    }
    uint64_t *part = &k->rows[(k->n_rows + n++) * k->words];
    memset(part, 0, k->words * sizeof *part);
    uint32_t top = 0;
    k->listed[top++] = (uint32_t)(from * 64) + (uint32_t)__builtin_ctzll(rest[from]);
    rest[from] &= rest[from] - 1;
    while (top > 0) {
      uint32_t i = k->listed[--top];
      part[i / 64] |= (uint64_t)1 << (i % 64);
      for (size_t w = 0; w < k->words; w++) {
        uint64_t bits = rest[w] & k->p->conflicts[i * k->words + w];
        rest[w] &= ~bits;
        for (; bits != 0; bits &= bits - 1)
          k->listed[top++] = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
      }
    }
  }
  return n;
}

/* ---- states that have failed ---------------------------------------------------------------- */

/* What decides how a search ends: the set, its floors, and where the next block may go. Blocks
 * swapped beneath come to the same. */
static state state_of(const seeker *k, uint32_t n, size_t at, uint32_t rank) {
  state s = {sn__mix64(at), sn__mix64(~at)};
  bool tie = false;
  for (uint32_t l = 0; l < n; l++) {
    uint32_t i = k->listed[l];
    uint64_t mixed = sn__mix64(k->floor[i] * SN__STATE_SPREAD + i);
    tie = tie || k->floor[i] == at;
    s.a += mixed;
    s.b += mixed * (mixed >> 32 | 1);
  }
  if (tie) s.b += sn__mix64(rank + 1);
  return s;
}

static bool has_failed(const seeker *k, state s) {
  const state *known = &k->failed[s.a & k->failed_mask];
  return known->a == s.a && known->b == s.b;
}

static outcome search(seeker *k, const uint64_t *set, size_t at, uint32_t rank);

static outcome search_parts(seeker *k, const uint64_t *set, size_t at, uint32_t rank) {
  size_t first = k->n_rows++; /* a row for scratch */
  uint64_t *scratch = &k->rows[first * k->words];
  uint32_t n = split(k, set, scratch);
  k->n_rows += n;
  outcome o = FOUND;
  for (uint32_t i = 0; o == FOUND && i < n; i++)
    o = search(k, &k->rows[(first + 1 + i) * k->words], at, rank);
  k->n_rows = first;
  return o;
}

/* Places all blocks of a set of which none may go below `at`, nor, there, before `rank`. */
static outcome search(seeker *k, const uint64_t *set, size_t at, uint32_t rank) {
  if (k->looks >= k->limit) return SPENT;
  uint32_t n = list(k, set);
  k->looks += n;
  if (overfull(k, set, n, at)) return NONE;
  state here = state_of(k, n, at, rank);
  if (has_failed(k, here)) return NONE;
  size_t first = k->n_tries;
  uint32_t n_tries = list_tries(k, set, n, at, rank);
  k->n_tries += n_tries;
  uint32_t n_placed = k->n_placed;
  size_t n_changes = k->n_changes, row = k->n_rows++;
  uint64_t *left = &k->rows[row * k->words];
  outcome o = NONE;
  for (uint32_t t = 0; o == NONE && t < n_tries; t++) {
    candidate c = k->tries[first + t];
    memcpy(left, set, k->words * sizeof *left);
    left[c.block / 64] &= ~((uint64_t)1 << (c.block % 64));
    place(k, c.block, left);
    o = n == 1 ? FOUND : search_parts(k, left, c.floor, c.rank);
    if (o != FOUND) take_back(k, n_placed, n_changes);
  }
  k->n_rows = row;
  k->n_tries = first;
  if (o == NONE) k->failed[here.a & k->failed_mask] = here;
  return o;
}

/* ---- making ready -------------------------------------------------------------------------- */

enum { MOST_BLOCKS = 1024 }; /* the search recurses once or twice a block */

static void *take(sn__arena *a, size_t count, size_t size) {
  size_t bytes = 0;
  if (!sn__size_mul(count + 1, size, &bytes)) return NULL;
  return sn__arena_alloc(a, bytes);
}

static bool within(const uint64_t *inner, const uint64_t *outer, size_t words) {
  for (size_t w = 0; w < words; w++)
    if ((inner[w] & ~outer[w]) != 0) return false;
  return true;
}

static uint32_t count(const uint64_t *set, size_t words) {
  uint32_t n = 0;
  for (size_t w = 0; w < words; w++)
    n += (uint32_t)__builtin_popcountll(set[w]);
  return n;
}

/* Sections: the moments that no other contains. */
static bool make_sections(seeker *k, sn__arena *a) {
  const sn__pack *p = k->p;
  const uint64_t **sets = take(a, p->n_moments, sizeof *sets);
  size_t total = 0;
  k->left = take(a, p->n_moments, sizeof *k->left);
  k->low = take(a, p->n_moments, sizeof *k->low);
  k->of_first = take(a, p->n, sizeof *k->of_first);
  if (sets == NULL || k->left == NULL || k->low == NULL || k->of_first == NULL) return false;
  for (uint32_t m = 0; m < p->n_moments; m++) {
    const uint64_t *set = &p->moments[m * k->words];
    uint32_t s = 0, kept = 0;
    while (s < k->n_sections && !within(set, sets[s], k->words))
      s++;
    if (s < k->n_sections) continue;
    for (s = 0; s < k->n_sections; s++)
      if (!within(sets[s], set, k->words)) sets[kept++] = sets[s];
    sets[kept] = set;
    k->n_sections = kept + 1;
  }
  for (uint32_t s = 0; s < k->n_sections; s++)
    total += count(sets[s], k->words);
  k->of = take(a, total, sizeof *k->of);
  if (k->of == NULL) return false;
  for (uint32_t i = 0, at = 0; i < p->n; i++) {
    for (uint32_t s = 0; s < k->n_sections; s++) {
      if (!has(sets[s], i) || p->bytes[i] == 0) continue;
      k->left[s] += p->bytes[i];
      k->of[at++] = s;
    }
    k->of_first[i + 1] = at;
  }
  return true;
}

static bool alike(const seeker *k, uint32_t i, uint32_t j) {
  const sn__pack *p = k->p;
  const uint64_t *x = &p->conflicts[i * k->words], *y = &p->conflicts[j * k->words];
  uint32_t n = k->of_first[i + 1] - k->of_first[i];
  if (p->bytes[i] != p->bytes[j] || p->first[i] != p->first[j] || p->last[i] != p->last[j] ||
      n != k->of_first[j + 1] - k->of_first[j] ||
      memcmp(&k->of[k->of_first[i]], &k->of[k->of_first[j]], n * sizeof *k->of) != 0)
    return false;
  for (size_t w = 0; w < k->words; w++) {
    uint64_t self = w == i / 64 ? (uint64_t)1 << (i % 64) : 0;
    self |= w == j / 64 ? (uint64_t)1 << (j % 64) : 0;
    if (((x[w] ^ y[w]) & ~self) != 0) return false;
  }
  return true;
}

static void find_twins(seeker *k) {
  const sn__pack *p = k->p;
  for (uint32_t i = 0; i < p->n; i++) {
    k->twin[i] = i;
    for (uint32_t j = i; p->bytes[i] > 0 && k->twin[i] == i && j-- > 0;)
      if (alike(k, i, j)) k->twin[i] = j;
  }
}

static bool make_ready(seeker *k, sn__arena *a) {
  size_t n = k->p->n;
  if (!make_sections(k, a)) return false;
  k->failed = take(a, k->failed_mask, sizeof *k->failed);
  if (k->failed == NULL) return false;
  k->rank = take(a, n, sizeof *k->rank);
  k->keys = take(a, n, sizeof *k->keys);
  k->twin = take(a, n, sizeof *k->twin);
  k->floor = take(a, n, sizeof *k->floor);
  k->offsets = take(a, n, sizeof *k->offsets);
  k->listed = take(a, n, sizeof *k->listed);
  k->placed = take(a, n, sizeof *k->placed);
  k->rows = take(a, 4 * n + 8, k->words * sizeof *k->rows);
  k->tries = take(a, n * (n + 1) / 2, sizeof *k->tries);
  k->changes = take(a, n * (n + 1) / 2, sizeof *k->changes);
  if (k->rank == NULL || k->keys == NULL || k->twin == NULL || k->floor == NULL ||
      k->offsets == NULL || k->listed == NULL || k->placed == NULL || k->rows == NULL ||
      k->tries == NULL || k->changes == NULL)
    return false;
  find_twins(k);
  return true;
}

/* ---- limits and orders --------------------------------------------------------------------- */

static int by_key(const void *x, const void *y) {
  const rank_key *p = x, *q = y;
  for (int i = 0; i < 3; i++)
    if (p->by[i] != q->by[i]) return p->by[i] > q->by[i] ? -1 : 1;
  return p->block < q->block ? -1 : p->block > q->block;
}

/* In which order blocks of one floor are tried: the width of their lifetimes, their area, and the
 * bytes of the fullest section they are in, each first in its turn. */
static void rank_blocks(seeker *k, int kind) {
  const sn__pack *p = k->p;
  for (uint32_t i = 0; i < p->n; i++) {
    uint64_t width = (uint64_t)(p->last[i] - p->first[i]) + 1,
             area = p->bytes[i] / k->grain * width;
    uint64_t fullest = 0;
    for (uint32_t s = k->of_first[i]; s < k->of_first[i + 1]; s++)
      if (k->left[k->of[s]] > fullest) fullest = k->left[k->of[s]];
    static const int orders[ORDERS][3] = {{2, 0, 1}, {1, 0, 2}, {0, 1, 2}, {2, 1, 0}};
    uint64_t by[3] = {width, area, fullest};
    const int *order = orders[kind];
    k->keys[i] = (rank_key){{by[order[0]], by[order[1]], by[order[2]]}, i};
  }
  qsort(k->keys, p->n, sizeof *k->keys, by_key);
  for (uint32_t r = 0; r < p->n; r++)
    k->rank[k->keys[r].block] = r;
}

/* One search for a packing that ends at `cap` at the latest. */
static outcome attempt(seeker *k, size_t cap, int kind, uint64_t looks) {
  const sn__pack *p = k->p;
  k->cap = cap;
  k->limit = k->looks + looks;
  k->looks += p->n + k->failed_mask / 16; /* getting ready is work, too */
  rank_blocks(k, kind);
  uint64_t *all = &k->rows[0];
  memset(all, 0, k->words * sizeof *all);
  memset(k->failed, 0, (k->failed_mask + 1) * sizeof *k->failed);
  for (uint32_t i = 0; i < p->n; i++) {
    k->floor[i] = 0;
    if (p->bytes[i] > 0) all[i / 64] |= (uint64_t)1 << (i % 64);
  }
  k->n_rows = 1;
  outcome o = search_parts(k, all, 0, 0);
  take_back(k, 0, 0);
  return o;
}

static size_t end_of(const seeker *k) {
  size_t end = 0;
  for (uint32_t i = 0; i < k->p->n; i++)
    if (k->offsets[i] + k->p->bytes[i] > end) end = k->offsets[i] + k->p->bytes[i];
  return end;
}

/* Every order in turn; what one refuses, all would. */
static outcome attempts(seeker *k, size_t cap, uint64_t looks, uint64_t budget) {
  outcome o = SPENT;
  for (int kind = 0; o == SPENT && kind < ORDERS && k->looks < budget; kind++)
    o = attempt(k, cap, kind, looks < budget - k->looks ? looks : budget - k->looks);
  return o;
}

/* Lowers *best at one price an attempt: the lowest limit that is not refused, with ever longer
 * strides; then halfway between what was not found at that price and the best known, until they are
 * close. */
static void lower_limits(seeker *k, uint64_t looks, uint64_t budget, size_t *best, size_t *lower) {
  size_t given_up = 0, stride = 0;
  while (*best > *lower && k->looks < budget) {
    size_t low = given_up >= *lower ? given_up : *lower, gap = *best - low;
    size_t cap = low + (stride < gap ? stride : gap / 2);
    if (given_up >= *lower) cap = low + gap / 2;
    cap -= cap % k->grain;
    if (given_up >= *lower && (cap <= given_up || gap <= *lower / 512)) return;
    outcome o = attempts(k, cap, looks, budget);
    if (o == FOUND) {
      *best = end_of(k);
      memcpy(k->p->offsets, k->offsets, k->p->n * sizeof *k->offsets);
    } else if (o == NONE) {
      *lower = cap + k->grain;
      stride = stride == 0 ? k->grain : 2 * stride;
    } else {
      given_up = cap;
    }
  }
}

static size_t common_divisor(size_t a, size_t b) {
  while (b != 0) {
    size_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

sn_status sn__pack_search(sn__pack *p, uint64_t budget, size_t *bytes, size_t *lower_bound,
                          uint64_t *out_looks) {
  sn__arena scratch = {NULL};
  seeker k = {.p = p, .words = p->words, .failed_mask = FAILED_FEW - 1};
  *lower_bound = p->live_bytes;
  *out_looks = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    k.grain = common_divisor(k.grain, p->bytes[i]);
    if (p->bytes[i] > *lower_bound) *lower_bound = p->bytes[i];
  }
  if (k.grain == 0 || p->n > MOST_BLOCKS || *bytes <= *lower_bound) return SN_OK;
  while (k.failed_mask < FAILED_MANY - 1 && k.failed_mask < budget / (p->n + 1))
    k.failed_mask = k.failed_mask * 2 + 1;
  bool ok = make_ready(&k, &scratch);
  if (ok) {
    for (uint32_t s = 0; s < k.n_sections; s++)
      if (k.left[s] > *lower_bound) *lower_bound = k.left[s];
    *lower_bound += (k.grain - *lower_bound % k.grain) % k.grain;
    for (uint64_t looks = 1000 * (uint64_t)p->n; *bytes > *lower_bound && k.looks < budget;
         looks *= 4)
      lower_limits(&k, looks, budget, bytes, lower_bound);
    *out_looks = k.looks;
  }
  sn__arena_free(&scratch);
  return ok ? SN_OK : sn_status_out_of_memory();
}

/* ---- lifetimes on one clock ---------------------------------------------------------------- */

static int by_time(const void *x, const void *y) {
  const int64_t *a = x, *b = y;
  return *a < *b ? -1 : *a > *b;
}

static uint32_t find_time(const int64_t *times, uint32_t n, int64_t time) {
  uint32_t low = 0, high = n;
  while (low + 1 < high) {
    uint32_t middle = low + (high - low) / 2;
    if (times[middle] <= time)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static sn_status check_intervals(const sn__intervals *v) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < v->n; i++) {
    if (v->sizes[i] < 0 || v->lower[i] > v->upper[i])
      return sn_status_make(
          SN_CODE_INVALID,
          "buffer %u: size %lld, alive from %lld to %lld: sizes are 0 or more and "
          "lifetimes end after they begin",
          i, (long long)v->sizes[i], (long long)v->lower[i], (long long)v->upper[i]);
    if (v->sizes[i] > ((int64_t)1 << 60) - sum)
      return sn_status_make(SN_CODE_INVALID, "buffer %u: the sizes add up to more than 2^60 bytes",
                            i);
    sum += v->sizes[i];
  }
  return SN_OK;
}

/* Blocks alive at each of the times at which one begins: there, all conflicts are seen. */
static sn_status fill(const sn__intervals *v, sn__pack *p, sn__arena *a) {
  uint32_t n = v->n;
  p->words = ((size_t)n + 63) / 64;
  int64_t *times = take(a, n, sizeof *times);
  size_t *bytes = take(a, n, sizeof *bytes);
  uint32_t *first = take(a, n, sizeof *first), *last = take(a, n, sizeof *last);
  uint64_t *conflicts = take(a, n, p->words * sizeof *conflicts);
  uint64_t *moments = take(a, n, p->words * sizeof *moments);
  p->offsets = take(a, n, sizeof *p->offsets);
  if (times == NULL || bytes == NULL || first == NULL || last == NULL || conflicts == NULL ||
      moments == NULL || p->offsets == NULL)
    return sn_status_out_of_memory();
  memcpy(times, v->lower, n * sizeof *times);
  qsort(times, n, sizeof *times, by_time);
  uint32_t n_times = 0;
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || times[i] != times[n_times - 1]) times[n_times++] = times[i];
  for (uint32_t i = 0; i < n; i++) {
    bytes[i] = v->lower[i] < v->upper[i] ? (size_t)v->sizes[i] : 0;
    first[i] = last[i] = find_time(times, n_times, v->lower[i]);
    if (bytes[i] > 0) last[i] = find_time(times, n_times, v->upper[i] - 1);
    for (uint32_t t = first[i]; bytes[i] > 0 && t <= last[i]; t++)
      moments[t * p->words + i / 64] |= (uint64_t)1 << (i % 64);
    for (uint32_t j = 0; bytes[i] > 0 && j < i; j++) {
      if (bytes[j] == 0 || first[i] > last[j] || first[j] > last[i]) continue;
      conflicts[i * p->words + j / 64] |= (uint64_t)1 << (j % 64);
      conflicts[j * p->words + i / 64] |= (uint64_t)1 << (i % 64);
    }
  }
  for (uint32_t t = 0; t < n_times; t++) {
    size_t live = 0;
    for (uint32_t i = 0; i < n; i++)
      live += has(&moments[t * p->words], i) ? bytes[i] : 0;
    if (live > p->live_bytes) p->live_bytes = live;
  }
  p->n = n;
  p->bytes = bytes;
  p->first = first;
  p->last = last;
  p->conflicts = conflicts;
  p->moments = moments;
  p->n_moments = n_times;
  return SN_OK;
}

sn_status sn__pack_intervals(sn__intervals *v) {
  SN_TRY(check_intervals(v));
  sn__arena scratch = {NULL};
  sn__pack p = {0};
  size_t bytes = 0, lower = 0;
  sn_status status = fill(v, &p, &scratch);
  if (status == SN_OK) status = sn__pack_blocks(&p, &bytes);
  v->first_bytes = (int64_t)bytes;
  if (status == SN_OK)
    status =
        sn__pack_search(&p, v->budget > 0 ? v->budget : SN__PACK_BUDGET, &bytes, &lower, &v->used);
  if (status == SN_OK) {
    for (uint32_t i = 0; i < v->n; i++)
      v->offsets[i] = (int64_t)p.offsets[i];
    v->bytes = (int64_t)bytes;
    v->live_bytes = (int64_t)p.live_bytes;
    v->lower_bound = (int64_t)lower;
  }
  sn__arena_free(&scratch);
  return status;
}
