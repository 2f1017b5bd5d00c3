/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/plan_insight.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

static double ms(int64_t ns) {
  return 1e-6 * (double)ns;
}

/* ---- what limits the step -------------------------------------------------------------------- */

/* The node before `i` in its queue, or the count. */
static size_t before_in_queue(const sn_plan *plan, size_t i) {
  sn_plan_node n = sn_plan_node_at(plan, i);
  for (size_t j = i; n.order > 0 && j-- > 0;) {
    sn_plan_node other = sn_plan_node_at(plan, j);
    if (other.device == n.device && other.copy == n.copy && other.order + 1 == n.order) return j;
  }
  return sn_plan_node_count(plan);
}

/* Whose end node `i` began at; the count when it waited for nobody. */
static size_t cause_of(const sn_plan *plan, size_t i) {
  size_t count = sn_plan_node_count(plan);
  sn_plan_node n = sn_plan_node_at(plan, i);
  for (size_t w = 0; w < n.n_waits; w++) {
    size_t on = sn_plan_wait(plan, i, w);
    if (on < count && sn_plan_node_at(plan, on).finish_ns == n.start_ns) return on;
  }
  size_t before = before_in_queue(plan, i);
  bool bound = before < count && sn_plan_node_at(plan, before).finish_ns == n.start_ns;
  return bound ? before : count;
}

typedef struct part {
  const char *module;
  int64_t ns;
} part;

static void add_part(part *parts, size_t *n, const char *module, int64_t ns) {
  size_t i = 0;
  while (i < *n && strcmp(parts[i].module, module) != 0)
    i++;
  if (i == *n) parts[(*n)++] = (part){module, 0};
  parts[i].ns += ns;
}

static sn_status follow_chain(const sn_plan *plan, plan_insight *out) {
  size_t count = sn_plan_node_count(plan), at = count, n = 0;
  part *parts = sn__calloc(count + 1, sizeof *parts);
  if (parts == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < count; i++)
    if (at == count || sn_plan_node_at(plan, i).finish_ns > sn_plan_node_at(plan, at).finish_ns)
      at = i;
  for (; at < count; at = cause_of(plan, at)) {
    sn_plan_node node = sn_plan_node_at(plan, at);
    int64_t ns = node.finish_ns - node.start_ns;
    out->chain_ns += ns;
    if (node.copy) {
      out->chain_copies_ns += ns;
      out->chain_copies++;
      continue;
    }
    out->chain_on[node.device] += ns;
    add_part(parts, &n, node.module, ns);
  }
  for (size_t i = 0; i < n; i++) {
    if (*parts[i].module == '\0' || parts[i].ns <= out->heaviest_ns) continue;
    out->heaviest_ns = parts[i].ns;
    snprintf(out->heaviest, sizeof out->heaviest, "%s", parts[i].module);
  }
  sn__free(parts);
  return SN_OK;
}

static void say_limit(const sn_plan *plan, plan_insight *in) {
  size_t most = 0, devices = sn_plan_device_count(plan), on = 0;
  for (size_t d = 0; d < devices; d++) {
    on += in->chain_on[d] > 0;
    if (in->chain_on[d] > in->chain_on[most]) most = d;
  }
  const char *name = sn_plan_device_at(plan, most).name;
  double share = in->chain_ns > 0 ? (double)in->chain_on[most] / (double)in->chain_ns : 1;
  char heavy[200] = "";
  if (in->heaviest_ns > 0)
    snprintf(heavy, sizeof heavy, "; %s has the most of it, %.3f ms", in->heaviest,
             ms(in->heaviest_ns));
  if (devices == 1 || (on <= 1 && in->chain_copies == 0))
    snprintf(in->limit, sizeof in->limit, "the work of %s: it is busy from the first to the last%s",
             name, heavy);
  else if (share >= 0.85)
    snprintf(in->limit, sizeof in->limit,
             "the work of %s: %.0f %% of the longest chain is there, %.3f ms in %zu copies%s", name,
             100 * share, ms(in->chain_copies_ns), in->chain_copies, heavy);
  else
    snprintf(in->limit, sizeof in->limit,
             "a chain across %zu devices: %.3f ms of it on %s, %.3f ms on others, %.3f ms in %zu "
             "copies%s",
             on, ms(in->chain_on[most]), name,
             ms(in->chain_ns - in->chain_copies_ns - in->chain_on[most]), ms(in->chain_copies_ns),
             in->chain_copies, heavy);
}

/* ---- one more device ------------------------------------------------------------------------- */

