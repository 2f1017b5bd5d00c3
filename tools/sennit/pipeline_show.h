/* SPDX-License-Identifier: Apache-2.0 */
/* What a run's pipeline was: its stages, what they kept, and how good its order is. Nothing is
 * shown of a run without one. */
#ifndef SN_TOOLS_SENNIT_PIPELINE_SHOW_H
#define SN_TOOLS_SENNIT_PIPELINE_SHOW_H

#include "placement/trainer.h"
#include "tools/sennit/json.h"
#include "tools/sennit/ui.h"

void pipeline_show(ui_state *ui, const sn_trainer *trainer);
/* Adds "pipeline" to `parent`. */
void pipeline_json(json_report *report, cJSON *parent, const sn_trainer *trainer);

#endif
