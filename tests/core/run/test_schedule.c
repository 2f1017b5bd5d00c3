/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule against what it promises, edge by edge, by means that share nothing with it. */
#include "tests/core/run/run_ops.h"

static sn__schedule *schedule_of(const random_graph *r, const sn_topology *t, bool commits) {
  uint32_t fetches[8];
  for (int i = 0; i < r->n_fetches; i++)
    fetches[i] = r->fetches[i].index;
  sn__schedule_options options = {fetches, (size_t)r->n_fetches, commits};
  int64_t extents[1] = {32};
  sn__schedule *s = NULL;
  ck_sn_ok(sn__schedule_build(r->g, t, extents, &options, &s));
  return s;
}

/* What task b stands behind directly: by its queue (w = -1) or by its w-th wait. */
static uint32_t behind_of(const sn__schedule *s, const sn__task *t, int w) {
  uint32_t q = w < 0 ? t->queue : s->waits[t->first_wait + (uint32_t)w].queue;
  uint32_t at = w < 0 ? t->position - 1 : s->waits[t->first_wait + (uint32_t)w].position;
  return s->queue_tasks[s->queue_first[q] + at];
}

/* reach[b * n + a]: b cannot start before a has ended, by queue order and waits alone. Tasks are in
 * an order where that is settled by looking back once. */
static bool *reachability(const sn__schedule *s) {
  size_t n = s->n_tasks;
  bool *reach = calloc(n * n + 1, 1);
  for (uint32_t b = 0; b < n; b++) {
    const sn__task *t = &s->tasks[b];
    for (int w = t->position == 0 ? 0 : -1; w < (int)t->n_waits; w++) {
      uint32_t p = behind_of(s, t, w);
      ck_assert_msg(p < b, "a task waits for a later one");
      bool *row = reach + b * n;
      const bool *before = reach + p * n;
      for (size_t a = 0; a < p; a++)
        row[a] |= before[a];
      row[p] = true;
    }
  }
  return reach;
}

/* Whether what b's wait w says follows from all else that b stands behind. */
static bool implied(const sn__schedule *s, const bool *reach, uint32_t b, int w) {
  const sn__task *t = &s->tasks[b];
  uint32_t for_task = behind_of(s, t, w);
  for (int o = t->position == 0 ? 0 : -1; o < (int)t->n_waits; o++) {
    if (o == w) continue;
    uint32_t p = behind_of(s, t, o);
    if (p == for_task || reach[(size_t)p * s->n_tasks + for_task]) return true;
  }
  return false;
}

static void check_edge(const random_graph *r, const sn__schedule *s, const bool *reach,
                       uint32_t from, uint32_t to) {
  if (!reach[(size_t)to * s->n_tasks + from])
    ck_abort_msg("'%s' may start before '%s' has ended", r->g->nodes[s->tasks[to].node].name,
                 r->g->nodes[s->tasks[from].node].name);
}

START_TEST(order_holds) {
  static const char *const lists[] = {"cpu:0", "cpu*2", "cpu*3", "cpu*4"};
  for (uint64_t seed = 1; seed <= 80; seed++) {
    int devices = 1 + (int)(seed % 4);
    sn_topology *t = make_topology(lists[devices - 1]);
    random_graph *r = random_graph_make(seed, devices, 5 + (int)(seed * 2));
    const sn_graph *g = r->g;
    sn__schedule *s = schedule_of(r, t, seed % 5 != 0);
    bool *reach = reachability(s);
    size_t n = s->n_tasks;
    for (uint32_t b = 0; b < n; b++) {
      const sn__node *node = &g->nodes[s->tasks[b].node];
      bool copy = node->op == &op_copy;
      ck_assert_uint_eq(s->tasks[b].queue, (uint32_t)node->device * 2 + copy);
      ck_assert_int_eq(s->tasks[b].finish_ns - s->tasks[b].start_ns, s->tasks[b].cost_ns);
      for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t behind = sn__value_behind_views(g, node->in[i]);
        uint32_t producer = s->task_of[g->values[behind].node];
        if (producer != 0) check_edge(r, s, reach, producer - 1, b);
        for (uint32_t c = 0; c < n; c++) {
          const sn__node *commit = &g->nodes[s->tasks[c].node];
          if (c != b && commit->op == &op_assign && commit->in[0] == behind)
            check_edge(r, s, reach, b, c);
        }
      }
      for (uint32_t a = 0; a < n; a++)
        if (sn__task_before(s, a, b) != reach[b * n + a])
          ck_abort_msg("seed %d: tasks %u and %u: the clocks say %d", (int)seed, a, b,
                       sn__task_before(s, a, b));
    }
    /* Each wait is needed: without it something is no longer ordered. */
    for (uint32_t b = 0; b < n; b++)
      for (int w = 0; w < (int)s->tasks[b].n_waits; w++)
        if (implied(s, reach, b, w)) ck_abort_msg("task %u: wait %d is implied by others", b, w);
    free(reach);
    sn__schedule_free(s);
    random_graph_free(r);
    sn_topology_free(t);
  }
}
END_TEST

