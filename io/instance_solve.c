/* SPDX-License-Identifier: Apache-2.0 */
/* Solving an instance, and the answer in the file's own units. */
#include <math.h>
#include <string.h>

#include "io/instance_impl.h"
#include "placement/load.h"

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
  if (status == SN_OK && in->kind == SN__INSTANCE_LOAD)
    status = solve_load(in, &o, box);
  else if (status == SN_OK)
    status = sn_status_make(SN_CODE_UNSUPPORTED, "%s problems are read, but not solved yet",
                            in->facts.objective);
  if (status != SN_OK) {
    sn_instance_answer_free(&box->answer);
    return status;
  }
  *out_answer = &box->answer;
  return SN_OK;
}
