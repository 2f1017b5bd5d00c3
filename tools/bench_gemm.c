/* SPDX-License-Identifier: Apache-2.0 */
/* Times sn__gemm() on the shapes that training meets, beside the machine's own peak (a loop of
 * register-only multiply-adds, measured next to each row) and, where built with it, oneDNN called
 * the way a library would call it: one thread, the whole product. Medians of interleaved runs.
 *
 * "bf16" columns are the same product with operands rounded to bf16, and f32's time over its.
 *
 *   bench_gemm [--threads N] [--only TEXT] [--runs N] [--isa base|avx2|avx512]
 *              [--bf16 plain|avx512_bf16|amx_bf16]
 *
 * oneDNN is timed with one thread only: its OpenMP threads spin after their work and would take the
 * processors from the team. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/alloc.h"
#include "ops/gemm/gemm.h"
#if SN_HAVE_ONEDNN
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#endif

#ifndef SN_HAVE_ONEDNN
#define SN_HAVE_ONEDNN 0
#endif

#define MOST_RUNS 2001

typedef enum form { NT, NN, TN } form;
static const char *const form_names[] = {"NT", "NN", "TN"};

typedef struct shape {
  const char *name;
  int64_t m, n, k;
  form form;
  bool packed, accumulate;
} shape;

static const shape shapes[] = {
    {"S dense fwd", 32, 64, 32, NT, 0, 0},
    {"S dense fwd", 32, 64, 64, NT, 0, 0},
    {"S trunk fwd", 32, 64, 128, NT, 0, 0},
    {"S logits fwd", 32, 10, 64, NT, 0, 0},
    {"S dense dX", 32, 64, 64, NN, 0, 0},
    {"S dense dW", 64, 64, 32, TN, 0, 0},
    {"S phi1 fwd", 528, 64, 8, NT, 0, 0},
    {"S phi2 fwd", 528, 64, 64, NT, 0, 0},
    {"S phi2 dX", 528, 64, 64, NN, 0, 0},
    {"S phi2 dW", 64, 64, 528, TN, 0, 0},
    {"S phi1 dW", 64, 8, 528, TN, 0, 0},
    {"S lstm in fwd", 528, 128, 16, NT, 0, 0},
    {"S lstm step", 1, 128, 32, NT, 1, 1},
    {"S lstm step", 4, 128, 32, NT, 1, 1},
    {"S lstm step", 16, 128, 32, NT, 1, 1},
    {"S lstm step", 32, 128, 32, NT, 1, 1},
    {"S lstm step dX", 32, 32, 128, NN, 0, 0},
    {"S lstm dW", 128, 32, 528, TN, 0, 0},
    {"M dense fwd", 128, 256, 128, NT, 0, 0},
    {"M dense fwd", 128, 256, 256, NT, 0, 0},
    {"M trunk fwd", 128, 256, 640, NT, 0, 0},
    {"M dense dX", 128, 256, 256, NN, 0, 0},
    {"M dense dW", 256, 256, 128, TN, 0, 0},
    {"M phi1 fwd", 4160, 128, 16, NT, 0, 0},
    {"M phi2 fwd", 4160, 128, 128, NT, 0, 0},
    {"M phi2 dX", 4160, 128, 128, NN, 0, 0},
    {"M phi2 dW", 128, 128, 4160, TN, 0, 0},
    {"M lstm in fwd", 4160, 512, 32, NT, 0, 0},
    {"M lstm in dX", 4160, 32, 512, NN, 0, 0},
    {"M lstm in dW", 512, 32, 4160, TN, 0, 0},
    {"M lstm step", 16, 512, 128, NT, 1, 1},
    {"M lstm step", 64, 512, 128, NT, 1, 1},
    {"M lstm step", 128, 512, 128, NT, 1, 1},
    {"M lstm step dX", 128, 128, 512, NN, 0, 0},
    {"M lstm step dX", 128, 128, 512, NN, 1, 0},
    {"M lstm dW", 512, 128, 4160, TN, 0, 0},
    {"L dense fwd", 256, 1024, 512, NT, 0, 0},
    {"L dense fwd", 256, 1024, 1024, NT, 0, 0},
    {"L dense dX", 256, 1024, 1024, NN, 0, 0},
    {"L dense dW", 1024, 1024, 256, TN, 0, 0},
    {"L phi1 fwd", 16512, 512, 32, NT, 0, 0},
    {"L phi2 fwd", 16512, 512, 512, NT, 0, 0},
    {"L phi2 dX", 16512, 512, 512, NN, 0, 0},
    {"L phi2 dW", 512, 512, 16512, TN, 0, 0},
    {"L lstm in fwd", 16512, 1024, 64, NT, 0, 0},
    {"L lstm in dW", 1024, 64, 16512, TN, 0, 0},
    {"L lstm step", 64, 1024, 256, NT, 1, 1},
    {"L lstm step", 256, 1024, 256, NT, 1, 1},
    {"L lstm step dX", 256, 256, 1024, NN, 1, 0},
    {"L lstm dW", 1024, 256, 16512, TN, 0, 0},
    {"square", 64, 64, 64, NN, 0, 0},
    {"square", 256, 256, 256, NN, 0, 0},
    {"square", 1024, 1024, 1024, NN, 0, 0},
    {"square", 2048, 2048, 2048, NN, 0, 0},
    {"deep", 64, 64, 1, NN, 0, 0},
    {"deep", 64, 64, 2, NN, 0, 0},
    {"deep", 64, 64, 4, NN, 0, 0},
    {"deep", 64, 64, 8, NN, 0, 0},
    {"deep", 64, 64, 16, NN, 0, 0},
    {"narrow", 256, 1, 64, NN, 0, 0},
    {"narrow", 256, 2, 64, NN, 0, 0},
    {"narrow", 256, 4, 64, NN, 0, 0},
    {"narrow", 256, 8, 64, NN, 0, 0},
    {"few", 1, 1024, 256, NT, 1, 1},
    {"few", 2, 1024, 256, NT, 1, 1},
    {"few", 4, 1024, 256, NT, 1, 1},
    {"few", 8, 1024, 256, NT, 1, 1},
    {"few", 16, 1024, 256, NT, 1, 1},
    {"few", 1, 512, 128, NT, 1, 1},
    {"few", 4, 512, 128, NT, 1, 1},
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the peak ------------------------------------------------------------------------------ */

