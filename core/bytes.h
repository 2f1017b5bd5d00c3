/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes in words (internal). */
#ifndef SN_CORE_BYTES_H
#define SN_CORE_BYTES_H

#include <stdint.h>

#include "core/api.h"

SN_BEGIN_DECLS

enum { SN__BYTES_SIZE = 32 };

/* "200 B", "1.50 KiB", "3.20 MiB": the unit that fits, to the nearest hundredth. Returns out. */
SN_API const char *sn__bytes(uint64_t bytes, char out[SN__BYTES_SIZE]);
/* The same rounded up: so much is enough. */
SN_API const char *sn__bytes_enough(uint64_t bytes, char out[SN__BYTES_SIZE]);

SN_END_DECLS

#endif
