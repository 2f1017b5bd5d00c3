/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the device interface that is the same for every backend: the registry, accounting,
 * checks, injected failures, and transfers between any two places. */
#include "core/device/device.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/device/device_impl.h"

/* ---- registry ------------------------------------------------------------------------------ */

static _Atomic(const sn__device_vtable *) registered[SN_DEVICE_KIND_COUNT];

const sn__device_vtable *sn__device_backend(sn_device_kind kind) {
  if (kind == SN_DEVICE_CPU) return &sn__cpu_vtable;
  if (kind == SN_DEVICE_NULL) return &sn__null_vtable;
  return (unsigned)kind < SN_DEVICE_KIND_COUNT ? atomic_load(&registered[kind]) : NULL;
}

sn_status sn__device_register(const sn__device_vtable *vtable) {
  if (vtable->api_version != SN__DEVICE_API_VERSION) {
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "a device module speaks version %u, this library %u: install both from "
                          "one build",
                          vtable->api_version, SN__DEVICE_API_VERSION);
  }
  if ((unsigned)vtable->kind >= SN_DEVICE_KIND_COUNT) {
    return sn_status_make(SN_CODE_UNSUPPORTED, "a device module for the unknown kind %d",
                          (int)vtable->kind);
  }
  atomic_store(&registered[vtable->kind], vtable);
  return SN_OK;
}

/* ---- devices ------------------------------------------------------------------------------- */

sn_status sn__device_create(const sn_device_desc *desc, const sn__device_options *options,
                            sn__device **out_device) {
  const sn__device_vtable *vtable = sn__device_backend(desc->kind);
  if (vtable == NULL) {
    return sn_status_make(SN_CODE_UNSUPPORTED, "%s: %s", desc->name,
                          sn_device_kind_absent(desc->kind));
  }
  sn__device *device = sn__calloc(1, sizeof *device);
  if (device == NULL) return sn_status_out_of_memory();
  device->vtable = vtable;
  device->desc = *desc;
  if (options != NULL) device->options = *options;
  sn_status status = vtable->create(device, &device->impl);
  if (status != SN_OK) {
    sn__free(device);
    return sn_status_context(status, "device %s", desc->name);
  }
  *out_device = device;
  return SN_OK;
}

void sn__device_free(sn__device *device) {
  if (device == NULL) return;
  device->vtable->drain(device->impl);
  assert(atomic_load(&device->buffers) == 0);
  device->vtable->destroy(device->impl);
  sn__free(device);
}

sn_status sn__devices_create(const sn_topology *topology, const sn__device_options *options,
                             sn__device **out_devices) {
  for (int i = 0; i < topology->n_devices; i++) {
    sn_status status = sn__device_create(&topology->devices[i], options, &out_devices[i]);
    if (status != SN_OK) {
      sn__devices_free(out_devices, i);
      return status;
    }
  }
  return SN_OK;
}

void sn__devices_free(sn__device **devices, int n_devices) {
  for (int i = 0; i < n_devices; i++)
    sn__device_free(devices[i]);
}

const sn_device_desc *sn__device_desc(const sn__device *device) {
  return &device->desc;
}

bool sn__device_kind_here(sn_device_kind kind) {
  return sn__device_backend(kind) != NULL;
}

sn__kernel_fn sn__device_kernel(sn_device_kind kind, const struct sn_op_def *op, sn_dtype dtype) {
  const sn__device_vtable *vtable = sn__device_backend(kind);
  return vtable == NULL ? NULL : vtable->kernel(op, dtype);
}

void sn__device_inject(sn__device *device, sn__injection what, uint64_t nth) {
  atomic_store(&device->inject[what], nth);
}

