/* SPDX-License-Identifier: Apache-2.0 */
/* Which classes stay together in every contiguous split that is worth looking at. */
#include <string.h>

#include "core/alloc.h"
#include "placement/load.h"

/* ---- cycles: Tarjan's components, with a stack of our own ------------------------------------ */

typedef struct walk {
  const sn__load *load;
  uint32_t *index, *low, *next, *path, *open; /* 0 in index: not met */
  bool *is_open;
  uint32_t met, n_path, n_open, n_components;
  uint32_t *component; /* numbered from the sinks on */
} walk;

static void enter(walk *w, uint32_t c) {
  w->index[c] = w->low[c] = ++w->met;
  w->next[c] = w->load->first_after[c];
  w->path[w->n_path++] = c;
  w->open[w->n_open++] = c;
  w->is_open[c] = true;
}

static void leave(walk *w, uint32_t c) {
  w->n_path--;
  if (w->n_path > 0) {
    uint32_t parent = w->path[w->n_path - 1];
    if (w->low[c] < w->low[parent]) w->low[parent] = w->low[c];
  }
  if (w->low[c] != w->index[c]) return;
  uint32_t member;
  do {
    member = w->open[--w->n_open];
    w->is_open[member] = false;
    w->component[member] = w->n_components;
  } while (member != c);
  w->n_components++;
}

static void visit_all(walk *w) {
  for (uint32_t root = 0; root < w->load->n_classes; root++) {
    if (w->index[root] != 0) continue;
    enter(w, root);
    while (w->n_path > 0) {
      uint32_t c = w->path[w->n_path - 1];
      if (w->next[c] == w->load->first_after[c + 1]) {
        leave(w, c);
        continue;
      }
      uint32_t to = w->load->after[w->next[c]++];
      if (w->index[to] == 0)
        enter(w, to);
      else if (w->is_open[to] && w->index[to] < w->low[c])
        w->low[c] = w->index[to];
    }
  }
}