#define PEAK_CHAINS 12
#define PEAK_TURNS  20000

#if defined(__x86_64__)
#include <immintrin.h>
/* clang-format off */
/* Twelve chains hide the latency of both ports; the asm keeps the compiler from simplifying. */
#define STEP(fma, s)                                                                               \
  s = fma(s, x, y);                                                                                \
  __asm__ volatile("" : "+x"(s));
#define PEAK(name, isa, vec, set1, fma, lanes)                                                     \
  __attribute__((target(isa))) static double name(void) {                                          \
    vec x = set1(0.999f), y = set1(1e-3f), a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x; \
    vec i = x, j = x, k = x, l = x;                                                                \
    for (int t = 0; t < PEAK_TURNS; t++) {                                                         \
      STEP(fma, a)                                                                                 \
      STEP(fma, b)                                                                                 \
      STEP(fma, c) STEP(fma, d) STEP(fma, e) STEP(fma, f) STEP(fma, g) STEP(fma, h) STEP(fma, i)   \
          STEP(fma, j) STEP(fma, k) STEP(fma, l)                                                   \
    }                                                                                              \
    a = a + b + c + d + e + f + g + h + i + j + k + l;                                             \
    volatile float keep = a[0];                                                                    \
    (void)keep;                                                                                    \
    return 2.0 * lanes * PEAK_CHAINS * PEAK_TURNS;                                                 \
  }
/* clang-format on */
PEAK(peak_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, 16)
PEAK(peak_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, 8)
#define madd128(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
PEAK(peak_base, "sse2", __m128, _mm_set1_ps, madd128, 4)
#endif

