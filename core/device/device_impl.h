/* SPDX-License-Identifier: Apache-2.0 */
/* What backends share: the base of a device, and the backends that are built in. */
#ifndef SN_CORE_DEVICE_DEVICE_IMPL_H
#define SN_CORE_DEVICE_DEVICE_IMPL_H

#include <stdatomic.h>

#include "core/device/device.h"

struct sn__device {
  const sn__device_vtable *vtable;
  void *impl;
  sn_device_desc desc;
  sn__device_options options;
  _Atomic size_t in_use, peak, buffers;
  _Atomic uint64_t inject[SN__INJECTION_COUNT]; /* calls still to go; 0: off */
};

/* True when this call is the one that was chosen to fail. */
bool sn__device_injected(sn__device *device, sn__injection what);

/* The kind's backend, or NULL when it is not here. */
const sn__device_vtable *sn__device_backend(sn_device_kind kind);

extern const sn__device_vtable sn__cpu_vtable, sn__null_vtable;

#endif
