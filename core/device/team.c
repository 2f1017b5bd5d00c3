/* SPDX-License-Identifier: Apache-2.0 */
/* The team's protocol.
 *
 * One word, `claim` = (run number, tasks nobody has taken yet), is all that threads compete for. A
 * helper that was descheduled between reading it and taking a task finds the word changed and looks
 * again; since it counts down, a word that still shows a task proves that its run is live and that
 * fn, arg and count, read in between, are that run's. Nobody waits for a helper that has taken
 * nothing, so a helper without a CPU delays nobody. */
#include "core/device/team.h"

#include <assert.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/device/thread.h"

typedef struct helper {
  sn__team *team;
  int worker;
  pthread_t thread;
} helper;

struct sn__team {
  int threads;
  helper *helpers; /* threads - 1 */

  /* The run: written by the caller while no task can be taken. */
  _Atomic(sn__task_fn) fn;
  _Atomic(void *) arg;
  _Atomic int64_t first; /* index of the run's task 0 */
  _Atomic uint32_t count;

  /* Each on its own cache line: they are written by different threads. */
  _Alignas(64) _Atomic uint64_t claim;
  _Alignas(64) _Atomic uint32_t run; /* what helpers wait for */
  _Atomic uint32_t sleepers;         /* helpers that may be asleep on `run` */
  _Atomic bool stop;
  _Alignas(64) _Atomic uint32_t unfinished; /* tasks not done; what the caller waits for */
  _Atomic uint32_t caller_sleeps;
  sn__spin caller_spin;
};

/* Takes tasks until none is left. */
static void work(sn__team *team, int worker) {
  uint32_t done = 0;
  uint64_t claim = atomic_load_explicit(&team->claim, memory_order_acquire);
  while ((uint32_t)claim != 0) {
    sn__task_fn fn = atomic_load_explicit(&team->fn, memory_order_relaxed);
    void *arg = atomic_load_explicit(&team->arg, memory_order_relaxed);
    int64_t first = atomic_load_explicit(&team->first, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&team->count, memory_order_relaxed);
    if (!atomic_compare_exchange_weak_explicit(&team->claim, &claim, claim - 1,
                                               memory_order_acq_rel, memory_order_acquire)) {
      continue;
    }
    fn(arg, first + (int64_t)(count - (uint32_t)claim), worker);
    done++;
    claim = atomic_load_explicit(&team->claim, memory_order_acquire);
  }
  if (done == 0) return;
  if (atomic_fetch_sub(&team->unfinished, done) == done && worker != 0 &&
      atomic_load(&team->caller_sleeps) != 0) {
    sn__word_wake_all(&team->unfinished);
  }
}

static void *helper_main(void *arg) {
  helper *me = arg;
  sn__team *team = me->team;
  sn__spin spin = {0};
  uint32_t seen = 0;
  for (;;) {
    if (!sn__spin_while(&spin, &team->run, seen)) {
      atomic_fetch_add(&team->sleepers, 1);
      while (atomic_load(&team->run) == seen)
        sn__word_sleep(&team->run, seen, UINT64_MAX);
      atomic_fetch_sub(&team->sleepers, 1);
    }
    seen = atomic_load(&team->run);
    if (atomic_load_explicit(&team->stop, memory_order_acquire)) return NULL;
    work(team, me->worker);
  }
}

static void wake_helpers(sn__team *team, int at_most) {
  atomic_fetch_add(&team->run, 1);
  if (atomic_load(&team->sleepers) != 0) sn__word_wake(&team->run, at_most);
}

static void stop_helpers(sn__team *team, int started) {
  atomic_store_explicit(&team->stop, true, memory_order_release);
  wake_helpers(team, team->threads);
  for (int i = 0; i < started; i++)
    pthread_join(team->helpers[i].thread, NULL);
}

sn_status sn__team_create(int threads, sn__team **out_team) {
  if (threads < 1 || threads > SN__TEAM_MOST_THREADS) {
    return sn_status_make(SN_CODE_INVALID, "a team of %d threads: give a number from 1 to %d",
                          threads, SN__TEAM_MOST_THREADS);
  }
  sn__team *team = sn__alloc_aligned(sizeof *team, _Alignof(sn__team));
  if (team == NULL) return sn_status_out_of_memory();
  *team = (sn__team){.threads = threads};
  team->helpers = sn__calloc((size_t)threads, sizeof *team->helpers);
  if (team->helpers == NULL) {
    sn__free(team);
    return sn_status_out_of_memory();
  }
  for (int i = 0; i < threads - 1; i++) {
    helper *h = &team->helpers[i];
    h->team = team;
    h->worker = i + 1;
    char name[24];
    snprintf(name, sizeof name, "sn-team-%d", i + 1);
    sn_status status = sn__thread_create(&h->thread, helper_main, h, name);
    if (status != SN_OK) {
      stop_helpers(team, i);
      sn__free(team->helpers);
      sn__free(team);
      return status;
    }
  }
  *out_team = team;
  return SN_OK;
}

void sn__team_free(sn__team *team) {
  if (team == NULL) return;
  stop_helpers(team, team->threads - 1);
  sn__free(team->helpers);
  sn__free(team);
}

int sn__team_threads(const sn__team *team) {
  return team == NULL ? 1 : team->threads;
}

/* At most UINT32_MAX tasks: the part of the claim word that counts them. */
static void run_part(sn__team *team, int64_t first, uint32_t count, sn__task_fn fn, void *arg) {
  assert(atomic_load(&team->unfinished) == 0);
  atomic_store_explicit(&team->fn, fn, memory_order_relaxed);
  atomic_store_explicit(&team->arg, arg, memory_order_relaxed);
  atomic_store_explicit(&team->first, first, memory_order_relaxed);
  atomic_store_explicit(&team->count, count, memory_order_relaxed);
  atomic_store_explicit(&team->unfinished, count, memory_order_relaxed);
  uint64_t number = (atomic_load_explicit(&team->claim, memory_order_relaxed) >> 32) + 1;
  atomic_store_explicit(&team->claim, number << 32 | count, memory_order_release);
  int useful = team->threads - 1;
  if ((int64_t)count - 1 < useful) useful = (int)count - 1;
  wake_helpers(team, useful);

  work(team, 0);
  uint32_t left = atomic_load_explicit(&team->unfinished, memory_order_acquire);
  while (left != 0) {
    if (!sn__spin_while(&team->caller_spin, &team->unfinished, left)) {
      atomic_store(&team->caller_sleeps, 1);
      while ((left = atomic_load(&team->unfinished)) != 0) {
        sn__word_sleep(&team->unfinished, left, UINT64_MAX);
      }
      atomic_store(&team->caller_sleeps, 0);
    }
    left = atomic_load_explicit(&team->unfinished, memory_order_acquire);
  }
}

void sn__team_run(sn__team *team, int64_t count, sn__task_fn fn, void *arg) {
  if (team == NULL || team->threads == 1 || count <= 1) {
    for (int64_t i = 0; i < count; i++)
      fn(arg, i, 0);
    return;
  }
  for (int64_t first = 0; first < count;) {
    int64_t part = count - first;
    if (part > UINT32_MAX) part = UINT32_MAX;
    run_part(team, first, (uint32_t)part, fn, arg);
    first += part;
  }
}
