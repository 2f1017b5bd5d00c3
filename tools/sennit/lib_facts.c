/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/lib_facts.h"

#include <string.h>

#include "core/alloc.h"
#include "io/inspect.h"
#include "tools/sennit/json.h"

static const char *text_of(const cJSON *object, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  return text != NULL ? text : "";
}

/* The group that this is the values or offsets of, or NULL. */
static const char *group_of(const cJSON *groups, const char *path, bool *out_values) {
  const cJSON *group;
  cJSON_ArrayForEach(group, groups) {
    const char *name = text_of(group, "path");
    size_t length = strlen(name);
    if (strncmp(path, name, length) != 0) continue;
    *out_values = strcmp(path + length, "/values") == 0;
    if (*out_values || strcmp(path + length, "/offsets") == 0) return name;
  }
  return NULL;
}

/* Columns behind the first dimension; 0 when there is no second. */
static int64_t features_of(const cJSON *dataset) {
  const cJSON *shape = cJSON_GetObjectItemCaseSensitive(dataset, "shape");
  int rank = cJSON_GetArraySize(shape);
  double features = rank > 1 ? 1 : 0;
  for (int d = 1; d < rank; d++)
    features *= cJSON_GetArrayItem(shape, d)->valuedouble;
  return features < 1e15 ? (int64_t)features : 0;
}

static sn_status add(lib_facts *facts, const cJSON *dataset, const cJSON *groups) {
  const char *path = text_of(dataset, "path");
  bool values = false;
  const char *group = group_of(groups, path, &values);
  if (group != NULL && !values) return SN_OK;
  const char *name = group != NULL ? group : path;
  if (*name == '/') name++;
  char *copy = sn__strdup(name);
  if (copy == NULL) return sn_status_out_of_memory();
  const cJSON *classes = cJSON_GetObjectItemCaseSensitive(dataset, "classes");
  facts->items[facts->facts.count++] =
      (sn_model_fact){.name = copy,
                      .features = features_of(dataset),
                      .classes = cJSON_GetArraySize(classes),
                      .ragged = group != NULL || strcmp(text_of(dataset, "kind"), "ragged") == 0};
  return SN_OK;
}

static sn_status take(const cJSON *root, lib_facts *out) {
  const cJSON *datasets = cJSON_GetObjectItemCaseSensitive(root, "datasets");
  const cJSON *groups = cJSON_GetObjectItemCaseSensitive(root, "ragged"), *dataset;
  size_t n = (size_t)cJSON_GetArraySize(datasets);
  *out = (lib_facts){.facts = {.struct_size = sizeof out->facts},
                     .items = sn__calloc(n + 1, sizeof *out->items)};
  if (out->items == NULL) return sn_status_out_of_memory();
  out->facts.items = out->items;
  cJSON_ArrayForEach(dataset, datasets) SN_TRY(add(out, dataset, groups));
  return SN_OK;
}

sn_status lib_facts_read(const char *file, lib_facts *out) {
  char *text = NULL;
  json_report hooks; /* cJSON under our allocator */
  *out = (lib_facts){.items = NULL};
  sn_status status = sn_inspect_file(file, true, &text);
  if (status == SN_OK) status = json_create(&hooks);
  if (status == SN_OK) {
    json_free(&hooks);
    cJSON *root = text != NULL ? cJSON_Parse(text) : NULL;
    status = root != NULL ? take(root, out) : sn_status_out_of_memory();
    cJSON_Delete(root);
  }
  sn__free(text);
  if (status != SN_OK) lib_facts_free(out);
  return status;
}

void lib_facts_free(lib_facts *facts) {
  for (size_t i = 0; facts->items != NULL && i < facts->facts.count; i++)
    sn__free((char *)(uintptr_t)facts->items[i].name);
  sn__free(facts->items);
  *facts = (lib_facts){.items = NULL};
}
