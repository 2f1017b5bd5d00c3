/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the checkpoint's forward graph, read through the rules of every operation. What is
 * read must be sound and must be written again as it was.
 *
 * Seeds: tests/io/graphs/. */
#include <stdlib.h>
#include <string.h>

#include "core/verify.h"
#include "io/graph_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const char *const sn__fuzz_words[] = {
    "\"in\": [", "\"attrs\": {", "\"shape\": [", "\"batch\"", "9223372036854775807",
    "-1",        "\"f64\"",      "\"i64\"",      NULL};

static void check(sn_status status) {
  if (status != SN_OK && sn_status_code(status) != SN_CODE_OUT_OF_MEMORY) abort();
  sn_status_free(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_graph *graph = NULL, *again = NULL;
  char *text = NULL;
  sn_status status = sn__graph_from_json((const char *)data, size, &graph);
  if (status != SN_OK) {
    sn_status_free(status);
    return 0;
  }
  check(sn__verify_structure(graph));
  check(sn__graph_to_json(graph, &text));
  if (text != NULL) {
    check(sn__graph_from_json(text, strlen(text), &again));
    sn__free(text);
  }
  sn_graph_free(graph);
  sn_graph_free(again);
  return 0;
}
