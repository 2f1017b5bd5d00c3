/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "models/model.h"

const sn_model_fact *sn_model_find_fact(const sn_model_facts *facts, const char *name) {
  for (size_t i = 0; i < facts->count; i++)
    if (strcmp(facts->items[i].name, name) == 0) return &facts->items[i];
  return NULL;
}
