/* SPDX-License-Identifier: Apache-2.0 */
/* What can be exchanged.
 *
 * Twins: two jobs of a queue, equally long, that wait for the same jobs, and whose followers are
 * the same or twins in their turn, each waiting for its own of the two and else for the same. To
 * exchange them with what follows changes nothing, so the first by number goes first.
 *
 * Equals: two jobs of a queue, equally long, with the same followers. Whichever is there first can
 * go first: they take each other's places. Neither disturbs the other: of a best schedule the twins
 * are exchanged from the front to the back, then the equals sorted by when they are there. */
#include "placement/exact_alike.h"

#include <string.h>

#include "core/alloc.h"

enum { PAIRS_PER_JOB = 8, DEPTH_MOST = 6, FOLLOWERS_MOST = 24 };

sn_status sn__alike_create(sn__jobs *jobs, sn__alike **out_alike) {
  sn__alike *a = sn__calloc(1, sizeof *a);
  if (a == NULL) return sn_status_out_of_memory();
  a->jobs = jobs;
  a->most_pairs = jobs->most < UINT32_MAX / PAIRS_PER_JOB ? jobs->most * PAIRS_PER_JOB : 0;
  a->first_before = sn__calloc((size_t)jobs->most + 2, sizeof *a->first_before);
  a->before = sn__calloc(jobs->most_edges, sizeof *a->before);
  a->last = sn__calloc((size_t)jobs->most + 1, sizeof *a->last);
  a->pairs = sn__calloc((size_t)a->most_pairs + 1, sizeof *a->pairs);
  if (!a->first_before || !a->before || !a->pairs || !a->last) {
    sn__alike_free(a);
    return sn_status_out_of_memory();
  }
  *out_alike = a;
  return SN_OK;
}

void sn__alike_free(sn__alike *a) {
  if (a == NULL) return;
  sn__free(a->first_before);
  sn__free(a->before);
  sn__free(a->pairs);
  sn__free(a->last);
  sn__free(a);
}

static bool contains(const uint32_t *items, uint32_t n, uint32_t item) {
  for (uint32_t i = 0; i < n; i++)
    if (items[i] == item) return true;
  return false;
}

/* Whether each of the first is among the second, `one` standing for `other`. Lists may repeat. */
static bool within(const uint32_t *first, uint32_t n, const uint32_t *second, uint32_t m,
                   uint32_t one, uint32_t other) {
  for (uint32_t i = 0; i < n; i++)
    if (!contains(second, m, first[i] == one ? other : first[i])) return false;
  return true;
}

/* Whether i and j wait for the same, but for one instead of the other. */
static bool same_before(const sn__jobs *x, uint32_t i, uint32_t j, uint32_t one, uint32_t other) {
  const uint32_t *a = x->before + x->first_before[i], *b = x->before + x->first_before[j];
  uint32_t n = x->first_before[i + 1] - x->first_before[i];
  uint32_t m = x->first_before[j + 1] - x->first_before[j];
  return within(a, n, b, m, one, other) && within(b, m, a, n, other, one);
}

static bool same_after(const sn__jobs *x, uint32_t i, uint32_t j) {
  const uint32_t *a = x->after + x->first_after[i], *b = x->after + x->first_after[j];
  uint32_t n = x->first_after[i + 1] - x->first_after[i];
  uint32_t m = x->first_after[j + 1] - x->first_after[j];
  return within(a, n, b, m, UINT32_MAX, 0) && within(b, m, a, n, UINT32_MAX, 0);
}

static bool same_job(const sn__jobs *x, uint32_t i, uint32_t j) {
  return x->jobs[i].queue == x->jobs[j].queue && x->jobs[i].ns == x->jobs[j].ns;
}

/* Whether what follows i and j is the same or twins. Both wait for the same already. */
static bool followers_alike(const sn__jobs *x, uint32_t i, uint32_t j, int depth) {
  const uint32_t *a = x->after + x->first_after[i], *b = x->after + x->first_after[j];
  uint32_t n = x->first_after[i + 1] - x->first_after[i];
  uint32_t m = x->first_after[j + 1] - x->first_after[j];
  bool taken[FOLLOWERS_MOST] = {false};
  if (n != m || n > FOLLOWERS_MOST || depth == DEPTH_MOST) return false;
  for (uint32_t k = 0; k < n; k++) {
    bool found = false;
    for (uint32_t l = 0; !found && l < m; l++) {
      if (taken[l]) continue;
      found = a[k] == b[l] ||
              (!contains(b, m, a[k]) && !contains(a, n, b[l]) && same_job(x, a[k], b[l]) &&
               same_before(x, a[k], b[l], i, j) && followers_alike(x, a[k], b[l], depth + 1));
      if (found) taken[l] = true;
    }
    if (!found) return false;
  }
  return true;
}

