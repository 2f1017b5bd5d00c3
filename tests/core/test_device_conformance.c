/* SPDX-License-Identifier: Apache-2.0 */
/* What every kind of device must do, written once: each test runs for each row of `kinds`. A new
 * backend adds a row. Buffers are reached through transfers alone, so the host need not see them.
 */
#include "core/device/device.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "core/device/thread.h"
#include "core/op.h"
#include "tests/check_sn.h"
#include "tests/fail_alloc.h"

typedef struct device_kind {
  const char *label;
  sn_device_kind kind;
  int threads;
  uint64_t test_seed;
  bool computes; /* commands run and memory is there */
} device_kind;

static const device_kind kinds[] = {
    {"cpu, 1 thread", SN_DEVICE_CPU, 1, 0, true},
    {"cpu, 2 threads", SN_DEVICE_CPU, 2, 0, true},
    {"cpu, 1 thread, test mode", SN_DEVICE_CPU, 1, 11, true},
    {"cpu, 2 threads, test mode", SN_DEVICE_CPU, 2, 12, true},
    {"null", SN_DEVICE_NULL, 1, 0, false},
};

enum { N_KINDS = sizeof kinds / sizeof *kinds, N_DEVICES = 2 };

static const device_kind *kind; /* of the running test */
static sn__device *devices[N_DEVICES];

static void create(int row) {
  kind = &kinds[row];
  for (int i = 0; i < N_DEVICES; i++) {
    sn_device_desc desc;
    sn_device_desc_init(kind->kind, i, -1, kind->threads, &desc);
    sn__device_options options = {.test_seed = kind->test_seed};
    ck_sn_ok(sn__device_create(&desc, &options, &devices[i]));
  }
}

static void end(void) {
  sn__devices_free(devices, N_DEVICES);
}

static void nap_us(long us) {
  struct timespec nap = {0, us * 1000};
  nanosleep(&nap, NULL);
}

static sn__timeline *timeline(void) {
  sn__timeline *t = NULL;
  ck_sn_ok(sn__timeline_create(0, &t));
  return t;
}

static sn__buffer *buffer(sn__device *device, size_t bytes) {
  sn__buffer *b = NULL;
  ck_sn_ok(sn__device_alloc(device, bytes, &b));
  return b;
}

static void upload(sn__buffer *to, const void *from, size_t bytes) {
  sn__transfer t = {
      .to = {.buffer = to}, .from = {.host = (void *)(uintptr_t)from}, .bytes = bytes};
  ck_sn_ok(sn__transfer_now(&t));
}

static void download(void *to, sn__buffer *from, size_t bytes) {
  sn__transfer t = {.to = {.host = to}, .from = {.buffer = from}, .bytes = bytes};
  ck_sn_ok(sn__transfer_now(&t));
}

static void submit(sn__device *device, sn__queue queue, const sn__command *commands, int n) {
  ck_sn_ok(sn__device_submit(device, queue, commands, n));
}

/* ---- commands that tests run --------------------------------------------------------------- */

static sn_status count(void *arg, const sn__launch *at) {
  (void)at;
  atomic_fetch_add((_Atomic int *)arg, 1);
  return SN_OK;
}

static sn_status not_finite(void *arg, const sn__launch *at) {
  (void)arg, (void)at;
  return sn_status_make(SN_CODE_NUMERIC, "loss is not finite");
}

static int ran(int n) {
  return kind->computes ? n : 0;
}

/* ---- memory -------------------------------------------------------------------------------- */

START_TEST(memory_is_counted) {
  create(_i);
  sn__device_memory m;
  sn__buffer *a = buffer(devices[0], 1000), *b = buffer(devices[0], 24);
  sn__device_memory_stats(devices[0], &m);
  ck_assert_uint_eq(m.in_use, 1024);
  ck_assert_uint_eq(m.buffers, 2);
  sn__buffer_free(a);
  sn__buffer_free(b);
  sn__buffer_free(NULL);
  sn__device_memory_stats(devices[0], &m);
  ck_assert_uint_eq(m.in_use, 0);
  ck_assert_uint_eq(m.peak, 1024);
  ck_assert_uint_eq(m.buffers, 0);
  sn__device_memory_stats(devices[1], &m); /* each device has a heap of its own */
  ck_assert_uint_eq(m.peak, 0);
  end();
}
END_TEST

START_TEST(sizes_and_alignment) {
  static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 5000000};
  create(_i);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    sn__buffer *b = buffer(devices[0], sizes[i]);
    ck_assert_ptr_eq(b->device, devices[0]);
    ck_assert_uint_eq(b->bytes, sizes[i]);
    if (b->host != NULL) ck_assert_uint_eq((uintptr_t)b->host % SN__BUFFER_ALIGNMENT, 0);
    ck_sn_ok(sn__buffer_check(b));
    sn__buffer_free(b);
  }
  end();
}
END_TEST

