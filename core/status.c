/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses: one heap block each (code, length, text), so that a copy or a context is one
 * allocation, and a static one for the case where that allocation fails. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

struct sn_status_s {
  sn_code code;
  size_t length;
  char text[];
};

/* The static status: the same shape with its text in place. */
static struct {
  sn_code code;
  size_t length;
  char text[16];
} out_of_memory = {SN_CODE_OUT_OF_MEMORY, 13, "out of memory"};

_Static_assert(offsetof(struct sn_status_s, text) == 2 * sizeof(size_t),
               "out_of_memory must have the layout of struct sn_status_s");

static const struct {
  const char *words;
  int exit_code;
} codes[SN_CODE_COUNT] = {[SN_CODE_OK] = {"ok", 0},
#define SN_X(name, exit_code, words) [SN_CODE_##name] = {words, exit_code},
                          SN_STATUS_CODES(SN_X)
#undef SN_X
};

sn_status sn_status_out_of_memory(void) {
  return (sn_status)(void *)&out_of_memory;
}

static bool is_static(sn_status status) {
  return status == sn_status_out_of_memory();
}

/* User text ends up in messages (names from files, paths), and a message is a line of a terminal
 * or a log: line breaks become spaces, other controls (C1 ones in UTF-8 too) become '?'. */
static void make_one_line(char *text, size_t *length) {
  size_t out = 0;
  for (size_t i = 0; i < *length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '\n' || c == '\r' || c == '\t') {
      text[out++] = ' ';
    } else if (c < 0x20 || c == 0x7f) {
      text[out++] = '?';
    } else if (c == 0xc2 && i + 1 < *length && ((unsigned char)text[i + 1] & 0xe0) == 0x80) {
      text[out++] = '?';
      i++;
    } else {
      text[out++] = text[i];
    }
  }
  while (out > 0 && text[out - 1] == ' ')
    out--;
  text[out] = '\0';
  *length = out;
}

/* "<formatted><separator><tail>"; NULL when out of memory. */
static sn_status build(sn_code code, const char *separator, const char *tail, const char *format,
                       va_list args) {
  va_list again;
  va_copy(again, args);
  int wanted = vsnprintf(NULL, 0, format, again);
  va_end(again);
  size_t head = wanted < 0 ? 0 : (size_t)wanted;
  size_t between = strlen(separator);
  size_t rest = strlen(tail);
  struct sn_status_s *status = sn__alloc(sizeof *status + head + between + rest + 1);
  if (status == NULL) return NULL;
  status->code = code;
  if (wanted >= 0) vsnprintf(status->text, head + 1, format, args);
  memcpy(status->text + head, separator, between);
  memcpy(status->text + head + between, tail, rest + 1);
  status->length = head + between + rest;
  make_one_line(status->text, &status->length);
  return status;
}

sn_status sn_status_make(sn_code code, const char *format, ...) {
  if (code <= SN_CODE_OK || code >= SN_CODE_COUNT) code = SN_CODE_INTERNAL;
  va_list args;
  va_start(args, format);
  sn_status status = build(code, "", "", format, args);
  va_end(args);
  return status != NULL ? status : sn_status_out_of_memory();
}

sn_status sn_status_context(sn_status status, const char *format, ...) {
  if (status == SN_OK || is_static(status)) return status;
  va_list args;
  va_start(args, format);
  sn_status longer = build(status->code, ": ", status->text, format, args);
  va_end(args);
  if (longer == NULL) return status; /* the report without the context beats no report */
  sn_status_free(status);
  return longer;
}

sn_status sn_status_join(sn_status first, sn_status second) {
  if (first == SN_OK) return second;
  sn_status_free(second);
  return first;
}

sn_code sn_status_code(sn_status status) {
  return status == SN_OK ? SN_CODE_OK : status->code;
}

const char *sn_status_message(sn_status status) {
  if (status == SN_OK) return codes[SN_CODE_OK].words;
  return is_static(status) ? out_of_memory.text : status->text;
}

const char *sn_code_words(sn_code code) {
  return (unsigned)code < SN_CODE_COUNT ? codes[code].words : "unknown status code";
}

int sn_code_exit(sn_code code) {
  return (unsigned)code < SN_CODE_COUNT ? codes[code].exit_code : 1;
}

sn_status sn_status_copy(sn_status status) {
  if (status == SN_OK || is_static(status)) return status;
  struct sn_status_s *copy = sn__alloc(sizeof *copy + status->length + 1);
  if (copy == NULL) return sn_status_out_of_memory();
  memcpy(copy, status, sizeof *copy + status->length + 1);
  return copy;
}

void sn_status_free(sn_status status) {
  if (!is_static(status)) sn__free(status);
}
