/* SPDX-License-Identifier: Apache-2.0 */
#include "io/h5_lzf.h"

#include <string.h>

size_t sn__h5_lzf_decode(const uint8_t *in, size_t size, uint8_t *out, size_t capacity) {
  const uint8_t *end = in + size;
  size_t at = 0;
  while (in < end) {
    unsigned control = *in++;
    if (control < 32) { /* control + 1 bytes as they are */
      size_t n = control + 1;
      if (n > (size_t)(end - in) || n > capacity - at) return SIZE_MAX;
      memcpy(out + at, in, n);
      in += n;
      at += n;
      continue;
    }
    size_t n = control >> 5; /* n + 2 bytes from before */
    if (n == 7) {
      if (in == end) return SIZE_MAX;
      n += *in++;
    }
    if (in == end) return SIZE_MAX;
    size_t back = ((size_t)(control & 31) << 8 | *in++) + 1;
    n += 2;
    if (back > at || n > capacity - at) return SIZE_MAX;
    for (size_t i = 0; i < n; ++i, ++at) /* may overlap itself: byte by byte */
      out[at] = out[at - back];
  }
  return at;
}
