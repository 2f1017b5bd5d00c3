/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of device with kernels of its own, in memory that the host cannot read: a graph over it
 * and a CPU device, with copies, and what a plan says of an op that it cannot run. */
#include <math.h>

#include "core/device/lane.h"
#include "tests/core/run/run_ops.h"

/* ---- the toy ------------------------------------------------------------------------------- */

/* A toy address is no address of the host's: whoever follows one ends with a signal. */
#define FAR ((uintptr_t)1 << 62)

typedef struct toy_stream {
  sn__queue queue;
  _Atomic int launches;
} toy_stream;

typedef struct toy_device {
  sn__lane *lanes[SN__QUEUE_COUNT];
  toy_stream streams[SN__QUEUE_COUNT];
} toy_device;

static _Atomic int launched; /* by all toys, of their own kernels */

static void *far(void *host) {
  return (void *)((uintptr_t)host + FAR);
}
static char *near(const void *toy) {
  return (char *)((uintptr_t)toy - FAR);
}

static void toy_destroy(void *impl) {
  toy_device *device = impl;
  for (int q = 0; q < SN__QUEUE_COUNT; q++)
    sn__lane_free(device->lanes[q]);
  sn__free(device);
}

static sn_status toy_create(sn__device *base, void **out_impl) {
  toy_device *device = sn__calloc(1, sizeof *device);
  if (device == NULL) return sn_status_out_of_memory();
  for (int q = 0; q < SN__QUEUE_COUNT; q++) {
    device->streams[q].queue = (sn__queue)q;
    sn__lane_options options = {.name = base->desc.name, .launch = {.stream = &device->streams[q]}};
    sn_status status = sn__lane_create(base, &options, &device->lanes[q]);
    if (status != SN_OK) {
      toy_destroy(device);
      return status;
    }
  }
  *out_impl = device;
  return SN_OK;
}

static sn_status toy_alloc(void *impl, sn__buffer *buffer) {
  (void)impl;
  void *host = sn__alloc_aligned(buffer->bytes + 1, SN__BUFFER_ALIGNMENT);
  if (host == NULL) return sn_status_out_of_memory();
  memset(host, 0xff, buffer->bytes);
  buffer->handle = far(host);
  return SN_OK;
}

static void toy_free(void *impl, sn__buffer *buffer) {
  (void)impl;
  sn__free(near(buffer->handle));
}

static sn_status toy_upload(void *impl, sn__buffer *to, size_t offset, const void *from,
                            size_t bytes) {
  (void)impl;
  memcpy(near(to->handle) + offset, from, bytes);
  return SN_OK;
}

static sn_status toy_download(void *impl, void *to, const sn__buffer *from, size_t offset,
                              size_t bytes) {
  (void)impl;
  memcpy(to, near(from->handle) + offset, bytes);
  return SN_OK;
}

static sn_status toy_submit(void *impl, sn__queue queue, const sn__command *commands, int n) {
  return sn__lane_submit(((toy_device *)impl)->lanes[queue], commands, n);
}

static void toy_drain(void *impl) {
  for (int q = 0; q < SN__QUEUE_COUNT; q++)
    sn__lane_drain(((toy_device *)impl)->lanes[q]);
}

/* ---- its kernels: not the CPU's numbers, to see which ran ----------------------------------- */

static const float *from_toy(const sn__exec *e, int i) {
  return (const float *)(const void *)near(e->in[i].data);
}

static float *to_toy(const sn__exec *e, int o) {
  return (float *)(void *)near(e->out[o].data);
}

static sn_status launch(const sn__exec *e) {
  toy_stream *stream = e->stream;
  if (e->team != NULL || stream == NULL || stream->queue != SN__QUEUE_COMPUTE)
    return sn_status_make(SN_CODE_INTERNAL, "a kernel without its queue's stream");
  stream->launches++;
  launched++;
  return SN_OK;
}

/* What the CPU's `mix` gives, plus 100; its workspace is the toy's own memory. */
static sn_status mix_toy(const sn__exec *e) {
  SN_TRY(launch(e));
  float *sums = (float *)(void *)near(e->workspace);
  for (int64_t i = 0; i < count_of(&e->out[0]); i++) {
    sums[i] = 0.1f;
    for (int k = 0; k < e->n_in; k++)
      if (count_of(&e->in[k]) > 0)
        sums[i] += from_toy(e, k)[i % count_of(&e->in[k])] * (1.0f / (float)(k + 1));
  }
  for (int64_t i = 0; i < count_of(&e->out[0]); i++)
    to_toy(e, 0)[i] = tanhf(sums[i]) + 100;
  return SN_OK;
}

