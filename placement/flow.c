/* SPDX-License-Identifier: Apache-2.0 */
/* Making, checking and linking a placement problem's arrays. */
#include "placement/flow.h"

#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"

enum { DEVICES_MOST = 256 };

static sn_status invalid_size(const char *what) {
  return sn_status_make(SN_CODE_INVALID, "placement: %s", what);
}

static bool allocate(sn__flow *f) {
  size_t nd = (size_t)f->n_devices, links = (size_t)f->n_links;
  f->device_bytes = sn__calloc(nd, sizeof *f->device_bytes);
  f->class_pin = sn__calloc((size_t)f->n_classes + 1, sizeof *f->class_pin);
  f->class_bytes = sn__calloc((size_t)f->n_classes + 1, sizeof *f->class_bytes);
  f->task_class = sn__calloc((size_t)f->n_tasks + 1, sizeof *f->task_class);
  f->task_ns = sn__calloc((size_t)f->n_tasks * nd + 1, sizeof *f->task_ns);
  f->task_view = sn__calloc((size_t)f->n_tasks + 1, sizeof *f->task_view);
  f->value_task = sn__calloc((size_t)f->n_values + 1, sizeof *f->value_task);
  f->value_class = sn__calloc((size_t)f->n_values + 1, sizeof *f->value_class);
  f->value_bytes = sn__calloc((size_t)f->n_values + 1, sizeof *f->value_bytes);
  f->value_base = sn__calloc((size_t)f->n_values + 1, sizeof *f->value_base);
  f->link_of = sn__calloc(nd * nd, sizeof *f->link_of);
  f->copy_ns = sn__calloc((size_t)f->n_values * links + 1, sizeof *f->copy_ns);
  f->reads = sn__calloc((size_t)f->n_reads + 1, sizeof *f->reads);
  f->orders = sn__calloc((size_t)f->n_orders + 1, sizeof *f->orders);
  f->first_reader = sn__calloc((size_t)f->n_values + 1, sizeof *f->first_reader);
  f->first_input = sn__calloc((size_t)f->n_tasks + 1, sizeof *f->first_input);
  f->inputs = sn__calloc((size_t)f->n_reads + 1, sizeof *f->inputs);
  f->first_output = sn__calloc((size_t)f->n_tasks + 1, sizeof *f->first_output);
  f->outputs = sn__calloc((size_t)f->n_values + 1, sizeof *f->outputs);
  f->first_order = sn__calloc((size_t)f->n_tasks + 1, sizeof *f->first_order);
  f->first_member = sn__calloc((size_t)f->n_classes + 1, sizeof *f->first_member);
  f->members = sn__calloc((size_t)f->n_tasks + 1, sizeof *f->members);
  f->topological = sn__calloc((size_t)f->n_tasks + 1, sizeof *f->topological);
  return f->device_bytes && f->class_pin && f->class_bytes && f->task_class && f->task_ns &&
         f->task_view && f->value_task && f->value_class && f->value_bytes && f->value_base &&
         f->first_order && f->link_of && f->copy_ns && f->reads && f->orders && f->first_reader &&
         f->first_input && f->inputs && f->first_output && f->outputs && f->first_member &&
         f->members && f->topological;
}

sn_status sn__flow_create(int n_devices, uint32_t n_classes, uint32_t n_tasks, uint32_t n_values,
                          uint32_t n_reads, uint32_t n_orders, int n_links, sn__flow **out_flow) {
  if (n_devices < 1 || n_devices > DEVICES_MOST)
    return sn_status_make(SN_CODE_INVALID, "placement: %d devices; there are 1 to %d", n_devices,
                          DEVICES_MOST);
  if (n_links < 0 || n_links > UINT16_MAX) return invalid_size("more kinds of link than 65535");
  sn__flow *f = sn__calloc(1, sizeof *f);
  if (f == NULL) return sn_status_out_of_memory();
  f->n_devices = n_devices;
  f->n_classes = n_classes;
  f->n_tasks = n_tasks;
  f->n_values = n_values;
  f->n_reads = n_reads;
  f->n_orders = n_orders;
  f->n_links = n_links > 0 ? n_links : 1;
  if (!allocate(f)) {
    sn__flow_free(f);
    return sn_status_out_of_memory();
  }
  for (uint32_t c = 0; c < n_classes; c++)
    f->class_pin[c] = -1;
  memset(f->value_base, 0xff, (size_t)n_values * sizeof *f->value_base);
  *out_flow = f;
  return SN_OK;
}

