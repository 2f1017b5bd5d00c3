/* SPDX-License-Identifier: Apache-2.0 */
/* One lock around every call into libhdf5 that sennit makes in this process.
 *
 * libhdf5's usual build is not safe to enter from two threads. A host program that uses libhdf5
 * from threads of its own takes this lock around its calls too. It is recursive: a holder may call
 * into sennit. sennit never changes the process's HDF5 error handler. */
#ifndef SN_IO_H5_LOCK_H
#define SN_IO_H5_LOCK_H

#include "core/api.h"

SN_BEGIN_DECLS
SN_API void sn_hdf5_lock(void);   /* waits for whoever has it */
SN_API void sn_hdf5_unlock(void); /* as often as it was taken */
SN_END_DECLS

#endif
