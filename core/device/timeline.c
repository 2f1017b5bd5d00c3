/* SPDX-License-Identifier: Apache-2.0 */
/* How a sleeper is not missed.
 *
 * `wake_at` is the least value that somebody sleeps for, so that signals nobody waits for cost no
 * system call. A sleeper reads `epoch`, lowers `wake_at`, looks once more, and sleeps while `epoch`
 * is what it read. A signaller raises the value, and when it finds `wake_at` within reach, resets
 * it, bumps `epoch`, wakes everybody. Either the sleeper sees the value or the signaller sees
 * `wake_at`; and who registered before the reset either read the old epoch, and does not fall
 * asleep, or is woken. Whoever wakes too early registers again. */
#include "core/device/timeline.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>

#include "core/alloc.h"
#include "core/device/thread.h"

struct sn__timeline {
  _Alignas(64) _Atomic uint64_t value;
  _Atomic(sn_status) failure; /* set once */
  _Atomic uint64_t wake_at;   /* UINT64_MAX: nobody sleeps */
  _Atomic uint32_t epoch;
  _Atomic uint32_t busy; /* threads inside signal or fail */
};

sn_status sn__timeline_create(uint64_t value, sn__timeline **out_timeline) {
  sn__timeline *timeline = sn__alloc_aligned(sizeof *timeline, _Alignof(sn__timeline));
  if (timeline == NULL) return sn_status_out_of_memory();
  atomic_init(&timeline->value, value);
  atomic_init(&timeline->failure, SN_OK);
  atomic_init(&timeline->wake_at, UINT64_MAX);
  atomic_init(&timeline->epoch, 0);
  atomic_init(&timeline->busy, 0);
  *out_timeline = timeline;
  return SN_OK;
}

void sn__timeline_free(sn__timeline *timeline) {
  if (timeline == NULL) return;
  /* The waiter that frees may have seen the value before its signaller came back from here. */
  while (atomic_load(&timeline->busy) != 0)
    sched_yield();
  sn_status_free(atomic_load(&timeline->failure));
  sn__free(timeline);
}

static void wake(sn__timeline *timeline) {
  atomic_store(&timeline->wake_at, UINT64_MAX);
  atomic_fetch_add(&timeline->epoch, 1);
  sn__word_wake_all(&timeline->epoch);
}

void sn__timeline_signal(sn__timeline *timeline, uint64_t value) {
  atomic_fetch_add(&timeline->busy, 1);
  uint64_t now = atomic_load(&timeline->value);
  if (atomic_load(&timeline->failure) == SN_OK) {
    while (now < value && !atomic_compare_exchange_weak(&timeline->value, &now, value))
      continue;
    if (now < value && value >= atomic_load(&timeline->wake_at)) wake(timeline);
  }
  atomic_fetch_sub(&timeline->busy, 1);
}

void sn__timeline_fail(sn__timeline *timeline, sn_status status) {
  assert(status != SN_OK);
  atomic_fetch_add(&timeline->busy, 1);
  sn_status none = SN_OK;
  if (atomic_compare_exchange_strong(&timeline->failure, &none, status)) {
    wake(timeline);
  } else {
    sn_status_free(status);
  }
  atomic_fetch_sub(&timeline->busy, 1);
}

sn_status sn__timeline_query(sn__timeline *timeline, uint64_t *out_value) {
  sn_status failure = atomic_load(&timeline->failure);
  if (out_value != NULL) *out_value = atomic_load(&timeline->value);
  return sn_status_copy(failure);
}

bool sn__timeline_reached(sn__timeline *timeline, uint64_t value) {
  return atomic_load_explicit(&timeline->value, memory_order_acquire) >= value;
}

/* True when a wait for `value` is over. The failure is read first: whatever was signalled before it
 * is then seen, so that a value reached before the failure counts as reached. */
static bool over(sn__timeline *timeline, uint64_t value, sn_status *out_failure) {
  sn_status failure = atomic_load(&timeline->failure);
  if (atomic_load(&timeline->value) >= value) {
    *out_failure = SN_OK;
    return true;
  }
  *out_failure = failure;
  return failure != SN_OK;
}

static void lower(_Atomic uint64_t *word, uint64_t value) {
  uint64_t now = atomic_load(word);
  while (value < now && !atomic_compare_exchange_weak(word, &now, value))
    continue;
}

static sn_status timed_out(sn__timeline *timeline, uint64_t value) {
  return sn_status_make(SN_CODE_INTERRUPTED, "timed out at %llu of %llu",
                        (unsigned long long)atomic_load(&timeline->value),
                        (unsigned long long)value);
}

static sn_status wait_until(sn__timeline *timeline, uint64_t value, uint64_t deadline_ns) {
  static _Thread_local sn__spin spin; /* what pays depends on what this thread waits for */
  sn_status failure = SN_OK;
  bool done = over(timeline, value, &failure);
  sn__spinning spinning;
  if (!done && deadline_ns != 0 && sn__spin_begin(&spin, &spinning)) {
    while (!(done = over(timeline, value, &failure)) && sn__spin_again(&spinning))
      continue;
    sn__spin_end(&spin, &spinning, done);
  }
  while (!done) {
    uint32_t epoch = atomic_load(&timeline->epoch);
    lower(&timeline->wake_at, value);
    done = over(timeline, value, &failure);
    if (!done && !sn__word_sleep(&timeline->epoch, epoch, deadline_ns)) {
      done = over(timeline, value, &failure);
      if (!done) return timed_out(timeline, value);
    }
  }
  return sn_status_copy(failure);
}

static uint64_t deadline_of(uint64_t timeout_ns) {
  if (timeout_ns == SN__FOREVER || timeout_ns == 0) return timeout_ns;
  uint64_t now = sn__now_ns();
  return timeout_ns < SN__FOREVER - now ? now + timeout_ns : SN__FOREVER;
}

sn_status sn__timeline_wait(sn__timeline *timeline, uint64_t value, uint64_t timeout_ns) {
  return wait_until(timeline, value, deadline_of(timeout_ns));
}

sn_status sn__timepoints_wait(const sn__timepoint *points, int n_points, uint64_t timeout_ns) {
  uint64_t deadline_ns = 0;
  bool asked = false; /* the clock: most points have been reached already */
  for (int i = 0; i < n_points; i++) {
    if (sn__timeline_reached(points[i].timeline, points[i].value)) continue;
    if (!asked) deadline_ns = deadline_of(timeout_ns);
    asked = true;
    SN_TRY(wait_until(points[i].timeline, points[i].value, deadline_ns));
  }
  return SN_OK;
}
