/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that fails at the k-th call and counts live blocks, and the loop that uses it:
 *
 *   static sn_status make_one(void *arg) { ... create, use, free ...; return status; }
 *   sn_fail_alloc_every_call(make_one, arg);
 *
 * runs make_one with the 1st allocation failing, then the 2nd, ... until it succeeds, and fails the
 * test unless every failure is an out-of-memory status and leaves no block behind. */
#ifndef SN_TESTS_FAIL_ALLOC_H
#define SN_TESTS_FAIL_ALLOC_H

#include <stdatomic.h>

#include "tests/check_sn.h"

static struct {
  _Atomic long calls;      /* since sn_fail_alloc_install() */
  _Atomic long fail_at;    /* this call returns NULL; 0: none does */
  _Atomic long live;       /* blocks not freed */
  _Atomic long long bytes; /* in them */
} sn_fail_alloc_state;

static void *sn_fail_alloc_alloc(void *user, size_t size, size_t alignment) {
  (void)user;
  long call = atomic_fetch_add(&sn_fail_alloc_state.calls, 1) + 1;
  if (call == atomic_load(&sn_fail_alloc_state.fail_at)) return NULL;
  void *block = NULL;
  if (posix_memalign(&block, alignment, size) != 0) return NULL;
  atomic_fetch_add(&sn_fail_alloc_state.live, 1);
  atomic_fetch_add(&sn_fail_alloc_state.bytes, (long long)size);
  return block;
}

static void sn_fail_alloc_free(void *user, void *pointer, size_t size) {
  (void)user;
  atomic_fetch_sub(&sn_fail_alloc_state.live, 1);
  atomic_fetch_sub(&sn_fail_alloc_state.bytes, (long long)size);
  free(pointer);
}

/* Nothing of sennit's may be alive. `fail_at` 0 counts only. */
static inline void sn_fail_alloc_install(long fail_at) {
  static const sn_allocator allocator = {NULL, sn_fail_alloc_alloc, sn_fail_alloc_free};
  atomic_store(&sn_fail_alloc_state.calls, 0);
  atomic_store(&sn_fail_alloc_state.live, 0);
  atomic_store(&sn_fail_alloc_state.bytes, 0);
  atomic_store(&sn_fail_alloc_state.fail_at, fail_at);
  sn_set_allocator(&allocator);
}

static inline void sn_fail_alloc_remove(void) {
  sn_set_allocator(NULL);
}

static inline long sn_fail_alloc_live(void) {
  return atomic_load(&sn_fail_alloc_state.live);
}

/* How many calls failed before `fn` succeeded: 0 means that it allocates nothing. */
static inline long sn_fail_alloc_every_call(sn_status (*fn)(void *arg), void *arg) {
  for (long k = 1;; k++) {
    sn_fail_alloc_install(k);
    sn_status status = fn(arg);
    bool reached = atomic_load(&sn_fail_alloc_state.calls) >= k;
    if (status != SN_OK) {
      ck_assert_msg(reached, "fails without a failing allocation: %s", sn_status_message(status));
      ck_assert_msg(sn_status_code(status) == SN_CODE_OUT_OF_MEMORY,
                    "allocation %ld fails, the status says: %s", k, sn_status_message(status));
      sn_status_free(status);
    }
    ck_assert_msg(sn_fail_alloc_live() == 0, "allocation %ld fails: %ld blocks (%lld bytes) leak",
                  k, sn_fail_alloc_live(), (long long)atomic_load(&sn_fail_alloc_state.bytes));
    sn_fail_alloc_remove();
    if (!reached) return k - 1;
    ck_assert_msg(k < 1000000, "a million allocations: does it ever end?");
  }
}

#endif
