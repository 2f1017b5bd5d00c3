/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 products against a reference that rounds the operands and adds up in f64, and the promise on
 * bits. */
#include <math.h>
#include <stdio.h>
#include "ops/gemm/gemm.h"
#include "tests/check_sn.h"

#define GUARD 12345.0f
enum { UNITS = 3 };

static uint64_t random_state = 1;

static float random_value(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(random_state >> 40) / (1 << 23) - 1.0);
}

static float from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t to_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Of ordinary numbers, by arithmetic: the distance of neighbours is 2^-7 of the power of two below.
 */
static double operand(bool rounds, float x) {
  if (x == 0 || !rounds) return (double)x;
  const double step = ldexp(1, ilogb((double)x) - 7);
  return rint((double)x / step) * step; /* ties to even, as rint() does by default */
}

typedef struct product {
  sn__gemm_args args;
  float *a, *b, *c, *before, *bias;
  size_t c_count;
} product;

static float *matrix(int64_t rows, int64_t cols, int64_t ld) {
  const size_t count = (size_t)(rows * ld + 1);
  float *x = malloc(count * sizeof *x);
  ck_assert_ptr_nonnull(x);
  for (size_t i = 0; i < count; i++)
    x[i] = GUARD;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++)
      x[i * ld + j] = random_value();
  return x;
}

/* bits: 1, 2 transposes; 4 gaps behind rows; 8 accumulate; 16 bias; 32 relu. */
static product make_product(int64_t m, int64_t n, int64_t k, unsigned bits) {
  const int64_t gap = bits & 4 ? 3 : 0;
  const bool ta = bits & 1, tb = bits & 2;
  product p = {.args = {.compute = SN_BF16, .m = m, .n = n, .k = k, .trans_a = ta, .trans_b = tb}};
  p.args.lda = (ta ? m : k) + gap;
  p.args.ldb = (tb ? k : n) + gap;
  p.args.ldc = n + gap;
  p.args.a = p.a = matrix(ta ? k : m, ta ? m : k, p.args.lda);
  p.args.b = p.b = matrix(tb ? n : k, tb ? k : n, p.args.ldb);
  p.args.c = p.c = matrix(m, n, p.args.ldc);
  p.c_count = (size_t)(m * p.args.ldc + 1);
  p.before = malloc(p.c_count * sizeof *p.before);
  ck_assert_ptr_nonnull(p.before);
  memcpy(p.before, p.c, p.c_count * sizeof *p.c);
  p.bias = matrix(1, n, n);
  p.args.accumulate = bits & 8;
  p.args.bias = bits & 16 ? p.bias : NULL;
  p.args.act = bits & 32 ? SN__GEMM_ACT_RELU : SN__GEMM_ACT_NONE;
  return p;
}

static void free_product(product *p) {
  free(p->a);
  free(p->b);
  free(p->c);
  free(p->before);
  free(p->bias);
}

/* Products of rounded operands are exact in f32, so what is left is the rounding of k additions in
 * any order, at most (k + 2) u times the sum of sizes to first order; the cuts, the bias and the
 * old C add a few more. (Rounding itself is off by up to 2^-7: a hundred thousand times as much, so
 * that a kernel which rounds otherwise is seen.) */
static void check_product(const product *p) {
  const sn__gemm_args *g = &p->args;
  const double unit = ldexp(1, -24);
  const bool rounds = sn__gemm_rounds(g->n, g->k);
  double *a = malloc((size_t)(g->m * g->k + 1) * sizeof *a);
  double *b = malloc((size_t)(g->n * g->k + 1) * sizeof *b);
  ck_assert(a != NULL && b != NULL);
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t q = 0; q < g->k; q++)
      a[i * g->k + q] = operand(rounds, p->a[g->trans_a ? q * g->lda + i : i * g->lda + q]);
  for (int64_t j = 0; j < g->n; j++)
    for (int64_t q = 0; q < g->k; q++)
      b[j * g->k + q] = operand(rounds, p->b[g->trans_b ? j * g->ldb + q : q * g->ldb + j]);
  for (int64_t i = 0; i < g->m; i++) {
    for (int64_t j = 0; j < g->n; j++) {
      double sum = 0, size = 0;
      for (int64_t q = 0; q < g->k; q++) {
        const double x = a[i * g->k + q] * b[j * g->k + q];
        sum += x;
        size += fabs(x);
      }
      const double old = g->accumulate ? (double)p->before[i * g->ldc + j] : 0;
      const double bias = g->bias != NULL ? (double)p->bias[j] : 0;
      sum += old + bias;
      size += fabs(old) + fabs(bias);
      if (g->act == SN__GEMM_ACT_RELU && sum < 0) sum = 0;
      const double got = (double)p->c[i * g->ldc + j];
      if (fabs(got - sum) <= (double)(g->k + 6) * unit * size) continue;
      ck_abort_msg("m %d n %d k %d ta %d tb %d %s at [%d, %d]: %.9g, not %.9g", (int)g->m,
                   (int)g->n, (int)g->k, g->trans_a, g->trans_b,
                   sn__gemm_bf16_name(sn__gemm_get_bf16()), (int)i, (int)j, got, sum);
    }
    for (int64_t j = g->n; j < g->ldc; j++)
      if (p->c[i * g->ldc + j] != GUARD) ck_abort_msg("row %d: a gap was written", (int)i);
  }
  ck_assert(p->c[p->c_count - 1] == GUARD);
  free(a);
  free(b);
}

