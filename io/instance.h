/* SPDX-License-Identifier: Apache-2.0 */
/* Placement and memory problems from files, and their answers: what `sennit place` does.
 *
 * Five forms are read; the content says which, not the name.
 *
 *  dnn-partitioning  JSON {maxSizePerFPGA, maxFPGAs, maxCPUs, nodes, edges}: largest load (the time
 *                    between two samples when many are in flight). Files made for that project's
 *                    latency objective have the same form and are solved for the load, too.
 *  doppler           text: number of nodes, ids of inputs, sources and sinks of edges, then a line
 *                    "compute,comm" a node that is no input; 1e-10 time each. Makespan.
 *  pipedream         text: "nodeN -- description -- forward_compute_time=..., ...", then edges
 *                    "\tnodeA -- nodeB". Largest load of forward and backward together.
 *  minimalloc        CSV id,lower,upper,size: offsets for blocks that live for a while. Bytes.
 *  sennit            JSON {"format": "sennit-placement", ...}, our own, below.
 *
 * The form of our own, keys in any order, others refused:
 *
 *    {"format": "sennit-placement", "version": 1,
 *     "objective": "makespan",              or "load"
 *     "unit": "ms",                         what times are called in reports; any word
 *     "copies": "queue",                    copies to one device follow one another; or "beside"
 *     "devices": [{"name": "gpu:0", "memory": 1000, "pays": true}],
 *     "classes": [{"id": 0, "bytes": 10, "device": "gpu:0"}],
 *     "tasks":   [{"id": 0, "class": 0, "time": 5, "backward": false}],
 *     "values":  [{"from": 0, "copy": 2, "bytes": 10, "read_by": [1, 2]}],
 *     "orders":  [[0, 1]],
 *     "note": "anything"}
 *
 * devices: `memory` in bytes, 0 or left out: no limit; `pays` (load only, default true): is busy
 * while tensors are copied in and out. classes: what moves as one; may be left out, then a task
 * without `class` is a class of its own; `bytes` are there for the whole step; `device` pins.
 * tasks: `time` is a number, or one a device in the order of devices, null where it cannot run;
 * `backward` (load only): follows its class in contiguous splits. values: made by a task, read by
 * tasks; `copy` is the time to copy it to another device. orders: the first before the second.
 * `id`s are whole numbers, unique. Times may have decimals: they are kept to nine of them, fewer
 * only where their sum would be too large to count. */
#ifndef SN_IO_INSTANCE_H
#define SN_IO_INSTANCE_H

#include "core/status.h"

SN_BEGIN_DECLS

typedef struct sn_instance sn_instance;

typedef struct sn_instance_facts {
  const char *format;    /* "dnn-partitioning", "doppler", ... */
  const char *objective; /* "load", "makespan" or "memory" */
  const char *unit;      /* of the objective: "ms", "bytes", ... */
  int n_devices;
  int64_t n_nodes, n_edges; /* as the file has them */
  size_t n_notes;           /* what was assumed where the file does not say */
  const char *const *notes;
} sn_instance_facts;

/* `devices` is for the forms that do not say how many there are (doppler, pipedream); 0: four.
 * NOT_FOUND, IO. DATA, naming the file, the place in it and what is wrong: not one of the forms, a
 * number that is missing, negative, not finite or too large, an id given twice or not at all, a
 * cycle, a node that no device can run. */
SN_API SN_MUST_USE sn_status sn_instance_open(const char *path, int devices,
                                              sn_instance **out_instance);
SN_API void sn_instance_free(sn_instance *instance);
/* Borrowed until the instance is freed. */
SN_API const sn_instance_facts *sn_instance_facts_of(const sn_instance *instance);

typedef struct sn_instance_options {
  size_t struct_size; /* sizeof(sn_instance_options) */
  bool contiguous;    /* load: the best split into slices of the graph's order, proved so */
  bool certify;       /* search until the answer is proved to be the best, for small problems */
  int64_t evals;      /* budget of evaluations; 0: the default */
  uint64_t seed;      /* the same seed gives the same answer on any machine */
} sn_instance_options;

typedef struct sn_instance_device {
  const char *name;
  const char *kind;            /* "cpu" or "accelerator"; NULL where the file does not say */
  double load;                 /* busy time, in the unit */
  uint64_t bytes, bytes_limit; /* 0: no limit */
} sn_instance_device;

/* Where a node goes. */
typedef struct sn_instance_place {
  const char *id; /* as in the file */
  int device;     /* -1: memory problems have none */
  int64_t offset; /* memory problems: first byte */
} sn_instance_place;

typedef struct sn_instance_answer {
  double objective, lower_bound; /* in the unit */
  double one_device;             /* everything on the best single device; NAN: fits none */
  bool certified; /* proved to be the best (contiguous: the best contiguous one; makespan: the best
                     in which no device waits while it could work) */
  const char *bound; /* which lower bound it is, in words */
  const char *found; /* how the answer was found, in words */
  int64_t evals;
  int n_devices;
  sn_instance_device *devices;
  size_t n_places;
  sn_instance_place *places;
} sn_instance_answer;

/* `out_answer` is freed with sn_instance_answer_free and borrows from the instance. `options` may
 * be NULL. INVALID: cannot be placed, saying what does not fit, where, and what would help.
 * UNSUPPORTED: too large for what was asked (contiguous, certify), with figures. */
SN_API SN_MUST_USE sn_status sn_instance_solve(const sn_instance *instance,
                                               const sn_instance_options *options,
                                               sn_instance_answer **out_answer);
SN_API void sn_instance_answer_free(sn_instance_answer *answer);

SN_END_DECLS

#endif
