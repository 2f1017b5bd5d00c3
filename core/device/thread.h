/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that sennit makes, and how they wait: a bounded spin, then sleep.
 *
 * A thread of a library must not take signals meant for its host program, so each one starts with
 * every signal blocked. */
#ifndef SN_CORE_DEVICE_THREAD_H
#define SN_CORE_DEVICE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/status.h"

/* Called first thing on every thread that sennit makes. ops/ sets it before any device exists when
 * a vendor library would otherwise start a thread team of its own on each of ours. */
extern void (*sn__thread_started)(void);

/* Starts fn(arg) with all signals blocked. `name` (at most 15 characters) shows up in debuggers. */
SN_MUST_USE sn_status sn__thread_create(pthread_t *out_thread, void *(*fn)(void *), void *arg,
                                        const char *name);

/* CPUs this process may run on; at least 1. */
int sn__cpu_count(void);

/* Nanoseconds of the monotonic clock. */
uint64_t sn__now_ns(void);

/* ---- waiting for a 32-bit word ------------------------------------------------------------- */

/* Sleeps while *word == value; returns on a wake, at the deadline (of sn__now_ns(); UINT64_MAX is
 * never), or for no reason: callers look again. False only when the deadline has passed. */
bool sn__word_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t deadline_ns);
void sn__word_wake_all(_Atomic uint32_t *word);
void sn__word_wake(_Atomic uint32_t *word, int threads);

/* How long a thread that waits for the same kind of thing again and again should spin. Grows when
 * spinning paid, shrinks when it did not. Zero-initialise. */
typedef struct sn__spin {
  uint32_t limit_ns;
  uint32_t waits;
} sn__spin;

/* Around any look that may succeed soon:
 *
 *   sn__spinning s;
 *   bool paid = false;
 *   if (sn__spin_begin(spin, &s)) {
 *     while (!(paid = look()) && sn__spin_again(&s)) continue;
 *     sn__spin_end(spin, &s, paid);
 *   }
 *
 * Begin is false when as many threads spin as there are spare CPUs: a spinner must not take the CPU
 * of the thread it waits for. */
typedef struct sn__spinning {
  uint64_t start_ns, end_ns;
  uint32_t turns;
  bool trial;
} sn__spinning;

bool sn__spin_begin(sn__spin *spin, sn__spinning *out_spinning);
bool sn__spin_again(sn__spinning *spinning); /* pauses; false at the limit */
void sn__spin_end(sn__spin *spin, const sn__spinning *spinning, bool paid);

/* Spins until *word != value or the limit; true when the word changed. */
bool sn__spin_while(sn__spin *spin, _Atomic uint32_t *word, uint32_t value);

#endif