START_TEST(same_graph_same_schedule) {
  sn_topology *t = make_topology("cpu*3");
  random_graph *r = random_graph_make(9, 3, 120);
  sn__schedule *a = schedule_of(r, t, true), *b = schedule_of(r, t, true);
  ck_assert_uint_eq(a->n_tasks, b->n_tasks);
  for (uint32_t i = 0; i < a->n_tasks; i++) {
    ck_assert_uint_eq(a->tasks[i].node, b->tasks[i].node);
    ck_assert_uint_eq(a->tasks[i].position, b->tasks[i].position);
    ck_assert_int_eq(a->tasks[i].start_ns, b->tasks[i].start_ns);
  }
  ck_assert_uint_eq(a->n_waits, b->n_waits);
  ck_assert_mem_eq(a->waits, b->waits, a->n_waits * sizeof *a->waits);
  sn__schedule_free(a);
  sn__schedule_free(b);
  random_graph_free(r);
  sn_topology_free(t);
}
END_TEST

START_TEST(prunes_what_nobody_needs) {
  sn_topology *t = make_topology("cpu:0");
  sn_graph *g;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 3), w = sn_variable(g, "w", SN_F32, SN_SHAPE(3));
  sn_value a = sn__node_add(g, &op_mix, NULL, &x, 1, NULL, NULL);
  sn_value b = sn__node_add(g, &op_mix, NULL, &a, 1, NULL, NULL);
  sn_value c = sn__node_add(g, &op_assign, NULL, (sn_value[]){w, b}, 2, NULL, NULL);
  ck_assert(sn_value_ok(c));
  all_on_one(g);
  int64_t extents[1] = {8};
  sn__schedule_options eval = {&a.index, 1, false}, train = {NULL, 0, true};
  sn__schedule *s;
  ck_sn_ok(sn__schedule_build(g, t, extents, &eval, &s));
  ck_assert_uint_eq(s->n_tasks, 1);
  ck_assert(!s->needed[g->values[w.index].node]);
  sn__schedule_free(s);
  ck_sn_ok(sn__schedule_build(g, t, extents, &train, &s));
  ck_assert_uint_eq(s->n_tasks, 3);
  sn__schedule_free(s);
  sn_value w2 = sn_variable(g, "w2", SN_F32, SN_SHAPE(3));
  sn_value d = sn__node_add(g, &op_assign, NULL, (sn_value[]){w2, b}, 2, NULL, NULL);
  all_on_one(g);
  g->nodes[g->values[d.index].node].in[0] = w.index; /* what the graph itself refuses */
  ck_sn_fails(sn__schedule_build(g, t, extents, &train, &s), SN_CODE_INTERNAL,
              "variable 'w' is committed by 'assign' and by 'assign_1'");
  g->nodes[g->values[a.index].node].device = -1;
  ck_sn_fails(sn__schedule_build(g, t, extents, &eval, &s), SN_CODE_INTERNAL, "has no device");
  sn_graph_free(g);
  sn_topology_free(t);
}
END_TEST

/* Two chains of unequal length that meet: the long one's copy must not wait behind the short one.
 */
START_TEST(longest_path_first) {
  sn_topology *t = make_topology("cpu*2");
  sn_graph *g;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 64);
  sn_value fork[4], end[4];
  for (int i = 0; i < 4; i++)
    fork[i] = sn__node_add(g, &op_mix, NULL, &x, 1, NULL, NULL);
  all_on_one(g);
  for (int i = 0; i < 4; i++) {
    end[i] = sn__node_add(g, &op_copy, NULL, &fork[i], 1, NULL, NULL);
    place_on(g, end[i], 1);
    for (int k = 0; k < 1 + (i == 2) * 6; k++) {
      end[i] = sn__node_add(g, &op_mix, NULL, &end[i], 1, NULL, NULL);
      place_on(g, end[i], 1);
    }
  }
  uint32_t fetches[4] = {end[0].index, end[1].index, end[2].index, end[3].index};
  sn__schedule_options options = {fetches, 4, false};
  int64_t extents[1] = {64};
  sn__schedule *s;
  ck_sn_ok(sn__schedule_build(g, t, extents, &options, &s));
  uint32_t task = s->task_of[g->values[fork[2].index].node] - 1;
  ck_assert_uint_eq(s->tasks[task].position, 0);
  sn__schedule_free(s);
  sn_graph_free(g);
  sn_topology_free(t);
}
END_TEST

/* When everything that a task reads, or that reads what it writes, has ended. */
static int64_t ready_at(const sn_graph *g, const sn__schedule *s, uint32_t task) {
  const sn__node *n = &g->nodes[s->tasks[task].node];
  int64_t at = 0;
  for (uint32_t i = 0; i < n->n_in; i++) {
    uint32_t p = s->task_of[g->values[sn__value_behind_views(g, n->in[i])].node];
    if (p != 0 && s->tasks[p - 1].finish_ns > at) at = s->tasks[p - 1].finish_ns;
  }
  for (uint32_t r = 0; n->op == &op_assign && r < s->n_tasks; r++) {
    const sn__node *reader = &g->nodes[s->tasks[r].node];
    for (uint32_t i = 0; r != task && i < reader->n_in; i++)
      if (sn__value_behind_views(g, reader->in[i]) == n->in[0] && s->tasks[r].finish_ns > at)
        at = s->tasks[r].finish_ns;
  }
  return at;
}

