/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds on a step: no plan takes less. */
#include "core/alloc.h"
#include "placement/makespan_impl.h"

static int64_t least_ns(const sn__flow *f, uint32_t t) {
  int64_t least = SN__FLOW_NEVER;
  int pin = f->class_pin[f->task_class[t]];
  for (int d = 0; d < f->n_devices; d++) {
    int64_t ns = f->task_ns[(size_t)t * (size_t)f->n_devices + (size_t)d];
    if ((pin < 0 || pin == d) && ns < least) least = ns;
  }
  return least;
}

static int64_t critical_path(const sn__flow *f, int64_t *end) {
  int64_t longest = 0;
  for (uint32_t i = 0; i < f->n_tasks; i++) {
    uint32_t t = f->topological[i];
    end[t] += least_ns(f, t); /* from its start */
    if (end[t] > longest) longest = end[t];
    for (uint32_t o = f->first_output[t]; o < f->first_output[t + 1]; o++)
      for (uint32_t r = f->first_reader[f->outputs[o]]; r < f->first_reader[f->outputs[o] + 1]; r++)
        if (end[t] > end[f->reads[r].task]) end[f->reads[r].task] = end[t];
    for (uint32_t o = f->first_order[t]; o < f->first_order[t + 1]; o++)
      if (f->orders[o].reads == 0 && end[t] > end[f->orders[o].after])
        end[f->orders[o].after] = end[t];
  }
  return longest;
}

static int64_t work(const sn__flow *f) {
  int64_t sum = 0;
  for (uint32_t t = 0; t < f->n_tasks; t++)
    sum += least_ns(f, t);
  return sum / f->n_devices + (sum % f->n_devices != 0);
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

sn_status sn__makespan_bound(const sn__flow *f, int64_t *out_bound, const char **out_name) {
  int64_t *end = sn__calloc((size_t)f->n_tasks + 1, sizeof *end);
  if (end == NULL) return sn_status_out_of_memory();
  const struct {
    int64_t bound;
    const char *name;
  } all[] = {{critical_path(f, end), "critical path"},
             {work(f), "work"},
             {largest_class(f), "largest class"}};
  sn__free(end);
  *out_bound = -1;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].bound > *out_bound) {
      *out_bound = all[i].bound;
      *out_name = all[i].name;
    }
  return SN_OK;
}
