/* SPDX-License-Identifier: Apache-2.0 */
/* --profile and --save-profile: costs measured in this model's own steps, or read from a file.
 *
 * `--profile N` runs N steps and reads every node's time; placements are then decided with these
 * costs, and where the decision changes, its steps are measured, too. Then as many steps again are
 * timed from outside and held against what the plan predicts for their very batches. Weights of all
 * this are thrown away. `--profile FILE` reads what --save-profile wrote; a file of digits alone is
 * given as ./20. */
#ifndef SN_TOOLS_SENNIT_COSTS_H
#define SN_TOOLS_SENNIT_COSTS_H

#include "tools/sennit/json.h"
#include "tools/sennit/task.h"

typedef struct costs_figures {
  int64_t steps;       /* measured now; 0: none, costs were read or are the described ones */
  int rounds;          /* placements measured */
  double measured_ms;  /* median step, unwatched */
  double predicted_ms; /* median over the same steps */
  double ratio;        /* median of predicted over measured, step by step */
  double worst;        /* farthest from 1 of a tenth of the steps: not noise alone */
  /* The same steps on the best device with the others idle: devices that share a memory or a clock
   * slow one another down, so costs measured side by side are too dear for it. 0: the plan uses one
   * device, or pins keep it on several. */
  double alone_measured_ms, alone_predicted_ms;
  char alone_device[SN_DEVICE_NAME_SIZE];
  bool alone_taken; /* it is faster: the plan is that device's, by the costs it has alone */
} costs_figures;

/* CONFIG: words that do not go together or a number out of range; opens nothing. */
sn_status costs_check(const arg_set *args);
/* Behind task_build(): reads or measures as the options say and hangs the profile on the task's
 * topology. CONFIG: a file that is no profile. */
sn_status costs_take(task *t, ui_state *ui, costs_figures *out);
/* A line for a person: where costs come from, and predicted beside measured. */
void costs_show(ui_state *ui, const sn_plan *plan, const costs_figures *figures);
/* "costs" of a report. */
sn_status costs_json(json_report *r, cJSON *into, const sn_plan *plan,
                     const costs_figures *figures);

/* ---- costs_file.c ---- */

/* CONFIG: not a profile, with what is wrong. */
sn_status costs_read(const char *path, sn_profile **out_profile);
sn_status costs_write(const char *path, const sn_profile *profile);

#endif
