/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation: one replaceable allocator behind everything that sennit allocates on the host.
 *
 * Replace it once, before anything else is called, or between two uses when nothing of sennit's is
 * alive. Tests make it fail at the k-th call for every k. */
#ifndef SN_CORE_ALLOC_H
#define SN_CORE_ALLOC_H

#include "core/status.h"

SN_BEGIN_DECLS

typedef struct sn_allocator {
  void *user;
  /* `alignment` is a power of two, at least sizeof(void *). NULL when out of memory. */
  void *(*alloc)(void *user, size_t size, size_t alignment);
  /* `size` is what was asked for. Never called with NULL. */
  void (*free)(void *user, void *pointer, size_t size);
} sn_allocator;

/* NULL restores the default (the C library's). Not thread-safe by nature. */
SN_API void sn_set_allocator(const sn_allocator *allocator);

SN_END_DECLS

/* ---- inside sennit ------------------------------------------------------------------------- */

/* Every block remembers its size, so these are plain to use; all return NULL when out of memory.
 * Declared here for sennit's own models and command, which hold the library's parts; the shared
 * library does not export them, and they are no part of the public promise. */
SN_BEGIN_DECLS
SN_API void *sn__alloc(size_t size);                  /* uninitialised, 16-byte aligned */
SN_API void *sn__calloc(size_t count, size_t size);   /* zeroed; checked product */
SN_API void *sn__realloc(void *pointer, size_t size); /* NULL pointer is an alloc */
SN_API void *sn__alloc_aligned(size_t size, size_t alignment);
SN_API void sn__free(void *pointer); /* NULL is fine; for all of the above */
SN_API char *sn__strdup(const char *text);
SN_API char *sn__strndup(const char *text, size_t length);
SN_API char *sn__format(const char *format, ...) SN_PRINTF(1, 2); /* NULL when out of memory */

/* False on overflow; `out` is then untouched. */
SN_API SN_MUST_USE bool sn__size_mul(size_t a, size_t b, size_t *out);
SN_API SN_MUST_USE bool sn__size_add(size_t a, size_t b, size_t *out);

/* Grows *items (elements of `size` bytes, *capacity of them) to hold at least `need`; the usual
 * doubling. False when out of memory; nothing changes then. */
SN_API SN_MUST_USE bool sn__grow(void **items, size_t *capacity, size_t need, size_t size);
SN_END_DECLS

/* A bump allocator: what it gives lives until the arena ends. */
typedef struct sn__arena {
  struct sn__arena_block *head;
} sn__arena;

SN_BEGIN_DECLS
SN_API void *sn__arena_alloc(sn__arena *arena, size_t size); /* zeroed, 16-byte aligned, or NULL */
SN_API char *sn__arena_strdup(sn__arena *arena, const char *text);
SN_API void sn__arena_free(sn__arena *arena);
SN_END_DECLS

#endif
