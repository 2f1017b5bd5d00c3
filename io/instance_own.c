/* SPDX-License-Identifier: Apache-2.0 */
/* Our own form of a placement problem. */
#include "io/instance_json.h"

sn_status sn__instance_read_own(sn_instance *instance, const char *path, const cJSON *root) {
  (void)instance;
  (void)root;
  return sn_status_make(SN_CODE_UNSUPPORTED, "%s", path);
}
