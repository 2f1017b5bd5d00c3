/* SPDX-License-Identifier: Apache-2.0 */
/* What `sennit plan` shows, in its three forms. */
#ifndef SN_TOOLS_SENNIT_PLAN_REPORT_H
#define SN_TOOLS_SENNIT_PLAN_REPORT_H

#include <stdio.h>

#include "placement/trainer.h"
#include "tools/sennit/costs.h"
#include "tools/sennit/plan_insight.h"
#include "tools/sennit/ui.h"

/* Tables for a person: modules, copies, devices, and what it comes to. */
void plan_show(ui_state *ui, const sn_placement *placement, const sn_plan *plan,
               const costs_figures *costs, const plan_insight *insight);
/* The object of --json on `out`. */
sn_status plan_print_json(FILE *out, const sn_placement *placement, const sn_plan *plan,
                          const costs_figures *costs, const plan_insight *insight);
/* One page for a browser, with everything in it. */
sn_status plan_write_html(const char *path, const sn_placement *placement, const sn_plan *plan,
                          const costs_figures *costs, const plan_insight *insight);
/* The placed graph for Graphviz: a box for each node in the colour of its device, copies as
 * ellipses, modules as frames. */
sn_status plan_write_dot(const char *path, const sn_placement *placement, const sn_plan *plan);

#endif
