/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device/timeline.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/check_sn.h"
#include "tests/fail_alloc.h"

static const uint64_t second = 1000000000u;

static void nap_ms(long ms) {
  struct timespec nap = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&nap, NULL);
}

START_TEST(values_only_grow) {
  sn__timeline *t = NULL;
  ck_sn_ok(sn__timeline_create(3, &t));
  uint64_t value = 0;
  ck_sn_ok(sn__timeline_query(t, &value));
  ck_assert_uint_eq(value, 3);
  sn__timeline_signal(t, 7);
  sn__timeline_signal(t, 5);
  ck_sn_ok(sn__timeline_query(t, &value));
  ck_assert_uint_eq(value, 7);
  ck_assert(sn__timeline_reached(t, 7));
  ck_assert(!sn__timeline_reached(t, 8));
  ck_sn_ok(sn__timeline_wait(t, 7, 0));
  ck_sn_ok(sn__timeline_query(t, NULL));
  sn__timeline_free(t);
  sn__timeline_free(NULL);
}
END_TEST

START_TEST(waits_time_out) {
  sn__timeline *t = NULL;
  ck_sn_ok(sn__timeline_create(3, &t));
  ck_sn_fails(sn__timeline_wait(t, 4, 0), SN_CODE_INTERRUPTED, "timed out at 3 of 4");
  ck_sn_fails(sn__timeline_wait(t, 4, 2000000), SN_CODE_INTERRUPTED, "timed out at 3 of 4");
  sn__timeline_signal(t, 4);
  ck_sn_ok(sn__timeline_wait(t, 4, 2000000));
  sn__timeline_free(t);
}
END_TEST

START_TEST(first_failure_is_kept) {
  sn__timeline *t = NULL;
  ck_sn_ok(sn__timeline_create(0, &t));
  sn__timeline_signal(t, 2);
  sn__timeline_fail(t, sn_status_make(SN_CODE_DEVICE, "lost"));
  sn__timeline_fail(t, sn_status_make(SN_CODE_IO, "again"));
  sn__timeline_signal(t, 9);
  ck_sn_ok(sn__timeline_wait(t, 2, 0)); /* what was reached stays reached */
  ck_sn_fails(sn__timeline_wait(t, 3, SN__FOREVER), SN_CODE_DEVICE, "lost");
  ck_sn_fails(sn__timeline_wait(t, 9, 0), SN_CODE_DEVICE, "lost");
  uint64_t value = 0;
  ck_sn_fails(sn__timeline_query(t, &value), SN_CODE_DEVICE, "lost");
  ck_assert_uint_eq(value, 2);
  sn__timeline_free(t);
}
END_TEST

START_TEST(several_points) {
  sn__timeline *a = NULL, *b = NULL;
  ck_sn_ok(sn__timeline_create(1, &a));
  ck_sn_ok(sn__timeline_create(0, &b));
  sn__timepoint points[] = {{a, 1}, {b, 1}};
  ck_sn_ok(sn__timepoints_wait(points, 0, 0));
  ck_sn_ok(sn__timepoints_wait(points, 1, 0));
  ck_sn_fails(sn__timepoints_wait(points, 2, 1000), SN_CODE_INTERRUPTED, "timed out at 0 of 1");
  sn__timeline_signal(b, 1);
  ck_sn_ok(sn__timepoints_wait(points, 2, SN__FOREVER));
  points[1].value = 2;
  sn__timeline_fail(b, sn_status_make(SN_CODE_DATA, "row 3"));
  ck_sn_fails(sn__timepoints_wait(points, 2, SN__FOREVER), SN_CODE_DATA, "row 3");
  sn__timeline_free(a);
  sn__timeline_free(b);
}
END_TEST

typedef struct waiter {
  pthread_t thread;
  sn__timeline *timeline;
  uint64_t value;
  sn_code code;
} waiter;

static void *wait_main(void *arg) {
  waiter *w = arg;
  sn_status status = sn__timeline_wait(w->timeline, w->value, 60 * second);
  w->code = sn_status_code(status);
  sn_status_free(status);
  return NULL;
}

/* Sleepers for several values; each is woken by its own, the rest by the failure. */
START_TEST(sleepers_wake) {
  enum { N = 8 };
  sn__timeline *t = NULL;
  ck_sn_ok(sn__timeline_create(0, &t));
  waiter w[N];
  for (int i = 0; i < N; i++) {
    w[i] = (waiter){.timeline = t, .value = (uint64_t)(N - i)};
    ck_assert_int_eq(pthread_create(&w[i].thread, NULL, wait_main, &w[i]), 0);
  }
  nap_ms(20); /* long enough for some to sleep; the test holds either way */
  for (uint64_t v = 1; v <= 5; v++) {
    sn__timeline_signal(t, v);
    pthread_join(w[N - v].thread, NULL);
    ck_assert_int_eq(w[N - v].code, SN_CODE_OK);
  }
  sn__timeline_fail(t, sn_status_make(SN_CODE_DEVICE, "lost"));
  for (int i = 0; i < 3; i++) {
    pthread_join(w[i].thread, NULL);
    ck_assert_int_eq(w[i].code, SN_CODE_DEVICE);
  }
  sn__timeline_free(t);
}
END_TEST