bool sn__device_injected(sn__device *device, sn__injection what) {
  uint64_t left = atomic_load_explicit(&device->inject[what], memory_order_relaxed);
  while (left != 0 && !atomic_compare_exchange_weak(&device->inject[what], &left, left - 1)) {
    continue;
  }
  return left == 1;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* False when the bytes do not fit under the limit. */
static bool reserve(sn__device *device, size_t bytes) {
  size_t limit = device->desc.memory_bytes == 0 || device->desc.memory_bytes > SIZE_MAX
                     ? SIZE_MAX
                     : (size_t)device->desc.memory_bytes;
  size_t now = atomic_load(&device->in_use);
  do {
    if (bytes > limit || now > limit - bytes) return false;
  } while (!atomic_compare_exchange_weak(&device->in_use, &now, now + bytes));
  size_t peak = atomic_load(&device->peak);
  while (now + bytes > peak && !atomic_compare_exchange_weak(&device->peak, &peak, now + bytes)) {
    continue;
  }
  return true;
}

static sn_status no_room(const sn__device *device, size_t bytes) {
  return sn_status_make(
      SN_CODE_OUT_OF_MEMORY,
      "%s: no room for %zu bytes: %zu in use of %llu; use a smaller batch or more "
      "devices",
      device->desc.name, bytes, atomic_load(&device->in_use),
      (unsigned long long)device->desc.memory_bytes);
}

sn_status sn__device_alloc(sn__device *device, size_t bytes, sn__buffer **out_buffer) {
  if (sn__device_injected(device, SN__INJECT_ALLOC)) {
    return sn_status_make(SN_CODE_OUT_OF_MEMORY, "%s: injected failure for %zu bytes",
                          device->desc.name, bytes);
  }
  sn__buffer *buffer = sn__calloc(1, sizeof *buffer);
  if (buffer == NULL) return sn_status_out_of_memory();
  buffer->device = device;
  buffer->bytes = bytes;
  if (!reserve(device, bytes)) {
    sn__free(buffer);
    return no_room(device, bytes);
  }
  sn_status status = device->vtable->alloc(device->impl, buffer);
  if (status != SN_OK) {
    atomic_fetch_sub(&device->in_use, bytes);
    sn__free(buffer);
    if (sn_status_code(status) != SN_CODE_OUT_OF_MEMORY) return status;
    sn_status_free(status);
    return no_room(device, bytes);
  }
  atomic_fetch_add(&device->buffers, 1);
  *out_buffer = buffer;
  return SN_OK;
}

void sn__buffer_free(sn__buffer *buffer) {
  if (buffer == NULL) return;
  sn__device *device = buffer->device;
  device->vtable->free(device->impl, buffer);
  atomic_fetch_sub(&device->in_use, buffer->bytes);
  atomic_fetch_sub(&device->buffers, 1);
  sn__free(buffer);
}

void sn__device_memory_stats(const sn__device *device, sn__device_memory *out_memory) {
  out_memory->in_use = atomic_load(&device->in_use);
  out_memory->peak = atomic_load(&device->peak);
  out_memory->buffers = atomic_load(&device->buffers);
  out_memory->limit =
      device->desc.memory_bytes > SIZE_MAX ? SIZE_MAX : (size_t)device->desc.memory_bytes;
}

sn_status sn__buffer_check(const sn__buffer *buffer) {
  const sn__device *device = buffer->device;
  if (device->vtable->check == NULL) return SN_OK;
  return device->vtable->check(device->impl, buffer);
}

/* ---- transfers ----------------------------------------------------------------------------- */

static sn_status check_place(const sn__place *place, size_t bytes, const char *end) {
  if (place->buffer == NULL) return SN_OK;
  size_t size = place->buffer->bytes;
  if (place->offset <= size && bytes <= size - place->offset) return SN_OK;
  return sn_status_make(SN_CODE_INTERNAL,
                        "a transfer %s %s: %zu bytes at %zu of a buffer of %zu bytes", end,
                        place->buffer->device->desc.name, bytes, place->offset, size);
}

static sn_status upload(const sn__place *to, const void *from, size_t bytes) {
  sn__device *device = to->buffer->device;
  return device->vtable->upload(device->impl, to->buffer, to->offset, from, bytes);
}

static sn_status download(void *to, const sn__place *from, size_t bytes) {
  sn__device *device = from->buffer->device;
  return device->vtable->download(device->impl, to, from->buffer, from->offset, bytes);
}

static sn_status copy_staged(sn__place to, sn__place from, size_t bytes) {
  size_t most = (size_t)1 << 20;
  void *stage = sn__alloc_aligned(bytes < most ? bytes : most, SN__BUFFER_ALIGNMENT);
  if (stage == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  while (bytes > 0 && status == SN_OK) {
    size_t part = bytes < most ? bytes : most;
    status = download(stage, &from, part);
    if (status == SN_OK) status = upload(&to, stage, part);
    to.offset += part;
    from.offset += part;
    bytes -= part;
  }
  sn__free(stage);
  return status;
}

static sn_status copy(const sn__place *to, const sn__place *from, size_t bytes) {
  const sn__device_vtable *vtable = to->buffer->device->vtable;
  if (to->buffer == from->buffer) {
    size_t low = to->offset < from->offset ? to->offset : from->offset;
    size_t high = to->offset < from->offset ? from->offset : to->offset;
    if (high - low < bytes) {
      return sn_status_make(SN_CODE_INTERNAL,
                            "a copy on %s overlaps itself: %zu bytes from %zu to %zu",
                            to->buffer->device->desc.name, bytes, from->offset, to->offset);
    }
  }
  if (vtable->copy != NULL && vtable == from->buffer->device->vtable) {
    return vtable->copy(to->buffer->device->impl, to->buffer, to->offset, from->buffer,
                        from->offset, bytes);
  }
  if (from->buffer->host != NULL) {
    return upload(to, (const char *)from->buffer->host + from->offset, bytes);
  }
  if (to->buffer->host != NULL) {
    return download((char *)to->buffer->host + to->offset, from, bytes);
  }
  return copy_staged(*to, *from, bytes);
}

sn_status sn__transfer_now(const sn__transfer *t) {
  SN_TRY(check_place(&t->to, t->bytes, "to"));
  SN_TRY(check_place(&t->from, t->bytes, "from"));
  if (t->bytes == 0) return SN_OK;
  if (t->to.buffer != NULL && t->from.buffer != NULL) return copy(&t->to, &t->from, t->bytes);
  if (t->to.buffer != NULL) {
    return upload(&t->to, (const char *)t->from.host + t->from.offset, t->bytes);
  }
  if (t->from.buffer != NULL) {
    return download((char *)t->to.host + t->to.offset, &t->from, t->bytes);
  }
  return sn_status_make(SN_CODE_INTERNAL, "a transfer from host memory to host memory");
}

sn_status sn__transfer_run(void *transfer, const sn__launch *at) {
  (void)at;
  return sn__transfer_now(transfer);
}

/* ---- work ---------------------------------------------------------------------------------- */

/* Every buffer knows its device, so a command that reaches for another one's memory is refused. */
static sn_status check_buffers(const sn__device *device, sn__queue queue, const sn__command *c) {
  const sn__buffer *foreign = NULL;
  bool own = false;
  for (int i = 0; i < c->n_buffers; i++) {
    if (c->buffers[i]->device == device) {
      own = true;
    } else {
      foreign = c->buffers[i];
    }
  }
  if (foreign == NULL || (queue == SN__QUEUE_COPY && own)) return SN_OK;
  return sn_status_make(SN_CODE_INTERNAL, "%s on %s uses a buffer of %s",
                        c->label != NULL ? c->label : "a command", device->desc.name,
                        foreign->device->desc.name);
}

sn_status sn__device_submit(sn__device *device, sn__queue queue, const sn__command *commands,
                            int n_commands) {
  if (n_commands <= 0) return SN_OK;
  for (int i = 0; i < n_commands; i++)
    SN_TRY(check_buffers(device, queue, &commands[i]));
  if (sn__device_injected(device, SN__INJECT_SUBMIT)) {
    return sn_status_make(SN_CODE_DEVICE, "%s: injected failure to submit", device->desc.name);
  }
  return device->vtable->submit(device->impl, queue, commands, n_commands);
}

void sn__device_drain(sn__device *device) {
  device->vtable->drain(device->impl);
}
