/* SPDX-License-Identifier: Apache-2.0 */
#include "core/init.h"
#include "core/rng.h"

#include <math.h>
#include <string.h>

/* What one variable is filled with: everything its draws depend on. */
typedef struct filling {
  const char *name;
  uint64_t seed, key;
  sn_dtype dtype;
  int64_t count;
  void *out;
} filling;

static uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16); /* to nearest, ties to even */
}

static void put(const filling *f, int64_t i, double x) {
  switch (f->dtype) {
  case SN_F32: ((float *)f->out)[i] = (float)x; break;
  case SN_F64: ((double *)f->out)[i] = x; break;
  case SN_BF16: ((uint16_t *)f->out)[i] = to_bf16((float)x); break;
  case SN_I32: ((int32_t *)f->out)[i] = (int32_t)x; break;
  case SN_I64: ((int64_t *)f->out)[i] = (int64_t)x; break;
  case SN_U8: ((uint8_t *)f->out)[i] = (uint8_t)x; break;
  case SN_BOOL: ((uint8_t *)f->out)[i] = x != 0; break;
  default: break;
  }
}

static void fill_constant(const filling *f, double value) {
  for (int64_t i = 0; i < f->count; i++)
    put(f, i, value);
}

/* Draws of 24 bits, so that a float never rounds up to the bound. */
static void fill_uniform(const filling *f, double bound) {
  sn__rng rng = sn__rng_make(f->seed, f->key);
  for (int64_t i = 0; i < f->count; i += 4) {
    uint32_t c[4] = {(uint32_t)((uint64_t)i >> 2), (uint32_t)((uint64_t)i >> 34), 0, 0};
    sn__philox(&rng, c);
    for (int64_t k = i; k < i + 4 && k < f->count; k++)
      put(f, k, (2.0 * (double)sn__u01(c[k - i]) - 1.0) * bound);
  }
}

static void fill_normal(const filling *f, double deviation) {
  for (int64_t i = 0; i < f->count; i += 2) {
    double z[2];
    sn__rng_normal2(f->seed, f->key, (uint64_t)i >> 1, z);
    put(f, i, z[0] * deviation);
    if (i + 1 < f->count) put(f, i + 1, z[1] * deviation);
  }
}

static double dot(const double *a, const double *b, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; i++)
    s += a[i] * b[i];
  return s;
}

/* Makes vector `k` orthonormal to those before it. Twice is enough (Kahan; Giraud et al. 2005).
 * False when nothing of it is left. */
static bool orthonormalise(double *vectors, int64_t k, int64_t length) {
  double *v = vectors + k * length;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t j = 0; j < k; j++) {
      const double *u = vectors + j * length;
      double c = dot(u, v, length);
      for (int64_t i = 0; i < length; i++)
        v[i] -= c * u[i];
    }
  double norm = sqrt(dot(v, v, length));
  if (!(norm > 1e-12)) return false;
  for (int64_t i = 0; i < length; i++)
    v[i] /= norm;
  return true;
}

/* The shorter side of [rows, the rest] becomes orthonormal. */
static sn_status fill_orthogonal(const filling *f, const sn_shape *shape, double gain) {
  if (shape->rank < 2)
    return sn_status_make(SN_CODE_INVALID,
                          "variable '%s': an orthogonal start needs at least two dimensions",
                          f->name);
  int64_t rows = shape->dims[0], columns = f->count / rows;
  int64_t n = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
  double *vectors = sn__calloc((size_t)f->count, sizeof *vectors);
  if (vectors == NULL) return sn_status_out_of_memory();
  uint64_t counter = 0;
  for (int64_t k = 0; k < n; k++) {
    do {
      double *v = vectors + k * length;
      for (int64_t i = 0; i < length; i += 2) {
        double z[2];
        sn__rng_normal2(f->seed, f->key, counter++, z);
        v[i] = z[0];
        if (i + 1 < length) v[i + 1] = z[1];
      }
    } while (!orthonormalise(vectors, k, length));
  }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      put(f, r * columns + c, gain * vectors[rows < columns ? r * length + c : c * length + r]);
  sn__free(vectors);
  return SN_OK;
}

