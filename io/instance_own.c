/* SPDX-License-Identifier: Apache-2.0 */
/* Our own form of a placement problem; io/instance.h describes it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/nearest.h"
#include "io/instance_json.h"

typedef struct own {
  sn_instance *in;
  const char *path;
  const cJSON *devices, *classes, *tasks, *values, *orders;
  uint32_t n_devices, n_classes, n_tasks, n_values, n_orders;
  sn__id_map task_ids, class_ids;
  uint32_t *class_of;     /* [n_tasks] */
  uint32_t n_all_classes; /* named ones and those of tasks without */
} own;

/* ---- keys ------------------------------------------------------------------------------------ */

static sn_status check_keys(const char *path, const char *what, uint32_t index, const cJSON *object,
                            const char *const *known, size_t n) {
  for (const cJSON *item = object->child; item != NULL; item = item->next) {
    size_t k = 0;
    while (k < n && strcmp(known[k], item->string) != 0)
      k++;
    if (k < n) continue;
    const char *near = sn__nearest(item->string, known, n);
    return sn_status_make(SN_CODE_DATA, "%s: %s %u has an unknown key '%.40s'%s%s%s", path, what,
                          index, item->string, near != NULL ? "; did you mean '" : "",
                          near != NULL ? near : "", near != NULL ? "'?" : "");
  }
  return SN_OK;
}

#define CHECK_KEYS(path, what, index, object, ...)                                                 \
  check_keys(path, what, index, object, (const char *const[]){__VA_ARGS__},                        \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* A word of the top object; `otherwise` when it is not there, NULL: it must be. */
static sn_status take_word(const char *path, const cJSON *root, const char *key,
                           const char *otherwise, const char **out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
  *out = otherwise;
  if (item == NULL && otherwise != NULL) return SN_OK;
  if (!cJSON_IsString(item) || item->valuestring[0] == '\0')
    return sn_status_make(SN_CODE_DATA, "%s: '%s' should be a word", path, key);
  *out = item->valuestring;
  return SN_OK;
}

static sn_status take_head(own *x, const cJSON *root, bool *out_queue) {
  const char *format = NULL, *objective = NULL, *unit = NULL, *copies = NULL;
  sn__json_place at = {x->path, "the problem", 0};
  double version = 0;
  SN_TRY(CHECK_KEYS(x->path, "the problem", 0, root, "format", "version", "objective", "unit",
                    "copies", "devices", "classes", "tasks", "values", "orders", "note"));
  SN_TRY(take_word(x->path, root, "format", NULL, &format));
  if (strcmp(format, "sennit-placement") != 0)
    return sn_status_make(SN_CODE_DATA, "%s: its format is '%.40s'; 'sennit-placement' is read",
                          x->path, format);
  SN_TRY(sn__json_whole(&at, root, "version", NAN, 1e9, &version));
  if (version != 1)
    return sn_status_make(SN_CODE_UNSUPPORTED, "%s: is of version %.0f; version 1 is read", x->path,
                          version);
  SN_TRY(take_word(x->path, root, "objective", NULL, &objective));
  SN_TRY(take_word(x->path, root, "unit", "time", &unit));
  SN_TRY(take_word(x->path, root, "copies", "queue", &copies));
  bool load = strcmp(objective, "load") == 0;
  if (!load && strcmp(objective, "makespan") != 0)
    return sn_status_make(SN_CODE_DATA, "%s: 'objective' is '%.40s'; use makespan or load", x->path,
                          objective);
  *out_queue = strcmp(copies, "queue") == 0;
  if (!*out_queue && strcmp(copies, "beside") != 0)
    return sn_status_make(SN_CODE_DATA, "%s: 'copies' is '%.40s'; use queue or beside", x->path,
                          copies);
  x->in->kind = load ? SN__INSTANCE_LOAD : SN__INSTANCE_MAKESPAN;
  x->in->facts.unit = sn__arena_strdup(&x->in->arena, unit);
  return x->in->facts.unit != NULL ? SN_OK : sn_status_out_of_memory();
}

/* A list that may be left out. */
static sn_status take_list(const own *x, const cJSON *root, const char *key, const cJSON **out,
                           uint32_t *out_n) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, key);
  size_t n = 0;
  *out = NULL;
  *out_n = 0;
  if (list == NULL) return SN_OK;
  if (!cJSON_IsArray(list))
    return sn_status_make(SN_CODE_DATA, "%s: '%s' is no list", x->path, key);
  for (const cJSON *i = list->child; i != NULL; i = i->next)
    n++;
  if (n >= 100000000)
    return sn_status_make(SN_CODE_UNSUPPORTED, "%s: %zu %s; fewer than 10^8 are read", x->path, n,
                          key);
  *out = list->child;
  *out_n = (uint32_t)n;
  return SN_OK;
}