START_TEST(round_trip) {
  create(_i);
  enum { N = 5000 };
  static unsigned char in[N], out[N];
  for (int i = 0; i < N; i++)
    in[i] = (unsigned char)(i * 31 + 7);
  sn__buffer *b = buffer(devices[0], N);
  upload(b, in, N);
  memset(out, 0x55, N);
  download(out, b, N);
  for (int i = 0; i < N; i++)
    ck_assert_int_eq(out[i], kind->computes ? in[i] : 0);
  /* A part, at offsets on both sides. */
  sn__transfer t = {.to = {.buffer = b, .offset = 100}, .from = {.host = in, .offset = 10}, 50};
  ck_sn_ok(sn__transfer_now(&t));
  t = (sn__transfer){.to = {.host = out, .offset = 3}, .from = {.buffer = b, .offset = 99}, 52};
  ck_sn_ok(sn__transfer_now(&t));
  if (kind->computes) {
    ck_assert_int_eq(out[3], in[99]);
    for (int i = 0; i < 50; i++)
      ck_assert_int_eq(out[4 + i], in[10 + i]);
    ck_assert_int_eq(out[54], in[150]);
  }
  sn__buffer_free(b);
  end();
}
END_TEST

START_TEST(copies) {
  create(_i);
  enum { N = 3000 };
  static unsigned char in[N], out[N];
  for (int i = 0; i < N; i++)
    in[i] = (unsigned char)(i * 7 + 1);
  for (int to = 0; to < N_DEVICES; to++) { /* on the device itself, then to the other one */
    sn__buffer *a = buffer(devices[0], N), *b = buffer(devices[to], N);
    upload(a, in, N);
    sn__transfer t = {.to = {.buffer = b, .offset = 5}, .from = {.buffer = a}, .bytes = N - 5};
    ck_sn_ok(sn__transfer_now(&t));
    download(out, b, N);
    for (int i = 5; i < N && kind->computes; i++)
      ck_assert_int_eq(out[i], in[i - 5]);
    sn__buffer_free(a);
    sn__buffer_free(b);
  }
  end();
}
END_TEST

START_TEST(ranges_are_checked) {
  create(_i);
  char host[64] = {0};
  sn__buffer *b = buffer(devices[0], 64);
  sn__transfer t = {.to = {.buffer = b, .offset = 1}, .from = {.host = host}, .bytes = 64};
  ck_sn_fails(sn__transfer_now(&t), SN_CODE_INTERNAL, "64 bytes at 1 of a buffer of 64 bytes");
  t.to.offset = SIZE_MAX;
  ck_sn_fails(sn__transfer_now(&t), SN_CODE_INTERNAL, "of a buffer of 64 bytes");
  t = (sn__transfer){.to = {.host = host}, .from = {.buffer = b, .offset = 60}, .bytes = 5};
  ck_sn_fails(sn__transfer_now(&t), SN_CODE_INTERNAL, "a transfer from");
  t = (sn__transfer){.to = {.buffer = b, .offset = 8}, .from = {.buffer = b}, .bytes = 9};
  ck_sn_fails(sn__transfer_now(&t), SN_CODE_INTERNAL, "overlaps itself");
  t.bytes = 8;
  ck_sn_ok(sn__transfer_now(&t));
  t = (sn__transfer){.to = {.host = host}, .from = {.host = host}, .bytes = 8};
  ck_sn_fails(sn__transfer_now(&t), SN_CODE_INTERNAL, "host memory to host memory");
  t = (sn__transfer){.to = {.buffer = b, .offset = 64}, .from = {.host = NULL}, .bytes = 0};
  ck_sn_ok(sn__transfer_now(&t));
  sn__buffer_free(b);
  end();
}
END_TEST

START_TEST(memory_runs_out) {
  kind = &kinds[_i];
  sn_device_desc desc;
  sn_device_desc_init(kind->kind, 0, -1, kind->threads, &desc);
  desc.memory_bytes = 1000;
  sn__device *device = NULL;
  ck_sn_ok(sn__device_create(&desc, NULL, &device));
  sn__buffer *a = buffer(device, 600), *b = NULL;
  ck_sn_fails(sn__device_alloc(device, 401, &b), SN_CODE_OUT_OF_MEMORY,
              "no room for 401 bytes: 600 in use of 1000");
  ck_sn_fails(sn__device_alloc(device, SIZE_MAX, &b), SN_CODE_OUT_OF_MEMORY, desc.name);
  ck_assert_ptr_null(b);
  ck_sn_ok(sn__device_alloc(device, 400, &b));
  sn__buffer_free(a);
  sn__buffer_free(b);
  sn__device_inject(device, SN__INJECT_ALLOC, 2);
  a = buffer(device, 10);
  ck_sn_fails(sn__device_alloc(device, 10, &b), SN_CODE_OUT_OF_MEMORY, "injected");
  b = buffer(device, 10);
  sn__buffer_free(a);
  sn__buffer_free(b);
  sn__device_memory m;
  sn__device_memory_stats(device, &m);
  ck_assert_uint_eq(m.in_use, 0);
  ck_assert_uint_eq(m.limit, 1000);
  sn__device_free(device);
}
END_TEST