static sn_status find_components(const sn__load *l, uint32_t *out, uint32_t *out_n) {
  size_t n = (size_t)l->n_classes + 1;
  uint32_t *room = sn__calloc(n, 5 * sizeof *room);
  bool *is_open = sn__calloc(n, sizeof *is_open);
  sn_status status = sn_status_out_of_memory();
  if (room != NULL && is_open != NULL) {
    walk w = {.load = l,
              .index = room,
              .low = room + n,
              .next = room + 2 * n,
              .path = room + 3 * n,
              .open = room + 4 * n,
              .is_open = is_open,
              .component = out};
    visit_all(&w);
    for (uint32_t c = 0; c < l->n_classes; c++)
      out[c] = w.n_components - 1 - out[c]; /* sources first */
    *out_n = w.n_components;
    status = SN_OK;
  }
  sn__free(room);
  sn__free(is_open);
  return status;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

/* Whether all of it fits on any one device: then room never matters. */
static bool is_roomy(const sn__load *l) {
  uint64_t sum = 0;
  for (uint32_t c = 0; c < l->n_classes; c++)
    sum += l->bytes[c];
  for (int k = 0; k < l->n_kinds; k++)
    if (l->kinds[k].bytes != 0 && l->kinds[k].bytes < sum) return false;
  return true;
}

static bool is_weightless(const sn__load *l, uint32_t c, bool roomy) {
  if (l->bytes[c] != 0 && !roomy) return false;
  for (int k = 0; k < l->n_kinds; k++)
    if (l->ns[(size_t)c * (size_t)l->n_kinds + (size_t)k] != 0) return false;
  return true;
}

/* Whether `other` is in each of c's nets: c then loses nothing by being where it is. */
static bool shares_all_nets(const sn__load *l, uint32_t c, uint32_t other) {
  for (uint32_t i = l->first_net[c]; i < l->first_net[c + 1]; i++) {
    uint32_t net = l->nets[i], e = l->first_end[net];
    while (e < l->first_end[net + 1] && l->ends[e] != other)
      e++;
    if (e == l->first_end[net + 1]) return false;
  }
  return true;
}

/* The class that c may join: the only one before it or the only one after it (a move to its slice
 * then passes no edge), or anybody when c is alone. SN__FLOW_NONE: there is none. */
static uint32_t find_host(const sn__load *l, uint32_t c, uint32_t n_before, uint32_t last_before) {
  uint32_t n_after = l->first_after[c + 1] - l->first_after[c];
  uint32_t last_after = n_after > 0 ? l->after[l->first_after[c]] : SN__FLOW_NONE;
  if (n_before == 1 && shares_all_nets(l, c, last_before)) return last_before;
  if (n_after == 1 && shares_all_nets(l, c, last_after)) return last_after;
  if (n_before > 0 || n_after > 0 || l->n_classes < 2) return SN__FLOW_NONE;
  if (l->first_net[c] < l->first_net[c + 1]) return SN__FLOW_NONE;
  return c == 0 ? 1 : 0;
}

/* into[c]: the class that c joins, itself if none. Joins are one deep: a class that another joins
 * stays. */
static sn_status join_leaves(const sn__load *l, uint32_t *into, uint32_t *out_joined) {
  uint32_t *n_before = sn__calloc((size_t)l->n_classes + 1, 2 * sizeof *n_before);
  if (n_before == NULL) return sn_status_out_of_memory();
  uint32_t *last_before = n_before + l->n_classes;
  *out_joined = 0;
  for (uint32_t c = 0; c < l->n_classes; c++)
    for (uint32_t i = l->first_after[c]; i < l->first_after[c + 1]; i++) {
      n_before[l->after[i]]++;
      last_before[l->after[i]] = c;
    }
  bool roomy = is_roomy(l);
  bool *taken = sn__calloc((size_t)l->n_classes + 1, sizeof *taken);
  for (uint32_t c = 0; taken != NULL && c < l->n_classes; c++) {
    into[c] = c;
    if (taken[c] || !is_weightless(l, c, roomy)) continue;
    uint32_t other = find_host(l, c, n_before[c], last_before[c]);
    if (other == SN__FLOW_NONE || (other < c && into[other] != other)) continue;
    into[c] = other;
    taken[other] = true;
    ++*out_joined;
  }
  bool ok = taken != NULL;
  sn__free(taken);
  sn__free(n_before);
  return ok ? SN_OK : sn_status_out_of_memory();
}

/* Numbers what is left and tells each old class its new number. */
static uint32_t renumber(uint32_t *into, uint32_t n, uint32_t *number) {
  uint32_t left = 0;
  for (uint32_t c = 0; c < n; c++)
    if (into[c] == c) number[c] = left++;
  for (uint32_t c = 0; c < n; c++)
    into[c] = number[into[c]];
  return left;
}

sn_status sn__load_blocks(const sn__load *load, uint32_t *block_of, uint32_t *out_n) {
  enum { ROUNDS_MOST = 64 };
  sn__load *now = NULL;
  uint32_t n = 0, joined = 0;
  SN_TRY(find_components(load, block_of, &n));
  uint32_t *into = sn__calloc((size_t)n + 1, 2 * sizeof *into);
  if (into == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  for (int round = 0; round < ROUNDS_MOST && status == SN_OK; round++) {
    sn__load_free(now);
    now = NULL;
    SN_TRY_GOTO(status, sn__load_contract(load, block_of, n, &now), done);
    SN_TRY_GOTO(status, join_leaves(now, into, &joined), done);
    if (joined == 0) break;
    n = renumber(into, n, into + n);
    for (uint32_t c = 0; c < load->n_classes; c++)
      block_of[c] = into[block_of[c]];
  }
  *out_n = n;
done:
  sn__load_free(now);
  sn__free(into);
  return status;
}
