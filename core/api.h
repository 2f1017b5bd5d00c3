/* SPDX-License-Identifier: Apache-2.0 */
/* What every public header needs: export marks, must-use, and the house rules.
 *
 * Ownership: `*_create` gives the caller ownership, accessors borrow, `*_free(NULL)` is fine;
 * outputs come last and are called `out_x`; an output is written only on success unless said.
 * Names: `sn_` public, `SN_` macros and enum values, `sn__` internal.
 * Threads: a graph belongs to one thread at a time, a plan to anyone, a session to one at a time.
 */
#ifndef SN_CORE_API_H
#define SN_CORE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SN_API          __attribute__((visibility("default")))
#define SN_MUST_USE     __attribute__((warn_unused_result))
#define SN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define SN_API
#define SN_MUST_USE
#define SN_PRINTF(f, a)
#endif

#ifdef __cplusplus
#define SN_BEGIN_DECLS extern "C" {
#define SN_END_DECLS   }
#else
#define SN_BEGIN_DECLS
#define SN_END_DECLS
#endif

#endif
