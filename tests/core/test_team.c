/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device/team.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "core/device/thread.h"
#include "tests/check_sn.h"
#include "tests/fail_alloc.h"

enum { MOST_TASKS = 4096 };

typedef struct tally {
  _Atomic int runs[MOST_TASKS];
  int plain[MOST_TASKS]; /* not atomic: the race detector checks the hand-over */
  int threads;
} tally;

static void count_task(void *arg, int64_t index, int worker) {
  tally *t = arg;
  if (worker < 0 || worker >= t->threads) abort();
  atomic_fetch_add(&t->runs[index], 1);
  t->plain[index]++;
}

/* Every task runs once, whatever the counts, run after run. */
START_TEST(each_task_once) {
  static const int threads[] = {1, 2, 3, 8};
  static const int counts[] = {0, 1, 2, 3, 7, 64, 1000};
  sn__team *team = NULL;
  ck_sn_ok(sn__team_create(threads[_i], &team));
  ck_assert_int_eq(sn__team_threads(team), threads[_i]);
  tally *t = calloc(1, sizeof *t);
  t->threads = threads[_i];
  int expected[MOST_TASKS] = {0};
  for (int round = 0; round < 700; round++) {
    int count = counts[(size_t)round % (sizeof counts / sizeof *counts)];
    sn__team_run(team, count, count_task, t);
    for (int i = 0; i < count; i++)
      expected[i]++;
    ck_assert_msg(memcmp(t->plain, expected, sizeof expected) == 0, "round %d of %d tasks", round,
                  count);
  }
  for (int i = 0; i < MOST_TASKS; i++)
    ck_assert_int_eq(atomic_load(&t->runs[i]), expected[i]);
  free(t);
  sn__team_free(team);
}
END_TEST

typedef struct gate {
  _Atomic int inside;
  int wanted;
} gate;

static void meet(void *arg, int64_t index, int worker) {
  (void)index, (void)worker;
  gate *g = arg;
  atomic_fetch_add(&g->inside, 1);
  struct timespec nap = {0, 1000000};
  while (atomic_load(&g->inside) < g->wanted)
    nanosleep(&nap, NULL);
}

/* The tasks wait for one another, so this ends only if helpers really run beside the caller,
 * also when they have gone to sleep in between. */
START_TEST(helpers_run_beside_the_caller) {
  sn__team *team = NULL;
  ck_sn_ok(sn__team_create(4, &team));
  for (int round = 0; round < 5; round++) {
    gate g = {.wanted = 4};
    sn__team_run(team, 4, meet, &g);
    ck_assert_int_eq(atomic_load(&g.inside), 4);
    struct timespec nap = {0, 3000000};
    nanosleep(&nap, NULL);
  }
  sn__team_free(team);
}
END_TEST

static void mask_task(void *arg, int64_t index, int worker) {
  (void)index;
  gate *g = arg;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  bool blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1 &&
                 sigismember(&mask, SIGALRM) == 1;
  if (blocked == (worker == 0)) g->wanted = -1; /* the caller's own mask must be as it was */
  meet(arg, index, worker);
}

START_TEST(helpers_block_signals) {
  sn__team *team = NULL;
  ck_sn_ok(sn__team_create(2, &team));
  gate g = {.wanted = 2};
  sn__team_run(team, 2, mask_task, &g);
  ck_assert_int_eq(g.wanted, 2);
  sn__team_free(team);
}
END_TEST

static _Atomic int started;
static void count_start(void) {
  atomic_fetch_add(&started, 1);
}

START_TEST(thread_hook_runs_on_each_helper) {
  sn__thread_started = count_start;
  sn__team *team = NULL;
  ck_sn_ok(sn__team_create(4, &team));
  sn__team_free(team);
  sn__thread_started = NULL;
  ck_assert_int_eq(atomic_load(&started), 3);
}
END_TEST

static void worker_zero(void *arg, int64_t index, int worker) {
  if (worker != 0) abort();
  *(int64_t *)arg += index;
}

START_TEST(no_team_runs_on_the_caller) {
  int64_t sum = 0;
  sn__team_run(NULL, 10, worker_zero, &sum);
  ck_assert_int_eq(sum, 45);
  ck_assert_int_eq(sn__team_threads(NULL), 1);
  sn__team_free(NULL);
}
END_TEST

START_TEST(wrong_thread_counts) {
  sn__team *team = NULL;
  ck_sn_fails(sn__team_create(0, &team), SN_CODE_INVALID, "a team of 0 threads");
  ck_sn_fails(sn__team_create(100000, &team), SN_CODE_INVALID, "100000");
  ck_assert_ptr_null(team);
}
END_TEST

static sn_status make_and_use(void *arg) {
  (void)arg;
  sn__team *team = NULL;
  SN_TRY(sn__team_create(3, &team));
  tally *t = calloc(1, sizeof *t);
  t->threads = 3;
  sn__team_run(team, 10, count_task, t);
  free(t);
  sn__team_free(team);
  return SN_OK;
}

START_TEST(out_of_memory_leaves_nothing) {
  ck_assert_int_ge(sn_fail_alloc_every_call(make_and_use, NULL), 4);
}
END_TEST

static void *run_many(void *arg) {
  (void)arg;
  sn__team *team = NULL;
  ck_sn_ok(sn__team_create(3, &team));
  tally *t = calloc(1, sizeof *t);
  t->threads = 3;
  for (int round = 0; round < 500; round++)
    sn__team_run(team, 5, count_task, t);
  for (int i = 0; i < 5; i++)
    ck_assert_int_eq(t->plain[i], 500);
  free(t);
  sn__team_free(team);
  return NULL;
}

/* Many more threads than CPUs: every claim still ends, because nobody waits for a sleeping helper.
 */
START_TEST(crowded_machine) {
  pthread_t callers[6];
  for (int i = 0; i < 6; i++)
    ck_assert_int_eq(pthread_create(&callers[i], NULL, run_many, NULL), 0);
  for (int i = 0; i < 6; i++)
    pthread_join(callers[i], NULL);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("team");
  TCase *t = tcase_create("team");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, each_task_once, 0, 4);
  tcase_add_test(t, helpers_run_beside_the_caller);
  tcase_add_test(t, helpers_block_signals);
  tcase_add_test(t, thread_hook_runs_on_each_helper);
  tcase_add_test(t, no_team_runs_on_the_caller);
  tcase_add_test(t, wrong_thread_counts);
  tcase_add_test(t, out_of_memory_leaves_nothing);
  tcase_add_test(t, crowded_machine);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
