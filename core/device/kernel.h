/* SPDX-License-Identifier: Apache-2.0 */
/* What a device runs, and where (internal): the words that ops and devices share. A kernel computes
 * one op on one kind of device; the kind's table says which it has (device.h). It is given
 * addresses of its device's own memory, which the host need not be able to read. */
#ifndef SN_CORE_DEVICE_KERNEL_H
#define SN_CORE_DEVICE_KERNEL_H

#include "core/device/team.h"
#include "core/status.h"

/* What a device hands to the commands of a queue. */
typedef struct sn__launch {
  sn__team *team; /* threads that share out the work; NULL: one thread */
  void *stream;   /* the backend's own handle of the queue, for kernels that are enqueued (CUDA: the
                     cudaStream_t); NULL where they run on the calling thread */
} sn__launch;

struct sn__exec; /* core/op.h */
typedef sn_status (*sn__kernel_fn)(const struct sn__exec *e);

#endif
