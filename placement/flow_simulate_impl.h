/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator from inside: its state, which flow_history.c keeps and brings back. */
#ifndef SN_PLACEMENT_FLOW_SIMULATE_IMPL_H
#define SN_PLACEMENT_FLOW_SIMULATE_IMPL_H

#include "placement/flow_simulate.h"

enum { SN__WORDS = 4 }; /* of 64 devices each */

/* In a ready heap: the largest key first, equals by item. In a heap of arrivals the key is minus
 * the time. */
typedef struct sn__entry {
  int64_t key;
  uint64_t item; /* task, or value * n_devices + destination */
} sn__entry;

typedef struct sn__heap {
  sn__entry *items;
  uint32_t count;
} sn__heap;

struct sn__flow_simulator {
  const sn__flow *flow;
  int64_t *tails;    /* [n_tasks] */
  uint32_t *inputs;  /* [n_tasks] what each waits for when all values from the start are there */
  uint32_t *sources; /* values that are there from the start and read */
  uint32_t n_sources;
  uint32_t *first_attached; /* [n_values + 1] orders that may wait for a copy of the value */
  uint32_t *attached;
  /* The step being simulated. */
  const int *devices;
  const int64_t *keys; /* by task: what the heaps go by */
  sn__flow_step *step;
  int64_t now;
  uint16_t *device;  /* [n_tasks] */
  uint32_t *waiting; /* [n_tasks] */
  int64_t *ranks;    /* [n_tasks] scratch when there are no priorities */
  sn__heap *ready;   /* [n_devices] */
  sn__entry *ready_items;
  sn__heap *copies;  /* [n_devices] waiting copies to it, with copies_queue */
  sn__heap arrivals; /* copies under way, without */
  int64_t *ends;     /* [2 * n_devices] of what runs on compute and copy queues; INT64_MAX: idle */
  uint64_t *runs;    /* [2 * n_devices] which task or copy */
  uint64_t idle[SN__WORDS], some[SN__WORDS], copy_idle[SN__WORDS], copy_some[SN__WORDS];
  uint32_t *ended; /* [n_tasks] scratch: views that end with something */
  uint32_t n_ended;
  int64_t *total, *worked; /* [n_devices] of all tasks there, of those that have started */
  uint32_t done;
  bool watched; /* memory, in this step */
  uint32_t *
      uses; /* NULL: no value has bytes; [n_values * n_devices] readers still to come, for memory */
  uint64_t *live; /* [n_devices] of values */
  /* Kept for steps that begin in the middle; NULL: they are not. */
  struct sn__flow_history *history;
  uint32_t mark;  /* tasks done at which the state is kept next */
  int64_t *came;  /* [n_tasks] when a task had all that it waits for */
  int64_t *keyed; /* [n_tasks] when its rank first decided between copies */
};

/* What sn__flow_simulate() is made of. */
void sn__flow_reset(sn__flow_simulator *s);
/* The keys that a step goes by: `ranks` where the heaps need them. */
void sn__flow_key(sn__flow_simulator *s, const int64_t *priorities);
void sn__flow_begin(sn__flow_simulator *s);
/* From the state as it is to the end; INT64_MAX: given up. */
int64_t sn__flow_run(sn__flow_simulator *s);
int64_t sn__flow_copy_key(const sn__flow_simulator *s, uint32_t value, int to, int64_t ns);
/* [value * n_devices + device] the counter of readers still to come of the bytes that a reader
 * there looks at. */
uint32_t *sn__flow_uses(const sn__flow_simulator *s, uint32_t value, int device);
/* class_bytes under the peaks of values. */
void sn__flow_add_classes(const sn__flow_simulator *s, uint64_t *peak_bytes);
/* Keeps the state: `done` has come to `mark`. */
void sn__flow_history_mark(sn__flow_simulator *s);

#endif