static void fans(const sn_init *init, const sn_shape *shape, double *in, double *out) {
  int64_t field = shape->rank > 2 ? sn__shape_span(shape, 2, shape->rank) : 1;
  int64_t first = shape->rank > 0 ? shape->dims[0] : 1;
  int64_t second = shape->rank > 1 ? shape->dims[1] : first;
  *in = (double)(init->fan_in > 0 ? init->fan_in : second * field);
  *out = (double)(init->fan_out > 0 ? init->fan_out : first * field);
}

static sn_status check(const sn_init *init, sn_dtype dtype, const char *name) {
  if (!isfinite(init->value) || !isfinite(init->gain) || init->fan_in < 0 || init->fan_out < 0)
    return sn_status_make(SN_CODE_INVALID,
                          "variable '%s': the numbers of its start must be finite and its fans "
                          "not negative",
                          name);
  if (init->kind > SN_INIT_CONSTANT && !sn_dtype_is_float(dtype))
    return sn_status_make(SN_CODE_INVALID,
                          "variable '%s' of type %s cannot start at random; use zeros or a "
                          "constant",
                          name, sn_dtype_name(dtype));
  double most = dtype == SN_I32 ? 0x1p31 - 1 : dtype == SN_I64 ? 0x1p62 : dtype == SN_U8 ? 255 : 0;
  if (init->kind == SN_INIT_CONSTANT && most > 0 &&
      (init->value > most || init->value < (dtype == SN_U8 ? 0 : -most)))
    return sn_status_make(SN_CODE_INVALID, "variable '%s': %g does not fit into %s", name,
                          init->value, sn_dtype_name(dtype));
  return SN_OK;
}

sn_status sn__init_fill(const sn_init *init, const sn_shape *shape, sn_dtype dtype, uint64_t seed,
                        const char *variable_name, void *out) {
  SN_TRY(check(init, dtype, variable_name));
  filling f = {.name = variable_name,
               .seed = seed,
               .key = sn__hash_text(0x696e6974u, variable_name),
               .dtype = dtype,
               .count = sn__shape_size(shape),
               .out = out};
  if (f.count == 0) return SN_OK;
  double in, to, gain = init->gain != 0 ? init->gain : 1.0;
  double he = init->gain != 0 ? init->gain : sqrt(2.0);
  fans(init, shape, &in, &to);
  switch (init->kind) {
  case SN_INIT_ZEROS: memset(out, 0, (size_t)f.count * sn_dtype_size(dtype)); break;
  case SN_INIT_CONSTANT: fill_constant(&f, init->value); break;
  case SN_INIT_UNIFORM: fill_uniform(&f, init->value); break;
  case SN_INIT_NORMAL: fill_normal(&f, init->value); break;
  case SN_INIT_GLOROT_UNIFORM: fill_uniform(&f, gain * sqrt(6.0 / (in + to))); break;
  case SN_INIT_GLOROT_NORMAL: fill_normal(&f, gain * sqrt(2.0 / (in + to))); break;
  case SN_INIT_HE_UNIFORM: fill_uniform(&f, he * sqrt(3.0 / in)); break;
  case SN_INIT_HE_NORMAL: fill_normal(&f, he / sqrt(in)); break;
  case SN_INIT_ORTHOGONAL: return fill_orthogonal(&f, shape, gain);
  default:
    return sn_status_make(SN_CODE_INVALID, "variable '%s': no such kind of start (%d)",
                          variable_name, (int)init->kind);
  }
  return SN_OK;
}

sn_status sn__init_variable(const sn_graph *graph, size_t i, uint64_t seed, void *out) {
  const sn__variable *v = &graph->variables[i], *from = v;
  if (v->copy_owner && v->owner > 0) from = &graph->variables[v->owner - 1];
  const sn__value *value = &graph->values[v->value];
  return sn__init_fill(&from->init, &value->shape, value->dtype, seed, from->name, out);
}
