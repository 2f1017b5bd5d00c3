/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule broken on purpose and caught by its name; and the clocks against an independent oracle
 * that closes the order by brute force. */
#include "core/verify.h"

#include <stdio.h>

#include "tests/core/toy_ops.h"
#include "tests/fail_alloc.h"

static sn_device_desc devices[4];
static const sn_topology topology = {.n_devices = 4, .devices = devices};

static void name_devices(void) {
  for (int i = 0; i < 4; i++)
    snprintf(devices[i].name, sizeof devices[i].name, "cpu:%d", i);
}

static sn__node *node_of(sn_graph *g, sn_value v) {
  return sn__producer(g, v.index);
}

static sn_value on(sn_graph *g, int device, sn_value v) {
  ck_sn_ok(sn_graph_status(g));
  node_of(g, v)->device = device;
  return v;
}

/* Two devices. w, x and z live on cpu:0; v, its slot, y and q on cpu:1; four copies between. */
typedef struct scene {
  sn_graph *g;
  sn_value w, v, slot, x, x1, y, w1, q, y0, z, put_w, put_v;
} scene;

static scene new_scene(void) {
  name_devices();
  scene s = {0};
  ck_sn_ok(sn_graph_create(&s.g));
  sn_graph *g = s.g;
  s.w = on(g, 0, sn_variable(g, "w", SN_F64, SN_SHAPE(TOY_LENGTH)));
  s.v = on(g, 1, sn_variable(g, "v", SN_F64, SN_SHAPE(TOY_LENGTH)));
  s.slot = on(g, 1, sn__slot_variable(g, s.v, "m", SN_F64, SN_SHAPE(TOY_LENGTH), (sn_init){0}));
  s.x = on(g, 0, node1(g, &sn__op_tanh, s.w));
  s.x1 = on(g, 1, node1(g, &sn__op_copy, s.x));
  s.y = on(g, 1, node2(g, &sn__op_mul, s.x1, s.v));
  s.w1 = on(g, 1, node1(g, &sn__op_copy, s.w));
  s.q = on(g, 1, node2(g, &sn__op_add, s.y, s.w1));
  s.y0 = on(g, 0, node1(g, &sn__op_copy, s.y));
  s.z = on(g, 0, node1(g, &sn__op_tanh, s.y0));
  g->home = s.w.index;
  s.put_w = on(g, 0, node2(g, &sn__op_assign, s.w, s.z));
  g->home = s.v.index;
  s.put_v = on(g, 1, node2(g, &sn__op_assign, s.v, s.q));
  g->home = 0;
  g->variables[1].gradient = s.y.index;
  return s;
}

START_TEST(a_sound_graph_passes) {
  scene s = new_scene();
  ck_sn_ok(sn__verify(s.g, &topology));
  sn_graph_free(s.g);
}
END_TEST

static void caught(scene s, const char *words) {
  ck_sn_fails(sn__verify(s.g, &topology), SN_CODE_INTERNAL, words);
  sn_graph_free(s.g);
}

START_TEST(v1_off_its_device) {
  scene s = new_scene();
  node_of(s.g, s.q)->in[0] = s.y0.index; /* the copy on the other device */
  node_of(s.g, s.y0)->in[0] = s.y.index;
  ck_assert_uint_gt(s.y0.index, s.q.index);
  /* Order first: a later value cannot be read. */
  ck_sn_fails(sn__verify(s.g, &topology), SN_CODE_INTERNAL, "not made before it");
  node_of(s.g, s.q)->in[0] = s.x.index;
  caught(s, "V1: node 'add' on cpu:1 reads 'tanh' on cpu:0");

  s = new_scene();
  node_of(s.g, s.x1)->device = 0;
  caught(s, "V1: copy 'copy' stays on cpu:0");

  s = new_scene();
  node_of(s.g, s.x1)->device = 2; /* its reader stays on cpu:1 */
  caught(s, "V1: node 'mul' on cpu:1 reads 'copy' on cpu:2");
}
END_TEST

START_TEST(v2_away_from_home) {
  scene s = new_scene();
  node_of(s.g, s.slot)->device = 0;
  caught(s, "V2: node 'v/m' on cpu:0 belongs to 'v' on cpu:1");

  s = new_scene();
  node_of(s.g, s.slot)->device = 0;
  node_of(s.g, s.slot)->home = 0; /* even when the node has forgotten its home */
  caught(s, "V2: slot 'v/m' is on cpu:0, its variable on cpu:1");

  s = new_scene();
  s.g->variables[1].gradient = s.y0.index;
  caught(s, "V2: the gradient of 'v' is on cpu:0, the variable on cpu:1");

  s = new_scene();
  s.g->variables[1].commit = s.g->values[s.put_w.index].node;
  caught(s, "V2: the update 'assign' is on cpu:0, variable 'v' on cpu:1");
}
END_TEST

