/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of pipelines against closed forms, a brute force of its own, and each other. */
#include "placement/pipeline.h"

#include <stdio.h>

#include "core/rng.h"
#include "tests/check_sn.h"

/* ---- pipes --------------------------------------------------------------------------------- */

static void set_stage(sn__pipe *p, uint32_t s, int device, int64_t f, int64_t b, int64_t w) {
  p->device[s] = device;
  for (uint32_t m = 0; m < p->n_micro; m++) {
    p->ns[sn__pipe_task(p, s, m, SN__PIPE_F)] = f;
    p->ns[sn__pipe_task(p, s, m, SN__PIPE_B)] = b;
    p->ns[sn__pipe_task(p, s, m, SN__PIPE_W)] = w;
  }
}

static void set_edge(sn__pipe *p, uint32_t e, uint32_t from, uint32_t to, int64_t ns) {
  p->edges[e] = (sn__pipe_edge){from, to};
  for (uint32_t k = 0; k < 2 * p->n_micro; k++)
    p->copy_ns[(size_t)e * p->n_micro * 2 + k] = ns;
}

static sn__pipe *uniform_chain(uint32_t stages, uint32_t micro, int64_t f, int64_t b, int64_t w) {
  sn__pipe *p = NULL;
  ck_sn_ok(sn__pipe_create((int)stages, stages, stages - 1, micro, &p));
  for (uint32_t s = 0; s < stages; s++)
    set_stage(p, s, (int)s, f, b, w);
  for (uint32_t s = 0; s + 1 < stages; s++)
    set_edge(p, s, s, s + 1, 0);
  ck_sn_ok(sn__pipe_finish(p));
  return p;
}

static sn__pipe_schedule *make(const sn__pipe *p, sn__pipe_rule rule) {
  sn__pipe_schedule *s = NULL;
  ck_sn_ok(sn__pipe_schedule_make(p, rule, 500, 1, &s));
  return s;
}

static int64_t step_of(const sn__pipe *p, sn__pipe_rule rule) {
  sn__pipe_schedule *s = make(p, rule);
  int64_t ns = s->step_ns;
  sn__pipe_schedule_free(s);
  return ns;
}

