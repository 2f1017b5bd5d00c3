/* SPDX-License-Identifier: Apache-2.0 */
/* One training step with nothing left unseen: every forward value and every gradient is fetched.
 * The same passes as a trainer's, by hand. */
#ifndef SN_TOOLS_SENNIT_ONE_STEP_H
#define SN_TOOLS_SENNIT_ONE_STEP_H

#include "core/run/session.h"
#include "tools/sennit/bind.h"
#include "tools/sennit/task.h"

typedef struct one_step {
  const sn_graph *model; /* borrowed */
  sn_graph *train, *placed;
  sn_placement *placement;
  sn_plan *plan;
  sn_machine *machine;
  sn_store *store;
  sn_session *session;
  int64_t rows;
  int64_t *extents; /* of this batch, by the plan's symbols */
  sn_feed *feeds;
  size_t n_feeds;
  /* n_activations forward values, then n_gradients of variables, then the losses' sums. */
  sn_value *values;
  const char **names; /* of the value, or of the gradient's variable; borrowed */
  sn_fetch *fetches;
  size_t n_activations, n_gradients, n_fetches;
} one_step;

/* Ready to run; variables are at their start. On failure too, one_step_close() is called for. */
sn_status one_step_open(const task *t, bind_set *bind, const sn_batch *batch, one_step *out);
sn_status one_step_run(one_step *step);
void one_step_close(one_step *step);

/* The shape that a value has in this batch. */
sn_shape one_step_shape(const one_step *step, sn_value value);
/* The mean of a loss over the batch; after the run. */
double one_step_loss(const one_step *step, size_t loss);

#endif
