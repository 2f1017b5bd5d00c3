/* SPDX-License-Identifier: Apache-2.0 */
/* The makespan search against enumeration, planted optima and published graphs. */
#include "placement/flow_simulate.h"
#include "placement/makespan.h"
#include "tests/placement/flows.h"

/* ---- brute force ----------------------------------------------------------------------------- */

enum { MOST = 12 };

/* Small problems with copies beside each other, looked at without the simulator: every placement,
 * and every way to keep idle devices from idling while they could work. Only what cannot be better
 * any more is left. */
typedef struct brute {
  const sn__flow *f;
  int device[MOST];
  int64_t end[MOST]; /* -1: not started */
  int64_t best;
} brute;

static int64_t there_at(const brute *b, uint32_t t) {
  const sn__flow *f = b->f;
  int64_t at = 0;
  for (uint32_t i = 0; i < f->n_reads; i++) {
    if (f->reads[i].task != t) continue;
    uint32_t from = f->reads[i].value; /* value t is made by task t */
    if (b->end[from] < 0) return INT64_MAX;
    int64_t copy = b->device[from] == b->device[t] ? 0 : f->copy_ns[from];
    if (b->end[from] + copy > at) at = b->end[from] + copy;
  }
  return at;
}

static void enumerate_orders(brute *b, int64_t now, int device) {
  const sn__flow *f = b->f;
  if (now >= b->best) return;
  for (; device < f->n_devices; device++) {
    bool busy = false, any = false;
    for (uint32_t t = 0; t < f->n_tasks; t++)
      busy |= b->device[t] == device && b->end[t] > now;
    if (busy) continue;
    for (uint32_t t = 0; t < f->n_tasks; t++) {
      if (b->device[t] != device || b->end[t] >= 0 || there_at(b, t) > now) continue;
      any = true;
      b->end[t] = now + f->task_ns[t * (uint32_t)f->n_devices + (uint32_t)device];
      enumerate_orders(b, now, device + 1);
      b->end[t] = -1;
    }
    if (any) return;
  }
  /* To the next moment at which something ends or arrives. */
  int64_t next = INT64_MAX, last = 0;
  bool all = true;
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    int64_t at = b->end[t] >= 0 ? b->end[t] : there_at(b, t);
    all &= b->end[t] >= 0;
    if (b->end[t] > last) last = b->end[t];
    if (at > now && at < next) next = at;
  }
  if (all) {
    if (last < b->best) b->best = last;
    return;
  }
  if (next < INT64_MAX) enumerate_orders(b, next, 0);
}

static int64_t brute_force(const sn__flow *f) {
  brute b = {.f = f, .best = INT64_MAX};
  int64_t ways = 1;
  for (uint32_t c = 0; c < f->n_classes; c++)
    ways *= f->n_devices;
  for (int64_t w = 0; w < ways; w++) {
    uint64_t held[4] = {0};
    int64_t digits = w;
    int place[MOST];
    bool ok = true;
    for (uint32_t c = 0; c < f->n_classes; c++, digits /= f->n_devices) {
      place[c] = (int)(digits % f->n_devices);
      held[place[c]] += f->class_bytes[c];
      ok &= f->class_pin[c] < 0 || f->class_pin[c] == place[c];
    }
    for (int d = 0; d < f->n_devices; d++)
      ok &= f->device_bytes[d] == 0 || held[d] <= f->device_bytes[d];
    for (uint32_t t = 0; t < f->n_tasks; t++) {
      b.device[t] = place[f->task_class[t]];
      b.end[t] = -1;
    }
    if (ok) enumerate_orders(&b, 0, 0);
  }
  return b.best;
}

