/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/roofline.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { CHAINS = 12, ROUNDS = 200000, THREADS_MOST = 64 };

/* CHAINS independent chains keep every multiply-add unit busy; nothing touches memory. `type` holds
 * `lanes` floats. Gives the floating-point operations done; the sum keeps them from being left out.
 */
#define RUN(name, attributes, type, lanes, set, multiply_add)                                      \
  attributes static double name(float *out) {                                                      \
    type x[CHAINS], a = set(0.999f), b = set(1e-3f);                                               \
    float flat[lanes];                                                                             \
    for (int c = 0; c < CHAINS; c++)                                                               \
      x[c] = set((float)(c + 1));                                                                  \
    for (int i = 0; i < ROUNDS; i++)                                                               \
      _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) x[c] = multiply_add(x[c], a, b);   \
    for (int c = 0; c < CHAINS; c++) {                                                             \
      memcpy(flat, &x[c], sizeof flat);                                                            \
      *out += flat[c % (lanes)];                                                                   \
    }                                                                                              \
    return 2.0 * CHAINS * (lanes)*ROUNDS;                                                          \
  }

#if defined(__x86_64__)
RUN(run_avx512, __attribute__((target("avx512f"))), __m512, 16, _mm512_set1_ps, _mm512_fmadd_ps)
RUN(run_avx2, __attribute__((target("avx2,fma"))), __m256, 8, _mm256_set1_ps, _mm256_fmadd_ps)
#endif

#define PLAIN(x)           (x)
#define PLAIN_ADD(x, a, b) ((x) * (a) + (b))
RUN(run_plain, , float, 1, PLAIN, PLAIN_ADD)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double (*pick(void))(float *) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return run_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_avx2;
#endif
  return run_plain;
}

typedef struct runner {
  double (*run)(float *kept);
  double gflops;
} runner;

static void *best_of_runs(void *arg) {
  runner *r = arg;
  double best = 0;
  float kept = 0;
  for (int i = 0; i < 12; i++) {
    double t = now();
    double flops = r->run(&kept);
    t = now() - t;
    double rate = flops / t * 1e-9;
    if (rate > best) best = rate;
  }
  r->gflops = kept != 0 ? best : 0; /* always best: the sum must be seen to be used */
  return NULL;
}

double roofline_of(double (*run)(float *kept), int threads) {
  pthread_t thread[THREADS_MOST];
  runner runners[THREADS_MOST];
  if (threads > THREADS_MOST) threads = THREADS_MOST;
  for (int i = 0; i < THREADS_MOST; i++)
    runners[i] = (runner){run, 0};
  int started = 0;
  for (int i = 1; i < threads; i++)
    if (pthread_create(&thread[i], NULL, best_of_runs, &runners[i]) == 0)
      started = i;
    else
      break;
  best_of_runs(&runners[0]);
  double sum = runners[0].gflops;
  for (int i = 1; i <= started; i++) {
    pthread_join(thread[i], NULL);
    sum += runners[i].gflops;
  }
  return sum;
}

double roofline_gflops(int threads) {
  return roofline_of(pick(), threads);
}