/* Check writes down every assert that holds, and here are millions. */
#define must(what)                                                                                 \
  do {                                                                                             \
    if (!(what)) ck_abort_msg("not so: %s", #what);                                                \
  } while (0)

/* Written anew, from the definition: what a schedule's times must keep to. Peaks from times. */
static void check_times(const sn__pipe *p, const sn__pipe_schedule *s) {
  uint32_t n = sn__pipe_task_count(p);
  for (uint32_t t = 0; t < n; t++) {
    uint32_t m = sn__pipe_micro_of(p, t), st = sn__pipe_stage_of(p, t);
    must(s->finish[t] - s->start[t] == p->ns[t]);
    if (t % 3 != SN__PIPE_F) must(s->start[t] >= s->finish[t - 1]);
    for (uint32_t e = 0; e < p->n_edges; e++) {
      const sn__pipe_edge *edge = &p->edges[e];
      size_t copy = ((size_t)e * p->n_micro + m) * 2;
      bool apart = p->device[edge->from] != p->device[edge->to];
      if (t % 3 == SN__PIPE_F && edge->to == st)
        must(s->start[t] >= s->finish[sn__pipe_task(p, edge->from, m, SN__PIPE_F)] +
                                (apart ? p->copy_ns[copy] : 0));
      if (t % 3 == SN__PIPE_B && edge->from == st)
        must(s->start[t] >=
             s->finish[sn__pipe_task(p, edge->to, m, s->glued ? SN__PIPE_W : SN__PIPE_B)] +
                 (apart ? p->copy_ns[copy + 1] : 0));
    }
  }
  for (int d = 0; d < p->n_devices; d++)
    for (uint32_t i = s->first[d] + 1; i < s->first[d + 1]; i++)
      must(s->start[s->order[i]] >= s->finish[s->order[i - 1]]);
  for (uint32_t st = 0; st < p->n_stages; st++) {
    uint32_t peak = 0;
    for (uint32_t m = 0; m < p->n_micro; m++) {
      uint32_t flying = 0;
      int64_t now = s->start[sn__pipe_task(p, st, m, SN__PIPE_F)];
      for (uint32_t k = 0; k < p->n_micro; k++)
        flying += s->start[sn__pipe_task(p, st, k, SN__PIPE_F)] <= now &&
                  s->finish[sn__pipe_task(p, st, k, SN__PIPE_W)] > now;
      peak = flying > peak ? flying : peak;
    }
    ck_assert_uint_le(peak, s->cap[st]);
    ck_assert_uint_le(peak, s->peak[st]);
  }
}

/* ---- closed forms -------------------------------------------------------------------------- */

START_TEST(gpipe_and_1f1b_are_their_closed_forms) {
  static const int64_t times[][3] = {{1, 1, 1},  {100, 100, 100}, {10, 13, 9},
                                     {20, 7, 5}, {3, 40, 1},      {7, 9, 0}};
  for (uint32_t p = 2; p <= 8; p++)
    for (uint32_t m = 1; m <= 32; m += SN_SANITIZED ? 5 : 1)
      for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        int64_t f = times[k][0], b = times[k][1], w = times[k][2], all = f + b + w;
        sn__pipe *pipe = uniform_chain(p, m, f, b, w);
        sn__pipe_schedule *g = make(pipe, SN__PIPE_GPIPE), *o = make(pipe, SN__PIPE_1F1B);
        ck_assert_msg(g->step_ns == (m + p - 1) * all, "GPipe p %u M %u set %zu: %lld", p, m, k,
                      (long long)g->step_ns);
        ck_assert_msg(o->step_ns == (m + p - 1) * all, "1F1B p %u M %u set %zu: %lld", p, m, k,
                      (long long)o->step_ns);
        ck_assert_int_eq(g->bubble_ns, (p - 1) * all);
        ck_assert_int_eq(o->bubble_ns, (p - 1) * all);
        for (uint32_t s = 0; s < p; s++) {
          ck_assert_uint_eq(g->peak[s], m);
          ck_assert_uint_eq(o->peak[s], m < p - s ? m : p - s);
        }
        check_times(pipe, g);
        check_times(pipe, o);
        sn__pipe_schedule_free(g);
        sn__pipe_schedule_free(o);
        sn__pipe_free(pipe);
      }
}
END_TEST

START_TEST(zero_bubble_is_its_closed_form) {
  for (uint32_t p = 2; p <= 8; p++)
    for (uint32_t m = 1; m <= 32; m++) {
      sn__pipe *pipe = uniform_chain(p, m, 100, 100, 100);
      sn__pipe_schedule *z = make(pipe, SN__PIPE_ZERO_BUBBLE);
      if (m >= p)
        ck_assert_msg(z->step_ns == 100 * (p - 1) + 300 * m, "p %u M %u: %lld by %s", p, m,
                      (long long)z->step_ns, z->from);
      else /* 2p - 1 tasks to the first gradient at stage 0, then B and W of each: the bound */
        ck_assert_msg(z->step_ns == 100 * (2 * (int64_t)p - 1 + 2 * m), "p %u M %u: %lld by %s", p,
                      m, (long long)z->step_ns, z->from);
      ck_assert_int_eq(z->bound_ns, z->step_ns); /* proved best */
      for (uint32_t s = 0; s < p; s++)
        ck_assert_uint_le(z->peak[s], p);
      check_times(pipe, z);
      sn__pipe_schedule_free(z);
      sn__pipe_free(pipe);
    }
}
END_TEST

/* ---- brute force --------------------------------------------------------------------------- */

/* Every schedule of tasks of one unit, one stage a device, free copies: breadth first over (F, B, W
 * done) of all stages. Micro-batches are alike, so each stage takes them in order. */
enum { BRUTE_STAGES = 4, BRUTE_TRIPLES = 56 };

typedef struct brute {
  const sn__pipe *p;
  uint32_t cap[BRUTE_STAGES];
  uint8_t triples[BRUTE_TRIPLES][3];
  uint16_t index[8][8][8];
  uint32_t n_triples, n_next;
  uint8_t *seen;
  uint32_t *next;
} brute;

