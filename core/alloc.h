/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, for what is built with sennit: the library's folders, its models and its command. Not
 * installed, and the shared library does not export it; allocator.h is what others see. */
#ifndef SN_CORE_ALLOC_H
#define SN_CORE_ALLOC_H

#include "core/allocator.h"
#include "core/status.h"

/* Every block remembers its size, so these are plain to use; all return NULL when out of memory. */
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