void sn__flow_free(sn__flow *f) {
  if (f == NULL) return;
  void *const arrays[] = {f->device_bytes, f->class_pin,   f->class_bytes,  f->task_class,
                          f->task_ns,      f->task_view,   f->value_task,   f->value_class,
                          f->value_base,   f->first_order, f->value_bytes,  f->link_of,
                          f->copy_ns,      f->reads,       f->orders,       f->first_reader,
                          f->first_input,  f->inputs,      f->first_output, f->outputs,
                          f->first_member, f->members,     f->topological};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
  sn__free(f);
}

int64_t sn__flow_class_ns(const sn__flow *f, uint32_t class_, int device) {
  int64_t sum = 0;
  for (uint32_t i = f->first_member[class_]; i < f->first_member[class_ + 1]; i++) {
    int64_t ns = f->task_ns[(size_t)f->members[i] * (size_t)f->n_devices + (size_t)device];
    if (ns == SN__FLOW_NEVER) return SN__FLOW_NEVER;
    sum += ns;
  }
  return sum;
}

void sn__flow_least_ns(const sn__flow *f, int64_t *out_ns) {
  for (uint32_t t = 0; t < f->n_tasks; t++)
    out_ns[t] = INT64_MAX;
  for (uint32_t c = 0; c < f->n_classes; c++)
    for (int d = 0; d < f->n_devices; d++) {
      if (f->class_pin[c] >= 0 && f->class_pin[c] != d) continue;
      if (sn__flow_class_ns(f, c, d) == SN__FLOW_NEVER) continue;
      for (uint32_t i = f->first_member[c]; i < f->first_member[c + 1]; i++) {
        uint32_t t = f->members[i];
        int64_t ns = f->task_ns[(size_t)t * (size_t)f->n_devices + (size_t)d];
        if (ns < out_ns[t]) out_ns[t] = ns;
      }
    }
}

/* ---- checks --------------------------------------------------------------------------------- */

/* Adds a time where all sums stay countable. */
static bool add_time(int64_t *sum, int64_t ns) {
  if (ns < 0 || ns > SN__FLOW_TIME_MOST - *sum) return false;
  *sum += ns;
  return true;
}

static sn_status check_tasks(const sn__flow *f) {
  int64_t sum = 0;
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    if (f->task_class[t] >= f->n_classes)
      return sn_status_make(SN_CODE_INVALID, "placement: task %u is of class %u of %u", t,
                            f->task_class[t], f->n_classes);
    int64_t most = 0;
    for (int d = 0; d < f->n_devices; d++) {
      int64_t ns = f->task_ns[(size_t)t * (size_t)f->n_devices + (size_t)d];
      if (ns < 0)
        return sn_status_make(SN_CODE_INVALID,
                              "placement: task %u takes a negative time (%lld) on device %d; a "
                              "cost is 0 at least",
                              t, (long long)ns, d);
      if (ns != SN__FLOW_NEVER && ns > most) most = ns;
    }
    if (!add_time(&sum, most))
      return sn_status_make(
          SN_CODE_INVALID, "placement: the times of the tasks up to %u are too large to add up", t);
  }
  return SN_OK;
}

