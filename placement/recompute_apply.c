/* SPDX-License-Identifier: Apache-2.0 */
/* From the names of what is recomputed to segments of the graph; what they save and cost. */
#include <string.h>

#include "core/recompute.h"
#include "core/run/values.h"
#include "placement/match.h"
#include "placement/recompute_choice.h"

/* ---- names --------------------------------------------------------------------------------- */

/* The next part of "a+b" from *at on, in `out`; false behind the last. What does not fit is cut: no
 * module is called that. */
static bool next_part(const char **at, char *out, size_t size) {
  if (**at == '\0') return false;
  size_t n = strcspn(*at, "+"), kept = n < size ? n : size - 1;
  memcpy(out, *at, kept);
  out[kept] = '\0';
  *at += n + ((*at)[n] == '+');
  return true;
}

/* How long the longest part is that takes this module; 0: none does. */
static size_t match_length(const char *entry, const char *path) {
  char part[512];
  size_t best = 0;
  for (const char *at = entry; next_part(&at, part, sizeof part);)
    if (strlen(part) > best && sn__module_matches(part, path)) best = strlen(part);
  return best;
}

sn_status sn__recompute_check(const sn_graph *g, const char *const *entries, size_t n) {
  char part[512];
  for (size_t e = 0; e < n; e++) {
    if (entries[e] == NULL || *entries[e] == '\0')
      return sn_status_make(SN_CODE_CONFIG, "recompute: an entry is empty; name a module");
    for (const char *at = entries[e]; next_part(&at, part, sizeof part);) {
      bool any = false;
      for (size_t m = 1; !any && m < g->n_modules; m++)
        any = sn__module_matches(part, g->modules[m].path);
      if (!any) return sn_status_context(sn__fail_module(g, part), "recompute");
    }
  }
  return SN_OK;
}

/* segments: [n_modules] zeroed. The longest match wins; equals: the first. */
static sn_status find_segments(const sn_graph *g, const char *const *entries, size_t n,
                               uint32_t *segments) {
  size_t *entry_of = sn__calloc(g->n_modules, sizeof *entry_of); /* + 1 */
  uint32_t *joint = sn__calloc(n + 1, sizeof *joint), last = 0;
  sn_status status = entry_of == NULL || joint == NULL ? sn_status_out_of_memory() : SN_OK;
  for (size_t m = 1; status == SN_OK && m < g->n_modules; m++) {
    size_t best = 0;
    for (size_t e = 0; e < n; e++) {
      size_t length = match_length(entries[e], g->modules[m].path);
      if (length > best) entry_of[m] = e + 1;
      best = length > best ? length : best;
    }
    if (entry_of[m] == 0) continue;
    size_t e = entry_of[m] - 1;
    uint32_t parent = g->modules[m].parent;
    if (strchr(entries[e], '+') != NULL)
      segments[m] = joint[e] = joint[e] != 0 ? joint[e] : ++last;
    else
      segments[m] = entry_of[parent] == e + 1 ? segments[parent] : ++last;
  }
  sn__free(entry_of);
  sn__free(joint);
  return status;
}

/* Segments and devices as one number. */
static void split_by_device(const sn_graph *g, const int *devices, uint32_t *segments) {
  uint32_t most = 0;
  for (size_t m = 0; m < g->n_modules; m++)
    if (segments[m] > most) most = segments[m];
  for (size_t m = 0; m < g->n_modules; m++)
    if (segments[m] != 0 && devices[m] > 0) segments[m] += (uint32_t)devices[m] * most;
}

sn_status sn__recompute_apply(const sn_graph *g, const char *const *entries, size_t n,
                              const int *devices, sn_graph **out) {
  uint32_t *segments = sn__calloc(g->n_modules, sizeof *segments);
  if (segments == NULL) return sn_status_out_of_memory();
  sn_status status = find_segments(g, entries, n, segments);
  if (status == SN_OK && devices != NULL) split_by_device(g, devices, segments);
  if (status == SN_OK) status = sn__recompute(g, segments, out);
  sn__free(segments);
  return status;
}

sn_status sn__recompute_placed(const sn_graph *g, const char *const *entries, size_t n,
                               const sn__problem *p, const int *devices, sn_graph **out) {
  int *of_module = sn__calloc(g->n_modules, sizeof *of_module);
  if (of_module == NULL) return sn_status_out_of_memory();
  for (uint32_t u = 0; u < p->n_units; u++)
    of_module[p->units[u].module] = devices[u];
  sn_status status = sn__recompute_apply(g, entries, n, of_module, out);
  sn__free(of_module);
  return status;
}

sn_status sn__recompute_taken(const sn_graph *g, const char *const *entries, size_t n,
                              bool *out_taken) {
  uint32_t *segments = sn__calloc(g->n_modules, sizeof *segments);
  if (segments == NULL) return sn_status_out_of_memory();
  sn_status status = find_segments(g, entries, n, segments);
  for (size_t m = 0; m < g->n_modules; m++)
    out_taken[m] = segments[m] != 0;
  sn__free(segments);
  return status;
}

/* ---- what it is good for ------------------------------------------------------------------- */

sn_status sn__recompute_kept(const sn_graph *g, const int64_t *extents, uint64_t *out_bytes) {
  bool *counted = sn__calloc(g->n_values, sizeof *counted);
  if (counted == NULL) return sn_status_out_of_memory();
  *out_bytes = 0;
  for (size_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    for (uint32_t k = 0; n->phase != SN_FORWARD && k < n->n_in; k++) {
      uint32_t v = n->in[k] == 0 ? 0 : sn__value_behind_views(g, n->in[k]);
      const sn__node *maker = &g->nodes[g->values[v].node];
      size_t bytes = 0;
      if (v == 0 || counted[v] || sn__node_is_source(maker) || maker->phase != SN_FORWARD) continue;
      counted[v] = true;
      if (sn__value_bytes(g, v, extents, &bytes)) *out_bytes += bytes;
    }
  }
  sn__free(counted);
  return SN_OK;
}

int64_t sn__recompute_ns(const sn__problem *p, const int *devices) {
  size_t nd = (size_t)p->topology->n_devices;
  int64_t ns = 0;
  for (uint32_t t = 0; t < p->n_tasks; t++) {
    uint32_t node = p->node_of_task[t];
    if (p->graph->nodes[node].recomputed)
      ns += p->flow->task_ns[t * nd + (size_t)devices[p->unit_of_node[node]]];
  }
  return ns;
}
