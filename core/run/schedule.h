/* SPDX-License-Identifier: Apache-2.0 */
/* The static schedule (internal): what runs on which queue, in which order, after what.
 *
 * A pure function of a placed graph, a topology and extents. Every node that is needed and does
 * work is a task; sources and views are none. A device has two in-order queues; a copy runs on the
 * COPY queue of its destination (its node's device), everything else on its device's COMPUTE queue.
 * Order within a queue is what a list scheduler with this topology's rates finds: longest remaining
 * path first, or as the graph's order_rule and its nodes' order say (core/graph_impl.h). With a
 * single queue in use and no order given, order cannot change the time, and the order in which the
 * graph was built keeps memory lower. All times are integers, so one graph gives one schedule on
 * every machine.
 *
 * A task waits for a position of another queue only where neither its own queue's order nor another
 * of its waits implies it. Between steps all queues join. */
#ifndef SN_CORE_RUN_SCHEDULE_H
#define SN_CORE_RUN_SCHEDULE_H

#include "core/device/device.h"
#include "core/run/values.h"

/* "The task at this position (from 0) of that queue has ended." */
typedef struct sn__queue_point {
  uint32_t queue;
  uint32_t position;
} sn__queue_point;

typedef struct sn__task {
  uint32_t node;
  uint32_t queue; /* device * SN__QUEUE_COUNT + sn__queue */
  uint32_t position;
  uint32_t first_wait, n_waits; /* into waits */
  int64_t cost_ns, start_ns, finish_ns;
} sn__task;

typedef struct sn__schedule {
  sn__arena arena;
  uint32_t n_queues, n_tasks;
  sn__task *tasks; /* ordered so that each follows all it depends on */
  sn__queue_point *waits;
  uint32_t n_waits;
  uint32_t *queue_first; /* [n_queues + 1] into queue_tasks */
  uint32_t *queue_tasks; /* [n_tasks] task numbers, queue by queue in order */
  uint32_t *task_of;     /* [graph->n_nodes] task number + 1; 0: none */
  bool *needed;          /* [graph->n_nodes] sources and views included */
  /* [n_tasks * n_queues] tasks of each queue that have ended whenever this one starts. */
  uint32_t *clocks;
  int64_t makespan_ns;
} sn__schedule;

typedef struct sn__schedule_options {
  const uint32_t *fetches; /* value indices that must be there at the end */
  size_t n_fetches;
  bool commits; /* keep what writes variables */
} sn__schedule_options;

SN_BEGIN_DECLS

/* `extents` has a number for every symbol of the graph. INTERNAL: an unplaced node, a variable with
 * two commits, or a cycle. INVALID: a strict order that what the nodes read contradicts (names two
 * nodes of the same queue). */
SN_API SN_MUST_USE sn_status sn__schedule_build(const sn_graph *graph, const sn_topology *topology,
                                                const int64_t *extents,
                                                const sn__schedule_options *options,
                                                sn__schedule **out_schedule);
SN_API void sn__schedule_free(sn__schedule *schedule);

/* Task `a` has ended whenever task `b` starts. */
static inline bool sn__task_before(const sn__schedule *s, uint32_t a, uint32_t b) {
  return s->clocks[(size_t)b * s->n_queues + s->tasks[a].queue] > s->tasks[a].position;
}

static inline int32_t sn__task_device(const sn__task *task) {
  return (int32_t)(task->queue / SN__QUEUE_COUNT);
}

SN_END_DECLS

#endif
