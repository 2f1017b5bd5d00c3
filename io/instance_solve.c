/* SPDX-License-Identifier: Apache-2.0 */
/* Solving an instance, and the answer in the file's own units. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/run/memory_search.h"
#include "io/instance_impl.h"
#include "placement/load.h"
#include "placement/makespan.h"

struct answer_box {
  sn_instance_answer answer; /* first: what the caller holds */
  sn__arena arena;
};

void sn_instance_answer_free(sn_instance_answer *answer) {
  struct answer_box *box = (struct answer_box *)(void *)answer;
  if (box == NULL) return;
  sn__arena_free(&box->arena);
  sn__free(box);
}

static double in_units(const sn_instance *in, int64_t ns) {
  double scale = 1;
  for (int i = 0; i < in->decimals; i++)
    scale *= 10;
  return ns >= SN__FLOW_TIME_MOST ? (double)NAN : (double)ns / scale;
}

/* Arrays for places and devices, with what the file says of them. */
static sn_status prepare(const sn_instance *in, struct answer_box *box) {
  sn_instance_answer *a = &box->answer;
  size_t nodes = in->kind == SN__INSTANCE_MEMORY ? in->n_blocks : in->flow->n_tasks;
  a->n_devices = in->facts.n_devices;
  a->n_places = nodes;
  a->places = sn__arena_alloc(&box->arena, (nodes + 1) * sizeof *a->places);
  a->devices = sn__arena_alloc(&box->arena, ((size_t)a->n_devices + 1) * sizeof *a->devices);
  if (a->places == NULL || a->devices == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < nodes; i++)
    a->places[i] = (sn_instance_place){.id = in->node_id[i], .device = -1};
  for (int d = 0; d < a->n_devices; d++)
    a->devices[d] = (sn_instance_device){.name = in->device_name[d],
                                         .kind = in->device_kind[d],
                                         .bytes_limit = in->flow->device_bytes[d]};
  return SN_OK;
}

static sn_status keep_words(struct answer_box *box, const char *found, const char *bound) {
  box->answer.found = sn__arena_strdup(&box->arena, found);
  box->answer.bound = sn__arena_strdup(&box->arena, bound);
  return box->answer.found != NULL && box->answer.bound != NULL ? SN_OK : sn_status_out_of_memory();
}

static sn_status take_load(const sn_instance *in, const sn__load *load, const sn__load_result *r,
                           struct answer_box *box) {
  sn_instance_answer *a = &box->answer;
  sn__load_state state;
  a->objective = in_units(in, r->ns);
  a->lower_bound = in_units(in, r->bound_ns);
  a->one_device = in_units(in, r->one_device_ns);
  a->certified = r->certified;
  a->evals = (int64_t)r->evals;
  for (uint32_t t = 0; t < in->flow->n_tasks; t++)
    a->places[t].device = r->device[in->flow->task_class[t]];
  SN_TRY(sn__load_state_create(load, &state));
  sn__load_assign(&state, r->device);
  for (int d = 0; d < a->n_devices; d++) {
    a->devices[d].load = in_units(in, state.device_ns[d]);
    a->devices[d].bytes = state.device_bytes[d];
  }
  sn__load_state_free(&state);
  return keep_words(box, r->found, r->bound);
}

static sn_status solve_load(const sn_instance *in, const sn_instance_options *o,
                            struct answer_box *box) {
  sn__load_facts facts = {in->device_pays, in->task_backward};
  sn__load_options options = {.contiguous = o->contiguous,
                              .certify = o->certify,
                              .evals = (uint64_t)o->evals,
                              .seed = o->seed};
  sn__load_result result = {0};
  sn__load *load = NULL;
  SN_TRY(sn__load_create(in->flow, &facts, &load));
  sn_status status = sn__load_solve(load, &options, &result);
  if (status == SN_OK) status = take_load(in, load, &result, box);
  sn__free(result.device);
  sn__load_free(load);
  return status;
}

