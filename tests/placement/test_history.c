/* SPDX-License-Identifier: Apache-2.0 */
/* Steps from a kept state against whole ones: everything that a simulation gives, bit by bit. */
#include "placement/flow_history.h"
#include "placement/flow_simulate.h"
#include "tests/placement/flows.h"

enum { TASKS = 60, DEVICES = 4 };

/* Classes of several tasks, values that are there from the start, views, what is overwritten in
 * place, tasks without time. */
static sn__flow *any_flow(dice *d, bool queue) {
  uint32_t n = (uint32_t)roll(d, 4, TASKS), classes = (uint32_t)roll(d, (n + 2) / 3, n);
  uint32_t sources = (uint32_t)roll(d, 0, 6), reads = 0, orders = 0;
  int devices = (int)roll(d, 2, DEVICES);
  bool bytes = roll(d, 0, 3) > 0;
  sn__flow *f = NULL;
  ck_sn_ok(sn__flow_create(devices, classes, n, sources + n, n * n + sources * n, n, 2, &f));
  f->copies_queue = queue;
  for (int i = 0; i < devices * devices; i++)
    f->link_of[i] = (uint16_t)roll(d, 0, 1);
  for (uint32_t c = 0; c < classes; c++)
    f->class_bytes[c] = (uint64_t)roll(d, 0, 9);
  for (uint32_t v = 0; v < sources + n; v++) {
    uint32_t t = v - sources;
    f->value_task[v] = v < sources ? SN__FLOW_NONE : t;
    if (v >= sources) f->task_class[t] = t < classes ? t : (uint32_t)roll(d, 0, classes - 1);
    f->value_class[v] = v < sources ? (uint32_t)roll(d, 0, classes - 1) : f->task_class[t];
    f->value_bytes[v] = bytes ? (uint64_t)roll(d, 0, 50) : 0;
    for (int k = 0; k < 2; k++)
      f->copy_ns[v * 2 + (uint32_t)k] = roll(d, 0, 30);
  }
  int64_t density = roll(d, 1, 20);
  for (uint32_t t = 0; t < n; t++) {
    for (uint32_t v = 0; v < sources + t; v++)
      if (roll(d, 1, 100) <= density) f->reads[reads++] = (sn__flow_read){v, t};
    f->task_view[t] = t > 0 && roll(d, 0, 7) == 0;
    if (f->task_view[t]) {
      uint32_t of = sources + (uint32_t)roll(d, 0, t - 1);
      f->reads[reads++] = (sn__flow_read){of, t};
      f->value_base[sources + t] = of;
    }
    for (int e = 0; e < devices; e++)
      f->task_ns[t * (uint32_t)devices + (uint32_t)e] = f->task_view[t] ? 0 : roll(d, 0, 20);
  }
  for (uint32_t i = 0; i < reads && orders < n; i++)
    if (roll(d, 0, 9) == 0 && f->reads[i].task + 1 < n)
      f->orders[orders++] =
          (sn__flow_order){f->reads[i].task, (uint32_t)roll(d, f->reads[i].task + 1, n - 1),
                           roll(d, 0, 1) == 0 ? 0 : f->reads[i].value + 1};
  f->n_reads = reads;
  f->n_orders = orders;
  ck_sn_ok(sn__flow_finish(f));
  return f;
}

typedef struct arrays {
  int64_t start[TASKS], end[TASKS], busy[DEVICES];
  uint32_t previous[TASKS];
  uint64_t peak[DEVICES];
} arrays;

static sn__flow_step step_in(arrays *a, bool memory, int64_t cutoff) {
  return (sn__flow_step){.cutoff = cutoff,
                         .busy = a->busy,
                         .peak_bytes = memory ? a->peak : NULL,
                         .start = a->start,
                         .end = a->end,
                         .previous = a->previous};
}

