/* SPDX-License-Identifier: Apache-2.0 */
/* The store: variables and optimizer slots by name, and the step counter.
 *
 * What a training run is made of, outside any arena: train, eval and predict plans share one store.
 * A variable starts on the host; the first session that uses it moves it to its home device.
 * Reading and writing from the host is legal while no session's step on this store is in flight. */
#ifndef SN_CORE_RUN_STORE_H
#define SN_CORE_RUN_STORE_H

#include "core/graph.h"

SN_BEGIN_DECLS

typedef struct sn_store sn_store;

typedef struct sn_stored {
  const char *name;
  sn_dtype dtype;
  sn_shape shape; /* fixed */
  size_t bytes;
  const char *owner; /* of a slot: the variable it belongs to; NULL for the model's own variables */
  const char *role;  /* of a slot: "adam.m", "ema"...; NULL otherwise */
  bool frozen;       /* no optimizer touches it */
  const char *device; /* where it lives: "cpu:0"; NULL while it is on the host alone */
} sn_stored;

/* All variables and slots of a graph, at their start: the same for a seed whatever the placement.
 * The graph may be freed afterwards. */
SN_API SN_MUST_USE sn_status sn_store_create(const sn_graph *graph, uint64_t seed,
                                             sn_store **out_store);
/* Adds what this graph has and the store lacks. INVALID when a name has another shape or type. */
SN_API SN_MUST_USE sn_status sn_store_extend(sn_store *store, const sn_graph *graph);
SN_API void sn_store_free(sn_store *store);

/* In the order in which the graph made them. Borrowed until the store is extended or freed. */
SN_API size_t sn_store_count(const sn_store *store);
SN_API const sn_stored *sn_store_at(const sn_store *store, size_t i); /* NULL past the end */
SN_API const sn_stored *sn_store_find(const sn_store *store, const char *name); /* NULL if none */

/* The whole tensor, row-major, `bytes` as in sn_stored. NOT_FOUND, or INVALID for other bytes. */
SN_API SN_MUST_USE sn_status sn_store_read(const sn_store *store, const char *name, void *out_data,
                                           size_t bytes);
SN_API SN_MUST_USE sn_status sn_store_write(sn_store *store, const char *name, const void *data,
                                            size_t bytes);

/* Updates committed so far; sessions advance it. */
SN_API int64_t sn_store_step(const sn_store *store);
SN_API void sn_store_set_step(sn_store *store, int64_t step);
SN_API uint64_t sn_store_seed(const sn_store *store);

SN_END_DECLS

#endif
