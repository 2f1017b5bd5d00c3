/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: the only ordering primitive between queues, devices and the host.
 *
 * A timeline is a 64-bit number that only grows, plus at most one failure. Waiting for a value
 * before anybody has signalled it is legal. A failure travels: every wait for a value that was not
 * reached before the failure gets a copy of its status, and later signals are ignored. A value that
 * was reached stays reached, so the outcome of a wait does not depend on when it looks. */
#ifndef SN_CORE_DEVICE_TIMELINE_H
#define SN_CORE_DEVICE_TIMELINE_H

#include "core/status.h"

typedef struct sn__timeline sn__timeline;

/* "This timeline has reached this value." */
typedef struct sn__timepoint {
  sn__timeline *timeline;
  uint64_t value;
} sn__timepoint;

#define SN__FOREVER UINT64_MAX

SN_BEGIN_DECLS

SN_API SN_MUST_USE sn_status sn__timeline_create(uint64_t value, sn__timeline **out_timeline);

/* Nobody may wait on it any more. A signal that is just returning on another thread is waited for,
 * so a waiter may free the timeline as soon as its wait is over. */
SN_API void sn__timeline_free(sn__timeline *timeline);

/* Raises the value and wakes who waits for it; a value not above the present one changes nothing.
 */
SN_API void sn__timeline_signal(sn__timeline *timeline, uint64_t value);

/* Fails the timeline; takes the status (not SN_OK). The first failure is kept. */
SN_API void sn__timeline_fail(sn__timeline *timeline, sn_status status);

/* The value now; the status is a copy of the failure, if any. `out_value` may be NULL. */
SN_API SN_MUST_USE sn_status sn__timeline_query(sn__timeline *timeline, uint64_t *out_value);

/* True once the value is reached; false also when the timeline failed before. Never blocks. */
SN_API bool sn__timeline_reached(sn__timeline *timeline, uint64_t value);

/* Waits until the value is reached: bounded spin, then sleep. The failure's copy when the timeline
 * failed; INTERRUPTED when `timeout_ns` passes first (SN__FOREVER: never; 0: a look). */
SN_API SN_MUST_USE sn_status sn__timeline_wait(sn__timeline *timeline, uint64_t value,
                                               uint64_t timeout_ns);

/* Waits for all of them, one after the other within one timeout; stops at the first failure. */
SN_API SN_MUST_USE sn_status sn__timepoints_wait(const sn__timepoint *points, int n_points,
                                                 uint64_t timeout_ns);

SN_END_DECLS

#endif