static sn_status solve_makespan(const sn_instance *in, const sn_instance_options *o,
                                struct answer_box *box) {
  sn_instance_answer *a = &box->answer;
  sn__makespan_options options = {.evals = o->evals, .seed = o->seed, .certify = o->certify};
  sn__makespan_result r = {0};
  if (o->contiguous)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "contiguous splits are for the largest load; this is a makespan problem: "
                          "leave out --contiguous");
  SN_TRY(sn__makespan_solve(in->flow, &options, &r));
  sn_status status = SN_OK;
  if (!r.fits)
    status = sn_status_make(SN_CODE_INVALID,
                            "no placement found fits the devices' memory; give them more, or more "
                            "devices");
  a->objective = in_units(in, r.makespan);
  a->lower_bound = in_units(in, r.lower_bound);
  a->one_device = r.one_device < 0 ? (double)NAN : in_units(in, r.one_device_makespan);
  a->certified = r.certified;
  a->evals = r.evals;
  for (uint32_t t = 0; t < in->flow->n_tasks; t++) {
    int d = r.devices[in->flow->task_class[t]];
    a->places[t].device = d;
    a->devices[d].load +=
        in_units(in, in->flow->task_ns[(size_t)t * (size_t)in->flow->n_devices + (size_t)d]);
  }
  for (uint32_t c = 0; c < in->flow->n_classes; c++)
    a->devices[r.devices[c]].bytes += in->flow->class_bytes[c];
  char found[120];
  snprintf(found, sizeof found, "%s%s", r.found,
           r.annealed ? ", then annealing over places and priorities" : "");
  if (status == SN_OK) status = keep_words(box, found, r.bound != NULL ? r.bound : "none");
  sn__makespan_free(&r);
  return status;
}

static sn_status solve_memory(const sn_instance *in, const sn_instance_options *o,
                              struct answer_box *box) {
  sn_instance_answer *a = &box->answer;
  sn__intervals x = {.n = in->n_blocks,
                     .lower = in->lower,
                     .upper = in->upper,
                     .sizes = in->sizes,
                     .budget = (uint64_t)o->evals};
  char found[160];
  if (o->contiguous)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "contiguous splits are for the largest load; this is a memory problem: "
                          "leave out --contiguous");
  x.offsets = sn__arena_alloc(&box->arena, ((size_t)x.n + 1) * sizeof *x.offsets);
  if (x.offsets == NULL) return sn_status_out_of_memory();
  SN_TRY(sn__pack_intervals(&x));
  a->objective = (double)x.bytes;
  a->lower_bound = (double)x.lower_bound;
  a->one_device = (double)NAN;
  a->certified = x.bytes == x.lower_bound;
  a->evals = (int64_t)x.used;
  for (uint32_t i = 0; i < x.n; i++)
    a->places[i].offset = x.offsets[i];
  snprintf(found, sizeof found, "%s; best fit and orders alone: %lld bytes",
           x.bytes < x.first_bytes ? "search over packings" : "best fit and orders",
           (long long)x.first_bytes);
  return keep_words(box, found,
                    x.lower_bound == x.live_bytes ? "the most bytes that live at one moment"
                                                  : "no packing needs less, by search");
}

sn_status sn_instance_solve(const sn_instance *in, const sn_instance_options *options,
                            sn_instance_answer **out_answer) {
  sn_instance_options o = {0};
  if (options != NULL)
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  if (o.evals < 0)
    return sn_status_make(SN_CODE_INVALID, "a budget of %lld evaluations; give 1 or more",
                          (long long)o.evals);
  struct answer_box *box = sn__calloc(1, sizeof *box);
  if (box == NULL) return sn_status_out_of_memory();
  sn_status status = prepare(in, box);
  if (status == SN_OK) switch (in->kind) {
    case SN__INSTANCE_LOAD: status = solve_load(in, &o, box); break;
    case SN__INSTANCE_MAKESPAN: status = solve_makespan(in, &o, box); break;
    case SN__INSTANCE_MEMORY: status = solve_memory(in, &o, box); break;
    }
  if (status != SN_OK) {
    sn_instance_answer_free(&box->answer);
    return status;
  }
  *out_answer = &box->answer;
  return SN_OK;
}
