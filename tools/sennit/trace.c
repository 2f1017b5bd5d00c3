/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"

enum { MEASURED = 1, PREDICTED = 2, HOST = 1 /* thread; queues follow */ };

static int thread_of(const sn_plan_node *n) {
  return HOST + 1 + 2 * n->device + (n->copy ? 1 : 0);
}

/* ---- events -------------------------------------------------------------------------------- */

static void put_text(FILE *f, const char *text) {
  fputc('"', f);
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      fprintf(f, "\\%c", c);
    else if (c < 0x20)
      fprintf(f, "\\u%04x", c);
    else
      fputc(c, f);
  }
  fputc('"', f);
}

static void begin_event(trace_file *t, const char *kind, int process, int thread) {
  fprintf(t->file, "%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d", t->any ? "," : "", kind, process,
          thread);
  t->any = true;
}

static void name_track(trace_file *t, const char *what, int process, int thread, const char *name,
                       const char *queue) {
  begin_event(t, "M", process, thread);
  fprintf(t->file, ",\"name\":\"%s\",\"args\":{\"name\":", what);
  char *whole = sn__format("%s%s", name, queue);
  put_text(t->file, whole != NULL ? whole : name);
  sn__free(whole);
  fputs("}}", t->file);
  begin_event(t, "M", process, thread);
  fprintf(t->file, ",\"name\":\"%s\",\"args\":{\"sort_index\":%d}}",
          thread == 0 ? "process_sort_index" : "thread_sort_index", thread == 0 ? process : thread);
}

static void name_tracks(trace_file *t) {
  const sn_topology *topology = sn_trainer_topology(t->trainer);
  static const char *const processes[] = {"measured", "predicted"};
  for (int p = MEASURED; p <= PREDICTED; p++) {
    name_track(t, "process_name", p, 0, processes[p - 1], "");
    name_track(t, "thread_name", p, HOST, "host", "");
    for (int d = 0; d < topology->n_devices; d++) {
      name_track(t, "thread_name", p, HOST + 1 + 2 * d, topology->devices[d].name, " compute");
      name_track(t, "thread_name", p, HOST + 2 + 2 * d, topology->devices[d].name, " copies");
    }
  }
}

/* Times in the file are microseconds with the nanoseconds behind the point. */
static void put_slice(trace_file *t, int process, int thread, int64_t from, int64_t to,
                      const char *name, const char *category) {
  int64_t at = from - t->origin_ns, took = to > from ? to - from : 0;
  begin_event(t, "X", process, thread);
  fprintf(t->file,
          ",\"ts\":%" PRId64 ".%03" PRId64 ",\"dur\":%" PRId64 ".%03" PRId64 ",\"cat\":\"%s\"",
          at / 1000, at % 1000, took / 1000, took % 1000, category);
  fputs(",\"name\":", t->file);
  put_text(t->file, name);
}

static void put_node(trace_file *t, const sn_plan *plan, const sn_plan_node *n, size_t copy,
                     int process, sn_node_time time) {
  put_slice(t, process, thread_of(n), time.start_ns, time.finish_ns, n->name,
            n->copy ? "copy" : n->phase);
  fputs(",\"args\":{\"op\":", t->file);
  put_text(t->file, n->op);
  fputs(",\"module\":", t->file);
  put_text(t->file, n->module);
  fprintf(t->file, ",\"phase\":\"%s\",\"step\":%" PRId64, n->phase, t->seen + 1);
  if (n->copy) {
    sn_plan_copy c = sn_plan_copy_at(plan, copy);
    fprintf(t->file, ",\"bytes\":%" PRIu64 ",\"from\":\"%s\",\"to\":\"%s\"", c.bytes,
            sn_plan_device_at(plan, (size_t)c.from).name,
            sn_plan_device_at(plan, (size_t)c.to).name);
  }
  fputs("}}", t->file);
}

static void put_host(trace_file *t, int process, int64_t from, int64_t to, const char *name) {
  put_slice(t, process, HOST, from, to, name, "host");
  fprintf(t->file, ",\"args\":{\"step\":%" PRId64 "}}", t->seen + 1);
}

/* ---- a step -------------------------------------------------------------------------------- */

static sn_status put_step(void *user, const sn_plan *plan, const sn_step_record *r) {
  trace_file *t = user;
  size_t n = sn_plan_node_count(plan);
  int64_t step = 0, first = INT64_MAX;
  sn__free(t->times);
  t->times = sn__calloc(n + 1, sizeof *t->times);
  if (t->times == NULL) return sn_status_out_of_memory();
  SN_TRY(sn_plan_predict(plan, r->extents, t->times, &step));
  if (t->origin_ns == 0) t->origin_ns = r->began_ns;
  put_host(t, MEASURED, r->began_ns, r->submitted_ns, "start: feeds and queues");
  put_host(t, MEASURED, r->submitted_ns, r->joined_ns, "wait");
  put_host(t, MEASURED, r->joined_ns, r->ended_ns, "end: fetches");
  for (size_t i = 0; i < n; i++)
    if (r->nodes[i].start_ns < first) first = r->nodes[i].start_ns;
  /* What the host does before the first node is the same in both. */
  put_host(t, PREDICTED, r->began_ns, r->began_ns + step, "step");
  for (size_t i = 0, copy = 0; i < n; i++) {
    sn_plan_node node = sn_plan_node_at(plan, i);
    sn_node_time predicted = {first + t->times[i].start_ns, first + t->times[i].finish_ns};
    put_node(t, plan, &node, copy, MEASURED, r->nodes[i]);
    put_node(t, plan, &node, copy, PREDICTED, predicted);
    copy += node.copy;
  }
  return SN_OK;
}

/* ---- the file ------------------------------------------------------------------------------ */

sn_status trace_open(const char *path, sn_trainer *trainer, int64_t steps, trace_file *out) {
  *out = (trace_file){.path = path, .trainer = trainer};
  if (path == NULL) return SN_OK;
  out->file = fopen(path, "w");
  if (out->file == NULL)
    return sn_status_make(SN_CODE_IO, "trace: cannot write %s: %s", path, strerror(errno));
  int64_t spare = steps > TRACE_STEPS ? steps - TRACE_STEPS : 0;
  out->first = spare < TRACE_WARM_UP ? spare : TRACE_WARM_UP;
  fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out->file);
  name_tracks(out);
  if (out->first == 0) sn_trainer_watch(trainer, put_step, out);
  return SN_OK;
}

void trace_step(trace_file *t) {
  if (t->file == NULL || ++t->seen > t->first + TRACE_STEPS) return;
  if (t->seen > t->first) t->recorded++;
  if (t->seen == t->first) sn_trainer_watch(t->trainer, put_step, t);
  if (t->seen == t->first + TRACE_STEPS) sn_trainer_watch(t->trainer, NULL, NULL);
}

sn_status trace_close(trace_file *t) {
  sn__free(t->times);
  t->times = NULL;
  if (t->file == NULL) return SN_OK;
  fprintf(t->file, "\n]}\n");
  bool bad = ferror(t->file) != 0;
  bad = fclose(t->file) != 0 || bad;
  t->file = NULL;
  if (bad)
    return sn_status_make(SN_CODE_IO, "trace: cannot write %s: %s", t->path, strerror(errno));
  return SN_OK;
}
