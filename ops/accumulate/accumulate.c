/* SPDX-License-Identifier: Apache-2.0 */
/* A micro-batch's gradient put into or added to the accumulator. */
#include "ops/update.h"
#include "ops/vecmath.h"

#include <string.h>

#define DEFINE_ADD(name, T)                                                                        \
  SN__CLONES static void name(const T *a, const T *b, T *out, int64_t n) {                         \
    SN__SIMD for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];                                 \
  }
DEFINE_ADD(add_f32, float)
DEFINE_ADD(add_f64, double)

static sn_status accumulate_infer(sn__infer *c) {
  if (c->in[0].dtype != SN_F32 && c->in[0].dtype != SN_F64)
    return sn__infer_fail(c, "an accumulator is f32 or f64");
  if (c->in[0].dtype != c->in[1].dtype || !sn_shape_equal(&c->in[0].shape, &c->in[1].shape))
    return sn__infer_fail(c, "accumulator and gradient must be alike");
  c->out[0] = c->in[0];
  return SN_OK;
}

static void accumulate_chunk(void *arg, int64_t index, int worker) {
  (void)worker;
  const sn__exec *e = arg;
  const sn__accumulate_attrs *attrs = e->attrs;
  int64_t begin = index * SN__CHUNK, left = sn__shape_size(&e->in[0].shape) - begin;
  int64_t n = left < SN__CHUNK ? left : SN__CHUNK;
  size_t size = sn_dtype_size(e->in[0].dtype), skip = (size_t)begin * size;
  const void *old = (const char *)e->in[0].data + skip, *add = (const char *)e->in[1].data + skip;
  void *out = (char *)e->out[0].data + skip;
  if (attrs->first)
    memcpy(out, add, (size_t)n * size);
  else if (e->in[0].dtype == SN_F64)
    add_f64(old, add, out, n);
  else
    add_f32(old, add, out, n);
}

static sn_status accumulate_cpu(const sn__exec *e) {
  int64_t chunks = (sn__shape_size(&e->in[0].shape) + SN__CHUNK - 1) / SN__CHUNK;
  sn__exec copy = *e;
  sn__team_run(e->team, chunks, accumulate_chunk, &copy);
  return SN_OK;
}

static const sn__attr_def accumulate_attrs[] = {SN__INT_FIELD(sn__accumulate_attrs, first)};

const sn_op_def sn__op_accumulate = {.name = "accumulate",
                                     .version = 1,
                                     .min_inputs = 2,
                                     .max_inputs = 2,
                                     .n_outputs = 1,
                                     .flags = SN_OP_COMMIT | SN_OP_NO_GRAD,
                                     .attrs = accumulate_attrs,
                                     .n_attrs = 1,
                                     .attrs_size = sizeof(sn__accumulate_attrs),
                                     .infer = accumulate_infer,
                                     .commits = {1},
                                     .cpu = accumulate_cpu,
                                     .doc = "accumulator := gradient (first) or += gradient"};