/* Some tasks move together, some devices differ, some hold little, some classes are pinned. */
static sn__flow *small_flow(uint64_t seed, int most, int64_t least) {
  dice d = {seed, 0};
  uint32_t n = (uint32_t)roll(&d, 1, most), classes = (uint32_t)roll(&d, (n + 1) / 2, n);
  int devices = n > 8 ? 2 : (int)roll(&d, 1, 3);
  int64_t density = n > 8 ? roll(&d, 30, 70) : roll(&d, 0, 80), copy = roll(&d, 0, 40);
  bool alike = roll(&d, 0, 1) == 0;
  sn__flow *f = NULL;
  ck_sn_ok(sn__flow_create(devices, classes, n, n, n * n, 0, 1, &f));
  uint32_t reads = 0;
  uint64_t all = 0, largest = 0;
  for (uint32_t t = 0; t < n; t++) {
    f->task_class[t] = t < classes ? t : (uint32_t)roll(&d, 0, classes - 1);
    f->value_task[t] = t;
    f->value_class[t] = f->task_class[t];
    f->copy_ns[t] = roll(&d, 0, copy);
    int64_t ns = roll(&d, least, 20);
    for (int e = 0; e < devices; e++)
      f->task_ns[t * (uint32_t)devices + (uint32_t)e] = alike ? ns : roll(&d, least, 20);
    for (uint32_t u = 0; u < t; u++)
      if (roll(&d, 1, 100) <= density) f->reads[reads++] = (sn__flow_read){u, t};
  }
  f->n_reads = reads;
  for (uint32_t c = 0; c < classes; c++) {
    f->class_bytes[c] = (uint64_t)roll(&d, 1, 9);
    all += f->class_bytes[c];
    if (f->class_bytes[c] > largest) largest = f->class_bytes[c];
    if (roll(&d, 0, 9) == 0) f->class_pin[c] = (int)roll(&d, 0, devices - 1);
  }
  if (roll(&d, 0, 2) == 0)
    for (int e = 0; e < devices; e++)
      f->device_bytes[e] = all / (uint64_t)devices + largest;
  ck_sn_ok(sn__flow_finish(f));
  return f;
}

/* 1,000 problems of up to 12 tasks with SN_LONG=1 (what issue 3's table says), else fewer and
 * smaller. */
START_TEST(certified_is_optimal) {
  bool all = getenv("SN_LONG") != NULL;
  int problems = all ? 1000 : 200, most = all ? MOST : 7, certified = 0, infeasible = 0;
  for (int i = 0; i < problems; i++) {
    sn__flow *f = small_flow((uint64_t)i, most, 1);
    sn__makespan_options o = {.evals = 2000000, .seed = (uint64_t)i, .certify = true};
    sn__makespan_result r;
    ck_sn_ok(sn__makespan_solve(f, &o, &r));
    int64_t best = brute_force(f);
    if (best == INT64_MAX) {
      infeasible++;
      ck_assert(!r.fits && !r.certified);
    } else {
      ck_assert(r.fits);
      ck_assert_msg(r.makespan == best, "problem %d: %lld, brute force %lld", i,
                    (long long)r.makespan, (long long)best);
      ck_assert_int_le(r.lower_bound, best);
      ck_assert_msg(r.certified, "problem %d is not certified", i);
      certified++;
    }
    sn__makespan_free(&r);
    sn__flow_free(f);
  }
  ck_assert_int_gt(certified, problems * 9 / 10);
  printf("%d problems: %d certified and equal to brute force, %d cannot fit\n", problems, certified,
         infeasible);
}
END_TEST

/* With copies that queue: every placement and every order of priorities, by the simulator. */
static int64_t permuted(const sn__flow *f, sn__flow_simulator *s, const int *devices,
                        int64_t *priorities, uint32_t n, uint32_t used) {
  int64_t best = INT64_MAX;
  if (n == f->n_tasks) {
    sn__flow_step step = {0};
    sn__flow_simulate(s, devices, priorities, &step);
    return step.makespan;
  }
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    if ((used >> t & 1) != 0) continue;
    priorities[t] = (int64_t)n;
    int64_t ns = permuted(f, s, devices, priorities, n + 1, used | 1u << t);
    if (ns < best) best = ns;
  }
  return best;
}

