/* SPDX-License-Identifier: Apache-2.0 */
/* The gates of a step, element by element. */
#include "ops/recurrent/gates.h"
#include "ops/vecmath.h"

#define REAL    float
#define NAME(n) n##_f32
#define LOOP    SN__SIMD
#include "ops/lstm/lstm_rows.inc"
#undef REAL
#undef NAME
#undef LOOP
#define REAL    double
#define NAME(n) n##_f64
#define LOOP    /* calls the C library */
#include "ops/lstm/lstm_rows.inc"
#undef REAL
#undef NAME

void sn__lstm_rows_run(sn_dtype dtype, const sn__lstm_rows *r) {
  const sn__gates *gates = sn__gates_now();
  if (dtype == SN_F32 && gates != NULL)
    gates->lstm(r);
  else if (dtype == SN_F32)
    rows_f32(r);
  else
    rows_f64(r);
}

void sn__lstm_grad_rows_run(sn_dtype dtype, const sn__lstm_grad_rows *r) {
  const sn__gates *gates = sn__gates_now();
  if (dtype == SN_F32 && gates != NULL)
    gates->lstm_grad(r);
  else if (dtype == SN_F32)
    grad_rows_f32(r);
  else
    grad_rows_f64(r);
}
