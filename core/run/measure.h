/* SPDX-License-Identifier: Apache-2.0 */
/* From recorded steps to a profile.
 *
 *   sn_measurement *m;
 *   SN_TRY(sn_measurement_create(&m));
 *   for each step after a few to warm up: SN_TRY(sn_measurement_add(m, plan, record));
 *   SN_TRY(sn_measurement_write(m, profile));
 *
 * Operations are measured where they run in earnest: in the step, with its caches and with the
 * other devices at work. What a node is given is the time that its queue had for it alone. */
#ifndef SN_CORE_RUN_MEASURE_H
#define SN_CORE_RUN_MEASURE_H

#include "core/run/session.h"

SN_BEGIN_DECLS

typedef struct sn_measurement sn_measurement;

SN_API SN_MUST_USE sn_status sn_measurement_create(sn_measurement **out_measurement);
SN_API void sn_measurement_free(sn_measurement *measurement);
/* One step of a session of this plan. */
SN_API SN_MUST_USE sn_status sn_measurement_add(sn_measurement *measurement, const sn_plan *plan,
                                                const sn_step_record *record);
/* Rows of all that was seen, in place of those the profile has for the same. */
SN_API SN_MUST_USE sn_status sn_measurement_write(const sn_measurement *measurement,
                                                  sn_profile *profile);

SN_END_DECLS

#endif
