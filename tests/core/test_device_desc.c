/* SPDX-License-Identifier: Apache-2.0 */
/* Device descriptions, topologies and device lists. */
#include "core/device/desc.h"

#include <stdio.h>

#include "tests/check_sn.h"
#include "tests/fail_alloc.h"

static void expect_names(const char *list, int threads, const char *names) {
  sn_topology *t = NULL;
  ck_sn_ok(sn_topology_parse(list, threads, &t));
  char joined[512] = "";
  for (int i = 0; i < t->n_devices; i++) {
    size_t used = strlen(joined);
    snprintf(joined + used, sizeof joined - used, "%s%s(%d)", i == 0 ? "" : " ", t->devices[i].name,
             t->devices[i].threads);
    ck_assert_int_eq(sn_topology_find(t, t->devices[i].name), i);
  }
  ck_assert_str_eq(joined, names);
  sn_topology_free(t);
}

START_TEST(lists) {
  expect_names("cpu", 3, "cpu:0(3)");
  expect_names("cpu:0,cpu:1", 2, "cpu:0(1) cpu:1(1)");
  expect_names("cpu:7", 5, "cpu:7(5)");
  expect_names("cpu*3", 8, "cpu:0(3) cpu:1(3) cpu:2(2)");
  expect_names("cpu*4", 2, "cpu:0(1) cpu:1(1) cpu:2(1) cpu:3(1)");
  expect_names("null*2", 9, "null:0(1) null:1(1)");
  expect_names("null:0,cpu:1,cpu:0", 3, "null:0(1) cpu:1(2) cpu:0(1)");
}
END_TEST

static const struct {
  const char *list, *words;
} wrong_lists[] = {
    {"", "a device is missing"},
    {"cpu:0,", "a device is missing"},
    {",cpu:0", "a device is missing"},
    {"cpu:0,,cpu:1", "a device is missing"},
    {"gpu:0", "unknown kind of device; there are cpu, cuda, null"},
    {"CPU:0", "unknown kind"},
    {" cpu:0", "unknown kind"},
    {"cp", "unknown kind"},
    {"cpux", "unknown kind"},
    {"cpu:", "must be a number"},
    {"cpu:-1", "must be a number"},
    {"cpu:1x", "must be a number"},
    {"cpu:99999", "must be a number"},
    {"cpu:0/1", "only cuda devices have parts"},
    {"cpu*", "a number from 1 to 64"},
    {"cpu*0", "a number from 1 to 64"},
    {"cpu*65", "a number from 1 to 64"},
    {"cpu*64,null:0", "more than 64 devices"},
    {"cpu*2x", "a number from 1 to 64"},
    {"cpu/2", "must be a number"},
    {"cpu:0,cpu:0", "cpu:0 is named twice"},
    {"cpu*2,cpu:1", "cpu:1 is named twice"},
};

START_TEST(mistakes_in_lists) {
  sn_topology *t = NULL;
  ck_sn_fails(sn_topology_parse(wrong_lists[_i].list, 0, &t), SN_CODE_CONFIG,
              wrong_lists[_i].words);
  ck_assert_ptr_null(t);
}
END_TEST

START_TEST(message_names_the_item) {
  sn_topology *t = NULL;
  ck_sn_fails(sn_topology_parse("cpu:0,tpu:1,null:0", 0, &t), SN_CODE_CONFIG,
              "devices \"cpu:0,tpu:1,null:0\": \"tpu:1\": unknown kind");
  ck_sn_fails(sn_topology_parse("cpu:0", -1, &t), SN_CODE_CONFIG, "-1 threads");
}
END_TEST

START_TEST(absent_kind_says_why) {
  ck_assert_ptr_null(sn_device_kind_absent(SN_DEVICE_CPU));
  ck_assert_ptr_null(sn_device_kind_absent(SN_DEVICE_NULL));
  if (sn_device_kind_absent(SN_DEVICE_CUDA) == NULL) return; /* a CUDA module is loaded */
  sn_topology *t = NULL;
  ck_sn_fails(sn_topology_parse("cuda:0", 0, &t), SN_CODE_CONFIG, "CUDA module");
}
END_TEST

/* A machine that is not here can be described, and has everything that planning reads. */
START_TEST(described_machine) {
  sn_device_desc d[3];
  sn_device_desc_init(SN_DEVICE_CUDA, 0, 0, 1, &d[0]);
  sn_device_desc_init(SN_DEVICE_CUDA, 0, 1, 1, &d[1]);
  sn_device_desc_init(SN_DEVICE_CPU, 0, -1, 4, &d[2]);
  ck_assert_str_eq(d[1].name, "cuda:0/1");
  ck_assert_int_eq(d[2].threads, 4);
  sn_topology *t = NULL, *copy = NULL;
  ck_sn_ok(sn_topology_create(d, 3, &t));
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      const sn_link_desc *link = sn_topology_link(t, i, j);
      ck_assert_int_eq(link->from, i);
      ck_assert_int_eq(link->to, j);
      int64_t small = sn_topology_copy_ns(t, i, j, 1),
              large = sn_topology_copy_ns(t, i, j, 1 << 30);
      if (i == j) {
        ck_assert_int_eq(small, 0);
        ck_assert_int_eq(large, 0);
      } else {
        ck_assert_int_gt(small, link->latency_ns);
        ck_assert_int_gt(large, small);
      }
    }
  }
  t->links[1].latency_ns = 100;
  t->links[1].bytes_per_s = 1e9;
  ck_assert_int_eq(sn_topology_copy_ns(t, 0, 1, 1000), 1100);
  t->links[1].bytes_per_s = 0;
  ck_assert_int_eq(sn_topology_copy_ns(t, 0, 1, 1000), INT64_MAX);
  ck_sn_ok(sn_topology_copy(t, &copy));
  sn_topology_free(t);
  ck_assert_int_eq(copy->n_devices, 3);
  ck_assert_int_eq(copy->links[1].latency_ns, 100);
  ck_assert_int_eq(sn_topology_find(copy, "cuda:0/1"), 1);
  ck_assert_int_eq(sn_topology_find(copy, "cuda:0"), -1);
  sn_topology_free(copy);
  sn_topology_free(NULL);
}
END_TEST

