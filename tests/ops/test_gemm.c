/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products against a plain double-precision reference, and the promise on bits. */
#include <math.h>
#include <stdio.h>
#include "ops/gemm/gemm.h"
#include "tests/check_sn.h"

#define GUARD 12345.0f

static uint64_t random_state = 1;

static double random_value(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (double)(random_state >> 40) / (1 << 23) - 1.0;
}

/* A matrix with a gap after each row, filled with guards, and one product's worth of everything. */
typedef struct product {
  sn__gemm_args args;
  float *a, *b, *c, *before, *bias;
  size_t a_count, b_count, c_count;
} product;

static float *matrix(int64_t rows, int64_t cols, int64_t ld, size_t *out_count) {
  *out_count = (size_t)(rows * ld + 1);
  float *x = malloc(*out_count * sizeof *x);
  ck_assert_ptr_nonnull(x);
  for (size_t i = 0; i < *out_count; i++)
    x[i] = GUARD;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++)
      x[i * ld + j] = (float)random_value();
  return x;
}

static product make_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, int64_t gap) {
  product p = {.args = {.m = m, .n = n, .k = k, .trans_a = ta, .trans_b = tb}};
  p.args.lda = (ta ? m : k) + gap;
  p.args.ldb = (tb ? k : n) + gap;
  p.args.ldc = n + gap;
  size_t ignored;
  p.a = matrix(ta ? k : m, ta ? m : k, p.args.lda, &p.a_count);
  p.b = matrix(tb ? n : k, tb ? k : n, p.args.ldb, &p.b_count);
  p.c = matrix(m, n, p.args.ldc, &p.c_count);
  p.before = malloc(p.c_count * sizeof *p.before);
  ck_assert_ptr_nonnull(p.before);
  memcpy(p.before, p.c, p.c_count * sizeof *p.c);
  p.bias = matrix(1, n, n, &ignored);
  p.args.a = p.a;
  p.args.b = p.b;
  p.args.c = p.c;
  return p;
}

static void free_product(product *p) {
  free(p->a);
  free(p->b);
  free(p->c);
  free(p->before);
  free(p->bias);
}

/* Compares all of C, gaps too. The error of a sum of k rounded products in any order is at most
 * (k + 2) u times the sum of their sizes, to first order; bias and the old C add one term each. */
static void check_product(const product *p) {
  const sn__gemm_args *g = &p->args;
  const double unit = ldexp(1.0, -24);
  for (int64_t i = 0; i < g->m; i++) {
    for (int64_t j = 0; j < g->n; j++) {
      double sum = 0, size = 0;
      for (int64_t q = 0; q < g->k; q++) {
        double x = (double)p->a[g->trans_a ? q * g->lda + i : i * g->lda + q] *
                   (double)p->b[g->trans_b ? j * g->ldb + q : q * g->ldb + j];
        sum += x;
        size += fabs(x);
      }
      double more[2] = {g->accumulate ? (double)p->before[i * g->ldc + j] : 0,
                        g->bias != NULL ? (double)p->bias[j] : 0};
      sum += more[0] + more[1];
      size += fabs(more[0]) + fabs(more[1]);
      if (g->act == SN__GEMM_ACT_RELU && sum < 0) sum = 0;
      double got = (double)p->c[i * g->ldc + j];
      /* An assert writes down where it is; a million of them would be most of the time. */
      if (fabs(got - sum) <= (double)(g->k + 4) * unit * size) continue;
      ck_abort_msg("m %d n %d k %d ta %d tb %d isa %s at [%d, %d]: %.9g, not %.9g", (int)g->m,
                   (int)g->n, (int)g->k, g->trans_a, g->trans_b,
                   sn__gemm_isa_name(sn__gemm_get_isa()), (int)i, (int)j, got, sum);
    }
    for (int64_t j = g->n; j < g->ldc; j++)
      if (p->c[i * g->ldc + j] != GUARD) ck_abort_msg("row %d: a gap was written", (int)i);
  }
  ck_assert(p->c[p->c_count - 1] == GUARD);
}

