/* SPDX-License-Identifier: Apache-2.0 */
/* What placement, schedule, memory plan and session all ask (internal): where a value's bytes are,
 * how many there are, what has to run, and what it costs. One answer for all, so that a predicted
 * step and the schedule that runs cannot differ. */
#ifndef SN_CORE_RUN_VALUES_H
#define SN_CORE_RUN_VALUES_H

#include "core/device/desc.h"
#include "core/graph_impl.h"

SN_BEGIN_DECLS

/* The value whose producer wrote what this one reads: itself, or the one behind its views. */
SN_API uint32_t sn__value_behind_views(const sn_graph *graph, uint32_t value);
/* The value whose storage this one is: behind views, and a committed output's variable. */
SN_API uint32_t sn__value_storage(const sn_graph *graph, uint32_t value);
/* Bytes of a value at these extents; false on overflow. */
SN_API SN_MUST_USE bool sn__value_bytes(const sn_graph *graph, uint32_t value,
                                        const int64_t *extents, size_t *out_bytes);

/* The extent that times are estimated with when nobody says better. */
SN_API int64_t sn__usual_extent(const sn__symbol *symbol);

/* Marks the nodes (sources and views included) that `fetches` (values) come from, and with
 * `commits` whatever writes variables. needed: [graph->n_nodes], the caller's. */
SN_API SN_MUST_USE sn_status sn__mark_needed(const sn_graph *graph, const uint32_t *fetches,
                                             size_t n_fetches, bool commits, bool *needed);

/* The work of a node: its op's row, or the bytes it moves where the row has none. */
SN_API SN_MUST_USE sn_status sn__node_work(const sn_graph *graph, const int64_t *extents,
                                           uint32_t node, sn__cost *out_work);
/* How long a device takes for some work, in whole ns: from 1 to some hours. */
SN_API int64_t sn__work_ns(const sn__cost *work, const sn_device_desc *device);
/* How long a copy takes over its link, likewise. */
SN_API int64_t sn__copy_ns(const sn_topology *topology, int from, int to, uint64_t bytes);
/* What a node that is no copy costs on a device: measured where the topology's profile reaches,
 * else its work there; 0 for sources and views. out_source may be NULL. */
SN_API SN_MUST_USE sn_status sn__node_device_ns(const sn_graph *graph, const sn_topology *topology,
                                                const int64_t *extents, uint32_t node, int device,
                                                int64_t *out_ns, sn_cost_source *out_source);
/* What a placed node costs: on its device, or over a copy's link. */
SN_API SN_MUST_USE sn_status sn__node_cost_ns(const sn_graph *graph, const sn_topology *topology,
                                              const int64_t *extents, uint32_t node,
                                              int64_t *out_ns);
/* The same, and where the figure comes from. */
SN_API SN_MUST_USE sn_status sn__node_cost(const sn_graph *graph, const sn_topology *topology,
                                           const int64_t *extents, uint32_t node, int64_t *out_ns,
                                           sn_cost_source *out_source);
/* What a step takes beside its nodes, on the host: 0 unless it was measured. */
SN_API int64_t sn__step_cost_ns(const sn_topology *topology);

/* ---- how a profile names things ------------------------------------------------------------- */

/* "f32[*,64] f32[64,128] > f32[*,128]": the node's shapes with * for what a batch brings. */
SN_API void sn__profile_shapes(const sn_graph *graph, uint32_t node,
                               char out[SN_PROFILE_TEXT_SIZE]);
/* "cpu/1", "cpu/1 cpu/1". */
SN_API void sn__profile_device(const sn_device_desc *device, char out[SN_PROFILE_TEXT_SIZE]);
SN_API void sn__profile_link(const sn_topology *topology, int from, int to,
                             char out[SN_PROFILE_TEXT_SIZE]);
/* What a profile calls the work of a node on a device, ns without the launch. */
SN_API double sn__profile_work(const sn__cost *work, const sn_device_desc *device);

#define SN__PROFILE_COPY "copy"
#define SN__PROFILE_STEP "(step)"

SN_END_DECLS

#endif
