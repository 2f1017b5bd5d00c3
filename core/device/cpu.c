/* SPDX-License-Identifier: Apache-2.0 */
/* `cpu`: a share of the host's cores as a device, with a heap, a worker and a thread team of its
 * own. Several of them make a machine of several devices out of any box: the reference for every
 * op. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "core/alloc.h"
#include "core/device/lane.h"
#include "core/device/poison.h"
#include "core/op.h"

typedef struct cpu_device {
  bool test_mode;
  sn__team *team;
  sn__lane *lanes[SN__QUEUE_COUNT];
} cpu_device;

/* ---- life ---------------------------------------------------------------------------------- */

static void cpu_destroy(void *impl) {
  cpu_device *device = impl;
  for (int q = 0; q < SN__QUEUE_COUNT; q++)
    sn__lane_free(device->lanes[q]);
  sn__team_free(device->team);
  sn__free(device);
}

static sn_status make_parts(sn__device *base, cpu_device *device) {
  SN_TRY(sn__team_create(base->desc.threads, &device->team));
  char name[SN_DEVICE_NAME_SIZE + 8];
  strcpy(name, "sn-");
  strcat(name, base->desc.name);
  sn__lane_options compute = {.name = name, .launch = {.team = device->team}};
  SN_TRY(sn__lane_create(base, &compute, &device->lanes[SN__QUEUE_COMPUTE]));
  strcat(name, "-cp");
  sn__lane_options copies = {.name = name, .lazy = true};
  return sn__lane_create(base, &copies, &device->lanes[SN__QUEUE_COPY]);
}

static sn_status cpu_create(sn__device *base, void **out_impl) {
  cpu_device *device = sn__calloc(1, sizeof *device);
  if (device == NULL) return sn_status_out_of_memory();
  device->test_mode = base->options.test_seed != 0;
  sn_status status = make_parts(base, device);
  if (status != SN_OK) {
    cpu_destroy(device);
    return status;
  }
  *out_impl = device;
  return SN_OK;
}

/* ---- memory -------------------------------------------------------------------------------- */

enum { GUARD_BYTES = 64, GUARD = 0xa5, FRESH = 0xff, FREED = 0xfe };

/* From here on a buffer is worth whole huge pages: an arena is swept from end to end every step. */
#define HUGE_PAGE ((size_t)2 << 20)

static sn_status cpu_alloc(void *impl, sn__buffer *buffer) {
  const cpu_device *device = impl;
  size_t bytes = buffer->bytes, with_guard = bytes;
  if (device->test_mode && !sn__size_add(bytes, GUARD_BYTES, &with_guard)) {
    return sn_status_out_of_memory();
  }
  size_t alignment = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : SN__BUFFER_ALIGNMENT;
  unsigned char *host = sn__alloc_aligned(with_guard, alignment);
  if (host == NULL) return sn_status_out_of_memory();
  if (alignment == HUGE_PAGE) madvise(host, bytes & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
  if (device->test_mode) {
    memset(host, FRESH, bytes);
    memset(host + bytes, GUARD, GUARD_BYTES);
    sn__poison(host + bytes, GUARD_BYTES);
  }
  buffer->host = host;
  return SN_OK;
}

static void cpu_free(void *impl, sn__buffer *buffer) {
  const cpu_device *device = impl;
  if (device->test_mode) {
    unsigned char *end = (unsigned char *)buffer->host + buffer->bytes;
    sn__unpoison(end, GUARD_BYTES);
    memset(buffer->host, FREED, buffer->bytes);
  }
  sn__free(buffer->host);
}

/* Kernels of vendor libraries are not instrumented, so the guard is looked at as well as poisoned.
 */
__attribute__((no_sanitize_address)) static sn_status cpu_check(const void *impl,
                                                                const sn__buffer *buffer) {
  const cpu_device *device = impl;
  if (!device->test_mode) return SN_OK;
  const volatile unsigned char *end = (const unsigned char *)buffer->host + buffer->bytes;
  for (size_t i = 0; i < GUARD_BYTES; i++) {
    if (end[i] != GUARD) {
      return sn_status_make(SN_CODE_INTERNAL,
                            "a buffer of %zu bytes on %s was written %zu bytes past its end",
                            buffer->bytes, sn__device_desc(buffer->device)->name, i + 1);
    }
  }
  return SN_OK;
}

static char *at(const sn__buffer *buffer, size_t offset) {
  return (char *)buffer->host + offset;
}

static sn_status cpu_upload(void *impl, sn__buffer *to, size_t offset, const void *from,
                            size_t bytes) {
  (void)impl;
  memcpy(at(to, offset), from, bytes);
  return SN_OK;
}

static sn_status cpu_download(void *impl, void *to, const sn__buffer *from, size_t offset,
                              size_t bytes) {
  (void)impl;
  memcpy(to, at(from, offset), bytes);
  return SN_OK;
}

static sn_status cpu_copy(void *impl, sn__buffer *to, size_t to_offset, const sn__buffer *from,
                          size_t from_offset, size_t bytes) {
  (void)impl;
  memcpy(at(to, to_offset), at(from, from_offset), bytes);
  return SN_OK;
}

/* ---- work ---------------------------------------------------------------------------------- */

static sn_status cpu_submit(void *impl, sn__queue queue, const sn__command *commands,
                            int n_commands) {
  cpu_device *device = impl;
  return sn__lane_submit(device->lanes[queue], commands, n_commands);
}

static void cpu_drain(void *impl) {
  cpu_device *device = impl;
  for (int q = 0; q < SN__QUEUE_COUNT; q++)
    sn__lane_drain(device->lanes[q]);
}

/* The CPU kernel of an op takes every dtype that the op's shape rule lets through. */
static sn__kernel_fn cpu_kernel(const struct sn_op_def *op, sn_dtype dtype) {
  (void)dtype;
  return op->cpu;
}

const sn__device_vtable sn__cpu_vtable = {
    .api_version = SN__DEVICE_API_VERSION,
    .kind = SN_DEVICE_CPU,
    .create = cpu_create,
    .destroy = cpu_destroy,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_upload,
    .download = cpu_download,
    .copy = cpu_copy,
    .submit = cpu_submit,
    .drain = cpu_drain,
    .kernel = cpu_kernel,
    .check = cpu_check,
};
