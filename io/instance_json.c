/* SPDX-License-Identifier: Apache-2.0 */
/* Instances in JSON: the text, and the dnn-partitioning form. */
#include "io/instance_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- looking into objects ------------------------------------------------------------------- */

sn_status sn__json_number(const sn__json_place *at, const cJSON *object, const char *key,
                          double otherwise, double *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (item == NULL && !isnan(otherwise)) {
    *out = otherwise;
    return SN_OK;
  }
  if (item == NULL)
    return sn_status_make(SN_CODE_DATA, "%s: %s %u has no '%s'", at->path, at->what, at->index,
                          key);
  if (cJSON_IsBool(item)) {
    *out = cJSON_IsTrue(item) ? 1 : 0;
    return SN_OK;
  }
  if (!cJSON_IsNumber(item))
    return sn_status_make(SN_CODE_DATA, "%s: '%s' of %s %u is no number", at->path, key, at->what,
                          at->index);
  *out = item->valuedouble;
  return SN_OK;
}

sn_status sn__json_amount(const sn__json_place *at, const cJSON *object, const char *key,
                          double otherwise, double *out) {
  SN_TRY(sn__json_number(at, object, key, otherwise, out));
  if (!(*out >= 0) || isinf(*out))
    return sn_status_make(SN_CODE_DATA, "%s: '%s' of %s %u is %g; it must be 0 at least and finite",
                          at->path, key, at->what, at->index, *out);
  return SN_OK;
}

sn_status sn__json_bytes(const sn__json_place *at, const cJSON *object, const char *key,
                         double otherwise, uint64_t *out) {
  double x = 0;
  SN_TRY(sn__json_amount(at, object, key, otherwise, &x));
  if (x > 4e15)
    return sn_status_make(SN_CODE_DATA, "%s: '%s' of %s %u is %g bytes; at most 4e15 are counted",
                          at->path, key, at->what, at->index, x);
  *out = (uint64_t)ceil(x);
  return SN_OK;
}

sn_status sn__json_whole(const sn__json_place *at, const cJSON *object, const char *key,
                         double otherwise, double most, double *out) {
  SN_TRY(sn__json_number(at, object, key, otherwise, out));
  if (!(fabs(*out) <= most) || *out != nearbyint(*out))
    return sn_status_make(SN_CODE_DATA,
                          "%s: '%s' of %s %u is %g; it must be a whole number up to %.0f", at->path,
                          key, at->what, at->index, *out, most);
  return SN_OK;
}

static sn_status need_list(const char *path, const cJSON *root, const char *key,
                           const cJSON **out_list, uint32_t *out_n) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, key);
  size_t n = 0;
  if (!cJSON_IsArray(list)) return sn_status_make(SN_CODE_DATA, "%s: has no list '%s'", path, key);
  for (const cJSON *i = list->child; i != NULL; i = i->next, n++)
    if (!cJSON_IsObject(i))
      return sn_status_make(SN_CODE_DATA, "%s: item %zu of '%s' is no object", path, n, key);
  if (n >= 100000000)
    return sn_status_make(SN_CODE_UNSUPPORTED, "%s: %zu %s; fewer than 10^8 are read", path, n,
                          key);
  *out_list = list;
  *out_n = (uint32_t)n;
  return SN_OK;
}

const char *sn__json_id_text(sn_instance *instance, double id) {
  char text[32];
  snprintf(text, sizeof text, "%.0f", id);
  return sn__arena_strdup(&instance->arena, text);
}

/* ---- dnn-partitioning ----------------------------------------------------------------------- */

typedef struct dnn {
  sn_instance *in;
  const char *path;
  const cJSON *nodes, *edges;
  uint32_t n_nodes, n_edges;
  int accelerators, cpus;
  uint64_t cap;
  sn__id_map ids;
  double *color;      /* [n_nodes] NAN: none */
  uint32_t *class_of; /* [n_nodes] */
  uint32_t n_classes;
  uint32_t *value_of; /* [n_nodes] by node; SN__FLOW_NONE: nobody reads it */
  uint32_t n_values;
} dnn;

static sn_status dnn_devices(dnn *x, const cJSON *root) {
  sn__json_place at = {x->path, "the problem", 0};
  double accelerators = 0, cpus = 0;
  SN_TRY(sn__json_whole(&at, root, "maxFPGAs", NAN, 256, &accelerators));
  SN_TRY(sn__json_whole(&at, root, "maxCPUs", NAN, 256, &cpus));
  SN_TRY(sn__json_bytes(&at, root, "maxSizePerFPGA", NAN, &x->cap));
  if (accelerators < 0 || cpus < 0 || accelerators + cpus < 1 || accelerators + cpus > 256)
    return sn_status_make(SN_CODE_DATA,
                          "%s: maxFPGAs %.0f and maxCPUs %.0f; there are 1 to 256 devices in all",
                          x->path, accelerators, cpus);
  x->accelerators = (int)accelerators;
  x->cpus = (int)cpus;
  return SN_OK;
}

