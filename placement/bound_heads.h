/* SPDX-License-Identifier: Apache-2.0 */
/* How early tasks can start and how long the rest takes at least, wherever things go (internal):
 * what a task waits for is either on its device, where one goes after another, or elsewhere, and
 * then a copy comes between. */
#ifndef SN_PLACEMENT_BOUND_HEADS_H
#define SN_PLACEMENT_BOUND_HEADS_H

#include "placement/flow.h"

typedef struct sn__windows {
  uint32_t n;
  int64_t *ns;   /* [n] by task: on the device of its class that is fastest for it */
  int64_t *head; /* [n] it does not start before */
  int64_t *tail; /* [n] from its end to the end of the step at least */
  bool memory;   /* devices' memory has raised some head or tail */
} sn__windows;

/* `near`: how many of the tasks before (behind) each are looked at together, the nearest. 0: none,
 * which gives plain paths. */
SN_MUST_USE sn_status sn__windows_create(const sn__flow *flow, uint32_t near,
                                         sn__windows *out_windows);
void sn__windows_free(sn__windows *windows);

#endif