static void one_case(int64_t m, int64_t n, int64_t k, unsigned bits, sn__team *team) {
  product p = make_product(m, n, k, bits & 1, bits & 2, bits & 4 ? 3 : 0);
  p.args.accumulate = bits & 8;
  p.args.bias = bits & 16 ? p.bias : NULL;
  p.args.act = bits & 32 ? SN__GEMM_ACT_RELU : SN__GEMM_ACT_NONE;
  void *memory = malloc(sn__gemm_packed_size(SN_F32, SN_F32, n, k));
  ck_assert_ptr_nonnull(memory);
  ck_sn_ok(sn__gemm(&p.args, team));
  check_product(&p);
  /* packed beforehand: the same bits */
  float *first = malloc(p.c_count * sizeof *first);
  ck_assert_ptr_nonnull(first);
  memcpy(first, p.c, p.c_count * sizeof *first);
  memcpy(p.c, p.before, p.c_count * sizeof *first);
  p.args.packed_b = sn__gemm_pack_b(SN_F32, SN_F32, n, k, p.b, p.args.ldb, bits & 2, memory, team);
  p.args.b = NULL;
  ck_sn_ok(sn__gemm(&p.args, team));
  ck_assert_mem_eq(p.c, first, p.c_count * sizeof *first);
  free(first);
  free(memory);
  free_product(&p);
}

static void walk_cases(void) {
  static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 14, 15, 16, 17, 31, 32, 33, 64, 65, 100};
  static const int64_t depths[] = {0, 1, 2, 7, 16, 33, 64, 255, 256, 257, 600};
  const int count = sizeof extents / sizeof *extents;
  unsigned turn = 0;
  for (int i = 0; i < count; i++) {
    for (int j = 0; j < count; j++) {
      const int64_t k = depths[turn % 11];
      one_case(extents[i], extents[j], k, turn * 7 % 64, NULL);
      turn++;
    }
  }
  for (unsigned bits = 0; bits < 64; bits++)
    one_case(37, 75, 300, bits, NULL);
}

START_TEST(matches_the_reference) {
  if (!sn__gemm_set_isa((sn__gemm_isa)_i)) return; /* this machine lacks it */
  walk_cases();
}
END_TEST

START_TEST(zero_extents) {
  for (int isa = 0; isa < 3; isa++) {
    if (!sn__gemm_set_isa((sn__gemm_isa)isa)) continue;
    for (unsigned bits = 0; bits < 64; bits++) {
      one_case(0, 5, 4, bits, NULL);
      one_case(5, 0, 4, bits, NULL);
      one_case(5, 6, 0, bits, NULL);
      one_case(0, 0, 0, bits, NULL);
    }
  }
}
END_TEST

/* A product's C after running it from its first state. */
static float *run_fresh(product *p, sn__team *team) {
  memcpy(p->c, p->before, p->c_count * sizeof *p->c);
  ck_sn_ok(sn__gemm(&p->args, team));
  float *copy = malloc(p->c_count * sizeof *copy);
  ck_assert_ptr_nonnull(copy);
  memcpy(copy, p->c, p->c_count * sizeof *copy);
  return copy;
}

#define MOST_ROWS 130

static void rows_case(int64_t n, int64_t k, bool ta, bool tb, bool accumulate, bool packed,
                      int64_t step) {
  product p = make_product(MOST_ROWS, n, k, ta, tb, 0);
  p.args.accumulate = accumulate;
  p.args.bias = p.bias;
  void *memory = malloc(sn__gemm_packed_size(SN_F32, SN_F32, n, k));
  ck_assert_ptr_nonnull(memory);
  if (packed) p.args.packed_b = sn__gemm_pack_b(SN_F32, SN_F32, n, k, p.b, 0, tb, memory, NULL);
  float *alone = malloc(p.c_count * sizeof *alone);
  ck_assert_ptr_nonnull(alone);
  memcpy(alone, p.before, p.c_count * sizeof *alone);
  sn__gemm_args g = p.args;
  g.m = 1;
  for (int64_t i = 0; i < MOST_ROWS; i++) {
    g.a = ta ? p.a + i : p.a + i * g.lda;
    g.c = alone + i * n;
    ck_sn_ok(sn__gemm(&g, NULL));
  }
  for (int64_t m = 1; m <= MOST_ROWS; m += step) {
    const int64_t first = (m * 37) % (MOST_ROWS - m + 1);
    memcpy(p.c, p.before, p.c_count * sizeof *p.c);
    g.m = m;
    g.a = ta ? p.a + first : p.a + first * g.lda;
    g.c = p.c + first * n;
    ck_sn_ok(sn__gemm(&g, NULL));
    ck_assert_msg(memcmp(p.c + first * n, alone + first * n, (size_t)(m * n) * sizeof *p.c) == 0,
                  "n %d k %d ta %d tb %d packed %d: a row depends on the other %d", (int)n, (int)k,
                  ta, tb, packed, (int)m - 1);
  }
  free(alone);
  free(memory);
  free_product(&p);
}

