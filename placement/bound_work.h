/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds by the work that devices share (internal). No plan that fits takes less. */
#ifndef SN_PLACEMENT_BOUND_WORK_H
#define SN_PLACEMENT_BOUND_WORK_H

#include "placement/bound_heads.h"

/* Classes cut into parts as one likes, each device at its own speed and within its bytes.
 * out_memory: it is the bytes that make it so much. */
SN_MUST_USE sn_status sn__bound_shared(const sn__flow *flow, int64_t *out_ns, bool *out_memory);
/* Tasks that start late or have much behind them, on as many devices as there are: all of such a
 * set between its earliest start and its shortest tail. */
SN_MUST_USE sn_status sn__bound_windows(const sn__flow *flow, const sn__windows *windows,
                                        int64_t *out_ns);
/* The least step for which no stretch of time has more work than the devices have time; `least` is
 * a bound already. */
SN_MUST_USE sn_status sn__bound_energy(const sn__flow *flow, const sn__windows *windows,
                                       int64_t least, int64_t *out_ns);
/* More than one device has to be used: some read crosses. 0: one device is enough, or what is to be
 * placed hangs together nowhere. */
SN_MUST_USE sn_status sn__bound_crossing(const sn__flow *flow, const sn__windows *windows,
                                         int64_t *out_ns);

#endif
