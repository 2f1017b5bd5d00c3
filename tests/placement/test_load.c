/* SPDX-License-Identifier: Apache-2.0 */
/* The largest load against enumeration, and a problem's checks. */
#include "placement/load.h"
#include "core/alloc.h"
#include "tests/placement/flows.h"

enum { CLASSES = 7, DEVICES = 3 };

/* Random tasks with memory that binds now and then; device 2 pays for no copies and is slow. */
static sn__flow *random_flow(uint64_t seed) {
  dice d = {seed, 0};
  uint32_t n_reads = 0;
  sn__flow *f = plain_flow(DEVICES, CLASSES, CLASSES * 2);
  for (uint32_t t = 0; t < CLASSES; t++) {
    int64_t ns = roll(&d, 0, 20);
    for (int k = 0; k < DEVICES; k++)
      f->task_ns[t * DEVICES + (uint32_t)k] = k == 2 ? ns * 3 + 1 : ns;
    f->copy_ns[t] = roll(&d, 0, 6);
    f->class_bytes[t] = (uint64_t)roll(&d, 1, 10);
  }
  for (uint32_t t = 1; t < CLASSES; t++)
    for (int k = 0; k < 2; k++)
      f->reads[n_reads++] = (sn__flow_read){(uint32_t)roll(&d, 0, t - 1), t};
  f->n_reads = n_reads;
  f->device_bytes[0] = f->device_bytes[1] = (uint64_t)roll(&d, 20, 60);
  if (seed % 5 == 0) f->class_pin[roll(&d, 0, CLASSES - 1)] = 1;
  ck_sn_ok(sn__flow_finish(f));
  return f;
}

static const bool pays[DEVICES] = {true, true, false};

/* Straight from the definition; SN__FLOW_NEVER: does not fit. */
static int64_t largest_load(const sn__flow *f, const int *device) {
  int64_t most = 0;
  for (int k = 0; k < DEVICES; k++) {
    int64_t load = 0;
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < CLASSES; t++) {
      if (device[t] != k) continue;
      if (f->class_pin[t] >= 0 && f->class_pin[t] != k) return SN__FLOW_NEVER;
      load += f->task_ns[t * DEVICES + (uint32_t)k];
      bytes += f->class_bytes[t];
    }
    for (uint32_t v = 0; v < CLASSES && pays[k]; v++) {
      bool crosses = false;
      for (uint32_t r = 0; r < f->n_reads; r++)
        crosses |= f->reads[r].value == v && (device[v] == k) != (device[f->reads[r].task] == k);
      if (crosses) load += f->copy_ns[v];
    }
    if (f->device_bytes[k] != 0 && bytes > f->device_bytes[k]) return SN__FLOW_NEVER;
    if (load > most) most = load;
  }
  return most;
}

/* Slices one behind the other: no way leads from a device and back to it. */
static bool is_contiguous(const sn__flow *f, const int *device) {
  for (int k = 0; k < DEVICES; k++) {
    bool behind[CLASSES] = {false};
    for (uint32_t t = 0; t < CLASSES; t++)
      for (uint32_t r = 0; r < f->n_reads; r++) {
        if (f->reads[r].task != t) continue;
        uint32_t from = f->reads[r].value;
        behind[t] |= device[from] != k && behind[from];
        behind[t] |= device[from] == k && device[t] != k;
        if (device[t] == k && device[from] != k && behind[from]) return false;
      }
  }
  return true;
}

static int64_t enumerate(const sn__flow *f, bool contiguous) {
  int device[CLASSES];
  int64_t best = SN__FLOW_NEVER;
  for (int way = 0; way < 2187; way++) { /* DEVICES to the power of CLASSES */
    int digits = way;
    for (uint32_t t = 0; t < CLASSES; t++, digits /= DEVICES)
      device[t] = digits % DEVICES;
    int64_t ns = largest_load(f, device);
    if (ns < best && (!contiguous || is_contiguous(f, device))) best = ns;
  }
  return best;
}

