/* SPDX-License-Identifier: Apache-2.0 */
/* What the branch and bound stands on, against brute force over every schedule of a placement:
 * queues may wait, copies may go in any order. */
#include "placement/bound_work.h"
#include "placement/exact_pairs.h"
#include "placement/makespan_impl.h"
#include "tests/placement/flows.h"

enum { TASKS_MOST = 9, JOBS_MOST = 40 };

/* ---- brute force ----------------------------------------------------------------------------- */

typedef struct brute {
  const sn__jobs *x;
  int64_t end[JOBS_MOST]; /* -1: not in the schedule yet */
  int64_t free_at[16];
  int64_t best;
} brute;

static int64_t there_at(const brute *b, uint32_t j) {
  int64_t at = 0;
  for (uint32_t e = 0; e < b->x->n_real; e++) {
    if (b->x->edges[e].after != j) continue;
    int64_t end = b->end[b->x->edges[e].before];
    if (end < 0) return -1;
    if (end > at) at = end;
  }
  return at;
}

/* Each job as early as what is before it on its queue lets it, in every order of starts. */
static void enumerate(brute *b, int64_t since, int64_t last) {
  bool all = true;
  if (last >= b->best) return;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t j = 0; j < b->x->n; j++) {
      const sn__job *job = &b->x->jobs[j];
      if (b->end[j] >= 0 || (job->queue < 0) != (pass == 0)) continue;
      all = false;
      int64_t at = there_at(b, j), was = 0;
      if (at < 0) continue;
      if (job->queue >= 0) {
        was = b->free_at[job->queue];
        if (was > at) at = was;
        if (at < since) continue;
        b->free_at[job->queue] = at + job->ns;
      }
      b->end[j] = at + job->ns;
      enumerate(b, job->queue >= 0 ? at : since, b->end[j] > last ? b->end[j] : last);
      b->end[j] = -1;
      if (job->queue >= 0) b->free_at[job->queue] = was;
      if (job->queue < 0) return; /* it is in nobody's way */
    }
  if (all) b->best = last;
}

static int64_t least_step(const sn__jobs *x) {
  brute b = {.x = x, .best = INT64_MAX};
  ck_assert_uint_le(x->n, JOBS_MOST);
  ck_assert_int_le(x->n_queues, 16);
  for (uint32_t j = 0; j < x->n; j++)
    b.end[j] = -1;
  enumerate(&b, 0, 0);
  return b.best;
}

/* ---- problems -------------------------------------------------------------------------------- */

/* Few different times and fans of tasks, so that much is alike; some views, orders, values that are
 * there from the start. */
