/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-vectorised f32 gates (internal). The choice follows the matrix products', so that one
 * machine runs one instruction set; AVX2 and AVX-512 give the same bits. */
#ifndef SN_OPS_RECURRENT_GATES_H
#define SN_OPS_RECURRENT_GATES_H

#include "ops/gru/gru.h"
#include "ops/lstm/lstm.h"

typedef struct sn__gates {
  void (*lstm)(const sn__lstm_rows *r);
  void (*lstm_grad)(const sn__lstm_grad_rows *r);
  void (*gru)(const sn__gru_rows *r);
  void (*gru_grad)(const sn__gru_grad_rows *r);
} sn__gates;

/* NULL where the compiler cannot build them. */
extern const sn__gates *const sn__gates_avx2;
extern const sn__gates *const sn__gates_avx512;

/* NULL: the plain loops serve. */
static inline const sn__gates *sn__gates_now(void) {
  switch (sn__gemm_get_isa()) {
  case SN__GEMM_ISA_AVX512: return sn__gates_avx512;
  case SN__GEMM_ISA_AVX2: return sn__gates_avx2;
  default: return NULL;
  }
}

#endif
