/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a checkpoint's first 512 bytes and checksum, which stand between a damaged file and
 * libhdf5. What opens must be whole: every tensor has as many bytes as its shape says.
 *
 * Seeds: tests/io/tensors/small.h5. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const char *const sn__fuzz_words[] = {
    "format_version ", "min_reader ", "bytes ", "sha256 ", "2", "18446744073709551616", "\n", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int file = -1;
  if (file < 0) file = memfd_create("fuzz-checkpoint", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size) abort();
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), file); /* the scan reads it too */
  sn_checkpoint *c = NULL;
  sn_status status = sn_checkpoint_open(path, &c);
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
