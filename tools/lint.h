/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every file that tools/lint looks at: the analyzer sees one file at a time, so it
 * must be told that a status that was made is never SN_OK, and that context keeps it as it is. */
#ifndef SN_TOOLS_LINT_H
#define SN_TOOLS_LINT_H

#include "core/status.h"

static inline sn_status sn__lint_out_of_memory(void) {
  static long failed;
  return (sn_status)(void *)&failed;
}
int sn__lint_look(sn_code code, const char *format, ...)
    SN_PRINTF(2, 3); /* arguments count as used */

#define sn_status_out_of_memory sn__lint_out_of_memory
#define sn_status_make(...)     ((void)sizeof(sn__lint_look(__VA_ARGS__)), sn__lint_out_of_memory())
#define sn_status_context(status, ...)                                                             \
  ((void)sizeof(sn__lint_look(SN_CODE_OK, __VA_ARGS__)), (status))

#endif
