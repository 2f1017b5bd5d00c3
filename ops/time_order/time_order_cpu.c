/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/time_order/time_order.h"

#include <string.h>

static sn_status bad_offsets(int64_t row, int64_t from, int64_t to) {
  return sn_status_make(SN_CODE_DATA,
                        "time_order: row %lld runs from element %lld to %lld, beyond the batch's "
                        "elements or longest row",
                        (long long)row, (long long)from, (long long)to);
}

/* A counting sort by length: stable, O(elements + rows + longest). */
sn_status sn__time_order_cpu(const sn__exec *e) {
  const int32_t *offsets = e->in[0].data;
  int32_t *map = e->out[0].data, *steps = e->out[1].data, *order = e->out[2].data;
  const int64_t elements = e->out[0].shape.dims[0], longest = e->out[1].shape.dims[0] - 1;
  const int64_t rows = e->out[2].shape.dims[0];
  int32_t *at = e->workspace; /* [longest + 1]: rows of each length, then where they go */
  memset(at, 0, (size_t)(longest + 1) * sizeof *at);
  for (int64_t r = 0; r < rows; r++) {
    const int64_t length = (int64_t)offsets[r + 1] - offsets[r];
    if (length < 0 || length > longest || offsets[r] < 0 || offsets[r + 1] > elements)
      return bad_offsets(r, offsets[r], offsets[r + 1]);
    at[length]++;
  }
  /* Longest first; the rows longer than t are those of step t. */
  int32_t longer = 0, begin = 0;
  for (int64_t length = longest; length >= 0; length--) {
    const int32_t count = at[length];
    at[length] = longer;
    longer += count;
  }
  for (int64_t t = 0; t <= longest; t++) {
    steps[t] = begin;
    begin += at[t]; /* rows longer than t */
  }
  for (int64_t r = 0; r < rows; r++)
    order[at[offsets[r + 1] - offsets[r]]++] = (int32_t)r;
  for (int64_t i = 0; i < rows; i++) {
    const int32_t first = offsets[order[i]], length = offsets[order[i] + 1] - first;
    for (int32_t t = 0; t < length; t++)
      map[steps[t] + i] = first + t;
  }
  return SN_OK;
}