static float *run_fresh(product *p, sn__team *team) {
  memcpy(p->c, p->before, p->c_count * sizeof *p->c);
  ck_sn_ok(sn__gemm(&p->args, team));
  float *copy = malloc(p->c_count * sizeof *copy);
  ck_assert_ptr_nonnull(copy);
  memcpy(copy, p->c, p->c_count * sizeof *copy);
  return copy;
}

static void one_case(int64_t m, int64_t n, int64_t k, unsigned bits) {
  product p = make_product(m, n, k, bits);
  ck_sn_ok(sn__gemm(&p.args, NULL));
  check_product(&p);
  /* packed beforehand: the same bits */
  float *first = run_fresh(&p, NULL);
  void *memory = malloc(sn__gemm_packed_size(SN_F32, SN_BF16, n, k));
  ck_assert_ptr_nonnull(memory);
  p.args.packed_b = sn__gemm_pack_b(SN_F32, SN_BF16, n, k, p.b, p.args.ldb, bits & 2, memory, NULL);
  p.args.b = NULL;
  float *packed = run_fresh(&p, NULL);
  ck_assert_mem_eq(packed, first, p.c_count * sizeof *first);
  free(packed);
  free(first);
  free(memory);
  free_product(&p);
}

START_TEST(matches_the_reference) {
  if (!sn__gemm_set_bf16((sn__gemm_bf16)_i)) return; /* this machine lacks it */
  static const int64_t extents[] = {0, 1, 2, 15, 16, 17, 31, 33, 64, 80, 1025};
  const int count = sizeof extents / sizeof *extents;
  unsigned turn = 0;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++)
      for (int l = 0; l < count; l++) {
        const int64_t m = extents[i], n = extents[j], k = extents[l];
        if (m * n * k > (SN_SANITIZED ? 40000 : 300000)) continue;
        one_case(m, n, k, turn++ * 7 % 64);
      }
  for (unsigned bits = 0; bits < 64; bits++)
    one_case(37, 75, 1025, bits);
}
END_TEST

START_TEST(rounds_to_nearest_even) {
  if (!sn__gemm_set_bf16((sn__gemm_bf16)_i)) return;
  static const uint32_t table[][2] = {
      {0x3f800000, 0x3f800000}, {0x3f808000, 0x3f800000}, /* a tie, to even */
      {0x3f808001, 0x3f810000}, {0x3f818000, 0x3f820000}, /* a tie, to even */
      {0x3f817fff, 0x3f810000}, {0xbf808000, 0xbf800000}, {0xbf808001, 0xbf810000},
      {0x3fffffff, 0x40000000}, {0x7f7f7fff, 0x7f7f0000}, {0x7f7f8000, 0x7f800000}, /* too large */
      {0xff7fffff, 0xff800000}, {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000},
      {0x00800000, 0x00800000}, {0x007fffff, 0x00000000}, {0x00000001, 0x00000000},
  };
  /* in either place, in either form; beside it zeros, and k small and large */
  for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
    for (unsigned form = 0; form < 8; form++) {
      for (int64_t k = 64; k <= 65; k++) {
        float x[65] = {0}, y[65] = {0}, c = 7;
        x[k - 1] = from_bits(table[t][0]);
        y[k - 1] = 1;
        const sn__gemm_args g = {.compute = SN_BF16,
                                 .m = 1,
                                 .n = 1,
                                 .k = k,
                                 .a = form & 4 ? y : x,
                                 .b = form & 4 ? x : y,
                                 .c = &c,
                                 .trans_a = form & 1,
                                 .trans_b = form & 2};
        const uint32_t want = table[t][1];
        ck_sn_ok(sn__gemm(&g, NULL));
        /* inf meets the zeros of its own place alone, which do not exist: no NaN comes of it */
        ck_assert_msg(to_bits(c) == want || (c == 0 && from_bits(want) == 0),
                      "%s form %u k %d: %08x became %08x, not %08x",
                      sn__gemm_bf16_name((sn__gemm_bf16)_i), form, (int)k, table[t][0], to_bits(c),
                      want);
      }
    }
  }
}
END_TEST

