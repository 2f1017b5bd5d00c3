/* SPDX-License-Identifier: Apache-2.0 */
/* H3 as files: the same work for train, plan and debug. */
#ifndef SN_TOOLS_SENNIT_H3_WRITE_H
#define SN_TOOLS_SENNIT_H3_WRITE_H

#include "models/model.h"

/* Makes the folder, and in it data.h5 (`batches` batches of rows) and model.yaml. */
sn_status h3_write(const char *folder, const sn_h3_sizes *sizes, int64_t batches);

#endif