static sn_status pair_toy(const sn__exec *e) {
  SN_TRY(launch(e));
  for (int64_t i = 0; i < count_of(&e->out[0]); i++) {
    const float x = from_toy(e, 0)[i];
    to_toy(e, 0)[i] = x * 0.5f;
    to_toy(e, 1)[i] = x - 1;
  }
  return SN_OK;
}

static sn_status assign_toy(const sn__exec *e) {
  SN_TRY(launch(e));
  for (int64_t i = 0; i < count_of(&e->out[0]); i++)
    to_toy(e, 0)[i] = from_toy(e, 0)[i] - from_toy(e, 1)[i % count_of(&e->in[1])];
  return SN_OK;
}

static sn__kernel_fn toy_kernel(const struct sn_op_def *op, sn_dtype dtype) {
  if (dtype != SN_F32) return NULL;
  return op == &op_mix ? mix_toy : op == &op_pair ? pair_toy : op == &op_assign ? assign_toy : NULL;
}

/* The kind CUDA is free where no module is loaded. */
static const sn__device_vtable toy = {.api_version = SN__DEVICE_API_VERSION,
                                      .kind = SN_DEVICE_CUDA,
                                      .create = toy_create,
                                      .destroy = toy_destroy,
                                      .alloc = toy_alloc,
                                      .free = toy_free,
                                      .upload = toy_upload,
                                      .download = toy_download,
                                      .submit = toy_submit,
                                      .drain = toy_drain,
                                      .kernel = toy_kernel};

/* ---- a graph over both ---------------------------------------------------------------------- */

enum { WIDTH = 5, ROWS = 3, CPU = 0, TOY = 1 };

typedef struct world {
  sn_topology *topology;
  sn_machine *machine;
  sn_plan *plan;
  sn_store *store;
  sn_session *session;
  sn_graph *g;
  sn_value x, w, at_cpu, back, half, less; /* less is fetched from the toy's memory */
} world;

static sn_value add(world *v, const sn_op_def *op, const sn_value *in, size_t n, int device,
                    sn_value *out) {
  sn_value first = sn__node_add(v->g, op, NULL, in, n, NULL, out);
  place_on(v->g, first, device);
  return first;
}

/* x on the CPU -> mix there -> to the toy: mix with w, pair, w := w - half -> back to the CPU. */
static void build(world *v) {
  ck_sn_ok(sn_graph_create(&v->g));
  v->x = sn_input(v->g, "x", SN_F32, WIDTH);
  place_on(v->g, v->x, CPU);
  sn_module_begin(v->g, "far");
  v->w = sn_variable(v->g, "w", SN_F32, SN_SHAPE(WIDTH),
                     .init = {.kind = SN_INIT_CONSTANT, .value = 0.25});
  sn_module_end(v->g);
  place_on(v->g, v->w, TOY);
  v->at_cpu = add(v, &op_mix, &v->x, 1, CPU, NULL);
  sn_module_begin(v->g, "far");
  sn_value in[2] = {add(v, &op_copy, &v->at_cpu, 1, TOY, NULL), v->w}, two[SN_MAX_OUTPUTS];
  sn_value mixed = add(v, &op_mix, in, 2, TOY, NULL);
  v->half = add(v, &op_pair, &mixed, 1, TOY, two);
  v->less = two[1];
  add(v, &op_assign, (sn_value[]){v->w, v->half}, 2, TOY, NULL);
  sn_module_end(v->g);
  sn_value home = add(v, &op_copy, &v->half, 1, CPU, NULL);
  v->back = add(v, &op_mix, &home, 1, CPU, NULL);
}

static sn_status plan(world *v) {
  const sn_value fetches[] = {v->at_cpu, v->back, v->less};
  sn_plan_options o = {
      .struct_size = sizeof o, .fetches = fetches, .n_fetches = 3, .training = true};
  return sn_plan_create(v->g, v->topology, &o, &v->plan);
}

static void start(world *v) {
  memset(v, 0, sizeof *v);
  ck_sn_ok(sn__device_register(&toy));
  ck_sn_ok(sn_topology_parse("cpu:0,cuda:0", 1, &v->topology));
  build(v);
}

static void stop(world *v) {
  sn_session_free(v->session);
  sn_store_free(v->store);
  sn_plan_free(v->plan);
  sn_machine_free(v->machine);
  sn_topology_free(v->topology);
  sn_graph_free(v->g);
}