START_TEST(v3_unplaced) {
  scene s = new_scene();
  node_of(s.g, s.q)->device = -1;
  caught(s, "V3: node 'add' (add) has no device");
  s = new_scene();
  node_of(s.g, s.q)->device = 4;
  caught(s, "V3: node 'add' (add) is on device number 4; there are 4");
}
END_TEST

START_TEST(v4_copied_twice) {
  scene s = new_scene();
  sn_value again = on(s.g, 1, node1(s.g, &sn__op_copy, s.x));
  ck_sn_fails(sn__verify(s.g, &topology), SN_CODE_INTERNAL,
              "V4: 'tanh' is copied to cpu:1 twice, by 'copy' and by 'copy_3'");
  node_of(s.g, again)->phase = SN_BACKWARD; /* another live range */
  ck_sn_ok(sn__verify(s.g, &topology));
  node_of(s.g, again)->phase = SN_FORWARD; /* another destination */
  node_of(s.g, again)->device = 3;
  ck_sn_ok(sn__verify(s.g, &topology));
  /* A copy of that copy is a copy of the same value. */
  on(s.g, 1, node1(s.g, &sn__op_copy, again));
  caught(s, "V4: 'tanh' is copied to cpu:1 twice");
}
END_TEST

START_TEST(v5_without_a_schedule) {
  scene s = new_scene();
  node_of(s.g, s.put_v)->in[0] = s.w1.index; /* writes a copy */
  caught(s, "V5: 'assign_1' writes 'copy_1', which is not a variable but made by 'copy_1'");

  s = new_scene();
  node_of(s.g, s.put_v)->in[0] = s.slot.index;
  node_of(s.g, s.put_v)->home = s.v.index;
  caught(s, "V5: 'assign_1' writes variable 'v/m', which does not know it");

  s = new_scene(); /* reads the old bytes after it knows the new ones */
  on(s.g, 0, node2(s.g, &sn__op_add, s.put_w, s.w));
  caught(s, "V5: node 'add_1' follows 'assign' and reads 'w', which that overwrote");

  s = new_scene();
  s.g->variables[1].commit = 0;
  sn_value twice = on(s.g, 1, node2(s.g, &sn__op_assign, s.v, s.y));
  node_of(s.g, twice)->home = s.v.index;
  s.g->variables[1].commit = s.g->values[s.put_v.index].node;
  caught(s, "V5: variable 'v' is written by 'assign_1' and by 'assign_2'");
}
END_TEST

START_TEST(structure) {
  scene s = new_scene();
  s.g->values[s.q.index].shape.dims[0] = 7;
  caught(s, "is f64 [7]; its op gives f64 [4]");
  s = new_scene();
  s.g->values[s.q.index].slot = 1;
  caught(s, "is not a value made by it");
  s = new_scene();
  node_of(s.g, s.q)->in[1] = 1000;
  caught(s, "out of range");
  s = new_scene();
  s.g->values[s.w.index].extra = 1;
  caught(s, "not in the list of its kind");
}
END_TEST

/* ---- schedules ----------------------------------------------------------------------------- */

enum { MOST = 256 };

/* A view with room; queue = device, copies on queue 4 + destination, in graph order. */
typedef struct plan {
  uint32_t queue[MOST], position[MOST], storage[MOST];
  sn__wait_edge waits[MOST * 4];
  sn__schedule_view view;
} plan;

static plan *new_plan(const sn_graph *g) {
  plan *p = calloc(1, sizeof *p);
  uint32_t count[8] = {0};
  ck_assert_uint_le(g->n_nodes, MOST);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const sn__node *n = &g->nodes[i];
    p->queue[i] = SN__NOT_SCHEDULED;
    if (i == 0 || sn__node_is_source(n)) continue;
    p->queue[i] = (uint32_t)n->device + (n->op == &sn__op_copy ? 4 : 0);
    p->position[i] = count[p->queue[i]]++;
  }
  p->view = (sn__schedule_view){8, p->queue, p->position, p->waits, 0, p->storage};
  return p;
}

