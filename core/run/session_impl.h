/* SPDX-License-Identifier: Apache-2.0 */
/* A session from inside. Everything that does not change from step to step is built once
 * (session_build.c); a step stages its feeds (session_feed.c), refreshes shapes, pointers and
 * timeline values, and hands each queue one batch (session.c). */
#ifndef SN_CORE_RUN_SESSION_IMPL_H
#define SN_CORE_RUN_SESSION_IMPL_H

#include "core/run/run_impl.h"
#include "core/run/session.h"

/* A task made ready to run. */
typedef struct sn__work {
  sn__exec exec;
  sn__kernel_fn kernel;
  sn_session *session;
  const sn__node *node;
  char *label;
  sn__transfer transfer; /* of a copy */
  bool is_copy;
  bool only_commits; /* every output is a variable's storage */
  bool empty;        /* no output has an element this time: nothing to do */
} sn__work;

/* One symbolic dimension of one tensor. */
typedef struct sn__dim_patch {
  sn__tensor *tensor;
  int32_t dim;
  uint32_t extent; /* into the session's extents: of a symbol in a part */
  int64_t addend;
} sn__dim_patch;

/* A timepoint of a command: rewritten every step. */
typedef struct sn__point_patch {
  uint32_t queue, position;
} sn__point_patch;

typedef struct sn__input_state {
  const void *data;   /* where kernels and copies on host-addressed devices read it; borrowed */
  sn__buffer *buffer; /* its own place on its device, when the feed cannot be read in place */
  bool in_buffer;     /* this step's data are there */
  bool fed;
  int64_t rows;
  union {
    float f32;
    double f64;
    int64_t i64;
  } scalar; /* what the session itself feeds */
} sn__input_state;

typedef struct sn__ragged_state {
  const int64_t *offsets; /* as fed this step; NULL: not fed */
  int32_t *narrow;        /* the same as i32 */
  size_t capacity;
  const char *input; /* who brought them */
} sn__ragged_state;

/* The arenas of sessions that take turns. */
typedef struct sn__turns {
  size_t sessions;
  sn_session *active; /* whose step ran last: it may be in flight */
  uint64_t changes;   /* of the buffers: who has seen fewer points its tensors anew */
  uint32_t n_arenas;
  sn__buffer *arenas[];
} sn__turns;

struct sn_session {
  const sn_plan *plan;
  sn_store *store;
  sn_machine *machine;
  bool check;
  sn__arena build; /* what is built once */

  uint32_t n_parts;         /* micro-batches in the graph; 1: a whole batch */
  sn__step *parts;          /* [n_parts] what kernels are told */
  int64_t *extents;         /* [n_parts * n_symbols] part by part */
  int64_t *capacity;        /* [n_symbols] for every part; -1: not known */
  int64_t *wanted;          /* [n_parts * n_symbols] scratch of a step */
  sn__memory *own_memory;   /* freed with the session; NULL while the plan's serves */
  const sn__memory *memory; /* NULL: none yet */
  sn__turns *turns;
  uint64_t changes_seen;
  size_t replans;

  sn__buffer **variables; /* [n_variables] in the store; NULL where not in use */
  sn__buffer **constants; /* [n_constants] where the device cannot read the plan's own */
  sn__input_state *inputs;
  sn__ragged_state *raggeds; /* [n_parts * n_raggeds] */
  double *loss_weights;

  sn__work *work; /* [n_tasks] */
  sn__tensor *tensors;
  uint32_t *tensor_values; /* [n_tensors] value indices; 0: absent */
  size_t n_tensors;
  sn__dim_patch *dims;
  size_t n_dims;
  sn__tensor **input_tensors; /* those that look at inputs, and which input */
  uint32_t *input_of;
  size_t n_input_tensors;
  sn__buffer **touched; /* test mode: what each command may touch */
  bool shapes_known;    /* tensors have the shapes of `extents` */

  sn__command *commands; /* [n_tasks] queue by queue */
  sn__timepoint *points;
  sn__point_patch *point_patches;
  size_t n_points;
  sn__timeline **timelines; /* [n_queues]; NULL where the queue is empty */
  bool timelines_ok;
  uint64_t base; /* timeline value when the step in flight started */

  uint64_t steps; /* started so far: the latest timepoint */
  bool in_flight, advance;
  bool skip_commits, checking;
  sn_status failure; /* of the latest step, until somebody is told */
  sn_fetch *fetches; /* of the step in flight */
  size_t n_fetches, cap_fetches;

  bool recording;        /* commands note when they begin and end */
  sn_node_time *times;   /* [n_tasks]; NULL until the first recording */
  sn_step_record record; /* of the latest recorded step; no nodes: none */
};

/* ---- session_build.c ---- */

/* Everything that is built once: works, tensors, commands, patches. */
SN_MUST_USE sn_status sn__session_build(sn_session *s);
/* Commands that note their times, or those that do not. */
void sn__session_time_commands(sn_session *s, bool on);
/* Points every tensor at its bytes, after memory or arenas changed. */
void sn__session_rebind(sn_session *s);
/* Shapes, inputs' pointers and copies' sizes of this step. */
void sn__session_refresh(sn_session *s);
/* Where a value's bytes are. */
sn__place sn__session_place(const sn_session *s, uint32_t value);

/* ---- session_feed.c ---- */

static inline int64_t *sn__session_extents(const sn_session *s, int64_t *all, uint32_t part) {
  return all + (size_t)part * s->plan->graph->n_symbols;
}

/* Extents from the feeds into s->wanted; checks that they agree and that all is fed. */
SN_MUST_USE sn_status sn__session_measure(sn_session *s, const sn_step_args *args);
/* Brings the feeds to where kernels read them. */
SN_MUST_USE sn_status sn__session_stage(sn_session *s, const sn_step_args *args);

/* ---- session_check.c ---- */

/* NUMERIC when a float input that was there before the step, or any float output, holds NaN or inf.
 */
SN_MUST_USE sn_status sn__session_check_inputs(const sn__work *w);
SN_MUST_USE sn_status sn__session_check_outputs(const sn__work *w);

#endif