START_TEST(certified_with_queues) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    sn__flow *f = small_flow(seed, 5, 0);
    f->copies_queue = true;
    sn__flow_simulator *s = NULL;
    ck_sn_ok(sn__flow_simulator_create(f, &s));
    sn__makespan_options o = {.evals = 200000, .seed = seed, .certify = true};
    sn__makespan_result r;
    ck_sn_ok(sn__makespan_solve(f, &o, &r));
    int64_t best = INT64_MAX, ways = 1, priorities[MOST];
    for (uint32_t c = 0; c < f->n_classes; c++)
      ways *= f->n_devices;
    for (int64_t w = 0; w < ways; w++) {
      int devices[MOST];
      uint64_t held[4] = {0};
      int64_t digits = w;
      bool ok = true;
      for (uint32_t c = 0; c < f->n_classes; c++, digits /= f->n_devices) {
        devices[c] = (int)(digits % f->n_devices);
        held[devices[c]] += f->class_bytes[c];
        ok &= f->class_pin[c] < 0 || f->class_pin[c] == devices[c];
      }
      for (int d = 0; d < f->n_devices; d++)
        ok &= f->device_bytes[d] == 0 || held[d] <= f->device_bytes[d];
      int64_t ns = ok ? permuted(f, s, devices, priorities, 0, 0) : INT64_MAX;
      if (ns < best) best = ns;
    }
    if (best < INT64_MAX) {
      ck_assert_int_eq(r.makespan, best);
      ck_assert(r.certified);
    }
    sn__makespan_free(&r);
    sn__flow_simulator_free(s);
    sn__flow_free(f);
  }
}
END_TEST

/* Out of budget it does not claim what it has not shown. */
START_TEST(budget_is_no_proof) {
  int64_t planted = 0;
  sn__flow *f = planted_flow(3, 3, 40, 3, &planted);
  sn__makespan_options o = {.evals = 60, .seed = 1, .certify = true};
  sn__makespan_result r;
  ck_sn_ok(sn__makespan_solve(f, &o, &r));
  ck_assert_int_gt(r.makespan, r.lower_bound);
  ck_assert(!r.certified);
  ck_assert_int_le(r.evals, 60 + 8);
  sn__makespan_free(&r);
  sn__flow_free(f);
}
END_TEST

/* ---- larger ones ----------------------------------------------------------------------------- */

START_TEST(planted_optimum) {
  static const struct { int devices, edges; } rows[] = {{2, 2}, {4, 3}, {16, 3}, {2, 20}, {8, 20}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t planted = 0;
    sn__flow *f = planted_flow(i + 1, rows[i].devices, 600, rows[i].edges, &planted);
    sn__makespan_options o = {.evals = 600, .seed = 5};
    sn__makespan_result r, again;
    ck_sn_ok(sn__makespan_solve(f, &o, &r));
    ck_sn_ok(sn__makespan_solve(f, &o, &again));
    ck_assert_int_ge(r.makespan, planted);
    ck_assert_int_le(r.makespan * 100, planted * 103);
    ck_assert(r.fits);
    ck_assert_int_le(r.lower_bound, planted);
    ck_assert_ptr_nonnull(r.found);
    ck_assert_int_eq(r.makespan, again.makespan);
    ck_assert_mem_eq(r.devices, again.devices, f->n_classes * sizeof *r.devices);
    if (r.priorities != NULL)
      ck_assert_mem_eq(r.priorities, again.priorities, f->n_tasks * sizeof *r.priorities);
    sn__makespan_free(&r);
    sn__makespan_free(&again);
    sn__flow_free(f);
  }
}
END_TEST

START_TEST(published_graphs) {
  static const struct {
    const char *name;
    double best; /* with 4 devices */
    int64_t evals;
  } rows[] = {{"chain_mm_112nodes", 1200.08, 5000},
              {"ffnn_192nodes", 56.696, 10000},
              {"transformer_block_215nodes", 148.33, 60000}};
  const char *shared = getenv("SN_SHARED");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/placement-instances/doppler/%s.txt",
             shared == NULL ? "." : shared, rows[i].name);
    sn__flow *f = doppler_flow(path, 4);
    if (f == NULL) {
      printf("skipped: no %s\n", path);
      return;
    }
    sn__makespan_options o = {.evals = rows[i].evals, .seed = 1};
    sn__makespan_result r;
    ck_sn_ok(sn__makespan_solve(f, &o, &r));
    double found = (double)r.makespan / 1e10;
    ck_assert_msg(found <= rows[i].best * 1.01, "%s: %.4f", rows[i].name, found);
    sn__makespan_free(&r);
    sn__flow_free(f);
  }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("makespan");
  TCase *t = tcase_create("makespan");
  tcase_set_timeout(t, 600);
  tcase_add_test(t, certified_is_optimal);
  tcase_add_test(t, certified_with_queues);
  tcase_add_test(t, budget_is_no_proof);
  tcase_add_test(t, planted_optimum);
  tcase_add_test(t, published_graphs);
  suite_add_tcase(s, t);
  return s;
}
SN_TEST_MAIN(suite)
