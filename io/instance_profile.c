/* SPDX-License-Identifier: Apache-2.0 */
/* Instances from pipedream's profiles: text, a node or an edge a line.
 *
 *   node4 -- Embedding(32320, 1024) -- forward_compute_time=0.073, backward_compute_time=6.949,
 *            activation_size=6291456.0, parameter_size=132382720.000       (one line)
 *   <tab>node1 -- node4
 *
 * An activation size may be a list, [a; b; c]: the sum. Each node becomes a forward and a backward
 * task that move together; its activation is read by the forwards behind it, and the gradient of
 * the same size comes back to it from each of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/instance_impl.h"

#define BYTES_PER_MS 12.5e6 /* 12.5 GB/s */

typedef struct profile {
  sn_instance *in;
  const char *path;
  uint32_t n_nodes, n_edges, room_nodes, room_edges;
  const char **ids; /* [n_nodes] as in the file: "node4" */
  double *forward, *backward, *activation, *parameters;
  const char **from_id, **to_id; /* [n_edges] */
  uint32_t *from, *to;
  uint32_t *by_name; /* nodes sorted by id */
} profile;

static sn_status at_line(const profile *x, int line, const char *what) {
  return sn_status_make(SN_CODE_DATA, "%s: line %d: %s", x->path, line, what);
}

/* The number, or the sum of the list, behind `key` in `line`. */
static sn_status take_amount(const profile *x, int line, const char *text, const char *key,
                             double *out) {
  const char *at = strstr(text, key);
  *out = 0;
  if (at == NULL) return sn_status_make(SN_CODE_DATA, "%s: line %d: has no %s", x->path, line, key);
  at += strlen(key);
  bool list = *at == '[';
  if (list) at++;
  do {
    char *end = NULL;
    double v = strtod(at, &end);
    if (end == at || !(v >= 0) || isinf(v))
      return sn_status_make(SN_CODE_DATA, "%s: line %d: %s is no number of 0 at least: '%.20s'",
                            x->path, line, key, at);
    *out += v;
    at = end + strspn(end, "; ");
  } while (list && *at != ']' && *at != '\0');
  if (list && *at != ']') return at_line(x, line, "a list has no end; the file is cut off");
  return SN_OK;
}

static sn_status take_node(profile *x, int row, char *line) {
  uint32_t i = x->n_nodes++;
  char *dash = strstr(line, " -- ");
  if (dash == NULL) return at_line(x, row, "should be 'nodeN -- description -- times'");
  *dash = '\0';
  x->ids[i] = sn__arena_strdup(&x->in->arena, line);
  if (x->ids[i] == NULL) return sn_status_out_of_memory();
  const char *rest = dash + 4;
  SN_TRY(take_amount(x, row, rest, "forward_compute_time=", &x->forward[i]));
  SN_TRY(take_amount(x, row, rest, "backward_compute_time=", &x->backward[i]));
  SN_TRY(take_amount(x, row, rest, "activation_size=", &x->activation[i]));
  return take_amount(x, row, rest, "parameter_size=", &x->parameters[i]);
}

static sn_status take_edge(profile *x, int row, char *line) {
  uint32_t e = x->n_edges++;
  char *dash = strstr(line, " -- ");
  if (dash == NULL) return at_line(x, row, "should be an edge, 'nodeA -- nodeB'");
  *dash = '\0';
  char *to = dash + 4;
  to[strcspn(to, " \t")] = '\0';
  x->from_id[e] = sn__arena_strdup(&x->in->arena, line);
  x->to_id[e] = sn__arena_strdup(&x->in->arena, to);
  return x->from_id[e] != NULL && x->to_id[e] != NULL ? SN_OK : sn_status_out_of_memory();
}