static void check_search(const sn__load *l, const sn__flow *f, bool contiguous) {
  sn__load_options o = {.contiguous = contiguous, .evals = 20000, .seed = 1};
  sn__load_result out;
  int64_t best = enumerate(f, contiguous);
  if (best == SN__FLOW_NEVER) {
    ck_sn_fails(sn__load_solve(l, &o, &out), contiguous ? SN_CODE_INVALID : SN_CODE_OUT_OF_MEMORY,
                "fit");
    return;
  }
  ck_sn_ok(sn__load_solve(l, &o, &out));
  ck_assert_int_eq(out.ns, best);
  ck_assert(out.certified);
  ck_assert_int_eq(largest_load(f, out.device), best);
  ck_assert_int_le(out.bound_ns, enumerate(f, false));
  ck_assert_msg(!contiguous || is_contiguous(f, out.device), "not contiguous");
  sn__free(out.device);
}

START_TEST(equal_to_enumeration) {
  int with_room = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    sn__flow *f = random_flow(seed);
    sn__load_facts facts = {.device_pays = pays};
    sn__load *l = NULL;
    ck_sn_ok(sn__load_create(f, &facts, &l));
    check_search(l, f, _i == 1);
    with_room += enumerate(f, false) != SN__FLOW_NEVER;
    sn__load_free(l);
    sn__flow_free(f);
  }
  ck_assert_int_gt(with_room, 30);
}
END_TEST

/* A move's effect is what counting anew gives. */
START_TEST(moves_are_counted_right) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    sn__flow *f = random_flow(seed * 5 + 1);
    sn__load_facts facts = {.device_pays = pays};
    sn__load *l = NULL;
    sn__load_state state;
    int device[CLASSES] = {0};
    dice d = {seed, 0};
    for (int k = 0; k < 2; k++)
      f->device_bytes[k] = 0;
    ck_sn_ok(sn__load_create(f, &facts, &l));
    ck_sn_ok(sn__load_state_create(l, &state));
    sn__load_assign(&state, device);
    for (int i = 0; i < 200; i++) {
      uint32_t c = (uint32_t)roll(&d, 0, CLASSES - 1);
      int to = (int)roll(&d, 0, DEVICES - 1), from = device[c];
      if (to == from) continue;
      int64_t from_ns = 0, to_ns = 0;
      sn__load_try(&state, c, to, &from_ns, &to_ns);
      sn__load_move(&state, c, to);
      device[c] = to;
      ck_assert_int_eq(state.device_ns[from], from_ns);
      ck_assert_int_eq(state.device_ns[to], to_ns);
      ck_assert_int_eq(sn__load_largest(&state), largest_load(f, device));
    }
    sn__load_state_free(&state);
    sn__load_free(l);
    sn__flow_free(f);
  }
}
END_TEST

START_TEST(what_is_no_problem) {
  static const char *const words[] = {"negative", "cycle", "pinned", "class", "copy", "too large"};
  for (int i = 0; i < 6; i++) {
    sn__flow *f = plain_flow(2, 3, 2);
    f->reads[0] = (sn__flow_read){0, 1};
    f->reads[1] = (sn__flow_read){1, 2};
    if (i == 0) f->task_ns[1] = -1;
    if (i == 1) f->reads[0] = (sn__flow_read){2, 1};
    if (i == 2) f->class_pin[1] = 7;
    if (i == 3) f->task_class[2] = 9;
    if (i == 4) f->copy_ns[0] = -3;
    if (i == 5) f->task_ns[0] = f->task_ns[2] = SN__FLOW_TIME_MOST;
    ck_sn_fails(sn__flow_finish(f), SN_CODE_INVALID, words[i]);
    sn__flow_free(f);
  }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("load");
  TCase *t = tcase_create("load");
  tcase_add_loop_test(t, equal_to_enumeration, 0, 2); /* the whole search, contiguous */
  tcase_add_test(t, moves_are_counted_right);
  tcase_add_test(t, what_is_no_problem);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
