/* SPDX-License-Identifier: Apache-2.0 */
#include "core/alloc.h"
#include "core/bytes.h"

#include "tests/check_sn.h"
#include "tests/fail_alloc.h"

static bool aligned(const void *pointer, size_t alignment) {
  return (uintptr_t)pointer % alignment == 0;
}

START_TEST(plain_blocks) {
  for (size_t size = 0; size < 200; size += 13) {
    char *p = sn__alloc(size);
    ck_assert_ptr_nonnull(p);
    ck_assert(aligned(p, 16));
    memset(p, 0xa5, size);
    sn__free(p);
  }
  sn__free(NULL);
}
END_TEST

START_TEST(aligned_blocks) {
  for (size_t alignment = 8; alignment <= 65536; alignment *= 2) {
    char *p = sn__alloc_aligned(100, alignment);
    ck_assert_ptr_nonnull(p);
    ck_assert(aligned(p, alignment));
    memset(p, 1, 100);
    p = sn__realloc(p, 300);
    ck_assert_ptr_nonnull(p);
    ck_assert_msg(aligned(p, alignment), "realloc keeps the alignment %zu", alignment);
    ck_assert_int_eq(p[99], 1);
    sn__free(p);
  }
}
END_TEST

START_TEST(calloc_and_realloc) {
  unsigned char *p = sn__calloc(10, 10);
  ck_assert_ptr_nonnull(p);
  for (int i = 0; i < 100; i++)
    ck_assert_int_eq(p[i], 0);
  for (int i = 0; i < 100; i++)
    p[i] = (unsigned char)i;
  p = sn__realloc(p, 1000);
  for (int i = 0; i < 100; i++)
    ck_assert_int_eq(p[i], i);
  p = sn__realloc(p, 10);
  for (int i = 0; i < 10; i++)
    ck_assert_int_eq(p[i], i);
  sn__free(p);
  p = sn__realloc(NULL, 5);
  ck_assert_ptr_nonnull(p);
  sn__free(p);
}
END_TEST

START_TEST(impossible_sizes) {
  ck_assert_ptr_null(sn__alloc(SIZE_MAX));
  ck_assert_ptr_null(sn__alloc(SIZE_MAX - 8));
  ck_assert_ptr_null(sn__alloc_aligned(SIZE_MAX - 64, 64));
  ck_assert_ptr_null(sn__calloc(SIZE_MAX / 2, 3));
  size_t out = 77;
  ck_assert(!sn__size_mul(SIZE_MAX, 2, &out));
  ck_assert(!sn__size_add(SIZE_MAX, 1, &out));
  ck_assert_uint_eq(out, 77);
  ck_assert(sn__size_mul(6, 7, &out));
  ck_assert_uint_eq(out, 42);
  ck_assert(sn__size_add(SIZE_MAX - 1, 1, &out));
  ck_assert_uint_eq(out, SIZE_MAX);
}
END_TEST

START_TEST(strings) {
  char *a = sn__strdup("visits");
  char *b = sn__strndup("visits/lstm", 6);
  char *c = sn__strndup("ab", 10);
  char *d = sn__format("%s:%d", a, 3);
  ck_assert_str_eq(a, "visits");
  ck_assert_str_eq(b, "visits");
  ck_assert_str_eq(c, "ab");
  ck_assert_str_eq(d, "visits:3");
  sn__free(a), sn__free(b), sn__free(c), sn__free(d);
}
END_TEST

START_TEST(grow_doubles_and_keeps) {
  int *items = NULL;
  size_t capacity = 0;
  int moves = 0;
  for (size_t n = 0; n < 1000; n++) {
    size_t before = capacity;
    ck_assert(sn__grow((void **)&items, &capacity, n + 1, sizeof *items));
    ck_assert_uint_ge(capacity, n + 1);
    moves += capacity != before;
    items[n] = (int)n;
  }
  for (int n = 0; n < 1000; n++)
    ck_assert_int_eq(items[n], n);
  ck_assert_int_le(moves, 8);
  void *before = items;
  ck_assert(!sn__grow((void **)&items, &capacity, SIZE_MAX / 2, sizeof *items));
  ck_assert_ptr_eq(items, before);
  sn__free(items);
}
END_TEST

