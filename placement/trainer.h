/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer: a model, devices and an optimizer put together, one call a step.
 *
 *   sn_trainer *t;
 *   sn_trainer_options o = {.struct_size = sizeof o, .devices = "cpu*2",
 *                           .optimizer = {.kind = SN_ADAM}};
 *   SN_TRY(sn_trainer_create(model, &o, &t));
 *   for (...)
 *     SN_TRY(sn_trainer_step(t, feeds, 2, &loss));
 *
 * It differentiates, adds the optimizer, places, plans and holds the sessions; everything it does
 * is public, so what it does not offer can be done by hand (sn_training_graph, sn_place,
 * sn_plan_create, sn_session_step). One thread at a time. */
#ifndef SN_PLACEMENT_TRAINER_H
#define SN_PLACEMENT_TRAINER_H

#include "core/run/session.h"
#include "optim/optim.h"
#include "placement/placement.h"

SN_BEGIN_DECLS

/* How the micro-batches of a step run: one after the other, or at once in one graph, each device
 * working on another one. The bits are the same whichever it is. */
typedef enum sn_pipeline {
  SN_PIPELINE_NONE = 0,
  SN_PIPELINE_GPIPE,      /* all forward, then all backward: keeps what every micro-batch made */
  SN_PIPELINE_1F1B,       /* backward as early as it can: keeps as many as stages lie behind */
  SN_PIPELINE_ZERO_BUBBLE /* gradients of variables wait for gaps: the memory of 1F1B, about */
} sn_pipeline;

typedef struct sn_trainer_options {
  SN_OPTIONS_HEAD;
  const char *devices;         /* as in --devices: "cpu:0,cpu:1", "cpu*2"; NULL: "cpu:0" */
  int threads;                 /* shared out over the CPU devices; 0: one for each CPU there is */
  const sn_topology *topology; /* instead of the two, when given; copied */
  sn_optimizer_options optimizer;
  int64_t micro_batches; /* a batch is computed in this many parts, gradients added up; 0 means 1.
                            Batch norm with sync needs all of them at once: the pipeline GPIPE */
  uint64_t seed;         /* of initial values and random draws */
  sn_place_options placement;
  const sn_extent
      *extents; /* the largest batch to expect: costs are taken and memory is planned for it */
  size_t n_extents;
  bool check;           /* look for NaN and inf behind every op */
  sn_pipeline pipeline; /* of the micro-batches; needs 2 of them at least */
} sn_trainer_options;

typedef struct sn_trainer sn_trainer;

/* `model` is a forward graph with at least one loss; copied. */
SN_API SN_MUST_USE sn_status sn_trainer_create(const sn_graph *model,
                                               const sn_trainer_options *options,
                                               sn_trainer **out_trainer);
SN_API void sn_trainer_free(sn_trainer *trainer);

/* One update of the variables from one batch. out_losses (may be NULL): for each loss of the model,
 * its mean over the batch. NUMERIC when a gradient is not finite: no variable, no slot and
 * no running statistic was written then. (With micro-batches one after the other only the last
 * one's statistics wait for that; those before it move them whenever they are finite themselves.)
 */
SN_API SN_MUST_USE sn_status sn_trainer_step(sn_trainer *trainer, const sn_feed *feeds,
                                             size_t n_feeds, double *out_losses);

/* What the mean of a loss was divided by in the latest step or evaluation with losses, to add
 * batches up. */
SN_API double sn_trainer_loss_weight(const sn_trainer *trainer, size_t loss);

/* The same batch without an update, dropout and batch statistics off. Labels need not be fed when
 * out_losses is NULL. out_weights (may be NULL): what each mean was divided by, to add batches up.
 */
SN_API SN_MUST_USE sn_status sn_trainer_evaluate(sn_trainer *trainer, const sn_feed *feeds,
                                                 size_t n_feeds, const sn_fetch *fetches,
                                                 size_t n_fetches, double *out_losses,
                                                 double *out_weights);

/* Sees every part of a training step (a batch, or a micro-batch) behind it: the plan that it ran,
 * and when each of its nodes began and ended. */
typedef sn_status (*sn_step_watcher)(void *user, const sn_plan *plan, const sn_step_record *record);
/* From the next step on; NULL ends it. Steps that nobody watches run as if there were no such
 * function. */
SN_API void sn_trainer_watch(sn_trainer *trainer, sn_step_watcher watcher, void *user);

/* Makes room for batches up to these extents at once. */
SN_API SN_MUST_USE sn_status sn_trainer_reserve(sn_trainer *trainer, const sn_extent *extents,
                                                size_t n_extents);

/* All borrowed. */
SN_API sn_store *sn_trainer_store(sn_trainer *trainer);
SN_API const sn_graph *sn_trainer_model(const sn_trainer *trainer);
SN_API const sn_placement *sn_trainer_placement(const sn_trainer *trainer);
SN_API const sn_plan *sn_trainer_plan(const sn_trainer *trainer); /* of a whole batch's step */
SN_API const sn_topology *sn_trainer_topology(const sn_trainer *trainer);
/* Of a device by its index in the topology, for all that has run: the most of any program; zeros
 * before the first. */
SN_API sn_session_memory sn_trainer_memory_on(const sn_trainer *trainer, size_t device);

/* Of a pipeline: what one device computes of a micro-batch between two copies. */
typedef struct sn_pipeline_stage {
  int device;                                 /* -1: there is no such stage */
  int64_t forward_ns, backward_ns, weight_ns; /* of the first micro-batch, predicted */
  uint64_t bytes;     /* kept for one micro-batch from its forward to its backward pass */
  uint32_t in_flight; /* the most micro-batches kept at once */
  uint32_t most;      /* as many as the schedule allows there */
} sn_pipeline_stage;

typedef struct sn_pipeline_figures {
  size_t stages;     /* 0: no step has been run as a pipeline yet */
  int64_t step_ns;   /* of the schedule: forward and backward, without update */
  int64_t bound_ns;  /* no order of the same tasks is shorter */
  int64_t bubble_ns; /* of step_ns, what the busiest device stands idle */
} sn_pipeline_figures;

SN_API sn_pipeline_figures sn_trainer_pipeline(const sn_trainer *trainer);
SN_API sn_pipeline_stage sn_trainer_pipeline_stage(const sn_trainer *trainer, size_t i);
/* The plan that runs, of all micro-batches; borrowed; NULL before the first step. */
SN_API const sn_plan *sn_trainer_pipeline_plan(const sn_trainer *trainer);

/* SHA-256 over the model's variables (no slots): name, dtype, shape and bytes of each, in order. */
SN_API SN_MUST_USE sn_status sn_store_sha256(const sn_store *store, char out_hex[65]);

SN_END_DECLS

#endif