/* Nothing starts while something of its queue with a larger order is ready; copies have no order
 * here. The queues that come of it, given as a strict order, come again. */
START_TEST(order_given) {
  static const char *const lists[] = {"cpu:0", "cpu*2", "cpu*3", "cpu*4"};
  for (uint64_t seed = 1; seed <= 40; seed++) {
    int devices = 1 + (int)(seed % 4);
    sn_topology *t = make_topology(lists[devices - 1]);
    random_graph *r = random_graph_make(seed, devices, 5 + (int)(seed * 2));
    sn_graph *g = r->g;
    for (uint32_t i = 1; i < g->n_nodes; i++)
      if (g->nodes[i].op != &op_copy)
        g->nodes[i].order = 1 + (int64_t)sn__rng_below(seed, 77, i, 50);
    sn__schedule *longest = schedule_of(r, t, true);
    g->order_rule = SN_ORDER_PRIORITY;
    sn__schedule *s = schedule_of(r, t, true);
    ck_assert_uint_eq(longest->n_tasks, s->n_tasks);
    sn__schedule_free(longest);
    for (uint32_t b = 0; b < s->n_tasks; b++)
      for (uint32_t a = 0; a < s->n_tasks; a++) {
        const sn__task *x = &s->tasks[a], *y = &s->tasks[b];
        if (x->queue != y->queue || x->queue % 2 == 1 || x->position >= y->position) continue;
        if (g->nodes[x->node].order >= g->nodes[y->node].order) continue;
        ck_assert_int_gt(ready_at(g, s, b), x->start_ns);
      }
    g->order_rule = SN_ORDER_STRICT;
    for (uint32_t i = 0; i < s->n_tasks; i++)
      g->nodes[s->tasks[i].node].order = 7 * (int64_t)s->tasks[i].position - 1000;
    sn__schedule *strict = schedule_of(r, t, true);
    for (uint32_t i = 0; i < s->n_tasks; i++) {
      const sn__task *again = &strict->tasks[strict->task_of[s->tasks[i].node] - 1];
      ck_assert_uint_eq(again->queue, s->tasks[i].queue);
      ck_assert_uint_eq(again->position, s->tasks[i].position);
      ck_assert_int_le(again->start_ns, s->tasks[i].start_ns);
    }
    sn_graph *clone = NULL;
    ck_sn_ok(sn__graph_clone(g, &clone));
    ck_assert_int_eq(clone->order_rule, SN_ORDER_STRICT);
    for (uint32_t i = 1; i < g->n_nodes; i++)
      ck_assert_int_eq(clone->nodes[i].order, g->nodes[i].order);
    sn_graph_free(clone);
    sn__schedule_free(strict);
    sn__schedule_free(s);
    random_graph_free(r);
    sn_topology_free(t);
  }
}
END_TEST

/* a -> b -> c with c ordered before a. */
START_TEST(contradictory_order) {
  sn_topology *t = make_topology("cpu*2");
  sn_graph *g;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 64);
  sn_value a = sn__node_add(g, &op_mix, NULL, &x, 1, "a", NULL);
  sn_value b = sn__node_add(g, &op_mix, NULL, &a, 1, "b", NULL);
  sn_value c = sn__node_add(g, &op_mix, NULL, &b, 1, "c", NULL);
  all_on_one(g);
  sn__node *nodes[3] = {&g->nodes[g->values[a.index].node], &g->nodes[g->values[b.index].node],
                        &g->nodes[g->values[c.index].node]};
  sn__schedule_options options = {&c.index, 1, false};
  int64_t extents[1] = {64};
  sn__schedule *s;
  g->order_rule = SN_ORDER_STRICT;
  nodes[0]->order = 2;
  nodes[2]->order = 1; /* b has none */
  ck_sn_fails(sn__schedule_build(g, t, extents, &options, &s), SN_CODE_INVALID,
              "the order given for cpu:0 has 'c' before 'a', but 'c' waits for 'a'");
  nodes[2]->order = 3;
  ck_sn_ok(sn__schedule_build(g, t, extents, &options, &s));
  sn__schedule_free(s);
  sn_graph_free(g);
  sn_topology_free(t);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("schedule");
  TCase *t = tcase_create("schedule");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, order_holds);
  tcase_add_test(t, same_graph_same_schedule);
  tcase_add_test(t, prunes_what_nobody_needs);
  tcase_add_test(t, longest_path_first);
  tcase_add_test(t, order_given);
  tcase_add_test(t, contradictory_order);
  suite_add_tcase(s, t);
  return s;
}
SN_TEST_MAIN(suite)