static sn__flow *little_flow(uint64_t seed) {
  dice d = {seed, 0};
  uint32_t n = (uint32_t)roll(&d, 2, 6), classes = (uint32_t)roll(&d, 1, n < 4 ? n : 4);
  int devices = (int)roll(&d, 2, classes < 4 ? 3 : 2);
  int64_t longest = roll(&d, 1, 9), copy = roll(&d, 0, 6), density = roll(&d, 10, 70);
  bool shop = seed % 3 == 0; /* chains that go to and fro: queues in each other's way */
  if (shop) {
    n = (uint32_t)roll(&d, 8, TASKS_MOST);
    classes = 2;
    devices = (int)roll(&d, 2, 3);
    longest = 9;
  }
  bool alike = roll(&d, 0, 2) > 0, fans = roll(&d, 0, 1) == 0;
  sn__flow *f = NULL;
  ck_sn_ok(sn__flow_create(devices, classes, n, n + 1, n * n + n, n, 1, &f));
  uint32_t reads = 0, orders = 0;
  f->copies_queue = roll(&d, 0, 3) > 0 && !shop;
  for (uint32_t t = 0; t < n; t++) {
    f->task_class[t] = t < classes ? t : (uint32_t)roll(&d, 0, classes - 1);
    if (shop && t >= 3) f->task_class[t] = 1 - f->task_class[t - 3];
    f->value_task[t] = t;
    f->value_class[t] = f->task_class[t];
    f->copy_ns[t] = shop ? 0 : fans ? copy : roll(&d, 0, copy);
    int64_t ns = fans && !shop ? 1 + longest * (t % 3) : roll(&d, 0, longest);
    bool view = t > 0 && !shop && roll(&d, 0, 9) == 0;
    f->task_view[t] = view;
    for (int e = 0; e < devices; e++)
      f->task_ns[t * (uint32_t)devices + (uint32_t)e] = view    ? 0
                                                        : alike ? ns
                                                                : roll(&d, 0, longest);
    if (view) f->reads[reads++] = (sn__flow_read){t - 1, t};
    for (uint32_t u = 0; u < t && !view; u++)
      if (shop   ? t - u == 3
          : fans ? (t - u) % 3 == 1 && roll(&d, 0, 3) > 0
                 : roll(&d, 1, 100) <= density)
        f->reads[reads++] = (sn__flow_read){u, t};
    if (t > 1 && !view && !shop && roll(&d, 0, 5) == 0)
      f->orders[orders++] = (sn__flow_order){(uint32_t)roll(&d, 0, t - 1), t, 0};
    if (roll(&d, 0, 5) == 0 && !view && !shop) f->reads[reads++] = (sn__flow_read){n, t};
  }
  uint64_t all = 0, largest = 0;
  for (uint32_t c = 0; c < classes; c++) {
    f->class_bytes[c] = (uint64_t)roll(&d, 1, 9);
    all += f->class_bytes[c];
    if (f->class_bytes[c] > largest) largest = f->class_bytes[c];
    if (roll(&d, 0, 7) == 0) f->class_pin[c] = (int)roll(&d, 0, devices - 1);
  }
  if (roll(&d, 0, 2) == 0)
    for (int e = 0; e < devices; e++)
      f->device_bytes[e] = all / (uint64_t)devices + (uint64_t)roll(&d, 0, (int64_t)largest) + 1;
  f->value_task[n] = SN__FLOW_NONE;
  f->value_class[n] = (uint32_t)roll(&d, 0, classes - 1);
  f->copy_ns[n] = copy;
  f->n_reads = reads;
  f->n_orders = orders;
  ck_sn_ok(sn__flow_finish(f));
  return f;
}

/* Two equal branches of a few tasks on one device, whose copies one task waits for on another: much
 * can be exchanged; and what almost can, as one of the branches is changed a little. */
static sn__flow *twin_flow(uint64_t seed) {
  enum { N = 9 };
  static const uint32_t from[] = {0, 0, 1, 1, 2, 2, 3, 4, 5, 6},
                        to[] = {1, 2, 3, 4, 5, 6, 7, 7, 7, 7};
  dice d = {seed, 7};
  int64_t long_ns = roll(&d, 1, 6), short_ns = roll(&d, 0, 3), copy = roll(&d, 0, 4);
  uint32_t reads = 0;
  sn__flow *f = NULL;
  ck_sn_ok(sn__flow_create(2, 2, N, N, 20, 0, 1, &f));
  f->copies_queue = roll(&d, 0, 4) > 0;
  for (uint32_t t = 0; t < N; t++) {
    f->value_task[t] = t;
    f->task_class[t] = f->value_class[t] = t == 7 || (t > 2 && roll(&d, 0, 5) == 0);
    f->copy_ns[t] = roll(&d, 0, 5) == 0 ? roll(&d, 0, 4) : copy;
    int64_t ns = t == 1 || t == 2 ? long_ns : t % 2 == 0 && seed % 2 == 0 ? 2 * short_ns : short_ns;
    if (roll(&d, 0, 9) == 0) ns = roll(&d, 0, 6);
    f->task_ns[2 * t] = f->task_ns[2 * t + 1] = ns;
  }
  for (size_t e = 0; e < sizeof from / sizeof *from; e++)
    f->reads[reads++] = (sn__flow_read){from[e], to[e]};
  for (int64_t more = roll(&d, 0, 3); more > 0; more--) {
    uint32_t u = (uint32_t)roll(&d, 0, N - 2);
    f->reads[reads++] = (sn__flow_read){u, (uint32_t)roll(&d, u + 1, N - 1)};
  }
  f->n_reads = reads;
  ck_sn_ok(sn__flow_finish(f));
  return f;
}

/* ---- tests ----------------------------------------------------------------------------------- */

typedef struct counts {
  int placements, tight_quick, tight_deep;
  int proved, waiting; /* plans; those that no schedule with waits beats either */
  int problems, better_path, better_work, better_windows, better_energy, better_crossing;
} counts;

