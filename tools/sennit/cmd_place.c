/* SPDX-License-Identifier: Apache-2.0 */
/* sennit place: solves a placement instance and says how good the answer is. */
#include <math.h>
#include <time.h>

#include "io/instance.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/json.h"
#include "tools/sennit/stop.h"
#include "tools/sennit/ui.h"

typedef struct run_times {
  double read_s, solve_s; /* of this process's processor time */
} run_times;

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show_devices(ui_state *ui, const sn_instance_facts *f, const sn_instance_answer *a) {
  char bytes[UI_WORDS], limit[UI_WORDS];
  ui_line(ui, "%-16s %10s %14s  %-10s %s", "device", "nodes", f->unit, "memory", "of");
  for (int d = 0; d < a->n_devices; d++) {
    const sn_instance_device *x = &a->devices[d];
    size_t nodes = 0;
    for (size_t i = 0; i < a->n_places; i++)
      nodes += a->places[i].device == d;
    ui_line(ui, "%-16s %10zu %14.6f  %-10s %s", x->name, nodes, x->load,
            ui_bytes((double)x->bytes, bytes),
            x->bytes_limit == 0 ? "no limit" : ui_bytes((double)x->bytes_limit, limit));
  }
}

static void show(const sn_instance_facts *f, const sn_instance_answer *a, const run_times *t) {
  ui_state ui;
  ui_init(&ui, false);
  ui_line(&ui, "%s: %lld nodes, %lld edges, %d devices, objective %s", f->format,
          (long long)f->n_nodes, (long long)f->n_edges, f->n_devices, f->objective);
  for (size_t i = 0; i < f->n_notes; i++)
    ui_line(&ui, "note: %s", f->notes[i]);
  if (a->n_devices > 0) show_devices(&ui, f, a);
  ui_line(&ui, "objective   %.6f %s%s", a->objective, f->unit,
          a->certified ? " (proved the best of its kind)" : "");
  ui_line(&ui, "lower bound %.6f %s (%s), ratio %.4f", a->lower_bound, f->unit, a->bound,
          a->objective / a->lower_bound);
  if (a->n_devices > 0 && isfinite(a->one_device))
    ui_line(&ui, "one device  %.6f %s, %.2fx as long", a->one_device, f->unit,
            a->one_device / a->objective);
  else if (a->n_devices > 0)
    ui_line(&ui, "one device  none can hold it all");
  ui_line(&ui, "%s; %lld evaluations, %.2f s (and %.2f s to read)", a->found, (long long)a->evals,
          t->solve_s, t->read_s);
}

static void put_devices(json_report *r, const sn_instance_answer *a) {
  cJSON *devices = json_list(r, r->root, "devices");
  for (int d = 0; d < a->n_devices; d++) {
    const sn_instance_device *x = &a->devices[d];
    cJSON *device = json_object(r, devices, NULL);
    json_text(r, device, "name", x->name);
    json_text(r, device, "kind", x->kind);
    json_number(r, device, "load", x->load);
    json_int(r, device, "bytes", (int64_t)x->bytes);
    json_int(r, device, "bytes_limit", (int64_t)x->bytes_limit);
  }
}

static sn_status print_json(const sn_instance_facts *f, const sn_instance_answer *a,
                            const run_times *t) {
  json_report r;
  SN_TRY(json_create(&r));
  json_text(&r, r.root, "format", f->format);
  json_text(&r, r.root, "objective_kind", f->objective);
  json_text(&r, r.root, "unit", f->unit);
  json_number(&r, r.root, "objective", a->objective);
  json_number(&r, r.root, "lower_bound", a->lower_bound);
  json_text(&r, r.root, "bound", a->bound);
  json_number(&r, r.root, "one_device", a->one_device);
  json_int(&r, r.root, "evals", a->evals);
  json_bool(&r, r.root, "certified", a->certified);
  json_text(&r, r.root, "found", a->found);
  json_number(&r, r.root, "seconds", t->solve_s);
  cJSON *notes = json_list(&r, r.root, "notes");
  for (size_t i = 0; i < f->n_notes; i++)
    json_text(&r, notes, NULL, f->notes[i]);
  put_devices(&r, a);
  cJSON *assignment = json_object(&r, r.root, "assignment");
  for (size_t i = 0; i < a->n_places; i++) {
    const sn_instance_place *p = &a->places[i];
    if (p->device >= 0)
      json_text(&r, assignment, p->id, a->devices[p->device].name);
    else
      json_int(&r, assignment, p->id, p->offset);
  }
  sn_status status = json_print(&r, stdout);
  json_free(&r);
  return status;
}

sn_status cmd_place(const arg_set *args) {
  stop_at_once();
  sn_instance *instance = NULL;
  sn_instance_answer *answer = NULL;
  sn_instance_options options = {.struct_size = sizeof options,
                                 .contiguous = args_given(args, "--contiguous"),
                                 .certify = args_given(args, "--certify"),
                                 .evals = args_int(args, "--evals", 0),
                                 .seed = (uint64_t)args_int(args, "--seed", 0)};
  run_times times = {.read_s = cpu_seconds()};
  SN_TRY(sn_instance_open(args_text(args, "FILE"), (int)args_int(args, "--devices", 0), &instance));
  double began = cpu_seconds();
  times.read_s = began - times.read_s;
  sn_status status = sn_instance_solve(instance, &options, &answer);
  times.solve_s = cpu_seconds() - began;
  if (status == SN_OK && args_given(args, "--json"))
    status = print_json(sn_instance_facts_of(instance), answer, &times);
  else if (status == SN_OK)
    show(sn_instance_facts_of(instance), answer, &times);
  sn_instance_answer_free(answer);
  sn_instance_free(instance);
  return status;
}
