/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/update.h"

#include <string.h>

sn_status sn__update_infer(sn__infer *c) {
  const sn__type *variable = &c->in[SN__UPDATE_VARIABLE];
  if (variable->dtype != SN_F32 && variable->dtype != SN_F64)
    return sn__infer_fail(c, "an update needs a variable of f32 or f64");
  c->n_out = 1 + c->n_in - SN__UPDATE_SLOTS;
  for (int i = 0; i < c->n_in; i++) {
    if (i == SN__UPDATE_CONTROL) continue;
    if (c->in[i].dtype != variable->dtype || !sn_shape_equal(&c->in[i].shape, &variable->shape))
      return sn__infer_fail(c, "gradient and slots must be like the variable");
  }
  const sn__type *control = &c->in[SN__UPDATE_CONTROL];
  if (control->dtype != SN_F64 || control->shape.rank != 1 ||
      control->shape.dims[0] != SN__CONTROLS)
    return sn__infer_fail(c, "input 2 must be the step's control, f64 [%d]", SN__CONTROLS);
  for (int o = 0; o < c->n_out; o++)
    c->out[o] = *variable;
  return SN_OK;
}

typedef struct run {
  const sn__exec *e;
  sn__update_fn fn;
  int64_t count;
} run;

static void one_chunk(void *arg, int64_t index, int worker) {
  (void)worker;
  const run *r = arg;
  const sn__exec *e = r->e;
  int64_t begin = index * SN__CHUNK, left = r->count - begin;
  size_t skip = (size_t)begin * sn_dtype_size(e->in[0].dtype);
  sn__update_chunk c = {.n = left < SN__CHUNK ? left : SN__CHUNK,
                        .gradient = (const char *)e->in[SN__UPDATE_GRADIENT].data + skip,
                        .attrs = e->attrs,
                        .control = e->in[SN__UPDATE_CONTROL].data};
  for (int o = 0; o < e->n_out; o++) {
    c.in[o] = (const char *)e->in[o == 0 ? 0 : SN__UPDATE_SLOTS + o - 1].data + skip;
    c.out[o] = (char *)e->out[o].data + skip;
  }
  r->fn(&c);
}

sn_status sn__update_run(const sn__exec *e, sn__update_fn f32, sn__update_fn f64) {
  const double *control = e->in[SN__UPDATE_CONTROL].data;
  int64_t count = sn__shape_size(&e->in[0].shape);
  if (control[SN__CONTROL_FINITE] == 0) {
    size_t bytes = (size_t)count * sn_dtype_size(e->in[0].dtype);
    for (int o = 0; o < e->n_out; o++) {
      const void *from = e->in[o == 0 ? 0 : SN__UPDATE_SLOTS + o - 1].data;
      if (from != e->out[o].data && bytes > 0) memcpy(e->out[o].data, from, bytes);
    }
    return SN_OK;
  }
  run r = {e, e->in[0].dtype == SN_F64 ? f64 : f32, count};
  sn__team_run(e->team, (count + SN__CHUNK - 1) / SN__CHUNK, one_chunk, &r);
  return SN_OK;
}