/* ---- order --------------------------------------------------------------------------------- */

START_TEST(waits_before_signals) {
  create(_i);
  sn__timeline *go = timeline(), *done = timeline();
  _Atomic int runs = 0;
  sn__timepoint wait = {go, 5}, signal = {done, 1};
  sn__command c = {"count", &wait, 1, &signal, 1, count, &runs, NULL, 0};
  for (int q = 0; q < SN__QUEUE_COUNT; q++) {
    wait.value = (uint64_t)q + 5;
    signal.value = (uint64_t)q + 1;
    submit(devices[0], (sn__queue)q, &c, 1);
    nap_us(3000);
    sn__timeline_signal(go, wait.value - 1); /* not enough */
    nap_us(3000);
    ck_assert(!sn__timeline_reached(done, signal.value));
    ck_assert_int_eq(atomic_load(&runs), ran(q));
    sn__timeline_signal(go, wait.value);
    ck_sn_ok(sn__timeline_wait(done, signal.value, SN__FOREVER));
    ck_assert_int_eq(atomic_load(&runs), ran(q + 1));
  }
  end();
  sn__timeline_free(go);
  sn__timeline_free(done);
}
END_TEST

START_TEST(waits_for_all) {
  create(_i);
  sn__timeline *a = timeline(), *b = timeline(), *done = timeline();
  sn__timepoint waits[] = {{a, 1}, {b, 2}, {a, 3}}, signals[] = {{done, 1}, {done, 2}};
  _Atomic int runs = 0;
  sn__command c = {"count", waits, 3, signals, 2, count, &runs, NULL, 0};
  submit(devices[0], SN__QUEUE_COMPUTE, &c, 1);
  sn__timeline_signal(a, 1);
  sn__timeline_signal(b, 2);
  nap_us(3000);
  ck_assert_int_eq(atomic_load(&runs), 0);
  ck_assert(!sn__timeline_reached(done, 1));
  sn__timeline_signal(a, 3);
  ck_sn_ok(sn__timeline_wait(done, 2, SN__FOREVER));
  ck_assert_int_eq(atomic_load(&runs), ran(1));
  end();
  sn__timeline_free(a);
  sn__timeline_free(b);
  sn__timeline_free(done);
}
END_TEST

typedef struct order {
  int n;
  int seen[64]; /* not atomic: the queue alone orders the writes */
} order;

typedef struct mark {
  order *order;
  int number;
} mark;

static sn_status note(void *arg, const sn__launch *at) {
  (void)at;
  mark *m = arg;
  m->order->seen[m->order->n++] = m->number;
  return SN_OK;
}

/* No waits and no signals in between: the order of submission is the order, over batches too. */
START_TEST(order_within_a_queue) {
  create(_i);
  enum { BATCHES = 8, EACH = 6 };
  sn__timeline *done = timeline();
  sn__timepoint last = {done, 1};
  order seen = {0};
  mark marks[BATCHES * EACH];
  sn__command commands[BATCHES * EACH];
  for (int i = 0; i < BATCHES * EACH; i++) {
    marks[i] = (mark){&seen, i};
    commands[i] = (sn__command){.label = "note", .run = note, .arg = &marks[i]};
  }
  commands[BATCHES * EACH - 1].signals = &last;
  commands[BATCHES * EACH - 1].n_signals = 1;
  for (int b = 0; b < BATCHES; b++) {
    submit(devices[0], SN__QUEUE_COMPUTE, commands + b * EACH, EACH);
  }
  submit(devices[0], SN__QUEUE_COMPUTE, NULL, 0);
  ck_sn_ok(sn__timeline_wait(done, 1, SN__FOREVER));
  ck_assert_int_eq(seen.n, ran(BATCHES * EACH));
  for (int i = 0; i < seen.n; i++)
    ck_assert_int_eq(seen.seen[i], i);
  end();
  sn__timeline_free(done);
}
END_TEST

static sn_status meet(void *arg, const sn__launch *at) {
  (void)at;
  _Atomic int *inside = arg;
  atomic_fetch_add(inside, 1);
  while (atomic_load(inside) < 4)
    nap_us(200);
  return SN_OK;
}

