/* SPDX-License-Identifier: Apache-2.0 */
/* A random graph with its schedule and memory plan, for what is planned and then checked. */
#ifndef SN_TESTS_CORE_RUN_PLANNED_H
#define SN_TESTS_CORE_RUN_PLANNED_H

#include "tests/core/run/run_ops.h"

typedef struct planned {
  sn_topology *topology;
  random_graph *r;
  sn__schedule *s;
  sn__memory *m;
  int64_t capacity[1];
  uint32_t fetches[8];
  sn__schedule_options options;
} planned;

static planned plan_random(uint64_t seed, int devices, int nodes) {
  static const char *const lists[] = {"cpu:0", "cpu*2", "cpu*3", "cpu*4"};
  planned p = {.topology = make_topology(lists[devices - 1])};
  p.r = random_graph_make(seed, devices, nodes);
  p.capacity[0] = 1 + (int64_t)(seed * 37 % 300);
  for (int i = 0; i < p.r->n_fetches; i++)
    p.fetches[i] = p.r->fetches[i].index;
  return p;
}

static void plan_now(planned *p) {
  p->options = (sn__schedule_options){p->fetches, (size_t)p->r->n_fetches, true};
  ck_sn_ok(sn__schedule_build(p->r->g, p->topology, p->capacity, &p->options, &p->s));
  ck_sn_ok(sn__memory_build(p->r->g, p->s, p->capacity, &p->options, &p->m));
}

static void plan_free(planned *p) {
  sn__memory_free(p->m);
  sn__schedule_free(p->s);
  random_graph_free(p->r);
  sn_topology_free(p->topology);
}

#endif
