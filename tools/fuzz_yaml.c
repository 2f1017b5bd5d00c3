/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the model file and --set. What is accepted must be written and read back the same.
 * A NUL byte in the input ends the file; what follows is an assignment for --set. */
#include <stdlib.h>
#include <string.h>

#include "models/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const char *const sn__fuzz_words[] = {"inputs",
                                      "outputs",
                                      "trunk",
                                      "train",
                                      "placement",
                                      "data",
                                      "kind",
                                      "dense",
                                      "set",
                                      "sequence",
                                      "stream",
                                      "category",
                                      "task",
                                      "classification",
                                      "regression",
                                      "multilabel",
                                      "labels",
                                      "class_weights",
                                      "balanced",
                                      "missing",
                                      "hidden",
                                      "path",
                                      "lengths",
                                      "optimizer",
                                      "adamw",
                                      "sgd",
                                      "learning_rate",
                                      "batch",
                                      "warmup",
                                      "2 epochs",
                                      "500 steps",
                                      "monitor",
                                      "valid.loss",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      ": ",
                                      ", ",
                                      "- ",
                                      "\n",
                                      "\n  ",
                                      "&a ",
                                      "*a",
                                      "<<: ",
                                      "? ",
                                      "| ",
                                      "> ",
                                      "!!str ",
                                      "!x ",
                                      "---\n",
                                      "...\n",
                                      "%YAML 1.1\n",
                                      "\"",
                                      "'",
                                      "\\x00",
                                      "\\uD800",
                                      "\xef\xbb\xbf",
                                      "~",
                                      "null",
                                      "1e999",
                                      "-0",
                                      "0x10",
                                      ".nan",
                                      "99999999999999999999",
                                      "\xff",
                                      NULL};

static void must(bool holds) {
  if (!holds) abort();
}

/* False for a mistake, which must be one printable line. */
static bool accepted(sn_status status) {
  if (status == SN_OK) return true;
  const char *message = sn_status_message(status);
  must(message[0] != '\0' && strchr(message, '\n') == NULL);
  must(sn_status_code(status) == SN_CODE_CONFIG);
  sn_status_free(status);
  return false;
}

static void reads_back(const sn_model_config *config, unsigned flags) {
  sn_model_config *again = NULL;
  char *first = NULL, *second = NULL;
  must(accepted(sn_model_config_write(config, flags, &first)));
  must(accepted(sn_model_config_read(first, strlen(first), "again", &again)));
  must(accepted(sn_model_config_check(again, 0)));
  must(accepted(sn_model_config_write(again, flags, &second)));
  must(strcmp(first, second) == 0);
  sn_text_free(first);
  sn_text_free(second);
  sn_model_config_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_model_config *config = NULL;
  const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
  size_t text_size = nul != NULL ? (size_t)(nul - data) : size;
  if (!accepted(sn_model_config_read((const char *)data, text_size, "fuzz", &config))) return 0;
  if (nul != NULL) {
    size_t rest = size - text_size - 1;
    char *assignment = malloc(rest + 1);
    must(assignment != NULL);
    memcpy(assignment, nul + 1, rest);
    assignment[rest] = '\0';
    (void)accepted(sn_model_config_set(config, assignment));
    free(assignment);
  }
  if (accepted(sn_model_config_check(config, 0))) {
    for (unsigned flags = 0; flags < 4; flags++) {
      reads_back(config, flags);
    }
  }
  sn_model_config_free(config);
  return 0;
}
