/* SPDX-License-Identifier: Apache-2.0 */
#include "io/inspect.h"

#include "io/h5_inspect.h"

sn_status sn_inspect_file(const char *path, bool json, char **out_text) {
  return sn__inspect_file(path, json, out_text);
}
