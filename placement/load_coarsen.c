/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of one device paired by the nets they share, level by level. */
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "placement/load_anneal.h"

enum { NET_ENDS_MOST = 64 }; /* larger nets say little of who belongs together */

/* The unpaired neighbour on the same device that shares most; `score` and `seen` are scratch. */
static uint32_t best_partner(const sn__load *l, const int *device, const uint32_t *pair, uint32_t c,
                             uint64_t seed, int64_t *score, uint32_t *seen) {
  uint32_t n = 0, best = SN__FLOW_NONE;
  for (uint32_t i = l->first_net[c]; i < l->first_net[c + 1]; i++) {
    uint32_t net = l->nets[i], ends = l->first_end[net + 1] - l->first_end[net];
    if (ends > NET_ENDS_MOST) continue;
    int64_t worth = l->net_ns[net] / (ends - 1) + 1;
    for (uint32_t e = l->first_end[net]; e < l->first_end[net + 1]; e++) {
      uint32_t other = l->ends[e];
      if (other == c || pair[other] != SN__FLOW_NONE || device[other] != device[c]) continue;
      if (score[other] == 0) seen[n++] = other;
      score[other] += worth;
    }
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t o = seen[i];
    /* Up to a half off at random, so that rounds differ. */
    int64_t s = score[o] - score[o] / 1024 * (int64_t)(sn__mix64(seed ^ sn__mix64(o)) & 511);
    score[o] = 0;
    seen[i] = o;
    if (best == SN__FLOW_NONE || s > score[best]) {
      if (best != SN__FLOW_NONE) score[best] = 0;
      best = o;
      score[o] = s;
    }
  }
  if (best != SN__FLOW_NONE) score[best] = 0;
  return best;
}

/* One level: pairs until `n - target` classes have gone. into[c] is the number of c's block. */
static sn_status pair_up(const sn__load *l, const int *device, uint32_t target, uint64_t seed,
                         uint32_t *into, uint32_t *out_n) {
  uint32_t n = l->n_classes, left = n, blocks = 0;
  int64_t *order = sn__calloc((size_t)n + 1, sizeof *order);
  int64_t *score = sn__calloc((size_t)n + 1, sizeof *score);
  uint32_t *pair = sn__calloc((size_t)n + 1, 2 * sizeof *pair);
  sn_status status = SN_OK;
  if (order == NULL || score == NULL || pair == NULL) {
    status = sn_status_out_of_memory();
    goto done;
  }
  uint32_t *seen = pair + n;
  memset(pair, 0xff, n * sizeof *pair);
  sn__rng_permutation(seed, 0, n, order);
  for (uint32_t i = 0; i < n && left > target; i++) {
    uint32_t c = (uint32_t)order[i];
    if (pair[c] != SN__FLOW_NONE) continue;
    uint32_t other = best_partner(l, device, pair, c, seed, score, seen);
    if (other == SN__FLOW_NONE) continue;
    pair[c] = other;
    pair[other] = c;
    left--;
  }
  for (uint32_t c = 0; c < n; c++)
    into[c] = pair[c] != SN__FLOW_NONE && pair[c] < c ? into[pair[c]] : blocks++;
  *out_n = blocks;
done:
  sn__free(order);
  sn__free(score);
  sn__free(pair);
  return status;
}

sn_status sn__load_coarsen(const sn__load *load, const int *device, uint32_t target, uint64_t seed,
                           uint32_t *block_of, uint32_t *out_n) {
  size_t room = (size_t)load->n_classes + 1;
  uint32_t *into = sn__calloc(room, sizeof *into);
  int *where = sn__calloc(room, sizeof *where);
  const sn__load *now = load;
  sn__load *made = NULL;
  sn_status status = into != NULL && where != NULL ? SN_OK : sn_status_out_of_memory();
  uint32_t n = load->n_classes;
  for (uint32_t c = 0; c < n; c++) {
    block_of[c] = c;
    if (status == SN_OK) where[c] = device[c];
  }
  while (status == SN_OK && n > target) {
    uint32_t fewer = 0;
    SN_TRY_GOTO(status, pair_up(now, where, target, seed++, into, &fewer), done);
    if (fewer == n) break;
    for (uint32_t c = 0; c < load->n_classes; c++) {
      block_of[c] = into[block_of[c]];
      where[block_of[c]] = device[c];
    }
    n = fewer;
    sn__load *next = NULL;
    SN_TRY_GOTO(status, sn__load_contract(load, block_of, n, &next), done);
    sn__load_free(made);
    now = made = next;
  }
  *out_n = n;
done:
  sn__load_free(made);
  sn__free(into);
  sn__free(where);
  return status;
}
