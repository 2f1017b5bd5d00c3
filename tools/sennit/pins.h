/* SPDX-License-Identifier: Apache-2.0 */
/* Pins of modules to devices: a model file's `placement`, and placement files, which are YAML maps
 * from module to device ("auto" leaves the module to the solver). */
#ifndef SN_TOOLS_SENNIT_PINS_H
#define SN_TOOLS_SENNIT_PINS_H

#include "models/config.h"
#include "placement/placement.h"

typedef struct pin_list {
  sn_pin *items; /* owned, with their texts */
  size_t count, capacity;
} pin_list;

/* A pin of a module that has one takes its place; device "auto" takes it away. */
sn_status pins_set(pin_list *pins, const char *module, const char *device);
sn_status pins_from_config(pin_list *pins, const sn_model_config *config);
sn_status pins_from_file(pin_list *pins, const char *path);
/* CONFIG when a pin names a device that the topology lacks. */
sn_status pins_check(const pin_list *pins, const sn_topology *topology);
void pins_free(pin_list *pins);

/* What a placement decided, as such a file. */
sn_status pins_save(const char *path, const sn_placement *placement);

#endif
