/* SPDX-License-Identifier: Apache-2.0 */
/* sennit bench: reference works (h3 is the PyTorch peer's, timed the same way), beside the
 * machine's own limit. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <time.h>
#include "core/alloc.h"
#include "tools/sennit/bench_work.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/json.h"
#include "tools/sennit/precision.h"
#include "tools/sennit/roofline.h"
#include "tools/sennit/stop.h"
#include "tools/sennit/task.h"
#include "tools/sennit/ui.h"

enum { WARM_UP = 8, WRITTEN = 16 /* batches of --write */ };

typedef struct result {
  double *ms; /* of each timed step */
  int64_t steps;
  double first_s, flops, loss_first, loss_last;
  int64_t params;
} result;

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds since this process began, by the kernel's own clock of it. */
static double process_age(void) {
  double start = 0;
  char text[1024];
  FILE *f = fopen("/proc/self/stat", "r");
  size_t n = f == NULL ? 0 : fread(text, 1, sizeof text - 1, f);
  if (f != NULL) fclose(f);
  text[n] = '\0';
  char *field = strrchr(text, ')');
  for (int i = 0; field != NULL && i < 20; i++)
    field = strchr(field + 1, ' ');
  if (field != NULL) start = strtod(field, NULL) / (double)sysconf(_SC_CLK_TCK);
  return seconds(CLOCK_BOOTTIME) - start;
}