static void brute_expand(brute *x, const uint8_t (*now)[3], uint32_t stage, uint32_t code) {
  const sn__pipe *p = x->p;
  if (stage == p->n_stages) {
    if (!x->seen[code]) x->next[x->n_next++] = code;
    x->seen[code] = 1;
    return;
  }
  const uint8_t *t = now[stage];
  bool f = t[0] < p->n_micro && (uint32_t)(t[0] - t[2]) < x->cap[stage], b = t[1] < t[0];
  for (uint32_t e = 0; e < p->n_edges; e++) {
    if (p->edges[e].to == stage) f = f && now[p->edges[e].from][0] > t[0];
    if (p->edges[e].from == stage) b = b && now[p->edges[e].to][1] > t[1];
  }
  uint32_t at = code * x->n_triples;
  brute_expand(x, now, stage + 1, at + x->index[t[0]][t[1]][t[2]]);
  if (f) brute_expand(x, now, stage + 1, at + x->index[t[0] + 1][t[1]][t[2]]);
  if (b) brute_expand(x, now, stage + 1, at + x->index[t[0]][t[1] + 1][t[2]]);
  if (t[2] < t[1]) brute_expand(x, now, stage + 1, at + x->index[t[0]][t[1]][t[2] + 1]);
}

static int64_t brute_force(const sn__pipe *p, const uint32_t *cap) {
  brute x = {.p = p};
  uint32_t states = 1, n_now = 1, M = p->n_micro;
  for (uint8_t f = 0; f <= M; f++)
    for (uint8_t b = 0; b <= f; b++)
      for (uint8_t w = 0; w <= b; w++) {
        x.index[f][b][w] = (uint16_t)x.n_triples;
        memcpy(x.triples[x.n_triples++], (uint8_t[]){f, b, w}, 3);
      }
  for (uint32_t s = 0; s < p->n_stages; s++) {
    x.cap[s] = cap[s];
    states *= x.n_triples;
  }
  x.seen = sn__calloc(states, 1);
  x.next = sn__calloc(states, sizeof *x.next);
  uint32_t *now = sn__calloc(states, sizeof *now);
  int64_t steps = 0;
  for (; n_now > 0 && !x.seen[states - 1]; steps++) {
    x.n_next = 0;
    for (uint32_t i = 0; i < n_now; i++) {
      uint8_t done[BRUTE_STAGES][3];
      uint32_t code = now[i];
      for (uint32_t s = p->n_stages; s-- > 0; code /= x.n_triples)
        memcpy(done[s], x.triples[code % x.n_triples], 3);
      brute_expand(&x, (const uint8_t(*)[3])done, 0, 0);
    }
    uint32_t *other = now;
    now = x.next;
    x.next = other;
    n_now = x.n_next;
  }
  sn__free(now);
  sn__free(x.next);
  sn__free(x.seen);
  return steps;
}

START_TEST(zero_bubble_is_brute_force) {
  static const uint32_t most[] = {0, 0, 5, 4, 3}; /* micro-batches by stages */
  for (uint32_t p = 2; p <= 4; p++)
    for (uint32_t m = 1; m <= most[p]; m++) {
      sn__pipe *pipe = uniform_chain(p, m, 1, 1, 1);
      sn__pipe_schedule *z = make(pipe, SN__PIPE_ZERO_BUBBLE);
      int64_t best = brute_force(pipe, z->cap);
      ck_assert_msg(z->step_ns == best, "p %u M %u: %lld, brute force %lld", p, m,
                    (long long)z->step_ns, (long long)best);
      sn__pipe_schedule_free(z);
      sn__pipe_free(pipe);
    }
}
END_TEST

/* ---- branches ------------------------------------------------------------------------------ */

static void random_times(sn__pipe *p, uint64_t key, bool alike) {
  uint64_t draw = 0;
  for (uint32_t s = 0; s < p->n_stages; s++)
    for (uint32_t m = 0; m < p->n_micro; m++)
      for (int k = 0; k < SN__PIPE_KINDS; k++) {
        uint32_t t = sn__pipe_task(p, s, m, (sn__pipe_kind)k);
        p->ns[t] = alike && m > 0 ? p->ns[sn__pipe_task(p, s, 0, (sn__pipe_kind)k)]
                                  : (int64_t)sn__rng_below(7, key, draw++, 60) + (k == 0);
      }
}

