/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/load_start.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

void sn__load_one_device(const sn__load *l, int *out_device, int64_t *out_ns) {
  *out_ns = SN__FLOW_NEVER;
  for (int d = 0; d < l->n_devices; d++) {
    const sn__load_kind *kind = &l->kinds[l->kind_of[d]];
    int64_t sum = 0;
    uint64_t bytes = 0;
    bool all = true;
    for (uint32_t c = 0; all && c < l->n_classes; c++) {
      int64_t ns = sn__load_ns(l, c, d);
      all = ns != SN__FLOW_NEVER;
      sum += all ? ns : 0;
      bytes += l->bytes[c];
    }
    if (!all || (kind->bytes != 0 && bytes > kind->bytes) || sum >= *out_ns) continue;
    *out_ns = sum;
    *out_device = d;
  }
}

typedef struct weighed {
  uint64_t bytes;
  int64_t ns;
  uint32_t class_;
} weighed;

/* By bytes, then by time, largest first. */
static int compare_weighed(const void *a, const void *b) {
  const weighed *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->ns != y->ns) return x->ns > y->ns ? -1 : 1;
  return x->class_ < y->class_ ? -1 : x->class_ > y->class_;
}

/* The device whose load is least with the class; -1: it fits nowhere. */
static int best_device(const sn__load_state *s, uint32_t c) {
  int best = -1;
  int64_t best_ns = 0;
  for (int d = 0; d < s->load->n_devices; d++) {
    int64_t from = 0, to = 0;
    if (!sn__load_fits(s, c, d)) continue;
    sn__load_try(s, c, d, &from, &to);
    if (best >= 0 && to >= best_ns) continue;
    best = d;
    best_ns = to;
  }
  return best;
}

sn_status sn__load_greedy(const sn__load *l, int *device, int64_t *out_ns, uint32_t *out_class) {
  sn__load_state s;
  SN_TRY(sn__load_state_create(l, &s));
  weighed *order = sn__calloc((size_t)l->n_classes + 1, sizeof *order);
  if (order == NULL) {
    sn__load_state_free(&s);
    return sn_status_out_of_memory();
  }
  for (uint32_t c = 0; c < l->n_classes; c++) {
    order[c] = (weighed){.bytes = l->bytes[c], .class_ = c};
    for (int k = 0; k < l->n_kinds; k++) {
      int64_t ns = l->ns[(size_t)c * (size_t)l->n_kinds + (size_t)k];
      if (ns != SN__FLOW_NEVER && ns > order[c].ns) order[c].ns = ns;
    }
  }
  if (l->n_classes > 1) qsort(order, l->n_classes, sizeof *order, compare_weighed);
  *out_ns = 0;
  for (uint32_t i = 0; i < l->n_classes && *out_ns == 0; i++) {
    int to = best_device(&s, order[i].class_);
    if (to < 0) {
      *out_ns = SN__FLOW_NEVER;
      *out_class = order[i].class_;
    } else {
      sn__load_move(&s, order[i].class_, to);
    }
  }
  if (*out_ns == 0) {
    *out_ns = sn__load_largest(&s);
    memcpy(device, s.device, l->n_classes * sizeof *device);
  }
  sn__free(order);
  sn__load_state_free(&s);
  return SN_OK;
}
