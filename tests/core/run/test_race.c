/* SPDX-License-Identifier: Apache-2.0 */
/* The race checker against an oracle that knows nothing of vector clocks: reachability between all
 * pairs of tasks, then all pairs of accesses, one by one. */
#include "tests/core/run/planned.h"

static sn_status check(const planned *p) {
  return sn__race_check_plan(p->r->g, p->topology, p->s, p->m, p->capacity, &p->options);
}

/* ---- the oracle ---------------------------------------------------------------------------- */

typedef struct touch {
  int task, value, writer; /* writer -1: before the step; value 0: a workspace */
  long space;
  size_t begin, end;
  bool write, over_input;
} touch;

typedef struct oracle {
  const planned *p;
  int n; /* tasks and, last, the host */
  bool *reach;
  touch *touches;
  int n_touches;
} oracle;

/* Where a value's bytes are, found by hand: views and committed outputs have those of their input.
 */
static uint32_t root_of(const sn_graph *g, uint32_t v) {
  const sn__node *n = &g->nodes[g->values[v].node];
  return n->op == &op_view || n->op == &op_assign ? root_of(g, n->in[0]) : v;
}

static int writer_of(const oracle *o, uint32_t v) {
  const sn_graph *g = o->p->r->g;
  while (g->nodes[g->values[v].node].op == &op_view)
    v = g->nodes[g->values[v].node].in[0];
  return (int)o->p->s->task_of[g->values[v].node] - 1;
}

static void touch_value(oracle *o, int task, uint32_t v, bool write, bool over_input) {
  const sn_graph *g = o->p->r->g;
  uint32_t root = root_of(g, v);
  int64_t rows = g->values[root].kind == SN_VALUE_VARIABLE ? 1 : o->p->capacity[0];
  int64_t width = g->values[root].shape.rank == 2 ? g->values[root].shape.dims[1] : 1;
  if (g->values[root].kind == SN_VALUE_VARIABLE) width = g->values[root].shape.dims[0];
  if (g->values[root].shape.rank == 1 && g->values[root].kind != SN_VALUE_VARIABLE) {
    rows = 1; /* computed from a variable: fixed */
    width = g->values[root].shape.dims[0];
  }
  touch t = {.task = task,
             .value = (int)root,
             .writer = write ? task : writer_of(o, v),
             .space = -(long)root,
             .end = (size_t)(rows * width) * sizeof(float),
             .write = write,
             .over_input = over_input};
  int32_t block = o->p->m->block_of[root];
  if (block >= 0) {
    t.space = o->p->m->blocks[block].arena;
    t.begin = o->p->m->blocks[block].offset;
    t.end += t.begin;
  }
  o->touches[o->n_touches++] = t;
}

static void list_touches(oracle *o) {
  const sn_graph *g = o->p->r->g;
  const sn__schedule *s = o->p->s;
  o->touches = calloc((size_t)o->n * 24 + 64, sizeof *o->touches);
  for (int t = 0; t < o->n - 1; t++) {
    const sn__node *n = &g->nodes[s->tasks[t].node];
    for (uint32_t i = 0; i < n->n_in; i++)
      touch_value(o, t, n->in[i], false, false);
    for (uint32_t k = 0; k < n->n_out; k++) {
      bool over = n->op == &op_assign;
      if (n->op->inplace[k] != 0)
        over = o->p->m->block_of[n->out[k]] == o->p->m->block_of[root_of(g, n->in[0])];
      touch_value(o, t, n->out[k], true, over);
    }
    int32_t w = o->p->m->workspace[t];
    if (w < 0) continue;
    const sn__block *b = &o->p->m->blocks[w];
    size_t bytes = o->p->m->workspace_bytes[t];
    o->touches[o->n_touches++] = (touch){.task = t,
                                         .writer = t,
                                         .space = b->arena,
                                         .begin = b->offset,
                                         .end = b->offset + bytes,
                                         .write = true};
  }
  for (int i = 0; i < o->p->r->n_fetches; i++)
    touch_value(o, o->n - 1, o->p->fetches[i], false, false);
}

