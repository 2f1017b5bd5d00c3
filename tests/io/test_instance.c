/* SPDX-License-Identifier: Apache-2.0 */
/* Placement and memory problems from files: each form read and answered, mistakes told in one line.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "io/instance.h"
#include "tests/check_sn.h"

static char path[64];

static const char *file_of(const char *text) {
  snprintf(path, sizeof path, "/tmp/sennit-instance-%ld", (long)getpid());
  FILE *f = fopen(path, "w");
  ck_assert_ptr_nonnull(f);
  fputs(text, f);
  ck_assert_int_eq(fclose(f), 0);
  return path;
}

/* Solves `text` and compares: objective, lower bound at most that, devices of all places. */
static void check(const char *text, const sn_instance_options *options, const char *format,
                  double objective, bool certified) {
  sn_instance *instance = NULL;
  sn_instance_answer *a = NULL;
  ck_sn_ok(sn_instance_open(file_of(text), 0, &instance));
  ck_assert_str_eq(sn_instance_facts_of(instance)->format, format);
  ck_sn_ok(sn_instance_solve(instance, options, &a));
  ck_assert_msg(fabs(a->objective - objective) <= 1e-9 * objective, "%s: %.12g, not %.12g", format,
                a->objective, objective);
  ck_assert(a->lower_bound <= a->objective);
  ck_assert_msg(a->certified == certified, "%s: certified %d", format, a->certified);
  ck_assert_uint_gt(a->n_places, 0);
  for (size_t i = 0; i < a->n_places; i++)
    ck_assert_int_lt(a->places[i].device, a->n_devices > 0 ? a->n_devices : 1);
  sn_instance_answer_free(a);
  sn_instance_free(instance);
  unlink(path);
}

/* Two chains of 4 and 3.5 ms; the one tensor between them costs 0.25 where it leaves and enters. */
static const char dnn[] =
    "{\"maxSizePerFPGA\": 100, \"maxFPGAs\": 2, \"maxCPUs\": 0, \"nodes\": ["
    "{\"id\": 7, \"supportedOnFpga\": 1, \"cpuLatency\": 9, \"fpgaLatency\": 4, \"size\": 60, "
    "\"isBackwardNode\": 0},"
    "{\"id\": 9, \"supportedOnFpga\": 1, \"cpuLatency\": 9, \"fpgaLatency\": 3.5, \"size\": 60, "
    "\"isBackwardNode\": 0}],"
    "\"edges\": [{\"sourceId\": 7, \"destId\": 9, \"cost\": 0.25}]}";

START_TEST(forms) {
  sn_instance_options contiguous = {.struct_size = sizeof contiguous, .contiguous = true};
  sn_instance_options certify = {.struct_size = sizeof certify, .certify = true};
  check(dnn, NULL, "dnn-partitioning", 4.25, true);
  check(dnn, &contiguous, "dnn-partitioning", 4.25, true);
  /* An input, which costs nothing and is no end of an edge, and 0, 1 beside each other before 2. */
  check("4\n0\n0,1\n2,2\n20000000000,10000000000\n30000000000,10000000000\n"
        "40000000000,10000000000\n",
        NULL, "doppler", 7, true);
  /* Blocks 0 and 1 live together, 2 takes the place of 0. */
  check("id,lower,upper,size\n0,0,5,4\n1,0,10,3\n2,5,10,4\n", NULL, "minimalloc", 7, true);
  check("{\"format\": \"sennit-placement\", \"version\": 1, \"objective\": \"makespan\", "
        "\"copies\": \"queue\", \"devices\": [{\"name\": \"a\"}, {\"name\": \"b\"}], "
        "\"tasks\": [{\"id\": 0, \"time\": 5}, {\"id\": 1, \"time\": [6, null]}, "
        "{\"id\": 2, \"time\": 1}], "
        "\"values\": [{\"from\": 0, \"copy\": 2, \"read_by\": [2]}, "
        "{\"from\": 1, \"copy\": 2, \"read_by\": [2]}]}",
        &certify, "sennit", 8, true);
}
END_TEST

START_TEST(pipedream_profiles) {
  sn_instance *instance = NULL;
  ck_sn_ok(sn_instance_open(
      file_of("node1 -- Input -- forward_compute_time=0.000, backward_compute_time=0.000, "
              "activation_size=10.0, parameter_size=0.000\n"
              "node2 -- Linear -- forward_compute_time=1.000, backward_compute_time=2.000, "
              "activation_size=10.0, parameter_size=40.000\n"
              "\tnode1 -- node2\n"),
      2, &instance));
  ck_assert_str_eq(sn_instance_facts_of(instance)->format, "pipedream");
  ck_assert_int_eq(sn_instance_facts_of(instance)->n_devices, 2);
  ck_assert_int_eq(sn_instance_facts_of(instance)->n_edges, 1);
  ck_assert_uint_gt(sn_instance_facts_of(instance)->n_notes, 0); /* what was assumed is said */
  sn_instance_free(instance);
  unlink(path);
}
END_TEST

