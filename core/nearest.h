/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest known word to a misspelt one, for messages that end in "did you mean ...?". For
 * what is built with sennit: not installed, and the shared library does not export it. */
#ifndef SN_CORE_NEAREST_H
#define SN_CORE_NEAREST_H

#include "core/api.h"

SN_BEGIN_DECLS

/* Single edits (insert, delete, replace, swap neighbours; case is free) that turn `a` into `b`.
 * Words are compared by their first 64 bytes. */
SN_API size_t sn__edit_distance(const char *a, const char *b);

/* Whether two words are near enough to be taken for each other. */
SN_API bool sn__is_near(const char *a, const char *b);

/* The nearest of `known` (NULLs are skipped), the first of equals; NULL when none is near enough to
 * be worth naming. */
SN_API const char *sn__nearest(const char *word, const char *const *known, size_t count);

SN_END_DECLS

#endif
