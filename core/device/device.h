/* SPDX-License-Identifier: Apache-2.0 */
/* The device interface (internal): everything that runs stands behind this one table of functions.
 *
 * A device has memory and in-order queues. Work is a batch of commands for one queue; each command
 * waits for timepoints, runs, and signals timepoints. Within a queue commands run in the order of
 * submission; between queues, devices and the host only timelines order.
 *
 * Failure: a command whose wait failed is not run; one that returns a status has failed. Either way
 * its signals fail with that status, and so do those of all later commands *of the same batch*,
 * which are not run: they may rely on the queue's order alone. The next batch starts afresh.
 *
 * Ownership: commands, their arrays and what they point to are borrowed until the batch's last
 * command has signalled (or until sn__device_drain()); buffers belong to whoever allocated them.
 *
 * Threads: any thread may call any function on a device, except that only one may free it. */
#ifndef SN_CORE_DEVICE_DEVICE_H
#define SN_CORE_DEVICE_DEVICE_H

#include "core/device/desc.h"
#include "core/device/kernel.h"
#include "core/device/timeline.h"
#include "core/dtype.h"

typedef struct sn__device sn__device;
struct sn_op_def; /* of the op layer; opaque here */

/* Raised whenever the table below changes; a module with another version is refused. */
#define SN__DEVICE_API_VERSION 2u

enum { SN__BUFFER_ALIGNMENT = 64 };

/* Memory of one device. */
typedef struct sn__buffer {
  sn__device *device;
  size_t bytes;
  void *host;   /* where the host can address it, 64-byte aligned; NULL: it cannot */
  void *handle; /* the backend's own */
} sn__buffer;

typedef enum sn__queue {
  SN__QUEUE_COMPUTE,
  SN__QUEUE_COPY, /* its worker starts with its first use */
  SN__QUEUE_COUNT
} sn__queue;

typedef struct sn__command {
  const char *label; /* for messages: what the command is; may be NULL */
  const sn__timepoint *waits;
  int n_waits;
  const sn__timepoint *signals;
  int n_signals;
  /* NULL only orders. `at` is the queue's: its team on the compute queue of a CPU device, its
   * stream on one whose kernels are enqueued. */
  sn_status (*run)(void *arg, const sn__launch *at);
  void *arg;
  /* What it touches; NULL: not said. On the compute queue all must be the device's own, on the copy
   * queue at least one (a copy is the one op that spans two devices). In test mode the space past
   * the end of each is checked after the command. */
  sn__buffer *const *buffers;
  int n_buffers;
} sn__command;

/* Zero is the default. */
typedef struct sn__device_options {
  /* Not 0: test mode. Commands start after random delays drawn from the seed, fresh memory holds
   * 0xFF bytes (NaN in every float type), freed memory 0xFE, and space past each buffer is guarded.
   * Nothing of it may change a result. */
  uint64_t test_seed;
} sn__device_options;

typedef struct sn__device_memory {
  size_t in_use, peak; /* bytes asked for, all buffers together */
  size_t limit;        /* 0: none */
  size_t buffers;      /* alive */
} sn__device_memory;

typedef enum sn__injection {
  SN__INJECT_ALLOC,   /* the n-th allocation from now: OUT_OF_MEMORY */
  SN__INJECT_SUBMIT,  /* the n-th batch from now is refused: DEVICE */
  SN__INJECT_COMMAND, /* the n-th command from now fails instead of running: DEVICE */
  SN__INJECTION_COUNT
} sn__injection;

SN_BEGIN_DECLS

/* ---- devices ------------------------------------------------------------------------------- */

/* UNSUPPORTED when the kind is not here (and why); OUT_OF_MEMORY or DEVICE when the machine
 * refuses. `options` may be NULL. */
SN_API SN_MUST_USE sn_status sn__device_create(const sn_device_desc *desc,
                                               const sn__device_options *options,
                                               sn__device **out_device);

/* Lets work in flight finish first, so whatever that waits for must still come. All buffers must
 * have been freed. */
SN_API void sn__device_free(sn__device *device);

/* All devices of a topology, in its order; `out_devices` has room for them. All or none. */
SN_API SN_MUST_USE sn_status sn__devices_create(const sn_topology *topology,
                                                const sn__device_options *options,
                                                sn__device **out_devices);
SN_API void sn__devices_free(sn__device **devices, int n_devices);

SN_API const sn_device_desc *sn__device_desc(const sn__device *device); /* borrowed */

