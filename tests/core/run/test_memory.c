/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: nothing overlaps that lives at once, and little is wasted. */
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

/* Memory is compared with live bytes over 200 random graphs; the race checker passes each. */
START_TEST(little_is_wasted) {
  double sum = 0, worst = 0;
  size_t arenas = 0;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    planned p = plan_random(seed, 1 + (int)(seed % 4), 10 + (int)(seed % 97));
    plan_now(&p);
    ck_sn_ok(sn__race_check_plan(p.r->g, p.topology, p.s, p.m, p.capacity, &p.options));
    size_t bytes = 0, live = 0;
    for (uint32_t a = 0; a < p.m->n_arenas; a++) {
      const sn__arena_plan *plan = &p.m->arenas[a];
      ck_assert_uint_ge(plan->bytes, plan->live_bytes);
      ck_assert_uint_le(plan->bytes, plan->blocks_bytes);
      bytes += plan->bytes;
      live += plan->live_bytes;
    }
    if (live > 0) {
      double ratio = (double)bytes / (double)live;
      sum += ratio;
      worst = ratio > worst ? ratio : worst;
      arenas++;
    }
    plan_free(&p);
  }
  printf("arena / live bytes over %zu graphs: %.4f on average, %.4f at worst\n", arenas,
         sum / (double)arenas, worst);
  ck_assert_double_le(sum / (double)arenas, 1.10);
}
END_TEST

START_TEST(in_place_and_views) {
  sn_topology *t = make_topology("cpu:0");
  sn_graph *g;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 16), w = sn_variable(g, "w", SN_F32, SN_SHAPE(16));
  sn_value a = sn__node_add(g, &op_mix, NULL, &x, 1, "a", NULL); /* not over an input */
  sn_value v = sn__node_add(g, &op_view, NULL, &a, 1, "v", NULL);
  sn_value b = sn__node_add(g, &op_mix, NULL, &v, 1, "b", NULL); /* a dies here: in place */
  sn_value c = sn__node_add(g, &op_mix, NULL, &b, 1, "c", NULL); /* b is read again below */
  sn_value d = sn__node_add(g, &op_mix, NULL, (sn_value[]){c, b}, 2, "d", NULL);
  sn_value e =
      sn__node_add(g, &op_mix, NULL, (sn_value[]){d, d}, 2, "e", NULL); /* reads it twice */
  sn_value f = sn__node_add(g, &op_mix, NULL, (sn_value[]){w, e}, 2, "f", NULL); /* a variable */
  sn_value h = sn__node_add(g, &op_mix, NULL, &e, 1, "h", NULL);                 /* e is fetched */
  ck_sn_ok(sn_graph_status(g));
  all_on_one(g);
  uint32_t fetches[] = {e.index, f.index, h.index};
  sn__schedule_options options = {fetches, 3, false};
  int64_t capacity[1] = {8};
  sn__schedule *s;
  sn__memory *m;
  ck_sn_ok(sn__schedule_build(g, t, capacity, &options, &s));
  ck_sn_ok(sn__memory_build(g, s, capacity, &options, &m));
  ck_assert_int_eq(m->block_of[x.index], SN__NO_BLOCK);
  ck_assert_int_eq(m->block_of[w.index], SN__NO_BLOCK);
  ck_assert_int_ne(m->block_of[a.index], SN__NO_BLOCK);
  ck_assert_int_eq(m->block_of[v.index], m->block_of[a.index]);
  ck_assert_int_eq(m->block_of[b.index], m->block_of[a.index]);
  ck_assert_int_ne(m->block_of[c.index], m->block_of[b.index]);
  ck_assert_int_eq(m->block_of[d.index], m->block_of[c.index]);
  ck_assert_int_ne(m->block_of[e.index], m->block_of[d.index]);
  ck_assert_int_ne(m->block_of[h.index], m->block_of[e.index]);
  ck_sn_ok(sn__race_check_plan(g, t, s, m, capacity, &options));
  sn__memory_free(m);
  /* Sizes that no memory has. */
  capacity[0] = INT64_MAX / 64;
  ck_sn_fails(sn__memory_build(g, s, capacity, &options, &m), SN_CODE_INVALID, "smaller batch");
  sn__schedule_free(s);
  sn_graph_free(g);
  sn_topology_free(t);
}
END_TEST

