/* SPDX-License-Identifier: Apache-2.0 */
/* A placement problem as plain arrays (internal): what every search works on, whether it comes from
 * a model's graph or from a public instance. No names, no pointers into a graph.
 *
 * Tasks take time on a device; classes are what moves as one (a task belongs to one, a class may
 * have many tasks); a value is made by a task, or is there from the start, and is read by tasks; a
 * reader elsewhere needs a copy, one for each (value, destination). All times are whole
 * nanoseconds or whatever unit the instance has, all decisions integers, so one seed gives one
 * answer on any machine. */
#ifndef SN_PLACEMENT_FLOW_H
#define SN_PLACEMENT_FLOW_H

#include "core/status.h"

/* A task's time on a device that cannot run it. */
#define SN__FLOW_NEVER     INT64_MAX
#define SN__FLOW_NONE      UINT32_MAX
/* No time and no sum of times may pass this; sn__flow_finish() checks. */
#define SN__FLOW_TIME_MOST (INT64_MAX / 8)

typedef struct sn__flow_read {
  uint32_t value, task;
} sn__flow_read;

/* `after` starts when `before` has ended, wherever they are; nothing is copied for it. With `reads`
 * (a value's number + 1) it waits only until `before` has that value's bytes, which `after`
 * overwrites: for `before` to end where it reads the value's own bytes, else for the copy that
 * takes them from where they are, views (value_base) included. */
typedef struct sn__flow_order {
  uint32_t before, after;
  uint32_t reads; /* 0: none */
} sn__flow_order;

typedef struct sn__flow {
  int n_devices;
  uint64_t *device_bytes; /* [n_devices] 0: no limit */
  uint32_t n_classes;
  int *class_pin;        /* [n_classes] device, or -1 */
  uint64_t *class_bytes; /* [n_classes] there for the whole step: variables, slots */
  uint32_t n_tasks;
  uint32_t *task_class; /* [n_tasks] */
  int64_t *task_ns;     /* [n_tasks * n_devices] 0 or more, or SN__FLOW_NEVER */
  bool *task_view;      /* [n_tasks] takes no time and no queue; its ns are 0 */
  uint32_t n_values;
  uint32_t *value_task;  /* [n_values] what makes it; SN__FLOW_NONE: there from the start */
  uint32_t *value_class; /* [n_values] where it is made, the maker's class if there is one */
  uint64_t *value_bytes; /* [n_values] */
  /* [n_values] the value whose bytes this one looks at (a view's input, the variable that a commit
   * writes), or SN__FLOW_NONE, as sn__flow_create() has it: bytes of its own. */
  uint32_t *value_base;
  /* How long a copy takes: pairs of devices fall into a few kinds of link. */
  int n_links;
  uint16_t *link_of; /* [n_devices * n_devices] row = from; the diagonal is not read */
  int64_t *copy_ns;  /* [n_values * n_links] */
  /* Copies to one device follow one another (the executor's copy queue); else they take their time
   * beside each other, however many. */
  bool copies_queue;

  /* Filled by the caller in any order, with repeats; sorted and made unique by sn__flow_finish().
   */
  uint32_t n_reads;
  sn__flow_read *reads; /* by value, then task */
  uint32_t n_orders;
  sn__flow_order *orders; /* by before, then after, then reads */

  /* Made by sn__flow_finish(). */
  uint32_t *first_reader; /* [n_values + 1] into reads */
  uint32_t *first_input;  /* [n_tasks + 1] into inputs */
  uint32_t *inputs;       /* [n_reads] values, task by task */
  uint32_t *first_output; /* [n_tasks + 1] into outputs */
  uint32_t *outputs;      /* [n_values at most] values, task by task */
  uint32_t *first_order;  /* [n_tasks + 1] into orders, by before */
  uint32_t *first_member; /* [n_classes + 1] into members */
  uint32_t *members;      /* [n_tasks] tasks, class by class */
  uint32_t *topological;  /* [n_tasks] each behind all it waits for; equals by number */
} sn__flow;

/* Zeroed arrays of these sizes (class_pin is -1) for the caller to fill. INVALID: more than memory
 * or 32 bits can count, or n_devices not in 1..256. */
SN_MUST_USE sn_status sn__flow_create(int n_devices, uint32_t n_classes, uint32_t n_tasks,
                                      uint32_t n_values, uint32_t n_reads, uint32_t n_orders,
                                      int n_links, sn__flow **out_flow);
/* Checks every number, sorts, links. INVALID: an index out of range, a negative time, times that
 * overflow in sum, a pin to a device that is not there or that cannot run its class, a class that
 * no device can run, a cycle (naming a task on it). */
SN_MUST_USE sn_status sn__flow_finish(sn__flow *flow);
void sn__flow_free(sn__flow *flow);

/* The time of all tasks of a class on a device, or SN__FLOW_NEVER. */
int64_t sn__flow_class_ns(const sn__flow *flow, uint32_t class_, int device);
/* Of each task [n_tasks] the time where its class can be and it is fastest. */
void sn__flow_least_ns(const sn__flow *flow, int64_t *out_ns);

static inline int64_t sn__flow_copy_ns(const sn__flow *f, uint32_t value, int from, int to) {
  if (from == to) return 0;
  size_t pair = (size_t)from * (size_t)f->n_devices + (size_t)to;
  return f->copy_ns[(size_t)value * (size_t)f->n_links + f->link_of[pair]];
}

#endif
