/* SPDX-License-Identifier: Apache-2.0 */
/* The least largest load by looking at every placement that could be it: classes in order, a branch
 * left as soon as the work alone on one device is no less than the best plan so far. Copies cannot
 * bound a branch: a class still to come may save one. Of empty devices of one kind only the first
 * is tried. */
#include "placement/load.h"

#include <string.h>
#include "core/alloc.h"

typedef struct exact {
  const sn__load *l;
  sn__load_state state;
  int64_t *work;       /* [n_devices] */
  uint32_t *residents; /* [n_devices] classes there */
  int *best;           /* the caller's */
  int64_t best_ns;
  uint64_t steps, most;
} exact;

static bool like_an_earlier_empty(const exact *x, int device) {
  if (x->residents[device] > 0) return false;
  for (int d = 0; d < device; d++)
    if (x->residents[d] == 0 && x->l->kind_of[d] == x->l->kind_of[device]) return true;
  return false;
}

static void place_from(exact *x, uint32_t c) {
  if (x->steps >= x->most) return;
  x->steps++;
  if (c == x->l->n_classes) {
    int64_t ns = sn__load_largest(&x->state);
    if (ns >= x->best_ns) return;
    x->best_ns = ns;
    memcpy(x->best, x->state.device, x->l->n_classes * sizeof *x->best);
    return;
  }
  for (int d = 0; d < x->l->n_devices; d++) {
    if (!sn__load_fits(&x->state, c, d) || like_an_earlier_empty(x, d)) continue;
    int64_t ns = sn__load_ns(x->l, c, d);
    if (x->work[d] + ns >= x->best_ns) continue;
    x->work[d] += ns;
    x->residents[d]++;
    sn__load_move(&x->state, c, d);
    place_from(x, c + 1);
    sn__load_move(&x->state, c, -1);
    x->residents[d]--;
    x->work[d] -= ns;
  }
}

sn_status sn__load_exact(const sn__load *l, uint64_t steps, int *device, int64_t *ns,
                         uint64_t *evals, bool *out_proved) {
  exact x = {.l = l, .best = device, .best_ns = *ns, .most = steps};
  SN_TRY(sn__load_state_create(l, &x.state));
  x.work = sn__calloc((size_t)l->n_devices, sizeof *x.work);
  x.residents = sn__calloc((size_t)l->n_devices, sizeof *x.residents);
  sn_status status = x.work == NULL || x.residents == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) {
    place_from(&x, 0);
    *ns = x.best_ns;
    *evals += x.steps;
    *out_proved = x.steps < x.most;
  }
  sn__free(x.work);
  sn__free(x.residents);
  sn__load_state_free(&x.state);
  return status;
}