/* Depth first from every task along "the next of my queue" and "who waits for me". */
static void walk(oracle *o, int from, int at) {
  const sn__schedule *s = o->p->s;
  for (int b = 0; b < o->n - 1; b++) {
    const sn__task *t = &s->tasks[b];
    const sn__task *a = &s->tasks[at];
    bool edge = t->queue == a->queue && t->position == a->position + 1;
    for (uint32_t w = 0; w < t->n_waits; w++)
      edge |= s->waits[t->first_wait + w].queue == a->queue &&
              s->waits[t->first_wait + w].position == a->position;
    if (!edge || o->reach[from * o->n + b]) continue;
    o->reach[from * o->n + b] = true;
    walk(o, from, b);
  }
}

static bool pair_ok(const oracle *o, const touch *a, const touch *b) {
#define REACH(x, y) (o->reach[(x)*o->n + (y)])
  if (a->space != b->space || a->begin >= b->end || b->begin >= a->end) return true;
  if (!a->write && !b->write) return true;
  if (a->task == b->task) {
    const touch *w = a->write ? a : b;
    return a->write != b->write && w->over_input && a->begin == b->begin && a->end == b->end;
  }
  if (!REACH(a->task, b->task) && !REACH(b->task, a->task)) return false;
  if (a->write && b->write) return true;
  const touch *w = a->write ? a : b, *r = a->write ? b : a;
  if (r->writer == w->task && r->value == w->value) return REACH(w->task, r->task);
  if (REACH(r->task, w->task)) return true;
  return r->writer >= 0 && (r->writer == w->task || REACH(w->task, r->writer));
#undef REACH
}

static bool oracle_says_fine(const planned *p) {
  oracle o = {.p = p, .n = (int)p->s->n_tasks + 1};
  o.reach = calloc((size_t)o.n * (size_t)o.n, sizeof *o.reach);
  for (int t = 0; t < o.n - 1; t++) {
    walk(&o, t, t);
    o.reach[t * o.n + o.n - 1] = true; /* the host comes last */
  }
  list_touches(&o);
  bool fine = true;
  for (int i = 0; fine && i < o.n_touches; i++)
    for (int j = 0; fine && j < i; j++)
      fine = pair_ok(&o, &o.touches[i], &o.touches[j]);
  free(o.reach);
  free(o.touches);
  return fine;
}

/* ---- tests --------------------------------------------------------------------------------- */

START_TEST(random_plans_pass_both) {
  for (uint64_t seed = 1; seed <= 520; seed++) {
    planned p = plan_random(seed + 1000, 1 + (int)(seed % 4), 6 + (int)(seed % 30));
    plan_now(&p);
    ck_sn_ok(check(&p));
    if (seed % 4 == 0) ck_assert_msg(oracle_says_fine(&p), "seed %d", (int)seed);
    plan_free(&p);
  }
}
END_TEST

/* Takes wait w out of the task that has it; gives back the task. */
static sn__task *remove_wait(sn__schedule *s, uint32_t w) {
  for (uint32_t i = 0; i < s->n_tasks; i++) {
    sn__task *t = &s->tasks[i];
    if (w < t->first_wait || w >= t->first_wait + t->n_waits) continue;
    sn__queue_point taken = s->waits[w];
    uint32_t last = t->first_wait + t->n_waits - 1;
    s->waits[w] = s->waits[last];
    s->waits[last] = taken;
    t->n_waits--;
    return t;
  }
  return NULL;
}

START_TEST(every_wait_removed) {
  int plans = 0, removals = 0, caught = 0;
  for (uint64_t seed = 1; plans < 50; seed++) {
    planned p = plan_random(seed + 3000, 2 + (int)(seed % 3), 8 + (int)(seed % 25));
    plan_now(&p);
    plans += p.s->n_waits > 0;
    for (uint32_t w = 0; w < p.s->n_waits; w++) {
      sn__task *t = remove_wait(p.s, w);
      ck_assert_ptr_nonnull(t);
      sn_status status = check(&p);
      bool fine = oracle_says_fine(&p);
      ck_assert_msg((status == SN_OK) == fine, "seed %d, wait %u: oracle %s, checker: %s",
                    (int)seed, w, fine ? "passes it" : "refuses it", sn_status_message(status));
      caught += status != SN_OK;
      removals++;
      sn_status_free(status);
      t->n_waits++;
    }
    plan_free(&p);
  }
  printf("%d waits removed from %d plans, %d caught, oracle and checker agree on all\n", removals,
         plans, caught);
  ck_assert_int_gt(removals, 300);
  ck_assert_int_gt(caught, removals * 9 / 10);
}
END_TEST

