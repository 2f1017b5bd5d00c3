/* SPDX-License-Identifier: Apache-2.0 */
/* A plan's step on another batch than it was made for: the order stays, the times change. */
#include "core/run/run_impl.h"

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Tasks are ordered so that each follows all it depends on. */
sn_status sn_plan_predict(const sn_plan *p, const int64_t *extents, sn_node_time *out_times,
                          int64_t *out_step_ns) {
  const sn__schedule *s = p->schedule;
  int64_t *finish = sn__calloc((size_t)s->n_tasks + 1, sizeof *finish);
  int64_t *usual = sn__calloc(p->graph->n_symbols + 1, sizeof *usual);
  sn_status status = finish == NULL || usual == NULL ? sn_status_out_of_memory() : SN_OK;
  for (uint32_t i = 0; status == SN_OK && extents == NULL && i < p->graph->n_symbols; i++)
    usual[i] = sn__plan_extent(p, i);
  int64_t step = 0;
  for (uint32_t t = 0; status == SN_OK && t < s->n_tasks; t++) {
    const sn__task *task = &s->tasks[t];
    int64_t start = 0, cost = 0;
    if (task->position > 0)
      start = finish[s->queue_tasks[s->queue_first[task->queue] + task->position - 1]];
    for (uint32_t w = task->first_wait; w < task->first_wait + task->n_waits; w++) {
      const sn__queue_point *on = &s->waits[w];
      start = later(start, finish[s->queue_tasks[s->queue_first[on->queue] + on->position]]);
    }
    status = sn__node_cost_ns(p->graph, p->topology, extents != NULL ? extents : usual, task->node,
                              &cost);
    finish[t] = start + cost;
    if (out_times != NULL) out_times[t] = (sn_node_time){start, finish[t]};
    step = later(step, finish[t]);
  }
  sn__free(finish);
  sn__free(usual);
  *out_step_ns = step + sn_plan_host_ns(p);
  return status;
}

sn_status sn_plan_cost_sources(const sn_plan *p, size_t *out_counts) {
  for (int k = 0; k < SN_COST_SOURCE_COUNT; k++)
    out_counts[k] = 0;
  int64_t *extents = sn__calloc(p->graph->n_symbols + 1, sizeof *extents);
  if (extents == NULL) return sn_status_out_of_memory();
  for (uint32_t i = 0; i < p->graph->n_symbols; i++)
    extents[i] = sn__plan_extent(p, i);
  sn_status status = SN_OK;
  for (uint32_t t = 0; status == SN_OK && t < p->schedule->n_tasks; t++) {
    int64_t ns = 0;
    sn_cost_source source = SN_COST_ANALYTIC;
    status =
        sn__node_cost(p->graph, p->topology, extents, p->schedule->tasks[t].node, &ns, &source);
    out_counts[source]++;
  }
  sn__free(extents);
  return status;
}

int64_t sn_plan_host_ns(const sn_plan *p) {
  return sn__step_cost_ns(p->topology);
}