static void compare(const sn__flow *f, const sn__flow_step *x, const sn__flow_step *y,
                    int64_t cutoff) {
  if (x->makespan == INT64_MAX || y->makespan == INT64_MAX) {
    ck_assert_int_eq(x->makespan, y->makespan);
    ck_assert_int_gt(cutoff, 0);
    return;
  }
  size_t nd = (size_t)f->n_devices;
  ck_assert_int_eq(x->makespan, y->makespan);
  ck_assert_int_eq(x->copy_time, y->copy_time);
  ck_assert_uint_eq(x->copy_bytes, y->copy_bytes);
  ck_assert_mem_eq(x->busy, y->busy, nd * sizeof *x->busy);
  if (x->peak_bytes != NULL) ck_assert_mem_eq(x->peak_bytes, y->peak_bytes, nd * sizeof(uint64_t));
  ck_assert_mem_eq(x->start, y->start, f->n_tasks * sizeof *x->start);
  ck_assert_mem_eq(x->end, y->end, f->n_tasks * sizeof *x->end);
  for (uint32_t t = 0; t < f->n_tasks; t++)
    if (!f->task_view[t]) ck_assert_uint_eq(x->previous[t], y->previous[t]);
}

/* Random moves; some are kept, some are given up in the middle. */
static int walk(dice *d, const sn__flow *f, bool memory, int moves) {
  arrays pool[3];
  sn__flow_simulator *s = NULL, *whole = NULL;
  sn__flow_history *h = NULL;
  int devices[TASKS], kept = 0;
  int64_t priorities[TASKS];
  memset(pool, 0, sizeof pool);
  ck_sn_ok(sn__flow_simulator_create(f, &s));
  ck_sn_ok(sn__flow_simulator_create(f, &whole));
  ck_sn_ok(sn__flow_history_create(s, &h));
  for (uint32_t c = 0; c < f->n_classes; c++)
    devices[c] = (int)roll(d, 0, f->n_devices - 1);
  for (uint32_t t = 0; t < f->n_tasks; t++)
    priorities[t] = roll(d, 0, 50);
  sn__flow_step now = step_in(&pool[0], memory, 0);
  sn__flow_history_simulate(h, devices, priorities, NULL, &now);
  sn__flow_history_keep(h);
  for (int i = 0, trial = 1; i < moves; i++) {
    uint32_t classes[2], tasks[2];
    int device_was[2];
    int64_t priority_was[2];
    sn__flow_changes c = {classes, (uint32_t)roll(d, 0, 2), tasks, (uint32_t)roll(d, 0, 2)};
    for (uint32_t k = 0; k < c.n_classes; k++) {
      classes[k] = (uint32_t)roll(d, 0, f->n_classes - 1);
      device_was[k] = devices[classes[k]];
      devices[classes[k]] = (int)roll(d, 0, f->n_devices - 1);
    }
    for (uint32_t k = 0; k < c.n_tasks; k++) {
      tasks[k] = (uint32_t)roll(d, 0, f->n_tasks - 1);
      priority_was[k] = priorities[tasks[k]];
      priorities[tasks[k]] = roll(d, 0, 50);
    }
    int64_t cutoff = roll(d, 0, 2) == 0 ? now.makespan + roll(d, 0, 5) : 0;
    sn__flow_step x = step_in(&pool[trial], memory, cutoff), y = step_in(&pool[2], memory, cutoff);
    sn__flow_history_simulate(h, devices, priorities, &c, &x);
    sn__flow_simulate(whole, devices, priorities, &y);
    compare(f, &x, &y, cutoff);
    if (x.makespan < INT64_MAX && roll(d, 0, 3) == 0) {
      sn__flow_history_keep(h);
      now = x;
      trial = 1 - trial;
      kept++;
      continue;
    }
    for (uint32_t k = c.n_classes; k-- > 0;)
      devices[classes[k]] = device_was[k];
    for (uint32_t k = c.n_tasks; k-- > 0;)
      priorities[tasks[k]] = priority_was[k];
  }
  sn__flow_history_free(h);
  sn__flow_simulator_free(whole);
  sn__flow_simulator_free(s);
  return kept;
}

START_TEST(same_as_whole) {
  int kept = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    dice d = {seed, 0};
    sn__flow *f = any_flow(&d, seed % 2 == 1);
    kept += walk(&d, f, seed % 4 < 3, 100);
    sn__flow_free(f);
  }
  ck_assert_int_gt(kept, 1000);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("history");
  TCase *t = tcase_create("history");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, same_as_whole);
  suite_add_tcase(s, t);
  return s;
}
SN_TEST_MAIN(suite)