START_TEST(nan_and_infinity_stay) {
  if (!sn__gemm_set_bf16((sn__gemm_bf16)_i)) return;
  static const uint32_t nans[] = {0x7fc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff};
  for (size_t t = 0; t < sizeof nans / sizeof *nans; t++) {
    for (unsigned bits = 0; bits < 4; bits++) {
      product p = make_product(35, 21, 45, bits | 32);
      p.a[p.args.trans_a ? 2 * p.args.lda + 17 : 17 * p.args.lda + 2] = from_bits(nans[t]);
      ck_sn_ok(sn__gemm(&p.args, NULL));
      for (int64_t i = 0; i < 35; i++)
        for (int64_t j = 0; j < 21; j++)
          ck_assert(isnan(p.c[i * 21 + j]) == (i == 17));
      free_product(&p);
    }
  }
  product p = make_product(20, 20, 40, 0);
  p.b[3 * 20 + 4] = INFINITY;
  ck_sn_ok(sn__gemm(&p.args, NULL));
  for (int64_t i = 0; i < 20; i++)
    for (int64_t j = 0; j < 20; j++)
      ck_assert((isinf(p.c[i * 20 + j]) != 0) == (j == 4));
  free_product(&p);
}
END_TEST

#define MOST_ROWS 130

START_TEST(a_row_is_the_same_in_any_batch) {
  if (!sn__gemm_set_bf16((sn__gemm_bf16)_i)) return;
  static const int64_t sizes[][2] = {{128, 32}, {64, 8},     {10, 64},
                                     {40, 300}, {130, 1025}, {300, 70}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (unsigned form = 0; form < 4; form++) {
      const int64_t n = sizes[s][0];
      product p = make_product(MOST_ROWS, n, sizes[s][1], form | 16 | (s % 2 == 1 ? 8 : 0));
      float *alone = malloc(p.c_count * sizeof *alone);
      ck_assert_ptr_nonnull(alone);
      memcpy(alone, p.before, p.c_count * sizeof *alone);
      sn__gemm_args g = p.args;
      g.m = 1;
      for (int64_t i = 0; i < MOST_ROWS; i++) {
        g.a = form & 1 ? p.a + i : p.a + i * g.lda;
        g.c = alone + i * n;
        ck_sn_ok(sn__gemm(&g, NULL));
      }
      for (int64_t m = 1; m <= MOST_ROWS; m += SN_SANITIZED ? 31 : 7) {
        const int64_t first = m * 37 % (MOST_ROWS - m + 1);
        memcpy(p.c, p.before, p.c_count * sizeof *p.c);
        g.m = m;
        g.a = form & 1 ? p.a + first : p.a + first * g.lda;
        g.c = p.c + first * n;
        ck_sn_ok(sn__gemm(&g, NULL));
        ck_assert_msg(memcmp(p.c + first * n, alone + first * n, (size_t)(m * n) * sizeof *p.c) ==
                          0,
                      "n %d form %u: a row depends on the other %d", (int)n, form, (int)m - 1);
      }
      free(alone);
      free_product(&p);
    }
  }
}
END_TEST

/* A column alone, and among others. */
START_TEST(a_column_is_the_same_in_any_width) {
  if (!sn__gemm_set_bf16((sn__gemm_bf16)_i)) return;
  for (unsigned form = 0; form < 4; form++) {
    product p = make_product(33, 77, 600, form);
    float *all = run_fresh(&p, NULL);
    sn__gemm_args g = p.args;
    for (int64_t j = 0; j < 77; j++) {
      g.n = j % 3 == 0 ? 1 : j % 3 == 1 ? (77 - j < 20 ? 77 - j : 20) : 77 - j;
      g.b = form & 2 ? p.b + j * g.ldb : p.b + j;
      float *some = matrix(33, g.n, g.n);
      g.c = some;
      g.ldc = g.n;
      ck_sn_ok(sn__gemm(&g, NULL));
      for (int64_t i = 0; i < 33; i++)
        ck_assert_mem_eq(some + i * g.n, all + i * 77 + j, (size_t)g.n * sizeof *some);
      free(some);
    }
    free(all);
    free_product(&p);
  }
}
END_TEST

