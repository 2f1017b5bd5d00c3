/* SPDX-License-Identifier: Apache-2.0 */
/* The session: a plan at work on a machine, with a store. It holds the arenas and the queues.
 *
 *   sn_feed feeds[] = {{.value = pixels, .data = x, .rows = 64},
 *                      {.value = digit, .data = y, .rows = 64}};
 *   sn_fetch fetches[] = {{.value = loss.sum, .data = &sum, .bytes = sizeof sum}};
 *   sn_step_args args = {.struct_size = sizeof args, .feeds = feeds, .n_feeds = 2,
 *                        .fetches = fetches, .n_fetches = 1};
 *   sn_timepoint done;
 *   SN_TRY(sn_session_step(session, &args, &done));
 *   ... prepare the next batch ...
 *   SN_TRY(sn_session_wait(session, done));
 *
 * One thread at a time uses a session; several sessions may share a store where they only read. A
 * step that fails leaves the session usable; so does running out of memory. */
#ifndef SN_CORE_RUN_SESSION_H
#define SN_CORE_RUN_SESSION_H

#include "core/run/machine.h"
#include "core/run/plan.h"
#include "core/run/store.h"

SN_BEGIN_DECLS

typedef struct sn_session sn_session;

/* The end of a step of this session. */
typedef struct sn_timepoint {
  uint64_t step;
} sn_timepoint;

/* One input's data, borrowed until the step's timepoint. */
typedef struct sn_feed {
  sn_value value;
  const void *data;
  /* Ragged inputs: offsets[rows + 1] into data, from 0 to the number of elements. May be NULL where
   * another input of the same lengths brings them. */
  const int64_t *offsets;
  int64_t rows; /* not looked at for scalars */
} sn_feed;

/* Where a value is to be written before the timepoint's wait returns. */
typedef struct sn_fetch {
  sn_value value;
  void *data;
  size_t bytes; /* at least the value's size at this batch */
} sn_fetch;

typedef struct sn_step_args {
  SN_OPTIONS_HEAD;
  const sn_feed *feeds;
  size_t n_feeds;
  const sn_fetch *fetches;
  size_t n_fetches;
  /* For every loss its total weight over the whole global batch; NULL: of this batch alone. */
  const double *loss_weights;
  int64_t row_base; /* number of this batch's first row in the global batch */
  bool no_commit;   /* leave the variables as they are */
  bool hold_step;   /* leave the step counter as it is */
} sn_step_args;

typedef struct sn_session_options {
  SN_OPTIONS_HEAD;
  uint64_t seed; /* of dropout and the like; the store's when 0 */
  bool check;    /* look for NaN and inf behind every op, always */
  /* Works in the arenas of this session instead of its own: train, eval and micro-batch sessions
   * of one run need the largest of their arenas, not the sum. A step of one then first ends the
   * step in flight of another; one thread uses all of them. NULL: arenas of its own. */
  sn_session *share;
} sn_session_options;

/* Variables that the store lacks are an error; those still on the host move to their devices. The
 * three are borrowed until the session is freed. `options` may be NULL. */
SN_API SN_MUST_USE sn_status sn_session_create(const sn_plan *plan, sn_store *store,
                                               sn_machine *machine,
                                               const sn_session_options *options,
                                               sn_session **out_session);
/* Waits for what is in flight. */
SN_API void sn_session_free(sn_session *session);

/* Makes room for batches up to these extents at once, exactly: who knows the largest batch of an
 * epoch says so. Symbols not named keep what they have. Ends the step in flight first, of sessions
 * that share the arenas too. */
SN_API SN_MUST_USE sn_status sn_session_reserve(sn_session *session, const sn_extent *extents,
                                                size_t n_extents);

/* Starts a step. It first ends the one before; if that one failed and nobody has waited for it, its
 * status is returned here and nothing is started. Room grows when the batch is larger than any
 * before. INVALID: an input not fed, or feeds that disagree; DATA: offsets that make no sense. */
SN_API SN_MUST_USE sn_status sn_session_step(sn_session *session, const sn_step_args *args,
                                             sn_timepoint *out_done);

/* Ends the step. NUMERIC when the plan's finite flag is 0: the step was then run again from the
 * variables it had left untouched, and the message names the first op whose output is not finite.
 */
SN_API SN_MUST_USE sn_status sn_session_wait(sn_session *session, sn_timepoint done);

/* Total weight that the loss of the latest step was divided by. */
SN_API double sn_session_loss_weight(const sn_session *session, size_t loss);

typedef struct sn_session_memory {
  size_t arena_bytes; /* both lanes, now */
  size_t live_bytes;  /* what a batch of the full capacity needs at one moment at least */
  size_t peak_bytes;  /* the most that was ever allocated there: arenas, variables, slots, inputs */
  size_t limit_bytes; /* what the device may hold; 0: no limit */
  /* What plans give the two lanes for batches of the capacity: of sessions that share their turns,
   * an arena is as large as the largest of theirs. */
  size_t planned_compute_bytes, planned_copy_bytes;
  size_t planned_variable_bytes; /* variables, slots, sums of micro-batches */
} sn_session_memory;

/* Of a device of the plan's topology, by its index. */
SN_API sn_session_memory sn_session_memory_on(const sn_session *session, size_t device);
/* ---- looking at time ------------------------------------------------------------------------ */

/* When a step did what, on the clock CLOCK_MONOTONIC, in ns. */
typedef struct sn_step_record {
  int64_t began_ns;     /* sn_session_step() was called */
  int64_t submitted_ns; /* the queues have their work */
  int64_t joined_ns;    /* the last of it is known to have ended */
  int64_t ended_ns;     /* what was fetched is there */
  size_t n_nodes;
  const sn_node_time *nodes; /* as numbered by sn_plan_node_at() */
  const int64_t *extents;    /* by symbol: the batch that it was */
} sn_step_record;

/* From the next step on every node's begin and end is noted, or no more. A session that does not
 * record runs the very commands it would run without this function. */
SN_API SN_MUST_USE sn_status sn_session_record(sn_session *session, bool on);
SN_API bool sn_session_records(const sn_session *session);
/* The latest step that was recorded and has been waited for; NULL: none. Borrowed until the next
 * step. */
SN_API const sn_step_record *sn_session_recorded(const sn_session *session);

/* How often memory has been planned, reserve included. */
SN_API size_t sn_session_replans(const sn_session *session);

SN_END_DECLS

#endif
