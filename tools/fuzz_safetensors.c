/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the safetensors reader. What it takes must be whole: every tensor has as many bytes
 * as its shape says.
 *
 * Seeds: tests/io/tensors/small.safetensors. */
#include "io/checkpoint_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const char *const sn__fuzz_words[] = {
    "\"dtype\":",        "\"F32\"", "\"shape\":[", "\"data_offsets\":[",
    "\"__metadata__\":", "-1",      "1e3",         "9223372036854775807",
    "\"F16\"",           NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_checkpoint *c = NULL;
  sn_status status = sn__safetensors_parse(data, size, &c);
  if (status != SN_OK) {
    sn_status_free(status);
    return 0;
  }
  static volatile uint8_t sink;
  for (size_t i = 0; i < sn_checkpoint_tensor_count(c); i++) {
    const sn_named_tensor *t = sn_checkpoint_tensor(c, i);
    size_t bytes = sn_dtype_size(t->dtype);
    for (int d = 0; d < t->shape.rank; d++)
      bytes *= (size_t)t->shape.dims[d];
    if (bytes > 0) sink = ((const uint8_t *)t->data)[bytes - 1];
  }
  (void)sink;
  sn_checkpoint_free(c);
  return 0;
}
