/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/pins.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <yaml.h>

#include "core/alloc.h"
#include "core/nearest.h"

static void drop(pin_list *pins, size_t i) {
  sn__free((char *)(uintptr_t)pins->items[i].module);
  sn__free((char *)(uintptr_t)pins->items[i].device);
  pins->items[i] = pins->items[--pins->count];
}

sn_status pins_set(pin_list *pins, const char *module, const char *device) {
  for (size_t i = 0; i < pins->count; i++) {
    if (strcmp(pins->items[i].module, module) == 0) {
      drop(pins, i);
      break;
    }
  }
  if (strcmp(device, "auto") == 0) return SN_OK;
  if (!sn__grow((void **)&pins->items, &pins->capacity, pins->count + 1, sizeof *pins->items))
    return sn_status_out_of_memory();
  sn_pin pin = {sn__strdup(module), sn__strdup(device)};
  pins->items[pins->count++] = pin;
  if (pin.module != NULL && pin.device != NULL) return SN_OK;
  drop(pins, pins->count - 1);
  return sn_status_out_of_memory();
}

void pins_free(pin_list *pins) {
  while (pins->count > 0)
    drop(pins, pins->count - 1);
  sn__free(pins->items);
  *pins = (pin_list){NULL, 0, 0};
}

sn_status pins_from_config(pin_list *pins, const sn_model_config *config) {
  for (size_t i = 0; i < config->pin_count; i++)
    SN_TRY(pins_set(pins, config->pins[i].module, config->pins[i].device));
  return SN_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

static sn_status bad_node(const char *path, const yaml_node_t *node, const char *what) {
  return sn_status_make(SN_CODE_CONFIG, "%s:%zu:%zu: %s; write 'module: device' lines", path,
                        node->start_mark.line + 1, node->start_mark.column + 1, what);
}

static bool given_before(yaml_document_t *document, const yaml_node_t *root,
                         const yaml_node_pair_t *pair) {
  const yaml_node_t *key = yaml_document_get_node(document, pair->key);
  for (const yaml_node_pair_t *p = root->data.mapping.pairs.start; p < pair; p++) {
    const yaml_node_t *other = yaml_document_get_node(document, p->key);
    if (strcmp((const char *)other->data.scalar.value, (const char *)key->data.scalar.value) == 0)
      return true;
  }
  return false;
}

static sn_status take_pairs(pin_list *pins, const char *path, yaml_document_t *document) {
  const yaml_node_t *root = yaml_document_get_root_node(document);
  if (root == NULL) return SN_OK; /* an empty file pins nothing */
  if (root->type != YAML_MAPPING_NODE) return bad_node(path, root, "not a map");
  for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top;
       p++) {
    const yaml_node_t *key = yaml_document_get_node(document, p->key);
    const yaml_node_t *value = yaml_document_get_node(document, p->value);
    if (key->type != YAML_SCALAR_NODE) return bad_node(path, key, "a module's name is no text");
    if (value->type != YAML_SCALAR_NODE || value->data.scalar.length == 0)
      return bad_node(path, value, "a device's name is no text");
    if (given_before(document, root, p)) return bad_node(path, key, "this module is given twice");
    const char *module = (const char *)key->data.scalar.value;
    const char *device = (const char *)value->data.scalar.value;
    SN_TRY(pins_set(pins, module, device));
  }
  return SN_OK;
}

static sn_status read_document(pin_list *pins, const char *path, FILE *file) {
  yaml_parser_t parser;
  yaml_document_t document;
  if (yaml_parser_initialize(&parser) == 0) return sn_status_out_of_memory();
  yaml_parser_set_input_file(&parser, file);
  sn_status status = SN_OK;
  if (yaml_parser_load(&parser, &document) == 0) {
    status = sn_status_make(SN_CODE_CONFIG, "%s:%zu:%zu: not YAML: %s", path,
                            parser.problem_mark.line + 1, parser.problem_mark.column + 1,
                            parser.problem != NULL ? parser.problem : "cannot be read");
  } else {
    status = take_pairs(pins, path, &document);
    yaml_document_delete(&document);
  }
  yaml_parser_delete(&parser);
  return status;
}

sn_status pins_from_file(pin_list *pins, const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL)
    return sn_status_make(SN_CODE_CONFIG, "cannot read placement file %s: %s", path,
                          strerror(errno));
  sn_status status = read_document(pins, path, file);
  fclose(file);
  return status;
}

sn_status pins_check(const pin_list *pins, const sn_topology *topology) {
  const char *names[SN_DEVICES_MOST];
  char list[400] = "";
  size_t used = 0;
  for (int d = 0; d < topology->n_devices; d++) {
    names[d] = topology->devices[d].name;
    if (used < sizeof list - SN_DEVICE_NAME_SIZE - 3)
      used +=
          (size_t)snprintf(list + used, sizeof list - used, "%s%s", d > 0 ? ", " : "", names[d]);
  }
  for (size_t i = 0; i < pins->count; i++) {
    if (sn_topology_find(topology, pins->items[i].device) >= 0) continue;
    const char *near = sn__nearest(pins->items[i].device, names, (size_t)topology->n_devices);
    if (near != NULL && topology->n_devices > 1)
      return sn_status_make(SN_CODE_CONFIG,
                            "module '%s' is pinned to '%s', which is not in --devices (%s); did "
                            "you mean '%s'?",
                            pins->items[i].module, pins->items[i].device, list, near);
    return sn_status_make(SN_CODE_CONFIG,
                          "module '%s' is pinned to '%s', which is not in --devices (%s); add it "
                          "there or change the pin",
                          pins->items[i].module, pins->items[i].device, list);
  }
  return SN_OK;
}

sn_status pins_save(const char *path, const sn_placement *placement) {
  FILE *file = fopen(path, "wb");
  if (file == NULL)
    return sn_status_make(SN_CODE_IO, "cannot write placement %s: %s", path, strerror(errno));
  const sn_topology *topology = sn_placement_topology(placement);
  fputs("# module: device. 'auto' leaves a module to the solver.\n", file);
  for (size_t i = 0; i < sn_placement_module_count(placement); i++) {
    const sn_placement_module *m = sn_placement_module_at(placement, i);
    if (*m->path == '\0') continue;
    fprintf(file, "\"%s\": %s  # %s\n", m->path, topology->devices[m->device].name, m->cause);
  }
  bool bad = ferror(file) != 0;
  if (fclose(file) != 0 || bad)
    return sn_status_make(SN_CODE_IO, "cannot write placement %s: %s", path, strerror(errno));
  return SN_OK;
}