START_TEST(what_a_copy_reads_stays) {
  sn_topology *t = make_topology("cpu*2");
  sn_graph *g;
  ck_sn_ok(sn_graph_create(&g));
  sn_value x = sn_input(g, "x", SN_F32, 16);
  sn_value a = sn__node_add(g, &op_mix, NULL, &x, 1, "a", NULL);
  sn_value b = sn__node_add(g, &op_mix, NULL, &a, 1, "b", NULL);
  all_on_one(g);
  sn_value far = sn__node_add(g, &op_copy, NULL, &a, 1, NULL, NULL);
  place_on(g, far, 1);
  uint32_t fetches[] = {b.index, far.index};
  sn__schedule_options options = {fetches, 2, false};
  int64_t capacity[1] = {8};
  sn__schedule *s;
  sn__memory *m;
  ck_sn_ok(sn__schedule_build(g, t, capacity, &options, &s));
  ck_sn_ok(sn__memory_build(g, s, capacity, &options, &m));
  ck_assert_int_ne(m->block_of[a.index], m->block_of[b.index]);
  ck_assert_int_eq(m->blocks[m->block_of[far.index]].arena, 1 * SN__QUEUE_COUNT + SN__QUEUE_COPY);
  sn__memory_free(m);
  sn__schedule_free(s);
  sn_graph_free(g);
  sn_topology_free(t);
}
END_TEST

/* Blocks whose first and last moment are drawn: no two that meet share a byte. */
START_TEST(packing_never_overlaps) {
  for (uint64_t round = 0; round < 200; round++) {
    enum { MOST = 150 };
    dice d = {round, 0};
    uint32_t first[MOST], last[MOST], n = 1 + (uint32_t)roll(&d, MOST);
    size_t bytes[MOST], offsets[MOST], words = (n + 63) / 64, end = 0, total = 0;
    uint64_t *rows = calloc((size_t)n * words, sizeof *rows);
    for (uint32_t i = 0; i < n; i++) {
      first[i] = (uint32_t)roll(&d, 100);
      last[i] = first[i] + (uint32_t)roll(&d, 20);
      bytes[i] = 64 * (size_t)roll(&d, round % 3 == 0 ? 4 : 1000);
      total += bytes[i];
      for (uint32_t j = 0; j < i; j++)
        if (first[i] <= last[j] && first[j] <= last[i]) {
          rows[i * words + j / 64] |= (uint64_t)1 << (j % 64);
          rows[j * words + i / 64] |= (uint64_t)1 << (i % 64);
        }
    }
    sn__pack p = {.n = n,
                  .bytes = bytes,
                  .first = first,
                  .last = last,
                  .conflicts = rows,
                  .words = words,
                  .offsets = offsets};
    ck_sn_ok(sn__pack_blocks(&p, &end));
    ck_assert_uint_le(end, total);
    for (uint32_t i = 0; i < n; i++) {
      ck_assert_uint_eq(offsets[i] % 64, 0);
      ck_assert_uint_le(offsets[i] + bytes[i], end);
      for (uint32_t j = 0; j < i; j++)
        if (first[i] <= last[j] && first[j] <= last[i] && bytes[i] > 0 && bytes[j] > 0)
          ck_assert(offsets[i] + bytes[i] <= offsets[j] || offsets[j] + bytes[j] <= offsets[i]);
    }
    free(rows);
  }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("memory");
  TCase *t = tcase_create("memory");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, little_is_wasted);
  tcase_add_test(t, in_place_and_views);
  tcase_add_test(t, what_a_copy_reads_stays);
  tcase_add_test(t, packing_never_overlaps);
  suite_add_tcase(s, t);
  return s;
}
SN_TEST_MAIN(suite)