/* Four commands on four queues that wait for one another inside: all must run at once. */
START_TEST(queues_overlap) {
  create(_i);
  sn__timeline *done[4];
  sn__timepoint points[4];
  sn__command commands[4];
  _Atomic int inside = 0;
  for (int i = 0; i < 4; i++) {
    done[i] = timeline();
    points[i] = (sn__timepoint){done[i], 1};
    commands[i] = (sn__command){.signals = &points[i], .n_signals = 1, .run = meet, .arg = &inside};
    submit(devices[i / 2], (sn__queue)(i % 2), &commands[i], 1);
  }
  ck_sn_ok(sn__timepoints_wait(points, 4, SN__FOREVER));
  ck_assert_int_eq(atomic_load(&inside), ran(4));
  end();
  for (int i = 0; i < 4; i++)
    sn__timeline_free(done[i]);
}
END_TEST

static sn_status add_one(void *arg, const sn__launch *at) {
  (void)at;
  sn__buffer *b = arg;
  int v = 0;
  sn__transfer get = {.to = {.host = &v}, .from = {.buffer = b}, .bytes = sizeof v};
  SN_TRY(sn__transfer_now(&get));
  v++;
  sn__transfer put = {.to = {.buffer = b}, .from = {.host = &v}, .bytes = sizeof v};
  return sn__transfer_now(&put);
}

/* A number goes round: +1 on device 0, copied over, +1 on device 1, copied back, all in a few
 * batches whose commands meet through two timelines alone. */
START_TEST(pipeline_over_two_devices) {
  create(_i);
  enum { ROUNDS = 40 };
  sn__buffer *b[2] = {buffer(devices[0], 4), buffer(devices[1], 4)};
  int v = 100;
  upload(b[0], &v, sizeof v);
  sn__timeline *computed = timeline(), *copied = timeline();
  static sn__timepoint at_computed[2 * ROUNDS + 1], at_copied[2 * ROUNDS + 1];
  static sn__transfer transfers[2 * ROUNDS];
  static sn__command compute[2][ROUNDS], copy[2][ROUNDS];
  for (int i = 0; i <= 2 * ROUNDS; i++) {
    at_computed[i] = (sn__timepoint){computed, (uint64_t)i};
    at_copied[i] = (sn__timepoint){copied, (uint64_t)i};
  }
  for (int i = 0; i < 2 * ROUNDS; i++) {
    int me = i % 2;
    compute[me][i / 2] =
        (sn__command){"add", &at_copied[i], 1, &at_computed[i + 1], 1, add_one, b[me], &b[me], 1};
    transfers[i] = (sn__transfer){.to.buffer = b[1 - me], .from.buffer = b[me], .bytes = 4};
    copy[me][i / 2] = (sn__command){
        "copy", &at_computed[i + 1], 1, &at_copied[i + 1], 1, sn__transfer_run, &transfers[i], b,
        2};
  }
  for (int d = 1; d >= 0; d--) { /* those that must wait first */
    submit(devices[d], SN__QUEUE_COPY, copy[d], ROUNDS);
    submit(devices[d], SN__QUEUE_COMPUTE, compute[d], ROUNDS);
  }
  ck_sn_ok(sn__timeline_wait(copied, 2 * ROUNDS, SN__FOREVER));
  download(&v, b[0], sizeof v);
  ck_assert_int_eq(v, kind->computes ? 100 + 2 * ROUNDS : 0);
  sn__buffer_free(b[0]);
  sn__buffer_free(b[1]);
  end();
  sn__timeline_free(computed);
  sn__timeline_free(copied);
}
END_TEST

/* ---- failures ------------------------------------------------------------------------------ */

/* compute 0 fails -> copy 0 -> compute 1 -> copy 1 -> host: nothing runs, everyone learns why. */
START_TEST(failure_travels) {
  create(_i);
  sn__timeline *t[5];
  sn__timepoint p[5];
  sn__command c[4];
  _Atomic int runs = 0;
  for (int i = 0; i < 5; i++) {
    t[i] = timeline();
    p[i] = (sn__timepoint){t[i], 1};
  }
  for (int i = 0; i < 4; i++) {
    c[i] = (sn__command){"count", &p[i], 1, &p[i + 1], 1, count, &runs, NULL, 0};
  }
  for (int i = 3; i >= 0; i--)
    submit(devices[i / 2], (sn__queue)(i % 2), &c[i], 1);
  sn__timeline_fail(t[0], sn_status_make(SN_CODE_DATA, "row 7 is missing"));
  ck_sn_fails(sn__timeline_wait(t[4], 1, SN__FOREVER), SN_CODE_DATA, "row 7 is missing");
  for (int i = 0; i < 5; i++) {
    ck_sn_fails(sn__timeline_query(t[i], NULL), SN_CODE_DATA, "row 7 is missing");
  }
  ck_assert_int_eq(atomic_load(&runs), 0);
  end();
  for (int i = 0; i < 5; i++)
    sn__timeline_free(t[i]);
}
END_TEST

