/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated annealing of an assignment under the load objective (internal).
 *
 * All decisions are integers: loads, an energy from a table, acceptance from a table of 2^32 e^-x;
 * so one seed gives one answer on any machine. */
#ifndef SN_PLACEMENT_LOAD_ANNEAL_H
#define SN_PLACEMENT_LOAD_ANNEAL_H

#include "placement/load.h"

typedef struct sn__load_anneal {
  uint64_t evals; /* moves to try */
  uint64_t seed;
  /* Temperatures, in 2^-24 of what a device at the reference load adds to the energy. */
  int64_t hot, cold;
} sn__load_anneal;

/* From `device` [n_classes], which must run and fit, to the best met, written over it. *ns is its
 * largest load before and after. */
SN_MUST_USE sn_status sn__load_anneal_run(const sn__load *load, const sn__load_anneal *how,
                                          int *device, int64_t *ns);

/* Classes of one device put together, by heavy nets, until about `target` blocks are left: what a
 * round of annealing moves as one. */
SN_MUST_USE sn_status sn__load_coarsen(const sn__load *load, const int *device, uint32_t target,
                                       uint64_t seed, uint32_t *block_of, uint32_t *out_n_blocks);

#endif
