/* SPDX-License-Identifier: Apache-2.0 */
/* A section of libhdf5 calls (internal): under the lock, without its printing. The process's own
 * error handler is put back before the lock is given up, so a host program never sees it changed.
 */
#ifndef SN_IO_H5_QUIET_H
#define SN_IO_H5_QUIET_H

#include <hdf5.h>
#include "io/h5_lock.h"

typedef struct sn__h5_quiet {
  H5E_auto2_t handler;
  void *data;
} sn__h5_quiet;

static inline sn__h5_quiet sn__h5_enter(void) {
  sn__h5_quiet quiet = {NULL, NULL};
  sn_hdf5_lock();
  H5Eget_auto2(H5E_DEFAULT, &quiet.handler, &quiet.data);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  return quiet;
}

static inline void sn__h5_leave(const sn__h5_quiet *quiet) {
  H5Eset_auto2(H5E_DEFAULT, quiet->handler, quiet->data);
  sn_hdf5_unlock();
}

#endif
