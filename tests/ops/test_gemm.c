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
      ck_assert_msg(fabs(got - sum) <= (double)(g->k + 4) * unit * size,
                    "m %d n %d k %d ta %d tb %d isa %s at [%d, %d]: %.9g, not %.9g", (int)g->m,
                    (int)g->n, (int)g->k, g->trans_a, g->trans_b,
                    sn__gemm_isa_name(sn__gemm_get_isa()), (int)i, (int)j, got, sum);
    }
    for (int64_t j = g->n; j < g->ldc; j++)
      ck_assert(p->c[i * g->ldc + j] == GUARD);
  }
  ck_assert(p->c[p->c_count - 1] == GUARD);
}

static void one_case(int64_t m, int64_t n, int64_t k, unsigned bits, sn__team *team) {
  product p = make_product(m, n, k, bits & 1, bits & 2, bits & 4 ? 3 : 0);
  p.args.accumulate = bits & 8;
  p.args.bias = bits & 16 ? p.bias : NULL;
  p.args.act = bits & 32 ? SN__GEMM_ACT_RELU : SN__GEMM_ACT_NONE;
  void *memory = malloc(sn__gemm_packed_size(SN_F32, n, k));
  ck_assert_ptr_nonnull(memory);
  ck_sn_ok(sn__gemm(&p.args, team));
  check_product(&p);
  /* packed beforehand: the same bits */
  float *first = malloc(p.c_count * sizeof *first);
  ck_assert_ptr_nonnull(first);
  memcpy(first, p.c, p.c_count * sizeof *first);
  memcpy(p.c, p.before, p.c_count * sizeof *first);
  p.args.packed_b = sn__gemm_pack_b(SN_F32, n, k, p.b, p.args.ldb, bits & 2, memory, team);
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

static Suite *gemm_suite(void) {
  Suite *suite = suite_create("gemm");
  TCase *products = tcase_create("products");
  tcase_set_timeout(products, 120);
  tcase_add_loop_test(products, matches_the_reference, 0, 3);
  tcase_add_test(products, zero_extents);
  suite_add_tcase(suite, products);
  return suite;
}

SN_TEST_MAIN(gemm_suite)
