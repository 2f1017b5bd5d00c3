/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator behind everything on the host, and the small helpers on top of it. */
#include "core/alloc.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sits right before the pointer that is handed out. */
typedef struct header {
  size_t size; /* what was asked for */
  size_t lead; /* from the start of the block to the pointer: the alignment, at least 16 */
} header;

#define LEAST_ALIGNMENT ((size_t)16)

_Static_assert(sizeof(header) <= 16, "the header fits before a 16-byte aligned pointer");

static void *default_alloc(void *user, size_t size, size_t alignment) {
  (void)user;
  void *block = NULL;
  return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static void default_free(void *user, void *pointer, size_t size) {
  (void)user;
  (void)size;
  free(pointer);
}

static const sn_allocator default_allocator = {NULL, default_alloc, default_free};
static sn_allocator current = {NULL, default_alloc, default_free};

void sn_set_allocator(const sn_allocator *allocator) {
  current = allocator != NULL ? *allocator : default_allocator;
}

static header *header_of(void *pointer) {
  return (header *)pointer - 1;
}

void *sn__alloc_aligned(size_t size, size_t alignment) {
  assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
  size_t lead = alignment > LEAST_ALIGNMENT ? alignment : LEAST_ALIGNMENT;
  if (size > (size_t)PTRDIFF_MAX - lead) return NULL;
  char *block = current.alloc(current.user, lead + size, lead);
  if (block == NULL) return NULL;
  void *pointer = block + lead;
  *header_of(pointer) = (header){.size = size, .lead = lead};
  return pointer;
}

void *sn__alloc(size_t size) {
  return sn__alloc_aligned(size, LEAST_ALIGNMENT);
}

void *sn__calloc(size_t count, size_t size) {
  size_t bytes;
  if (!sn__size_mul(count, size, &bytes)) return NULL;
  void *pointer = sn__alloc(bytes);
  if (pointer != NULL) memset(pointer, 0, bytes);
  return pointer;
}

void *sn__realloc(void *pointer, size_t size) {
  if (pointer == NULL) return sn__alloc(size);
  const header *old = header_of(pointer);
  void *moved = sn__alloc_aligned(size, old->lead);
  if (moved == NULL) return NULL;
  memcpy(moved, pointer, old->size < size ? old->size : size);
  sn__free(pointer);
  return moved;
}

void sn__free(void *pointer) {
  if (pointer == NULL) return;
  header h = *header_of(pointer);
  current.free(current.user, (char *)pointer - h.lead, h.lead + h.size);
}

void sn_text_free(char *text) {
  sn__free(text);
}

char *sn__strndup(const char *text, size_t length) {
  size_t bytes;
  length = strnlen(text, length);
  if (!sn__size_add(length, 1, &bytes)) return NULL;
  char *copy = sn__alloc(bytes);
  if (copy == NULL) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

char *sn__strdup(const char *text) {
  return sn__strndup(text, strlen(text));
}

char *sn__format(const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0) return NULL;
  char *text = sn__alloc((size_t)length + 1);
  if (text == NULL) return NULL;
  va_start(args, format);
  vsnprintf(text, (size_t)length + 1, format, args);
  va_end(args);
  return text;
}

bool sn__size_mul(size_t a, size_t b, size_t *out) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

bool sn__size_add(size_t a, size_t b, size_t *out) {
  size_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}

bool sn__grow(void **items, size_t *capacity, size_t need, size_t size) {
  if (need <= *capacity) return true;
  size_t room = 8;
  if (*capacity > room / 2 && !sn__size_mul(*capacity, 2, &room)) room = need;
  if (room < need) room = need;
  size_t bytes;
  if (!sn__size_mul(room, size, &bytes)) return false;
  void *moved = sn__realloc(*items, bytes);
  if (moved == NULL) return false;
  *items = moved;
  *capacity = room;
  return true;
}

/* ---- arena --------------------------------------------------------------------------------- */

struct sn__arena_block {
  struct sn__arena_block *next;
  size_t used, capacity;
  alignas(16) char bytes[];
};

#define ARENA_BLOCK_BYTES ((size_t)16384)

void *sn__arena_alloc(sn__arena *arena, size_t size) {
  if (size > (size_t)PTRDIFF_MAX / 2) return NULL;
  size = (size + 15) & ~(size_t)15;
  struct sn__arena_block *head = arena->head;
  if (head == NULL || head->capacity - head->used < size) {
    size_t capacity = size > ARENA_BLOCK_BYTES ? size : ARENA_BLOCK_BYTES;
    struct sn__arena_block *block = sn__calloc(1, sizeof *block + capacity);
    if (block == NULL) return NULL;
    block->capacity = capacity;
    if (head != NULL && size > ARENA_BLOCK_BYTES) {
      /* A block of its own goes behind the head, whose room is still of use. */
      block->next = head->next;
      head->next = block;
    } else {
      block->next = head;
      arena->head = block;
    }
    head = block;
  }
  void *pointer = head->bytes + head->used;
  head->used += size;
  return pointer;
}

char *sn__arena_strdup(sn__arena *arena, const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = sn__arena_alloc(arena, bytes);
  if (copy != NULL) memcpy(copy, text, bytes);
  return copy;
}

void sn__arena_free(sn__arena *arena) {
  struct sn__arena_block *block = arena->head;
  while (block != NULL) {
    struct sn__arena_block *next = block->next;
    sn__free(block);
    block = next;
  }
  arena->head = NULL;
}
