/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines beside their closed forms, beside chains, and beside the clock on the wall.
 *
 *   bench_pipeline forms            chains of p = 2..8 equal stages, M = 1..32 micro-batches
 *   bench_pipeline branches         two encoders and a trunk, and both chains of the same stages
 *   bench_pipeline bits             parameters after 3 steps, by schedule and devices
 *   bench_pipeline run [--micro M] [--steps N] [--model lstm|dense] [--rounds R]
 *                                   a chain of two equal stages on cpu*2, one thread a device:
 *                                   measured beside simulated: from the medians of many steps,
 *                                   and each step from the times that its own nodes took
 *
 * One JSON object a line. Times of forms and branches are the clock's own units. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/run/measure.h"
#include "layers/layers.h"
#include "placement/pipeline.h"
#include "placement/trainer.h"

static const char *const words[] = {"sequential", "gpipe", "1f1b", "zb"};

static void need(sn_status s) {
  if (s == SN_OK) return;
  fprintf(stderr, "bench_pipeline: %s\n", sn_status_message(s));
  exit(sn_code_exit(sn_status_code(s)));
}

static int64_t option(int argc, char **argv, const char *name, int64_t otherwise) {
  for (int i = 2; i + 1 < argc; i++)
    if (strcmp(argv[i], name) == 0) return atoll(argv[i + 1]);
  return otherwise;
}

/* ---- schedules ----------------------------------------------------------------------------- */

static void set_stage(sn__pipe *p, uint32_t s, const int64_t ns[3]) {
  p->device[s] = (int)s;
  for (uint32_t m = 0; m < p->n_micro; m++)
    memcpy(&p->ns[sn__pipe_task(p, s, m, SN__PIPE_F)], ns, 3 * sizeof *ns);
}

static void print_schedules(const sn__pipe *p) {
  for (int rule = SN__PIPE_GPIPE; rule <= SN__PIPE_ZERO_BUBBLE; rule++) {
    sn__pipe_schedule *s = NULL;
    need(sn__pipe_schedule_make(p, (sn__pipe_rule)rule, 0, 1, &s));
    printf(", \"%s\": {\"step\": %lld, \"bound\": %lld, \"in_flight\": [", words[rule + 1],
           (long long)s->step_ns, (long long)s->bound_ns);
    for (uint32_t i = 0; i < p->n_stages; i++)
      printf("%s%u", i > 0 ? ", " : "", s->peak[i]);
    printf("], \"from\": \"%s\"}", s->from);
    sn__pipe_schedule_free(s);
  }
}

static void forms(int argc, char **argv) {
  const int64_t ns[] = {option(argc, argv, "--f", 100), option(argc, argv, "--b", 100),
                        option(argc, argv, "--w", 100)};
  for (uint32_t stages = 2; stages <= 8; stages++)
    for (uint32_t m = 1; m <= 32; m++) {
      sn__pipe *p = NULL;
      need(sn__pipe_create((int)stages, stages, stages - 1, m, &p));
      for (uint32_t s = 0; s < stages; s++)
        set_stage(p, s, ns);
      for (uint32_t s = 0; s + 1 < stages; s++)
        p->edges[s] = (sn__pipe_edge){s, s + 1};
      need(sn__pipe_finish(p));
      printf("{\"p\": %u, \"M\": %u", stages, m);
      print_schedules(p);
      printf("}\n");
      sn__pipe_free(p);
    }
}

/* chain 0: stages 0 and 1 both feed 2; 1: 0 through 1; 2: 1 through 0. */
static void branches(void) {
  static const int64_t weights[][3] = {{100, 100, 100}, {60, 60, 60}, {30, 60, 30}};
  for (size_t set = 0; set < sizeof weights / sizeof *weights; set++)
    for (uint32_t m = 1; m <= 32; m++)
      for (int chain = 0; chain < 3; chain++) {
        sn__pipe *p = NULL;
        need(sn__pipe_create(3, 3, 2, m, &p));
        for (uint32_t s = 0; s < 3; s++)
          set_stage(p, s, s < 2 ? weights[set] : weights[0]);
        p->edges[0] = (sn__pipe_edge){chain == 2 ? 1 : 0, chain == 0 ? 2 : chain == 1 ? 1 : 0};
        p->edges[1] = (sn__pipe_edge){chain == 2 ? 0 : 1, 2};
        need(sn__pipe_finish(p));
        printf("{\"set\": %zu, \"M\": %u, \"chain\": %d", set, m, chain);
        print_schedules(p);
        printf("}\n");
        sn__pipe_free(p);
      }
}

/* ---- models -------------------------------------------------------------------------------- */

typedef struct work {
  bool lstm;
  int64_t rows, longest, width;
  sn_graph *g;
  sn_value x, y;
  float *data;
  int64_t *offsets;
} work;

