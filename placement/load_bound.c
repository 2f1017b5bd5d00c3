/* SPDX-License-Identifier: Apache-2.0 */
/* Loads that no assignment can be below. */
#include "placement/load_bound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

typedef __int128 wide;

/* ---- work shared out ------------------------------------------------------------------------- */

/* The fastest kind, by the sum of what all kinds can run. */
static int fastest_kind(const sn__load *l) {
  int best = 0;
  wide best_sum = 0;
  for (int k = 0; k < l->n_kinds; k++) {
    wide sum = 0;
    for (uint32_t c = 0; c < l->n_classes; c++) {
      int64_t ns = l->ns[(size_t)c * (size_t)l->n_kinds + (size_t)k];
      sum += ns == SN__FLOW_NEVER ? SN__FLOW_TIME_MOST : ns;
    }
    if (k == 0 || sum < best_sum) {
      best = k;
      best_sum = sum;
    }
  }
  return best;
}

/* The relaxation in which classes may be split, for devices of two groups: n of kind `a` and m of
 * kind `b`: those with the smallest ratio of b's time to a's go to b first. Whether all is done in
 * `ns`. `by_ratio`: classes, b's time over a's ascending. */
static bool fits_within(const sn__load *l, int a, int b, const uint32_t *by_ratio, int64_t ns) {
  wide room_a = (wide)ns * l->kinds[a].count, room_b = (wide)ns * l->kinds[b].count;
  uint32_t n = l->n_classes;
  for (uint32_t i = 0; i < n; i++) {
    int64_t on_a = l->ns[(size_t)by_ratio[i] * (size_t)l->n_kinds + (size_t)a];
    int64_t on_b = l->ns[(size_t)by_ratio[i] * (size_t)l->n_kinds + (size_t)b];
    if (on_b == SN__FLOW_NEVER) {
      room_a -= on_a;
    } else if (on_b <= room_b) {
      room_b -= on_b;
    } else if (on_a == SN__FLOW_NEVER) {
      return false;
    } else {
      /* The part that is left over, rounded in favour of what is asked. */
      room_a -= (wide)on_a * (on_b - room_b) / on_b;
      room_b = 0;
    }
    if (room_a < 0) return false;
  }
  return true;
}

typedef struct ratio {
  int64_t a, b;
  uint32_t class_;
} ratio;

static int compare_ratios(const void *x, const void *y) {
  const ratio *p = x, *q = y;
  /* b/a ascending; what a cannot run comes first, what b cannot last. */
  int p_rank = p->a == SN__FLOW_NEVER ? 0 : p->b == SN__FLOW_NEVER ? 2 : 1;
  int q_rank = q->a == SN__FLOW_NEVER ? 0 : q->b == SN__FLOW_NEVER ? 2 : 1;
  if (p_rank != q_rank) return p_rank - q_rank;
  if (p_rank == 1) {
    wide left = (wide)p->b * q->a, right = (wide)q->b * p->a;
    if (left != right) return left < right ? -1 : 1;
  }
  return p->class_ < q->class_ ? -1 : p->class_ > q->class_;
}

static sn_status two_kinds(const sn__load *l, int a, int b, int64_t *out) {
  ratio *rows = sn__calloc((size_t)l->n_classes + 1, sizeof *rows);
  uint32_t *order = sn__calloc((size_t)l->n_classes + 1, sizeof *order);
  if (rows == NULL || order == NULL) {
    sn__free(rows);
    sn__free(order);
    return sn_status_out_of_memory();
  }
  for (uint32_t c = 0; c < l->n_classes; c++)
    rows[c] = (ratio){l->ns[(size_t)c * (size_t)l->n_kinds + (size_t)a],
                      l->ns[(size_t)c * (size_t)l->n_kinds + (size_t)b], c};
  if (l->n_classes > 1) qsort(rows, l->n_classes, sizeof *rows, compare_ratios);
  for (uint32_t c = 0; c < l->n_classes; c++)
    order[c] = rows[c].class_;
  int64_t low = 0, high = SN__FLOW_TIME_MOST;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (fits_within(l, a, b, order, middle))
      high = middle;
    else
      low = middle + 1;
  }
  *out = low;
  sn__free(rows);
  sn__free(order);
  return SN_OK;
}

/* All classes at their fastest, shared out over all devices. */
static int64_t plain_work(const sn__load *l) {
  wide sum = 0;
  for (uint32_t c = 0; c < l->n_classes; c++) {
    int64_t least = SN__FLOW_NEVER;
    for (int k = 0; k < l->n_kinds; k++) {
      int64_t ns = l->ns[(size_t)c * (size_t)l->n_kinds + (size_t)k];
      if (ns < least) least = ns;
    }
    sum += least;
  }
  return (int64_t)((sum + l->n_devices - 1) / l->n_devices);
}

/* ---- the others -------------------------------------------------------------------------------
 */

/* The largest class on the device that suits it best. */
static int64_t largest_class(const sn__load *l) {
  int64_t most = 0;
  for (uint32_t c = 0; c < l->n_classes; c++) {
    int64_t least = SN__FLOW_NEVER;
    for (int k = 0; k < l->n_kinds; k++) {
      int64_t ns = l->ns[(size_t)c * (size_t)l->n_kinds + (size_t)k];
      if (ns < least) least = ns;
    }
    if (least > most) most = least;
  }
  return most;
}

static void raise(sn__load_bound *b, int64_t ns, const char *words) {
  if (ns <= b->ns) return;
  b->ns = ns;
  snprintf(b->words, sizeof b->words, "%s", words);
}

sn_status sn__load_bound_of(const sn__load *l, sn__load_bound *out) {
  int a = fastest_kind(l);
  *out = (sn__load_bound){.words = "nothing takes time"};
  raise(out, plain_work(l), "all work at its fastest, shared out over all devices");
  raise(out, largest_class(l), "the largest class of nodes that must stay together");
  if (l->n_kinds == 2) {
    int64_t ns = 0;
    SN_TRY(two_kinds(l, a, 1 - a, &ns));
    raise(out, ns, "all work shared out over the devices at their own speeds");
  }
  return SN_OK;
}
