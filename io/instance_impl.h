/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of instances share (internal). */
#ifndef SN_IO_INSTANCE_IMPL_H
#define SN_IO_INSTANCE_IMPL_H

#include "core/alloc.h"
#include "io/instance.h"
#include "placement/flow.h"

typedef enum sn__instance_kind {
  SN__INSTANCE_LOAD,
  SN__INSTANCE_MAKESPAN,
  SN__INSTANCE_MEMORY
} sn__instance_kind;

struct sn_instance {
  sn__arena arena; /* names, notes, and all arrays below */
  sn__instance_kind kind;
  sn_instance_facts facts;
  /* load and makespan */
  sn__flow *flow;
  int decimals; /* a unit of the flow's times is 10^-decimals of the file's */
  const char **device_name;
  const char **device_kind; /* entries may be NULL */
  bool *device_pays;
  bool *task_backward; /* may be NULL */
  /* all: the names of nodes; load and makespan: one a task */
  const char **node_id;
  /* memory */
  uint32_t n_blocks;
  int64_t *lower, *upper, *sizes;
};

/* A problem while it is read: times as the file has them. All arrays are zeroed, in one arena. */
typedef struct sn__draft {
  sn_instance *instance;
  const char *path;
  int n_devices;
  uint32_t n_tasks, n_classes, n_values, n_reads, n_orders;
  uint64_t *device_bytes; /* [n_devices] */
  int *class_pin;         /* [n_classes] -1: none; set by sn__draft_create() */
  uint64_t *class_bytes;
  uint32_t *task_class;
  double *task_time;  /* [n_tasks * n_devices] INFINITY: cannot */
  double *value_copy; /* [n_values] */
  uint64_t *value_bytes;
  uint32_t *value_task;
  sn__flow_read *reads;
  sn__flow_order *orders;
  bool copies_queue;
  int shift; /* the file's times count 10^-shift of its unit */
} sn__draft;

/* The counts of `draft` are set; makes its arrays and the instance's. */
SN_MUST_USE sn_status sn__draft_create(sn__draft *draft);
/* Checks what the readers do not, chooses the integer unit and makes the flow. Errors name nodes by
 * their ids. */
SN_MUST_USE sn_status sn__draft_finish(sn__draft *draft);

/* A zeroed array of the instance's own; NULL when out of memory. */
void *sn__instance_array(sn_instance *instance, size_t count, size_t size);
SN_MUST_USE sn_status sn__instance_note(sn_instance *instance, const char *format, ...)
    SN_PRINTF(2, 3);

/* The readers: `text` is `length` bytes and a NUL, and may be written to. */
SN_MUST_USE sn_status sn__instance_read_json(sn_instance *instance, const char *path, char *text,
                                             size_t length);
SN_MUST_USE sn_status sn__instance_read_doppler(sn_instance *instance, const char *path, char *text,
                                                int devices);
SN_MUST_USE sn_status sn__instance_read_pipedream(sn_instance *instance, const char *path,
                                                  char *text, int devices);
SN_MUST_USE sn_status sn__instance_read_csv(sn_instance *instance, const char *path, char *text);

/* ids and their places, for finding them again. */
typedef struct sn__id_map {
  struct sn__id_row {
    double id;
    uint32_t at;
  } * rows;
  uint32_t n;
} sn__id_map;

/* Sorts the rows; false, with the id, when one is there twice. */
bool sn__id_map_sort(sn__id_map *map, double *out_twice);
/* SN__FLOW_NONE when it is not there. */
uint32_t sn__id_map_find(const sn__id_map *map, double id);

#endif