/* Two equal modules, one behind the other. Ragged rows of 1..longest, or plain ones. */
static void make_work(work *w) {
  need(sn_graph_create(&w->g));
  sn_graph *g = w->g;
  w->offsets = sn__calloc((size_t)w->rows + 1, sizeof *w->offsets);
  for (int64_t r = 0; r < w->rows; r++)
    w->offsets[r + 1] =
        w->offsets[r] +
        (!w->lstm ? 1
                  : w->longest / 2 +
                        (int64_t)sn__rng_below(1, 2, (uint64_t)r, (uint64_t)(w->longest / 2 + 1)));
  size_t numbers = (size_t)(w->offsets[w->rows] * w->width) + 1;
  w->data = sn__calloc(numbers, sizeof *w->data);
  for (size_t i = 0; i + 1 < numbers; i++)
    w->data[i] = sn__u01((uint32_t)sn__mix64(i)) - 0.5f;
  if (w->lstm) {
    sn_sequence s = sn_sequence_input(g, "x", SN_F32, w->width);
    w->x = s.values;
    w->y = sn_sequence_input_like(g, "y", SN_F32, w->width, s);
    for (int i = 0; i < 2; i++) {
      sn_module_begin(g, i == 0 ? "low" : "high");
      s = sn_lstm(g, s, .units = w->width);
      sn_module_end(g);
    }
    sn_module_begin(g, "high_loss");
    sn_squared_loss(g, s.values, w->y);
    sn_module_end(g);
  } else {
    w->x = sn_input(g, "x", SN_F32, w->width);
    w->y = sn_input(g, "y", SN_F32, w->width);
    sn_value h = w->x;
    for (int i = 0; i < 2; i++) {
      sn_module_begin(g, i == 0 ? "low" : "high");
      for (int k = 0; k < 3; k++)
        h = sn_dense(g, h, .units = w->width, .activation = SN_TANH);
      sn_module_end(g);
    }
    sn_module_begin(g, "high_loss");
    sn_squared_loss(g, h, w->y);
    sn_module_end(g);
  }
  need(sn_graph_status(g));
}

static void free_work(work *w) {
  sn_graph_free(w->g);
  sn__free(w->data);
  sn__free(w->offsets);
}

static void step(sn_trainer *t, const work *w) {
  const sn_feed feeds[] = {
      {.value = w->x, .data = w->data, .rows = w->rows, .offsets = w->lstm ? w->offsets : NULL},
      {.value = w->y, .data = w->data, .rows = w->rows}};
  double loss;
  need(sn_trainer_step(t, feeds, 2, &loss));
}

static sn_trainer *new_trainer(const work *w, const char *devices, sn_profile *profile,
                               int64_t micro, sn_pipeline pipeline) {
  static const sn_pin pins[] = {{"low", "cpu:0"}, {"high*", "cpu:1"}};
  sn_topology *topology = NULL;
  int threads = strcmp(devices, "cpu:0") == 0 ? 1 : devices[4] - '0';
  need(sn_topology_parse(devices, threads, &topology));
  sn_topology_set_profile(topology, profile);
  bool two = topology->n_devices == 2;
  sn_trainer_options o = {.struct_size = sizeof o,
                          .topology = topology,
                          .optimizer = {.struct_size = sizeof o.optimizer, .kind = SN_ADAM},
                          .micro_batches = micro,
                          .pipeline = pipeline,
                          .seed = 3,
                          .placement = {.struct_size = sizeof o.placement,
                                        .objective = two ? SN_OBJECTIVE_TIME : SN_OBJECTIVE_SPREAD,
                                        .pins = pins,
                                        .n_pins = two ? 2 : 0}};
  sn_trainer *t = NULL;
  need(sn_trainer_create(w->g, &o, &t));
  sn_topology_free(topology);
  return t;
}

static work work_of(const char *model, int64_t micro) {
  bool lstm = strcmp(model, "dense") != 0;
  work w = {
      .lstm = lstm, .rows = micro * (lstm ? 16 : 256), .longest = 32, .width = lstm ? 128 : 256};
  make_work(&w);
  return w;
}

/* ---- bits ---------------------------------------------------------------------------------- */

static void bits(void) {
  static const char *const devices[] = {"cpu:0", "cpu*2", "cpu*4"};
  static const char *const models[] = {"lstm", "dense"};
  for (int model = 0; model < 2; model++)
    for (int64_t micro = 4; micro <= 8; micro += 4) {
      work w = work_of(models[model], micro);
      for (int pipeline = 0; pipeline < 4; pipeline++)
        for (int d = 0; d < 3; d++) {
          char hex[65];
          sn_trainer *t = new_trainer(&w, devices[d], NULL, micro, (sn_pipeline)pipeline);
          for (int i = 0; i < 3; i++)
            step(t, &w);
          need(sn_store_sha256(sn_trainer_store(t), hex));
          size_t arenas[2] = {0, 0};
          for (size_t a = 0; a < 2; a++)
            arenas[a] = sn_trainer_memory_on(t, a).arena_bytes;
          printf("{\"model\": \"%s\", \"M\": %lld, \"schedule\": \"%s\", \"devices\": \"%s\", "
                 "\"arena_kib\": [%zu, %zu], \"sha256\": \"%s\"}\n",
                 models[model], (long long)micro, words[pipeline], devices[d], arenas[0] / 1024,
                 arenas[1] / 1024, hex);
          sn_trainer_free(t);
        }
      free_work(&w);
    }
}