/* Stages 0 and 1 are encoders, 2 the trunk. As a chain one encoder goes through the other. */
static sn__pipe *two_encoders(uint32_t micro, int chain, uint64_t key) {
  sn__pipe *p = NULL;
  ck_sn_ok(sn__pipe_create(3, 3, 2, micro, &p));
  for (uint32_t s = 0; s < 3; s++) {
    set_stage(p, s, (int)s, 10, 10, 10);
    p->bytes[s] = 1;
  }
  if (key > 0) random_times(p, key, true);
  p->edges[0] = chain == 0   ? (sn__pipe_edge){0, 2}
                : chain == 1 ? (sn__pipe_edge){0, 1}
                             : (sn__pipe_edge){1, 0};
  p->edges[1] = chain == 2 ? (sn__pipe_edge){0, 2} : (sn__pipe_edge){1, 2};
  ck_sn_ok(sn__pipe_finish(p));
  return p;
}

/* Against both chains of the same stages. With equal stages they may keep what they like in flight;
 * with unequal ones as much as the graph's schedule does: a stage far from the sink along a chain
 * that it has no part in could buy time with memory there. */
START_TEST(two_encoders_and_a_trunk) {
  for (uint64_t key = 0; key < (SN_SANITIZED ? 4 : 10); key++)
    for (uint32_t m = 1; m <= 16; m += 1 + m / 3) {
      sn__pipe *dag = two_encoders(m, 0, key);
      sn__pipe *chains[] = {two_encoders(m, 1, key), two_encoders(m, 2, key)};
      for (int rule = SN__PIPE_GPIPE; rule <= SN__PIPE_ZERO_BUBBLE; rule++) {
        sn__pipe_schedule *s = make(dag, (sn__pipe_rule)rule);
        check_times(dag, s);
        for (int c = 0; c < 2; c++) {
          for (uint32_t st = 0; st < 3 && key > 0; st++)
            chains[c]->device_bytes[st] = s->cap[st];
          int64_t chain = step_of(chains[c], (sn__pipe_rule)rule);
          ck_assert_msg(s->step_ns <= chain, "key %llu M %u rule %d: %lld, as a chain %lld",
                        (unsigned long long)key, m, rule, (long long)s->step_ns, (long long)chain);
        }
        for (uint32_t st = 0; st < 3 && rule == SN__PIPE_1F1B; st++)
          ck_assert_uint_eq(s->peak[st], m < 2 ? m : st < 2 ? 2 : 1);
        sn__pipe_schedule_free(s);
      }
      sn__pipe_free(dag);
      sn__pipe_free(chains[0]);
      sn__pipe_free(chains[1]);
    }
}
END_TEST

/* An encoder of two stages, one of one, a trunk, and an edge that skips. */
START_TEST(in_flight_is_a_stages_own_path) {
  static const uint32_t own[] = {3, 2, 2, 1};
  sn__pipe *p = NULL;
  ck_sn_ok(sn__pipe_create(4, 4, 4, 9, &p));
  for (uint32_t s = 0; s < 4; s++)
    set_stage(p, s, (int)s, 10, 10, 10);
  set_edge(p, 0, 0, 1, 0);
  set_edge(p, 1, 1, 3, 0);
  set_edge(p, 2, 2, 3, 0);
  set_edge(p, 3, 0, 3, 0);
  ck_sn_ok(sn__pipe_finish(p));
  sn__pipe_schedule *s = make(p, SN__PIPE_1F1B);
  check_times(p, s);
  for (uint32_t st = 0; st < 4; st++)
    ck_assert_uint_eq(s->peak[st], own[st]);
  ck_assert_int_eq(s->step_ns, (9 + 3 - 1) * 30); /* a path of three stages, not four */
  sn__pipe_schedule_free(s);
  sn__pipe_free(p);
}
END_TEST

/* ---- anything ------------------------------------------------------------------------------ */