void sn__alike_find(sn__alike *a) {
  sn__jobs *x = a->jobs;
  memcpy(a->first_before, x->first_before, ((size_t)x->n + 1) * sizeof *a->first_before);
  memcpy(a->before, x->before, x->n_edges * sizeof *a->before);
  for (uint32_t j = 0; j < x->n; j++)
    a->last[j] = x->first_after[j] == x->first_after[j + 1];
  a->n_pairs = 0;
  for (int q = 0; q < x->n_queues; q++)
    for (uint32_t k = x->first_on[q]; k < x->first_on[q + 1]; k++)
      for (uint32_t l = k + 1; l < x->first_on[q + 1]; l++) {
        uint32_t i = x->on[k] < x->on[l] ? x->on[k] : x->on[l];
        uint32_t j = x->on[k] < x->on[l] ? x->on[l] : x->on[k];
        if (!same_job(x, i, j)) continue;
        if (same_after(x, i, j)) {
          if (a->n_pairs < a->most_pairs) a->pairs[a->n_pairs++] = (sn__job_edge){i, j};
        } else if (same_before(x, i, j, UINT32_MAX, 0) && followers_alike(x, i, j, 0)) {
          (void)sn__jobs_join(x, i, j);
        }
      }
}

/* Whether i is there no later than j: each job that it waits for is one that j waits for, too, or
 * goes before one. */
static bool is_there_first(const sn__alike *a, const int64_t *apart, uint32_t i, uint32_t j) {
  size_t n = a->jobs->n;
  for (uint32_t e = a->first_before[i]; e < a->first_before[i + 1]; e++) {
    bool found = false;
    for (uint32_t d = a->first_before[j]; !found && d < a->first_before[j + 1]; d++)
      found = a->before[e] == a->before[d] || apart[a->before[e] * n + a->before[d]] >= 0;
    if (!found) return false;
  }
  return true;
}

static bool are_there_together(const sn__alike *a, const int64_t *apart, uint32_t i, uint32_t j) {
  return is_there_first(a, apart, i, j) && is_there_first(a, apart, j, i);
}

/* Whether a queue has nothing else to do any more when j, which nothing waits for, is there. */
static bool ends_queue(const sn__alike *a, const int64_t *apart, int q, uint32_t j) {
  const sn__jobs *x = a->jobs;
  for (uint32_t l = x->first_on[q]; l < x->first_on[q + 1]; l++) {
    uint32_t k = x->on[l];
    if (k == j || apart[(size_t)k * x->n + j] >= 0) continue;
    if (apart[(size_t)j * x->n + k] >= 0 && a->last[k]) continue; /* ordered here before */
    if (!a->last[k] || !are_there_together(a, apart, k, j)) return false;
  }
  return true;
}

/* The last jobs of a queue, all there at once: any order takes the same time. */
static int order_last(sn__alike *a, const int64_t *apart, int q) {
  sn__jobs *x = a->jobs;
  int added = 0;
  uint32_t before = SN__FLOW_NONE;
  for (uint32_t l = x->first_on[q]; l < x->first_on[q + 1]; l++) {
    uint32_t j = x->on[l];
    if (!a->last[j] || !ends_queue(a, apart, q, j)) continue;
    if (before != SN__FLOW_NONE && apart[(size_t)before * x->n + j] < 0 &&
        apart[(size_t)j * x->n + before] < 0 && sn__jobs_join(x, before, j))
      added++;
    before = j;
  }
  return added;
}

int sn__alike_order(sn__alike *a, const int64_t *apart) {
  sn__jobs *x = a->jobs;
  int added = 0;
  for (int q = 0; q < x->n_queues; q++)
    added += order_last(a, apart, q);
  if (added > 0) return added; /* measured again before equals are looked at */
  for (uint32_t p = 0; p < a->n_pairs; p++) {
    uint32_t i = a->pairs[p].before, j = a->pairs[p].after;
    if (apart[(size_t)i * x->n + j] >= 0 || apart[(size_t)j * x->n + i] >= 0) continue;
    bool first = is_there_first(a, apart, i, j);
    if (!first && !is_there_first(a, apart, j, i)) continue;
    if (!sn__jobs_join(x, first ? i : j, first ? j : i)) break;
    added++;
  }
  return added;
}
