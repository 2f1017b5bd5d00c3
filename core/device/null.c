/* SPDX-License-Identifier: Apache-2.0 */
/* `null`: describes and schedules only. Commands wait and signal but do not run; memory is counted
 * but not there; what is read from it is zeros. The shortest backend there is: copy it to begin
 * one. */
#include <string.h>

#include "core/alloc.h"
#include "core/device/lane.h"

typedef struct null_device {
  sn__lane *lanes[SN__QUEUE_COUNT];
} null_device;

static void null_destroy(void *impl) {
  null_device *device = impl;
  for (int q = 0; q < SN__QUEUE_COUNT; q++)
    sn__lane_free(device->lanes[q]);
  sn__free(device);
}

static sn_status null_create(sn__device *base, void **out_impl) {
  null_device *device = sn__calloc(1, sizeof *device);
  if (device == NULL) return sn_status_out_of_memory();
  for (int q = 0; q < SN__QUEUE_COUNT; q++) {
    sn__lane_options options = {.name = base->desc.name, .pretend = true, .lazy = true};
    sn_status status = sn__lane_create(base, &options, &device->lanes[q]);
    if (status != SN_OK) {
      null_destroy(device);
      return status;
    }
  }
  *out_impl = device;
  return SN_OK;
}

static sn_status null_alloc(void *impl, sn__buffer *buffer) {
  (void)impl, (void)buffer;
  return SN_OK;
}

static void null_free(void *impl, sn__buffer *buffer) {
  (void)impl, (void)buffer;
}

static sn_status null_upload(void *impl, sn__buffer *to, size_t offset, const void *from,
                             size_t bytes) {
  (void)impl, (void)to, (void)offset, (void)from, (void)bytes;
  return SN_OK;
}

static sn_status null_download(void *impl, void *to, const sn__buffer *from, size_t offset,
                               size_t bytes) {
  (void)impl, (void)from, (void)offset;
  memset(to, 0, bytes);
  return SN_OK;
}

static sn_status null_copy(void *impl, sn__buffer *to, size_t to_offset, const sn__buffer *from,
                           size_t from_offset, size_t bytes) {
  (void)impl, (void)to, (void)to_offset, (void)from, (void)from_offset, (void)bytes;
  return SN_OK;
}

static sn_status null_submit(void *impl, sn__queue queue, const sn__command *commands,
                             int n_commands) {
  null_device *device = impl;
  return sn__lane_submit(device->lanes[queue], commands, n_commands);
}

static void null_drain(void *impl) {
  null_device *device = impl;
  for (int q = 0; q < SN__QUEUE_COUNT; q++)
    sn__lane_drain(device->lanes[q]);
}

/* Plans ask for it, nothing runs it. */
static sn_status nothing(const struct sn__exec *e) {
  (void)e;
  return SN_OK;
}

static sn__kernel_fn null_kernel(const struct sn_op_def *op, sn_dtype dtype) {
  (void)op, (void)dtype;
  return nothing;
}

const sn__device_vtable sn__null_vtable = {
    .api_version = SN__DEVICE_API_VERSION,
    .kind = SN_DEVICE_NULL,
    .create = null_create,
    .destroy = null_destroy,
    .alloc = null_alloc,
    .free = null_free,
    .upload = null_upload,
    .download = null_download,
    .copy = null_copy,
    .submit = null_submit,
    .drain = null_drain,
    .kernel = null_kernel,
};
