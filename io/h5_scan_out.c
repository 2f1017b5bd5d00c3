/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/h5_scan_child.h"

static struct {
  uint8_t *bytes;
  size_t size, capacity;
  int fd, shared_fd;
  uint64_t shared_size;
} out = {.fd = -1, .shared_fd = -1};

void *sn__scan_alloc(size_t size) {
  void *p = calloc(1, size == 0 ? 1 : size);
  if (p == NULL) _exit(SN__SCAN_EXIT_MEMORY);
  return p;
}

static bool write_all(int fd, const void *bytes, size_t size) {
  const uint8_t *at = bytes;
  while (size > 0) {
    ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

void sn__say_start(int report_fd, int shared_fd) {
  out.fd = report_fd;
  out.shared_fd = shared_fd;
  if (!write_all(out.fd, SN__WIRE_MAGIC, strlen(SN__WIRE_MAGIC))) _exit(SN__SCAN_EXIT_PIPE);
}

static void put(const void *bytes, size_t size) {
  if (out.size + size > out.capacity) {
    size_t capacity = (out.size + size) * 2;
    uint8_t *grown = realloc(out.bytes, capacity);
    if (grown == NULL) _exit(SN__SCAN_EXIT_MEMORY);
    out.bytes = grown;
    out.capacity = capacity;
  }
  if (size > 0) memcpy(out.bytes + out.size, bytes, size);
  out.size += size;
}

void sn__say_begin(sn__wire_tag tag) {
  out.size = 0;
  sn__say_u8((unsigned)tag);
  sn__say_u32(0); /* the length, known at the end */
}

void sn__say_u8(unsigned value) {
  uint8_t v = (uint8_t)value;
  put(&v, sizeof v);
}

void sn__say_u32(uint32_t value) {
  put(&value, sizeof value);
}

void sn__say_u64(uint64_t value) {
  put(&value, sizeof value);
}

void sn__say_str(const char *text) {
  sn__say_blob(text, strlen(text));
}

void sn__say_blob(const void *bytes, size_t size) {
  sn__say_u32((uint32_t)size);
  put(bytes, size);
}

void sn__say_end(void) {
  uint32_t length = (uint32_t)(out.size - 5);
  memcpy(out.bytes + 1, &length, sizeof length);
  if (!write_all(out.fd, out.bytes, out.size)) _exit(SN__SCAN_EXIT_PIPE);
  out.size = 0;
}

void sn__say_words(sn__wire_tag tag, const char *path, const char *words) {
  sn__say_begin(tag);
  sn__say_str(path);
  sn__say_str(words);
  sn__say_end();
}

void sn__say_at(const char *path, const char *stage) {
  sn__say_words(SN__WIRE_AT, path, stage);
}

/* libhdf5 forgets its errors at the next call, a close for instance, so they are kept as they come.
 */
static char why[200];

static herr_t first_message(unsigned n, const H5E_error2_t *error, void *user) {
  (void)user;
  if (n == 0 && error->desc != NULL) snprintf(why, sizeof why, "%s", error->desc);
  return 0;
}

static herr_t keep_error(hid_t stack, void *user) {
  (void)user;
  H5Ewalk2(stack, H5E_WALK_UPWARD, first_message, NULL);
  return 0;
}

void sn__say_keep_errors(void) {
  H5Eset_auto2(H5E_DEFAULT, keep_error, NULL);
}

const char *sn__say_why(void) {
  static char words[sizeof why];
  memcpy(words, why, sizeof why);
  why[0] = '\0';
  return words[0] != '\0' ? words : "unknown error";
}

bool sn__shared_write(const void *bytes, size_t size) {
  if (out.shared_fd < 0 || !write_all(out.shared_fd, bytes, size)) return false;
  out.shared_size += size;
  return true;
}

bool sn__shared_align(void) {
  static const uint8_t zeros[8];
  return sn__shared_write(zeros, (8 - out.shared_size % 8) % 8);
}

uint64_t sn__shared_size(void) {
  return out.shared_size;
}