/* Commands after a failed one may rely on the queue's order alone, so the batch ends there; the
 * next batch is another matter. */
START_TEST(batch_stops_at_its_first_failure) {
  create(_i);
  sn__timeline *before = timeline(), *failed = timeline(), *after = timeline(), *next = timeline();
  sn__timepoint p[] = {{before, 1}, {failed, 1}, {after, 1}, {next, 1}};
  _Atomic int runs = 0;
  sn__command c[] = {
      {.label = "first", .signals = &p[0], .n_signals = 1, .run = count, .arg = &runs},
      {.label = "loss", .signals = &p[1], .n_signals = 1, .run = not_finite},
      {.label = "update", .signals = &p[2], .n_signals = 1, .run = count, .arg = &runs},
  };
  sn__command d = {.signals = &p[3], .n_signals = 1, .run = count, .arg = &runs};
  if (!kind->computes) sn__device_inject(devices[0], SN__INJECT_COMMAND, 2);
  submit(devices[0], SN__QUEUE_COMPUTE, c, 3);
  submit(devices[0], SN__QUEUE_COMPUTE, &d, 1);
  sn_code code = kind->computes ? SN_CODE_NUMERIC : SN_CODE_DEVICE;
  char words[96];
  if (kind->computes)
    snprintf(words, sizeof words, ": loss is not finite");
  else
    snprintf(words, sizeof words, "loss on %s: injected failure",
             sn__device_desc(devices[0])->name);
  ck_sn_ok(sn__timeline_wait(before, 1, SN__FOREVER));
  ck_sn_fails(sn__timeline_wait(failed, 1, SN__FOREVER), code, words);
  ck_sn_fails(sn__timeline_wait(after, 1, SN__FOREVER), code, words);
  ck_sn_ok(sn__timeline_wait(next, 1, SN__FOREVER));
  ck_assert_int_eq(atomic_load(&runs), ran(2));
  end();
  for (int i = 0; i < 4; i++)
    sn__timeline_free(p[i].timeline);
}
END_TEST

START_TEST(injected_failures) {
  create(_i);
  sn__timeline *done = timeline();
  sn__timepoint p[] = {{done, 1}, {done, 2}, {done, 3}};
  _Atomic int runs = 0;
  sn__command c[3];
  for (int i = 0; i < 3; i++) {
    c[i] = (sn__command){"work", NULL, 0, &p[i], 1, count, &runs, NULL, 0};
  }
  sn__device_inject(devices[0], SN__INJECT_SUBMIT, 2);
  submit(devices[0], SN__QUEUE_COMPUTE, &c[0], 1);
  ck_sn_fails(sn__device_submit(devices[0], SN__QUEUE_COMPUTE, &c[1], 1), SN_CODE_DEVICE,
              "injected failure to submit");
  sn__device_drain(devices[0]);
  ck_assert(sn__timeline_reached(done, 1) && !sn__timeline_reached(done, 2));
  sn__device_inject(devices[0], SN__INJECT_COMMAND, 1);
  submit(devices[0], SN__QUEUE_COMPUTE, &c[1], 2);
  ck_sn_fails(sn__timeline_wait(done, 3, SN__FOREVER), SN_CODE_DEVICE, "injected failure");
  ck_assert_int_eq(atomic_load(&runs), ran(1));
  end();
  sn__timeline_free(done);
}
END_TEST

START_TEST(foreign_buffers_are_refused) {
  create(_i);
  sn__buffer *mine = buffer(devices[0], 8), *other = buffer(devices[1], 8);
  sn__buffer *both[] = {mine, other};
  sn__timeline *done = timeline();
  sn__timepoint p = {done, 1};
  _Atomic int runs = 0;
  sn__command c = {"matmul", NULL, 0, &p, 1, count, &runs, both, 2};
  char words[96];
  snprintf(words, sizeof words, "matmul on %s uses a buffer of %s",
           sn__device_desc(devices[0])->name, sn__device_desc(devices[1])->name);
  ck_sn_fails(sn__device_submit(devices[0], SN__QUEUE_COMPUTE, &c, 1), SN_CODE_INTERNAL, words);
  c.buffers = &other;
  c.n_buffers = 1;
  ck_sn_fails(sn__device_submit(devices[0], SN__QUEUE_COPY, &c, 1), SN_CODE_INTERNAL, words);
  sn__device_drain(devices[0]);
  ck_assert_int_eq(atomic_load(&runs), 0);
  ck_assert(!sn__timeline_reached(done, 1));
  c.buffers = both;
  c.n_buffers = 2;
  submit(devices[0], SN__QUEUE_COPY, &c, 1); /* a copy spans two devices */
  ck_sn_ok(sn__timeline_wait(done, 1, SN__FOREVER));
  sn__buffer_free(mine);
  sn__buffer_free(other);
  end();
  sn__timeline_free(done);
}
END_TEST

