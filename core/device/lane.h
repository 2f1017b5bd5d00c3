/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: one in-order queue with a worker thread of its own, for devices whose work the host does
 * (cpu) or pretends to do (null). */
#ifndef SN_CORE_DEVICE_LANE_H
#define SN_CORE_DEVICE_LANE_H

#include "core/device/device_impl.h"

typedef struct sn__lane sn__lane;

typedef struct sn__lane_options {
  const char *name;  /* of the thread; at most 15 characters show */
  sn__launch launch; /* handed to commands; what it points to outlives the lane */
  bool pretend;      /* signals without running anything */
  bool lazy;         /* the worker starts with the first batch */
} sn__lane_options;

SN_MUST_USE sn_status sn__lane_create(sn__device *device, const sn__lane_options *options,
                                      sn__lane **out_lane);
void sn__lane_free(sn__lane *lane); /* drains */
/* As sn__device_submit(). */
SN_MUST_USE sn_status sn__lane_submit(sn__lane *lane, const sn__command *commands, int n_commands);
void sn__lane_drain(sn__lane *lane);

#endif
