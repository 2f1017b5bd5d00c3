/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an instance: which form it has, and from a draft to the problem's integers. */
#include "io/instance.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/instance_impl.h"
#include "io/safe_file.h"

#define MOST_BYTES ((size_t)1 << 30)

void *sn__instance_array(sn_instance *instance, size_t count, size_t size) {
  size_t bytes = 0;
  if (!sn__size_mul(count + 1, size, &bytes)) return NULL;
  return sn__arena_alloc(&instance->arena, bytes);
}

sn_status sn__instance_note(sn_instance *instance, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  size_t n = instance->facts.n_notes;
  const char **notes = sn__instance_array(instance, n + 1, sizeof *notes);
  char *note = sn__arena_strdup(&instance->arena, text);
  if (notes == NULL || note == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < n; i++)
    notes[i] = instance->facts.notes[i];
  notes[n] = note;
  instance->facts.notes = notes;
  instance->facts.n_notes = n + 1;
  return SN_OK;
}

/* ---- ids ------------------------------------------------------------------------------------ */

static int compare_rows(const void *a, const void *b) {
  const struct sn__id_row *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

bool sn__id_map_sort(sn__id_map *map, double *out_twice) {
  if (map->n > 1) qsort(map->rows, map->n, sizeof *map->rows, compare_rows);
  for (uint32_t i = 1; i < map->n; i++)
    if (map->rows[i].id == map->rows[i - 1].id) {
      *out_twice = map->rows[i].id;
      return false;
    }
  return true;
}

uint32_t sn__id_map_find(const sn__id_map *map, double id) {
  uint32_t low = 0, high = map->n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (map->rows[middle].id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < map->n && map->rows[low].id == id ? map->rows[low].at : SN__FLOW_NONE;
}

/* ---- drafts --------------------------------------------------------------------------------- */

sn_status sn__draft_create(sn__draft *d) {
  sn_instance *in = d->instance;
  size_t tasks = d->n_tasks, devices = (size_t)d->n_devices, times = 0;
  if (!sn__size_mul(tasks, devices, &times)) return sn_status_out_of_memory();
  d->device_bytes = sn__instance_array(in, devices, sizeof *d->device_bytes);
  d->class_pin = sn__instance_array(in, d->n_classes, sizeof *d->class_pin);
  d->class_bytes = sn__instance_array(in, d->n_classes, sizeof *d->class_bytes);
  d->task_class = sn__instance_array(in, tasks, sizeof *d->task_class);
  d->task_time = sn__instance_array(in, times, sizeof *d->task_time);
  d->value_copy = sn__instance_array(in, d->n_values, sizeof *d->value_copy);
  d->value_bytes = sn__instance_array(in, d->n_values, sizeof *d->value_bytes);
  d->value_task = sn__instance_array(in, d->n_values, sizeof *d->value_task);
  d->reads = sn__instance_array(in, d->n_reads, sizeof *d->reads);
  d->orders = sn__instance_array(in, d->n_orders, sizeof *d->orders);
  in->node_id = sn__instance_array(in, tasks, sizeof *in->node_id);
  in->device_name = sn__instance_array(in, devices, sizeof *in->device_name);
  in->device_kind = sn__instance_array(in, devices, sizeof *in->device_kind);
  in->device_pays = sn__instance_array(in, devices, sizeof *in->device_pays);
  if (!d->device_bytes || !d->class_pin || !d->class_bytes || !d->task_class || !d->task_time ||
      !d->value_copy || !d->value_bytes || !d->value_task || !d->reads || !d->orders ||
      !in->node_id || !in->device_name || !in->device_kind || !in->device_pays)
    return sn_status_out_of_memory();
  for (uint32_t c = 0; c < d->n_classes; c++)
    d->class_pin[c] = -1;
  return SN_OK;
}

static double power_of_ten(int n) {
  double p = 1;
  while (n-- > 0)
    p *= 10;
  return p;
}

static bool is_exact(double x, int decimals) {
  double scaled = x * power_of_ten(decimals);
  return fabs(scaled - nearbyint(scaled)) <= 1e-12 * fabs(scaled);
}

static bool all_exact(const sn__draft *d, int decimals) {
  for (size_t i = 0; i < (size_t)d->n_tasks * (size_t)d->n_devices; i++)
    if (isfinite(d->task_time[i]) && !is_exact(d->task_time[i], decimals)) return false;
  for (uint32_t v = 0; v < d->n_values; v++)
    if (!is_exact(d->value_copy[v], decimals)) return false;
  return true;
}

static double sum_of_times(const sn__draft *d) {
  double sum = 0;
  for (uint32_t t = 0; t < d->n_tasks; t++) {
    double most = 0;
    for (int i = 0; i < d->n_devices; i++) {
      double x = d->task_time[(size_t)t * (size_t)d->n_devices + (size_t)i];
      if (isfinite(x) && x > most) most = x;
    }
    sum += most;
  }
  for (uint32_t v = 0; v < d->n_values; v++)
    sum += d->value_copy[v];
  return sum;
}

/* The fewest of 0, 3, 6, 9 decimals that lose nothing, or as many as can be counted. */
static sn_status choose_decimals(const sn__draft *d, int *out) {
  const double most = 5e17;
  double sum = sum_of_times(d);
  int decimals = 0;
  if (!(sum <= most))
    return sn_status_make(SN_CODE_DATA,
                          "%s: its times add up to %g, more than can be counted (%g); use a larger "
                          "unit of time",
                          d->path, sum, most);
  while (decimals < 9 && !all_exact(d, decimals) && sum * power_of_ten(decimals + 3) <= most)
    decimals += 3;
  *out = decimals;
  return SN_OK;
}

static int64_t to_units(double x, int decimals) {
  return isfinite(x) ? (int64_t)llround(x * power_of_ten(decimals)) : SN__FLOW_NEVER;
}

static void fill_flow(const sn__draft *d, int decimals) {
  sn__flow *f = d->instance->flow;
  size_t nd = (size_t)d->n_devices;
  memcpy(f->device_bytes, d->device_bytes, nd * sizeof *f->device_bytes);
  memcpy(f->class_pin, d->class_pin, (size_t)d->n_classes * sizeof *f->class_pin);
  memcpy(f->class_bytes, d->class_bytes, (size_t)d->n_classes * sizeof *f->class_bytes);
  memcpy(f->task_class, d->task_class, (size_t)d->n_tasks * sizeof *f->task_class);
  for (size_t i = 0; i < (size_t)d->n_tasks * nd; i++)
    f->task_ns[i] = to_units(d->task_time[i], decimals);
  for (uint32_t v = 0; v < d->n_values; v++) {
    f->copy_ns[v] = to_units(d->value_copy[v], decimals);
    f->value_bytes[v] = d->value_bytes[v];
    f->value_task[v] = d->value_task[v];
    f->value_class[v] = d->task_class[d->value_task[v]];
  }
  memcpy(f->reads, d->reads, (size_t)d->n_reads * sizeof *f->reads);
  memcpy(f->orders, d->orders, (size_t)d->n_orders * sizeof *f->orders);
  f->copies_queue = d->copies_queue;
}

/* What a person needs to see of a class that no device can run: two of its nodes that disagree, or
 * one that no device runs. */
static sn_status check_runs(const sn__draft *d) {
  size_t nd = (size_t)d->n_devices;
  uint32_t *first = sn__instance_array(d->instance, d->n_classes, sizeof *first);
  bool *able = sn__instance_array(d->instance, (size_t)d->n_classes * nd, sizeof *able);
  if (first == NULL || able == NULL) return sn_status_out_of_memory();
  for (uint32_t c = 0; c < d->n_classes; c++) {
    first[c] = SN__FLOW_NONE;
    for (size_t i = 0; i < nd; i++)
      able[c * nd + i] = d->class_pin[c] < 0 || (size_t)d->class_pin[c] == i;
  }
  for (uint32_t t = 0; t < d->n_tasks; t++) {
    uint32_t c = d->task_class[t];
    bool alone = false, together = false;
    if (first[c] == SN__FLOW_NONE) first[c] = t;
    for (size_t i = 0; i < nd; i++) {
      bool can = isfinite(d->task_time[t * nd + i]);
      alone = alone || can;
      able[c * nd + i] = able[c * nd + i] && can;
      together = together || able[c * nd + i];
    }
    if (together) continue;
    const char *id = d->instance->node_id[t];
    if (!alone)
      return sn_status_make(SN_CODE_DATA, "%s: no device can run node %s; allow it one", d->path,
                            id);
    if (d->class_pin[c] >= 0)
      return sn_status_make(SN_CODE_DATA,
                            "%s: node %s is pinned to %s, which cannot run it; pin it elsewhere",
                            d->path, id, d->instance->device_name[d->class_pin[c]]);
    return sn_status_make(SN_CODE_DATA,
                          "%s: nodes %s and %s must be on one device (one class), and no device "
                          "can run both; part them, or allow them a device",
                          d->path, d->instance->node_id[first[c]], id);
  }
  return SN_OK;
}

sn_status sn__draft_finish(sn__draft *d) {
  sn_instance *in = d->instance;
  in->facts.n_devices = d->n_devices;
  if (d->n_tasks == 0)
    return sn_status_make(SN_CODE_DATA, "%s: has no nodes; there is nothing to place", d->path);
  SN_TRY(check_runs(d));
  SN_TRY(choose_decimals(d, &in->decimals));
  SN_TRY(sn__flow_create(d->n_devices, d->n_classes, d->n_tasks, d->n_values, d->n_reads,
                         d->n_orders, 1, &in->flow));
  fill_flow(d, in->decimals);
  in->decimals += d->shift;
  sn_status status = sn__flow_finish(in->flow);
  if (sn_status_code(status) == SN_CODE_INVALID) {
    sn_status data = sn_status_make(SN_CODE_DATA, "%s: %s", d->path, sn_status_message(status));
    sn_status_free(status);
    return data;
  }
  return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static sn_status read_text(sn_instance *in, const char *path, char *text, size_t length,
                           int devices) {
  const char *start = text + strspn(text, " \t\r\n");
  if (strncmp(start, "\xef\xbb\xbf", 3) == 0) start += 3;
  if (*start == '\0') return sn_status_make(SN_CODE_DATA, "%s: is empty", path);
  if (strlen(text) < length)
    return sn_status_make(SN_CODE_DATA, "%s: holds a NUL byte at offset %zu; it is no text", path,
                          strlen(text));
  if (*start == '{' || *start == '[')
    return sn__instance_read_json(in, path, text + (start - text), length - (size_t)(start - text));
  if (strncmp(start, "node", 4) == 0) return sn__instance_read_pipedream(in, path, text, devices);
  if (strncmp(start, "id,", 3) == 0) return sn__instance_read_csv(in, path, text);
  if (*start >= '0' && *start <= '9') return sn__instance_read_doppler(in, path, text, devices);
  return sn_status_make(SN_CODE_DATA,
                        "%s: is not a placement problem; the forms are dnn-partitioning and sennit "
                        "JSON, doppler and pipedream text, and minimalloc CSV",
                        path);
}

sn_status sn_instance_open(const char *path, int devices, sn_instance **out_instance) {
  void *text = NULL;
  size_t length = 0;
  if (devices < 0 || devices > 256)
    return sn_status_make(SN_CODE_INVALID, "%d devices; there are 1 to 256", devices);
  SN_TRY(sn__file_read(path, MOST_BYTES, &text, &length));
  sn_instance *in = sn__calloc(1, sizeof *in);
  sn_status status = in == NULL ? sn_status_out_of_memory()
                                : read_text(in, path, text, length, devices == 0 ? 4 : devices);
  sn__free(text);
  if (status != SN_OK) {
    sn_instance_free(in);
    return status;
  }
  static const char *const objectives[] = {"load", "makespan", "memory"};
  in->facts.objective = objectives[in->kind];
  *out_instance = in;
  return SN_OK;
}

void sn_instance_free(sn_instance *in) {
  if (in == NULL) return;
  sn__flow_free(in->flow);
  sn__arena_free(&in->arena);
  sn__free(in);
}

const sn_instance_facts *sn_instance_facts_of(const sn_instance *in) {
  return &in->facts;
}