static void peak_task(void *arg, int64_t index, int worker) {
  (void)index;
  (void)worker;
  double *flops = arg;
#if defined(__x86_64__)
  const sn__gemm_isa isa = sn__gemm_get_isa();
  *flops = isa == SN__GEMM_ISA_AVX512 ? peak_avx512()
           : isa == SN__GEMM_ISA_AVX2 ? peak_avx2()
                                      : peak_base();
#else
  *flops = 0;
#endif
}

static double peak_once(sn__team *team) {
  static double flops; /* every task writes the same */
  const double start = now();
  sn__team_run(team, sn__team_threads(team), peak_task, &flops);
  return flops * sn__team_threads(team) / (now() - start) * 1e-9;
}

/* ---- one row ------------------------------------------------------------------------------- */

static int by_value(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return values[count / 2];
}

static void *numbers(size_t count) {
  float *x = sn__alloc_aligned(count * sizeof *x, 64);
  if (x == NULL) exit(1);
  for (size_t i = 0; i < count; i++)
    x[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
  return x;
}

#if SN_HAVE_ONEDNN
static void onednn_once(const sn__gemm_args *g) {
  dnnl_sgemm(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->m, g->n, g->k, 1.0f, g->a,
             g->trans_a ? g->m : g->k, g->b, g->trans_b ? g->k : g->n, g->accumulate ? 1.0f : 0.0f,
             g->c, g->n);
}
#endif

static void once(const sn__gemm_args *g, sn__team *team) {
  sn_status status = sn__gemm(g, team);
  if (status == SN_OK) return;
  fprintf(stderr, "bench_gemm: %s\n", sn_status_message(status));
  exit(1);
}

static void run_shape(const shape *s, sn__team *team, int runs) {
  sn__gemm_args g = {.m = s->m,
                     .n = s->n,
                     .k = s->k,
                     .trans_a = s->form == TN,
                     .trans_b = s->form == NT,
                     .accumulate = s->accumulate};
  float *a = numbers((size_t)(s->m * s->k)), *b = numbers((size_t)(s->n * s->k));
  float *c = numbers((size_t)(s->m * s->n));
  void *memory = sn__alloc(sn__gemm_packed_size(SN_F32, SN_F32, s->n, s->k));
  if (memory == NULL) exit(1);
  g.a = a;
  g.b = b;
  g.c = c;
  if (s->packed)
    g.packed_b = sn__gemm_pack_b(SN_F32, SN_F32, s->n, s->k, b, 0, g.trans_b, memory, team);
  void *rounded = sn__alloc(sn__gemm_packed_size(SN_F32, SN_BF16, s->n, s->k));
  if (rounded == NULL) exit(1);
  sn__gemm_args h = g;
  h.compute = SN_BF16;
  if (s->packed)
    h.packed_b = sn__gemm_pack_b(SN_F32, SN_BF16, s->n, s->k, b, 0, g.trans_b, rounded, team);
  const double work = 2.0 * (double)s->m * (double)s->n * (double)s->k;
  int inner = (int)(2e6 / work); /* so that one reading lasts longer than the clock's grain */
  if (inner < 1) inner = 1;
  static double ours[MOST_RUNS], half[MOST_RUNS], theirs[MOST_RUNS], peak[MOST_RUNS];
  int count = (int)(2e10 / (work * inner));
  if (count > runs) count = runs;
  if (count < 7) count = 7;
  for (int r = -2; r < count; r++) {
    once(&h, team); /* both find the operands in the cache */
    double begin = now();
    for (int i = 0; i < inner; i++)
      once(&h, team);
    double between = now();
    once(&g, team);
    double start = now();
    for (int i = 0; i < inner; i++)
      once(&g, team);
    double mid = now();
#if SN_HAVE_ONEDNN
    if (sn__team_threads(team) == 1)
      for (int i = 0; i < inner; i++)
        onednn_once(&g);
#endif
    double end = now();
    double top = r % 8 == 0 || count < 32 ? peak_once(team) : 0;
    if (r < 0) continue;
    half[r] = (between - begin) / inner;
    ours[r] = (mid - start) / inner;
    theirs[r] = (end - mid) / inner;
    peak[r] = top != 0 ? top : peak[r - 1];
  }
  const double mine = median(ours, count), bf16 = median(half, count),
               other = median(theirs, count);
  const double top = median(peak, count);
  printf("%-15s %5lld %5lld %5lld %s%s %9.2f %8.1f %5.0f%% %9.2f %8.1f %6.2f", s->name,
         (long long)s->m, (long long)s->n, (long long)s->k, form_names[s->form],
         s->packed ? "p" : " ", mine * 1e6, work / mine * 1e-9, 100 * work / mine * 1e-9 / top,
         bf16 * 1e6, work / bf16 * 1e-9, mine / bf16);
#if SN_HAVE_ONEDNN
  if (sn__team_threads(team) == 1) printf(" %8.1f %6.2f", work / other * 1e-9, other / mine);
#else
  (void)other;
#endif
  printf("\n");
  fflush(stdout);
  sn__free(a);
  sn__free(b);
  sn__free(c);
  sn__free(memory);
  sn__free(rounded);
}

int main(int argc, char **argv) {
  int threads = 1, runs = 301;
  const char *only = "";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--threads") == 0)
      threads = atoi(argv[i + 1]);
    else if (strcmp(argv[i], "--only") == 0)
      only = argv[i + 1];
    else if (strcmp(argv[i], "--runs") == 0)
      runs = atoi(argv[i + 1]);
    else if (strcmp(argv[i], "--isa") == 0) {
      for (int isa = 0; isa < 3; isa++)
        if (strcmp(argv[i + 1], sn__gemm_isa_name((sn__gemm_isa)isa)) == 0 &&
            !sn__gemm_set_isa((sn__gemm_isa)isa)) {
          fprintf(stderr, "bench_gemm: this machine lacks %s\n", argv[i + 1]);
          return 1;
        }
    } else if (strcmp(argv[i], "--bf16") == 0) {
      for (int unit = 0; unit < 3; unit++)
        if (strcmp(argv[i + 1], sn__gemm_bf16_name((sn__gemm_bf16)unit)) == 0 &&
            !sn__gemm_set_bf16((sn__gemm_bf16)unit)) {
          fprintf(stderr, "bench_gemm: this machine lacks %s\n", argv[i + 1]);
          return 1;
        }
    }
  }
  if (runs > MOST_RUNS) runs = MOST_RUNS;
  sn__team *team = NULL;
  sn_status status = sn__team_create(threads, &team);
  if (status != SN_OK) {
    fprintf(stderr, "bench_gemm: %s\n", sn_status_message(status));
    sn_status_free(status);
    return 1;
  }
#if SN_HAVE_ONEDNN
  /* oneDNN's build may use OpenMP, whose header this compiler need not have. */
  void *found = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  void (*set_threads)(int);
  memcpy(&set_threads, &found, sizeof set_threads);
  if (found != NULL) set_threads(1);
#endif
  static double peaks[64];
  for (int i = 0; i < 64; i++)
    peaks[i] = peak_once(team);
  printf("%s, %s, %d thread%s, peak %.1f GFLOP/s\n", sn__gemm_isa_name(sn__gemm_get_isa()),
         sn__gemm_bf16_name(sn__gemm_get_bf16()), threads, threads == 1 ? "" : "s",
         median(peaks, 64));
  printf("%-15s %5s %5s %5s %3s %9s %8s %6s %9s %8s %6s%s\n", "product", "m", "n", "k", "", "us",
         "GFLOP/s", "peak", "bf16 us", "GFLOP/s", "ratio",
         SN_HAVE_ONEDNN && threads == 1 ? "   oneDNN  ratio" : "");
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (strstr(shapes[i].name, only) != NULL) run_shape(&shapes[i], team, runs);
  sn__team_free(team);
  return 0;
}
