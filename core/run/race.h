/* SPDX-License-Identifier: Apache-2.0 */
/* The race checker (internal): replays a schedule with vector clocks over byte ranges.
 *
 * It takes nothing on trust but the queues' orders and the waits: it works the clocks out anew and
 * looks at every pair of accesses to overlapping bytes, one of them a write. Such a pair must be
 * ordered; and between the write of a value and its readers no other value may be written over it,
 * ordered or not. A schedule that waits for itself is refused too. */
#ifndef SN_CORE_RUN_RACE_H
#define SN_CORE_RUN_RACE_H

#include "core/run/memory.h"

/* What a range of bytes belongs to. */
typedef enum sn__space_kind { SN__SPACE_ARENA, SN__SPACE_VARIABLE, SN__SPACE_INPUT } sn__space_kind;

typedef struct sn__access {
  uint32_t space; /* accesses to different spaces never meet */
  uint32_t task;
  uint64_t begin, end; /* bytes within the space */
  uint32_t value;      /* storage value read or written; 0: a workspace */
  uint32_t writer;     /* reads: task + 1 that wrote it; 0: it was there before the step */
  bool write;
  bool in_place; /* a write that may cover exactly what its own task reads */
} sn__access;

typedef struct sn__accesses {
  sn__access *items;
  size_t count, capacity;
  uint32_t n_spaces;
} sn__accesses;

SN_BEGIN_DECLS

/* Every access of a step: blocks and workspaces by arena, variables, inputs. Free with
 * sn__free(accesses.items). */
SN_API SN_MUST_USE sn_status sn__accesses_collect(const sn_graph *graph,
                                                  const sn__schedule *schedule,
                                                  const sn__memory *memory, const int64_t *capacity,
                                                  const sn__schedule_options *options,
                                                  sn__accesses *out_accesses);

/* INTERNAL, naming both nodes, their devices, the bytes and the values. Sorts the accesses. */
SN_API SN_MUST_USE sn_status sn__race_check(const sn_graph *graph, const sn_topology *topology,
                                            const sn__schedule *schedule, sn__accesses *accesses);

/* Both in one. */
SN_API SN_MUST_USE sn_status sn__race_check_plan(const sn_graph *graph, const sn_topology *topology,
                                                 const sn__schedule *schedule,
                                                 const sn__memory *memory, const int64_t *capacity,
                                                 const sn__schedule_options *options);

SN_END_DECLS

#endif
