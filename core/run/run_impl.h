/* SPDX-License-Identifier: Apache-2.0 */
/* Machine, store and plan from inside. */
#ifndef SN_CORE_RUN_RUN_IMPL_H
#define SN_CORE_RUN_RUN_IMPL_H

#include "core/run/machine.h"
#include "core/run/memory.h"
#include "core/run/plan.h"
#include "core/run/store.h"

struct sn_machine {
  sn_topology *topology;
  sn__device **devices;
  uint64_t test_seed;
};

typedef struct sn__stored {
  sn_stored public;
  void *host;         /* its bytes while no device has them */
  sn__buffer *buffer; /* its bytes otherwise */
} sn__stored;

struct sn_store {
  sn__arena names;
  sn__stored *items;
  size_t count, capacity;
  uint64_t seed;
  int64_t step;
};

struct sn_plan {
  sn_graph *graph;
  sn_topology *topology;
  sn__schedule *schedule;
  uint32_t *fetches; /* value indices: asked for, outputs, losses, scalars of the step */
  size_t n_fetches;
  bool training;
  uint32_t finite;    /* value looked at behind each step; 0: none */
  int64_t *capacity;  /* [n_symbols]; -1: not known */
  sn__memory *memory; /* at that capacity; NULL when some is not known */
};

SN_BEGIN_DECLS
/* Index, or -1. */
SN_API int64_t sn__store_index(const sn_store *store, const char *name);
/* Moves a variable to a device of the machine, unless it is there. INVALID when it lives on
 * another one. */
SN_API SN_MUST_USE sn_status sn__store_bind(sn_store *store, size_t i, sn_machine *machine,
                                            int32_t device);

SN_API sn__schedule_options sn__plan_schedule_options(const sn_plan *plan);
/* Memory at a capacity, checked for races. */
SN_API SN_MUST_USE sn_status sn__plan_memory(const sn_plan *plan, const int64_t *capacity,
                                             sn__memory **out_memory);
/* Writes named extents over capacity[symbol]. INVALID for an unknown name or a negative number. */
SN_API SN_MUST_USE sn_status sn__extents_apply(const sn_graph *graph, const sn_extent *extents,
                                               size_t n, int64_t *capacity);
/* The extent that times are estimated with. */
SN_API int64_t sn__plan_extent(const sn_plan *plan, uint32_t symbol);
/* Whether anything in the plan has this symbol in its shape. */
SN_API bool sn__plan_uses_symbol(const sn_plan *plan, uint32_t symbol);
SN_END_DECLS

#endif