static sn_status check_values(const sn__flow *f) {
  int64_t sum = 0;
  for (uint32_t v = 0; v < f->n_values; v++) {
    uint32_t maker = f->value_task[v];
    if ((maker != SN__FLOW_NONE && maker >= f->n_tasks) || f->value_class[v] >= f->n_classes)
      return sn_status_make(SN_CODE_INVALID, "placement: value %u has no maker %u or no class %u",
                            v, maker, f->value_class[v]);
    if (maker != SN__FLOW_NONE && f->task_class[maker] != f->value_class[v])
      return sn_status_make(SN_CODE_INVALID, "placement: value %u is not of its maker's class", v);
    /* Bases are made before, so that looking behind views ends. */
    uint32_t base = f->value_base[v];
    if (base != SN__FLOW_NONE && base >= v)
      return sn_status_make(SN_CODE_INVALID, "placement: value %u looks at a later one, %u", v,
                            base);
    for (int k = 0; k < f->n_links; k++) {
      int64_t ns = f->copy_ns[(size_t)v * (size_t)f->n_links + (size_t)k];
      if (ns < 0 || ns > SN__FLOW_TIME_MOST / f->n_devices || !add_time(&sum, ns * f->n_devices))
        return sn_status_make(SN_CODE_INVALID,
                              "placement: a copy of value %u takes %lld; a cost is 0 at least, and "
                              "all together must be countable",
                              v, (long long)ns);
    }
  }
  for (int i = 0; i < f->n_devices * f->n_devices; i++)
    if (f->link_of[i] >= f->n_links) return invalid_size("a pair of devices has no kind of link");
  return SN_OK;
}

static sn_status check_edges(const sn__flow *f) {
  for (uint32_t i = 0; i < f->n_reads; i++)
    if (f->reads[i].value >= f->n_values || f->reads[i].task >= f->n_tasks)
      return sn_status_make(SN_CODE_INVALID,
                            "placement: task %u reads value %u, which is not there",
                            f->reads[i].task, f->reads[i].value);
  for (uint32_t i = 0; i < f->n_orders; i++)
    if (f->orders[i].before >= f->n_tasks || f->orders[i].after >= f->n_tasks ||
        f->orders[i].reads > f->n_values)
      return sn_status_make(SN_CODE_INVALID, "placement: task %u waits for %u, which is not there",
                            f->orders[i].after, f->orders[i].before);
  return SN_OK;
}

static sn_status check_classes(const sn__flow *f) {
  for (uint32_t c = 0; c < f->n_classes; c++) {
    int pin = f->class_pin[c];
    if (pin < -1 || pin >= f->n_devices)
      return sn_status_make(SN_CODE_INVALID,
                            "placement: class %u is pinned to device %d of %d; they count from 0",
                            c, pin, f->n_devices);
    bool any = false;
    for (int d = 0; !any && d < f->n_devices; d++)
      any = (pin < 0 || pin == d) && sn__flow_class_ns(f, c, d) != SN__FLOW_NEVER;
    if (any) continue;
    uint32_t task =
        f->first_member[c] < f->first_member[c + 1] ? f->members[f->first_member[c]] : 0;
    return sn_status_make(SN_CODE_INVALID,
                          "placement: no device can run all of what moves with task %u%s", task,
                          pin >= 0 ? " where it is pinned" : "");
  }
  return SN_OK;
}

/* ---- links ---------------------------------------------------------------------------------- */

static int compare_reads(const void *a, const void *b) {
  const sn__flow_read *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->task < y->task ? -1 : x->task > y->task;
}

static int compare_orders(const void *a, const void *b) {
  const sn__flow_order *x = a, *y = b;
  if (x->before != y->before) return x->before < y->before ? -1 : 1;
  if (x->after != y->after) return x->after < y->after ? -1 : 1;
  return x->reads < y->reads ? -1 : x->reads > y->reads;
}

static void sort_edges(sn__flow *f) {
  uint32_t n = 0;
  if (f->n_reads > 0) qsort(f->reads, f->n_reads, sizeof *f->reads, compare_reads);
  for (uint32_t i = 0; i < f->n_reads; i++)
    if (n == 0 || compare_reads(&f->reads[n - 1], &f->reads[i]) != 0) f->reads[n++] = f->reads[i];
  f->n_reads = n;
  n = 0;
  if (f->n_orders > 0) qsort(f->orders, f->n_orders, sizeof *f->orders, compare_orders);
  for (uint32_t i = 0; i < f->n_orders; i++)
    if (n == 0 || compare_orders(&f->orders[n - 1], &f->orders[i]) != 0)
      f->orders[n++] = f->orders[i];
  f->n_orders = n;
}

