/* SPDX-License-Identifier: Apache-2.0 */
/* Measured costs: what operations took on a kind of device, and copies on a kind of link.
 *
 * A profile is a table of rows. A row is one op with one set of shapes (dimensions that change from
 * batch to batch stand as *) on one kind of device with so many threads, and has a few points: work
 * as the op's own cost row says it, and the nanoseconds that were measured. Who asks for a cost
 * gets it from the row itself, between its points; from the nearest row of the same op, scaled by
 * work; or from the work alone, calibrated by all rows of that device.
 *
 * Hung on a topology (sn_topology_set_profile), it is what plans and placements take costs from.
 * Reference counted; a topology and its copies hold one. Filled by one thread before it is shared.
 */
#ifndef SN_CORE_DEVICE_PROFILE_H
#define SN_CORE_DEVICE_PROFILE_H

#include "core/status.h"

SN_BEGIN_DECLS

typedef struct sn_profile sn_profile;

/* Where a cost comes from, the best last. */
typedef enum sn_cost_source {
  SN_COST_ANALYTIC,   /* flops, bytes and the device's described rates */
  SN_COST_CALIBRATED, /* that, times what the device's measured ops took over what theirs said */
  SN_COST_SCALED,     /* measured for the same op with other shapes, scaled by work */
  SN_COST_MEASURED,   /* measured for this op and these shapes */
  SN_COST_SOURCE_COUNT
} sn_cost_source;

typedef struct sn_profile_point {
  double work;     /* ns by the op's cost row and the described rates; of a copy: bytes */
  double ns;       /* measured */
  int64_t samples; /* in so many steps */
} sn_profile_point;

/* Texts and points are borrowed until the profile changes. */
typedef struct sn_profile_row {
  const char *op;     /* "matmul", "copy"; "(step)" is what a step costs beside its nodes */
  const char *shapes; /* "f32[*,64] f32[64,128] > f32[*,128]" */
  const char *device; /* kind and threads, "cpu/1"; of a link "cpu/1 cpu/1" */
  size_t n_points;
  const sn_profile_point *points; /* by growing work */
} sn_profile_row;

enum { SN_PROFILE_POINTS_MOST = 16, SN_PROFILE_TEXT_SIZE = 512 };

SN_API SN_MUST_USE sn_status sn_profile_create(sn_profile **out_profile);
/* One more holder; returns its argument. NULL is fine. */
SN_API sn_profile *sn_profile_share(sn_profile *profile);
/* One holder less; the last one frees it. */
SN_API void sn_profile_free(sn_profile *profile);

/* Puts a row in place of the one with the same op, shapes and device, if there is one. INVALID:
 * no points or more than SN_PROFILE_POINTS_MOST, works that do not grow, or a number that is
 * negative or not finite. */
SN_API SN_MUST_USE sn_status sn_profile_put(sn_profile *profile, const sn_profile_row *row);
SN_API size_t sn_profile_row_count(const sn_profile *profile);
/* Past the end: an empty struct. */
SN_API sn_profile_row sn_profile_row_at(const sn_profile *profile, size_t i);

/* ---- inside sennit ------------------------------------------------------------------------- */

/* Nanoseconds for `work` of this op, shapes and device; *out_ns is untouched for SN_COST_ANALYTIC.
 * `profile` may be NULL. */
SN_API sn_cost_source sn__profile_ns(const sn_profile *profile, const char *op, const char *shapes,
                                     const char *device, double work, double *out_ns);

SN_END_DECLS

#endif