/* Blocks moved over one another: wrong although ordered. */
START_TEST(moved_blocks_are_caught) {
  int moved = 0, caught = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    planned p = plan_random(seed + 5000, 1 + (int)(seed % 3), 10);
    plan_now(&p);
    dice d = {seed, 0};
    for (int k = 0; k < 6 && p.m->n_blocks > 1; k++) {
      sn__block *a = &p.m->blocks[roll(&d, p.m->n_blocks)];
      const sn__block *b = &p.m->blocks[roll(&d, p.m->n_blocks)];
      if (a == b || a->arena != b->arena) continue;
      size_t was = a->offset;
      a->offset = b->offset;
      sn_status status = check(&p);
      bool fine = oracle_says_fine(&p);
      ck_assert_msg((status == SN_OK) == fine, "seed %d: oracle %s, checker: %s", (int)seed,
                    fine ? "passes it" : "refuses it", sn_status_message(status));
      moved++;
      caught += status != SN_OK;
      sn_status_free(status);
      a->offset = was;
    }
    plan_free(&p);
  }
  ck_assert_int_gt(moved, 100);
  ck_assert_int_gt(caught, 30);
}
END_TEST

START_TEST(message_says_who_and_where) {
  sn_topology *t = make_topology("cpu*2");
  sn_graph *g;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 4), w = sn_variable(g, "w", SN_F32, SN_SHAPE(4));
  all_on_one(g);
  sn_value far = sn__node_add(g, &op_copy, NULL, &w, 1, NULL, NULL);
  place_on(g, far, 1);
  sn_value loss = sn__node_add(g, &op_total, NULL, &x, 1, NULL, NULL);
  place_on(g, loss, 0);
  place_on(g, sn__node_add(g, &op_assign, NULL, (sn_value[]){w, loss}, 2, NULL, NULL), 0);
  int64_t capacity[1] = {2};
  sn__schedule_options options = {&far.index, 1, true};
  sn__schedule *s;
  sn__memory *m;
  ck_sn_ok(sn__schedule_build(g, t, capacity, &options, &s));
  ck_sn_ok(sn__memory_build(g, s, capacity, &options, &m));
  ck_sn_ok(sn__race_check_plan(g, t, s, m, capacity, &options));
  ck_assert_uint_eq(s->n_waits, 1); /* the commit waits for the copy */
  sn__task *late = remove_wait(s, 0);
  ck_sn_fails(sn__race_check_plan(g, t, s, m, capacity, &options), SN_CODE_INTERNAL,
              "'copy' on cpu:1 reads and 'assign' on cpu:0 writes bytes 0 to 16 of w");
  late->n_waits = 1;
  /* A schedule whose queues wait for one another. */
  sn__task *copy = &s->tasks[s->task_of[g->values[far.index].node] - 1];
  copy->first_wait = late->first_wait;
  copy->n_waits = 1;
  s->waits[late->first_wait] = (sn__queue_point){late->queue, late->position};
  ck_sn_fails(sn__race_check_plan(g, t, s, m, capacity, &options), SN_CODE_INTERNAL, "deadlock");
  sn__memory_free(m);
  sn__schedule_free(s);
  sn_graph_free(g);
  sn_topology_free(t);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("race");
  TCase *t = tcase_create("race");
  tcase_set_timeout(t, 200);
  tcase_add_test(t, random_plans_pass_both);
  tcase_add_test(t, every_wait_removed);
  tcase_add_test(t, moved_blocks_are_caught);
  tcase_add_test(t, message_says_who_and_where);
  suite_add_tcase(s, t);
  return s;
}
SN_TEST_MAIN(suite)