static bool may_be(const sn__flow *f, const int *devices) {
  uint64_t held[4] = {0};
  for (uint32_t c = 0; c < f->n_classes; c++) {
    if (!sn__allowed(f, c, devices[c])) return false;
    held[devices[c]] += f->class_bytes[c];
  }
  for (int d = 0; d < f->n_devices; d++)
    if (f->device_bytes[d] > 0 && held[d] > f->device_bytes[d]) return false;
  return true;
}

static int64_t path_of(const sn__windows *w) {
  int64_t most = 0;
  for (uint32_t t = 0; t < w->n; t++)
    if (w->head[t] + w->ns[t] + w->tail[t] > most) most = w->head[t] + w->ns[t] + w->tail[t];
  return most;
}

/* What plans say of themselves, with little to spend and with enough: a bound that holds for every
 * schedule does, and a plan at such a bound is the best there is. */
static void check_plans(const sn__flow *f, int64_t least, counts *c) {
  const int64_t evals[] = {20, 4000};
  for (size_t i = 0; i < 2; i++) {
    sn__makespan_options o = {.evals = evals[i], .seed = 1, .certify = true};
    sn__makespan_result r;
    ck_sn_ok(sn__makespan_solve(f, &o, &r));
    if (!r.fits) { /* with so little to spend it may not find a plan that does */
      ck_assert(i == 0 && !r.certified);
      sn__makespan_free(&r);
      continue;
    }
    ck_assert_int_ge(r.makespan, least);
    ck_assert_int_le(r.lower_bound, r.makespan);
    if (r.any_schedule) ck_assert_int_le(r.lower_bound, least);
    if (r.certified) ck_assert_int_eq(r.lower_bound, r.makespan);
    if (i == 1) ck_assert(r.certified);
    c->proved += r.certified;
    c->waiting += r.certified && r.any_schedule;
    sn__makespan_free(&r);
  }
}

/* Bounds that know no placement, each by itself, against the best schedule of the best placement.
 */
static void check_problem(const sn__flow *f, int64_t least, counts *c) {
  const uint32_t nears[] = {0, 1, 3, 64};
  int64_t work = 0, ns = 0, path = 0;
  bool memory = false;
  const char *name = NULL;
  ck_sn_ok(sn__makespan_bound(f, &ns, &name));
  ck_assert_int_le(ns, least);
  for (size_t i = 0; i < 4; i++) {
    sn__windows w;
    ck_sn_ok(sn__windows_create(f, nears[i], &w));
    ck_assert_int_le(path_of(&w), least);
    if (i == 0) path = path_of(&w);
    for (uint32_t t = 0; i == 0 && t < f->n_tasks; t++)
      work += w.ns[t];
    if (i == 0) work = (work + f->n_devices - 1) / f->n_devices;
    int64_t old = path > work ? path : work;
    if (i == 3) c->better_path += path_of(&w) > path;
    ck_sn_ok(sn__bound_windows(f, &w, &ns));
    ck_assert_int_le(ns, least);
    if (i == 3) c->better_windows += ns > old;
    ck_sn_ok(sn__bound_energy(f, &w, 1, &ns));
    ck_assert_int_le(ns, least > 1 ? least : 1);
    ck_sn_ok(sn__bound_energy(f, &w, old, &ns));
    ck_assert_int_le(ns, least);
    if (i == 3) c->better_energy += ns > old;
    ck_sn_ok(sn__bound_crossing(f, &w, &ns));
    ck_assert_int_le(ns, least);
    if (i == 3) c->better_crossing += ns > old;
    sn__windows_free(&w);
  }
  ck_sn_ok(sn__bound_shared(f, &ns, &memory));
  ck_assert_int_le(ns, least);
  c->better_work += ns > work;
  c->problems++;
}

static void remake(sn__jobs *x, const int *devices) {
  sn__jobs_make(x, devices);
  ck_assert(sn__jobs_link(x));
}