START_TEST(wrong_descriptions) {
  sn_topology *t = NULL;
  sn_device_desc d[2];
  sn_device_desc_init(SN_DEVICE_NULL, 0, -1, 1, &d[0]);
  d[1] = d[0];
  ck_sn_fails(sn_topology_create(d, 0, &t), SN_CODE_INVALID, "a topology of 0 devices");
  ck_sn_fails(sn_topology_create(d, 2, &t), SN_CODE_INVALID, "two devices are called null:0");
  d[0].flops_per_s = 0;
  ck_sn_fails(sn_topology_create(d, 1, &t), SN_CODE_INVALID, "rates must be positive");
  d[0] = d[1];
  d[0].threads = 0;
  ck_sn_fails(sn_topology_create(d, 1, &t), SN_CODE_INVALID, "0 threads");
  d[0] = d[1];
  d[0].name[0] = '\0';
  ck_sn_fails(sn_topology_create(d, 1, &t), SN_CODE_INVALID, "has no name");
  d[0] = d[1];
  d[0].kind = (sn_device_kind)77;
  ck_sn_fails(sn_topology_create(d, 1, &t), SN_CODE_INVALID, "unknown kind 77");
  ck_assert_ptr_null(t);
}
END_TEST

START_TEST(memory_is_shared_out) {
  sn_topology *one = NULL, *two = NULL;
  ck_sn_ok(sn_topology_parse("cpu:0", 2, &one));
  ck_sn_ok(sn_topology_parse("cpu*2", 2, &two));
  ck_assert_uint_gt(one->devices[0].memory_bytes, 0);
  ck_assert_uint_eq(two->devices[0].memory_bytes, one->devices[0].memory_bytes / 2);
  ck_assert(two->devices[0].flops_per_s * 2 == one->devices[0].flops_per_s);
  sn_topology_free(one);
  sn_topology_free(two);
}
END_TEST

static sn_status parse_one(void *arg) {
  (void)arg;
  sn_topology *t = NULL, *copy = NULL;
  SN_TRY(sn_topology_parse("cpu*2,null:0", 0, &t));
  sn_status status = sn_topology_copy(t, &copy);
  sn_topology_free(t);
  sn_topology_free(copy);
  return status;
}

START_TEST(caps) {
  sn_topology *t = NULL;
  ck_sn_ok(sn_topology_parse("cpu:3=64MiB,cpu*2=1.5GB,null:0,null:1=12B", 2, &t));
  ck_assert_int_eq(t->n_devices, 5);
  ck_assert_uint_eq(t->devices[0].memory_bytes, 64u << 20);
  ck_assert_uint_eq(t->devices[1].memory_bytes, 1500000000);
  ck_assert_uint_eq(t->devices[2].memory_bytes, 1500000000);
  ck_assert_uint_gt(t->devices[3].memory_bytes, 1u << 30);
  ck_assert_uint_eq(t->devices[4].memory_bytes, 12);
  ck_assert_str_eq(t->devices[2].name, "cpu:1");
  sn_topology_free(t);
  static const char *const wrong[] = {
      "cpu:0=",   "cpu:0=MiB",   "cpu:0=64",   "cpu:0=64mib",         "cpu:0=0MiB",
      "cpu:0=.B", "cpu:0=-1MiB", "cpu:0=1e9B", "cpu:0=9999999999TiB", "cpu:0=1MiB=2MiB"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    ck_sn_fails(sn_topology_parse(wrong[i], 1, &t), SN_CODE_CONFIG, "cpu:0=64MiB");
}
END_TEST

START_TEST(out_of_memory_leaves_nothing) {
  ck_assert_int_eq(sn_fail_alloc_every_call(parse_one, NULL), 7);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("device_desc");
  TCase *t = tcase_create("device_desc");
  tcase_add_test(t, lists);
  tcase_add_loop_test(t, mistakes_in_lists, 0, (int)(sizeof wrong_lists / sizeof *wrong_lists));
  tcase_add_test(t, message_names_the_item);
  tcase_add_test(t, absent_kind_says_why);
  tcase_add_test(t, described_machine);
  tcase_add_test(t, wrong_descriptions);
  tcase_add_test(t, memory_is_shared_out);
  tcase_add_test(t, caps);
  tcase_add_test(t, out_of_memory_leaves_nothing);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
