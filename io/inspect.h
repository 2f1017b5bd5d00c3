/* SPDX-License-Identifier: Apache-2.0 */
/* What an HDF5 file holds and what would stop training from it, for a person or a program. */
#ifndef SN_IO_INSPECT_H
#define SN_IO_INSPECT_H

#include "core/allocator.h"
#include "core/status.h"

SN_BEGIN_DECLS

/* Every dataset with its shape, type, filters, range, class counts and lengths, and every finding
 * at once; as text, or as one JSON object. `out_text` is the caller's (sn_text_free), NULL when
 * there is nothing to say; it may be there even when a status comes back, which is when libhdf5
 * refused, crashed or hung on the file in its own process. */
SN_API SN_MUST_USE sn_status sn_inspect_file(const char *path, bool json, char **out_text);

SN_END_DECLS

#endif