START_TEST(threads_and_halves_change_nothing) {
  if (!sn__gemm_set_bf16((sn__gemm_bf16)_i)) return;
  static const int64_t sizes[][3] = {
      {300, 520, 260}, {1030, 64, 64}, {520, 32, 700}, {64, 700, 1030}};
  sn__team *teams[2];
  for (int t = 0; t < 2; t++)
    ck_sn_ok(sn__team_create(t + 2, &teams[t]));
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (unsigned form = 0; form < 4; form++) {
      product p = make_product(sizes[s][0], sizes[s][1], sizes[s][2], form | 16 | 32);
      float *one = run_fresh(&p, NULL);
      for (int t = 0; t < 2; t++) {
        float *more = run_fresh(&p, teams[t]);
        ck_assert_mem_eq(one, more, p.c_count * sizeof *one);
        free(more);
      }
      const int64_t half = p.args.m / 2, n = p.args.n;
      p.args.m -= half;
      p.args.a = form & 1 ? p.a + half : p.a + half * p.args.lda;
      p.args.c = p.c + half * n;
      ck_sn_ok(sn__gemm(&p.args, teams[0]));
      ck_assert_mem_eq(one + half * n, p.c + half * n, (size_t)(p.args.m * n) * sizeof *one);
      free(one);
      free_product(&p);
    }
  }
  for (int t = 0; t < 2; t++)
    sn__team_free(teams[t]);
}
END_TEST

static void count_visit(void *user, int64_t batch, int64_t row, int64_t col, int64_t cols,
                        void *c) {
  (void)c;
  int *seen = user;
  for (int64_t j = col; j < col + cols; j++)
    seen[(batch * 33 + row) * 40 + j]++;
}

START_TEST(batches_and_epilogue) {
  if (!sn__gemm_set_bf16((sn__gemm_bf16)_i)) return;
  enum { BATCH = 5, M = 33, N = 40, K = 45 };
  for (int shared = 0; shared < 2; shared++) {
    float *a = matrix(BATCH * M, K, K), *b = matrix(BATCH * K, N, N);
    float *c = matrix(BATCH * M, N, N), *want = matrix(BATCH * M, N, N);
    int seen[BATCH * M * N] = {0};
    sn__gemm_args g = {.compute = SN_BF16, .m = M, .n = N, .k = K};
    for (int64_t i = 0; i < BATCH; i++) {
      g.a = a + i * M * K;
      g.b = shared ? b : b + i * K * N;
      g.c = want + i * M * N;
      ck_sn_ok(sn__gemm(&g, NULL));
    }
    g.a = a;
    g.b = b;
    g.c = c;
    g.batch = BATCH;
    g.a_stride = M * K;
    g.b_stride = shared ? 0 : K * N;
    g.c_stride = M * N;
    g.epilogue = count_visit;
    g.user = seen;
    ck_sn_ok(sn__gemm(&g, NULL));
    ck_assert_mem_eq(c, want, (size_t)(BATCH * M * N) * sizeof *want);
    for (int i = 0; i < BATCH * M * N; i++)
      ck_assert_int_eq(seen[i], 1);
    free(a);
    free(b);
    free(c);
    free(want);
  }
}
END_TEST

static void *no_memory(void *user, size_t size, size_t alignment) {
  (void)user;
  (void)size;
  (void)alignment;
  return NULL;
}
static void frees_nothing(void *user, void *pointer, size_t size) {
  (void)user;
  (void)size;
  ck_assert_ptr_null(pointer);
}

START_TEST(out_of_memory_leaves_c_alone) {
  sn__gemm_release();
  product p = make_product(300, 64, 40, 2);
  const sn_allocator none = {.alloc = no_memory, .free = frees_nothing};
  sn_set_allocator(&none);
  sn_status status = sn__gemm(&p.args, NULL);
  sn_set_allocator(NULL);
  ck_assert_int_eq(sn_status_code(status), SN_CODE_OUT_OF_MEMORY);
  sn_status_free(status);
  ck_assert_mem_eq(p.c, p.before, p.c_count * sizeof *p.c);
  ck_sn_ok(sn__gemm(&p.args, NULL));
  check_product(&p);
  sn__gemm_release();
  free_product(&p);
}
END_TEST

static Suite *gemm_bf16_suite(void) {
  Suite *suite = suite_create("gemm_bf16");
  TCase *products = tcase_create("products");
  tcase_set_timeout(products, 120);
  tcase_add_loop_test(products, matches_the_reference, 0, UNITS);
  tcase_add_loop_test(products, rounds_to_nearest_even, 0, UNITS);
  tcase_add_loop_test(products, nan_and_infinity_stay, 0, UNITS);
  tcase_add_loop_test(products, batches_and_epilogue, 0, UNITS);
  tcase_add_test(products, out_of_memory_leaves_c_alone);
  suite_add_tcase(suite, products);
  TCase *bits = tcase_create("bits");
  tcase_set_timeout(bits, 120);
  tcase_add_loop_test(bits, a_row_is_the_same_in_any_batch, 0, UNITS);
  tcase_add_loop_test(bits, a_column_is_the_same_in_any_width, 0, UNITS);
  tcase_add_loop_test(bits, threads_and_halves_change_nothing, 0, UNITS);
  suite_add_tcase(suite, bits);
  return suite;
}

SN_TEST_MAIN(gemm_bf16_suite)
