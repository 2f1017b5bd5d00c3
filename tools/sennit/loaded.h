/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint made ready to predict: its graph and weights on devices, its preparation, and data
 * opened as it was trained on. No model file, no library. */
#ifndef SN_TOOLS_SENNIT_LOADED_H
#define SN_TOOLS_SENNIT_LOADED_H

#include "models/config.h"
#include "tools/sennit/args.h"
#include "tools/sennit/evaluate.h"
#include "tools/sennit/pins.h"
#include "tools/sennit/save.h"

typedef struct loaded {
  char *path; /* of the checkpoint */
  sn_checkpoint *checkpoint;
  sn_model_config *config; /* NULL when this version cannot read it */
  sn_topology *topology;
  pin_list pins;
  sn_graph *graph;
  sn_preparation *preparation;
  sn_dataset *data;
  sn_trainer *trainer;
  int64_t batch;
} loaded;

/* From --checkpoint, --data, --devices, --threads and --placement. With `labels` false only inputs
 * are opened. The data is checked as a whole. On failure too, loaded_free() is called for. */
sn_status loaded_open(const arg_set *args, bool labels, ui_state *ui, loaded *out);
void loaded_free(loaded *l);
/* Options of a pass over all rows. */
evaluate_options loaded_pass(loaded *l, ui_state *ui, const char *title);

#endif