/* first[k] is where k's items begin, from how many each k has, counted into first[k + 1]. */
static void add_up(uint32_t *first, uint32_t n) {
  for (uint32_t k = 0; k < n; k++)
    first[k + 1] += first[k];
}

/* Puts an item at k's next free place: first[k] moves on, and set_back() undoes that. */
static void set_back(uint32_t *first, uint32_t n) {
  for (uint32_t k = n; k > 0; k--)
    first[k] = first[k - 1];
  first[0] = 0;
}

static void link_values(sn__flow *f) {
  for (uint32_t i = 0; i < f->n_reads; i++) {
    f->first_reader[f->reads[i].value + 1]++;
    f->first_input[f->reads[i].task + 1]++;
  }
  add_up(f->first_reader, f->n_values);
  add_up(f->first_input, f->n_tasks);
  for (uint32_t i = 0; i < f->n_reads; i++)
    f->inputs[f->first_input[f->reads[i].task]++] = f->reads[i].value;
  set_back(f->first_input, f->n_tasks);
  for (uint32_t v = 0; v < f->n_values; v++)
    if (f->value_task[v] != SN__FLOW_NONE) f->first_output[f->value_task[v] + 1]++;
  add_up(f->first_output, f->n_tasks);
  for (uint32_t v = 0; v < f->n_values; v++)
    if (f->value_task[v] != SN__FLOW_NONE) f->outputs[f->first_output[f->value_task[v]]++] = v;
  set_back(f->first_output, f->n_tasks);
}

static void link_orders(sn__flow *f) {
  for (uint32_t i = 0; i < f->n_orders; i++)
    f->first_order[f->orders[i].before + 1]++;
  add_up(f->first_order, f->n_tasks);
}

static void link_classes(sn__flow *f) {
  for (uint32_t t = 0; t < f->n_tasks; t++)
    f->first_member[f->task_class[t] + 1]++;
  add_up(f->first_member, f->n_classes);
  for (uint32_t t = 0; t < f->n_tasks; t++)
    f->members[f->first_member[f->task_class[t]]++] = t;
  set_back(f->first_member, f->n_classes);
}

static void settle(sn__flow *f, uint32_t task, uint32_t *waits, uint32_t *n) {
  if (--waits[task] == 0) f->topological[(*n)++] = task;
}

/* First come, first settled, sources by number. */
static sn_status sort_topologically(sn__flow *f, uint32_t *waits) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->n_reads; i++)
    if (f->value_task[f->reads[i].value] != SN__FLOW_NONE) waits[f->reads[i].task]++;
  for (uint32_t i = 0; i < f->n_orders; i++)
    waits[f->orders[i].after]++;
  for (uint32_t t = 0; t < f->n_tasks; t++)
    if (waits[t] == 0) f->topological[n++] = t;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t t = f->topological[i];
    for (uint32_t o = f->first_output[t]; o < f->first_output[t + 1]; o++) {
      uint32_t v = f->outputs[o];
      for (uint32_t r = f->first_reader[v]; r < f->first_reader[v + 1]; r++)
        settle(f, f->reads[r].task, waits, &n);
    }
    for (uint32_t o = f->first_order[t]; o < f->first_order[t + 1]; o++)
      settle(f, f->orders[o].after, waits, &n);
  }
  if (n == f->n_tasks) return SN_OK;
  uint32_t t = 0;
  while (waits[t] == 0)
    t++;
  return sn_status_make(SN_CODE_INVALID,
                        "placement: a cycle: task %u waits for itself, directly or through others",
                        t);
}

sn_status sn__flow_finish(sn__flow *f) {
  SN_TRY(check_tasks(f));
  SN_TRY(check_values(f));
  SN_TRY(check_edges(f));
  sort_edges(f);
  link_classes(f);
  SN_TRY(check_classes(f));
  link_values(f);
  link_orders(f);
  uint32_t *waits = sn__calloc((size_t)f->n_tasks + 1, sizeof *waits);
  if (waits == NULL) return sn_status_out_of_memory();
  sn_status status = sort_topologically(f, waits);
  sn__free(waits);
  return status;
}
