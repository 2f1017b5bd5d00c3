/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device/bf16.h"

#include <stdatomic.h>

#if SN__BF16_X86
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static bool has_avx512(void) {
  unsigned a, b, c, d;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __get_cpuid_count(7, 1, &a, &b, &c, &d) &&
         (a & bit_AVX512BF16) != 0;
}

/* Linux gives a process its tile registers only when it asks for them, and may refuse: an old
 * kernel, a sandbox, a thread whose signal stack is too small to save them on. */
static bool has_amx(void) {
#if defined(__linux__)
  enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
  const unsigned wanted = 1u << 22 | 1u << 24; /* AMX_BF16, AMX_TILE */
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & wanted) == wanted &&
         syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
  return false;
#endif
}

static sn__cpu_bf16 look(void) {
  return !has_avx512() ? SN__CPU_BF16_NONE : has_amx() ? SN__CPU_BF16_AMX : SN__CPU_BF16_AVX512;
}
#else
static sn__cpu_bf16 look(void) {
  return SN__CPU_BF16_NONE;
}
#endif

sn__cpu_bf16 sn__cpu_bf16_now(void) {
  static atomic_int known; /* 1 + what was found; two threads find the same */
  int now = atomic_load_explicit(&known, memory_order_acquire);
  if (now == 0) {
    now = 1 + (int)look();
    atomic_store_explicit(&known, now, memory_order_release);
  }
  return (sn__cpu_bf16)(now - 1);
}