static sn_status add_device(const sn_topology *now, sn_topology **out_topology) {
  sn_device_desc devices[SN_DEVICES_MOST];
  int n = now->n_devices;
  memcpy(devices, now->devices, (size_t)n * sizeof *devices);
  const sn_device_desc *last = &now->devices[n - 1];
  int index = last->index;
  for (int d = 0; d < n; d++)
    if (devices[d].kind == last->kind && devices[d].index > index) index = devices[d].index;
  devices[n] = *last;
  devices[n].index = index + 1;
  devices[n].part = -1;
  snprintf(devices[n].name, sizeof devices[n].name, "%s:%d", sn_device_kind_name(last->kind),
           index + 1);
  SN_TRY(sn_topology_create(devices, n + 1, out_topology));
  sn_topology_set_profile(*out_topology, now->profile);
  return SN_OK;
}

/* The extents of the largest batch, by the plan's symbols. */
static sn_status extents_of(const task *t, const sn_plan *plan, int64_t **out_extents,
                            size_t *out_n) {
  size_t n = sn_plan_symbol_count(plan), known = 0;
  int64_t *extents = sn__calloc(n + 1, sizeof *extents);
  if (extents == NULL) return sn_status_out_of_memory();
  for (size_t s = 0; s < n; s++)
    for (size_t i = 0; i < t->n_extents; i++)
      if (strcmp(t->extents[i].symbol, sn_plan_symbol(plan, s)) == 0 && t->extents[i].count > 0) {
        extents[s] = t->extents[i].count;
        known++;
      }
  if (known < n) { /* as the trainer does: a usual batch when not all is known */
    sn__free(extents);
    extents = NULL;
    n = 0;
  }
  *out_extents = extents;
  *out_n = n;
  return SN_OK;
}

static sn_status solve_with_one_more(const task *t, const sn_trainer *trainer, plan_insight *out) {
  sn_topology *topology = NULL;
  sn_graph *graph = NULL;
  sn_placement *placement = NULL;
  sn_place_options options = t->options.placement;
  int64_t *extents = NULL;
  sn_status status = add_device(sn_trainer_topology(trainer), &topology);
  if (status == SN_OK)
    status = extents_of(t, sn_trainer_plan(trainer), &extents, &options.n_extents);
  options.extents = extents;
  if (status == SN_OK)
    status = sn_training_graph(t->graph, &t->options.optimizer, SN_TRAIN_WHOLE, &graph);
  if (status == SN_OK) status = sn_place(graph, topology, &options, &placement);
  if (sn_status_code(status) == SN_CODE_OUT_OF_MEMORY) { /* the search is no proof: no answer */
    sn_status_free(status);
    status = SN_OK;
  } else if (status == SN_OK) {
    const sn_placement_figures *f = sn_placement_figures_of(placement);
    out->more_known = true;
    out->more_step_ns = f->predicted_step_ns;
    out->more_used = f->devices_used;
    snprintf(out->more_device, sizeof out->more_device, "%s",
             topology->devices[topology->n_devices - 1].name);
  }
  sn_placement_free(placement);
  sn_graph_free(graph);
  sn_topology_free(topology);
  sn__free(extents);
  return status;
}

static void say_more(const sn_trainer *trainer, plan_insight *in) {
  int64_t step = sn_placement_figures_of(sn_trainer_placement(trainer))->predicted_step_ns;
  if (!in->more_known && sn_trainer_topology(trainer)->n_devices < SN_DEVICES_MOST)
    snprintf(in->more, sizeof in->more, "no placement found with it that fits");
  else if (!in->more_known)
    snprintf(in->more, sizeof in->more, "there can be no more of them");
  else if (in->more_step_ns >= step - step / 100)
    snprintf(in->more, sizeof in->more, "%s would give nothing: %.3f ms a step with it",
             in->more_device, ms(in->more_step_ns));
  else
    snprintf(in->more, sizeof in->more,
             "%s, if it is as fast as the last, would give %.3f ms a step, %.0f %% less",
             in->more_device, ms(in->more_step_ns),
             100 * (1 - (double)in->more_step_ns / (double)step));
}

sn_status plan_insight_make(const task *t, const sn_trainer *trainer, plan_insight *out) {
  *out = (plan_insight){.chain_ns = 0};
  SN_TRY(follow_chain(sn_trainer_plan(trainer), out));
  say_limit(sn_trainer_plan(trainer), out);
  if (sn_trainer_topology(trainer)->n_devices < SN_DEVICES_MOST)
    SN_TRY(solve_with_one_more(t, trainer, out));
  say_more(trainer, out);
  return SN_OK;
}