#define OWN(rest) "{\"format\": \"sennit-placement\", \"version\": 1, " rest "}"
#define TWO       "\"devices\": [{\"name\": \"a\", \"memory\": 10}, {\"name\": \"b\", \"memory\": 10}], "

START_TEST(mistakes) {
  static const struct {
    const char *text, *words;
  } cases[] = {
      {"", "is empty"},
      {"{", "instance"},
      {"[[[[", "instance"},
      {"{\"nodes\": []}", "instance"},
      {"hello\n", "instance"},
      {"id,lower,upper,size\n0,5,1,4\n", "instance"},
      {"id,lower,upper,size\n0,0,5,4\n0,0,5,4\n", "two blocks"},
      {"4\n0\n0\n1,2\n", "instance"},
      {OWN("\"objective\": \"least\", " TWO "\"tasks\": [{\"id\": 0, \"time\": 1}]"), "objective"},
      {OWN("\"tusks\": [], " TWO "\"tasks\": [{\"id\": 0, \"time\": 1}]"), "tusks"},
      {OWN("\"objective\": \"load\", " TWO "\"tasks\": []"), "instance"},
      {OWN("\"objective\": \"load\", " TWO "\"tasks\": [{\"id\": 0, \"time\": -1}]"), "instance"},
      {OWN("\"objective\": \"load\", " TWO "\"tasks\": [{\"id\": 0, \"time\": 1e300}]"),
       "instance"},
      {OWN("\"objective\": \"load\", " TWO
           "\"tasks\": [{\"id\": 0, \"time\": 1}, {\"id\": 0, \"time\": 1}]"),
       "twice"},
      {OWN("\"objective\": \"makespan\", " TWO
           "\"tasks\": [{\"id\": 0, \"time\": 1}, {\"id\": 1, \"time\": 1}], "
           "\"orders\": [[0, 1], [1, 0]]"),
       "cycle"},
      {OWN("\"objective\": \"load\", " TWO "\"classes\": [{\"id\": 0, \"device\": \"c\"}], "
           "\"tasks\": [{\"id\": 0, \"class\": 0, \"time\": 1}]"),
       "no device"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sn_instance *instance = NULL;
    sn_status status = sn_instance_open(file_of(cases[i].text), 0, &instance);
    const char *said = sn_status_message(status);
    ck_assert_msg(sn_status_code(status) == SN_CODE_DATA, "case %zu: %s", i, said);
    ck_assert_msg(strstr(said, cases[i].words) != NULL, "case %zu: %s", i, said);
    ck_assert_msg(strstr(said, path) != NULL && strchr(said, '\n') == NULL, "case %zu: %s", i,
                  said);
    sn_status_free(status);
  }
  unlink(path);
  sn_instance *none = NULL;
  ck_sn_fails(sn_instance_open("/nowhere/at/all", 0, &none), SN_CODE_NOT_FOUND, "/nowhere/at/all");
}
END_TEST

/* Two of 6 bytes on devices of 10 that must be together; one of 11 bytes; three of 7. */
START_TEST(what_does_not_fit) {
  static const struct {
    const char *text, *words;
  } cases[] = {
      {OWN("\"objective\": \"load\", " TWO "\"classes\": [{\"id\": 0, \"bytes\": 11}], "
           "\"tasks\": [{\"id\": 0, \"class\": 0, \"time\": 1}]"),
       "nothing fits"},
      {OWN("\"objective\": \"load\", " TWO "\"classes\": [{\"id\": 0, \"bytes\": 7}, {\"id\": 1, "
           "\"bytes\": 7}, {\"id\": 2, \"bytes\": 7}], \"tasks\": [{\"id\": 0, \"class\": 0, "
           "\"time\": 1}, {\"id\": 1, \"class\": 1, \"time\": 1}, {\"id\": 2, \"class\": 2, "
           "\"time\": 1}]"),
       "nothing fits"},
  };
  for (size_t i = 0; i < 2; i++) {
    sn_instance *instance = NULL;
    sn_instance_answer *a = NULL;
    ck_sn_ok(sn_instance_open(file_of(cases[i].text), 0, &instance));
    ck_sn_fails(sn_instance_solve(instance, NULL, &a), SN_CODE_OUT_OF_MEMORY, cases[i].words);
    sn_instance_free(instance);
  }
  unlink(path);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("instance");
  TCase *t = tcase_create("instance");
  tcase_add_test(t, forms);
  tcase_add_test(t, pipedream_profiles);
  tcase_add_test(t, mistakes);
  tcase_add_test(t, what_does_not_fit);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
