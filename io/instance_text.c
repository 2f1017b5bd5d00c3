/* SPDX-License-Identifier: Apache-2.0 */
/* Instances in plain text: doppler and minimalloc. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/instance_impl.h"

/* Splits off a line; NULL at the end. Carriage returns go. */
static char *next_line(char **text) {
  char *line = *text;
  if (line == NULL || *line == '\0') return NULL;
  char *end = strchr(line, '\n');
  *text = end == NULL ? line + strlen(line) : end + 1;
  if (end != NULL) *end = '\0';
  size_t n = strlen(line);
  if (n > 0 && line[n - 1] == '\r') line[n - 1] = '\0';
  return line;
}

/* A whole number from 0 to `most` at *at, spaces around it skipped; false otherwise. */
static bool take_number(char **at, int64_t most, int64_t *out) {
  char *end = NULL;
  char *start = *at + strspn(*at, " \t");
  if (*start < '0' || *start > '9') return false;
  errno = 0;
  *out = strtoll(start, &end, 10);
  if (errno != 0 || *out > most) return false;
  *at = end + strspn(end, " \t");
  return true;
}

/* ---- doppler --------------------------------------------------------------------------------- */

enum { DOPPLER_NODES_MOST = 10000000 };

static sn_status bad_line(const char *path, int line, const char *want) {
  return sn_status_make(SN_CODE_DATA, "%s: line %d: %s", path, line, want);
}

/* Numbers with commas between them and perhaps after the last. */
static sn_status take_list(sn_instance *in, const char *path, int line, char *text, int64_t below,
                           uint32_t **out, uint32_t *out_n) {
  size_t most = 1;
  if (text == NULL) return bad_line(path, line, "is missing; the file is cut off");
  for (const char *c = text; *c != '\0'; c++)
    most += *c == ',';
  uint32_t *list = sn__instance_array(in, most, sizeof *list), n = 0;
  if (list == NULL) return sn_status_out_of_memory();
  for (char *at = text + strspn(text, " \t"); *at != '\0';) {
    int64_t x = 0;
    if (!take_number(&at, below - 1, &x))
      return sn_status_make(SN_CODE_DATA,
                            "%s: line %d: '%.20s' is no node's number; they go from 0 to %" PRId64,
                            path, line, at, below - 1);
    list[n++] = (uint32_t)x;
    if (*at == ',') at += 1 + strspn(at + 1, " \t");
  }
  *out = list;
  *out_n = n;
  return SN_OK;
}

typedef struct doppler {
  uint32_t n_nodes, n_inputs, n_edges;
  uint32_t *sources, *sinks;
  int64_t *compute, *copy;
} doppler;

static sn_status doppler_head(sn_instance *in, const char *path, char **text, doppler *x) {
  char *line = next_line(text);
  int64_t n = 0;
  uint32_t *inputs = NULL, sinks = 0;
  if (line == NULL || !take_number(&line, DOPPLER_NODES_MOST, &n) || *line != '\0' || n < 1)
    return bad_line(path, 1, "should be the number of nodes, 1 to 10^7");
  SN_TRY(take_list(in, path, 2, next_line(text), n, &inputs, &x->n_inputs));
  if (x->n_inputs >= n) return bad_line(path, 2, "all nodes are inputs; there is nothing to place");
  x->n_nodes = (uint32_t)n - x->n_inputs;
  SN_TRY(take_list(in, path, 3, next_line(text), x->n_nodes, &x->sources, &x->n_edges));
  SN_TRY(take_list(in, path, 4, next_line(text), x->n_nodes, &x->sinks, &sinks));
  if (sinks != x->n_edges)
    return sn_status_make(SN_CODE_DATA, "%s: line 3 has %u sources and line 4 %u sinks", path,
                          x->n_edges, sinks);
  return SN_OK;
}

static sn_status doppler_nodes(sn_instance *in, const char *path, char **text, doppler *x) {
  x->compute = sn__instance_array(in, x->n_nodes, sizeof *x->compute);
  x->copy = sn__instance_array(in, x->n_nodes, sizeof *x->copy);
  if (x->compute == NULL || x->copy == NULL) return sn_status_out_of_memory();
  for (uint32_t i = 0; i < x->n_nodes; i++) {
    char *line = next_line(text);
    int row = (int)i + 5;
    if (line == NULL)
      return sn_status_make(SN_CODE_DATA,
                            "%s: has %u lines of costs; its %u nodes but %u inputs "
                            "need %u",
                            path, i, x->n_nodes + x->n_inputs, x->n_inputs, x->n_nodes);
    if (!take_number(&line, INT64_MAX / 16, &x->compute[i]) || *line++ != ',' ||
        !take_number(&line, INT64_MAX / 16, &x->copy[i]) || *line != '\0')
      return bad_line(path, row, "should be 'compute,comm', whole numbers, 0 at least");
  }
  return SN_OK;
}

/* A tensor a node that is read; names and times of nodes. */
static sn_status doppler_draft(sn_instance *in, const doppler *x, sn__draft *d,
                               const uint32_t *value_of) {
  for (int i = 0; i < d->n_devices; i++) {
    char name[32];
    snprintf(name, sizeof name, "device:%d", i);
    in->device_name[i] = sn__arena_strdup(&in->arena, name);
    if (in->device_name[i] == NULL) return sn_status_out_of_memory();
    in->device_pays[i] = true;
  }
  for (uint32_t i = 0; i < x->n_nodes; i++) {
    char id[32];
    snprintf(id, sizeof id, "%u", i);
    in->node_id[i] = sn__arena_strdup(&in->arena, id);
    if (in->node_id[i] == NULL) return sn_status_out_of_memory();
    d->task_class[i] = i;
    for (int k = 0; k < d->n_devices; k++)
      d->task_time[(size_t)i * (size_t)d->n_devices + (size_t)k] = (double)x->compute[i];
    if (value_of[i] == SN__FLOW_NONE) continue;
    d->value_task[value_of[i]] = i;
    d->value_copy[value_of[i]] = (double)x->copy[i];
  }
  for (uint32_t e = 0; e < x->n_edges; e++)
    d->reads[e] = (sn__flow_read){value_of[x->sources[e]], x->sinks[e]};
  return SN_OK;
}

