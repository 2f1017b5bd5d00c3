/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine's processors have for products of bf16 (internal). */
#ifndef SN_CORE_DEVICE_BF16_H
#define SN_CORE_DEVICE_BF16_H

#include "core/api.h"

/* Compilers that know the instructions. */
#if defined(__x86_64__) && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#define SN__BF16_X86 1
#else
#define SN__BF16_X86 0
#endif

typedef enum sn__cpu_bf16 {
  SN__CPU_BF16_NONE = 0,
  SN__CPU_BF16_AVX512, /* AVX512_BF16 */
  SN__CPU_BF16_AMX     /* AMX_BF16 too, and the process may use its registers */
} sn__cpu_bf16;

SN_BEGIN_DECLS
/* What products of bf16 can use. The first call asks Linux for the tile registers, for the whole
 * process. */
SN_API sn__cpu_bf16 sn__cpu_bf16_now(void);
/* The same for plans, without asking for anything: before the first of the above, what it will find
 * unless Linux refuses. */
SN_API sn__cpu_bf16 sn__cpu_bf16_there(void);
SN_END_DECLS

#endif