/* Whether this kind's backend is here. Without one a device can be described and planned for. */
SN_API bool sn__device_kind_here(sn_device_kind kind);
/* What devices of the kind run for the op where its first output has this dtype; NULL when they
 * cannot, or when the kind's backend is not here. */
SN_API sn__kernel_fn sn__device_kernel(sn_device_kind kind, const struct sn_op_def *op,
                                       sn_dtype dtype);

/* ---- memory -------------------------------------------------------------------------------- */

/* Contents are undefined. 0 bytes are legal. OUT_OF_MEMORY says how much was asked and is in use.
 */
SN_API SN_MUST_USE sn_status sn__device_alloc(sn__device *device, size_t bytes,
                                              sn__buffer **out_buffer);
SN_API void sn__buffer_free(sn__buffer *buffer); /* NULL is fine */
SN_API void sn__device_memory_stats(const sn__device *device, sn__device_memory *out_memory);

/* INTERNAL when the guard past the buffer's end was overwritten; test mode only, else SN_OK. */
SN_API SN_MUST_USE sn_status sn__buffer_check(const sn__buffer *buffer);

/* One end of a transfer: `bytes` at `offset` of a buffer, or host memory when `buffer` is NULL. */
typedef struct sn__place {
  sn__buffer *buffer;
  size_t offset;
  void *host; /* read only, when it is the source */
} sn__place;

/* Upload (host to buffer), download (buffer to host) and copy (between buffers of one device or of
 * two, not overlapping). INTERNAL when a range is outside its buffer. */
typedef struct sn__transfer {
  sn__place to, from;
  size_t bytes;
} sn__transfer;

/* Does it now, on the calling thread; the result is visible when it returns. */
SN_API SN_MUST_USE sn_status sn__transfer_now(const sn__transfer *transfer);

/* The same as a command: run = sn__transfer_run, arg = the sn__transfer. */
SN_API SN_MUST_USE sn_status sn__transfer_run(void *transfer, const sn__launch *at);

/* ---- work ---------------------------------------------------------------------------------- */

/* Hands a batch to a queue: one lock for all of it. When it returns a status (OUT_OF_MEMORY,
 * DEVICE; INTERNAL when a command lists a buffer of another device), nothing was queued and nothing
 * will signal. */
SN_API SN_MUST_USE sn_status sn__device_submit(sn__device *device, sn__queue queue,
                                               const sn__command *commands, int n_commands);

/* Returns when all that was submitted before has ended; failures are on the timelines. */
SN_API void sn__device_drain(sn__device *device);

/* Tests: makes the n-th (from 1) of something fail, once; 0 takes it back. */
SN_API void sn__device_inject(sn__device *device, sn__injection what, uint64_t nth);

SN_END_DECLS

/* ---- behind the interface ------------------------------------------------------------------ */

/* What a backend fills in. Sizes, ranges, memory limits, accounting and injected failures have been
 * dealt with before these are called. */
typedef struct sn__device_vtable {
  uint32_t api_version; /* SN__DEVICE_API_VERSION */
  sn_device_kind kind;

  /* Makes the device from its description; `base` has been filled in, *out_impl goes to the rest.
   */
  sn_status (*create)(sn__device *base, void **out_impl);
  void (*destroy)(void *impl); /* queues are drained */

  /* Fills in `host` and `handle` of a buffer whose other fields are set. */
  sn_status (*alloc)(void *impl, sn__buffer *buffer);
  void (*free)(void *impl, sn__buffer *buffer);

  sn_status (*upload)(void *impl, sn__buffer *to, size_t offset, const void *from, size_t bytes);
  sn_status (*download)(void *impl, void *to, const sn__buffer *from, size_t offset, size_t bytes);
  /* (optional) Between two buffers of this kind; without it, and between kinds, through the host.
   */
  sn_status (*copy)(void *impl, sn__buffer *to, size_t to_offset, const sn__buffer *from,
                    size_t from_offset, size_t bytes);

  sn_status (*submit)(void *impl, sn__queue queue, const sn__command *commands, int n_commands);
  void (*drain)(void *impl);

  /* The kernel for an op whose first output has this dtype, or NULL. Of the kind, not of one
   * device: plans ask before there is one. */
  sn__kernel_fn (*kernel)(const struct sn_op_def *op, sn_dtype dtype);
  sn_status (*check)(const void *impl, const sn__buffer *buffer); /* (optional) test mode's guard */
} sn__device_vtable;

SN_BEGIN_DECLS
/* A loadable module's way in: makes the kind usable. UNSUPPORTED for another api_version. */
SN_API SN_MUST_USE sn_status sn__device_register(const sn__device_vtable *vtable);
SN_END_DECLS

#endif
