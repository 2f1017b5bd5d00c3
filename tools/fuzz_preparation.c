/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a checkpoint's data preparation. What is read must be written again as it was.
 *
 * Seed: tests/io/preparation.json. */
#include <stdlib.h>
#include <string.h>

#include "io/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const char *const sn__fuzz_words[] = {"\"table\": [",
                                      "\"mean\": [",
                                      "\"features\": ",
                                      "9223372036854775807",
                                      "1e999",
                                      "-1",
                                      "\"sequence\"",
                                      "[255,254]",
                                      "\"class\"",
                                      "null",
                                      NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_preparation *p = NULL, *again = NULL;
  char *text = NULL, *same = NULL;
  sn_status status = sn_preparation_from_json((const char *)data, size, &p);
  if (status != SN_OK) {
    sn_status_free(status);
    return 0;
  }
  if (sn_preparation_to_json(p, &text) != SN_OK ||
      sn_preparation_from_json(text, strlen(text), &again) != SN_OK ||
      sn_preparation_to_json(again, &same) != SN_OK || strcmp(text, same) != 0)
    abort();
  sn_text_free(text);
  sn_text_free(same);
  sn_preparation_free(p);
  sn_preparation_free(again);
  return 0;
}