/* ---- lifetimes ----------------------------------------------------------------------------- */

/* The batch, its arrays and its timelines end as soon as the last signal was seen. */
START_TEST(batch_is_borrowed_until_its_last_signal) {
  create(_i);
  for (int round = 0; round < 100; round++) {
    sn__timeline *done = timeline();
    _Atomic int runs = 0;
    sn__command *c = malloc(3 * sizeof *c);
    sn__timepoint *p = malloc(3 * sizeof *p);
    for (int i = 0; i < 3; i++) {
      p[i] = (sn__timepoint){done, (uint64_t)i + 1};
      c[i] = (sn__command){"count", NULL, 0, &p[i], 1, count, &runs, NULL, 0};
    }
    submit(devices[0], (sn__queue)(round % 2), c, 3);
    ck_sn_ok(sn__timeline_wait(done, 3, SN__FOREVER));
    memset(c, 0xdd, 3 * sizeof *c);
    memset(p, 0xdd, 3 * sizeof *p);
    free(c);
    free(p);
    sn__timeline_free(done);
    ck_assert_int_eq(atomic_load(&runs), ran(3));
  }
  end();
}
END_TEST

static sn_status slow(void *arg, const sn__launch *at) {
  nap_us(300);
  return count(arg, at);
}

START_TEST(free_lets_work_finish) {
  create(_i);
  sn__timeline *done = timeline();
  sn__timepoint p = {done, 1};
  _Atomic int runs = 0;
  sn__command c[20];
  for (int i = 0; i < 20; i++)
    c[i] = (sn__command){.run = slow, .arg = &runs};
  c[19].signals = &p;
  c[19].n_signals = 1;
  submit(devices[0], SN__QUEUE_COMPUTE, c, 20);
  submit(devices[0], SN__QUEUE_COPY, c, 19);
  sn__device_free(devices[0]);
  ck_assert_int_eq(atomic_load(&runs), ran(39));
  ck_assert(sn__timeline_reached(done, 1));
  sn__device_free(devices[1]);
  sn__device_free(NULL);
  sn__timeline_free(done);
}
END_TEST

START_TEST(drain_waits_for_both_queues) {
  create(_i);
  _Atomic int runs = 0;
  sn__command c = {.run = slow, .arg = &runs};
  for (int round = 1; round <= 10; round++) {
    for (int i = 0; i < 4; i++)
      submit(devices[0], (sn__queue)(i % 2), &c, 1);
    sn__device_drain(devices[0]);
    ck_assert_int_eq(atomic_load(&runs), ran(4 * round));
  }
  end();
}
END_TEST

typedef struct submitter {
  pthread_t thread;
  int number;
  _Atomic int runs;
} submitter;

static void *submit_main(void *arg) {
  submitter *s = arg;
  sn__timeline *done = timeline();
  for (int i = 1; i <= 50; i++) {
    sn__timepoint p = {done, (uint64_t)i};
    sn__command c = {"count", NULL, 0, &p, 1, count, &s->runs, NULL, 0};
    submit(devices[(i + s->number) % 2], (sn__queue)(s->number % 2), &c, 1);
    ck_sn_ok(sn__timeline_wait(done, (uint64_t)i, SN__FOREVER));
    sn__buffer *b = buffer(devices[i % 2], (size_t)i);
    sn__buffer_free(b);
  }
  sn__timeline_free(done);
  return NULL;
}

START_TEST(many_threads_use_a_device) {
  create(_i);
  static submitter s[6];
  for (int i = 0; i < 6; i++) {
    s[i].number = i;
    ck_assert_int_eq(pthread_create(&s[i].thread, NULL, submit_main, &s[i]), 0);
  }
  for (int i = 0; i < 6; i++) {
    pthread_join(s[i].thread, NULL);
    ck_assert_int_eq(atomic_load(&s[i].runs), ran(50));
  }
  end();
}
END_TEST

static sn_status life(void *arg) {
  (void)arg;
  sn_device_desc desc;
  sn_device_desc_init(kind->kind, 0, -1, kind->threads, &desc);
  sn__device_options options = {.test_seed = kind->test_seed};
  sn__device *device = NULL;
  sn__buffer *b = NULL;
  _Atomic int runs = 0;
  sn__command c = {.run = count, .arg = &runs};
  SN_TRY(sn__device_create(&desc, &options, &device));
  sn_status status = sn__device_alloc(device, 100, &b);
  if (status == SN_OK) status = sn__device_submit(device, SN__QUEUE_COMPUTE, &c, 1);
  if (status == SN_OK) status = sn__device_submit(device, SN__QUEUE_COPY, &c, 1);
  sn__device_drain(device);
  sn__buffer_free(b);
  sn__device_free(device);
  return status;
}