static sn_status read_lines(profile *x, char *text) {
  for (int row = 1; *text != '\0'; row++) {
    char *end = strchr(text, '\n'), *line = text;
    text = end == NULL ? text + strlen(text) : end + 1;
    if (end != NULL) *end = '\0';
    line[strcspn(line, "\r")] = '\0';
    if (line[strspn(line, " \t")] == '\0') continue;
    bool edge = *line == '\t' || *line == ' ';
    line += strspn(line, " \t");
    SN_TRY(edge ? take_edge(x, row, line) : take_node(x, row, line));
  }
  return SN_OK;
}

static sn_status create_arrays(profile *x, const char *text) {
  size_t lines = 1;
  for (const char *c = text; *c != '\0'; c++)
    lines += *c == '\n';
  if (lines > 50000000) return at_line(x, 1, "fewer than 5*10^7 lines are read");
  x->ids = sn__instance_array(x->in, lines, sizeof *x->ids);
  x->forward = sn__instance_array(x->in, lines, sizeof *x->forward);
  x->backward = sn__instance_array(x->in, lines, sizeof *x->backward);
  x->activation = sn__instance_array(x->in, lines, sizeof *x->activation);
  x->parameters = sn__instance_array(x->in, lines, sizeof *x->parameters);
  x->from_id = sn__instance_array(x->in, lines, sizeof *x->from_id);
  x->to_id = sn__instance_array(x->in, lines, sizeof *x->to_id);
  x->from = sn__instance_array(x->in, lines, sizeof *x->from);
  x->to = sn__instance_array(x->in, lines, sizeof *x->to);
  return x->ids && x->forward && x->backward && x->activation && x->parameters && x->from_id &&
                 x->to_id && x->from && x->to
             ? SN_OK
             : sn_status_out_of_memory();
}

/* ---- names ----------------------------------------------------------------------------------- */

typedef struct named {
  const char *id;
  uint32_t node;
} named;

static int compare_named(const void *a, const void *b) {
  return strcmp(((const named *)a)->id, ((const named *)b)->id);
}

static sn_status find_ends(profile *x) {
  named *names = sn__instance_array(x->in, x->n_nodes, sizeof *names);
  if (names == NULL) return sn_status_out_of_memory();
  for (uint32_t i = 0; i < x->n_nodes; i++)
    names[i] = (named){x->ids[i], i};
  if (x->n_nodes > 1) qsort(names, x->n_nodes, sizeof *names, compare_named);
  for (uint32_t i = 1; i < x->n_nodes; i++)
    if (strcmp(names[i - 1].id, names[i].id) == 0)
      return sn_status_make(SN_CODE_DATA, "%s: two nodes are called '%.40s'", x->path, names[i].id);
  for (uint32_t e = 0; e < x->n_edges; e++) {
    named from = {x->from_id[e], 0}, to = {x->to_id[e], 0};
    const named *a = bsearch(&from, names, x->n_nodes, sizeof *names, compare_named);
    const named *b = bsearch(&to, names, x->n_nodes, sizeof *names, compare_named);
    if (a == NULL || b == NULL)
      return sn_status_make(SN_CODE_DATA,
                            "%s: an edge goes from '%.40s' to '%.40s'; there is no "
                            "'%.40s'",
                            x->path, from.id, to.id, a == NULL ? from.id : to.id);
    x->from[e] = a->node;
    x->to[e] = b->node;
  }
  return SN_OK;
}

/* ---- the problem ----------------------------------------------------------------------------- */

/* The first operation that takes any time was timed while caches and kernels were cold. */
static sn_status clamp_first(profile *x) {
  uint32_t i = 0;
  while (i < x->n_nodes && x->forward[i] == 0)
    i++;
  if (i == x->n_nodes || x->backward[i] == 0 || x->forward[i] <= x->backward[i]) return SN_OK;
  SN_TRY(sn__instance_note(x->in,
                           "the forward time of %s, the first operation, is taken as its backward "
                           "time, %g ms, not %g ms: it holds the warm-up",
                           x->ids[i], x->backward[i], x->forward[i]));
  x->forward[i] = x->backward[i];
  return SN_OK;
}