typedef struct ping_pong {
  sn__timeline *ping, *pong;
  int plain; /* the race detector checks that timelines order memory */
  int rounds, nap_every;
} ping_pong;

static void *pong_main(void *arg) {
  ping_pong *p = arg;
  for (int i = 1; i <= p->rounds; i++) {
    sn_status_free(sn__timeline_wait(p->ping, (uint64_t)i, SN__FOREVER));
    p->plain++;
    if (i % p->nap_every == 0) nap_ms(1);
    sn__timeline_signal(p->pong, (uint64_t)i);
  }
  return NULL;
}

/* A wake-up that is lost hangs this test. Naps make both sides fall asleep at odd moments. */
START_TEST(no_wake_up_is_lost) {
  ping_pong p = {.rounds = 3000, .nap_every = 50};
  ck_sn_ok(sn__timeline_create(0, &p.ping));
  ck_sn_ok(sn__timeline_create(0, &p.pong));
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, pong_main, &p), 0);
  for (int i = 1; i <= p.rounds; i++) {
    p.plain++;
    sn__timeline_signal(p.ping, (uint64_t)i);
    if (i % 70 == 0) nap_ms(1);
    ck_sn_ok(sn__timeline_wait(p.pong, (uint64_t)i, SN__FOREVER));
    ck_assert_int_eq(p.plain, 2 * i);
  }
  pthread_join(thread, NULL);
  sn__timeline_free(p.ping);
  sn__timeline_free(p.pong);
}
END_TEST

typedef struct crowd {
  pthread_t threads[4];
  sn__timeline *turn, *came[4];
  _Atomic int next;
  int rounds;
} crowd;

static void *crowd_main(void *arg) {
  crowd *c = arg;
  sn__timeline *mine = c->came[atomic_fetch_add(&c->next, 1)];
  for (int i = 1; i <= c->rounds; i++) {
    sn_status_free(sn__timeline_wait(c->turn, (uint64_t)i, SN__FOREVER));
    sn__timeline_signal(mine, (uint64_t)i);
  }
  return NULL;
}

/* Many sleepers on one timeline register again while others are being woken. */
START_TEST(crowds_are_woken) {
  crowd c = {.rounds = 3000};
  ck_sn_ok(sn__timeline_create(0, &c.turn));
  for (int i = 0; i < 4; i++)
    ck_sn_ok(sn__timeline_create(0, &c.came[i]));
  for (int i = 0; i < 4; i++) {
    ck_assert_int_eq(pthread_create(&c.threads[i], NULL, crowd_main, &c), 0);
  }
  for (int i = 1; i <= c.rounds; i++) {
    /* Wait for one of them only, so that the others come late and at odd moments. */
    sn__timeline_signal(c.turn, (uint64_t)i);
    ck_sn_ok(sn__timeline_wait(c.came[i % 4], (uint64_t)i, SN__FOREVER));
  }
  for (int i = 0; i < 4; i++)
    pthread_join(c.threads[i], NULL);
  for (int i = 0; i < 4; i++)
    sn__timeline_free(c.came[i]);
  sn__timeline_free(c.turn);
}
END_TEST

static void *signal_main(void *arg) {
  sn__timeline_signal(arg, 1);
  return NULL;
}

/* The waiter frees at once, while the signaller may still be on its way out. */
START_TEST(waiter_may_free) {
  for (int i = 0; i < 300; i++) {
    sn__timeline *t = NULL;
    ck_sn_ok(sn__timeline_create(0, &t));
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, signal_main, t), 0);
    ck_sn_ok(sn__timeline_wait(t, 1, SN__FOREVER));
    sn__timeline_free(t);
    pthread_join(thread, NULL);
  }
}
END_TEST

START_TEST(out_of_memory) {
  sn_fail_alloc_install(1);
  sn__timeline *t = NULL;
  ck_sn_fails(sn__timeline_create(0, &t), SN_CODE_OUT_OF_MEMORY, "");
  ck_assert_ptr_null(t);
  sn_fail_alloc_remove();
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("device_timeline");
  TCase *t = tcase_create("timeline");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, values_only_grow);
  tcase_add_test(t, waits_time_out);
  tcase_add_test(t, first_failure_is_kept);
  tcase_add_test(t, several_points);
  tcase_add_test(t, sleepers_wake);
  tcase_add_test(t, no_wake_up_is_lost);
  tcase_add_test(t, crowds_are_woken);
  tcase_add_test(t, waiter_may_free);
  tcase_add_test(t, out_of_memory);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
