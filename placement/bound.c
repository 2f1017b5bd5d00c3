/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds on a step: no plan that fits takes less, whether it waits on purpose or not. */
#include "placement/bound_work.h"
#include "placement/makespan_impl.h"

static int64_t path(const sn__windows *w) {
  int64_t longest = 0;
  for (uint32_t t = 0; t < w->n; t++)
    if (w->head[t] + w->ns[t] + w->tail[t] > longest) longest = w->head[t] + w->ns[t] + w->tail[t];
  return longest;
}

static int64_t largest_class(const sn__flow *f) {
  int64_t most = 0;
  for (uint32_t c = 0; c < f->n_classes; c++) {
    int64_t least = SN__FLOW_NEVER;
    for (int d = 0; d < f->n_devices; d++) {
      int64_t ns = f->class_pin[c] >= 0 && f->class_pin[c] != d ? SN__FLOW_NEVER
                                                                : sn__flow_class_ns(f, c, d);
      if (ns < least) least = ns;
    }
    if (least != SN__FLOW_NEVER && least > most) most = least;
  }
  return most;
}

typedef struct best {
  int64_t ns;
  const char *name;
} best;

/* Of equal ones the first stays: from the plainest on. */
static void raise(best *b, int64_t ns, const char *name) {
  if (ns > b->ns) *b = (best){ns, name};
}

/* How many tasks before each are looked at together: what takes a tenth of a second at most. */
static uint32_t near_of(const sn__flow *f) {
  enum { MOST = 128, WORK = 600000 };
  uint32_t near = WORK / (f->n_tasks + 1);
  return near < MOST ? near : MOST;
}

static sn_status of_windows(const sn__flow *f, best *b) {
  sn__windows w;
  int64_t ns = 0;
  SN_TRY(sn__windows_create(f, 0, &w));
  raise(b, path(&w), "critical path");
  sn__windows_free(&w);
  SN_TRY(sn__windows_create(f, near_of(f), &w));
  raise(b, path(&w),
        w.memory ? "critical path, with copies that joins and memory force"
                 : "critical path, with copies that joins force");
  sn_status status = sn__bound_crossing(f, &w, &ns);
  raise(b, ns, "a copy that memory forces");
  if (status == SN_OK) status = sn__bound_windows(f, &w, &ns);
  raise(b, ns, "work between earliest starts and shortest ends");
  if (status == SN_OK) status = sn__bound_energy(f, &w, b->ns, &ns);
  raise(b, ns, "work that must run in a stretch of time");
  sn__windows_free(&w);
  return status;
}

sn_status sn__makespan_bound(const sn__flow *f, int64_t *out_bound, const char **out_name) {
  best b = {-1, "nothing takes time"};
  int64_t ns = 0;
  bool memory = false;
  SN_TRY(sn__bound_shared(f, &ns, &memory));
  raise(&b, ns, memory ? "work, shared out within memory" : "work");
  raise(&b, largest_class(f), "largest class");
  SN_TRY(of_windows(f, &b));
  *out_bound = b.ns;
  *out_name = b.name;
  return SN_OK;
}