/* ids and colours; nodes of one colour are one class. */
static sn_status dnn_classes(dnn *x) {
  size_t n = x->n_nodes;
  sn__id_map colors = {sn__instance_array(x->in, n, sizeof *colors.rows), 0};
  x->ids.rows = sn__instance_array(x->in, n, sizeof *x->ids.rows);
  x->color = sn__instance_array(x->in, n, sizeof *x->color);
  x->class_of = sn__instance_array(x->in, n, sizeof *x->class_of);
  if (!colors.rows || !x->ids.rows || !x->color || !x->class_of) return sn_status_out_of_memory();
  uint32_t i = 0;
  for (const cJSON *node = x->nodes->child; node != NULL; node = node->next, i++) {
    sn__json_place at = {x->path, "node", i};
    double id = 0;
    SN_TRY(sn__json_whole(&at, node, "id", NAN, 9e15, &id));
    x->ids.rows[x->ids.n++] = (struct sn__id_row){id, i};
    x->color[i] = NAN;
    if (cJSON_GetObjectItemCaseSensitive(node, "colorClass") == NULL) continue;
    SN_TRY(sn__json_whole(&at, node, "colorClass", NAN, 9e15, &x->color[i]));
    colors.rows[colors.n++] = (struct sn__id_row){x->color[i], i};
  }
  double twice = 0;
  if (!sn__id_map_sort(&x->ids, &twice))
    return sn_status_make(SN_CODE_DATA, "%s: two nodes have the id %.0f", x->path, twice);
  (void)sn__id_map_sort(&colors, &twice);
  for (i = 0; i < x->n_nodes; i++) {
    uint32_t first = isnan(x->color[i]) ? i : sn__id_map_find(&colors, x->color[i]);
    x->class_of[i] = first == i ? x->n_classes++ : x->class_of[first];
  }
  return SN_OK;
}

/* Which nodes make a tensor that is read, and what it costs. */
static sn_status dnn_values(dnn *x, double *cost, uint32_t *ends) {
  uint32_t e = 0;
  for (const cJSON *edge = x->edges->child; edge != NULL; edge = edge->next, e++) {
    sn__json_place at = {x->path, "edge", e};
    double from = 0, to = 0, c = 0;
    SN_TRY(sn__json_whole(&at, edge, "sourceId", NAN, 9e15, &from));
    SN_TRY(sn__json_whole(&at, edge, "destId", NAN, 9e15, &to));
    SN_TRY(sn__json_amount(&at, edge, "cost", NAN, &c));
    uint32_t a = sn__id_map_find(&x->ids, from), b = sn__id_map_find(&x->ids, to);
    if (a == SN__FLOW_NONE || b == SN__FLOW_NONE)
      return sn_status_make(SN_CODE_DATA,
                            "%s: edge %u goes from node %.0f to %.0f; there is no %.0f", x->path, e,
                            from, to, a == SN__FLOW_NONE ? from : to);
    ends[2 * (size_t)e] = a;
    ends[2 * (size_t)e + 1] = b;
    if (x->value_of[a] == SN__FLOW_NONE) {
      x->value_of[a] = x->n_values++;
      cost[a] = c;
    } else if (fabs(cost[a] - c) > 1e-6) {
      return sn_status_make(SN_CODE_DATA,
                            "%s: edges from node %.0f cost %g and %g; a node makes one tensor, so "
                            "all its edges cost the same",
                            x->path, from, cost[a], c);
    }
  }
  return SN_OK;
}

static sn_status dnn_fill_nodes(const dnn *x, sn__draft *d) {
  uint32_t i = 0;
  size_t nd = (size_t)d->n_devices;
  bool any_backward = false;
  x->in->task_backward = sn__instance_array(x->in, x->n_nodes, sizeof *x->in->task_backward);
  if (x->in->task_backward == NULL) return sn_status_out_of_memory();
  for (const cJSON *node = x->nodes->child; node != NULL; node = node->next, i++) {
    sn__json_place at = {x->path, "node", i};
    double id = 0, cpu = 0, accelerator = 0, able = 0, backward = 0;
    uint64_t bytes = 0;
    SN_TRY(sn__json_number(&at, node, "id", NAN, &id));
    SN_TRY(sn__json_amount(&at, node, "cpuLatency", NAN, &cpu));
    SN_TRY(sn__json_amount(&at, node, "fpgaLatency", NAN, &accelerator));
    SN_TRY(sn__json_number(&at, node, "supportedOnFpga", NAN, &able));
    SN_TRY(sn__json_number(&at, node, "isBackwardNode", 0, &backward));
    SN_TRY(sn__json_bytes(&at, node, "size", 0, &bytes));
    x->in->node_id[i] = sn__json_id_text(x->in, id);
    if (x->in->node_id[i] == NULL) return sn_status_out_of_memory();
    x->in->task_backward[i] = backward != 0;
    any_backward = any_backward || backward != 0;
    d->task_class[i] = x->class_of[i];
    if (d->class_bytes[x->class_of[i]] > UINT64_MAX / 4)
      return sn_status_make(SN_CODE_DATA, "%s: sizes add up to more than can be counted", x->path);
    d->class_bytes[x->class_of[i]] += bytes;
    for (size_t k = 0; k < nd; k++)
      d->task_time[i * nd + k] = (int)k < x->cpus ? cpu
                                 : able != 0      ? accelerator
                                                  : (double)INFINITY;
  }
  if (!any_backward) x->in->task_backward = NULL;
  return SN_OK;
}