static sn_status need_object(const own *x, const cJSON *item, const char *what, uint32_t index) {
  if (cJSON_IsObject(item)) return SN_OK;
  return sn_status_make(SN_CODE_DATA, "%s: %s %u is no object", x->path, what, index);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static sn_status take_ids(own *x, const cJSON *first, uint32_t n, const char *what,
                          sn__id_map *out) {
  double twice = 0;
  uint32_t i = 0;
  out->rows = sn__instance_array(x->in, n, sizeof *out->rows);
  if (out->rows == NULL) return sn_status_out_of_memory();
  for (const cJSON *item = first; item != NULL; item = item->next, i++) {
    sn__json_place at = {x->path, what, i};
    SN_TRY(need_object(x, item, what, i));
    SN_TRY(sn__json_whole(&at, item, "id", NAN, 9e15, &out->rows[i].id));
    out->rows[i].at = i;
  }
  out->n = n;
  if (!sn__id_map_sort(out, &twice))
    return sn_status_make(SN_CODE_DATA, "%s: the id %.0f is given twice (%s)", x->path, twice,
                          what);
  return SN_OK;
}

static sn_status find_id(const own *x, const sn__id_map *ids, double id, const char *where,
                         uint32_t index, const char *what, uint32_t *out) {
  *out = sn__id_map_find(ids, id);
  if (*out != SN__FLOW_NONE) return SN_OK;
  return sn_status_make(SN_CODE_DATA, "%s: %s %u names %s %g, which is not there", x->path, where,
                        index, what, id);
}

static sn_status take_classes(own *x) {
  uint32_t i = 0;
  x->class_of = sn__instance_array(x->in, x->n_tasks, sizeof *x->class_of);
  if (x->class_of == NULL) return sn_status_out_of_memory();
  x->n_all_classes = x->n_classes;
  for (const cJSON *task = x->tasks; task != NULL; task = task->next, i++) {
    sn__json_place at = {x->path, "task", i};
    double class_ = 0;
    if (cJSON_GetObjectItemCaseSensitive(task, "class") == NULL) {
      x->class_of[i] = x->n_all_classes++;
      continue;
    }
    SN_TRY(sn__json_number(&at, task, "class", NAN, &class_));
    SN_TRY(find_id(x, &x->class_ids, class_, "task", i, "class", &x->class_of[i]));
  }
  return SN_OK;
}

/* ---- filling --------------------------------------------------------------------------------- */

static sn_status fill_devices(own *x, sn__draft *d) {
  uint32_t i = 0;
  for (const cJSON *item = x->devices; item != NULL; item = item->next, i++) {
    sn__json_place at = {x->path, "device", i};
    const char *name = NULL;
    double pays = 0;
    SN_TRY(need_object(x, item, "device", i));
    SN_TRY(CHECK_KEYS(x->path, "device", i, item, "name", "memory", "pays"));
    SN_TRY(take_word(x->path, item, "name", NULL, &name));
    SN_TRY(sn__json_bytes(&at, item, "memory", 0, &d->device_bytes[i]));
    SN_TRY(sn__json_number(&at, item, "pays", 1, &pays));
    for (uint32_t j = 0; j < i; j++)
      if (strcmp(x->in->device_name[j], name) == 0)
        return sn_status_make(SN_CODE_DATA, "%s: two devices are called '%.40s'", x->path, name);
    x->in->device_name[i] = sn__arena_strdup(&x->in->arena, name);
    if (x->in->device_name[i] == NULL) return sn_status_out_of_memory();
    x->in->device_pays[i] = pays != 0;
  }
  return SN_OK;
}

static sn_status fill_classes(const own *x, sn__draft *d) {
  uint32_t i = 0;
  for (const cJSON *item = x->classes; item != NULL; item = item->next, i++) {
    sn__json_place at = {x->path, "class", i};
    const char *device = NULL;
    SN_TRY(CHECK_KEYS(x->path, "class", i, item, "id", "bytes", "device"));
    SN_TRY(sn__json_bytes(&at, item, "bytes", 0, &d->class_bytes[i]));
    SN_TRY(take_word(x->path, item, "device", "", &device));
    if (device[0] == '\0') continue;
    int k = 0;
    while (k < d->n_devices && strcmp(x->in->device_name[k], device) != 0)
      k++;
    if (k == d->n_devices)
      return sn_status_make(SN_CODE_DATA, "%s: class %u is pinned to '%.40s', which is no device",
                            x->path, i, device);
    d->class_pin[i] = k;
  }
  return SN_OK;
}

/* One number, or one a device with null where it cannot run. */
static sn_status take_time(const own *x, const cJSON *task, uint32_t i, sn__draft *d) {
  const cJSON *time = cJSON_GetObjectItemCaseSensitive(task, "time"), *one = time;
  double *row = d->task_time + (size_t)i * (size_t)d->n_devices;
  bool list = cJSON_IsArray(time);
  if (time == NULL) return sn_status_make(SN_CODE_DATA, "%s: task %u has no 'time'", x->path, i);
  if (list && cJSON_GetArraySize(time) != d->n_devices)
    return sn_status_make(SN_CODE_DATA, "%s: task %u has %d times for %d devices", x->path, i,
                          cJSON_GetArraySize(time), d->n_devices);
  if (list) one = time->child;
  for (int k = 0; k < d->n_devices; k++) {
    bool never = list && cJSON_IsNull(one);
    if (!never && (!cJSON_IsNumber(one) || !(one->valuedouble >= 0) || isinf(one->valuedouble)))
      return sn_status_make(SN_CODE_DATA,
                            "%s: 'time' of task %u is no finite number of 0 at least, nor a list "
                            "of them (null where it cannot run)",
                            x->path, i);
    row[k] = never ? (double)INFINITY : one->valuedouble;
    if (list) one = one->next;
  }
  return SN_OK;
}

static sn_status fill_tasks(own *x, sn__draft *d) {
  uint32_t i = 0;
  x->in->task_backward = sn__instance_array(x->in, x->n_tasks, sizeof *x->in->task_backward);
  if (x->in->task_backward == NULL) return sn_status_out_of_memory();
  for (const cJSON *task = x->tasks; task != NULL; task = task->next, i++) {
    sn__json_place at = {x->path, "task", i};
    double id = 0, backward = 0;
    SN_TRY(CHECK_KEYS(x->path, "task", i, task, "id", "class", "time", "backward"));
    SN_TRY(sn__json_number(&at, task, "id", NAN, &id));
    SN_TRY(sn__json_number(&at, task, "backward", 0, &backward));
    SN_TRY(take_time(x, task, i, d));
    x->in->node_id[i] = sn__json_id_text(x->in, id);
    if (x->in->node_id[i] == NULL) return sn_status_out_of_memory();
    x->in->task_backward[i] = backward != 0;
    d->task_class[i] = x->class_of[i];
  }
  return SN_OK;
}

static uint32_t count_reads(const own *x) {
  size_t n = 0;
  for (const cJSON *value = x->values; value != NULL; value = value->next) {
    const cJSON *by = cJSON_GetObjectItemCaseSensitive(value, "read_by");
    for (const cJSON *one = by != NULL ? by->child : NULL; one != NULL; one = one->next)
      n++;
  }
  return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static sn_status fill_values(own *x, sn__draft *d) {
  uint32_t i = 0, reads = 0;
  for (const cJSON *value = x->values; value != NULL; value = value->next, i++) {
    sn__json_place at = {x->path, "value", i};
    double from = 0;
    SN_TRY(CHECK_KEYS(x->path, "value", i, value, "from", "copy", "bytes", "read_by"));
    SN_TRY(sn__json_number(&at, value, "from", NAN, &from));
    SN_TRY(find_id(x, &x->task_ids, from, "value", i, "task", &d->value_task[i]));
    SN_TRY(sn__json_amount(&at, value, "copy", 0, &d->value_copy[i]));
    SN_TRY(sn__json_bytes(&at, value, "bytes", 0, &d->value_bytes[i]));
    const cJSON *by = cJSON_GetObjectItemCaseSensitive(value, "read_by");
    if (by != NULL && !cJSON_IsArray(by))
      return sn_status_make(SN_CODE_DATA, "%s: 'read_by' of value %u is no list", x->path, i);
    for (const cJSON *one = by != NULL ? by->child : NULL; one != NULL; one = one->next) {
      uint32_t task = 0;
      if (!cJSON_IsNumber(one))
        return sn_status_make(SN_CODE_DATA, "%s: 'read_by' of value %u holds no task", x->path, i);
      SN_TRY(find_id(x, &x->task_ids, one->valuedouble, "value", i, "task", &task));
      d->reads[reads++] = (sn__flow_read){i, task};
    }
  }
  return SN_OK;
}

static sn_status fill_orders(own *x, sn__draft *d) {
  uint32_t i = 0;
  for (const cJSON *pair = x->orders; pair != NULL; pair = pair->next, i++) {
    if (!cJSON_IsArray(pair) || cJSON_GetArraySize(pair) != 2 || !cJSON_IsNumber(pair->child) ||
        !cJSON_IsNumber(pair->child->next))
      return sn_status_make(SN_CODE_DATA, "%s: order %u should be [task, task]", x->path, i);
    SN_TRY(find_id(x, &x->task_ids, pair->child->valuedouble, "order", i, "task",
                   &d->orders[i].before));
    SN_TRY(find_id(x, &x->task_ids, pair->child->next->valuedouble, "order", i, "task",
                   &d->orders[i].after));
  }
  return SN_OK;
}

sn_status sn__instance_read_own(sn_instance *in, const char *path, const cJSON *root) {
  own x = {.in = in, .path = path};
  bool queue = false;
  in->facts.format = "sennit";
  SN_TRY(take_head(&x, root, &queue));
  SN_TRY(take_list(&x, root, "devices", &x.devices, &x.n_devices));
  SN_TRY(take_list(&x, root, "classes", &x.classes, &x.n_classes));
  SN_TRY(take_list(&x, root, "tasks", &x.tasks, &x.n_tasks));
  SN_TRY(take_list(&x, root, "values", &x.values, &x.n_values));
  SN_TRY(take_list(&x, root, "orders", &x.orders, &x.n_orders));
  if (x.n_devices < 1 || x.n_devices > 256)
    return sn_status_make(SN_CODE_DATA, "%s: has %u devices; there are 1 to 256", path,
                          x.n_devices);
  SN_TRY(take_ids(&x, x.classes, x.n_classes, "class", &x.class_ids));
  SN_TRY(take_ids(&x, x.tasks, x.n_tasks, "task", &x.task_ids));
  for (const cJSON *v = x.values; v != NULL; v = v->next)
    SN_TRY(need_object(&x, v, "value", 0));
  SN_TRY(take_classes(&x));
  sn__draft d = {.instance = in,
                 .path = path,
                 .n_devices = (int)x.n_devices,
                 .n_tasks = x.n_tasks,
                 .n_classes = x.n_all_classes,
                 .n_values = x.n_values,
                 .n_reads = count_reads(&x),
                 .n_orders = x.n_orders,
                 .copies_queue = queue};
  in->facts.n_nodes = d.n_tasks;
  in->facts.n_edges = (int64_t)d.n_reads + d.n_orders;
  SN_TRY(sn__draft_create(&d));
  SN_TRY(fill_devices(&x, &d));
  SN_TRY(fill_classes(&x, &d));
  SN_TRY(fill_tasks(&x, &d));
  SN_TRY(fill_values(&x, &d));
  SN_TRY(fill_orders(&x, &d));
  return sn__draft_finish(&d);
}
