/* SPDX-License-Identifier: Apache-2.0 */
/* A new HDF5 file of whole tensors by path, for whatever the command writes at one go. */
#ifndef SN_TOOLS_SENNIT_H5_OUT_H
#define SN_TOOLS_SENNIT_H5_OUT_H

#include <hdf5.h>

#include "core/shape.h"

/* A section of libhdf5 calls: under the lock, without its printing, errno at 0. The process's error
 * handler comes back with leave. */
typedef struct h5_section {
  H5E_auto2_t handler;
  void *data;
} h5_section;
h5_section h5_section_enter(void);
void h5_section_leave(const h5_section *section);

typedef struct h5_out h5_out;

/* Written beside `path` and renamed at the end. IO names the path and what the system said. */
sn_status h5_out_create(const char *path, h5_out **out_file);
/* A row-major tensor of a fixed shape at "/group/name"; groups on the way are made. bf16 is widened
 * to f32, bool is u8. */
sn_status h5_out_tensor(h5_out *file, const char *path, sn_dtype dtype, sn_shape shape,
                        const void *data);
/* An empty group, so that it is there even when nothing is in it. */
sn_status h5_out_group(h5_out *file, const char *path);
sn_status h5_out_text(h5_out *file, const char *path, const char *text);
/* Makes the file appear under its name. */
sn_status h5_out_finish(h5_out *file);
/* Without h5_out_finish() before, nothing is left of it. */
void h5_out_free(h5_out *file);

#endif
