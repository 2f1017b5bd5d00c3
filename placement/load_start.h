/* SPDX-License-Identifier: Apache-2.0 */
/* Where the search for a small largest load begins (internal). */
#ifndef SN_PLACEMENT_LOAD_START_H
#define SN_PLACEMENT_LOAD_START_H

#include "placement/load.h"

/* Everything on the best single device. *out_ns is SN__FLOW_NEVER when none can hold all. */
void sn__load_one_device(const sn__load *load, int *out_device, int64_t *out_ns);

/* Class by class, largest first, to where the largest load grows least among the devices with room.
 * *out_ns is SN__FLOW_NEVER, with the class that did not fit in *out_class, when there is none. */
SN_MUST_USE sn_status sn__load_greedy(const sn__load *load, int *device, int64_t *out_ns,
                                      uint32_t *out_class);

#endif