static sn_status dnn_fill_devices(const dnn *x, sn__draft *d) {
  for (int i = 0; i < d->n_devices; i++) {
    char name[32];
    bool cpu = i < x->cpus;
    snprintf(name, sizeof name, "%s:%d", cpu ? "cpu" : "accelerator", cpu ? i : i - x->cpus);
    x->in->device_name[i] = sn__arena_strdup(&x->in->arena, name);
    if (x->in->device_name[i] == NULL) return sn_status_out_of_memory();
    x->in->device_kind[i] = cpu ? "cpu" : "accelerator";
    x->in->device_pays[i] = !cpu;
    d->device_bytes[i] = cpu ? 0 : x->cap == 0 ? 1 : x->cap;
  }
  return SN_OK;
}

static sn_status read_dnn(sn_instance *in, const char *path, const cJSON *root) {
  dnn x = {.in = in, .path = path};
  in->kind = SN__INSTANCE_LOAD;
  in->facts.format = "dnn-partitioning";
  in->facts.unit = "ms";
  SN_TRY(dnn_devices(&x, root));
  SN_TRY(need_list(path, root, "nodes", &x.nodes, &x.n_nodes));
  SN_TRY(need_list(path, root, "edges", &x.edges, &x.n_edges));
  in->facts.n_nodes = x.n_nodes;
  in->facts.n_edges = x.n_edges;
  SN_TRY(dnn_classes(&x));
  double *cost = sn__instance_array(in, x.n_nodes, sizeof *cost);
  uint32_t *ends = sn__instance_array(in, 2 * (size_t)x.n_edges, sizeof *ends);
  x.value_of = sn__instance_array(in, x.n_nodes, sizeof *x.value_of);
  if (!cost || !ends || !x.value_of) return sn_status_out_of_memory();
  for (uint32_t i = 0; i < x.n_nodes; i++)
    x.value_of[i] = SN__FLOW_NONE;
  SN_TRY(dnn_values(&x, cost, ends));
  sn__draft d = {.instance = in,
                 .path = path,
                 .n_devices = x.accelerators + x.cpus,
                 .n_tasks = x.n_nodes,
                 .n_classes = x.n_classes,
                 .n_values = x.n_values,
                 .n_reads = x.n_edges};
  SN_TRY(sn__draft_create(&d));
  SN_TRY(dnn_fill_nodes(&x, &d));
  SN_TRY(dnn_fill_devices(&x, &d));
  for (uint32_t i = 0; i < x.n_nodes; i++)
    if (x.value_of[i] != SN__FLOW_NONE) {
      d.value_task[x.value_of[i]] = i;
      d.value_copy[x.value_of[i]] = cost[i];
    }
  for (uint32_t e = 0; e < x.n_edges; e++)
    d.reads[e] = (sn__flow_read){x.value_of[ends[2 * (size_t)e]], ends[2 * (size_t)e + 1]};
  return sn__draft_finish(&d);
}

/* ---- the text ------------------------------------------------------------------------------- */

static sn_status not_json(const char *path, const char *text, const char *end) {
  int line = 1, column = 1;
  for (const char *c = text; c < end; c++) {
    column = *c == '\n' ? 1 : column + 1;
    line += *c == '\n';
  }
  return sn_status_make(
      SN_CODE_DATA,
      "%s: line %d column %d: this is no JSON (NaN and infinity are none either), "
      "or is nested too deeply, or the file is cut off here",
      path, line, column);
}

sn_status sn__instance_read_json(sn_instance *in, const char *path, char *text, size_t length) {
  const char *end = text;
  cJSON *root = cJSON_ParseWithLengthOpts(text, length + 1, &end, true);
  if (root == NULL) return not_json(path, text, end);
  sn_status status;
  if (!cJSON_IsObject(root))
    status = sn_status_make(SN_CODE_DATA, "%s: is JSON, but no object", path);
  else if (cJSON_GetObjectItemCaseSensitive(root, "format") != NULL)
    status = sn__instance_read_own(in, path, root);
  else if (cJSON_GetObjectItemCaseSensitive(root, "maxFPGAs") != NULL)
    status = read_dnn(in, path, root);
  else
    status = sn_status_make(SN_CODE_DATA,
                            "%s: is JSON, but neither has 'format' (ours) nor 'maxFPGAs' "
                            "(dnn-partitioning)",
                            path);
  cJSON_Delete(root);
  return status;
}