START_TEST(every_allocation_may_fail) {
  kind = &kinds[_i];
  ck_assert_int_ge(sn_fail_alloc_every_call(life, NULL), 8);
}
END_TEST

static _Atomic int started;
static void count_start(void) {
  atomic_fetch_add(&started, 1);
}

static sn_status check_mask(void *arg, const sn__launch *at) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  if (sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGPROF) == 1) count(arg, at);
  return SN_OK;
}

/* Signals are the host program's; and whoever must prepare each of our threads gets to see it. */
START_TEST(workers_are_quiet_guests) {
  sn__thread_started = count_start;
  create(_i);
  _Atomic int quiet = 0;
  sn__command c = {.run = check_mask, .arg = &quiet};
  submit(devices[0], SN__QUEUE_COMPUTE, &c, 1);
  submit(devices[0], SN__QUEUE_COPY, &c, 1);
  sn__device_drain(devices[0]);
  end();
  sn__thread_started = NULL;
  ck_assert_int_eq(atomic_load(&quiet), ran(2));
  int helpers = N_DEVICES * (kind->threads - 1), compute = kind->computes ? N_DEVICES : 1;
  ck_assert_int_eq(atomic_load(&started), helpers + compute + 1);
}
END_TEST

static sn_status use_team(void *arg, const sn__launch *at) {
  *(int *)arg = sn__team_threads(at->team);
  return SN_OK;
}

START_TEST(compute_gets_the_team) {
  create(_i);
  int threads[SN__QUEUE_COUNT] = {0};
  for (int q = 0; q < SN__QUEUE_COUNT; q++) {
    sn__command c = {.run = use_team, .arg = &threads[q]};
    submit(devices[0], (sn__queue)q, &c, 1);
    sn__device_drain(devices[0]);
  }
  ck_assert_int_eq(threads[SN__QUEUE_COMPUTE], ran(kind->threads));
  ck_assert_int_eq(threads[SN__QUEUE_COPY], ran(1));
  end();
}
END_TEST

static sn_status no_kernel(const sn__exec *e) {
  (void)e;
  return SN_OK;
}

START_TEST(kernels_are_looked_up) {
  create(_i);
  sn_op_def with = {.name = "with", .cpu = no_kernel}, without = {.name = "without"};
  ck_assert(sn__device_kind_here(kind->kind));
  ck_assert_ptr_nonnull(sn__device_kernel(kind->kind, &with, SN_F32));
  if (kind->kind == SN_DEVICE_CPU) {
    ck_assert(sn__device_kernel(SN_DEVICE_CPU, &with, SN_F32) == no_kernel);
    ck_assert(sn__device_kernel(SN_DEVICE_CPU, &without, SN_F32) == NULL);
  }
  end();
}
END_TEST

/* ---- test mode ----------------------------------------------------------------------------- */

START_TEST(fresh_memory_is_nan_in_test_mode) {
  create(_i);
  if (kind->test_seed != 0) {
    sn__buffer *b = buffer(devices[0], 40);
    float v[10] = {0};
    download(v, b, sizeof v);
    for (int i = 0; i < 10; i++)
      ck_assert(v[i] != v[i]);
    sn__buffer_free(b);
  }
  end();
}
END_TEST

/* As an uninstrumented library would. */
__attribute__((no_sanitize_address)) static sn_status overrun(void *arg, const sn__launch *at) {
  (void)at;
  volatile char *end_of = arg;
  end_of[2] = 1;
  return SN_OK;
}

START_TEST(overruns_are_caught_in_test_mode) {
  create(_i);
  if (kind->test_seed != 0) {
    sn__buffer *b = buffer(devices[0], 40);
    ck_assert_ptr_nonnull(b->host);
    sn__timeline *done = timeline();
    sn__timepoint p = {done, 1};
    sn__command c = {"conv", NULL, 0, &p, 1, overrun, (char *)b->host + 40, &b, 1};
    submit(devices[0], SN__QUEUE_COMPUTE, &c, 1);
    const char *name = sn__device_desc(devices[0])->name;
    char words[160];
    snprintf(words, sizeof words,
             "conv on %s: a buffer of 40 bytes on %s was written 3 bytes past its end", name, name);
    ck_sn_fails(sn__timeline_wait(done, 1, SN__FOREVER), SN_CODE_INTERNAL, words);
    sn__buffer_free(b);
    sn__timeline_free(done);
  }
  end();
}
END_TEST

/* ---- kinds --------------------------------------------------------------------------------- */