static void check_placement(sn__bounder *b, const int *devices, int64_t best, counts *c) {
  sn__jobs *x = b->jobs;
  int64_t budget = 1000000000, shown = 0;
  remake(x, devices);
  int64_t quick = sn__bound_quick(b);
  ck_assert_int_le(quick, best);
  remake(x, devices);
  int64_t deep = sn__bound_deep(b, INT64_MAX);
  ck_assert_int_le(deep, best);
  ck_assert_int_ge(deep, quick);
  remake(x, devices);
  /* With a cutoff just above, what must be keeps the best schedule. */
  int64_t above = sn__bound_deep(b, best + 1);
  ck_assert_int_le(above, best);
  ck_assert_int_eq(sn__pairs_search(b, above, best + 1, &budget, &shown), SN__PAIRS_FOUND);
  for (uint32_t j = 0; j < x->n; j++)
    ck_assert_int_le(x->jobs[j].head + x->jobs[j].ns, best);
  for (uint32_t e = 0; e < x->n_real; e++)
    ck_assert_int_ge(x->jobs[x->edges[e].after].head,
                     x->jobs[x->edges[e].before].head + x->jobs[x->edges[e].before].ns);
  remake(x, devices);
  int64_t at = sn__bound_deep(b, best);
  if (at < best) {
    ck_assert_int_eq(sn__pairs_search(b, at, best, &budget, &shown), SN__PAIRS_NOTHING);
    ck_assert_int_eq(shown, best);
  }
  /* Out of budget it says no more than it knows. */
  remake(x, devices);
  at = sn__bound_deep(b, best + 5);
  budget = 150;
  if (sn__pairs_search(b, at, best + 5, &budget, &shown) == SN__PAIRS_SPENT)
    ck_assert_int_le(shown, best);
  c->placements++;
  c->tight_quick += quick == best;
  c->tight_deep += deep == best;
}

START_TEST(bounds_are_below_every_schedule) {
  counts c = {0};
  for (uint64_t seed = 1; seed <= 1200; seed++) {
    sn__flow *f = seed % 4 == 0 ? twin_flow(seed) : little_flow(seed);
    sn__jobs *x = NULL;
    sn__bounder *b = NULL;
    ck_sn_ok(sn__jobs_create(f, &x));
    ck_sn_ok(sn__bounder_create(x, &b));
    int64_t ways = 1, least = INT64_MAX, half = INT64_MAX;
    int devices[TASKS_MOST] = {0};
    for (uint32_t k = 0; k < f->n_classes; k++)
      ways *= f->n_devices;
    for (int64_t w = 0; w < ways; w++) {
      int64_t digits = w;
      for (uint32_t k = 0; k < f->n_classes; k++, digits /= f->n_devices)
        devices[k] = (int)(digits % f->n_devices);
      if (!may_be(f, devices)) continue;
      remake(x, devices);
      int64_t best = least_step(x);
      if (w % 5 == 0) check_placement(b, devices, best, &c);
      if (best < least) least = best;
      if (devices[0] == 0 && best < half) half = best;
    }
    /* Of no placement yet, and of a part of one. */
    for (uint32_t k = 0; k < f->n_classes; k++)
      devices[k] = -1;
    remake(x, devices);
    ck_assert_int_le(sn__bound_quick(b), least);
    devices[0] = 0;
    remake(x, devices);
    ck_assert_int_le(sn__bound_quick(b), half);
    if (least < INT64_MAX) {
      check_problem(f, least, &c);
      if (seed % 6 == 0 || seed % 16 == 4) check_plans(f, least, &c);
    }
    sn__bounder_free(b);
    sn__jobs_free(x);
    sn__flow_free(f);
  }
  printf("%d problems: better than the plain path %d, than work by halves %d; than both: windows "
         "%d, energy %d, a crossing %d\n",
         c.problems, c.better_path, c.better_work, c.better_windows, c.better_energy,
         c.better_crossing);
  printf("%d plans certified, %d of them for schedules that wait, too\n", c.proved, c.waiting);
  ck_assert_int_ge(c.problems, 1000);
  ck_assert_int_lt(c.waiting, c.proved);
  ck_assert(c.better_path > 0 && c.better_work > 0 && c.better_windows > 0);
  ck_assert(c.better_energy > 0 && c.better_crossing > 0);
  printf("%d placements: the quick bound is the least step of %d, the deep one of %d\n",
         c.placements, c.tight_quick, c.tight_deep);
  ck_assert_int_gt(c.placements, 1000);
  ck_assert_int_gt(c.tight_deep, c.tight_quick);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("exact");
  TCase *t = tcase_create("exact");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, bounds_are_below_every_schedule);
  suite_add_tcase(s, t);
  return s;
}
SN_TEST_MAIN(suite)
