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
 * kernel, a sandbox, a thread whose signal stack is too small to save them on. Afterwards it
 * refuses such signal stacks, so a process that has no use for the registers should not ask. */
static bool has_amx(bool ask) {
#if defined(__linux__)
  enum { GET_SUPPORTED = 0x1021, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
  const unsigned wanted = 1u << 22 | 1u << 24; /* AMX_BF16, AMX_TILE */
  unsigned a, b, c, d;
  uint64_t supported = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & wanted) != wanted) return false;
  if (ask) return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
  return syscall(SYS_arch_prctl, GET_SUPPORTED, &supported) == 0 &&
         (supported >> TILE_DATA & 1) != 0;
#else
  (void)ask;
  return false;
#endif
}

static sn__cpu_bf16 look(bool ask) {
  return !has_avx512() ? SN__CPU_BF16_NONE : has_amx(ask) ? SN__CPU_BF16_AMX : SN__CPU_BF16_AVX512;
}
#else
static sn__cpu_bf16 look(bool ask) {
  (void)ask;
  return SN__CPU_BF16_NONE;
}
#endif

/* 1 + what can be used, 0 before it was asked for; two threads find the same. */
static atomic_int known;

sn__cpu_bf16 sn__cpu_bf16_there(void) {
  const int now = atomic_load_explicit(&known, memory_order_acquire);
  return now != 0 ? (sn__cpu_bf16)(now - 1) : look(false);
}

sn__cpu_bf16 sn__cpu_bf16_now(void) {
  int now = atomic_load_explicit(&known, memory_order_acquire);
  if (now == 0) {
    now = 1 + (int)look(true);
    atomic_store_explicit(&known, now, memory_order_release);
  }
  return (sn__cpu_bf16)(now - 1);
}
