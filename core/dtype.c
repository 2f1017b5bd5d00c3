/* SPDX-License-Identifier: Apache-2.0 */
#include "core/dtype.h"

#include <string.h>

static const struct {
  const char *name;
  size_t size;
  bool is_float;
} dtypes[SN_DTYPE_COUNT] = {[SN_DTYPE_NONE] = {"none", 0, false},
#define SN_X(ENUM, name, bytes, is_float) [SN_##ENUM] = {name, bytes, is_float},
                            SN_DTYPES(SN_X)
#undef SN_X
};

static bool known(sn_dtype dtype) {
  return (unsigned)dtype < SN_DTYPE_COUNT;
}

const char *sn_dtype_name(sn_dtype dtype) {
  return known(dtype) ? dtypes[dtype].name : "unknown";
}

size_t sn_dtype_size(sn_dtype dtype) {
  return known(dtype) ? dtypes[dtype].size : 0;
}

bool sn_dtype_is_float(sn_dtype dtype) {
  return known(dtype) && dtypes[dtype].is_float;
}

sn_dtype sn_dtype_from_name(const char *name) {
  if (name == NULL) return SN_DTYPE_NONE;
  for (unsigned d = SN_DTYPE_NONE + 1; d < SN_DTYPE_COUNT; d++) {
    if (strcmp(name, dtypes[d].name) == 0) return (sn_dtype)d;
  }
  return SN_DTYPE_NONE;
}