START_TEST(arena_blocks) {
  sn__arena arena = {0};
  char *first = sn__arena_alloc(&arena, 1);
  memset(first, 7, 1);
  for (int i = 0; i < 5000; i++) {
    size_t size = (size_t)(i * 37 % 500);
    unsigned char *p = sn__arena_alloc(&arena, size);
    ck_assert_ptr_nonnull(p);
    ck_assert(aligned(p, 16));
    size_t zeros = 0;
    while (zeros < size && p[zeros] == 0)
      zeros++;
    ck_assert_uint_eq(zeros, size);
    memset(p, 0xff, size);
  }
  unsigned char *big = sn__arena_alloc(&arena, 1 << 20);
  ck_assert_ptr_nonnull(big);
  memset(big, 1, 1 << 20);
  ck_assert_str_eq(sn__arena_strdup(&arena, "name"), "name");
  ck_assert_int_eq(*first, 7);
  ck_assert_ptr_null(sn__arena_alloc(&arena, SIZE_MAX - 3));
  sn__arena_free(&arena);
  ck_assert_ptr_null(arena.head);
  sn__arena_free(&arena);
}
END_TEST

static sn_status many_allocations(void *arg) {
  (void)arg;
  sn__arena arena = {0};
  int *items = NULL;
  size_t capacity = 0;
  char *text = sn__format("%d", 12);
  bool ok = text != NULL && sn__grow((void **)&items, &capacity, 5, sizeof *items) &&
            sn__grow((void **)&items, &capacity, 500, sizeof *items) &&
            sn__arena_alloc(&arena, 10) != NULL && sn__arena_strdup(&arena, "x") != NULL &&
            sn__arena_alloc(&arena, 100000) != NULL && sn__arena_alloc(&arena, 16380) != NULL;
  sn__free(text);
  sn__free(items);
  sn__arena_free(&arena);
  return ok ? SN_OK : sn_status_out_of_memory();
}

START_TEST(every_call_fails_once) {
  ck_assert_int_eq(sn_fail_alloc_every_call(many_allocations, NULL), 6);
}
END_TEST

START_TEST(failed_realloc_keeps_the_block) {
  sn_fail_alloc_install(2);
  char *p = sn__strdup("abc");
  ck_assert_ptr_null(sn__realloc(p, 100));
  ck_assert_str_eq(p, "abc");
  ck_assert_int_eq(sn_fail_alloc_live(), 1);
  sn__free(p);
  ck_assert_int_eq(sn_fail_alloc_live(), 0);
  sn_fail_alloc_remove();
}
END_TEST

/* The allocator is told the same size when a block ends as when it began. */
START_TEST(free_is_given_the_size) {
  sn_fail_alloc_install(0);
  void *a = sn__alloc(100), *b = sn__alloc_aligned(33, 256);
  ck_assert_int_ge(atomic_load(&sn_fail_alloc_state.bytes), 133);
  sn__free(a), sn__free(b);
  ck_assert_int_eq(atomic_load(&sn_fail_alloc_state.bytes), 0);
  sn_fail_alloc_remove();
}
END_TEST

/* Sizes in the unit that fits; what is said to be enough is. */
START_TEST(sizes_in_words) {
  char out[SN__BYTES_SIZE];
  ck_assert_str_eq(sn__bytes(0, out), "0 B");
  ck_assert_str_eq(sn__bytes(1023, out), "1023 B");
  ck_assert_str_eq(sn__bytes(1536, out), "1.50 KiB");
  ck_assert_str_eq(sn__bytes((uint64_t)64 << 20, out), "64.00 MiB");
  ck_assert_str_eq(sn__bytes(UINT64_MAX, out), "16.00 EiB");
  ck_assert_str_eq(sn__bytes(1025, out), "1.00 KiB");
  ck_assert_str_eq(sn__bytes_enough(1025, out), "1.01 KiB");
  ck_assert_str_eq(sn__bytes_enough(1024, out), "1.00 KiB");
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("alloc");
  TCase *t = tcase_create("alloc");
  tcase_add_test(t, plain_blocks);
  tcase_add_test(t, aligned_blocks);
  tcase_add_test(t, calloc_and_realloc);
  tcase_add_test(t, impossible_sizes);
  tcase_add_test(t, strings);
  tcase_add_test(t, sizes_in_words);
  tcase_add_test(t, grow_doubles_and_keeps);
  tcase_add_test(t, arena_blocks);
  tcase_add_test(t, every_call_fails_once);
  tcase_add_test(t, failed_realloc_keeps_the_block);
  tcase_add_test(t, free_is_given_the_size);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
