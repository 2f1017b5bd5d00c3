/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct labels, categories and ids. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "io/dataset_impl.h"

void sn__keys_clear(sn__keys *keys) {
  for (int64_t i = 0; i < keys->count; ++i)
    sn__free(keys->items[i].name);
  sn__free(keys->items);
  sn__free(keys->slots);
  memset(keys, 0, sizeof *keys);
}

static uint64_t hash_of(bool text, int64_t number, const char *name, size_t length) {
  if (!text) return sn__mix64((uint64_t)number);
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < length; ++i)
    h = (h ^ (uint8_t)name[i]) * 1099511628211u;
  return sn__mix64(h);
}

static bool is_key(const sn__key *k, bool text, int64_t number, const char *name, size_t length) {
  if (k->text != text) return false;
  if (!text) return k->number == number;
  return strncmp(k->name, name, length) == 0 && k->name[length] == '\0';
}

/* The slot of the key, or the free one where it belongs. */
static size_t slot_of(const sn__keys *keys, bool text, int64_t number, const char *name,
                      size_t length) {
  size_t mask = keys->slot_count - 1;
  size_t at = (size_t)hash_of(text, number, name, length) & mask;
  while (keys->slots[at] != 0 &&
         !is_key(&keys->items[keys->slots[at] - 1], text, number, name, length))
    at = (at + 1) & mask;
  return at;
}

int64_t sn__keys_find(const sn__keys *keys, bool text, int64_t number, const char *name,
                      size_t length) {
  if (keys->count == 0) return -1;
  if (text) length = strnlen(name, length);
  return (int64_t)keys->slots[slot_of(keys, text, number, name, length)] - 1;
}

static bool make_room(sn__keys *keys) {
  if ((size_t)keys->count * 2 < keys->slot_count) return true;
  size_t count = keys->slot_count > 0 ? keys->slot_count * 2 : 64;
  int32_t *slots = sn__calloc(count, sizeof *slots);
  if (slots == NULL) return false;
  sn__free(keys->slots);
  keys->slots = slots;
  keys->slot_count = count;
  for (int64_t i = 0; i < keys->count; ++i) {
    const sn__key *k = &keys->items[i];
    slots[slot_of(keys, k->text, k->number, k->name, k->text ? strlen(k->name) : 0)] =
        (int32_t)i + 1;
  }
  return true;
}

sn_status sn__keys_add(sn__keys *keys, bool text, int64_t number, const char *name, size_t length,
                       int64_t *out_index) {
  if (text) length = strnlen(name, length);
  int64_t at = sn__keys_find(keys, text, number, name, length);
  if (at >= 0) {
    *out_index = at;
    return SN_OK;
  }
  if (keys->count == SN__MOST_KEYS)
    return sn_status_make(SN_CODE_DATA,
                          "more than %lld different values: these are no classes or ids",
                          (long long)SN__MOST_KEYS);
  char digits[24];
  if (name == NULL) {
    snprintf(digits, sizeof digits, "%" PRId64, number);
    name = digits;
    length = strlen(digits);
  }
  if (!make_room(keys) || !sn__grow((void **)&keys->items, &keys->capacity, (size_t)keys->count + 1,
                                    sizeof *keys->items))
    return sn_status_out_of_memory();
  char *copy = sn__strndup(name, length);
  if (copy == NULL) return sn_status_out_of_memory();
  size_t slot = slot_of(keys, text, number, name, length);
  keys->items[keys->count] = (sn__key){text, number, copy};
  keys->slots[slot] = (int32_t)++keys->count;
  *out_index = keys->count - 1;
  return SN_OK;
}

int sn__key_compare(const sn__key *a, const sn__key *b) {
  if (a->text != b->text) return a->text ? 1 : -1;
  if (a->text) return strcmp(a->name, b->name);
  return (a->number > b->number) - (a->number < b->number);
}

bool sn__parse_whole(const char *text, int64_t *out) {
  char *end;
  errno = 0;
  long long whole = strtoll(text, &end, 10);
  if (end != text && *end == '\0' && errno == 0) {
    *out = whole;
    return true;
  }
  double d = strtod(text, &end);
  if (end == text || *end != '\0' || !(fabs(d) < 0x1p53) || d != trunc(d)) return false;
  *out = (int64_t)d;
  return true;
}