static uint64_t whole_bytes(double x) {
  return x < 4e15 ? (uint64_t)ceil(x) : (uint64_t)4e15;
}

static void fill_values(const profile *x, sn__draft *d) {
  uint32_t n = x->n_nodes, r = 0;
  for (uint32_t v = 0; v < n; v++) {
    d->value_task[v] = v;
    d->value_bytes[v] = whole_bytes(x->activation[v]);
    d->value_copy[v] = x->activation[v] / BYTES_PER_MS;
  }
  /* The gradient that comes back along an edge has the size of the activation that went, so it
   * is a value of its own for each edge. */
  for (uint32_t e = 0; e < x->n_edges; e++) {
    uint32_t v = n + e;
    d->value_task[v] = n + x->to[e];
    d->value_bytes[v] = whole_bytes(x->activation[x->from[e]]);
    d->value_copy[v] = x->activation[x->from[e]] / BYTES_PER_MS;
    d->reads[r++] = (sn__flow_read){x->from[e], x->to[e]};
    d->reads[r++] = (sn__flow_read){v, n + x->from[e]};
  }
  for (uint32_t i = 0; i < n; i++) /* the backward task reads what the forward one kept */
    d->reads[r++] = (sn__flow_read){i, n + i};
}

static sn_status fill(profile *x, sn__draft *d) {
  sn_instance *in = x->in;
  uint32_t n = x->n_nodes;
  in->task_backward = sn__instance_array(in, 2 * (size_t)n, sizeof *in->task_backward);
  if (in->task_backward == NULL) return sn_status_out_of_memory();
  for (int i = 0; i < d->n_devices; i++) {
    char name[32];
    snprintf(name, sizeof name, "device:%d", i);
    in->device_name[i] = sn__arena_strdup(&in->arena, name);
    if (in->device_name[i] == NULL) return sn_status_out_of_memory();
    in->device_pays[i] = true;
  }
  for (uint32_t t = 0; t < 2 * n; t++) {
    uint32_t node = t < n ? t : t - n;
    char name[120];
    snprintf(name, sizeof name, "%.80s%s", x->ids[node], t < n ? "" : " backward");
    in->node_id[t] = sn__arena_strdup(&in->arena, name);
    if (in->node_id[t] == NULL) return sn_status_out_of_memory();
    in->task_backward[t] = t >= n;
    d->task_class[t] = node;
    for (int k = 0; k < d->n_devices; k++)
      d->task_time[(size_t)t * (size_t)d->n_devices + (size_t)k] =
          t < n ? x->forward[node] : x->backward[node];
  }
  for (uint32_t i = 0; i < n; i++)
    d->class_bytes[i] = whole_bytes(x->parameters[i]);
  fill_values(x, d);
  return SN_OK;
}

sn_status sn__instance_read_pipedream(sn_instance *in, const char *path, char *text, int devices) {
  profile x = {.in = in, .path = path};
  in->kind = SN__INSTANCE_LOAD;
  in->facts.format = "pipedream";
  in->facts.unit = "ms";
  SN_TRY(create_arrays(&x, text));
  SN_TRY(read_lines(&x, text));
  SN_TRY(find_ends(&x));
  in->facts.n_nodes = x.n_nodes;
  in->facts.n_edges = x.n_edges;
  SN_TRY(clamp_first(&x));
  sn__draft d = {.instance = in,
                 .path = path,
                 .n_devices = devices,
                 .n_tasks = 2 * x.n_nodes,
                 .n_classes = x.n_nodes,
                 .n_values = x.n_nodes + x.n_edges,
                 .n_reads = 2 * x.n_edges + x.n_nodes};
  SN_TRY(sn__draft_create(&d));
  SN_TRY(fill(&x, &d));
  SN_TRY(sn__instance_note(in,
                           "%d devices alike (--devices N for others), links of 12.5 GB/s, no "
                           "limit of memory; forward and backward of a node stay together",
                           devices));
  return sn__draft_finish(&d);
}
