/* SPDX-License-Identifier: Apache-2.0 */
#include "core/options.h"

#include <string.h>

#include "core/version.h"

/* More than any options struct will have; a larger number is not a size but garbage. */
enum { MOST_BYTES = 4096 };

sn_status sn_options_read(const void *options, size_t size, const char *what, void *out_options) {
  size_t given = size;
  memset(out_options, 0, size);
  if (options != NULL) memcpy(&given, options, sizeof given);
  if (given < sizeof given || given > MOST_BYTES)
    return sn_status_make(SN_CODE_INVALID,
                          "%s: the options' struct_size is %zu; set it to the size of their struct",
                          what, given);
  for (size_t i = size; i < given; i++)
    if (((const char *)options)[i] != 0)
      return sn_status_make(SN_CODE_UNSUPPORTED,
                            "%s: an option is set that sennit %s does not know; use a newer one",
                            what, SN_VERSION);
  if (options != NULL) memcpy(out_options, options, given < size ? given : size);
  memcpy(out_options, &size, sizeof size);
  return SN_OK;
}