static void step(world *v, const float *x, float *at_cpu, float *back, float *less, int64_t rows) {
  const size_t bytes = (size_t)(rows * WIDTH) * sizeof(float);
  const sn_feed feed = {.value = v->x, .data = x, .rows = rows};
  const sn_fetch fetches[] = {
      {v->at_cpu, at_cpu, bytes}, {v->back, back, bytes}, {v->less, less, bytes}};
  sn_step_args args = {
      .struct_size = sizeof args, .feeds = &feed, .n_feeds = 1, .fetches = fetches, .n_fetches = 3};
  sn_timepoint done;
  ck_sn_ok(sn_session_step(v->session, &args, &done));
  ck_sn_ok(sn_session_wait(v->session, done));
}

START_TEST(each_device_runs_its_own_kernels) {
  world v;
  start(&v);
  sn_machine_options machine = {.struct_size = sizeof machine, .test_seed = (uint64_t)_i};
  ck_sn_ok(sn_machine_create(v.topology, &machine, &v.machine));
  ck_sn_ok(plan(&v));
  ck_sn_ok(sn_store_create(v.g, 1, &v.store));
  ck_sn_ok(sn_session_create(v.plan, v.store, v.machine, NULL, &v.session));
  float x[ROWS * WIDTH], at_cpu[ROWS * WIDTH], back[ROWS * WIDTH], less[ROWS * WIDTH], w[WIDTH];
  for (int i = 0; i < WIDTH; i++)
    w[i] = 0.25f;
  for (int s = 0; s < 3; s++) {
    const int before = launched;
    const int64_t rows = ROWS - s; /* and so other plans of memory */
    for (int i = 0; i < ROWS * WIDTH; i++)
      x[i] = (float)(i - 7) * 0.125f + (float)s;
    step(&v, x, at_cpu, back, less, rows);
    ck_assert_int_eq(launched - before, 3); /* mix, pair, assign, and no other */
    float half[ROWS * WIDTH];
    for (int64_t i = 0; i < rows * WIDTH; i++) {
      const float first = tanhf(0.1f + x[i]);
      const float mixed = tanhf(0.1f + first + w[i % WIDTH] * 0.5f) + 100;
      half[i] = mixed * 0.5f;
      ck_assert_float_eq(at_cpu[i], first);
      ck_assert_float_eq(less[i], mixed - 1);
      ck_assert_float_eq(back[i], tanhf(0.1f + half[i]));
    }
    for (int i = 0; i < WIDTH; i++)
      w[i] -= half[i];
    float now[WIDTH];
    ck_sn_ok(sn_store_read(v.store, "far/w", now, sizeof now));
    ck_assert_mem_eq(now, w, sizeof w);
  }
  stop(&v);
}
END_TEST

/* Checked in the plan, before anything runs: what, of which dtype, where, and who could. */
START_TEST(what_it_cannot_run) {
  world v;
  start(&v);
  sn_module_begin(v.g, "far");
  sn_value logs = add(&v, &op_log, &v.less, 1, TOY, NULL);
  sn_module_end(v.g);
  v.less = logs;
  ck_sn_fails(
      plan(&v), SN_CODE_CONFIG,
      "op log ('far_2/log', f32) has no kernel on cuda:0; put module 'far_2' on cpu:0, which "
      "has one");
  stop(&v);
}
END_TEST

/* A kind whose backend is not here is planned for, and says so when devices are made. */
START_TEST(plans_without_the_device) {
  world v = {0};
  sn_device_desc devices[2];
  sn_device_desc_init(SN_DEVICE_CPU, 0, -1, 1, &devices[0]);
  sn_device_desc_init(SN_DEVICE_CUDA, 0, -1, 1, &devices[1]);
  ck_sn_ok(sn_topology_create(devices, 2, &v.topology));
  build(&v);
  ck_sn_ok(plan(&v));
  ck_sn_fails(sn_machine_create(v.topology, NULL, &v.machine), SN_CODE_UNSUPPORTED, "cuda:0");
  stop(&v);
}
END_TEST

START_TEST(another_version_of_the_table) {
  sn__device_vtable old = toy;
  old.api_version = SN__DEVICE_API_VERSION - 1;
  ck_sn_fails(sn__device_register(&old), SN_CODE_UNSUPPORTED, "install both from one build");
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("device_kinds");
  TCase *t = tcase_create("toy");
  tcase_add_loop_test(t, each_device_runs_its_own_kernels, 0, 4);
  tcase_add_test(t, what_it_cannot_run);
  tcase_add_test(t, plans_without_the_device);
  tcase_add_test(t, another_version_of_the_table);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
