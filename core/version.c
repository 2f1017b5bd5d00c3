/* SPDX-License-Identifier: Apache-2.0 */
#include "core/version.h"

const char *sn_version(void) {
  return SN_VERSION;
}
