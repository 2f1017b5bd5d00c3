/* SPDX-License-Identifier: Apache-2.0 */
/* What a person asks a plan: what limits the step, and would one more device help? */
#ifndef SN_TOOLS_SENNIT_PLAN_INSIGHT_H
#define SN_TOOLS_SENNIT_PLAN_INSIGHT_H

#include "tools/sennit/costs.h"
#include "tools/sennit/task.h"

typedef struct plan_insight {
  /* The chain of nodes that ends last, each beginning when the one before it ends. */
  int64_t chain_ns;
  int64_t chain_on[SN_DEVICES_MOST]; /* of it, by device */
  int64_t chain_copies_ns;
  size_t chain_copies;
  char heaviest[160]; /* module with the most of the chain; "" when none has a name */
  int64_t heaviest_ns;
  char limit[320]; /* all that in one line */
  /* One more device like the last. */
  bool more_known;
  char more_device[SN_DEVICE_NAME_SIZE];
  int64_t more_step_ns;
  int more_used;
  char more[320]; /* in one line */
} plan_insight;

/* `task` is built; the trainer is its. */
sn_status plan_insight_make(const task *t, const sn_trainer *trainer, plan_insight *out);

#endif
