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
    if (entries[e] == NULL || *entries[e] == '\0' || entries[e][strlen(entries[e]) - 1] == '+')
      return sn_status_make(SN_CODE_CONFIG, "recompute: a name is empty; name a module");
    for (const char *at = entries[e]; next_part(&at, part, sizeof part);) {
      bool any = false;
      for (size_t m = 1; !any && m < g->n_modules; m++)
        any = sn__module_matches(part, g->modules[m].path);
      if (!any) return sn_status_context(sn__fail_module(g, part), "recompute");
    }
  }
  return SN_OK;
}

/* What entries say of a graph's modules. */
typedef struct claims {
  const sn_graph *g;
  size_t *entry_of;   /* [n_modules] + 1; 0: none takes it */
  uint32_t *segments; /* [n_modules] */
  uint32_t n;         /* segments */
} claims;

static void claims_free(claims *c) {
  sn__free(c->entry_of);
  sn__free(c->segments);
}

static bool is_joint(const char *entry) {
  return strchr(entry, '+') != NULL;
}

/* The longest match wins; equals: the first. */
static sn_status claims_make(const sn_graph *g, const char *const *entries, size_t n, claims *c) {
  uint32_t *joint = sn__calloc(n + 1, sizeof *joint);
  *c = (claims){.g = g,
                .entry_of = sn__calloc(g->n_modules, sizeof *c->entry_of),
                .segments = sn__calloc(g->n_modules, sizeof *c->segments)};
  bool ok = joint != NULL && c->entry_of != NULL && c->segments != NULL;
  for (size_t m = 1; ok && m < g->n_modules; m++) {
    size_t best = 0;
    for (size_t e = 0; e < n; e++) {
      size_t length = match_length(entries[e], g->modules[m].path);
      if (length > best) c->entry_of[m] = e + 1;
      best = length > best ? length : best;
    }
    if (c->entry_of[m] == 0) continue;
    size_t e = c->entry_of[m] - 1;
    uint32_t parent = g->modules[m].parent;
    if (is_joint(entries[e]))
      c->segments[m] = joint[e] = joint[e] != 0 ? joint[e] : ++c->n;
    else
      c->segments[m] = c->entry_of[parent] == e + 1 ? c->segments[parent] : ++c->n;
  }
  sn__free(joint);
  return ok ? SN_OK : sn_status_out_of_memory();
}

/* Where a joint segment begins and ends in a part of the batch, and whose children its modules are:
 * what that module itself does in between (an activation, dropout) belongs to it. */
typedef struct span {
  uint32_t first, last, parent;
} span;

static bool is_forward_op(const sn__node *n) {
  return n->phase == SN_FORWARD && !sn__node_is_source(n);
}

static void find_spans(const claims *c, const char *const *entries, span *spans) {
  const sn_graph *g = c->g;
  for (uint32_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    uint32_t segment = is_forward_op(n) ? c->segments[n->module] : 0, top = n->module;
    if (segment == 0 || !is_joint(entries[c->entry_of[n->module] - 1])) continue;
    while (c->segments[g->modules[top].parent] == segment)
      top = g->modules[top].parent;
    span *s = &spans[(size_t)n->part * (c->n + 1) + segment];
    if (s->first == 0) *s = (span){i, i, g->modules[top].parent};
    if (s->parent != g->modules[top].parent) s->parent = UINT32_MAX;
    s->last = i;
  }
}

/* segments: [n_nodes] zeroed; with the device of its module in a number. */
static void number_nodes(const claims *c, const span *spans, const int *devices,
                         uint32_t *segments) {
  const sn_graph *g = c->g;
  for (uint32_t i = 1; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    if (!is_forward_op(n)) continue;
    segments[i] = c->segments[n->module];
    for (uint32_t k = 1; segments[i] == 0 && k <= c->n; k++) {
      const span *s = &spans[(size_t)n->part * (c->n + 1) + k];
      if (s->parent == n->module && s->first < i && i < s->last) segments[i] = k;
    }
    if (segments[i] != 0 && devices != NULL && devices[n->module] > 0)
      segments[i] += (uint32_t)devices[n->module] * c->n;
  }
}

sn_status sn__recompute_apply(const sn_graph *g, const char *const *entries, size_t n,
                              const int *devices, sn_graph **out) {
  claims c = {0};
  uint32_t *segments = sn__calloc(g->n_nodes, sizeof *segments);
  span *spans = NULL;
  sn_status status = segments == NULL ? sn_status_out_of_memory() : claims_make(g, entries, n, &c);
  if (status == SN_OK) {
    spans = sn__calloc((size_t)sn__graph_parts(g) * (c.n + 1), sizeof *spans);
    if (spans == NULL) status = sn_status_out_of_memory();
  }
  if (status == SN_OK) {
    find_spans(&c, entries, spans);
    number_nodes(&c, spans, devices, segments);
    status = sn__recompute(g, segments, out);
  }
  claims_free(&c);
  sn__free(spans);
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
  claims c;
  sn_status status = claims_make(g, entries, n, &c);
  for (size_t m = 0; status == SN_OK && m < g->n_modules; m++)
    out_taken[m] = c.segments[m] != 0;
  claims_free(&c);
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
