/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device/thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"

void (*sn__thread_started)(void) = NULL;

/* ---- starting ------------------------------------------------------------------------------ */

typedef struct start {
  void *(*fn)(void *);
  void *arg;
  char name[16];
} start;

static void *thread_main(void *arg) {
  start s = *(start *)arg;
  sn__free(arg);
  pthread_setname_np(pthread_self(), s.name);
  if (sn__thread_started != NULL) sn__thread_started();
  return s.fn(s.arg);
}

sn_status sn__thread_create(pthread_t *out_thread, void *(*fn)(void *), void *arg,
                            const char *name) {
  start *s = sn__calloc(1, sizeof *s);
  if (s == NULL) return sn_status_out_of_memory();
  s->fn = fn;
  s->arg = arg;
  memcpy(s->name, name, strnlen(name, sizeof s->name - 1));
  /* The new thread inherits the mask, so there is no moment at which it could take a signal. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(out_thread, NULL, thread_main, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0) return SN_OK;
  sn__free(s);
  return sn_status_make(SN_CODE_DEVICE, "cannot start thread %s: %s; ask for fewer threads", name,
                        strerror(error));
}

int sn__cpu_count(void) {
  static _Atomic int count;
  int n = atomic_load_explicit(&count, memory_order_relaxed);
  if (n > 0) return n;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    n = CPU_COUNT(&set);
  } else { /* more CPUs than the set can hold */
    n = (int)sysconf(_SC_NPROCESSORS_ONLN);
  }
  if (n < 1) n = 1;
  atomic_store_explicit(&count, n, memory_order_relaxed);
  return n;
}

uint64_t sn__now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- waiting ------------------------------------------------------------------------------- */

bool sn__word_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t deadline_ns) {
  struct timespec until, *limit = NULL;
  if (deadline_ns != UINT64_MAX) {
    until.tv_sec = (time_t)(deadline_ns / 1000000000u);
    until.tv_nsec = (long)(deadline_ns % 1000000000u);
    limit = &until;
  }
  /* The BITSET form takes an absolute time, so that spurious returns do not stretch a wait. */
  long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, limit, NULL,
                    FUTEX_BITSET_MATCH_ANY);
  return !(rc != 0 && errno == ETIMEDOUT);
}

void sn__word_wake(_Atomic uint32_t *word, int threads) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

void sn__word_wake_all(_Atomic uint32_t *word) {
  sn__word_wake(word, INT_MAX);
}

/* Spinning pays when what is waited for comes within the time that sleeping and waking take
 * (5-50 us), and harms when it keeps the CPU from the thread that is waited for. The limit follows
 * what paid lately. Now and then a full spin is tried all the same: two threads that wait for each
 * other would stay slow for good once both sleep, each because the other one does. */
#define SPIN_MOST_NS  50000u
#define SPIN_LEAST_NS 2000u
#define SPIN_TRY      16u /* every so many waits */

static _Atomic int spinners;

static inline void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* One of the places for spinners, of which there are fewer than CPUs. Whoever was just signalled
 * still holds its place for a moment, so one look is not enough. */
static bool take_place(void) {
  int places = sn__cpu_count() - 1;
  for (int turn = 0; turn < 16; turn++) {
    int taken = atomic_load_explicit(&spinners, memory_order_relaxed);
    if (taken < places &&
        atomic_compare_exchange_strong_explicit(&spinners, &taken, taken + 1, memory_order_relaxed,
                                                memory_order_relaxed)) {
      return true;
    }
    cpu_relax();
  }
  return false;
}

bool sn__spin_begin(sn__spin *spin, sn__spinning *out_spinning) {
  if (!take_place()) return false;
  if (spin->limit_ns == 0) spin->limit_ns = SPIN_MOST_NS / 2;
  out_spinning->turns = 0;
  out_spinning->trial = ++spin->waits % SPIN_TRY == 0;
  out_spinning->start_ns = sn__now_ns();
  out_spinning->end_ns =
      out_spinning->start_ns + (out_spinning->trial ? SPIN_MOST_NS : spin->limit_ns);
  return true;
}

bool sn__spin_again(sn__spinning *spinning) {
  cpu_relax();
  return ++spinning->turns % 16 != 0 || sn__now_ns() < spinning->end_ns;
}

void sn__spin_end(sn__spin *spin, const sn__spinning *spinning, bool paid) {
  atomic_fetch_sub_explicit(&spinners, 1, memory_order_relaxed);
  uint64_t next = spin->limit_ns;
  if (paid) {
    uint64_t took = sn__now_ns() - spinning->start_ns;
    if (next < 2 * took) next = 2 * took;
  } else if (!spinning->trial) {
    next /= 2;
  }
  if (next > SPIN_MOST_NS) next = SPIN_MOST_NS;
  if (next < SPIN_LEAST_NS) next = SPIN_LEAST_NS;
  spin->limit_ns = (uint32_t)next;
}

bool sn__spin_while(sn__spin *spin, _Atomic uint32_t *word, uint32_t value) {
  bool paid = atomic_load_explicit(word, memory_order_acquire) != value;
  sn__spinning spinning;
  if (paid || !sn__spin_begin(spin, &spinning)) return paid;
  while (!(paid = atomic_load_explicit(word, memory_order_acquire) != value) &&
         sn__spin_again(&spinning)) {
    continue;
  }
  sn__spin_end(spin, &spinning, paid);
  return paid;
}
