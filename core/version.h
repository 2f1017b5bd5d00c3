/* SPDX-License-Identifier: Apache-2.0 */
/* Which sennit this is. */
#ifndef SN_CORE_VERSION_H
#define SN_CORE_VERSION_H

#include "core/api.h"

SN_BEGIN_DECLS

#define SN_VERSION "0.1.0"
/* The library's own, which may be newer than the header that a program was built with. */
SN_API const char *sn_version(void);

SN_END_DECLS

#endif
