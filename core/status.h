/* SPDX-License-Identifier: Apache-2.0 */
/* Status: how sennit says that something went wrong.
 *
 * `sn_status` is a pointer-sized, must-use value; SN_OK (NULL) means success. Anything else is
 * owned by whoever holds it: return it, annotate it with sn_status_context(), or end it with
 * sn_status_free(). A message is one line: what is wrong, where, and what to do. Mistakes of a user
 * and failing hardware or files come back as a status; broken invariants of sennit itself assert.
 * Running out of memory is one static status, so reporting it needs no memory. */
#ifndef SN_CORE_STATUS_H
#define SN_CORE_STATUS_H

#include "core/api.h"

SN_BEGIN_DECLS

/* X(name, exit code of the command, words) */
#define SN_STATUS_CODES(X)                                                                         \
  X(INVALID, 2, "invalid argument")     /* the caller asked for something that makes no sense */   \
  X(CONFIG, 2, "configuration mistake") /* a model file, option or device list is wrong */         \
  X(OUT_OF_MEMORY, 1, "out of memory")                                                             \
  X(NOT_FOUND, 1, "not found")                                                                     \
  X(DATA, 1, "unusable data")        /* the data itself is wrong: labels, NaN, offsets, shapes */  \
  X(CORRUPT, 1, "damaged file")      /* a checksum, magic or structure does not hold */            \
  X(UNSUPPORTED, 1, "not supported") /* right in itself, but not here: op, dtype, filter */        \
  X(IO, 1, "input/output error")     /* the system refused: path and errno are in the message */   \
  X(DEVICE, 1, "device error")                                                                     \
  X(NUMERIC, 1, "not finite") /* NaN or inf where a finite number is needed */                     \
  X(INTERRUPTED, 1, "interrupted")                                                                 \
  X(INTERNAL, 1, "internal error") /* a verifier or checker refused what sennit itself made */

typedef enum sn_code {
  SN_CODE_OK = 0,
#define SN_X(name, exit_code, words) SN_CODE_##name,
  SN_STATUS_CODES(SN_X)
#undef SN_X
      SN_CODE_COUNT
} sn_code;

typedef struct sn_status_s *sn_status;

#define SN_OK ((sn_status)NULL)

/* Makes a status; `format` is printf's. Never returns SN_OK: when memory is short the static
 * out-of-memory status takes its place. */
SN_API SN_MUST_USE sn_status sn_status_make(sn_code code, const char *format, ...) SN_PRINTF(2, 3);

/* The one static out-of-memory status. */
SN_API SN_MUST_USE sn_status sn_status_out_of_memory(void);

/* Puts "<context>: " before the message while unwinding; takes and gives ownership; passes SN_OK.
 */
SN_API SN_MUST_USE sn_status sn_status_context(sn_status status, const char *format, ...)
    SN_PRINTF(2, 3);

/* Keeps `first` unless it is SN_OK; the other one is freed. For cleanup that may fail too. */
SN_API SN_MUST_USE sn_status sn_status_join(sn_status first, sn_status second);

SN_API sn_code sn_status_code(sn_status status); /* SN_CODE_OK for SN_OK */
/* Borrowed; valid until the status is freed; "ok" for SN_OK. One line, no newline at its end. */
SN_API const char *sn_status_message(sn_status status);
SN_API const char *sn_code_words(sn_code code);
/* What the command exits with for this code: 0, 1 or 2. */
SN_API int sn_code_exit(sn_code code);
/* A second owner of the same report (a deep copy; the static one copies to itself). */
SN_API SN_MUST_USE sn_status sn_status_copy(sn_status status);
SN_API void sn_status_free(sn_status status);

/* Returns from the calling function when `expr` fails. */
#define SN_TRY(expr)                                                                               \
  do {                                                                                             \
    sn_status sn_try_ = (expr);                                                                    \
    if (sn_try_ != SN_OK) return sn_try_;                                                          \
  } while (0)

/* For functions that clean up: `status` must be an sn_status in scope, `label` the clean-up. */
#define SN_TRY_GOTO(status, expr, label)                                                           \
  do {                                                                                             \
    (status) = (expr);                                                                             \
    if ((status) != SN_OK) goto label;                                                             \
  } while (0)

SN_END_DECLS

#endif