static void wait_for(plan *p, const sn_graph *g, sn_value later, sn_value earlier) {
  p->waits[p->view.n_waits++] =
      (sn__wait_edge){g->values[later.index].node, g->values[earlier.index].node};
}

static plan *scene_plan(const scene *s) {
  plan *p = new_plan(s->g);
  wait_for(p, s->g, s->x1, s->x);
  wait_for(p, s->g, s->y, s->x1);
  wait_for(p, s->g, s->q, s->w1);
  wait_for(p, s->g, s->y0, s->y);
  wait_for(p, s->g, s->z, s->y0);
  wait_for(p, s->g, s->put_w, s->w1); /* the one that keeps w until it is copied */
  return p;
}

static void without(plan *p, size_t w) {
  p->waits[w] = p->waits[--p->view.n_waits];
}

static void schedule_caught(const scene *s, plan *p, const char *words) {
  ck_sn_fails(sn__verify_schedule(s->g, &topology, &p->view), SN_CODE_INTERNAL, words);
  free(p);
}

START_TEST(v5_and_v6_of_a_schedule) {
  scene s = new_scene();
  plan *p = scene_plan(&s);
  ck_sn_ok(sn__verify_schedule(s.g, &topology, &p->view));
  free(p);
  static const char *const words[] = {
      "V6: copy 'copy' on cpu:1 does not wait for 'tanh' on cpu:0",
      "V6: node 'mul' on cpu:1 does not wait for 'copy' on cpu:1",
      "V6: node 'add' on cpu:1 does not wait for 'copy_1' on cpu:1",
      "V6: copy 'copy_2' on cpu:0 does not wait for 'mul' on cpu:1",
      "V6: node 'tanh_1' on cpu:0 does not wait for 'copy_2' on cpu:0",
      "V5: 'assign' on cpu:0 overwrites 'w' while copy 'copy_1' on cpu:1 may still read it"};
  for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
    p = scene_plan(&s);
    without(p, w);
    schedule_caught(&s, p, words[w]);
  }
  p = scene_plan(&s);
  p->queue[s.g->values[s.x.index].node] = SN__NOT_SCHEDULED;
  without(p, 0);
  schedule_caught(&s, p, "V6: copy 'copy' on cpu:1 reads 'tanh', whose producer 'tanh' never runs");
  p = scene_plan(&s);
  wait_for(p, s.g, s.x, s.z);
  schedule_caught(&s, p, "wait for each other");
  p = scene_plan(&s); /* z takes y0's bytes, which is fine; and then x's, which x1 may be reading */
  p->storage[s.z.index] = s.y0.index;
  ck_sn_ok(sn__verify_schedule(s.g, &topology, &p->view));
  p->storage[s.put_w.index] = 0;
  p->storage[s.z.index] = s.x.index;
  ck_sn_ok(sn__verify_schedule(s.g, &topology, &p->view)); /* z comes after y0, y, x1 */
  p->storage[s.z.index] = 0;
  p->storage[s.q.index] = s.y.index; /* q over y, which y0 copies away unwaited for */
  schedule_caught(&s, p, "V5: 'add' on cpu:1 overwrites 'mul' while copy 'copy_2' on cpu:0");
  sn_graph_free(s.g);
}
END_TEST

/* Every removal of a wait, judged by the closure of the order. */
static bool oracle(const sn_graph *g, const plan *p) {
  static bool less[MOST][MOST];
  memset(less, 0, sizeof less);
  for (uint32_t a = 1; a < g->n_nodes; a++)
    for (uint32_t b = 1; b < g->n_nodes; b++)
      less[a][b] = p->queue[a] != SN__NOT_SCHEDULED && p->queue[a] == p->queue[b] &&
                   p->position[a] < p->position[b];
  for (size_t w = 0; w < p->view.n_waits; w++)
    less[p->waits[w].on][p->waits[w].node] = true;
  for (uint32_t k = 1; k < g->n_nodes; k++)
    for (uint32_t a = 1; a < g->n_nodes; a++)
      for (uint32_t b = 1; less[a][k] && b < g->n_nodes; b++)
        less[a][b] |= less[k][b];
  for (uint32_t b = 1; b < g->n_nodes; b++)
    for (uint32_t k = 0; k < g->nodes[b].n_in; k++) {
      uint32_t value = g->nodes[b].in[k], a = g->values[value].node;
      if (!sn__node_is_source(&g->nodes[a]) && !less[a][b]) return false;
      if (g->values[value].kind != SN_VALUE_VARIABLE) continue;
      uint32_t writer = g->variables[g->values[value].extra].commit;
      if (writer != 0 && writer != b && !less[b][writer]) return false;
    }
  return true;
}