START_TEST(a_row_is_the_same_in_any_batch) {
  if (!sn__gemm_set_isa((sn__gemm_isa)_i)) return;
  static const int64_t sizes[][2] = {{128, 32}, {64, 8},    {10, 64},
                                     {40, 300}, {130, 257}, {300, 70}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (int form = 0; form < 4; form++)
      /* Steps without a common divisor with any tile's rows: every remainder still comes up. */
      rows_case(sizes[s][0], sizes[s][1], form & 1, form & 2, s % 2 == 1, s % 3 == 1,
                (s < 3 ? 1 : 5) * (SN_SANITIZED ? 5 : 1));
  }
}
END_TEST

START_TEST(threads_and_batches_change_nothing) {
  if (!sn__gemm_set_isa((sn__gemm_isa)_i)) return;
  static const int64_t sizes[][3] = {
      {300, 520, 260}, {1030, 64, 64}, {520, 32, 700}, {64, 700, 300}};
  sn__team *teams[2];
  for (int t = 0; t < 2; t++)
    ck_sn_ok(sn__team_create(t + 2, &teams[t]));
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (unsigned form = 0; form < 4; form++) {
      product p = make_product(sizes[s][0], sizes[s][1], sizes[s][2], form & 1, form & 2, 0);
      p.args.bias = p.bias;
      p.args.act = SN__GEMM_ACT_RELU;
      float *one = run_fresh(&p, NULL);
      if (form == s % 4) check_product(&p); /* the reference is slow, and was asked above */
      for (int t = 0; t < 2; t++) {
        float *more = run_fresh(&p, teams[t]);
        ck_assert_mem_eq(one, more, p.c_count * sizeof *one);
        free(more);
      }
      /* the lower half on its own falls into other tiles */
      const int64_t half = p.args.m / 2, n = p.args.n;
      memcpy(p.c, p.before, p.c_count * sizeof *p.c);
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

START_TEST(fused_instruction_sets_agree) {
  for (unsigned form = 0; form < 4; form++) {
    product p = make_product(45, 77, 600, form & 1, form & 2, 1);
    if (!sn__gemm_set_isa(SN__GEMM_ISA_AVX2)) return;
    float *narrow = run_fresh(&p, NULL);
    if (sn__gemm_set_isa(SN__GEMM_ISA_AVX512)) {
      float *wide = run_fresh(&p, NULL);
      ck_assert_mem_eq(narrow, wide, p.c_count * sizeof *wide);
      free(wide);
    }
    free(narrow);
    free_product(&p);
  }
}
END_TEST

typedef struct visits {
  const sn__gemm_args *args;
  int *seen; /* per element of C, all batches */
} visits;

static void visit(void *user, int64_t batch, int64_t row, int64_t col, int64_t cols, void *c) {
  visits *v = user;
  const sn__gemm_args *g = v->args;
  ck_assert_ptr_eq(c, (float *)g->c + batch * g->c_stride + row * g->ldc + col);
  for (int64_t j = col; j < col + cols; j++)
    v->seen[(batch * g->m + row) * g->n + j]++;
}

START_TEST(batches_and_epilogue) {
  enum { BATCH = 5 };
  for (int isa = 0; isa < 3; isa++) {
    if (!sn__gemm_set_isa((sn__gemm_isa)isa)) continue;
    for (int shared = 0; shared < 2; shared++) {
      const int64_t m = 33, n = 40, k = 20;
      const int64_t m_all = m * BATCH;
      product p = make_product(m_all, n, k, false, false, 0);
      float *b = matrix(BATCH * k, n, n, &(size_t){0});
      float *want = matrix(m_all, n, n, &(size_t){0});
      sn__gemm_args g = p.args;
      g.m = m;
      g.b = b;
      for (int64_t i = 0; i < BATCH; i++) {
        g.a = p.a + i * m * k;
        g.b = shared ? b : b + i * k * n;
        g.c = want + i * m * n;
        ck_sn_ok(sn__gemm(&g, NULL));
      }
      int *seen = calloc((size_t)(m_all * n), sizeof *seen);
      ck_assert_ptr_nonnull(seen);
      visits v = {&g, seen};
      g.a = p.a;
      g.b = b;
      g.c = p.c;
      g.batch = BATCH;
      g.a_stride = m * k;
      g.b_stride = shared ? 0 : k * n;
      g.c_stride = m * n;
      g.epilogue = visit;
      g.user = &v;
      ck_sn_ok(sn__gemm(&g, NULL));
      ck_assert_mem_eq(p.c, want, (size_t)(m_all * n) * sizeof *want);
      for (int64_t i = 0; i < m_all * n; i++)
        ck_assert_int_eq(seen[i], 1);
      free(seen);
      free(want);
      free(b);
      free_product(&p);
    }
  }
}
END_TEST

START_TEST(nan_stays_nan) {
  for (int isa = 0; isa < 3; isa++) {
    if (!sn__gemm_set_isa((sn__gemm_isa)isa)) continue;
    product p = make_product(9, 21, 5, false, true, 0);
    p.args.act = SN__GEMM_ACT_RELU;
    p.a[3 * 5 + 2] = NAN;
    ck_sn_ok(sn__gemm(&p.args, NULL));
    for (int64_t i = 0; i < 9; i++)
      for (int64_t j = 0; j < 21; j++)
        ck_assert(isnan(p.c[i * 21 + j]) == (i == 3));
    free_product(&p);
  }
}
END_TEST

START_TEST(doubles) {
  sn__team *team;
  ck_sn_ok(sn__team_create(2, &team));
  for (unsigned bits = 0; bits < 16; bits++) {
    const int64_t m = 70, n = 41, k = bits & 8 ? 0 : 300;
    double *a = malloc(sizeof *a * (size_t)(m * k + 1)),
           *b = malloc(sizeof *b * (size_t)(n * k + 1));
    double *c = malloc(sizeof *c * (size_t)(m * n)), *bias = malloc(sizeof *bias * (size_t)n);
    void *memory = malloc(sn__gemm_packed_size(SN_F64, SN_F64, n, k));
    ck_assert(a != NULL && b != NULL && c != NULL && bias != NULL && memory != NULL);
    for (int64_t i = 0; i < m * k; i++)
      a[i] = random_value();
    for (int64_t i = 0; i < n * k; i++)
      b[i] = random_value();
    for (int64_t i = 0; i < n; i++)
      bias[i] = random_value();
    for (int64_t i = 0; i < m * n; i++)
      c[i] = 0.5;
    sn__gemm_args g = {
        .dtype = SN_F64, .m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .bias = bias};
    g.trans_a = bits & 1;
    g.trans_b = bits & 2;
    g.accumulate = bits & 4;
    if (bits & 1) g.packed_b = sn__gemm_pack_b(SN_F64, SN_F64, n, k, b, 0, g.trans_b, memory, NULL);
    ck_sn_ok(sn__gemm(&g, team));
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) {
        double sum = bias[j] + (g.accumulate ? 0.5 : 0);
        for (int64_t q = 0; q < k; q++)
          sum += a[g.trans_a ? q * m + i : i * k + q] * b[g.trans_b ? j * k + q : q * n + j];
        /* each of k products is at most 1 in size, two sums of k roundings apart */
        ck_assert_double_eq_tol(c[i * n + j], sum, 2.0 * (double)(k * k + 4) * ldexp(1, -53));
      }
    }
    free(a);
    free(b);
    free(c);
    free(bias);
    free(memory);
  }
  sn__team_free(team);
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
  product p = make_product(300, 64, 40, false, true, 0);
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
  ck_sn_ok(sn__gemm(&p.args, NULL));
  check_product(&p);
  sn__gemm_release();
  free_product(&p);
}
END_TEST

static Suite *gemm_suite(void) {
  Suite *suite = suite_create("gemm");
  TCase *products = tcase_create("products");
  tcase_set_timeout(products, 120);
  tcase_add_loop_test(products, matches_the_reference, 0, 3);
  tcase_add_test(products, zero_extents);
  tcase_add_test(products, batches_and_epilogue);
  tcase_add_test(products, nan_stays_nan);
  tcase_add_test(products, doubles);
  tcase_add_test(products, out_of_memory_leaves_c_alone);
  suite_add_tcase(suite, products);
  TCase *bits = tcase_create("bits");
  tcase_set_timeout(bits, 120);
  tcase_add_loop_test(bits, a_row_is_the_same_in_any_batch, 0, 3);
  tcase_add_loop_test(bits, threads_and_batches_change_nothing, 0, 3);
  tcase_add_test(bits, fused_instruction_sets_agree);
  suite_add_tcase(suite, bits);
  return suite;
}

SN_TEST_MAIN(gemm_suite)
