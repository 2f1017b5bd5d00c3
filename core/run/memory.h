/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan (internal): where every value's bytes are while a step runs.
 *
 * A pure function of a graph, its schedule and a capacity (the largest extent of every symbol).
 * Each device has one arena per lane: lane COMPUTE for what its kernels write and their workspaces,
 * lane COPY for what copies bring. Values share a block where a view, or an op row that allows it,
 * writes in place; blocks share bytes where every access of the one ends, by the schedule's own
 * order, before the other is first written. Inputs, variables and constants are outside the arenas,
 * and a committed output is its variable. */
#ifndef SN_CORE_RUN_MEMORY_H
#define SN_CORE_RUN_MEMORY_H

#include "core/run/schedule.h"

enum { SN__BLOCK_ALIGNMENT = 64, SN__NO_BLOCK = -1 };

typedef struct sn__block {
  int32_t arena;  /* device * SN__QUEUE_COUNT + sn__queue, as a schedule's queues */
  uint32_t first; /* the task that writes it first */
  size_t bytes;   /* at capacity, a multiple of SN__BLOCK_ALIGNMENT */
  size_t offset;
  uint32_t value; /* the first value in it; 0: a workspace */
  bool fetched;   /* lives until the end of the step */
} sn__block;

typedef struct sn__arena_plan {
  size_t bytes;        /* what the offsets need */
  size_t live_bytes;   /* the most that must be there at one moment: no plan needs less */
  size_t blocks_bytes; /* all blocks side by side */
} sn__arena_plan;

typedef struct sn__memory {
  sn__arena arena;
  uint32_t n_blocks;
  sn__block *blocks;
  int32_t *block_of;       /* [graph->n_values] of a value kept in an arena, else SN__NO_BLOCK */
  int32_t *workspace;      /* [n_tasks] block, or SN__NO_BLOCK */
  size_t *workspace_bytes; /* [n_tasks] as the op asked */
  uint32_t n_arenas;
  sn__arena_plan *arenas; /* [n_arenas] by sn__block.arena */
} sn__memory;

SN_BEGIN_DECLS

/* `capacity` has a number for every symbol. INVALID when a value's bytes do not fit in memory. */
SN_API SN_MUST_USE sn_status sn__memory_build(const sn_graph *graph, const sn__schedule *schedule,
                                              const int64_t *capacity,
                                              const sn__schedule_options *options,
                                              sn__memory **out_memory);
SN_API void sn__memory_free(sn__memory *memory);
/* Whether output `o` of a node overwrites the input that its op row names. */
SN_API bool sn__memory_in_place(const sn__memory *memory, const sn__node *node, uint32_t o);

/* ---- placing blocks (memory_place.c) ------------------------------------------------------- */

/* Blocks of one arena: sizes, and which may never share bytes. */
typedef struct sn__pack {
  uint32_t n;
  const size_t *bytes;
  const uint32_t *first; /* a number that grows along the schedule; for one of the orders tried */
  const uint32_t *last;
  const uint64_t *conflicts; /* n rows of words_per_row words; bit j of row i */
  size_t words;
  const uint64_t *moments; /* n_moments rows like these: blocks of one row all conflict */
  uint32_t n_moments;
  size_t live_bytes; /* a known lower bound: reaching it ends the search */
  size_t *offsets;   /* out */
} sn__pack;

/* Gives every block an offset; *out_bytes is the end of the highest one. */
SN_API SN_MUST_USE sn_status sn__pack_blocks(sn__pack *pack, size_t *out_bytes);

SN_END_DECLS

#endif