static sn__pipe *random_pipe(uint64_t key, bool copies) {
  uint64_t draw = 0;
#define DRAW(n) ((uint32_t)sn__rng_below(11, key, draw++, (n)))
  uint32_t stages = 1 + DRAW(8), devices = 1 + DRAW(4), micro = 1 + DRAW(8), edges = 0;
  sn__pipe_edge list[64];
  for (uint32_t b = 1; b < stages; b++)
    for (uint32_t a = 0; a < b; a++)
      if (DRAW(10) < 4) list[edges++] = (sn__pipe_edge){a, b};
  sn__pipe *p = NULL;
  ck_sn_ok(sn__pipe_create((int)devices, stages, edges, micro, &p));
  for (uint32_t s = 0; s < stages; s++) {
    p->device[s] = (int)DRAW(devices);
    p->bytes[s] = DRAW(100);
  }
  random_times(p, key, false);
  for (uint32_t e = 0; e < edges; e++)
    p->edges[e] = list[e];
  for (uint32_t k = 0; copies && k < 2 * edges * micro; k++)
    p->copy_ns[k] = DRAW(40);
  for (uint32_t d = 0; d < devices && copies; d++)
    p->device_bytes[d] = 2000 + DRAW(4000);
#undef DRAW
  ck_sn_ok(sn__pipe_finish(p));
  return p;
}

START_TEST(any_graph_of_stages) {
  for (uint64_t key = 0; key < (SN_SANITIZED ? 60 : 300); key++) {
    sn__pipe *p = random_pipe(key, key % 2 == 0);
    int64_t steps[3] = {0, 0, 0};
    for (int rule = 0; rule < 3; rule++) {
      sn__pipe_schedule *s = NULL;
      sn_status status = sn__pipe_schedule_make(p, (sn__pipe_rule)rule, 300, 1, &s);
      if (status != SN_OK) { /* memory: GPipe's alone */
        ck_assert_int_eq(rule, SN__PIPE_GPIPE);
        ck_assert_ptr_nonnull(strstr(sn_status_message(status), "GPipe keeps the activations"));
        sn_status_free(status);
        continue;
      }
      check_times(p, s);
      ck_assert_int_ge(s->step_ns, s->bound_ns);
      steps[rule] = s->step_ns;
      sn__pipe_schedule_free(s);
    }
    if (key % 2 == 1) ck_assert_int_le(steps[SN__PIPE_ZERO_BUBBLE], steps[SN__PIPE_1F1B]);
    sn__pipe_free(p);
  }
}
END_TEST

START_TEST(the_same_seed_gives_the_same_schedule) {
  sn__pipe *p = random_pipe(12, true);
  sn__pipe_schedule *a = make(p, SN__PIPE_ZERO_BUBBLE), *b = make(p, SN__PIPE_ZERO_BUBBLE);
  ck_assert_int_eq(a->step_ns, b->step_ns);
  ck_assert_int_eq(memcmp(a->order, b->order, sn__pipe_task_count(p) * sizeof *a->order), 0);
  sn__pipe_schedule_free(a);
  sn__pipe_schedule_free(b);
  sn__pipe_free(p);
}
END_TEST

START_TEST(memory_cuts_what_is_in_flight) {
  sn__pipe *p = uniform_chain(4, 8, 10, 10, 10);
  for (uint32_t s = 0; s < 4; s++)
    p->bytes[s] = 1000;
  p->device_bytes[0] = 2500;
  for (int rule = SN__PIPE_1F1B; rule <= SN__PIPE_ZERO_BUBBLE; rule++) {
    sn__pipe_schedule *s = make(p, (sn__pipe_rule)rule);
    check_times(p, s);
    ck_assert_uint_eq(s->peak[0], 2);
    ck_assert_int_gt(s->step_ns, rule == SN__PIPE_1F1B ? 11 * 30 : 3 * 10 + 8 * 30);
    sn__pipe_schedule_free(s);
  }
  sn__pipe_schedule *none = NULL;
  ck_sn_fails(sn__pipe_schedule_make(p, SN__PIPE_GPIPE, 0, 1, &none), SN_CODE_INVALID,
              "stage 0 has room for 2 of 1000 bytes each; 1F1B keeps 4");
  p->device_bytes[0] = 999;
  ck_sn_fails(sn__pipe_schedule_make(p, SN__PIPE_1F1B, 0, 1, &none), SN_CODE_INVALID,
              "device 0: one micro-batch of each of its stages needs 1000 bytes");
  sn__pipe_free(p);
}
END_TEST

