/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a topology, opened. Stores and sessions live on a machine; free them before it. */
#ifndef SN_CORE_RUN_MACHINE_H
#define SN_CORE_RUN_MACHINE_H

#include "core/device/desc.h"
#include "core/options.h"

SN_BEGIN_DECLS

typedef struct sn_machine sn_machine;

typedef struct sn_machine_options {
  SN_OPTIONS_HEAD;
  /* Not 0: test mode. Commands start after random delays drawn from the seed, memory holds NaN
   * until it is written, and every command's buffers are checked to be its own device's and not
   * overrun. Nothing of it may change a result. */
  uint64_t test_seed;
} sn_machine_options;

/* Opens every device; the topology is copied. `options` may be NULL. UNSUPPORTED when a kind is not
 * here (and why). */
SN_API SN_MUST_USE sn_status sn_machine_create(const sn_topology *topology,
                                               const sn_machine_options *options,
                                               sn_machine **out_machine);
SN_API void sn_machine_free(sn_machine *machine);
SN_API const sn_topology *sn_machine_topology(const sn_machine *machine); /* borrowed */

SN_END_DECLS

#endif