sn_status sn__instance_read_doppler(sn_instance *in, const char *path, char *text, int devices) {
  doppler x = {0};
  uint32_t n_values = 0;
  in->kind = SN__INSTANCE_MAKESPAN;
  in->facts.format = "doppler";
  in->facts.unit = "time";
  SN_TRY(doppler_head(in, path, &text, &x));
  SN_TRY(doppler_nodes(in, path, &text, &x));
  in->facts.n_nodes = x.n_nodes;
  in->facts.n_edges = x.n_edges;
  uint32_t *value_of = sn__instance_array(in, x.n_nodes, sizeof *value_of);
  if (value_of == NULL) return sn_status_out_of_memory();
  memset(value_of, 0xff, x.n_nodes * sizeof *value_of);
  for (uint32_t e = 0; e < x.n_edges; e++)
    if (value_of[x.sources[e]] == SN__FLOW_NONE) value_of[x.sources[e]] = n_values++;
  sn__draft d = {.instance = in,
                 .path = path,
                 .n_devices = devices,
                 .n_tasks = x.n_nodes,
                 .n_classes = x.n_nodes,
                 .n_values = n_values,
                 .n_reads = x.n_edges,
                 .shift = 10};
  SN_TRY(sn__draft_create(&d));
  SN_TRY(doppler_draft(in, &x, &d, value_of));
  SN_TRY(sn__instance_note(in,
                           "%d devices alike (--devices N for others); the %u inputs are free and "
                           "everywhere; a copy takes comm of its source, once a device, beside "
                           "others",
                           devices, x.n_inputs));
  return sn__draft_finish(&d);
}

/* ---- minimalloc ----------------------------------------------------------------------------- */

static sn_status csv_row(sn_instance *in, const char *path, char *line, int row, uint32_t i) {
  char *comma = strchr(line, ',');
  if (comma == NULL) return bad_line(path, row, "should be 'id,lower,upper,size'");
  *comma = '\0';
  in->node_id[i] = sn__arena_strdup(&in->arena, line);
  if (in->node_id[i] == NULL) return sn_status_out_of_memory();
  char *at = comma + 1;
  const int64_t most = (int64_t)1 << 60;
  if (!take_number(&at, most, &in->lower[i]) || *at++ != ',' ||
      !take_number(&at, most, &in->upper[i]) || *at++ != ',' ||
      !take_number(&at, most, &in->sizes[i]) || *at != '\0')
    return bad_line(path, row, "should be 'id,lower,upper,size', whole numbers, 0 at least");
  if (in->upper[i] < in->lower[i])
    return sn_status_make(SN_CODE_DATA,
                          "%s: line %d: lives from %" PRId64 " to %" PRId64 ", which is before",
                          path, row, in->lower[i], in->upper[i]);
  return SN_OK;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static sn_status check_names(sn_instance *in, const char *path) {
  const char **names = sn__instance_array(in, in->n_blocks, sizeof *names);
  if (names == NULL) return sn_status_out_of_memory();
  for (uint32_t i = 0; i < in->n_blocks; i++)
    names[i] = in->node_id[i];
  if (in->n_blocks > 1) qsort(names, in->n_blocks, sizeof *names, compare_names);
  for (uint32_t i = 1; i < in->n_blocks; i++)
    if (strcmp(names[i - 1], names[i]) == 0)
      return sn_status_make(SN_CODE_DATA, "%s: two blocks have the id '%.40s'", path, names[i]);
  return SN_OK;
}

sn_status sn__instance_read_csv(sn_instance *in, const char *path, char *text) {
  size_t lines = 0;
  in->kind = SN__INSTANCE_MEMORY;
  in->facts.format = "minimalloc";
  in->facts.unit = "bytes";
  for (const char *c = text; *c != '\0'; c++)
    lines += *c == '\n';
  if (lines > 100000000)
    return sn_status_make(SN_CODE_UNSUPPORTED, "%s: %zu lines; fewer than 10^8 are read", path,
                          lines);
  in->node_id = sn__instance_array(in, lines + 1, sizeof *in->node_id);
  in->lower = sn__instance_array(in, lines + 1, sizeof *in->lower);
  in->upper = sn__instance_array(in, lines + 1, sizeof *in->upper);
  in->sizes = sn__instance_array(in, lines + 1, sizeof *in->sizes);
  if (!in->node_id || !in->lower || !in->upper || !in->sizes) return sn_status_out_of_memory();
  char *line = next_line(&text);
  if (line == NULL || strcmp(line, "id,lower,upper,size") != 0)
    return bad_line(path, 1, "should be 'id,lower,upper,size'");
  for (int row = 2; (line = next_line(&text)) != NULL; row++) {
    if (*line == '\0') continue;
    SN_TRY(csv_row(in, path, line, row, in->n_blocks));
    in->n_blocks++;
  }
  if (in->n_blocks == 0)
    return sn_status_make(SN_CODE_DATA, "%s: has no blocks; there is nothing to place", path);
  in->facts.n_nodes = in->n_blocks;
  return check_names(in, path);
}
