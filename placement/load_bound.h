/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds of the largest load (internal). */
#ifndef SN_PLACEMENT_LOAD_BOUND_H
#define SN_PLACEMENT_LOAD_BOUND_H

#include "placement/load.h"

typedef struct sn__load_bound {
  int64_t ns;
  char words[80]; /* which bound it is */
} sn__load_bound;

/* No assignment has a smaller largest load. */
SN_MUST_USE sn_status sn__load_bound_of(const sn__load *load, sn__load_bound *out);

#endif
