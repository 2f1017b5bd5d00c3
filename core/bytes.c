/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes in words. */
#include "core/bytes.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static const char *write_bytes(uint64_t bytes, bool up, char *out) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    snprintf(out, SN__BYTES_SIZE, "%u B", (unsigned)bytes);
    return out;
  }
  size_t u = 0;
  double size = (double)bytes / 1024;
  for (; size >= 1024 && u + 1 < sizeof units / sizeof *units; u++)
    size /= 1024;
  snprintf(out, SN__BYTES_SIZE, "%.2f %s", up ? ceil(size * 100) / 100 : size, units[u]);
  return out;
}

const char *sn__bytes(uint64_t bytes, char out[SN__BYTES_SIZE]) {
  return write_bytes(bytes, false, out);
}

const char *sn__bytes_enough(uint64_t bytes, char out[SN__BYTES_SIZE]) {
  return write_bytes(bytes, true, out);
}