START_TEST(a_deadlock_is_named) {
  sn__pipe *p = uniform_chain(2, 2, 1, 1, 1);
  enum { F, B, W };
#define T(s, m, k) sn__pipe_task(p, s, m, (sn__pipe_kind)(k))
  uint32_t first[] = {0, 6, 12};
  uint32_t order[] = {T(0, 0, F), T(0, 0, B), T(0, 0, W), T(0, 1, F), T(0, 1, B), T(0, 1, W),
                      T(1, 0, F), T(1, 1, F), T(1, 0, B), T(1, 0, W), T(1, 1, B), T(1, 1, W)};
  ck_sn_fails(sn__pipe_check_order(p, false, first, order), SN_CODE_INVALID, "deadlocks");
  ck_sn_fails(sn__pipe_check_order(p, false, first, order), SN_CODE_INVALID,
              "B(stage 1, micro-batch 0) waits for F(stage 1, micro-batch 1)");
  ck_sn_fails(sn__pipe_check_order(p, false, first, order), SN_CODE_INVALID, "(a ring of 5)");
  order[1] = T(0, 1, F);
  order[3] = T(0, 0, B);
  ck_sn_fails(
      sn__pipe_check_order(p, false, first, order), SN_CODE_INVALID,
      "waits for W(stage 0, micro-batch 0) waits for B(stage 0, micro-batch 0) (a ring of 2)");
  order[2] = T(0, 0, B);
  order[3] = T(0, 0, W);
  ck_sn_ok(sn__pipe_check_order(p, false, first, order));
  order[3] = T(0, 0, B);
  ck_sn_fails(sn__pipe_check_order(p, false, first, order), SN_CODE_INVALID,
              "B(stage 0, micro-batch 0), at place 3 of device 0");
#undef T
  sn__pipe_free(p);
}
END_TEST

START_TEST(mistakes_are_told) {
  sn__pipe *p = NULL;
  ck_sn_fails(sn__pipe_create(2, 0, 0, 1, &p), SN_CODE_INVALID, "0 stages");
  ck_sn_fails(sn__pipe_create(2, 1u << 20, 0, 1u << 20, &p), SN_CODE_INVALID, "2^26");
  ck_sn_ok(sn__pipe_create(2, 2, 2, 1, &p));
  p->edges[0] = (sn__pipe_edge){0, 1};
  p->edges[1] = (sn__pipe_edge){1, 0};
  ck_sn_fails(sn__pipe_finish(p), SN_CODE_INVALID, "a cycle of stages");
  p->edges[1] = (sn__pipe_edge){0, 2};
  ck_sn_fails(sn__pipe_finish(p), SN_CODE_INVALID, "from stage 0 to 2 of 2");
  p->edges[1] = (sn__pipe_edge){0, 1};
  p->ns[4] = -1;
  ck_sn_fails(sn__pipe_finish(p), SN_CODE_INVALID, "task 4 takes -1 ns");
  p->ns[4] = INT64_MAX;
  ck_sn_fails(sn__pipe_finish(p), SN_CODE_INVALID, "add up to");
  p->ns[4] = 0;
  p->device[1] = 2;
  ck_sn_fails(sn__pipe_finish(p), SN_CODE_INVALID, "stage 1 is on device 2 of 2");
  sn__pipe_free(p);
}
END_TEST

static Suite *pipeline_suite(void) {
  Suite *suite = suite_create("pipeline");
  TCase *c = tcase_create("schedules");
  tcase_set_timeout(c, 60);
  tcase_add_test(c, gpipe_and_1f1b_are_their_closed_forms);
  tcase_add_test(c, zero_bubble_is_its_closed_form);
  tcase_add_test(c, zero_bubble_is_brute_force);
  tcase_add_test(c, two_encoders_and_a_trunk);
  tcase_add_test(c, in_flight_is_a_stages_own_path);
  tcase_add_test(c, any_graph_of_stages);
  tcase_add_test(c, the_same_seed_gives_the_same_schedule);
  tcase_add_test(c, memory_cuts_what_is_in_flight);
  tcase_add_test(c, a_deadlock_is_named);
  tcase_add_test(c, mistakes_are_told);
  suite_add_tcase(suite, c);
  return suite;
}

SN_TEST_MAIN(pipeline_suite)