static sn_status run_steps(sn_trainer *t, const sn_graph *g, const bench_work *work, ui_state *ui,
                           result *r) {
  ui_progress_begin(ui, "steps", r->steps + WARM_UP, "steps");
  for (int64_t i = 0; i < r->steps + WARM_UP; i++) {
    bench_batch b;
    SN_TRY(bench_batch_make(work, g, (uint64_t)i, &b));
    double began = seconds(CLOCK_MONOTONIC), loss = 0;
    sn_status status = sn_trainer_step(t, b.feeds, b.n_feeds, &loss);
    double ended = seconds(CLOCK_MONOTONIC);
    if (i == 0) r->first_s = process_age();
    if (i == 0) r->loss_first = loss;
    r->loss_last = loss;
    if (i >= WARM_UP) {
      r->ms[i - WARM_UP] = (ended - began) * 1e3;
      r->flops += b.flops / (double)r->steps;
    }
    bench_batch_free(&b);
    SN_TRY(status);
    ui_progress(ui, i + 1, NULL);
  }
  ui_progress_end(ui);
  return SN_OK;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static sn_status report(const arg_set *args, const bench_work *work, const sn_graph *g,
                        sn_trainer *t, result *r, ui_state *ui) {
  qsort(r->ms, (size_t)r->steps, sizeof *r->ms, by_size);
  double step = r->ms[r->steps / 2];
  const sn_topology *topology = sn_trainer_topology(t);
  int threads = 0;
  size_t arena = 0, live = 0;
  for (int d = 0; d < topology->n_devices; d++) {
    threads += topology->devices[d].threads;
    arena += sn_trainer_memory_on(t, (size_t)d).arena_bytes;
    live += sn_trainer_memory_on(t, (size_t)d).live_bytes;
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const bool bf16 = sn_graph_precision(g) == SN_PRECISION_BF16;
  double gflops = r->flops / step * 1e-6;
  double peak = bf16 ? roofline_bf16_gflops(threads) : roofline_gflops(threads);
  if (!args_given(args, "--json")) {
    ui_line(ui, "%s %s, batch %lld: %.3f ms a step (median of %lld), %.0f samples/s", work->name,
            work->size, (long long)work->batch, step, (long long)r->steps,
            (double)work->batch / step * 1e3);
    ui_line(
        ui,
        "%.3f GFLOP a step: %.1f GFLOP/s of %.1f in %s that %d thread(s) reach in registers (%.0f "
        "%%)",
        r->flops * 1e-9, gflops, peak, bf16 ? "bf16" : "f32", threads, 100 * gflops / peak);
    ui_line(ui,
            "first step %.3f s after the process began, peak memory %ld MiB, arenas %.2f MiB for "
            "%.2f MiB live",
            r->first_s, usage.ru_maxrss / 1024, (double)arena / 1048576, (double)live / 1048576);
    ui_line(ui, "loss %.4f first, %.4f last; %s", r->loss_first, r->loss_last,
            sn_placement_sentence(sn_trainer_placement(t)));
    return SN_OK;
  }
  json_report out;
  SN_TRY(json_create(&out));
  json_text(&out, out.root, "size", work->size);
  json_text(&out, out.root, "precision", bf16 ? "bf16" : "f32");
  json_number(&out, out.root, "step_ms", step);
  json_number(&out, out.root, "samples_per_s", (double)work->batch / step * 1e3);
  json_number(&out, out.root, "first_step_s", r->first_s);
  json_int(&out, out.root, "peak_rss_mib", usage.ru_maxrss / 1024);
  json_int(&out, out.root, "params", r->params);
  json_number(&out, out.root, "flops_per_step", r->flops);
  json_number(&out, out.root, "gflops", gflops);
  json_number(&out, out.root, "peak_gflops", peak);
  json_number(&out, out.root, "loss_first", r->loss_first);
  json_number(&out, out.root, "loss_last", r->loss_last);
  json_int(&out, out.root, "threads", threads);
  json_int(&out, out.root, "arena_bytes", (int64_t)arena);
  json_int(&out, out.root, "live_bytes", (int64_t)live);
  sn_status status = json_print(&out, stdout);
  json_free(&out);
  return status;
}

static sn_status count_params(sn_trainer *t, result *r) {
  const sn_store *store = sn_trainer_store(t);
  for (size_t i = 0; i < sn_store_count(store); i++)
    if (sn_store_at(store, i)->owner == NULL)
      r->params +=
          (int64_t)(sn_store_at(store, i)->bytes / sn_dtype_size(sn_store_at(store, i)->dtype));
  return SN_OK;
}

static sn_status bench(const arg_set *args, const bench_work *work, sn_graph *g, ui_state *ui,
                       result *r) {
  SN_TRY(bench_work_build(work, g));
  if (args_given(args, "--bf16")) sn_graph_set_precision(g, SN_PRECISION_BF16);
  const char *devices = args_text(args, "--devices");
  bench_extents extents;
  SN_TRY(bench_work_extents(work, r->steps + WARM_UP, &extents));
  sn_trainer_options o = {
      .struct_size = sizeof o,
      .devices = devices != NULL ? devices : "cpu:0",
      .threads = (int)args_int(args, "--threads", 0),
      .optimizer = {.struct_size = sizeof o.optimizer, .kind = SN_ADAM, .learning_rate = 1e-3},
      .extents = extents.items,
      .n_extents = extents.n};
  sn_trainer *t = NULL;
  SN_TRY(sn_trainer_create(g, &o, &t));
  precision_note(g, sn_trainer_topology(t));
  sn_status status = task_runs_on(sn_trainer_topology(t));
  if (status == SN_OK) status = sn_trainer_reserve(t, extents.items, extents.n);
  if (status == SN_OK) status = count_params(t, r);
  if (status == SN_OK) status = run_steps(t, g, work, ui, r);
  if (status == SN_OK) status = report(args, work, g, t, r, ui);
  sn_trainer_free(t);
  return status;
}

sn_status cmd_bench(const arg_set *args) {
  stop_at_once();
  const bench_work work =
      bench_work_of(args_choice(args, "WORK", BENCH_H3), args_choice(args, "--size", 0));
  ui_state ui;
  ui_init(&ui, args_given(args, "--json"));
  const char *folder = args_text(args, "--write");
  if (folder != NULL) {
    SN_TRY(bench_work_write(&work, folder, WRITTEN));
    ui_line(&ui, "%s/data.h5: %lld rows; try sennit train --data %s/data.h5 --config %s/model.yaml",
            folder, (long long)(WRITTEN * work.batch), folder, folder);
    return SN_OK;
  }
  result r = {.steps = args_int(args, "--steps", 30)};
  r.ms = sn__calloc((size_t)r.steps, sizeof *r.ms);
  sn_graph *g = NULL;
  sn_status status = r.ms == NULL ? sn_status_out_of_memory() : sn_graph_create(&g);
  if (status == SN_OK) status = bench(args, &work, g, &ui, &r);
  sn_graph_free(g);
  sn__free(r.ms);
  return status;
}
