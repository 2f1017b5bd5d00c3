/* SPDX-License-Identifier: Apache-2.0 */
/* One replaceable allocator behind everything that sennit allocates on the host.
 *
 * Replace it once, before anything else is called, or between two uses when nothing of sennit's is
 * alive. Tests make it fail at the k-th call for every k. */
#ifndef SN_CORE_ALLOCATOR_H
#define SN_CORE_ALLOCATOR_H

#include "core/api.h"

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

/* Frees a text that a function gave to the caller through a `char **out_text`. NULL is fine. */
SN_API void sn_text_free(char *text);

SN_END_DECLS

#endif