START_TEST(unknown_kinds) {
  sn_device_desc desc;
  sn_device_desc_init(SN_DEVICE_CPU, 0, -1, 1, &desc);
  desc.kind = (sn_device_kind)55;
  sn__device *device = NULL;
  ck_sn_fails(sn__device_create(&desc, NULL, &device), SN_CODE_UNSUPPORTED, "no such kind");
  if (sn_device_kind_absent(SN_DEVICE_CUDA) != NULL) {
    sn_device_desc_init(SN_DEVICE_CUDA, 0, -1, 1, &desc);
    ck_sn_fails(sn__device_create(&desc, NULL, &device), SN_CODE_UNSUPPORTED, "cuda:0: no CUDA");
  }
  ck_assert_ptr_null(device);
}
END_TEST

START_TEST(modules_of_other_versions) {
  sn__device_vtable old = {.api_version = SN__DEVICE_API_VERSION + 1, .kind = SN_DEVICE_CUDA};
  ck_sn_fails(sn__device_register(&old), SN_CODE_UNSUPPORTED, "install both from one build");
  ck_assert_ptr_nonnull(sn_device_kind_absent(SN_DEVICE_CUDA));
}
END_TEST

START_TEST(all_devices_of_a_topology) {
  sn_topology *topology = NULL;
  ck_sn_ok(sn_topology_parse("cpu*2,null:3", 2, &topology));
  sn__device *d[3] = {0};
  ck_sn_ok(sn__devices_create(topology, NULL, d));
  ck_assert_str_eq(sn__device_desc(d[2])->name, "null:3");
  /* From one kind to another, through the host. */
  sn__buffer *a = buffer(d[0], 8), *b = buffer(d[2], 8);
  double v = 1.5;
  upload(a, &v, sizeof v);
  sn__transfer t = {.to.buffer = b, .from.buffer = a, .bytes = 8};
  ck_sn_ok(sn__transfer_now(&t));
  t = (sn__transfer){.to.buffer = a, .from.buffer = b, .bytes = 8};
  ck_sn_ok(sn__transfer_now(&t));
  download(&v, a, sizeof v);
  ck_assert(v == 0); /* null reads as zeros */
  sn__buffer_free(a);
  sn__buffer_free(b);
  sn__devices_free(d, 3);
  sn_topology_free(topology);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("device_conformance");
  TCase *t = tcase_create("each kind");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, memory_is_counted, 0, N_KINDS);
  tcase_add_loop_test(t, sizes_and_alignment, 0, N_KINDS);
  tcase_add_loop_test(t, round_trip, 0, N_KINDS);
  tcase_add_loop_test(t, copies, 0, N_KINDS);
  tcase_add_loop_test(t, ranges_are_checked, 0, N_KINDS);
  tcase_add_loop_test(t, memory_runs_out, 0, N_KINDS);
  tcase_add_loop_test(t, waits_before_signals, 0, N_KINDS);
  tcase_add_loop_test(t, waits_for_all, 0, N_KINDS);
  tcase_add_loop_test(t, order_within_a_queue, 0, N_KINDS);
  tcase_add_loop_test(t, queues_overlap, 0, N_KINDS);
  tcase_add_loop_test(t, pipeline_over_two_devices, 0, N_KINDS);
  tcase_add_loop_test(t, failure_travels, 0, N_KINDS);
  tcase_add_loop_test(t, batch_stops_at_its_first_failure, 0, N_KINDS);
  tcase_add_loop_test(t, injected_failures, 0, N_KINDS);
  tcase_add_loop_test(t, foreign_buffers_are_refused, 0, N_KINDS);
  tcase_add_loop_test(t, batch_is_borrowed_until_its_last_signal, 0, N_KINDS);
  tcase_add_loop_test(t, free_lets_work_finish, 0, N_KINDS);
  tcase_add_loop_test(t, drain_waits_for_both_queues, 0, N_KINDS);
  tcase_add_loop_test(t, many_threads_use_a_device, 0, N_KINDS);
  tcase_add_loop_test(t, every_allocation_may_fail, 0, N_KINDS);
  tcase_add_loop_test(t, workers_are_quiet_guests, 0, N_KINDS);
  tcase_add_loop_test(t, compute_gets_the_team, 0, N_KINDS);
  tcase_add_loop_test(t, kernels_are_looked_up, 0, N_KINDS);
  tcase_add_loop_test(t, fresh_memory_is_nan_in_test_mode, 0, N_KINDS);
  tcase_add_loop_test(t, overruns_are_caught_in_test_mode, 0, N_KINDS);
  suite_add_tcase(s, t);
  TCase *other = tcase_create("kinds");
  tcase_add_test(other, unknown_kinds);
  tcase_add_test(other, modules_of_other_versions);
  tcase_add_test(other, all_devices_of_a_topology);
  suite_add_tcase(s, other);
  return s;
}

SN_TEST_MAIN(suite)
