/* SPDX-License-Identifier: Apache-2.0 */
/* Placement problems for tests: small random ones, one with a planted optimum, and a reader of the
 * published graphs that is as short as it can be. */
#ifndef SN_TESTS_FLOWS_H
#define SN_TESTS_FLOWS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "placement/flow.h"
#include "tests/check_sn.h"

typedef struct dice {
  uint64_t seed, n;
} dice;

static inline int64_t roll(dice *d, int64_t low, int64_t high) {
  return low + (int64_t)sn__rng_below(d->seed, 99, d->n++, (uint64_t)(high - low + 1));
}

/* Every class one task, every task one value, alike devices, one kind of link, no contention. */
static inline sn__flow *plain_flow(int n_devices, uint32_t n, uint32_t n_reads) {
  sn__flow *f = NULL;
  ck_sn_ok(sn__flow_create(n_devices, n, n, n, n_reads, 0, 1, &f));
  for (uint32_t t = 0; t < n; t++)
    f->task_class[t] = f->value_task[t] = f->value_class[t] = t;
  return f;
}

/* ---- planted optimum ------------------------------------------------------------------------ */

typedef struct planted_task {
  int64_t start, end;
  int device;
} planted_task;

static inline int by_start(const void *a, const void *b) {
  const planted_task *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return x->device < y->device ? -1 : x->device > y->device;
}

/* After Davidovic and Crainic: n tasks fill the devices without a gap up to T, which therefore is
 * the least makespan; edges go forward in that schedule, across devices only where the copy fits.
 * Bytes are drawn by task and every device holds 1.05 times the most that one has in it. */
static inline sn__flow *planted_flow(uint64_t seed, int n_devices, uint32_t n, int edges_per_task,
                                     int64_t *out_best) {
  dice d = {seed, 0};
  int64_t total = (int64_t)(n / (uint32_t)n_devices) * 100;
  planted_task *tasks = calloc(n, sizeof *tasks);
  uint64_t *held = calloc((size_t)n_devices, sizeof *held);
  uint32_t made = 0;
  for (int k = 0; k < n_devices; k++) {
    uint32_t many = n / (uint32_t)n_devices + ((uint32_t)k < n % (uint32_t)n_devices);
    /* Cuts at random places: the lengths sum to T. */
    int64_t left = total, at = 0;
    for (uint32_t i = 0; i < many; i++) {
      int64_t mean = left / (int64_t)(many - i);
      int64_t ns = i + 1 == many ? left : roll(&d, mean - mean / 2, mean + mean / 2);
      tasks[made++] = (planted_task){at, at + ns, k};
      at += ns;
      left -= ns;
    }
  }
  qsort(tasks, n, sizeof *tasks, by_start);
  uint32_t n_reads = n * (uint32_t)edges_per_task;
  sn__flow *f = plain_flow(n_devices, n, n_reads);
  for (uint32_t t = 0; t < n; t++) {
    for (int k = 0; k < n_devices; k++)
      f->task_ns[t * (uint32_t)n_devices + (uint32_t)k] = tasks[t].end - tasks[t].start;
    f->copy_ns[t] = roll(&d, 1, 200);
    f->class_bytes[t] = (uint64_t)roll(&d, 1, 1000);
    held[tasks[t].device] += f->class_bytes[t];
  }
  uint64_t most = 0;
  for (int k = 0; k < n_devices; k++)
    if (held[k] > most) most = held[k];
  for (int k = 0; k < n_devices; k++)
    f->device_bytes[k] = most * 105 / 100;
  uint32_t e = 0;
  for (uint32_t i = 0; i < n_reads; i++) {
    uint32_t u = (uint32_t)roll(&d, 0, n - 1);
    for (int tries = 0; tries < 20; tries++) {
      uint32_t span = (uint32_t)(n_devices * 20), v = u + 1 + (uint32_t)roll(&d, 0, span);
      if (v >= n) continue;
      int64_t gap = tasks[v].start - tasks[u].end;
      if (gap < (tasks[u].device == tasks[v].device ? 0 : f->copy_ns[u])) continue;
      f->reads[e++] = (sn__flow_read){u, v};
      break;
    }
  }
  f->n_reads = e;
  free(held);
  free(tasks);
  ck_sn_ok(sn__flow_finish(f));
  *out_best = total;
  return f;
}

/* ---- published graphs ----------------------------------------------------------------------- */

static inline size_t numbers(char *line, int64_t *out, size_t most) {
  size_t n = 0;
  for (char *p = line; *p != '\0' && n < most;) {
    char *end = NULL;
    long long x = strtoll(p, &end, 10);
    if (end == p) {
      p++;
      continue;
    }
    out[n++] = x;
    p = end;
  }
  return n;
}

/* The form of shared/placement-instances/doppler. NULL: no such file. */
static inline sn__flow *doppler_flow(const char *path, int n_devices) {
  enum { MOST = 4096, LINE = 65536 };
  FILE *file = fopen(path, "r");
  if (file == NULL) return NULL;
  char *line = malloc(LINE);
  int64_t *from = calloc(MOST, sizeof *from), *to = calloc(MOST, sizeof *to), pair[2];
  ck_assert(fgets(line, LINE, file) != NULL);
  size_t n = (size_t)atoi(line);
  ck_assert(fgets(line, LINE, file) != NULL);
  size_t inputs = numbers(line, from, MOST);
  ck_assert(inputs < n);
  n -= inputs; /* edges and costs are of the others, numbered from 0 */
  ck_assert(fgets(line, LINE, file) != NULL);
  size_t edges = numbers(line, from, MOST);
  ck_assert(fgets(line, LINE, file) != NULL);
  ck_assert_uint_eq(numbers(line, to, MOST), edges);
  sn__flow *f = plain_flow(n_devices, (uint32_t)n, (uint32_t)edges);
  for (size_t e = 0; e < edges; e++)
    f->reads[e] = (sn__flow_read){(uint32_t)from[e], (uint32_t)to[e]};
  for (uint32_t i = 0; i < n; i++) {
    ck_assert(fgets(line, LINE, file) != NULL);
    ck_assert_uint_eq(numbers(line, pair, 2), 2);
    for (int k = 0; k < n_devices; k++)
      f->task_ns[i * (uint32_t)n_devices + (uint32_t)k] = pair[0];
    f->copy_ns[i] = pair[1];
  }
  fclose(file);
  free(line);
  free(from);
  free(to);
  ck_sn_ok(sn__flow_finish(f));
  return f;
}

#endif