/* ---- the clock on the wall ----------------------------------------------------------------- */

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + 1e-6 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(double *x, int64_t n) {
  qsort(x, (size_t)n, sizeof *x, by_size);
  return n % 2 != 0 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

typedef struct watch {
  sn_measurement *m;
  double *ratios; /* of each step: measured over simulated from what its own nodes took */
  int64_t n;
} watch;

/* Each node of the step begins when its queue and what it waits for let it, and takes what it took:
 * what remains is how well order and waits tell the step. */
static double replay_ns(const sn_plan *plan, const sn_step_record *r) {
  size_t n = sn_plan_node_count(plan), queues = 2 * sn_plan_device_count(plan);
  int64_t *finish = sn__calloc(n + queues + 1, sizeof *finish), step = 0;
  if (finish == NULL) return 0;
  int64_t *queue = finish + n;
  for (size_t i = 0; i < n; i++) {
    sn_plan_node node = sn_plan_node_at(plan, i);
    int64_t *own = &queue[2 * (size_t)node.device + node.copy], start = *own;
    for (size_t w = 0; w < node.n_waits; w++) {
      int64_t end = finish[sn_plan_wait(plan, i, w)];
      start = end > start ? end : start;
    }
    finish[i] = *own = start + r->nodes[i].finish_ns - r->nodes[i].start_ns;
    step = *own > step ? *own : step;
  }
  sn__free(finish);
  return (double)step;
}

static sn_status record(void *user, const sn_plan *plan, const sn_step_record *times) {
  watch *w = user;
  w->ratios[w->n++] = (double)(times->joined_ns - times->submitted_ns) / replay_ns(plan, times);
  return sn_measurement_add(w->m, plan, times);
}

/* Watched steps and timed ones by turns, on one trainer; then the same plan with what was seen. */
static void measure(const work *w, const char *devices, int64_t micro, sn_pipeline pipeline,
                    int64_t steps, double *out_ms, double *out_predicted, double *out_replayed) {
  sn_profile *profile = NULL;
  watch seen = {.ratios = sn__calloc((size_t)(steps * (micro + 1)), sizeof *seen.ratios)};
  double *ms = sn__calloc((size_t)steps, sizeof *ms);
  need(sn_profile_create(&profile));
  need(sn_measurement_create(&seen.m));
  sn_trainer *t = new_trainer(w, devices, NULL, micro, pipeline);
  for (int i = 0; i < 5; i++)
    step(t, w);
  for (int64_t i = 0; i < steps; i++) {
    sn_trainer_watch(t, record, &seen);
    step(t, w);
    sn_trainer_watch(t, NULL, NULL);
    double began = now_ms();
    step(t, w);
    ms[i] = now_ms() - began;
  }
  *out_ms = median(ms, steps);
  *out_replayed = median(seen.ratios, seen.n);
  sn_trainer_free(t);
  need(sn_measurement_write(seen.m, profile));
  t = new_trainer(w, devices, profile, micro, pipeline);
  step(t, w);
  if (pipeline != SN_PIPELINE_NONE)
    *out_predicted = 1e-6 * (double)sn_plan_step_ns(sn_trainer_pipeline_plan(t));
  else
    *out_predicted = 0;
  sn_trainer_free(t);
  sn_measurement_free(seen.m);
  sn__free(seen.ratios);
  sn_profile_free(profile);
  sn__free(ms);
}

static void run(int argc, char **argv) {
  int64_t micro = option(argc, argv, "--micro", 8), steps = option(argc, argv, "--steps", 30);
  int64_t rounds = option(argc, argv, "--rounds", 3);
  const char *model = "lstm";
  for (int i = 2; i + 1 < argc; i++)
    if (strcmp(argv[i], "--model") == 0) model = argv[i + 1];
  work w = work_of(model, micro);
  for (int64_t round = 0; round < rounds; round++)
    for (int pipeline = SN_PIPELINE_NONE; pipeline <= SN_PIPELINE_ZERO_BUBBLE; pipeline++) {
      double ms = 0, predicted = 0, replayed = 0;
      const char *devices = pipeline == SN_PIPELINE_NONE ? "cpu:0" : "cpu*2";
      measure(&w, devices, micro, (sn_pipeline)pipeline, steps, &ms, &predicted, &replayed);
      printf("{\"model\": \"%s\", \"M\": %lld, \"schedule\": \"%s\", \"devices\": \"%s\", "
             "\"measured_ms\": %.3f, \"simulated_ms\": %.3f, \"step_by_step\": %.4f}\n",
             model, (long long)micro, words[pipeline], devices, ms, predicted, replayed);
      fflush(stdout);
    }
  free_work(&w);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "forms") == 0)
    forms(argc, argv);
  else if (strcmp(what, "branches") == 0)
    branches();
  else if (strcmp(what, "bits") == 0)
    bits();
  else if (strcmp(what, "run") == 0)
    run(argc, argv);
  else {
    fprintf(stderr, "usage: bench_pipeline forms|branches|bits|run [--micro M] [--steps N]\n");
    return 2;
  }
  return 0;
}