static sn_graph *random_graph(uint64_t seed) {
  toy_state = seed;
  sn_graph *g = NULL;
  sn_value pool[64];
  uint32_t count = 0;
  ck_sn_ok(sn_graph_create(&g));
  for (int v = 0; v < 4; v++) {
    char name[16];
    snprintf(name, sizeof name, "v%d", v);
    pool[count++] = on(g, (int)toy_random(4), sn_variable(g, name, SN_F64, SN_SHAPE(TOY_LENGTH)));
  }
  while (count < 24) {
    int device = (int)toy_random(4);
    sn_value in[2];
    for (int k = 0; k < 2; k++) {
      sn_value from = pool[toy_random(count)];
      in[k] =
          node_of(g, from)->device == device ? from : on(g, device, node1(g, &sn__op_copy, from));
    }
    pool[count++] = on(g, device, node2(g, &sn__op_add, in[0], in[1]));
  }
  for (int v = 0; v < 4; v++) {
    int device = node_of(g, pool[v])->device;
    sn_value from = pool[4 + toy_random(20)];
    if (node_of(g, from)->device != device) from = on(g, device, node1(g, &sn__op_copy, from));
    on(g, device, node2(g, &sn__op_assign, pool[v], from));
  }
  return g;
}

START_TEST(clocks_agree_with_the_oracle) {
  name_devices();
  sn_graph *g = random_graph((uint64_t)_i + 1);
  plan *p = new_plan(g);
  for (uint32_t b = 1; b < g->n_nodes; b++)
    for (uint32_t k = 0; k < g->nodes[b].n_in; k++) {
      uint32_t value = g->nodes[b].in[k], a = g->values[value].node;
      if (!sn__node_is_source(&g->nodes[a])) p->waits[p->view.n_waits++] = (sn__wait_edge){b, a};
      if (g->values[value].kind != SN_VALUE_VARIABLE) continue;
      uint32_t writer = g->variables[g->values[value].extra].commit;
      if (writer != b) p->waits[p->view.n_waits++] = (sn__wait_edge){writer, b};
    }
  ck_sn_ok(sn__verify_schedule(g, &topology, &p->view));
  ck_assert(oracle(g, p));
  size_t caught_removals = 0;
  for (size_t w = 0; w < p->view.n_waits; w++) {
    plan *q = malloc(sizeof *q);
    *q = *p;
    q->view.queue = q->queue;
    q->view.position = q->position;
    q->view.waits = q->waits;
    q->view.storage = q->storage;
    without(q, w);
    sn_status status = sn__verify_schedule(g, &topology, &q->view);
    ck_assert_msg((status == SN_OK) == oracle(g, q), "wait %zu: %s", w, sn_status_message(status));
    caught_removals += status != SN_OK;
    sn_status_free(status);
    free(q);
  }
  ck_assert_uint_gt(caught_removals, 0);
  free(p);
  sn_graph_free(g);
}
END_TEST

static sn_status verify_all(void *arg) {
  const scene *s = arg;
  SN_TRY(sn__verify(s->g, &topology));
  plan *p = scene_plan(s);
  sn_status status = sn__verify_schedule(s->g, &topology, &p->view);
  free(p);
  return status;
}

START_TEST(out_of_memory) {
  scene s = new_scene();
  ck_assert_int_gt(sn_fail_alloc_every_call(verify_all, &s), 4);
  sn_graph_free(s.g);
}
END_TEST

static Suite *verify_suite(void) {
  Suite *s = suite_create("verify");
  TCase *c = tcase_create("verify");
  tcase_add_test(c, a_sound_graph_passes);
  tcase_add_test(c, v1_off_its_device);
  tcase_add_test(c, v2_away_from_home);
  tcase_add_test(c, v3_unplaced);
  tcase_add_test(c, v4_copied_twice);
  tcase_add_test(c, v5_without_a_schedule);
  tcase_add_test(c, structure);
  tcase_add_test(c, v5_and_v6_of_a_schedule);
  tcase_add_loop_test(c, clocks_agree_with_the_oracle, 0, 50);
  tcase_add_test(c, out_of_memory);
  suite_add_tcase(s, c);
  return s;
}

SN_TEST_MAIN(verify_suite)
